"""Run everything that CI runs, stage by stage, and say at the end which stages hold."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Stage:
    """One check and the command that does it."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a stage."""

    name: str
    passed: bool
    seconds: float


STAGES = (
    Stage("format", (str(BIN / "ruff"), "format", "--check", "--quiet", ".")),
    Stage("lint", (str(BIN / "ruff"), "check", "--quiet", ".")),
    Stage("types", (str(BIN / "mypy"),)),
    Stage("layers", (str(BIN / "lint-imports"),)),
    # The slow cluster tests come last, so that a plain mistake is told in the first minute.
    Stage("unit", (sys.executable, "-m", "pytest", "-m", "not cluster")),
    Stage("cluster", (sys.executable, "-m", "pytest", "-m", "cluster")),
)


def run_stage(stage: Stage) -> Outcome:
    """Run one stage with its output on ours."""
    sys.stderr.write(f"== {stage.name}\n")
    sys.stderr.flush()
    began = time.monotonic()
    code = subprocess.run(stage.command, cwd=ROOT, check=False).returncode
    return Outcome(stage.name, code == 0, time.monotonic() - began)


def main(arguments: Sequence[str]) -> int:
    """Run the stages that are named, or all, and return 0 only if every one holds."""
    as_json = "--json" in arguments
    names = [argument for argument in arguments if argument != "--json"]
    unknown = sorted(set(names) - {stage.name for stage in STAGES})
    if unknown:
        known = ", ".join(stage.name for stage in STAGES)
        sys.stderr.write(f"there is no stage {', '.join(unknown)}; there are: {known}\n")
        return 2
    outcomes = [run_stage(stage) for stage in STAGES if not names or stage.name in names]
    for outcome in outcomes:
        verdict = "ok" if outcome.passed else "FAILED"
        sys.stderr.write(f"{outcome.name:10} {verdict:8} {outcome.seconds:7.1f} s\n")
    passed = all(outcome.passed for outcome in outcomes)
    if as_json:
        stages = [
            {"stage": o.name, "passed": o.passed, "seconds": round(o.seconds, 2)} for o in outcomes
        ]
        sys.stdout.write(json.dumps({"task": "test", "passed": passed, "stages": stages}) + "\n")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
