"""`./run soak files`: clients write, append, rename, delete and read files under kills.

Each round kills the active NameNode, each third one a DataNode as well.  At the end every file is
read again, also by DataNodes and NameNodes that were all killed and started anew, none is open, and
every block has all its replicas.
"""

import json
import math
import random
import statistics
import time
from functools import partial
from pathlib import Path

import click

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from deploy.local.demo.demo import machine_facts
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, staged
from deploy.local.workload.file_workload import FileCall
from deploy.local.workload.trial import Failover, kill_active, settle
from deploy.local.workload.workload import ClientCall
from tests.interop.hadoop_jars import JarsMissing
from tests.interop.mixed.programs import run_hadoops_datanodes
from tests.local_services import wait_until_whole

CLIENTS = 8
DATANODES = 4
"""One more than the replication, so that one may be away."""

KEYS = {
    "dfs.namenode.checkpoint.txns": "5000",
    "dfs.namenode.checkpoint.check.period": "10s",
}
"""Images are saved and edits purged between the kills, as in a cluster that lives long."""

DATANODE_EACH = 3
CALLS_BETWEEN = 16
CALL_SECONDS = 150.0

_SHOWN = ("kills", "datanode_kills", "file_calls", "bytes_compared", "wrong", "client_errors",
          "failover_seconds_median", "failover_seconds_max",
          "file_call_longest_seconds")  # fmt: skip


@click.command("files")
@click.option("--count", default=10, show_default=True, type=click.IntRange(min=1), help="Kills.")
@click.option("--minutes", default=math.inf, help="No kill begins later.")
@click.option("--clients", default=CLIENTS, show_default=True, type=click.IntRange(1, 64))
@click.option(
    "--java-datanodes",
    default=0,
    show_default=True,
    type=click.IntRange(0, DATANODES),
    help="So many of the four are Hadoop's.",
)
@click.option("--first-seed", default=0, show_default=True, help="Of what the clients draw.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--seeds", type=int, expose_value=False, help="Accepted by all soaks; not used here.")
@click.option("--jobs", type=int, expose_value=False, help="The same.")
def main(
    *, count: int, minutes: float, clients: int, java_datanodes: int, first_seed: int,
    as_object: bool, directory: Path | None,
) -> None:  # fmt: skip
    """Kill the active NameNode --count times under clients of files.

    Exit code 0 only if every byte that was acknowledged is read again, no wrong byte was ever
    read, and no client saw an error.
    """
    screen = Screen.on_stderr_if(as_object)
    place = directory or fresh_directory("soak-files")
    until = time.monotonic() + minutes * 60
    try:
        prepare = partial(run_hadoops_datanodes, count=java_datanodes) if java_datanodes else None
        with (
            orderly_end(),
            staged(place, screen, KEYS, datanodes=DATANODES, prepare=prepare) as stage,
        ):
            stage.files.writers, stage.files.seed = clients, first_seed
            facts = play(stage, count, until)
    except (LocalClusterError, JarsMissing) as error:
        raise click.ClickException(str(error)) from error
    well = bool(facts["well"])
    rows = [(name, str(facts[name])) for name in _SHOWN]
    screen.summary("every byte is there" if well else "NOT WELL", rows, well=well)
    if as_object:
        click.echo(json.dumps(facts))
    raise SystemExit(0 if well else 1)


def play(stage: Stage, count: int, until: float) -> dict[str, object]:
    """Play all rounds, end everything at once, and judge."""
    workload, files, screen = stage.workload, stage.files, stage.screen
    draw = random.Random(files.seed)
    workload.start()
    files.start()
    files.wait_for_more(CALLS_BETWEEN, deadline_seconds=CALL_SECONDS)
    began, kills, datanodes = time.monotonic(), list[Failover](), 0
    while len(kills) < count and time.monotonic() < until:
        screen.title(f"kill {len(kills) + 1} of {count}")
        if len(kills) % DATANODE_EACH == DATANODE_EACH - 1:
            _kill_datanode(stage, draw.choice(stage.cluster.datanodes))
            datanodes += 1
        kills.append(kill_active(stage.cluster, workload))
        screen.failover(kills[-1])
        files.wait_for_more(CALLS_BETWEEN, deadline_seconds=CALL_SECONDS)
        stage.cluster.heal()
        settle(stage.cluster, kills[-1].old)
        if files.wrong:
            break  # the logs of this very round say why
    workload.stop()
    files.stop()
    longest = files.longest_call_seconds(began)
    good = files.check_all()
    wait_until_whole(files)
    if not files.wrong:
        screen.title("kill -9 of everything, and a new start")
        _kill_all(stage)
        good = files.check_all()
        wait_until_whole(files)
    return _facts(stage, kills, datanodes, good, longest)


def _kill_datanode(stage: Stage, name: str) -> None:
    stage.screen.say(f"kill -9 {name}")
    stage.cluster.kill(name)
    stage.files.wait_for_more(1, deadline_seconds=CALL_SECONDS)


def _kill_all(stage: Stage) -> None:
    for name in stage.cluster.parts:
        stage.cluster.kill(name)
    stage.cluster.heal()
    stage.screen.say("all of it is up again, and out of safe mode")


def _facts(
    stage: Stage, kills: list[Failover], datanodes: int, good: int, longest: float
) -> dict[str, object]:
    files = stage.files
    errors: list[FileCall | ClientCall] = [*files.errors(), *stage.workload.errors()]
    times = [each.failover_seconds for each in kills] or [0.0]
    return {
        "kills": len(kills),
        "datanode_kills": datanodes,
        "file_calls": files.acknowledged(),
        "name_calls": stage.workload.acknowledged(),
        "bytes_compared": good,
        "wrong": len(files.wrong),
        "client_errors": len(errors),
        "failover_seconds_median": round(statistics.median(times), 4),
        "failover_seconds_max": round(max(times), 4),
        "file_call_longest_seconds": round(longest, 3),
        "wrong_files": files.wrong,
        "errors": [f"{each.kind} {each.path}: {each.error}" for each in errors],
        "well": not files.wrong and not errors and good > 0,
        "total_seconds": round(time.monotonic() - stage.screen.began, 3),
        "directory": str(stage.cluster.layout.directory),
        "machine": machine_facts(stage),
    }
