"""Which problems are reported, and which states near them are none: the edges of each rule."""

from dataclasses import replace

import pytest

from ha.cluster import view as cluster_view
from ha.cluster.problems import formatting, problems, problems_of_roles
from ha.cluster.unreachable import NOT_RUNNING
from ha.cluster.zookeeper_view import LockView, NoticesView, ZooKeeperRow
from tests.ha.cli.plan_views import GONE, HUNG, by_hand, with_namenode, without_answer
from tests.ha.cli.test_cluster_view import ACTIVE, SILENT, WELL
from tests.ha.notices.test_model import MEMBER, PAUSE
from tests.ha.web.recorded import FILES

NO_QUORUM = "ZooKeeper has no quorum: no failover is possible until it is back"
QUORUM_UNKNOWN = "whether ZooKeeper has a quorum is not known"


def drained(name: str, failure: str | None) -> cluster_view.ClusterView:
    """Drain one NameNode; ``failure`` is what its ZKFC says, None: it has no member."""
    members = {} if failure is None else {name: replace(MEMBER, hand_over_failure=failure)}
    return replace(WELL, notices=NoticesView(drains={name: PAUSE}, members=members))


@pytest.mark.parametrize(
    ("failure", "expected"),
    [(None, []), ("", []), ("no candidate", ["nn1 is drained and cannot hand over: no candidate"])],
    ids=["its ZKFC has no member", "nothing failed", "the last try failed"],
)
def test_a_drained_active_is_a_problem_once_it_could_not_hand_over(
    failure: str | None, expected: list[str]
) -> None:
    assert list(problems(drained("nn1", failure))) == expected


def test_a_second_zkfc_and_a_certificate_that_ends_are_problems() -> None:
    view = replace(
        WELL,
        notices=NoticesView(namesakes=(replace(MEMBER, host="h9"),)),
        certificates=("a certificate ends",),
    )
    assert list(problems(view)) == [
        "a second ZKFC of nn1 runs: process 42 on h9, since 2026-05-01T12:00:00.000Z; it may not "
        "join the election",
        "a certificate ends",
    ]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (GONE, ["no NameNode is active"]),
        (HUNG, ["no NameNode says that it is active; nn1 holds the lock and gives no answer"]),
        (without_answer(WELL, "nn2"), []),
        (
            without_answer(replace(HUNG, lock=LockView()), "nn2"),
            ["no NameNode says that it is active; nn1 and nn2 give no answer and may be"],
        ),
    ],
    ids=["the holder runs no more", "the holder is silent", "a standby is silent", "all are"],
)
def test_who_is_active(view: cluster_view.ClusterView, expected: list[str]) -> None:
    assert list(problems_of_roles(view)) == expected


def test_missing_blocks_are_a_problem_and_the_active_tells_of_them() -> None:
    lost = with_namenode(WELL, "nn1", files=replace(FILES, missing=3))
    (found,) = problems(lost)
    assert found.startswith("3 blocks have no usable replica")
    assert list(problems_of_roles(lost)) == []
    assert not any("blocks" in one for one in problems(with_namenode(lost, "nn1", state="standby")))


def journal(*rows: cluster_view.JournalNodeRow) -> cluster_view.ClusterView:
    """Return a look with a journal of these nodes, of which the active says nothing."""
    return replace(
        WELL, namenodes=(replace(ACTIVE, journal=()), WELL.namenodes[1]), journalnodes=rows
    )


def journalnode(number: int, last_txid: int | None = 5000) -> cluster_view.JournalNodeRow:
    return cluster_view.JournalNodeRow(f"j{number}:1", formatted=True, last_txid=last_txid)


CAN_LOSE_NONE = "the quorum can lose 0 more JournalNodes"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], []),
        ([journalnode(1)], []),
        ([journalnode(1), journalnode(2)], [CAN_LOSE_NONE]),
        ([journalnode(1), journalnode(2), journalnode(3)], []),
        ([journalnode(1), journalnode(2), journalnode(3, last_txid=4000)], []),
        (
            [journalnode(1), journalnode(2), journalnode(3, last_txid=3999)],
            ["JournalNode j3:1 is 1,001 transactions behind"],
        ),
        ([journalnode(1), journalnode(2), journalnode(3, last_txid=None)], []),
    ],
    ids=[
        "there is none",
        "one was never meant to be lost",
        "two lose their quorum with one",
        "three can lose one",
        "a thousand behind is the time between two questions",
        "more than a thousand behind",
        "how far it is, it does not tell",
    ],
)
def test_journal(rows: list[cluster_view.JournalNodeRow], expected: list[str]) -> None:
    assert list(problems(journal(*rows))) == expected


def ensemble(well: int, gone: int = 0, silent: int = 0) -> cluster_view.ClusterView:
    """Return a look with servers that serve, that do not run and that do not answer."""
    errors = [*[None] * well, *[NOT_RUNNING] * gone, *[SILENT] * silent]
    rows = tuple(ZooKeeperRow(f"z{number}:1", error=error) for number, error in enumerate(errors))
    return replace(WELL, zookeepers=rows)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (ensemble(1), []),
        (ensemble(0, gone=1), [NO_QUORUM]),
        (ensemble(0, silent=1), [QUORUM_UNKNOWN]),
        (ensemble(2, gone=1), []),
        (ensemble(1, gone=1), [NO_QUORUM]),
        (ensemble(1, gone=1, silent=1), [QUORUM_UNKNOWN]),
        (ensemble(1, silent=2), [QUORUM_UNKNOWN]),
        (ensemble(3, gone=2), []),
        (ensemble(2, gone=3), [NO_QUORUM]),
        (ensemble(2, gone=2, silent=1), [QUORUM_UNKNOWN]),
        (by_hand(WELL), []),
        (
            replace(WELL, lock=LockView(error="the session is closed")),
            ["who holds the lock is not known: the session is closed"],
        ),
    ],
    ids=[
        "the only one serves",
        "the only one is gone",
        "the only one is silent",
        "two of three",
        "one of two",
        "one of three, and one may be",
        "one of three, and two may be",
        "three of five",
        "two of five",
        "two of five, and one may be",
        "failover is by hand",
        "it serves, and tells nothing of the lock",
    ],
)
def test_zookeeper_has_a_quorum_with_more_than_half(
    view: cluster_view.ClusterView, expected: list[str]
) -> None:
    rows = {f"ZooKeeper {row.server}: {row.error}" for row in view.zookeepers}
    assert [one for one in problems(view) if one not in rows] == expected


def bare(number: int) -> cluster_view.JournalNodeRow:
    return cluster_view.JournalNodeRow(f"j{number}:1", formatted=False)


def absent(number: int, error: str) -> cluster_view.JournalNodeRow:
    return cluster_view.JournalNodeRow(f"j{number}:1", error=error)


ANEW = "nnha namenode --format for a new file system, else --initialize-shared-edits"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([journalnode(1), journalnode(2), journalnode(3)], None),
        ([], None),
        ([bare(1), bare(2), bare(3)], ANEW),
        ([bare(1), journalnode(2), journalnode(3)], "nnha journal format --node j1:1"),
        ([bare(1), absent(2, SILENT), journalnode(3)], "nnha journal format --node j1:1"),
        (
            [bare(1), absent(2, NOT_RUNNING), journalnode(3)],
            "start the JournalNodes that do not answer; then nnha journal status",
        ),
    ],
    ids=[
        "each has storage",
        "there is no journal",
        "none has storage",
        "the others are a quorum",
        "the others may be a quorum",
        "the others are no quorum",
    ],
)
def test_formatting(rows: list[cluster_view.JournalNodeRow], expected: str | None) -> None:
    assert formatting(journal(*rows)) == expected
