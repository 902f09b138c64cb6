"""The engine that an export runs on: this process, a few processes, or Spark."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spark.engine.model import Engine, SparkUnavailable
from spark.engine.outcome import InlineEngine
from spark.engine.pool import PoolEngine

INLINE_BYTES: Final = 128 * 1024 * 1024
"""An image up to this size is done before more processes have started (1.4 million inodes)."""
_MOST_PROCESSES: Final = 8


class EngineUnavailable(Exception):
    """The engine did not start; says why and what to do."""


@contextmanager
def local_engine(image: Path) -> Iterator[Engine]:
    """Yield an engine with as many processes as an image is worth."""
    processes = min(len(os.sched_getaffinity(0)), _MOST_PROCESSES)
    if processes == 1 or image.stat().st_size <= INLINE_BYTES:
        yield InlineEngine()
        return
    with PoolEngine(processes) as pool:
        yield pool


@contextmanager
def spark_engine(master: str, properties: Mapping[str, str]) -> Iterator[Engine]:
    """Spark on a master, for the time of a ``with``.

    Raises:
        EngineUnavailable: if it does not start.
    """
    # Loaded here: an export without Spark takes less time than to load it.
    from py4j.protocol import Py4JError

    from spark.engine.session import SparkSettings, spark_started

    with tempfile.TemporaryDirectory(prefix="nnha-spark-") as scratch:
        settings = SparkSettings(master, Path(scratch), properties=properties)
        try:
            with spark_started(settings) as started:
                yield started.engine
        except SparkUnavailable as problem:
            raise EngineUnavailable(str(problem)) from problem
        except Py4JError as problem:
            # A master that does not answer: Spark gives up a minute after it has started.
            raise EngineUnavailable(f"Spark is gone; does {master} answer?") from problem
