"""A few processes of this machine as an engine, for images that are worth no JVM."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Self, TypeVar

from spark.engine.model import TaskFailed
from spark.engine.outcome import Failed, TaskDone, attempted, settle

T = TypeVar("T")
R = TypeVar("R")


class PoolEngine:
    """Runs tasks in processes that start fresh: forking a process with threads may hang it.

    A worker that dies takes the pool with it: nothing is tried twice here.
    """

    def __init__(self, processes: int) -> None:
        self.parallelism = processes
        self._pool = ProcessPoolExecutor(
            processes, mp_context=get_context("spawn"), initializer=_follow_the_parent
        )

    @property
    def name(self) -> str:
        return "pool"

    def run(
        self, stage: str, function: Callable[[T], R], tasks: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """See `spark.engine.model.Engine`."""
        futures = {
            self._pool.submit(attempted, function, number, task, last=True): number
            for number, task in enumerate(tasks)
        }
        return _results(stage, futures)

    def close(self) -> None:
        """End the processes; what has not begun is dropped."""
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _follow_the_parent() -> None:
    """End this worker with its driver, or it would wait for more tasks for ever.

    A killed driver closes nothing.  Ctrl-C reaches a worker as well as the driver, which reports
    it.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _results(
    stage: str, futures: dict["Future[TaskDone[R] | Failed]", int]
) -> Iterator[tuple[int, R]]:
    try:
        for future in as_completed(futures):
            try:
                outcome = future.result()
            except BrokenProcessPool as problem:
                raise TaskFailed(
                    stage,
                    futures[future],
                    "WorkerLost",
                    "a worker process died; if the system was out of memory, use fewer of them",
                ) from problem
            yield settle(stage, outcome)
    finally:
        for future in futures:
            future.cancel()
