"""`./run bench journal`: quorum writes against a bare gRPC stream and raw TCP of the same run."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from ha.daemon.logs import configure_logging
from ha.daemon.process import calm_collector
from tests.campaigns.bench import commits, takeover, typed_edits
from tests.campaigns.bench.busy import busy
from tests.campaigns.bench.cheap_calls import cheap_calls
from tests.campaigns.bench.cpu import hand_over
from tests.campaigns.bench.daemon_loop import daemon_loop
from tests.campaigns.bench.hadoop_peer import hadoop_rows
from tests.campaigns.bench.mkdirs import mkdirs
from tests.campaigns.bench.nnthroughput import nnthroughput
from tests.campaigns.bench.report import Row, publish
from tests.campaigns.bench.secure_commits import with_certificates
from tests.campaigns.bench.transports import transport_rows
from tests.campaigns.bench.world import World
from tests.campaigns.soak.seeds import play
from tests.simulation.journal.world import run

SEEDS = range(1, 121)


def simulator(_world: World) -> list[Row]:
    """Return how many simulated lives one core plays in a minute: the first seeds."""
    began = time.process_time()
    found = play(run, SEEDS)
    rate = 60 * found.seeds / (time.process_time() - began)
    peer = f"{found.steps / found.seeds:,.0f} steps a seed"
    return [Row("simulated seeds", rate, "1/min/core", ">= 1,500", rate >= 1500, peer)]


Figure = Callable[[World], Coroutine[None, None, list[Row]] | list[Row]]

FIGURES: Final[dict[str, Figure]] = {
    "latency": commits.latency,
    "handover": hand_over,
    "throughput": commits.throughput,
    "stopped": commits.one_node_stopped,
    "delayed": commits.one_node_delayed,
    "flush": commits.slow_flush,
    "typed": typed_edits.typed_edits,
    "bytes": commits.large_batches,
    "takeover": takeover.takeover,
    "scan": takeover.scanning,
    "memory": takeover.memory,
    "mkdirs": mkdirs,
    "calls": cheap_calls,
    "nnthroughput": nnthroughput,
    "transports": lambda _world: transport_rows(),
    "hadoop": hadoop_rows,
    "busy": busy,
    "simulator": simulator,
}

SECURE: Final[dict[str, Figure]] = {"secure": with_certificates}
"""Played by itself: what certificates cost, against the same without in turns."""


def rows_of(names: Sequence[str], charts: Path | None) -> list[Row]:
    """Return the figures of these names, in order; each must leave the others undisturbed."""
    rows: list[Row] = []
    with ExitStack() as running:
        directory = Path(running.enter_context(tempfile.TemporaryDirectory()))
        world = World(running, directory)
        loop = running.enter_context(asyncio.Runner(loop_factory=daemon_loop()))
        for name in names:
            found = (FIGURES | SECURE)[name](world)
            rows += found if isinstance(found, list) else loop.run(found)
        if charts is not None:
            from tests.campaigns.bench.charts import draw

            draw(world, charts)
    return rows


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(FIGURES)), help="Not all figures.")
@click.option("--secure", is_flag=True, help="Commits with certificates, and without.")
@click.option("--charts", type=click.Path(path_type=Path), help="Draw PNGs into this folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(*, only: tuple[str, ...], secure: bool, charts: Path | None, as_json: bool) -> None:
    """Measure the journal: medians of five runs, ours and the peers in turn."""
    if charts is not None and find_spec("matplotlib") is None:
        raise click.UsageError("--charts needs matplotlib, which ./run setup installs")
    if secure and (only or charts is not None):
        raise click.UsageError(
            "--secure has one figure and no chart; leave out --only and --charts"
        )
    configure_logging("bench", level="error")
    calm_collector()  # as in the NameNode, whose part this process plays
    rows = rows_of(tuple(SECURE) if secure else only or tuple(FIGURES), charts)
    raise SystemExit(publish("journal", rows, as_json=as_json))


if __name__ == "__main__":
    main()
