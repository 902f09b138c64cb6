"""Chooses the engine of a merge, and starts Spark when something needs it first."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ha.record import dataclass, field
from namenode_sim.checkpoint import merge as whole
from namenode_sim.checkpoint.merge import Merged
from spark.ends.hadoop_files import HadoopFiles
from spark.merge.stages import Progress, Tell, ignore_progress
from spark.merge.workdir import work_directory

if TYPE_CHECKING:
    from spark.engine.model import Engine
    from spark.engine.pool import PoolEngine
    from spark.engine.session import Started

SPARK_FROM_BYTES: Final = 64 * 1024 * 1024
"""Image size from which Spark is taken; about 800,000 inodes.

Measured on ``local[2]``, its start counted (docs/checkpoint.md): both take as long at about 35 MB,
and at 84 MB Spark takes five sixths of the time.
"""

DEFAULT_MASTER: Final = "local[*]"


class EngineName(StrEnum):
    """What ``--engine`` takes."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"
    POOL = "pool"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which engine, and why."""

    engine: EngineName
    reason: str


@dataclass(frozen=True, slots=True)
class MergeReport:
    """A merge that was done.

    Attributes:
        merged: the image and its figures.
        choice: the engine that did it, which is ``local`` if Spark's could not divide it.
        seconds: by stage.
        spark_start_seconds: None if this merge did not start it.
    """

    merged: Merged
    choice: Choice
    seconds: Mapping[str, float] = field(default_factory=dict)
    spark_start_seconds: float | None = None


def choose(asked: EngineName, image_bytes: int) -> Choice:
    """Choose the engine for an image of this size."""
    if asked is not EngineName.AUTO:
        return Choice(asked, "as asked for")
    size = f"the image has {image_bytes / 1e6:.0f} MB"
    limit = f"{SPARK_FROM_BYTES / 1e6:.0f} MB"
    if image_bytes < SPARK_FROM_BYTES:
        return Choice(EngineName.LOCAL, f"{size}, and below {limit} one process is quicker")
    return Choice(EngineName.SPARK, f"{size}; from {limit} on it is divided")


class Merger:
    """Merges one after the other, with at most one Spark, which is kept until the end.

    Used as a context manager.
    """

    def __init__(
        self,
        work: Path,
        *,
        asked: EngineName = EngineName.AUTO,
        master: str = DEFAULT_MASTER,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            work: where work directories are made; executors see it under the same path.
            asked: the engine.
            master: Spark's, as spark-submit has it.
            properties: more of Spark's properties.
        """
        self._work = work
        self._asked = asked
        self._master = master
        self._properties = dict(properties or {})
        self._started: Started | None = None
        self._processes: PoolEngine | None = None
        self._rooms = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._started = self._processes = None
        self._rooms.close()

    def hadoop(self) -> HadoopFiles:
        """Hadoop's file systems, through Spark's JVM; errors as ``spark_started``."""
        context = self._spark().engine.context
        return HadoopFiles(context._jvm, context._jsc.hadoopConfiguration())

    def merge(
        self,
        image: Path,
        edits: Path,
        out: Path,
        tell: Tell = ignore_progress,
        *,
        digest_checked: bool = False,
    ) -> MergeReport:
        """Merge on the engine that suits the image; arguments and errors as ``merge_on``.

        Raises:
            SparkUnavailable: if Spark does not start, and was asked for by name or by its master.
        """
        choice = choose(self._asked, image.stat().st_size)
        if choice.engine is EngineName.LOCAL:
            return MergeReport(
                whole.merge(image, edits, out, progress=_adapt_progress(tell)), choice
            )
        # Loaded here: the single process is to start without numpy and PySpark.
        from spark.merge.job import merge_on

        started: float | None = None
        engine: Engine
        if choice.engine is EngineName.POOL:
            engine = self._pool()
        else:
            choice, engine, started = self._spark_or_pool(choice, tell)
        done = merge_on(engine, image, edits, out, self._work, tell, digest_checked=digest_checked)
        if done.single_process_because is not None:
            choice = Choice(EngineName.LOCAL, done.single_process_because)
        return MergeReport(done.merged, choice, done.seconds, started)

    def _spark_or_pool(self, choice: Choice, tell: Tell) -> "tuple[Choice, Engine, float | None]":
        """Start Spark; or processes, where neither Spark nor a cluster of it was asked for."""
        from spark.engine.model import SparkUnavailable

        if self._started is not None:
            return choice, self._started.engine, None
        tell(Progress("start of Spark", 0, None, "seconds"))
        try:
            spark = self._spark()
        except SparkUnavailable as problem:
            if self._asked is not EngineName.AUTO or not self._master.startswith("local"):
                raise
            instead = f"{choice.reason}, by processes of this machine: {problem}"
            return Choice(EngineName.POOL, instead), self._pool(), None
        return choice, spark.engine, spark.seconds

    def _pool(self) -> "PoolEngine":
        if self._processes is None:
            from spark.engine.pool import PoolEngine

            # As many as this process may use, which a container limits.
            self._processes = self._rooms.enter_context(PoolEngine(len(os.sched_getaffinity(0))))
        return self._processes

    def _spark(self) -> "Started":
        if self._started is None:
            from spark.engine.session import SparkSettings, spark_started

            room = self._rooms.enter_context(work_directory(self._work))
            settings = SparkSettings(self._master, room, properties=self._properties)
            self._started = self._rooms.enter_context(spark_started(settings))
        return self._started


def _adapt_progress(tell: Tell) -> Callable[[whole.Progress], None]:
    return lambda at: tell(
        Progress("single process", at.done_bytes, at.total_bytes, "bytes of edits")
    )
