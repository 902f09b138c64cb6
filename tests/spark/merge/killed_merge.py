"""A merge that kills itself at a given point, run as a process of its own.

    python -m tests.spark.merge.killed_merge ENGINE IMAGE EDITS OUT POINT

POINT is a kind and N (see ``main``): at the N-th report of progress, or before the N-th file of the
result would get its name.  ENGINE is ``inline`` or a master of Spark's.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from spark.engine.outcome import InlineEngine
from spark.merge.job import merge_on
from spark.merge.stages import Progress
from spark.merge.workdir import work_directory
from tests.spark.merge.job_tree import RANGE_BYTES


def main() -> None:
    engine, image, edits, out, kind, number = sys.argv[1:]
    left = int(number)

    def tick() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def told(_: Progress) -> None:
        if kind == "told":
            tick()

    def audited(event: str, arguments: tuple[Any, ...]) -> None:
        # Python itself reports each rename before it is done.
        if event == "os.rename" and Path(os.fsdecode(arguments[1])).parent == Path(out):
            tick()

    if kind == "renamed":
        sys.addaudithook(audited)
    places = (Path(image), Path(edits), Path(out), Path(out))
    if engine == "inline":
        merge_on(InlineEngine(), *places, told, range_bytes=RANGE_BYTES)
        return
    # Loaded here: the other points need no Spark, and are ten.
    from spark.engine.session import SparkSettings, spark_started

    with (
        work_directory(Path(out)) as scratch,
        spark_started(SparkSettings(engine, scratch)) as started,
    ):
        sys.stdout.write(f"{started.engine.context._gateway.proc.pid}\n")
        sys.stdout.flush()
        merge_on(started.engine, *places, told, range_bytes=RANGE_BYTES)


if __name__ == "__main__":
    main()
