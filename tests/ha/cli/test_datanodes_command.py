"""``nnha datanodes``: the list, and why there is none."""

import dataclasses

import pytest
from rich.console import Console

from ha.cli.status.datanodes import Listing, as_json, no_list
from ha.cluster.files_view import FilesView, files_view
from ha.cluster.view import ClusterView
from ha.console.result import Code
from tests.ha.cli import schema
from tests.ha.cli.plan_views import ALL_SILENT, HUNG, NOBODY, with_namenode
from tests.ha.cli.test_cluster_view import WELL
from tests.ha.web.recorded import FILES, NODES


def files(**changes: object) -> FilesView:
    page = dataclasses.asdict(FILES) | {"live_datanodes": 2, "datanodes": NODES} | changes
    found = files_view(page)
    assert found is not None
    return found


def screen(found: FilesView, width: int = 120) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(Listing(found))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_worst_stands_first_with_what_is_wrong() -> None:
    told = screen(files(stale_datanodes=1, failed_volumes=1))
    assert told[0].split() == [
        "DATANODE", "ADDRESS", "RACK", "STATE", "SEEN", "BLOCKS", "VOLUMES", "USED", "NOTE",
    ]  # fmt: skip
    assert told[1].split() == [
        "d3.example", "10.0.0.3:9866", "stale", "41", "s", "ago", "4,000", "2", "3T", "of", "8T",
        "1", "failed:", "v2",
    ]  # fmt: skip
    assert told[2].split()[:3] == ["d1.example", "10.0.0.1:9866", "live"]
    assert told[-2:] == [
        "! 1 DataNode is silent: d3.example for 41 s  → nnha datanodes",
        "! 1 volume has failed on d3.example  → nnha datanodes",
    ]


def test_those_that_are_not_listed_are_counted() -> None:
    assert "and 3 more, none of them worse" in screen(files(live_datanodes=4, dead_datanodes=1))
    assert not any("more" in line for line in screen(files()))


def test_no_datanode_is_no_table() -> None:
    told = screen(files(live_datanodes=0, blocks=0, datanodes=[]))
    assert told[0].startswith("DataNodes 0 live")


def test_the_document_is_as_its_schema_says() -> None:
    document = as_json("ns1", "nn1", files(dead_datanodes=7))
    assert schema.faults("datanodes", document) == []
    assert document["not_listed"] == 7


def test_a_datanode_that_is_not_described_whole_is_left_out() -> None:
    assert len(files(datanodes=[NODES[0], {"uuid": "x"}, 7]).datanodes) == 1
    assert files(datanodes=None).datanodes == ()


HADOOP = with_namenode(WELL, "nn1", software="Hadoop 3.4.1")
PAGELESS = with_namenode(WELL, "nn1", files=None, note="status page: HTTP 401")
ENDINGS = {
    "none is active": (NOBODY, 3, Code.NO_ACTIVE, "no NameNode is active"),
    "the lock's holder is silent": (HUNG, 6, Code.NO_ANSWER, "nn1 holds the lock"),
    "all are silent": (ALL_SILENT, 6, Code.NO_ANSWER, "no NameNode says"),
    "the page fails": (PAGELESS, 6, Code.NO_ANSWER, "status page: HTTP 401"),
    "Hadoop's": (HADOOP, 6, Code.NO_ANSWER, "Hadoop 3.4.1"),
}


@pytest.mark.parametrize(("view", "exit_code", "code", "text"), ENDINGS.values(), ids=ENDINGS)
def test_why_there_isno_list(view: ClusterView, exit_code: int, code: Code, text: str) -> None:
    found = no_list(view)
    assert (found.outcome.exit_code, found.code) == (exit_code, code)
    assert text in found.message
    assert found.hint
