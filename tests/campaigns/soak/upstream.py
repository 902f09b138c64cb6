"""`./run soak upstream`: Hadoop's own tests, whole, of which CI plays a part.

They are the long tests of three files: its tests of journal, standby and observer on our
JournalNodes, and its contracts of a file system and its lists of command lines on a whole cluster.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import click

from deploy.local.cluster.places import fresh_directory
from deploy.local.demo.screen import Screen
from tests import ROOT
from tests.campaigns.bench.report import machine

SUITES: Final = {
    "journal": "tests/interop/test_upstream_journal.py",
    "contracts": "tests/interop/test_upstream_contracts.py",
    "commands": "tests/interop/test_upstream_lists.py",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of the tests of a suite: the names of those that passed, and reasons."""

    passed: tuple[str, ...]
    failed: dict[str, str]
    skipped: dict[str, str]
    """Where the machine lacks what they need."""

    def ends(self) -> dict[str, Sized]:
        return {"passed": self.passed, "failed": self.failed, "skipped": self.skipped}

    @property
    def well(self) -> bool:
        return bool(self.passed) and not self.failed and not self.skipped


def ended(report: str) -> Ended:
    """Read a report as pytest writes it for JUnit."""
    passed, failed, skipped = list[str](), dict[str, str](), dict[str, str]()
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = case.get("name", "")
        for kind, found in (("failure", failed), ("error", failed), ("skipped", skipped)):
            if (why := case.find(kind)) is not None:
                found[name] = why.get("message", kind)[:500]
        if name not in failed | skipped:
            passed.append(name)
    return Ended(tuple(passed), failed, skipped)


@click.command("upstream")
@click.option("--only", multiple=True, type=click.Choice(list(SUITES)), help="Not all suites.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--seeds", type=int, expose_value=False, help="Accepted by all soaks; not used here.")
@click.option("--first-seed", type=int, expose_value=False, help="The same.")
@click.option("--jobs", type=int, expose_value=False, help="The same.")
def main(*, only: tuple[str, ...], as_object: bool, directory: Path | None) -> None:
    """Run Hadoop's own tests on nnha, whole.

    With NNHA_INTEROP=1 Maven fetches their jars, once.  Exit code 0 only if all ran and none
    failed but those that are known to fail on Hadoop, or that change objects in the server's JVM.
    """
    screen = Screen.on_stderr_if(as_object)
    place = directory or fresh_directory("soak-upstream")
    place.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    suites = {name: _run(name, place, screen) for name in only or SUITES}
    well = all(each.well for each in suites.values())
    for name, each in suites.items():
        for what, reasons in (("failed", each.failed), ("cannot run here", each.skipped)):
            for test, why in reasons.items():
                screen.say(f"{name}: {test} {what}: {why}")
    screen.summary(
        "all passed" if well else "NOT WELL",
        [
            (
                name,
                f"{len(one.passed)} passed, {len(one.failed)} failed, {len(one.skipped)} skipped",
            )
            for name, one in suites.items()
        ],
        well=well,
    )
    if as_object:
        facts: dict[str, object] = {
            name: {"passed": len(each.passed), "failed": each.failed, "skipped": each.skipped}
            for name, each in suites.items()
        }
        facts |= {"seconds": round(time.monotonic() - began, 1), "machine": machine()}
        click.echo(json.dumps({"well": well, "directory": str(place), **facts}))
    raise SystemExit(0 if well else 1)


def _run(name: str, place: Path, screen: Screen) -> Ended:
    """Run a suite with its long tests; a run without a report is a failure."""
    screen.title(name)
    report, log = place / f"{name}.xml", place / f"{name}.log"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SUITES[name]]
    with log.open("wb") as sink:
        subprocess.run(
            [*command, "-m", "long or not long", f"--junitxml={report.resolve()}"],
            cwd=ROOT, stdout=sink, stderr=sink, check=False,
        )  # fmt: skip
    if not report.is_file():
        return Ended((), {"pytest": f"it wrote no report; see {log}"}, {})
    return ended(report.read_text())
