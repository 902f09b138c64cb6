"""Runs the fast tests, and then drawn worlds, with one slip after another in the product.

Each slip has a process of its own, forked from one that has loaded everything: the product is
changed there and nowhere else, and one that runs on for ever is ended.
"""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any, Final

import hypothesis.configuration
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from tests import ROOT
from tests.mutation.core import Core
from tests.mutation.reach import Block, Reached, lines_of, probe
from tests.mutation.slips import Slip, module_of, plant
from tests.simulation.engine.simulation import named

_FORK: Final = get_context("fork")
_SERVERS: Final = frozenset({"zookeeper", "ensemble", "cluster"})
"""Fixtures that start real processes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long, and how many.

    Attributes:
        jobs: processes at a time.
        measured: number of worlds whose reach is measured once.
        worlds: at most this number of those that reach a slip are played with it.
        seconds: for the tests and worlds of one slip.
        first_seed: of the worlds.
        slow_seconds: a test that takes longer is none of the fast ones, and left out.
    """

    jobs: int
    measured: int
    worlds: int
    seconds: float
    first_seed: int = 1
    slow_seconds: float = 3.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What noticed a slip, empty if nothing did, and how many tests and worlds ran its line."""

    slip: Slip
    by: str
    tests: int
    worlds: int
    seconds: float


Lines = frozenset[tuple[str, int]]


def judge(
    core: Core, slips: Sequence[Slip], limits: Limits, told: Callable[[Verdict], None]
) -> list[Verdict]:
    hypothesis.configuration.set_hypothesis_home_dir(tempfile.mkdtemp(prefix="nnha-slips-"))
    for path in core.files:
        module_of(path)  # loaded once, before the forks
    judges = _Judges(core, slips, limits, told)
    options = ["-q", "-s", "-p", "no:cacheprovider", "--timeout=60"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # all is loaded before the forks
    here = [name for name in core.tests if (ROOT / name).exists()]
    code = pytest.main(
        [*options, "-m", "not cluster and not zookeeper and not interop", *here], plugins=[judges]
    )
    if judges.failure or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"the tests of the core do not pass without a slip: {judges.failure}")
    return judges.verdicts


class _Judges:
    """In the place of pytest's own loop: the tests are collected once, and run for each slip."""

    def __init__(
        self,
        core: Core,
        slips: Sequence[Slip],
        limits: Limits,
        told: Callable[[Verdict], None],
    ) -> None:
        self._core = core
        self._slips = slips
        self._limits = limits
        self._told = told
        self.verdicts: list[Verdict] = []
        self.failure = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Skip the shrinking of examples: that a property fails is enough."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("slips", settings.default, phases=phases)
        settings.load_profile("slips")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [
            item for item in session.items if not _SERVERS & set(getattr(item, "fixturenames", ()))
        ]
        (whole,) = forked([lambda: _measure_tests(self._core, items, self._limits)], 1, 3600.0)
        if not isinstance(whole, dict):
            self.failure = str(whole)
            return True
        fast = {name: (seconds, lines) for name, (seconds, lines) in whole.items()}
        survivors = self._by_tests(items, fast)
        self._by_worlds(survivors)
        return True

    def _by_tests(
        self, items: Sequence[pytest.Item], fast: Mapping[str, tuple[float, Lines]]
    ) -> list[tuple[Slip, int, float]]:
        rows = []
        for slip in self._slips:
            reaching = [
                item
                for item in items
                if item.nodeid in fast and _reaches(slip, fast[item.nodeid][1])
            ]
            reaching.sort(key=lambda item: fast[item.nodeid][0])
            rows.append((slip, reaching))
        works = [lambda row=row: _by_tests(*row) for row in rows]
        survivors = []
        results = forked(works, self._limits.jobs, self._limits.seconds)
        for (slip, reaching), (by, seconds) in zip(rows, timed(results), strict=True):
            if by:
                self._tell(Verdict(slip, str(by), len(reaching), 0, seconds))
            else:
                survivors.append((slip, len(reaching), seconds))
        return survivors

    def _by_worlds(self, survivors: Sequence[tuple[Slip, int, float]]) -> None:
        if not self._core.worlds:
            for slip, tests, seconds in survivors:
                self._tell(Verdict(slip, "", tests, 0, seconds))
        if not survivors or not self._core.worlds:
            return
        limits = self._limits
        seeds = range(limits.first_seed, limits.first_seed + limits.measured)
        reach = measure_worlds(self._core, seeds, limits.jobs)
        rows = []
        for slip, tests, seconds in survivors:
            reaching = [seed for seed, lines in reach.items() if _reaches(slip, lines)]
            rows.append((slip, tests, seconds, reaching[: limits.worlds], len(reaching)))
        works = [lambda row=row: _by_worlds(self._core, row[0], row[3]) for row in rows]
        results = forked(works, limits.jobs, limits.seconds)
        for (slip, tests, before, _, many), (by, took) in zip(rows, timed(results), strict=True):
            self._tell(Verdict(slip, str(by or ""), tests, many, before + took))

    def _tell(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        self._told(verdict)


def _reaches(slip: Slip, lines: Lines) -> bool:
    """Return whether these lines reach the slip; a constant of a module may matter anywhere."""
    return slip.block == 0 or (slip.path, slip.block) in lines


def _measure_tests(
    core: Core, items: Sequence[pytest.Item], limits: Limits
) -> dict[str, tuple[float, Lines]]:
    reached = Reached()
    probe(core.files, reached)
    fast: dict[str, tuple[float, Lines]] = {}
    for item in items:
        began = time.monotonic()
        failed = _failure(item)
        lines, took = lines_of(reached.taken()), time.monotonic() - began
        if not failed and took <= limits.slow_seconds:
            fast[item.nodeid] = (took, lines)
    return fast


def _by_tests(slip: Slip, items: Sequence[pytest.Item]) -> str:
    plant(slip)
    for item in items:
        if failed := _failure(item):
            return failed
    return ""


def _failure(item: Any) -> str:  # noqa: ANN401
    item._initrequest()
    # Nothing is kept for the next case: it may be left out.
    for report in runtestprotocol(item, nextitem=None, log=False):
        if report.failed:
            return str(item.nodeid)
    return ""


def measure_worlds(core: Core, seeds: range, jobs: int) -> dict[int, Lines]:
    """Return the core's lines that each of these worlds runs, without worlds that fail alone."""
    portions = [seeds[start : start + 10] for start in range(0, len(seeds), 10)]
    named(core.worlds)  # loaded once, before the forks
    works = [lambda part=part: _reach_of_worlds(core.worlds, core.files, part) for part in portions]
    found: dict[int, Lines] = {}
    for part in forked(works, jobs, 3600.0):
        if isinstance(part, dict):
            found |= {seed: lines_of(blocks) for seed, blocks in part.items()}
    return found


def _reach_of_worlds(
    worlds: str, files: Sequence[str], seeds: Sequence[int]
) -> dict[int, frozenset[Block]]:
    simulation, reached = named(worlds), Reached()
    probe(files, reached)
    found = {}
    for seed in seeds:
        reached.taken()
        if simulation.run(seed).violation is None:
            found[seed] = reached.taken()
    return found


def _by_worlds(core: Core, slip: Slip, seeds: Sequence[int]) -> str:
    plant(slip)
    simulation = named(core.worlds)
    for seed in seeds:
        violation = simulation.run(seed).violation
        if violation is not None:
            return f"seed {seed}: {violation}"
    return ""


# ---- processes -----------------------------------------------------------------------------


def timed(results: Iterator[object]) -> Iterator[tuple[object, float]]:
    began = time.monotonic()
    for result in results:
        yield result, time.monotonic() - began
        began = time.monotonic()


def forked(works: Sequence[Callable[[], object]], jobs: int, seconds: float) -> Iterator[object]:
    """Yield what each of these gives, in order; one that takes too long or fails gives a text."""
    waiting, done = list(enumerate(works)), dict[int, object]()
    running: dict[int, tuple[Any, Any, float]] = {}
    for turn in range(len(works)):
        while turn not in done:
            while waiting and len(running) < jobs:
                number, work = waiting.pop(0)
                running[number] = (*_begin(work), time.monotonic() + seconds)
            ends = [end for _, end, _ in running.values()]
            connection.wait(ends, timeout=0.5)
            for number, (process, end, deadline) in list(running.items()):
                if end.poll():
                    done[number] = _received(end)
                elif time.monotonic() > deadline:
                    done[number] = f"not done in {seconds:.0f} s"
                else:
                    continue
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # with what its tests have started
                process.join()
                end.close()
                del running[number]
        yield done.pop(turn)


def _begin(work: Callable[[], object]) -> tuple[Any, Any]:
    ours, theirs = _FORK.Pipe(duplex=False)

    def run() -> None:
        os.setpgrp()
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            theirs.send(work())
        except BaseException as failure:  # noqa: BLE001 - whatever a slip does is its result
            theirs.send(f"{type(failure).__name__}: {failure}")
        theirs.close()
        os._exit(0)

    process = _FORK.Process(target=run)
    process.start()
    theirs.close()
    return process, ours


def _received(end: Any) -> object:  # noqa: ANN401
    try:
        return end.recv()
    except EOFError:
        return "its process ended"
