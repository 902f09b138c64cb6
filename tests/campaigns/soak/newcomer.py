"""``./run soak newcomer``: the demo, and the commands of the documents, on a machine that is busy.

As many processes as are asked for do nothing but use the processors.  Every daemon runs, and a
client writes; so whatever a command says of a daemon that is down, of writes that are impossible or
of something to kill is false.  "Unknown" is true.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from deploy.local.cluster.cluster import Cluster
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import staged
from tests.campaigns.soak import statements

COMMAND_SECONDS: Final = 240.0
"""No command may take longer, however busy the machine is."""
DEMO_SECONDS: Final = 1800.0
PATIENCE_SECONDS: Final = 20.0
REASON: Final = ("--reason", "a busy machine")
ASKING: Final[Sequence[Sequence[str]]] = (
    ("status",),
    ("status", "--check"),
    ("status", "-o", "wide"),
    ("status", "-o", "json"),
    ("explain",),
    ("explain", "nn1"),
    ("history",),
    ("doctor",),
    ("journal", "status"),
    ("journal", "segments"),
    ("journal", "verify"),
    ("haadmin", "-getAllServiceState"),
    ("config", "validate"),
    ("config", "show"),
    ("safemode", "get"),
    ("switchover", "--dry-run"),
)
CHANGING: Final[Sequence[Sequence[str]]] = (
    ("pause", "--for", "10m", *REASON),
    ("resume",),
    ("switchover", "--yes", *REASON),
    ("drain", "STANDBY", "--for", "10m", *REASON),
    ("drain", "STANDBY", "--end"),
    ("switchover", "--yes", *REASON),
)
NOT_PLAYED: Final = {
    "backup": "it says nothing of daemons' states",
    "datanodes": "the cluster has none yet",
    "fs": "the cluster has no DataNodes yet",
    "fsck": "the cluster has no files yet",
    "probe": "asks one daemon for one page; its tests ask all of them",
    "zkfc": "a daemon; the cluster runs it",
    "journalnode": "a daemon; the cluster runs it",
    "namenode": "a daemon; the cluster runs it",
    "checkpoint": "it asks no daemon about its state",
    "cluster": "the campaign's own cluster is the same",
    "datanode": "a daemon; the cluster has none yet",
    "demo": "played first",
    "dfs": "the Java client; it writes all the time",
    "failover": "only where nobody is active",
    "fence": "it shows how to fence; that is advice to kill",
    "namespace": "it reads files",
    "oev": "it reads files",
    "oiv": "it reads files",
    "web": "a daemon; it shows what status says",
    "security": "it makes certificates and asks no daemon",
}
"""Commands that the documents name, and that are not played, with the reason."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one command said that is not true, or an exit code that is not."""

    command: str
    exit_code: int
    wrong: Sequence[str]


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Run ``loops`` processes that only use the processors."""
    program = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(program) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def demo_of(directory: Path) -> list[Finding]:
    """Run the demo: whatever the load, nothing is lost and no client sees an error."""
    arguments = ("demo", "--json", "--directory", str(directory))
    said = _run([sys.executable, "-m", "ha.cli.main", *arguments], arguments, DEMO_SECONDS)
    return [] if said.exit_code == 0 else [Finding("demo", said.exit_code, (said.output[-2000:],))]


def play(cluster: Cluster, screen: Screen) -> tuple[int, list[Finding]]:
    """Play every command against a well cluster; return how many, and what was wrong."""
    findings = []
    commands = (*ASKING, *CHANGING)
    for template in commands:
        before = _roles(cluster)
        standby = next((name for name in NAMENODES if before.get(name) == "standby"), "nn2")
        arguments = [standby if word == "STANDBY" else word for word in template]
        words = arguments[:2] if arguments[0] in ("journal", "config") else arguments[:1]
        rest = arguments[len(words) :]
        command = [sys.executable, "-m", "ha.cli.main", *words]
        said = _run([*command, "--conf-dir", str(cluster.conf_dir), *rest], arguments)
        after = _roles(cluster)
        actives = {name for name, role in before.items() if role == "active" == after.get(name)}
        truth = statements.Truth(actives.pop() if len(actives) == 1 else None, NAMENODES)
        wrong = statements.false_statements(said, truth) + _wrong_exit_code(
            said, template in CHANGING
        )
        screen.say(f"{' '.join(arguments)}: exit code {said.exit_code}, {len(wrong)} false")
        if wrong:
            findings.append(Finding(" ".join(arguments), said.exit_code, wrong))
    return len(commands), findings


def _wrong_exit_code(said: statements.Said, changing: bool) -> list[str]:
    """Accept, as nothing is wrong with the cluster, that it was done or is not known."""
    allowed = {
        0,
        statements.NO_ANSWER,
        statements.OUTCOME_UNKNOWN if changing else statements.PROBLEMS,
    }
    code = said.exit_code
    return [] if code in allowed else [f"exit code {code}: {said.output.strip()[-600:]}"]


def _roles(cluster: Cluster) -> dict[str, str]:
    found = {}
    for name in NAMENODES:
        status = cluster.namenode_status(name, deadline_seconds=PATIENCE_SECONDS)
        if status is not None:
            found[name] = status.state
    return found


def _run(
    command: Sequence[str], arguments: Sequence[str], seconds: float = COMMAND_SECONDS
) -> statements.Said:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return statements.Said(arguments, -1, f"did not end within {seconds:g} s")
    return statements.Said(arguments, done.returncode, done.stdout + done.stderr)


@click.command()
@click.option("--loops", default=30, show_default=True, type=click.IntRange(min=0))
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--demo/--no-demo", default=True, show_default=True, help="Play the demo first.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
def main(loops: int, rounds: int, demo: bool, as_object: bool, directory: Path | None) -> None:
    """Run what a newcomer runs while LOOPS processes keep the machine busy; exit code 0 only if
    no output says anything that is false.
    """
    screen = Screen.on_stderr_if(as_object)
    place = directory or fresh_directory("soak-newcomer")
    played, findings = 0, list[Finding]()
    with orderly_end(), busy(loops):
        if demo:
            findings += demo_of(place / "demo")
            screen.say(f"the demo: {'NOT WELL' if findings else 'well'}")
        with staged(place / "cluster", screen) as stage:
            stage.workload.start()
            for _ in range(rounds):
                count, found = play(stage.cluster, screen)
                played, findings = played + count, findings + found
            stage.workload.stop()
            errors = [f"{each.kind} {each.path}: {each.error}" for each in stage.workload.errors()]
    if errors:
        findings.append(Finding("the client", 0, errors[:20]))
    for finding in findings:
        for wrong in finding.wrong:
            click.echo(f"{finding.command}: {wrong}", err=True)
    if as_object:
        told = [
            {"command": f.command, "exit_code": f.exit_code, "wrong": f.wrong} for f in findings
        ]
        facts = {"loops": loops, "commands": played, "findings": told, "well": not findings}
        click.echo(json.dumps(facts))
    raise SystemExit(1 if findings else 0)
