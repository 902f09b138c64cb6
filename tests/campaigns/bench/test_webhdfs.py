"""The WebHDFS bench holds speed and memory against the right bars, and says what is not there."""

from typing import Any

from click.testing import CliRunner

from tests.campaigns.bench import webhdfs
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.webhdfs import Side


def side(up: list[float], down: list[float]) -> Side:
    return Side("http://h:1", {}, {"up": up, "down": down}, {"up": [0.5] * 3, "down": [0.2] * 3})


def told(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row.figure, row.value, row.bar, row.holds) for row in rows]


def test_each_round_is_held_against_the_one_next_to_it() -> None:
    theirs = side([2.0, 4.0, 2.0], [1.0, 1.0, 1.0])
    rows = webhdfs.speed_rows(side([2.5, 4.0, 2.0], [2.0, 1.0, 2.0]), theirs, 100)
    assert told(rows) == [
        ("upload of 100 MB", 1.0, ">= 0.8", True),
        ("upload, CPU of our DataNode", 0.5, "-", None),
        ("download of 100 MB", 0.5, ">= 0.8", False),
        ("download, CPU of our DataNode", 0.2, "-", None),
    ]
    assert rows[0].peer == "40 MB/s, Hadoop's 50 MB/s; 3 rounds in turn: 0.80-1.00"


def test_growth_beyond_what_the_page_promises_is_missed() -> None:
    grown = {("NameNode", "up"): 32.0, ("DataNode", "down"): 128.1}
    assert told(webhdfs.memory_rows(grown, 64, 32)) == [
        ("NameNode, 64 uploads at once", 32.0, "<= 32", True),
        ("DataNode, 64 downloads at once", 128.1, "<= 128", False),
    ]


def test_without_hadoop_the_speed_is_not_measured() -> None:
    environment = {"NNHA_INTEROP": None}
    ran = CliRunner().invoke(webhdfs.main, ["--only", "speed", "--json"], env=environment)
    assert ran.exit_code == 0
    assert '"figure": "upload of 1024 MB", "value": null' in ran.output
    assert "not measured: Hadoop's daemons are not asked for" in ran.output
    assert "--rounds" in CliRunner().invoke(webhdfs.main, ["--help"]).output
