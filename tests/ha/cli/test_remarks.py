"""What is shown next to each row of a look, and above all of them, as tables of situations."""

from dataclasses import replace

import pytest

from ha.cluster import row_notes
from ha.cluster.view import ClusterView, JournalNodeRow, JournalView, NameNodeRow, ZkfcRow
from ha.cluster.zookeeper_view import NoticesView
from tests.ha.cli import plan_views
from tests.ha.cli.test_cluster_view import ACTIVE, SILENT, WELL
from tests.ha.notices.test_model import PAUSE


def test_each_pause_and_drain_is_told_with_its_end() -> None:
    noted = replace(WELL, notices=NoticesView(pause=PAUSE, drains={"nn2": PAUSE}))
    why = "by ann@ops1 until 2026-05-01T14:00:00.000Z: new switch"
    assert list(row_notes.in_force(noted)) == [
        f"automatic failover is paused {why}  → nnha resume",
        f"nn2 is drained {why}  → nnha drain nn2 --end",
    ]


@pytest.mark.parametrize(
    ("view", "beginnings"),
    [
        (WELL, []),
        (plan_views.UNREADY, ["failover is blocked: nn2: NameNode: not ready"]),
        (
            plan_views.without_answer(WELL, "nn2"),
            ["whether a failover is possible is not known: nn2: NameNode: no answer"],
        ),
        (plan_views.by_hand(plan_views.UNREADY), []),
        (plan_views.with_namenode(plan_views.UNREADY, "nn1", state="standby", ready=False), []),
        (plan_views.paused(plan_views.UNREADY), ["automatic failover is paused by ann@ops1"]),
    ],
    ids=[
        "one could take over",
        "the only other one cannot",
        "the only other one is silent",
        "failover is by hand",
        "there is no active that could fail",
        "in a pause there is no failover",
    ],
)
def test_what_blocks_a_failover_is_told_where_one_could_be_needed(
    view: ClusterView, beginnings: list[str]
) -> None:
    found = list(row_notes.notices(view))
    assert len(found) == len(beginnings)
    assert all(one.startswith(begin) for one, begin in zip(found, beginnings, strict=True))


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        (("journal-epoch",), True),
        (("shell(/bin/true)",), True),
        (("sshfence",), False),
        (("sshfence", "journal-epoch"), False),
        ((), False),
        (("no such method",), False),
    ],
)
def test_fencing_that_proves_nothing_is_told(methods: tuple[str, ...], *, told: bool) -> None:
    found = list(row_notes.warnings(plan_views.with_zkfc(WELL, "nn2", fencing_methods=methods)))
    assert [one.startswith("the ZKFC of nn2 fences edits only") for one in found] == [True] * told


@pytest.mark.parametrize(
    ("softwares", "end"),
    [
        (("nnha", "nnha"), "until its lease ends "),
        (("Hadoop 3.4.1", "Hadoop 3.4.1"), "until it learns of its successor "),
        (("nnha", "Hadoop 3.4.1"), "until it learns of its successor "),
    ],
    ids=["ours", "Hadoop's", "one of each"],
)
def test_how_long_a_former_active_may_serve_reads(softwares: tuple[str, str], end: str) -> None:
    view = plan_views.with_zkfc(WELL, "nn2", fencing_methods=("journal-epoch",))
    for name, software in zip(("nn1", "nn2"), softwares, strict=True):
        view = plan_views.with_namenode(view, name, software=software)
    (found,) = row_notes.warnings(view)
    assert end in found


STARTED_LATE = "this command itself took 2.1 s to start"
STOOD_STILL = "this command itself stood still for 0.6 s"


@pytest.mark.parametrize(
    ("start_seconds", "delay_seconds", "beginnings"),
    [
        (2.0, 0.5, []),
        (2.1, 0.0, [STARTED_LATE]),
        (0.0, 0.6, [STOOD_STILL]),
        (2.1, 0.6, [STARTED_LATE, STOOD_STILL]),
    ],
)
def test_own_lateness(start_seconds: float, delay_seconds: float, beginnings: list[str]) -> None:
    view = replace(WELL, own_start_seconds=start_seconds, own_delay_seconds=delay_seconds)
    found = list(row_notes.own_lateness(view))
    assert len(found) == len(beginnings)
    assert all(one.startswith(begin) for one, begin in zip(found, beginnings, strict=True))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"state": None, "error": SILENT}, [SILENT]),
        ({"note": "its page is another's"}, ["its page is another's"]),
        ({"error": SILENT, "note": "noted"}, [SILENT, "noted"]),
        ({"ready": True}, []),
        ({"ready": False}, ["cannot be promoted: no reason given"]),
        (
            {"ready": False, "not_ready_reason": "it is loading"},
            ["cannot be promoted: it is loading"],
        ),
        ({"ready": False, "state": "active"}, []),
    ],
    ids=[
        "a standby",
        "silent",
        "noted",
        "both",
        "ready",
        "not ready",
        "not ready, with its reason",
        "the active need not be promoted",
    ],
)
def test_remarks_of_a_namenode(changes: dict[str, object], expected: list[str]) -> None:
    row = replace(NameNodeRow("nn2", "h:2", state="standby"), **changes)  # type: ignore[arg-type]
    assert list(row_notes.namenode_remarks(row)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"error": SILENT}, [SILENT]),
        ({"health_reason": "it is slow"}, ["it is slow"]),
        ({"out_because": "asked to cede"}, ["asked to cede"]),
        ({"note": "from its znode"}, ["from its znode"]),
        (
            {"error": "e", "health_reason": "h", "out_because": "o", "note": "n"},
            ["e", "h", "o", "n"],
        ),
        (
            {"health_reason": "it is slow", "out_because": "its NameNode is ill: it is slow"},
            ["its NameNode is ill: it is slow"],
        ),
        ({"health_reason": "it is slow", "note": "it is slow"}, ["it is slow"]),
        ({"last_failure": "not fenced"}, ["its last takeover failed: not fenced"]),
    ],
    ids=[
        "well",
        "silent",
        "its NameNode is ill",
        "out",
        "noted",
        "all of it",
        "why it is out says why the NameNode is ill",
        "the note says why the NameNode is ill",
        "its last takeover failed",
    ],
)
def test_remarks_of_a_zkfc(changes: dict[str, object], expected: list[str]) -> None:
    row = replace(ZkfcRow("nn2", "h:4"), **changes)  # type: ignore[arg-type]
    assert list(row_notes.zkfc_remarks(row)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"error": SILENT}, [SILENT]),
        ({"failed_because": "disk full"}, ["disk full"]),
        ({"disk_warning": "1 GB is free"}, ["1 GB is free"]),
        ({"error": "e", "failed_because": "f", "disk_warning": "w"}, ["e", "f", "w"]),
        (
            {"damaged_segments": (1, 1001, 2001, 3001)},
            ["damaged segments: 4, from transaction 1, 1,001, 2,001"],
        ),
    ],
    ids=["well", "silent", "failed", "short of room", "all of it", "damaged"],
)
def test_remarks_of_a_journalnode(changes: dict[str, object], expected: list[str]) -> None:
    row = replace(WELL.journalnodes[0], **changes)  # type: ignore[arg-type]
    assert list(row_notes.journalnode_remarks(WELL, row)) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([], []),
        ([JournalView("j1:1", in_sync=False, last_error="refused")], ["the active says: refused"]),
        ([JournalView("j1:1", in_sync=True, last_error="refused")], []),
        ([JournalView("j1:1", in_sync=False, last_error=None)], []),
        ([JournalView("j2:1", in_sync=False, last_error="refused")], []),
    ],
    ids=["nothing", "out of sync", "an error of before", "out of sync, no error", "of another"],
)
def test_what_the_active_says_of_a_journalnode(
    seen: list[JournalView], expected: list[str]
) -> None:
    view = replace(WELL, namenodes=(replace(ACTIVE, journal=tuple(seen)), WELL.namenodes[1]))
    row = JournalNodeRow("j1:1", formatted=True)
    assert list(row_notes.journalnode_remarks(view, row)) == expected


def test_without_an_active_nothing_is_said_of_a_journalnode() -> None:
    seen = (JournalView("j1:1", in_sync=False, last_error="refused"),)
    view = replace(WELL, namenodes=(replace(ACTIVE, state="standby", journal=seen),))
    assert list(row_notes.journalnode_remarks(view, WELL.journalnodes[0])) == []
