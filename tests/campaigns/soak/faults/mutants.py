"""`./run soak faults --mutants`: every planted bug is found by faults that are drawn for it."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from deploy.local.demo.screen import Screen
from tests import ROOT
from tests.campaigns.soak.faults.planted import BUGS

HUNT_SECONDS: Final = 1200.0


@dataclass(frozen=True, slots=True)
class Hunt:
    """Faults that are known to find a bug: what ``Draw`` draws from."""

    seed: int
    count: int
    longest: float
    only: tuple[str, ...]
    files: bool = False

    def options(self) -> list[str]:
        kinds = [word for kind in self.only for word in ("--only", kind)]
        numbers = ("--seed", self.seed, "--count", self.count, "--longest", self.longest)
        return [*map(str, numbers), *kinds, *(["--files"] if self.files else [])]


HUNTS: Final[Mapping[str, Hunt]] = {
    "a namenode answers before the quorum": Hunt(6, 4, 4, ("ambush",)),
    "a namenode counts one write as a quorum": Hunt(9, 2, 4, ("ambush",)),
    "a namenode reads without a lease": Hunt(4, 2, 5, ("revenant",)),
    "a zkfc fences nobody, and a namenode reads without a lease": Hunt(14, 8, 5, ("revenant",)),
    "a namenode forgets what it answered": Hunt(11, 14, 4, ("unheard",)),
    "a journalnode accepts a stale epoch": Hunt(7, 2, 5, ("revenant",)),
    "a journalnode forgets its promise": Hunt(30, 1, 4, ("kill",)),
    "a journalnode forgets its promise, and does not notice": Hunt(30, 1, 4, ("kill",)),
    "a datanode forgets what a chunk began with": Hunt(1, 4, 3, ("switchover",), files=True),
}


def hunt_all(directory: Path, screen: Screen, only: str | None, *, as_object: bool) -> int:
    """Play each bug's hunt, or that of one bug; 0 only if none has survived."""
    began = time.monotonic()
    names = [name for name in BUGS if only in (None, name)]
    screen.say(f"{len(names)} planted bugs; logs stay in {directory}")
    rows = []
    for number, name in enumerate(names, 1):
        row = _hunted(name, directory / str(number))
        rows.append(row)
        said = str(row["finding"] or "SURVIVED").splitlines()[0]
        screen.say(f"{number} of {len(names)}: {name}, {row['faults']} faults: {said}")
    survived = [row["bug"] for row in rows if not row["finding"]]
    seconds = round(time.monotonic() - began, 1)
    shown = [("planted", str(len(rows))), ("survived", ", ".join(survived) or "none")]
    screen.summary("every planted bug was found" if not survived else "NOT ALL WERE FOUND",
                   shown, well=not survived)  # fmt: skip
    if as_object:
        facts = {"planted": len(rows), "survived": survived, "seconds": seconds, "bugs": rows}
        click.echo(json.dumps(facts))
    return 1 if survived else 0


def _hunted(name: str, directory: Path) -> dict[str, Any]:
    """Return what was found in a run of its own; without a judgement nothing."""
    hunt = HUNTS[name]
    command = [sys.executable, "-m", "tests.campaigns.run", "soak", "faults"]
    places = ("--plant", name, "--json", "--directory", str(directory))
    done = subprocess.run(
        [*command, *hunt.options(), *places],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=HUNT_SECONDS,
    )  # fmt: skip
    found: dict[str, Any] = {}
    if done.stdout.startswith("{"):
        found = json.loads(done.stdout.splitlines()[-1])
    findings = found.get("findings", [])
    return {
        "bug": name,
        "options": " ".join(hunt.options()),
        "faults": found.get("faults", 0),
        "seconds": found.get("total_seconds"),
        "finding": findings[0] if findings else "",
        "trouble": "" if found else done.stderr[-2000:],
    }
