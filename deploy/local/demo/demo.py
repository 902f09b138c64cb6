"""`nnha demo`: a cluster, a real Hadoop client, kills, failovers, and the proof of them."""

import dataclasses
import json
import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, request_failover, staged
from deploy.local.workload.audit import AuditResult
from deploy.local.workload.trial import Failover, hand_over, kill_active, settle, the_active
from ha.record import dataclass

DATANODES = 3
GRACEFUL_FAILOVERS = 5
FILE_CALLS = 10
ACKNOWLEDGED_AT_LEAST = 2_000
WARM_UP_WRITES = 300
WRITE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the demo found out."""

    verdict: AuditResult
    client_errors: tuple[str, ...]
    kill: Failover
    graceful: tuple[Failover, ...]
    active: str
    epoch: int
    seconds: float
    file_calls: int
    file_bytes: int
    wrong_files: tuple[str, ...]

    @property
    def well(self) -> bool:
        """Nothing acknowledged is missing, twice or wrong, and the client saw no error."""
        return self.verdict.clean and not self.client_errors and not self.wrong_files


def play(stage: Stage) -> Findings:
    """Kill the active under the client's writes, a DataNode, hand over and back; judge it all."""
    began = time.monotonic()
    cluster, workload, files, screen = stage.cluster, stage.workload, stage.files, stage.screen
    screen.title("1  The Java client writes names and files")
    workload.start()
    files.start()
    workload.wait_for_acknowledged(WARM_UP_WRITES, deadline_seconds=WRITE_SECONDS)
    files.wait_for_more(FILE_CALLS, deadline_seconds=WRITE_SECONDS)
    screen.say(
        f"{workload.acknowledged()} mkdirs, creates and renames acknowledged, and "
        f"{files.acknowledged()} files written, appended to or read"
    )
    kill, lost = _kill_namenode(stage)
    _kill_datanode(stage)
    graceful = _hand_over(stage)
    workload.wait_for_acknowledged(ACKNOWLEDGED_AT_LEAST, deadline_seconds=WRITE_SECONDS)
    workload.stop()
    files.stop()

    screen.title("5  Is every acknowledged write there, once, and every byte?")
    active, epoch = the_active(cluster)
    good = files.check_all()
    screen.say(f"{good:,} bytes of files were read again and are what was written")
    verdict = stage.verdict()
    screen.say(
        f"{verdict.acknowledged} acknowledged writes held against {active}'s listing and against "
        f"{verdict.transactions} edits on the JournalNodes"
    )
    return Findings(
        verdict=dataclasses.replace(
            verdict, missing=tuple(dict.fromkeys((*lost, *verdict.missing)))
        ),
        client_errors=(
            *(f"{call.kind} {call.path}: {call.error}" for call in workload.errors()),
            *(f"{call.kind} {call.path}: {call.error}" for call in files.errors()),
        ),
        kill=kill,
        graceful=graceful,
        active=active,
        epoch=epoch,
        seconds=time.monotonic() - began,
        file_calls=files.acknowledged(),
        file_bytes=good,
        wrong_files=tuple(files.wrong),
    )


def _kill_namenode(stage: Stage) -> tuple[Failover, list[str]]:
    """Return the failover, and the acknowledged writes that are not there after it."""
    cluster, workload, screen = stage.cluster, stage.workload, stage.screen
    active, _ = the_active(cluster)
    screen.title(f"2  kill -9 {active}, the active NameNode")
    kill = kill_active(cluster, workload)
    screen.failover(kill)
    lost = stage.missing_now()
    screen.say(
        f"all {workload.acknowledged()} acknowledged writes are in {kill.new}'s listing"
        if not lost
        else f"[red]{len(lost)} acknowledged writes are not in {kill.new}'s listing[/]"
    )
    cluster.start(kill.old)
    settle(cluster, kill.old)
    screen.say(f"{kill.old} was started again and is a ready standby")
    return kill, lost


def _kill_datanode(stage: Stage) -> None:
    cluster, files = stage.cluster, stage.files
    victim = cluster.datanodes[0]
    stage.screen.title(f"3  kill -9 {victim}, a DataNode in the midst of writes")
    began = time.monotonic()
    cluster.kill(victim)
    files.wait_for_more(FILE_CALLS, deadline_seconds=WRITE_SECONDS)
    stage.screen.say(
        f"{FILE_CALLS} more calls on files got through, the longest in "
        f"{files.longest_call_seconds(began):.3f} s"
    )
    cluster.start(victim)


def _hand_over(stage: Stage) -> tuple[Failover, ...]:
    cluster, workload, screen = stage.cluster, stage.workload, stage.screen
    screen.title(f"4  haadmin -failover, {GRACEFUL_FAILOVERS} times back and forth")
    graceful = []
    for _ in range(GRACEFUL_FAILOVERS):
        failover = hand_over(
            cluster, workload, lambda old, new: request_failover(cluster, old, new)
        )
        screen.failover(failover)
        settle(cluster, failover.old)
        graceful.append(failover)
    return tuple(graceful)


def as_json(findings: Findings, stage: Stage) -> dict[str, object]:
    """Return the findings as one object; times are seconds."""
    verdict = findings.verdict
    return {
        "acknowledged": verdict.acknowledged,
        "missing": len(verdict.missing),
        "duplicated": len(verdict.duplicated),
        "client_errors": len(findings.client_errors),
        "files": {
            "calls": findings.file_calls,
            "bytes_compared": findings.file_bytes,
            "wrong": list(findings.wrong_files),
        },
        "kill": _failover_json(findings.kill),
        "graceful": _median_json(findings.graceful),
        "epoch_before": findings.kill.epoch_before,
        "epoch_after": findings.epoch,
        "active": findings.active,
        "well": findings.well,
        "journal": {
            "transactions": verdict.transactions,
            "gaps": verdict.gaps,
            "diverging": verdict.diverging,
        },
        "missing_writes": list(verdict.missing),
        "duplicated_writes": list(verdict.duplicated),
        "errors": list(findings.client_errors),
        "measured": {
            "failover_seconds": "kill: from just before SIGKILL, graceful: from just before the "
            "call of haadmin's function, to the new active's log line that it is active",
            "observed_seconds": "the same, to the new active's status page saying so",
            "client_longest_call_seconds": "longest call of the Java client, default settings, "
            "that ended after the fault or request",
            "graceful": "medians; all values in `all`",
        },
        "play_seconds": round(findings.seconds, 3),
        "total_seconds": round(time.monotonic() - stage.screen.began, 3),
        "directory": str(stage.cluster.layout.directory),
        "machine": machine_facts(stage),
    }


def machine_facts(stage: Stage) -> Mapping[str, object]:
    """Return what the figures were measured on."""
    return {
        "system": platform.platform(),
        "cpu_count": os.cpu_count(),
        "python": platform.python_version(),
        "java": stage.client.java_version(),
        "java_source": stage.cluster.java.source,
    }


@click.command()
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the cluster here.  [default: a fresh directory under ./var]",
)
@click.option("--secure", is_flag=True, help="Make certificates: the daemons speak TLS.")
@click.option("--web", is_flag=True, help="Serve the cluster as a page, to watch the failover.")
@click.option("--keep", is_flag=True, help="Leave the cluster running until Ctrl-C.")
def demo(*, as_object: bool, directory: Path | None, secure: bool, web: bool, keep: bool) -> None:
    """Show a failover under the load of the real Hadoop client, and check that nothing was lost.

    Exit code 0 only if no acknowledged write is missing, none was applied twice, and the client
    saw no error.
    """
    screen = Screen.on_stderr_if(as_object)
    try:
        where = directory or fresh_directory("demo")
        playing = staged(where, screen, datanodes=DATANODES, secure=secure, web=web)
        with orderly_end(), playing as stage:
            findings = play(stage)
            facts = as_json(findings, stage)
            if keep:
                _keep(stage)
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error
    show_summary(screen, findings)
    if as_object:
        click.echo(json.dumps(facts))
    raise SystemExit(0 if findings.well else 1)


def show_summary(screen: Screen, findings: Findings) -> None:
    verdict, kill = findings.verdict, findings.kill
    calls = [each.client_longest_call_seconds for each in findings.graceful]
    switches = [each.failover_seconds for each in findings.graceful]
    wrong = (*verdict.missing, *verdict.duplicated, *findings.wrong_files)
    for problem in (*wrong, *findings.client_errors)[:20]:
        screen.say(f"[red]{problem}[/]")
    rows = [
        ("acknowledged writes", f"{verdict.acknowledged:,}"),
        ("calls on files", f"{findings.file_calls:,}; {findings.file_bytes:,} bytes compared, "
                           f"{len(findings.wrong_files)} files wrong"),
        ("missing", str(len(verdict.missing))),
        ("applied twice", str(len(verdict.duplicated))),
        ("client errors", str(len(findings.client_errors))),
        ("journal", f"{verdict.transactions:,} edits, {verdict.gaps} gaps, "
                    f"{verdict.diverging} differing between nodes"),
        ("kill -9", f"{kill.failover_seconds:.3f} s; client's longest call "
                    f"{kill.client_longest_call_seconds:.3f} s"),
        ("graceful", f"{statistics.median(switches):.3f} s (median of {_list(switches)}); client's "
                     f"longest call {statistics.median(calls):.3f} s (of {_list(calls)})"),
        ("active now", f"{findings.active}, epoch {findings.epoch}"),
    ]  # fmt: skip
    title = "nothing lost, nothing twice" if findings.well else "NOT WELL"
    screen.summary(title, rows, well=findings.well)


def _keep(stage: Stage) -> None:
    conf = stage.cluster.conf_dir
    stage.screen.say(f"the cluster stays up; try: nnha status --conf-dir {conf}")
    stage.screen.say("Ctrl-C stops it")
    try:
        while True:
            time.sleep(3600)
    except SystemExit:  # whatever asked for the end, the findings stand
        return


def _failover_json(failover: Failover) -> dict[str, object]:
    facts = dataclasses.asdict(failover)
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in facts.items()
    }


def _median_json(failovers: Sequence[Failover]) -> dict[str, object]:
    switches = [each.failover_seconds for each in failovers]
    calls = [each.client_longest_call_seconds for each in failovers]
    typical = sorted(failovers, key=lambda each: each.failover_seconds)[len(failovers) // 2]
    return {
        "failover_seconds": round(statistics.median(switches), 6),
        "phases": typical.phases,
        "client_longest_call_seconds": round(statistics.median(calls), 6),
        "all": [_failover_json(each) for each in failovers],
    }


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)
