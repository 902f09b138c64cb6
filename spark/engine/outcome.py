"""What comes back from a task: its result or its words of failure, and names for its files."""

import os
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from ha.record import dataclass
from spark.engine.model import TaskFailed

T = TypeVar("T")
R = TypeVar("R")

_OURS = ("spark.", "namenode_sim.", "journal.", "ha.")


@dataclass(frozen=True, slots=True)
class TaskDone(Generic[R]):
    """A task's result."""

    number: int
    result: R


@dataclass(frozen=True, slots=True)
class Failed:
    """A task's failure as text: not every error survives pickling.  ``stack`` is for developers."""

    number: int
    kind: str
    cause: str
    stack: str


def attempted(
    function: Callable[[T], R], number: int, task: T, *, last: bool
) -> TaskDone[R] | Failed:
    """Run a task and catch what it raises.

    What the machine did (OSError, MemoryError) may not happen again, so it is raised for the
    engine's own retries unless this is the ``last`` attempt.  Everything else is in the data or
    in our code and would only come again.
    """
    try:
        return TaskDone(number, function(task))
    except Exception as error:
        if isinstance(error, OSError | MemoryError) and not last:
            raise
        return Failed(number, type(error).__name__, _words(error), traceback.format_exc())


def _words(error: Exception) -> str:
    """Return an error's message, with its class where the message alone says little."""
    if type(error).__module__.startswith(_OURS) or isinstance(error, OSError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def settle(stage: str, outcome: TaskDone[R] | Failed) -> tuple[int, R]:
    """Return the task's number and result.

    Raises:
        TaskFailed: if it is a failure; the task's stack is a note of it.
    """
    if isinstance(outcome, Failed):
        failure = TaskFailed(stage, outcome.number, outcome.kind, outcome.cause)
        failure.add_note(outcome.stack)
        raise failure
    return outcome.number, outcome.result


def attempt_name(stem: str) -> str:
    """``stem`` with this process and a random part: a task that runs twice writes two files.

    The driver reads only the names that tasks returned, so a file of an attempt that was lost
    stays unseen until the work directory goes.
    """
    return f"{stem}.{os.getpid()}-{uuid.uuid4().hex[:12]}"


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
            yield settle(stage, attempted(function, number, task, last=True))
