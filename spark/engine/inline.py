"""The engine of tests and small work: every task runs in this process, one after the other."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from spark.engine.outcome import attempted, settled

T = TypeVar("T")
R = TypeVar("R")


class InlineEngine:
    """Runs tasks in their order, when their results are asked for."""

    @property
    def name(self) -> str:
        return "inline"

    @property
    def parallelism(self) -> int:
        """One task at a time."""
        return 1

    def run(
        self, stage: str, function: Callable[[T], R], tasks: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """See `spark.engine.model.Engine`."""
        for number, task in enumerate(tasks):
            yield settled(stage, attempted(function, number, task, last=True))
