"""What the merge asks of an engine, and what the engine reports when a task fails."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class SparkUnavailable(Exception):
    """Spark did not start; says why and what to do."""


class TaskFailed(Exception):
    """A task of a stage failed for good; the message is the task's own, without a stack.

    ``kind`` is the name of the class that was raised where the task ran.  The error itself does
    not travel: not every error survives pickling, and some engines only pass on text.
    """

    def __init__(self, stage: str, number: int, kind: str, cause: str) -> None:
        # All four are given on, so that the error itself survives pickling.
        super().__init__(stage, number, kind, cause)
        self.stage = stage
        self.number = number
        self.kind = kind
        self.cause = cause

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.cause} (task {self.number} of stage {self.stage})"


class Engine(Protocol):
    """Runs pure functions over tasks.

    A function is top-level in a module of this project, and picklable by name.  A task is a small
    frozen dataclass: everything bulky travels through files of the work directory.  A task may run
    twice, even at the same time, and its first answer may be lost; so it writes to a name of its
    own (`spark.engine.outcome.attempt_name`) and returns that name, and files are never searched
    for.
    """

    @property
    def name(self) -> str:
        """``inline``, ``pool`` or ``spark``; for people and for JSON."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time."""

    def run(
        self, stage: str, function: Callable[[T], R], tasks: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """Run the tasks; the iterator gives each one's number and result, as they finish.

        The results are in no order.  The stage starts when it is called, not when the first result
        is asked for, so that two stages can overlap.  An iterator that is dropped half-way cancels
        what has not begun.

        Raises:
            TaskFailed: from the iterator, if a task failed for good.
        """
