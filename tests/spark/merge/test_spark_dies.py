"""If Spark's JVM dies during a merge, that is reported, and the next merge works."""

from pathlib import Path

import pytest

from spark.engine.model import SparkUnavailable
from spark.engine.session import SparkSettings, spark_started
from spark.merge.errors import MergeFailed
from spark.merge.job import merge_on
from spark.merge.stages import Progress
from tests.spark.merge.job_tree import BASE_NAME, RANGE_BYTES, tree_directory

pytestmark = pytest.mark.cluster


def test_a_dead_spark_is_told_and_the_next_one_starts(tmp_path: Path) -> None:
    name, out, told = tmp_path / "name", tmp_path / "out", list[str]()
    name.mkdir()
    out.mkdir()
    current = tree_directory(name)
    with spark_started(SparkSettings("local[2]", tmp_path / "first")) as started:
        engine = started.engine
        jvm = engine.context._gateway.proc

        def kill(at: Progress) -> None:
            if at.unit == "parts" and not told:
                told.append(at.stage)
                jvm.kill()

        with pytest.raises((MergeFailed, SparkUnavailable), match=r"JVM is gone|has stopped"):
            merge_on(engine, current / BASE_NAME, current, out, out, kill, range_bytes=RANGE_BYTES)
    assert told != []
    assert list(out.iterdir()) == []
    with spark_started(SparkSettings("local[2]", tmp_path / "second")) as again:
        assert dict(again.engine.run("count", abs, [-1, -2])) == {0: 1, 1: 2}
