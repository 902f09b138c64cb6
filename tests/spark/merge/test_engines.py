"""Every engine runs the same tasks and reports the same of those that fail."""

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark.engine.model import Engine, SparkUnavailable, TaskFailed
from spark.engine.outcome import InlineEngine
from spark.engine.pool import PoolEngine
from spark.engine.session import SparkSettings, spark_started
from tests.spark.merge import engine_tasks

pytestmark = pytest.mark.cluster  # starts a Spark


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    scratch = tmp_path_factory.mktemp("spark")
    with PoolEngine(2) as pool, spark_started(SparkSettings("local[2]", scratch)) as started:
        assert started.seconds > 0
        yield {"inline": InlineEngine(), "pool": pool, "spark": started.engine}


@pytest.fixture(params=["inline", "pool", "spark"])
def engine(request: pytest.FixtureRequest, engines: dict[str, Engine]) -> Engine:
    return engines[request.param]


@pytest.fixture
def on_spark(engines: dict[str, Engine]) -> Engine:
    return engines["spark"]


def tasks(count: int, flag: Path | None = None) -> list[engine_tasks.Square]:
    return [engine_tasks.Square(number, str(flag or "")) for number in range(count)]


def test_every_task_gives_its_result_once(engine: Engine) -> None:
    found = list(engine.run("squares", engine_tasks.square, tasks(7)))
    assert sorted(found) == [(n, n * n) for n in range(7)]
    assert engine.name in ("inline", "pool", "spark")
    assert engine.parallelism == (1 if engine.name == "inline" else 2)


def test_no_tasks_are_no_work(engine: Engine) -> None:
    assert list(engine.run("nothing", engine_tasks.square, [])) == []


def test_a_task_that_fails_says_so_in_its_own_words(engine: Engine) -> None:
    with pytest.raises(TaskFailed) as told:
        list(engine.run("scan", engine_tasks.broken, tasks(5)))
    failure = told.value
    assert (failure.stage, failure.number, failure.kind) == ("scan", 3, "ImageError")
    assert str(failure) == (
        "fsimage_7: section INODE, byte 12 of the file: malformed (task 3 of stage scan)"
    )


def test_files_of_two_attempts_never_meet(engine: Engine, tmp_path: Path) -> None:
    names = {name for _, name in engine.run("parts", engine_tasks.written, tasks(3, tmp_path) * 2)}
    assert len(names) == 6
    assert names == {path.name for path in tmp_path.iterdir()}


def test_results_come_while_other_tasks_still_run(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    for name in ("pool", "spark"):
        flag = tmp_path / name
        results = engines[name].run("overlap", engine_tasks.waits_for, tasks(2, flag))
        assert next(results) == (1, 1)
        flag.touch()
        assert list(results) == [(0, 0)]


def test_two_stages_overlap(engines: dict[str, Engine], tmp_path: Path) -> None:
    for name in ("pool", "spark"):
        flag = tmp_path / name
        first = engines[name].run("one", engine_tasks.waits_for, tasks(1, flag))
        assert list(engines[name].run("two", engine_tasks.square, tasks(2))) != []
        flag.touch()
        assert list(first) == [(0, 0)]


def test_spark_tries_again_what_the_machine_did(on_spark: Engine, tmp_path: Path) -> None:
    one = [engine_tasks.Square(4, str(tmp_path / "disk"))]
    assert list(on_spark.run("disk", engine_tasks.disk_fails_once, one)) == [(0, 4)]
    some = [
        engine_tasks.Square(n, str(tmp_path / f"worker-{n}") if n % 2 else "") for n in range(4)
    ]
    assert sorted(on_spark.run("workers", engine_tasks.dies_once, some)) == [
        (n, n) for n in range(4)
    ]


def test_a_task_that_kills_its_workers_is_given_up(on_spark: Engine) -> None:
    with pytest.raises(TaskFailed, match=r"the worker that ran it died 4 times.*task 1 of stage"):
        list(on_spark.run("deadly", engine_tasks.always_dies, tasks(3)))
    assert list(on_spark.run("after", engine_tasks.square, tasks(1))) == [(0, 0)]


def test_a_stage_that_nobody_wants_ends(on_spark: Engine, tmp_path: Path) -> None:
    """End it, or its tasks would hold the workers until they are done."""
    flag = tmp_path / "never"
    results = on_spark.run("dropped", engine_tasks.waits_for, [*tasks(2, flag), *tasks(2, flag)])
    assert next(results)[1] == 1
    began = time.monotonic()
    results.close()  # type: ignore[attr-defined]  # a generator, as the protocol's text says
    assert sorted(on_spark.run("after", engine_tasks.square, tasks(2))) == [(0, 0), (1, 1)]
    assert time.monotonic() - began < engine_tasks.SPIN_SECONDS / 2


# PySpark drops the launcher that failed with its pipe still open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_master_that_is_not_there_is_told(tmp_path: Path) -> None:
    settings = SparkSettings("nonsense://x", tmp_path)
    with pytest.raises(SparkUnavailable, match="nonsense"), spark_started(settings):
        pass
    gc.collect()
