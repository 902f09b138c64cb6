"""``./run soak fuzz``: feed hostile bytes to every decoder, and to real servers over sockets.

With ``--count`` each decoder is fed that number of inputs, drawn by a seed; else all together some
minutes long.  With atheris installed each decoder is fuzzed by it, guided by coverage; without it
sound inputs are damaged at random.  A finding is an input on which a decoder raises anything but
its own errors, takes more than a few seconds, or takes much more memory than the input is long.
"""

import asyncio
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from tests.campaigns.soak.fuzz_door import Door, Play
from tests.campaigns.soak.fuzz_journal_doors import JOURNAL_DOORS
from tests.campaigns.soak.fuzz_namenode_doors import NAMENODE_DOORS
from tests.campaigns.soak.fuzz_random import Finding, fuzz_at_random
from tests.campaigns.soak.fuzz_report_doors import REPORT_DOORS
from tests.campaigns.soak.fuzz_target import Target
from tests.campaigns.soak.fuzz_targets import TARGETS
from tests.hostile.strokes import MAX_INPUT_BYTES

DOORS: Final = (*NAMENODE_DOORS, *REPORT_DOORS, *JOURNAL_DOORS)
NAMES: Final = tuple(one.name for one in (*TARGETS, *DOORS))

ADVICE = (
    "atheris is not installed, so inputs are damaged at random; with it (.venv/bin/pip install "
    "atheris) coverage guides them"
)
_CASE_SECONDS = 10
_MEMORY_MEGABYTES = 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    """What fuzzing one target came to."""

    target: str
    engine: str
    cases: int
    seconds: float
    findings: tuple[Finding, ...]


@click.command()
@click.option("--minutes", default=1.0, show_default=True, type=click.FloatRange(min=0.01),
              help="For all targets together.")  # fmt: skip
@click.option("--count", type=click.IntRange(min=1),
              help="So many inputs for each, drawn by the seed, instead of minutes.")  # fmt: skip
@click.option("--target", "names", multiple=True, help="Only this one; may be given again.",
              type=click.Choice(NAMES))  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Of the random damage.")
@click.option("--engine", type=click.Choice(["atheris", "random"]),
              help="Which; atheris where it is installed if not given.")  # fmt: skip
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False),
              help="Where to keep inputs that were found; var/fuzz if not given.")  # fmt: skip
def fuzz(
    *,
    minutes: float,
    count: int | None,
    names: Sequence[str],
    seed: int,
    engine: str | None,
    as_object: bool,
    directory: Path | None,
) -> None:
    """Feed damaged bytes to the decoders; exit code 0 only if none of them misbehaved."""
    chosen = [one for one in (*TARGETS, *DOORS) if not names or one.name in names]
    folder = directory or Path("var", "fuzz")
    folder.mkdir(parents=True, exist_ok=True)
    guided = engine == "atheris" or (engine is None and count is None and _has_atheris())
    if guided and not _has_atheris():
        raise click.UsageError("atheris is not installed: pip install atheris")
    if not guided and count is None:
        click.echo(ADVICE, err=True)
    share = minutes * 60 / len(chosen)
    outcomes = []
    for target in chosen:
        if isinstance(target, Door):
            outcome = _at_door(target, share, seed, folder, count)
        elif guided:
            outcome = _with_atheris(target, share, seed, folder)
        else:
            outcome = _at_random(target, share, seed, folder, count)
        outcomes.append(outcome)
        click.echo(f"{target.name:15} {outcome.cases:9} cases in {outcome.seconds:6.1f} s, "
                   f"{len(outcome.findings)} findings", err=True)  # fmt: skip
        for finding in outcome.findings:
            click.echo(f"    {finding.kind}: {finding.what}\n    input: {finding.path}", err=True)
    well = not any(outcome.findings for outcome in outcomes)
    if as_object:
        report = {"soak": "fuzz", "well": well, "targets": [asdict(o) for o in outcomes]}
        click.echo(json.dumps(report))
    raise SystemExit(0 if well else 1)


def _has_atheris() -> bool:
    return importlib.util.find_spec("atheris") is not None


def _at_door(door: Door, seconds: float, seed: int, folder: Path, count: int | None) -> Outcome:
    began, play = time.monotonic(), Play(door, seed, folder)
    findings = asyncio.run(play.run(count, seconds))
    return Outcome(door.name, "sockets", play.cases, time.monotonic() - began, tuple(findings))


def _at_random(
    target: Target, seconds: float, seed: int, folder: Path, count: int | None
) -> Outcome:
    began = time.monotonic()
    cases, findings = fuzz_at_random(target, seconds=seconds, seed=seed, folder=folder, count=count)
    return Outcome(target.name, "random", cases, time.monotonic() - began, tuple(findings))


def _with_atheris(target: Target, seconds: float, seed: int, folder: Path) -> Outcome:
    """Fuzz in a process of its own: atheris takes the whole process and ends it."""
    corpus = folder / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
    command = [sys.executable, "-m", "tests.campaigns.soak.fuzz_guided", target.name, str(corpus),
               f"-max_total_time={max(1, round(seconds))}", f"-seed={seed + 1}",
               f"-max_len={MAX_INPUT_BYTES}", f"-timeout={_CASE_SECONDS}",
               f"-rss_limit_mb={_MEMORY_MEGABYTES}", "-print_final_stats=1",
               f"-artifact_prefix={folder}/{target.name}-"]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = done.stdout + done.stderr
    cases = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
    findings = []
    if done.returncode != 0:
        kept = re.search(r"Test unit written to (\S+)", said)
        path = kept[1] if kept else ""
        findings.append(Finding(f"exit code {done.returncode}", said[-2000:], path))
    return Outcome(target.name, "atheris", int(cases[1]) if cases else 0,
                   time.monotonic() - began, tuple(findings))  # fmt: skip
