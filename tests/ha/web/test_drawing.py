"""The drawing of the cluster: what is joined with what, states of cells, and its bounds."""

from dataclasses import replace

import pytest

from ha.cluster.files_view import DatanodeView, VolumeView
from ha.cluster.unreachable import NOT_RUNNING
from ha.cluster.view import ClusterView, JournalNodeRow
from ha.cluster.zookeeper_view import LockView
from ha.web import drawing
from ha.web.drawing import NARROW, WIDE, arrange, short
from tests.ha.web.recorded import FILES, many
from tests.ha.web.situations import HEALTHY, SITUATIONS, with_files


def words(view: ClusterView) -> str:
    return drawing.words(arrange(view, WIDE))


WIRES: dict[str, list[str]] = {
    "healthy": ["lock", "writes", "writes", "writes"],
    "failover-under-way": ["lock"],
    "nobody-active": [],
    "zookeeper-away": ["writes", "writes", "writes"],
    "two-journalnodes-away": ["lock", "writes", "away", "away"],
    "learner": ["lock", "writes", "writes", "away"],
    "nobody-answers": [],
}


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_lock_and_the_edits_are_joined_as_they_are(name: str, width: int) -> None:
    assert [kind for kind, _ in arrange(SITUATIONS[name], width).wires] == WIRES[name]


def test_a_silent_journalnode_is_neither_reached_nor_away() -> None:
    silent = replace(
        HEALTHY,
        namenodes=(replace(HEALTHY.namenodes[0], journal=()), HEALTHY.namenodes[1]),
        journalnodes=tuple(
            JournalNodeRow(one.node, error="no answer in 1 s") for one in HEALTHY.journalnodes
        ),
    )
    found = arrange(silent, WIDE)
    assert [kind for kind, _ in found.wires] == ["lock", "unsure", "unsure", "unsure"]
    assert "spare ones not known" in words(silent)
    assert {box.mark.word for box in found.boxes if box.name.startswith("jn")} == {"unknown"}


def test_a_holder_that_is_not_known_has_no_lock() -> None:
    view = replace(HEALTHY, lock=LockView(holder="nn1", error="no answer"))
    assert not any(box.locked for box in arrange(view, WIDE).boxes)
    assert "lock: not known" in words(view)
    assert "lock: free" in words(replace(HEALTHY, lock=LockView()))


def test_the_words_say_what_the_drawing_shows() -> None:
    assert words(HEALTHY) == (
        "ZooKeeper, lock: nn1. JournalNodes: 3 of 3, can lose 1. DataNodes: 12 live, 44% full. "
        "zk1.example:2181 follower; zk2.example:2181 leader; zk3.example:2181 follower; "
        "nn1 active  ZKFC: healthy; nn2 standby 0 behind ZKFC: healthy; jn1.example:8485 in sync "
        "0 behind; jn2.example:8485 in sync 0 behind; jn3.example:8485 in sync 0 behind."
    )
    under_way = words(SITUATIONS["failover-under-way"])
    assert "nn1 down  ZKFC: not responding; nn2 standby takes over ZKFC: healthy" in under_way
    assert "DataNodes: not known" in under_way
    assert "1 of 3, NO QUORUM" in words(SITUATIONS["two-journalnodes-away"])
    assert "197 live, 2 silent, 1 dead, 44% full" in words(SITUATIONS["data-at-risk"])
    by_hand = replace(HEALTHY, automatic_failover=False, zkfcs=(), journalnodes=(), zookeepers=())
    assert words(by_hand) == "DataNodes: 12 live, 44% full. nn1 active; nn2 standby 0 behind."


def node(
    used: int | None, state: str = "live", service: str = "in service", failed: int = 0
) -> DatanodeView:
    room = () if used is None else (VolumeView("v", "DISK", False, 1000, used, 0, 0),)
    return DatanodeView("u", "d1", "a:1", state, 1.0, 0, failed, room, service=service)


CELLS = {
    "empty": (node(0), 0, "good", "live"),
    "a trace": (node(1), 1, "good", "live"),
    "half": (node(500), 4, "good", "live"),
    "full": (node(1000), 8, "good", "live"),
    "more than full": (node(1500), 8, "good", "live"),
    "no room reported": (node(None), None, "good", "live"),
    "silent": (node(500, "stale"), 4, "warning", "stale"),
    "dead": (node(500, "dead"), 4, "bad", "dead"),
    "a failed volume": (node(500, failed=1), 4, "warning", "live, volume failed"),
    "leaves": (node(500, service="decommissioning"), 4, "idle", "decommissioning"),
    "left, and is off": (node(0, "dead", "decommissioned"), 0, "idle", "dead, decommissioned"),
    "died while it left": (node(0, "dead", "decommissioning"), 0, "bad", "dead"),
    "silent while it left": (node(0, "stale", "decommissioning"), 0, "warning", "stale"),
    "of a newer version's state": (node(0, "asleep"), 0, "bad", "asleep"),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_datanode_is_a_cell_with_its_state_and_fill(name: str) -> None:
    one, fill, kind, word = CELLS[name]
    files = replace(FILES, datanodes=(one,))
    ((_, _, filled, mark, words_of),) = arrange(with_files(files), WIDE).cells
    assert (filled, mark.kind, mark.word) == (fill, kind, word)
    assert words_of.startswith(f"d1: {word}")
    assert one.well is (kind == "good")


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("number", [1, 2, 19, 200, 240])
def test_each_datanode_has_its_own_place_within_the_drawing(number: int, width: int) -> None:
    files = replace(FILES, live_datanodes=number, datanodes=many(number, 7))
    found = arrange(with_files(files), width)
    assert len({(x, y) for x, y, *_ in found.cells}) == number
    assert all(0 <= x <= width - 14 for x, *_ in found.cells)
    assert all(y + 20 <= found.height for _, y, *_ in found.cells)
    assert all(box.x >= 0 and box.x + box.width <= width for box in found.boxes)
    again = replace(FILES, live_datanodes=number, datanodes=many(number, 7)[::-1])
    assert arrange(with_files(again), width).cells == found.cells, "a cell has moved"


def test_more_datanodes_are_drawn_rack_by_rack_and_the_rest_is_counted() -> None:
    files = replace(FILES, live_datanodes=3000, dead_datanodes=1, datanodes=many(500, 100))
    found = arrange(with_files(files), NARROW)
    assert found.cells == []
    racks = [box for box in found.boxes if box.name.startswith("/room")]
    assert len(racks) == drawing.MOST_RACKS
    assert racks[0].mark.word == "1 dead, 4 live"
    assert racks[0].mark.kind == "bad"
    assert racks[0].fill is not None
    texts = [text for *_, text in found.labels]
    assert any("60 more are not drawn" in text for text in texts)
    assert "and 2,501 more, none of them worse" in texts
    assert found.height < 3000


def huge() -> ClusterView:
    return replace(
        HEALTHY,
        zookeepers=HEALTHY.zookeepers * 40,
        journalnodes=HEALTHY.journalnodes * 40,
        namenodes=(
            *HEALTHY.namenodes,
            *(
                replace(HEALTHY.namenodes[1], namenode=f"n{n}", error=NOT_RUNNING)
                for n in range(50)
            ),
        ),
    )


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_huge_cluster_is_bounded(width: int) -> None:
    found = arrange(huge(), width)
    assert len(found.boxes) == 3 * drawing.MOST_BOXES
    assert len(found.wires) == 1 + drawing.MOST_BOXES
    assert sum("more are not drawn" in text for *_, text in found.labels) == 3


def test_a_name_is_cut_in_its_middle() -> None:
    assert short("jn1.example:8485", 16) == "jn1.example:8485"
    assert short("jn1.example:8485", 11) == "jn1.e…:8485"
    assert short("abc", 2) == "a…"
