"""Each log event and each metric is in a test: by its name, or by a row of tests/effects.txt."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from tests import ROOT, effects
from tests.architecture import outward

SUFFIX: Final = re.compile("_(total|bucket|count|sum|info)$")
IN_NONE: Final = Path(__file__).with_name("in_no_test.txt")
"""Those that are in none yet, one a line; it only ever gets shorter."""

TESTS: Final = """
import prometheus_client, pytest, structlog

log = structlog.get_logger()
LOST = prometheus_client.Counter("nnha_lost_total", "What is lost", ["why"])
HELD = prometheus_client.Gauge("nnha_held", "What is held")
TOOK = prometheus_client.Histogram("nnha_took", "How long it took")

def show():
    log.warning("part.lost", why="x")
    LOST.labels("x").inc()
    HELD.set_function(lambda: 1)
    TOOK.observe(1.0)

def test_all(): show()
@pytest.mark.parametrize("shown", [1, 0])
def test_one_of_two(shown):
    if shown: show()
def test_no_line(): TOOK.observe(1.0)
def test_no_update(): log.info("part.lost")
def test_that_fails_itself(): assert 0, "itself"
def test_of_no_row(): pass
"""
ROWS: Final = """test_it.py
    test_all: part.lost nnha_lost nnha_held nnha_took
    test_one_of_two[1]: nnha_took
    test_one_of_two: nnha_held
    test_no_line: part.lost nnha_took
    test_no_update: part.lost nnha_took
    test_that_fails_itself: part.lost"""
MISSED: Final = {
    "test_one_of_two[0]": "nnha_held",
    "test_no_line": "part.lost",
    "test_no_update": "nnha_took",
    "test_that_fails_itself": "itself",
}


@cache
def texts() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for path in sorted((ROOT / "tests").rglob("*.py"))
    }


def unnamed(names: set[str], rows: effects.Effects, tests: str) -> set[str]:
    words = set(re.findall(r"[\w.]+", tests)).union(*rows.values())
    found = words | {SUFFIX.sub("", word) for word in words}
    return {name for name in names if effects.stem(name) not in found}


def test_every_event_and_every_metric_is_in_a_test() -> None:
    sources = outward.product()
    names = outward.names(outward.log_lines(sources), outward.metrics(sources))
    rows = effects.read_table(effects.TABLE.read_text().splitlines())
    assert unnamed(names, rows, "".join(texts().values())) == set(IN_NONE.read_text().split())
    assert len(names) > 500
    assert unnamed({"a.lost", "nnha_x_total", "nnha_y"}, {"f::t": frozenset({"nnha_x"})}, "a.los") \
        == {"a.lost", "nnha_y"}  # fmt: skip


def test_every_test_of_the_table_is_there() -> None:
    for test in effects.read_table(effects.TABLE.read_text().splitlines()):
        file, function, parameter = re.fullmatch(r"(.*)::(\w+)(?:\[(.*)\])?", test).groups()  # type: ignore[union-attr]
        assert re.search(rf"^(async )?def {function}\(", texts()[file], re.MULTILINE), test
        assert f'"{parameter or ""}' in texts()[file], test


def test_a_test_that_shows_less_than_its_row_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(
        "from tests import effects\n"
        f"effects.ROWS = effects.read_table({ROWS.splitlines()!r})\n"
        "def pytest_configure(config): config.pluginmanager.register(effects)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-rf",
         "--tb=line", "--rootdir", tmp_path, tmp_path],
        cwd=ROOT, env=os.environ | {"COLUMNS": "400"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    assert len(said) == len(MISSED), done.stdout + done.stderr
    for line, (test, what) in zip(said, MISSED.items(), strict=True):
        assert f"::{test} " in line
        assert what in line
        assert "nnha_lost" not in line
