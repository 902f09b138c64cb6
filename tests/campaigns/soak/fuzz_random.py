"""Fuzzing without a fuzzer: sound inputs, damaged at random by a seed."""

import random
import signal
import time
import traceback
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Final

from tests.campaigns.soak.fuzz_target import Target
from tests.hostile.shapes import hostile

MAX_EXTRA_BYTES: Final = 64 << 20
"""What a decoder may take beyond its input."""
_CASE_SECONDS: Final = 10.0
_MEMORY_EVERY: Final = 32
"""Counting each allocation makes a case some times slower, so not every case is watched."""
_MAX_FINDINGS: Final = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that a decoder does not take well.  ``path`` is where it was kept."""

    kind: str
    what: str
    path: str


class TookTooLongError(BaseException):
    """No decoder catches it by accident."""


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise TookTooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def misbehaviour(
    target: Target, data: bytes, *, watch_memory: bool, seconds: float = _CASE_SECONDS
) -> tuple[str, str] | None:
    """Return what is wrong with how a target takes some bytes: a kind and the details."""
    if watch_memory:
        tracemalloc.start()
    try:
        with _deadline(seconds):
            target.run(data)
    except target.errors:
        pass
    except TookTooLongError:
        return "hang", f"no answer within {seconds} s\n{traceback.format_exc(limit=-4)}"
    except Exception as failure:  # noqa: BLE001 - to find these is what fuzzing is for
        return type(failure).__name__, traceback.format_exc(limit=-4)
    finally:
        peak = tracemalloc.get_traced_memory()[1] if watch_memory else 0
        tracemalloc.stop()
    if peak > MAX_EXTRA_BYTES + len(data):
        return "memory", f"{peak} bytes for an input of {len(data)}"
    return None


def _place(kind: str, what: str) -> str:
    """Return where it went wrong, without what differs from input to input."""
    return kind + "".join(line for line in what.splitlines() if line.startswith("  File"))


def fuzz_at_random(
    target: Target, *, seconds: float, seed: int, folder: Path, count: int | None = None
) -> tuple[int, list[Finding]]:
    """Feed ``count`` hostile inputs, or for some time; return their number, and the findings."""
    source, seeds = random.Random(f"{target.name} {seed}"), target.seeds()
    findings: dict[str, Finding] = {}
    cases, end = 0, time.monotonic() + seconds
    while len(findings) < _MAX_FINDINGS:
        if cases == count or (count is None and time.monotonic() >= end):
            break
        data = hostile(seeds, source, target.shape, target.prefix)
        found = misbehaviour(target, data, watch_memory=cases % _MEMORY_EVERY == 0)
        cases += 1
        if found is not None and (place := _place(*found)) not in findings:
            kind, what = found
            path = folder / f"{target.name}-{sha256(data).hexdigest()[:16]}"
            path.write_bytes(data)
            findings[place] = Finding(kind, what, str(path))
    return cases, list(findings.values())
