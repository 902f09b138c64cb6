"""``./run soak zkfc``: Hadoop's stress tests of the controller for their 30 s each, or longer."""

import asyncio
import json
import logging
import random
import tempfile
from pathlib import Path

import click
import structlog

from tests.ha.zkfc import stress
from tests.local_services import running_zookeeper

CHAOS = (
    stress.expire_back_and_forth,
    stress.random_expirations,
    stress.random_health_and_disconnects,
)


@click.command()
@click.option("--seconds", default=30.0, show_default=True, help="How long each kind lasts.")
@click.option("--seed", type=int, help="Of an earlier run, to have its strikes again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a kind.")
def main(seconds: float, seed: int | None, as_json: bool) -> None:
    """Expire sessions and cut connections; fails if two are active at once or a controller dies."""
    logging.disable(logging.CRITICAL)  # kazoo reports each connection that is cut
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    seed = random.randrange(2**32) if seed is None else seed
    with tempfile.TemporaryDirectory() as name, running_zookeeper(Path(name)) as server:
        for kind in CHAOS:
            folder = Path(name) / kind.__name__
            folder.mkdir()
            work = kind(server.connect, folder, seconds=seconds, seed=seed)
            try:
                strikes = asyncio.run(work)
            except AssertionError as failure:
                raise click.ClickException(
                    f"{kind.__name__}, --seed {seed}: {failure}"
                ) from failure
            told = {"kind": kind.__name__, "seed": seed, "seconds": seconds, "strikes": strikes}
            click.echo(json.dumps(told) if as_json else f"{told['kind']}: {strikes} strikes, well")
