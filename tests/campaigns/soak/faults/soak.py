"""`./run soak faults`: a cluster of real processes on hosts of their own, struck from a seed."""

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from deploy.local.demo.screen import Screen
from tests.campaigns.bench.report import machine
from tests.campaigns.soak.faults import draw as faults_draw
from tests.campaigns.soak.faults import network
from tests.campaigns.soak.faults.campaign import play
from tests.campaigns.soak.faults.disks import Disks
from tests.campaigns.soak.faults.hosts import DATANODES
from tests.campaigns.soak.faults.mutants import hunt_all
from tests.campaigns.soak.faults.nnha import Nnha
from tests.campaigns.soak.faults.planted import BUGS, entries
from tests.campaigns.soak.faults.runs import remove_leftovers
from tests.campaigns.soak.faults.system import System
from tests.campaigns.soak.faults.verdict import verdict

CANNOT: Final = 77
"""The exit code where this machine cannot play faults: not root, or no namespaces."""

_SHOWN: Final = ("faults", "faults_per_hour", "answered", "unanswered", "paths",
                 "paths_without_an_order", "epochs", "epochs_with_two_actives", "journal_gaps",
                 "journal_forks", "files", "unavailable_seconds", "settle_seconds",
                 "skipped")  # fmt: skip


@click.command("faults")
@click.option("--count", default=60, show_default=True, type=click.IntRange(min=1), help="Faults.")
@click.option("--seed", type=int, help="Of an earlier run, to draw the same faults.")
@click.option("--system", "whose", type=click.Choice(("nnha", "hadoop")), default="nnha")
@click.option("--secure", is_flag=True, help="Strict, with certificates and closed znodes.")
@click.option("--files", is_flag=True, help="DataNodes too, and Hadoop's client writes files.")
@click.option(
    "--longest", default=faults_draw.LONGEST_SECONDS, show_default=True, help="Seconds of a fault."
)
@click.option(
    "--only", multiple=True, type=click.Choice(faults_draw.ALL_KINDS), help="Kinds; else all."
)
@click.option("--plant", type=click.Choice(tuple(BUGS)), help="A bug that must be found.")
@click.option("--mutants", is_flag=True, help="Hunt every planted bug, or that of --plant.")
@click.option("--schedule", is_flag=True, help="Print the seed's faults, and play nothing.")
@click.option("--tidy", is_flag=True, help="Remove what killed runs left, and play nothing.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
def main(
    *,
    count: int,
    seed: int | None,
    whose: str,
    secure: bool,
    files: bool,
    longest: float,
    only: tuple[str, ...],
    plant: str | None,
    mutants: bool,
    schedule: bool,
    tidy: bool,
    as_object: bool,
    directory: Path | None,
) -> None:
    """Strike a cluster --count times under clients whose every answer is judged.

    Only root can; exit code 77 says that this machine cannot.  0 only if no acknowledged write is
    lost, no answer is wrong, each epoch has one active, and service is back within the bound.
    With --mutants the daemons have one bug after another, and each must be found by faults that
    are known to show it.
    """
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    draw = faults_draw.Draw(
        seed, count, longest, only or (faults_draw.ALL_KINDS if files else faults_draw.KINDS)
    )
    if schedule:
        click.echo("\n".join(draw.lines()))
        return
    if why := network.lacking():
        click.echo(f"cannot play faults: {why}", err=True)
        raise SystemExit(CANNOT)
    if tidy:
        click.echo(f"removed: {', '.join(remove_leftovers()) or 'nothing'}")
        return
    if whose != "nnha" and (secure or plant is not None):
        raise click.UsageError("--secure and --plant are for nnha")
    if files and whose != "nnha":
        raise click.UsageError("--files is for nnha")
    if faults_draw.DATANODE in only and not files:
        raise click.UsageError("--only datanode needs --files")
    screen = Screen.on_stderr_if(as_object)
    if mutants:
        place = directory or fresh_directory("soak-faults-mutants")
        raise SystemExit(hunt_all(place, screen, plant, as_object=as_object))
    subject = Subject(draw, whose, secure=secure, files=files, plant=plant)
    raise SystemExit(_soak(subject, screen, directory, as_object))


@dataclass(frozen=True, slots=True)
class Subject:
    """What is struck, and with what."""

    draw: faults_draw.Draw
    whose: str
    secure: bool
    files: bool
    plant: str | None

    def __str__(self) -> str:
        how = ", with certificates" if self.secure else ""
        what = f"; planted: {self.plant}" if self.plant is not None else ""
        return f"seed {self.draw.seed}, {self.draw.count} faults on {self.whose}{how}{what}"

    def system(self, disks: Disks) -> System:
        """Return the daemons; raise LocalClusterError where they cannot be had."""
        logs_in = self.draw.logs_in
        if self.whose == "nnha":
            planted = entries(self.plant) if self.plant else {}
            datanodes = DATANODES if self.files else ()
            return Nnha(disks, logs_in, planted, datanodes, self.secure)
        from tests.campaigns.soak.faults.hadoop import hadoop  # loads what only it needs

        return hadoop(disks, logs_in=logs_in)


def _soak(subject: Subject, screen: Screen, directory: Path | None, as_object: bool) -> int:
    draw = subject.draw
    place = directory or fresh_directory("soak-faults")
    place.mkdir(parents=True, exist_ok=True)
    screen.say(str(subject))
    began = time.monotonic()
    try:
        with orderly_end():
            played = play(place, subject.system, draw, screen.say)
    except LocalClusterError as error:
        raise click.ClickException(f"--seed {draw.seed}: {error}") from error
    judged = verdict(played)
    facts = {
        "seed": draw.seed,
        "system": subject.whose,
        "secure": subject.secure,
        "planted": subject.plant,
        "fencing": "login, then epochs" if draw.logs_in else "epochs",
        **judged.facts,
        "findings": list(judged.findings),
        "well": not judged.findings,
        "total_seconds": round(time.monotonic() - began, 1),
        "directory": str(place),
        "machine": machine(),
    }
    for finding in judged.findings:
        screen.console.print(f"  {finding}", markup=False)
    rows = [(name, str(facts[name])) for name in _SHOWN]
    title = "nothing lost, no wrong answer" if facts["well"] else f"NOT WELL, --seed {draw.seed}"
    screen.summary(title, rows, well=bool(facts["well"]))
    if as_object:
        click.echo(json.dumps(facts))
    return 0 if facts["well"] else 1


if __name__ == "__main__":
    main()
