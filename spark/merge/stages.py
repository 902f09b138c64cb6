"""The stages of a merge: how long each took, and how far the one at work is."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from ha.record import dataclass
from spark.engine.model import Engine


@dataclass(frozen=True, slots=True)
class Progress:
    """A stage has done ``done`` of ``total`` units; ``total`` is None while it is unknown."""

    stage: str
    done: int
    total: int | None
    unit: str


Tell = Callable[[Progress], None]


def ignore_progress(progress: Progress) -> None:
    """Ignore the progress, for callers that do not ask for it."""


T = TypeVar("T")
R = TypeVar("R")

_REPORT_EVERY: Final = 10_000


class Stages:
    """A stopwatch for each stage, in the order of their first beginning."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.seconds: dict[str, float] = {}
        """By stage; a stage that was done twice counts both."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        self.seconds.setdefault(name, 0.0)
        try:
            yield
        finally:
            self.seconds[name] += time.monotonic() - began

    def tell(self, stage: str, done: int, total: int | None, unit: str) -> None:
        self.progress(Progress(stage, done, total, unit))

    def progress(self, at: Progress) -> None:
        """Say how far a stage is, for parts that make their own words."""
        self._tell(at)

    def counted(self, items: Iterable[T], stage: str, total: int | None, unit: str) -> Iterator[T]:
        """Yield the items, and report now and then how many have passed."""
        done = 0
        for done, item in enumerate(items, 1):
            yield item
            if done % _REPORT_EVERY == 0:
                self.tell(stage, done, total, unit)
        self.tell(stage, done, total, unit)


class CountingEngine:
    """An engine that reports how many tasks of each stage are done."""

    def __init__(self, engine: Engine, stages: Stages) -> None:
        self._engine = engine
        self._stages = stages

    @property
    def name(self) -> str:
        """The name of the wrapped engine."""
        return self._engine.name

    @property
    def parallelism(self) -> int:
        """The parallelism of the wrapped engine."""
        return self._engine.parallelism

    def run(
        self, stage: str, function: Callable[[T], R], tasks: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """See `spark.engine.model.Engine`."""
        # Begun here and not in the generator: the stage starts when it is called.
        results = self._engine.run(stage, function, tasks)
        return self._report_each(stage, results, len(tasks))

    def _report_each(
        self, stage: str, results: Iterator[tuple[int, R]], total: int
    ) -> Iterator[tuple[int, R]]:
        for done, result in enumerate(results, 1):
            yield result
            self._stages.tell(stage, done, total, "parts")
