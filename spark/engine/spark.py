"""Spark as an engine: one job per stage, whose results arrive as its tasks finish."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar
from uuid import uuid4

import structlog
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext, TaskContext

from spark.engine.model import SparkUnavailable, TaskFailed
from spark.engine.outcome import Failed, TaskDone, attempted, settle

log = structlog.get_logger()

T = TypeVar("T")
R = TypeVar("R")

_DEFAULT_ATTEMPTS: Final = 4
"""spark.task.maxFailures where nothing else is said; local masters say it in their own name."""
_LOCAL_MASTER = re.compile(r"local(?:\[[^,\]]+(?:,\s*(\d+))?\])?")
_LOST_TASK = re.compile(r"Task (\d+) in stage \S+ failed (\d+) times?")

_mailboxes: dict[str, "SimpleQueue[Any]"] = {}
"""Where the driver takes the results of its running stages; on executors it stays empty."""


class _Mail:
    """Brings a task's result to the driver when the task finishes, not when the job does.

    An accumulator's update travels with the end of its task, and Spark applies it once for each
    task of an action however often it ran.  So one job gives its results one by one.
    It has the shape of `pyspark.AccumulatorParam`.
    """

    def __init__(self, mailbox: str) -> None:
        self._mailbox = mailbox

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:
        """Put results into the mailbox on the driver; collect them on an executor."""
        queue = _mailboxes.get(self._mailbox)
        if queue is None:
            value1.extend(value2)
            return value1
        for outcome in value2:
            queue.put(outcome)
        return []


class SparkEngine:
    """Runs tasks in the Python workers of a Spark context, which the caller made and stops."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._attempts = _attempts(context)

    @property
    def name(self) -> str:
        return "spark"

    @property
    def parallelism(self) -> int:
        """The cores of all executors, as far as Spark knows them.

        Raises:
            SparkUnavailable: if Spark has stopped, as it does a minute after no master answered.
        """
        with _alive(self._context.master):
            return int(self._context.defaultParallelism)

    @property
    def context(self) -> SparkContext:
        """For those who also need Spark's JVM, such as its file systems."""
        return self._context

    def run(
        self, stage: str, function: Callable[[T], R], tasks: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """See `spark.engine.model.Engine`; each task is one task of one Spark job."""
        if not tasks:
            return iter(())
        with _alive(self._context.master):
            running: _Stage[R] = _Stage(self._context, stage, len(tasks))
            running.start(function, tasks, self._attempts)
        return running.results()


@contextmanager
def _alive(master: str) -> Iterator[None]:
    try:
        yield
    except (Py4JError, AttributeError) as problem:
        # PySpark has no object any more to ask, or its JVM has no context.
        raise SparkUnavailable(
            f"Spark on {master} has stopped. Does that master answer, and has it workers with "
            "free cores and memory?"
        ) from problem


class _Ended:
    """The job is over; ``error`` is why, if it did not succeed."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error


class _Stage(Generic[R]):
    """A Spark job in a thread of its own, and the mailbox that its tasks answer to."""

    def __init__(self, context: SparkContext, stage: str, tasks: int) -> None:
        self._context = context
        self._stage = stage
        self._tasks = tasks
        self._group = f"{stage}-{uuid4().hex[:12]}"
        self._queue: SimpleQueue[TaskDone[R] | Failed | _Ended] = SimpleQueue()

    def start(self, function: Callable[[T], R], tasks: Sequence[T], attempts: int) -> None:
        _mailboxes[self._group] = self._queue
        mail = self._context.accumulator([], _Mail(self._group))
        rdd = self._context.parallelize(list(enumerate(tasks)), len(tasks))

        def work(numbered: Iterable[tuple[int, T]]) -> Iterator[None]:
            context = TaskContext.get()
            last = context is None or context.attemptNumber() + 1 >= attempts
            for number, task in numbered:
                mail.add([attempted(function, number, task, last=last)])
            return iter(())

        def submit() -> None:
            error = None
            try:
                self._context.setJobGroup(self._group, self._stage)
                self._context.runJob(rdd, work)
            except (Py4JError, OSError, EOFError) as problem:
                error = problem
            except Exception as problem:  # noqa: BLE001 - the consumer raises it in its own thread
                error = problem
            self._queue.put(_Ended(error))

        threading.Thread(target=submit, name=f"spark-{self._stage}", daemon=True).start()

    def results(self) -> Iterator[tuple[int, R]]:
        """Yield the results as they arrive; end the job if the rest is not wanted."""
        seen = bytearray(self._tasks)
        ended = False
        try:
            while not all(seen):
                mail = self._queue.get()
                if isinstance(mail, _Ended):
                    ended = True
                    raise self._failure(mail.error, seen)
                if not seen[mail.number]:
                    seen[mail.number] = True
                    yield settle(self._stage, mail)
        finally:
            _mailboxes.pop(self._group, None)
            if not ended and not all(seen):
                self._cancel()

    def _cancel(self) -> None:
        try:
            self._context.cancelJobGroup(self._group)
        except (Py4JError, OSError, AttributeError) as problem:
            # The context is stopped already, or its JVM is gone: then the job is, too.
            log.debug("engine.cancel_failed", stage=self._stage, problem=str(problem))

    def _failure(self, error: Exception | None, seen: bytearray) -> TaskFailed:
        """Return the error of a job that ended before all results had come."""
        number = seen.index(0)
        if error is None:
            what = "Spark says that all tasks are done, but not all results have come"
            return TaskFailed(self._stage, number, "ResultLost", what)
        if not isinstance(error, Py4JJavaError):
            what = f"Spark's JVM is gone ({type(error).__name__}: {error})"
            return TaskFailed(self._stage, number, "SparkLost", what)
        text = str(error.java_exception.getMessage() or error.java_exception.toString())
        lost = _LOST_TASK.search(text)
        if lost is not None:
            number = int(lost[1])
        return TaskFailed(self._stage, number, "SparkFailed", _words(text))


def _words(text: str) -> str:
    """Return the line of a Spark error that says most; the rest is a Java stack."""
    attempts = _LOST_TASK.search(text)
    times = f" {attempts[2]} times" if attempts else ""
    if "Python worker exited unexpectedly" in text or "ExecutorLostFailure" in text:
        return (
            f"the worker that ran it died{times}. If the system was out of memory, give the "
            "executors more of it, or fewer cores"
        )
    if "No module named" in text:
        found = re.search(r"No module named '([^']+)'", text)
        module = found[1] if found else "a module"
        return (
            f"the Python of the executors has no {module}: install nnha's dependencies there, "
            "and name that Python in spark.pyspark.python"
        )
    head = text.strip().splitlines()
    return f"Spark gave up{times}: {head[0] if head else 'it does not say why'}"


def _attempts(context: SparkContext) -> int:
    """Return how often Spark runs a task before it gives the job up."""
    local = _LOCAL_MASTER.fullmatch(context.master)
    if local is not None:
        return int(local[1] or 1)
    return int(context.getConf().get("spark.task.maxFailures", str(_DEFAULT_ATTEMPTS)))
