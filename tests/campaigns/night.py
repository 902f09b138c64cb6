"""Every campaign in turns for some hours, on fresh seeds, and one report: ``./run night``."""

import json
import os
import random
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import click

from tests import ROOT
from tests.campaigns import ledger
from tests.campaigns.bench.report import machine

SEED: Final = "SEED"
AIMED_FROM: Final = 1_000_000_000
"""Seeds of aimed worlds begin here."""
SEEDS: Final = range(10_000_000, 200_000_000)
"""Few enough that a family's seed, counted from its first, never is one of the next family."""
TO_STOP_SECONDS: Final = 60.0
"""For a turn that was asked to stop to remove its clusters."""
LIMIT_SECONDS: Final = 5400.0
"""A turn that has not ended by then is stopped, and its outcome is unknown."""
TAIL_LINES: Final = 15
"""This number of last lines of a turn's log stands in the report, where the turn does not hold."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A command of ``./run``; the word SEED in it becomes a fresh seed."""

    words: tuple[str, ...]
    aimed: bool = False


class Verdict(StrEnum):
    """What became of a turn."""

    HOLDS = "holds"
    FAILED = "FAILED"
    UNKNOWN = "unknown"
    """It had to be stopped."""


@dataclass(frozen=True, slots=True)
class Played:
    """A turn that is over; ``figures`` is the JSON object that it printed last."""

    command: str
    verdict: Verdict
    seconds: float
    figures: Mapping[str, object]
    tail: tuple[str, ...]
    """The end of its log, where it does not hold."""
    tree: str | None
    """What was played (`ledger.tree`); None if it has no name, or another at the end."""


def _soak(line: str, *, aimed: bool = False) -> Turn:
    return Turn(("soak", *line.split()), aimed)


FIRST: Final = (Turn(("test",)), Turn(("test", "long")))
ROUND: Final = (
    _soak("journal --seeds 8000 --first-seed SEED"),
    _soak("journal --aimed --seeds 2000 --first-seed SEED", aimed=True),
    _soak("journal --long --seeds 2000 --first-seed SEED"),
    _soak("journal --late --seeds 2000 --first-seed SEED"),
    _soak("journal --rejoin --seeds 2000 --first-seed SEED"),
    _soak("failover --seeds 6000 --first-seed SEED"),
    _soak("failover --aimed --seeds 2000 --first-seed SEED", aimed=True),
    _soak("whole --seeds 1000 --first-seed SEED"),
    _soak("faults --count 60 --seed SEED"),
    _soak("faults --count 60 --seed SEED --secure"),
    _soak("faults --count 60 --seed SEED --files --secure"),
    _soak("blocks --seeds 2000 --first-seed SEED"),
    _soak("checkpoint --seeds 100 --first-seed SEED"),
    _soak("lane --count 1000 --seed SEED"),
    _soak("kill --count 20"),
    _soak("files --count 10 --first-seed SEED"),
    _soak("zkfc --seconds 60 --seed SEED"),
    _soak("fuzz --minutes 10 --seed SEED"),
    _soak("security --rounds 1"),
    _soak("prepare --count 20 --seed SEED"),
    _soak("journal --mutants"),
    _soak("failover --mutants"),
    _soak("faults --mutants"),
    _soak("java --count 5"),
)
"""Some two and a half hours on two cores."""
LIVES: Final = (
    _soak("journal --seeds 1800 --first-seed SEED"),
    _soak("failover --seeds 600 --first-seed SEED"),
    _soak("whole --seeds 200 --first-seed SEED"),
    _soak("blocks --seeds 400 --first-seed SEED"),
    _soak("journal --aimed --seeds 450 --first-seed SEED", aimed=True),
    _soak("journal --long --seeds 450 --first-seed SEED"),
    _soak("failover --aimed --seeds 200 --first-seed SEED", aimed=True),
    _soak("journal --late --seeds 450 --first-seed SEED"),
    _soak("journal --rejoin --seeds 450 --first-seed SEED"),
)
"""5,000 simulated worlds, no real process: six minutes on two cores that do nothing else."""
LEDGER: Final = ROOT / "docs" / "faults.md"
LOWEST_PRIORITY: Final = 19


@click.command()
@click.option("--hours", type=click.FloatRange(min=0.01), default=8.0, show_default=True)
@click.option("--lives", is_flag=True, help="Simulated worlds alone, at the lowest priority.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="For the report and the logs.  [default: var/night/DATE]",
)
def main(hours: float, lives: bool, as_json: bool, directory: Path | None) -> None:
    """Play the tests and then every campaign in turns, until the hours are over.

    No turn begins after them, and none of a family that has failed.  The report in DIRECTORY is
    written anew after each turn, with the figures of all; the simulated worlds of a turn are added
    to the table in docs/faults.md, unless the product differs from the last commit.  Exit code 0
    only if every turn holds.
    """
    if lives:
        os.nice(LOWEST_PRIORITY)
    began = datetime.now(UTC)
    place = directory or ROOT / "var" / "night" / f"{began:%Y-%m-%dT%H%M%S}"
    place.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + hours * 3600

    def told(so_far: Sequence[Played]) -> None:
        write_report(place, began, so_far)
        newest = so_far[-1]
        click.echo(f"{newest.verdict:8} {newest.command}", err=True)
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        played = ledger.lives_of(newest.command, newest.figures, newest.tree, day)
        if played is not None:
            ledger.note(LEDGER, played)

    first, every_round = ((), LIVES) if lives else (FIRST, ROUND)
    over = play_until(lambda: time.monotonic() >= until, first, every_round, place, told)
    passed = all(each.verdict is Verdict.HOLDS for each in over)
    click.echo(f"{len(over)} turns; {place / 'report.md'}", err=True)
    if as_json:
        click.echo(json.dumps({"task": "night", "passed": passed, **as_object(began, over)}))
    raise SystemExit(0 if passed else 1)


def play_until(
    hours_are_over: Callable[[], bool],
    first: Sequence[Turn],
    every_round: Sequence[Turn],
    directory: Path,
    told: Callable[[Sequence[Played]], None],
    *,
    limit_seconds: float = LIMIT_SECONDS,
    command: Sequence[str] = ("./run",),
) -> list[Played]:
    """Begin turns until the hours are over; the callback gets all so far after each.

    A turn that failed is not begun again; the others go on.
    """
    over: list[Played] = []
    failed: set[Turn] = set()
    waiting = list(first)
    while not hours_are_over():
        waiting = waiting or [turn for turn in every_round if turn not in failed]
        if not waiting:
            break
        turn = waiting.pop(0)
        words = [*command, *fresh(turn)]
        over.append(play(words, directory / f"{len(over) + 1:03}.log", limit_seconds))
        if over[-1].verdict is Verdict.FAILED:
            failed.add(turn)
        told(over)
    return over


def fresh(turn: Turn) -> list[str]:
    """Return its words, with a seed that no earlier night has had, as good as surely."""
    seed = random.SystemRandom().choice(SEEDS)
    drawn = str(seed + AIMED_FROM if turn.aimed else seed)
    return [drawn if word == SEED else word for word in (*turn.words, "--json")]


def play(words: Sequence[str], log: Path, limit_seconds: float) -> Played:
    began, tree = time.monotonic(), ledger.tree()
    with log.open("wb") as errors, subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            printed, _ = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            printed, verdict = b"", Verdict.UNKNOWN
            _end(process)
        except BaseException:
            _end(process)
            raise
        else:
            verdict = Verdict.FAILED if process.returncode else Verdict.HOLDS
    figures = last_object(printed.decode(errors="replace"))
    if verdict is Verdict.HOLDS and not figures:
        verdict = Verdict.FAILED  # it has not said what it did
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    tail = () if verdict is Verdict.HOLDS else tuple(lines)
    tree = tree if tree == ledger.tree() else None
    return Played(shlex.join(words), verdict, time.monotonic() - began, figures, tail, tree)


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(TO_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def last_object(printed: str) -> dict[str, object]:
    """Return the JSON object in the last line; empty where there is none."""
    try:
        found = json.loads((printed.strip().splitlines() or [""])[-1])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def as_object(began: datetime, over: Sequence[Played]) -> dict[str, object]:
    return {
        "began": began.isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": machine(),
        "turns": [
            {
                "command": each.command,
                "verdict": each.verdict.value,
                "seconds": round(each.seconds, 1),
                "tree": each.tree,
                "figures": each.figures,
                "tail": list(each.tail),
            }
            for each in over
        ],
    }


def write_report(directory: Path, began: datetime, over: Sequence[Played]) -> None:
    """Write Markdown for people and JSON for programs; each file is replaced as a whole."""
    facts = as_object(began, over)
    bad = sum(each.verdict is not Verdict.HOLDS for each in over)
    lines = [
        f"# {len(over)} turns from {facts['began']}, {bad} of them do not hold",
        "",
        f"Commit {facts['commit']}; {', '.join(f'{k} {v}' for k, v in machine().items())}.",
        "",
        "| turn | verdict | minutes | figures |",
        "|---|---|---|---|",
        *(
            f"| `{each.command}` | {each.verdict} | {each.seconds / 60:.1f} | {_short(each)} |"
            for each in over
        ),
    ]
    for each in over:
        if each.tail:
            lines += ["", f"## {each.verdict}: `{each.command}`", "", "```", *each.tail, "```"]
    for name, text in (("report.md", "\n".join(lines)), ("report.json", json.dumps(facts))):
        part = directory / f"{name}.part"
        part.write_text(text + "\n")
        part.replace(directory / name)


def _short(played: Played) -> str:
    numbers = [
        f"{name.replace('_', ' ')} {value:,}" if isinstance(value, int) else f"{name} {value:.4g}"
        for name, value in played.figures.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return ", ".join(numbers)


def _commit() -> str:
    words = ["git", "rev-parse", "--short=12", "HEAD"]
    told = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ, timeout=30
    )
    return told.stdout.strip() or "unknown"


if __name__ == "__main__":
    main(prog_name="./run night")
