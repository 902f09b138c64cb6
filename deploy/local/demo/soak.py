"""`./run soak kill`: one kill of the active after another under a writing Java client."""

import json
import statistics
import time
from pathlib import Path

import click

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from deploy.local.demo.demo import machine_facts
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, staged
from deploy.local.workload.trial import Failover, kill_active, settle, the_active

WARM_UP_WRITES = 100
WRITE_SECONDS = 120.0


@click.group()
def soak() -> None:
    """Long campaigns against a local cluster of real processes."""


@soak.command()
@click.option("--count", default=10, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--seeds", type=int, expose_value=False, help="Accepted by all soaks; not used here.")
@click.option("--first-seed", type=int, expose_value=False, help="The same.")
@click.option("--jobs", type=int, expose_value=False, help="The same.")
def kill(*, count: int, as_object: bool, directory: Path | None) -> None:
    """Kill the active again and again; each time nothing is lost and exactly one is active.

    Exit code 0 only if that held every time and the client saw no error.
    """
    screen = Screen.on_stderr_if(as_object)
    try:
        with orderly_end(), staged(directory or fresh_directory("soak-kill"), screen) as stage:
            facts = kill_repeatedly(stage, count)
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error
    rows = [(name, str(facts[name])) for name in ("kills", *_COUNTS, "failover_seconds_median",
            "failover_seconds_max", "client_longest_call_seconds_max")]  # fmt: skip
    well = bool(facts["well"])
    screen.summary("nothing lost" if well else "NOT WELL", rows, well=well)
    if as_object:
        click.echo(json.dumps(facts))
    raise SystemExit(0 if well else 1)


_COUNTS = ("acknowledged", "missing", "duplicated", "client_errors", "gaps", "diverging")


def kill_repeatedly(stage: Stage, count: int) -> dict[str, object]:
    """Play it and return the findings as one object; times are seconds."""
    cluster, workload, screen = stage.cluster, stage.workload, stage.screen
    workload.start()
    workload.wait_for_acknowledged(WARM_UP_WRITES, deadline_seconds=WRITE_SECONDS)
    kills: list[Failover] = []
    lost: list[str] = []
    for number in range(1, count + 1):
        screen.title(f"kill {number} of {count}")
        failover = kill_active(cluster, workload)  # raises unless exactly one is active after it
        kills.append(failover)
        screen.failover(failover)
        lost += stage.missing_now()
        cluster.start(failover.old)
        settle(cluster, failover.old)
    workload.stop()
    active, epoch = the_active(cluster)
    verdict = stage.verdict()
    errors = workload.errors()
    missing = dict.fromkeys((*lost, *verdict.missing))
    times = [each.failover_seconds for each in kills]
    return {
        "kills": len(kills),
        "acknowledged": verdict.acknowledged,
        "missing": len(missing),
        "duplicated": len(verdict.duplicated),
        "client_errors": len(errors),
        "gaps": verdict.gaps,
        "diverging": verdict.diverging,
        "active": active,
        "epoch": epoch,
        "failover_seconds": [round(each, 4) for each in times],
        "failover_seconds_median": round(statistics.median(times), 4),
        "failover_seconds_max": round(max(times), 4),
        "client_longest_call_seconds": [
            round(each.client_longest_call_seconds, 4) for each in kills
        ],
        "client_longest_call_seconds_max": round(
            max(each.client_longest_call_seconds for each in kills), 4
        ),
        "missing_writes": list(missing),
        "duplicated_writes": list(verdict.duplicated),
        "errors": [f"{each.kind} {each.path}: {each.error}" for each in errors],
        "well": verdict.clean and not missing and not errors,
        "total_seconds": round(time.monotonic() - screen.began, 3),
        "directory": str(cluster.layout.directory),
        "machine": machine_facts(stage),
    }


if __name__ == "__main__":
    soak()
