"""`./run bench failover`: what each way of losing an active costs, next to Hadoop in one run."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.demo.screen import Screen
from ha.daemon.logs import configure_logging
from tests.campaigns.bench import failover_faults, failover_kills, failover_stalls, failover_zkfc
from tests.campaigns.bench.failover_java import java_rows
from tests.campaigns.bench.failover_namespaces import namespaces
from tests.campaigns.bench.failover_world import World
from tests.campaigns.bench.hadoop_failover import hadoop_rows
from tests.campaigns.bench.report import Row, publish
from tests.campaigns.bench.switches import show_phases

Scene = Callable[[World], list[Row]]

SCENES: Final[dict[str, Scene]] = {
    "hadoop": hadoop_rows,
    "kill": failover_kills.kills_and_hand_overs,
    "sshfence": failover_kills.kills_with_sshfence,
    "frozen": failover_faults.frozen,
    "host-2": failover_faults.host_dead_2,
    "host-5": failover_faults.host_dead_5,
    "host-10": failover_faults.host_dead_10,
    "stalls": failover_stalls.stalls,
    "zkfc": failover_zkfc.controllers,
    "zookeeper": failover_faults.zookeeper_away,
}
JAVA: Final[dict[str, Scene]] = {"java": java_rows}
"""Played by itself: its NameNodes are Hadoop's, whose seconds would hide ours."""
SECURE: Final[dict[str, Scene]] = {"secure": failover_kills.with_certificates}
"""Next to kills and hand-overs without certificates, of the same run."""
CERTIFIED: Final = (*SECURE, *(name for name in SCENES if name != "hadoop"))
"""With certificates nothing is decided otherwise: the same scenes, with the same bars."""


def rows_of(world: World, scenes: Mapping[str, Scene]) -> list[Row]:
    """Return the rows of these scenes; each has its own cluster, and no two run together."""
    rows = [row for name, scene in scenes.items() for row in _played(world, name, scene)]
    record = world.record
    lost, errors = record.lost_writes, len(record.client_errors)
    asked = f"{record.acknowledged} acknowledged"
    return [
        *rows,
        Row("acknowledged writes lost, all scenes", lost, "writes", "0", not lost, asked),
        Row("client errors, all scenes", errors, "errors", "0", not errors, "-"),
    ]


def _played(world: World, name: str, scene: Scene) -> list[Row]:
    """Play a scene; one that breaks off says so, and the others have their rows all the same."""
    try:
        return scene(world)
    except LocalClusterError as failure:
        world.screen.say(str(failure))
        why = str(failure).splitlines()[0][:200]
        return [Row(f"scene {name}", None, "-", "played to its end", False, f"broke off: {why}")]


@click.command()
@click.option(
    "--only", multiple=True, type=click.Choice([*SCENES, *SECURE]), help="Not all scenes."
)
@click.option("--java", is_flag=True, help="Our ZKFC and Hadoop's on Hadoop's NameNodes only.")
@click.option(
    "--secure",
    is_flag=True,
    help="All scenes with certificates; kills and hand-overs also without, for comparison.",
)
@click.option("--rounds", default=10, show_default=True, help="Failovers of each kind.")
@click.option(
    "--inodes", multiple=True, type=int, help="Kills and hand-overs of so large namespaces only."
)
@click.option("--blocks", default=1_000_000, show_default=True, help="With --inodes: of its files.")
@click.option("--long", "long_run", is_flag=True, help="ZooKeeper is away for ten minutes.")
@click.option("--stalls", default=1000, show_default=True, help="Stalls of a live active.")
@click.option("--charts", type=click.Path(path_type=Path), help="Draw a PNG into this folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(
    *,
    only: tuple[str, ...],
    java: bool,
    secure: bool,
    rounds: int,
    inodes: tuple[int, ...],
    blocks: int,
    long_run: bool,
    stalls: int,
    charts: Path | None,
    as_json: bool,
) -> None:
    """Measure failovers of a local cluster under a writing Java client with default settings."""
    if charts is not None and find_spec("matplotlib") is None:
        raise click.UsageError("--charts needs matplotlib, which ./run setup installs")
    if java and (only or charts or secure):
        raise click.UsageError("--java has one scene, no certificates and no chart")
    if inodes and (only or java or charts or secure):
        raise click.UsageError("--inodes has one scene, no certificates and no chart")
    if secure and charts:
        raise click.UsageError("--secure has no chart; leave out --charts")
    configure_logging("bench", level="error")
    world = World(
        Screen.on_stderr_if(True),
        rounds=rounds,
        long_run=long_run,
        stalls=stalls,
        secure=secure,
    )
    scenes = SCENES | SECURE
    if inodes:
        scenes = {"namespaces": partial(namespaces, sizes=inodes, blocks=blocks)}
    elif java:
        scenes = JAVA
    else:
        scenes = {name: scenes[name] for name in only or (CERTIFIED if secure else SCENES)}
    rows = rows_of(world, scenes)
    for error in world.record.client_errors:
        world.screen.say(error)
    if world.record.switches:
        show_phases(world.record)
    if charts is not None:
        from tests.campaigns.bench.failover_charts import draw

        draw(world.record, charts)
    more = {"phases": world.record.medians()}
    raise SystemExit(publish("failover", rows, as_json=as_json, more=more))


if __name__ == "__main__":
    main()
