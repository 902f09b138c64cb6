"""`./run soak java`: a pair of Hadoop's NameNodes on our JournalNodes and ZKFCs.

The cluster begins as Hadoop's own and becomes ours daemon by daemon.  Then come kills and
hand-overs, and in the middle of them a JournalNode without its disk.  At the end the cluster is
Hadoop's again.  A Java client writes all the time.
"""

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from deploy.local.demo.screen import Screen
from tests.campaigns.bench.report import machine
from tests.interop.hadoop_jars import JarsMissing
from tests.interop.mixed.campaign import Campaign
from tests.interop.mixed.client import writing
from tests.interop.mixed.cluster import mixed_cluster
from tests.interop.mixed.migration import CLAIM_SECONDS
from tests.interop.mixed.programs import Kind
from tests.interop.mixed.roles import RoleWatch

PAUSE_SECONDS = 0.05
"""Between two calls of a writer: an hour of them is still looked up path by path at the end."""

_SHOWN = ("kills", "hand_overs", "acknowledged", "missing", "duplicated", "client_errors", "gaps",
          "diverging", "looks", "both_active", "kill_seconds_median", "kill_seconds_max",
          "hand_over_seconds_median", "hand_over_seconds_max")  # fmt: skip


@click.command("java")
@click.option("--count", default=10, show_default=True, type=click.IntRange(min=1), help="Kills.")
@click.option("--minutes", default=math.inf, help="No kill begins later; the rest is played.")
@click.option("--move/--no-move", default=True, help="Begin and end as Hadoop's cluster.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--seeds", type=int, expose_value=False, help="Accepted by all soaks; not used here.")
@click.option("--first-seed", type=int, expose_value=False, help="The same.")
@click.option("--jobs", type=int, expose_value=False, help="The same.")
def main(
    *, count: int, minutes: float, move: bool, as_object: bool, directory: Path | None
) -> None:
    """Kill Hadoop's active NameNode --count times and hand over half as often.

    Exit code 0 only if nothing acknowledged is lost, no two NameNodes were ever active together,
    and the client saw no error.
    """
    screen = Screen.on_stderr_if(as_object)
    began = time.monotonic()
    place = directory or fresh_directory("soak-java")
    try:
        with orderly_end(), campaign(place, screen, Kind.HADOOP if move else Kind.OURS) as played:
            play(played, count, move=move, until=began + minutes * 60)
            facts = played.facts()
    except (JarsMissing, LocalClusterError) as error:
        raise click.ClickException(str(error)) from error
    facts |= {
        "total_seconds": round(time.monotonic() - began, 3),
        "directory": str(place),
        "machine": machine(),
    }
    well = bool(facts["well"])
    rows = [(name, str(facts[name])) for name in _SHOWN if name in facts]
    screen.summary("nothing lost" if well else "NOT WELL", rows, well=well)
    if as_object:
        click.echo(json.dumps(facts))
    raise SystemExit(0 if well else 1)


def play(played: Campaign, count: int, *, move: bool, until: float = math.inf) -> None:
    if move:
        played.move_journalnodes(Kind.OURS)
        played.move_zkfcs(Kind.OURS)
    first = (count + 1) // 2
    half = time.monotonic() + (until - time.monotonic()) / 2
    played.play(kills=first, hand_overs=first // 2, until=half)
    played.wipe()
    played.play(kills=count - first, hand_overs=count // 2 - first // 2, until=until)
    if move:
        played.move_zkfcs(Kind.HADOOP)
        played.move_journalnodes(Kind.HADOOP)


@contextmanager
def campaign(
    directory: Path, screen: Screen, kind: Kind, *, pause_seconds: float = PAUSE_SECONDS
) -> Iterator[Campaign]:
    """Hadoop's NameNodes on JournalNodes and ZKFCs of this kind, with a client that writes.

    Each of its writers rests for ``pause_seconds`` between two calls.

    Raises:
        JarsMissing, LocalClusterError: something is not here, or a part does not come up.
    """
    directory.mkdir(parents=True, exist_ok=True)
    # How long a learner waits for claims of writers that it may have forgotten.
    claims = {"dfs.qjournal.new-epoch.timeout.ms": str(CLAIM_SECONDS * 1000)}
    with mixed_cluster(directory, more_keys=claims) as cluster:
        screen.say(f"logs and data stay in [bold]{cluster.layout.directory}[/]")
        cluster.up(journalnodes=kind, namenodes=Kind.HADOOP, zkfcs=kind)
        addresses = {name: cluster.address(name) for name in NAMENODES}
        with writing(cluster, pause_seconds=pause_seconds) as client, RoleWatch(addresses) as roles:
            yield Campaign(cluster, client, roles, screen)
