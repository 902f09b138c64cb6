"""What is reported of a Spark that does not start."""

import gc
from pathlib import Path

import pytest

from spark.engine.model import SparkUnavailable
from spark.engine.session import SparkSettings, spark_started

SAYINGS = {
    "nothing": ("", "its JVM wrote nothing"),
    "a last line": ("echo one; echo two >&2", "two"),
    "an error among others": ("echo one; echo Error: this; echo two", "local[1]: Error: this"),
}


# PySpark drops the launcher that failed with its pipe still open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", SAYINGS)
def test_a_jvm_that_ends_at_once_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    said, told = SAYINGS[case]
    launcher = tmp_path / "bin" / "spark-submit"
    launcher.parent.mkdir()
    launcher.write_text(f"#!/bin/sh\n{said}\nexit 1\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with (
        pytest.raises(SparkUnavailable) as refused,
        spark_started(SparkSettings("local[1]", tmp_path / "scratch")),
    ):
        pass
    assert told in str(refused.value)
    assert "Check --master and --conf" in str(refused.value)
    del refused
    gc.collect()
