"""What counts as a problem of the cluster, as a table of situations."""

import dataclasses

import pytest

from ha.cluster.candidates import candidates_of
from ha.cluster.marks import Kind, of_journalnode
from ha.cluster.problems import problems
from ha.cluster.row_notes import journalnode_remarks
from ha.cluster.strangers import mark_strangers
from ha.cluster.view import ClusterView, JournalNodeRow, JournalView, NameNodeRow, ZkfcRow
from ha.cluster.zookeeper_view import LockView, ZooKeeperRow

JOURNALS = ("j1:1", "j2:1", "j3:1")
ACTIVE = NameNodeRow(
    "nn1",
    "h:1",
    state="active",
    epoch=5,
    last_txid=5000,
    journal=tuple(JournalView(node, in_sync=True, last_error=None) for node in JOURNALS),
)
STANDBY = NameNodeRow("nn2", "h:2", state="standby", last_txid=4990)
SILENT = "no answer in 2 s"
GONE = "not running (connection refused)"
WELL = ClusterView(
    nameservice="ns1",
    taken_at="2026-01-01T00:00:00.000Z",
    seconds=0.1,
    automatic_failover=True,
    namenodes=(ACTIVE, STANDBY),
    zkfcs=(ZkfcRow("nn1", "h:3", health="healthy"), ZkfcRow("nn2", "h:4", health="healthy")),
    journalnodes=tuple(
        JournalNodeRow(node, formatted=True, promised_epoch=5, last_txid=5000) for node in JOURNALS
    ),
    zookeepers=(ZooKeeperRow("z:1", mode="standalone"),),
    lock=LockView(holder="nn1"),
    limit_seconds=2.0,
)


def journals(*changes: dict[str, object]) -> dict[str, object]:
    rows = list(WELL.journalnodes)
    for index, change in enumerate(changes):
        rows[index] = dataclasses.replace(rows[index], **change)  # type: ignore[arg-type]
    return {"journalnodes": tuple(rows)}


def out_of_sync(count: int) -> tuple[NameNodeRow, NameNodeRow]:
    views = tuple(
        JournalView(node, in_sync=index >= count, last_error=None)
        for index, node in enumerate(JOURNALS)
    )
    return (dataclasses.replace(ACTIVE, journal=views), STANDBY)


SITUATIONS: dict[str, tuple[dict[str, object], list[str]]] = {
    "all is well": ({}, []),
    "nobody is active": (
        {"namenodes": (dataclasses.replace(ACTIVE, state="standby"), STANDBY)},
        ["no NameNode is active"],
    ),
    "the lock's holder is silent": (
        {"namenodes": (dataclasses.replace(ACTIVE, state=None, error=SILENT), STANDBY)},
        [
            "no NameNode says that it is active; nn1 holds the lock and gives no answer",
            f"NameNode nn1: {SILENT}",
        ],
    ),
    "nothing at all answers": (
        {
            "namenodes": tuple(
                NameNodeRow(row.namenode, row.address, error=SILENT) for row in (ACTIVE, STANDBY)
            ),
            "zkfcs": (ZkfcRow("nn1", "h:3", error=SILENT),),
            "journalnodes": (),
            "zookeepers": (ZooKeeperRow("z:1", error=SILENT),),
            "lock": LockView(error="no ZooKeeper server answers"),
        },
        [
            "none of 4 processes gave an answer in 2 s, so nothing is known of the cluster: check "
            "this machine's network and load, then ask again with more time (--timeout 10)",
        ],
    ),
    "two are active": (
        {"namenodes": (ACTIVE, dataclasses.replace(STANDBY, state="active"))},
        ["nn1 and nn2 both say that they are active"],
    ),
    "a JournalNode is silent, and in sync with the active": (
        journals({"error": SILENT}),
        [f"JournalNode j1:1: {SILENT}"],
    ),
    "two JournalNodes are silent, and nobody knows of them": (
        {
            **journals({"error": SILENT}, {"error": SILENT}),
            "namenodes": (dataclasses.replace(ACTIVE, journal=()), STANDBY),
        },
        [
            "whether the journal has a quorum is not known: too many of its 3 JournalNodes give no "
            "answer",
            f"JournalNode j1:1: {SILENT}",
            f"JournalNode j2:1: {SILENT}",
        ],
    ),
    "a JournalNode is a learner": (
        journals({"learner": True}),
        ["the quorum can lose 0 more JournalNodes", "JournalNode j1:1: LEARNER"],
    ),
    "a NameNode is silent, and none says that it is active": (
        {
            "namenodes": (
                dataclasses.replace(ACTIVE, state="standby"),
                NameNodeRow("nn2", "h:2", error=SILENT),
            ),
            "lock": LockView(),
        },
        [
            "no NameNode says that it is active; nn2 gives no answer and may be",
            f"NameNode nn2: {SILENT}",
        ],
    ),
    "another holds the lock": (
        {"lock": LockView(holder="nn2")},
        ["nn1 is active, but nn2 holds the lock"],
    ),
    "nobody holds the lock": ({"lock": LockView()}, ["nn1 is active, but no ZKFC holds the lock"]),
    "nobody needs a lock without controllers": (
        {"lock": LockView(), "automatic_failover": False, "zkfcs": (), "zookeepers": ()},
        [],
    ),
    "one JournalNode is gone": (
        journals({"error": GONE}),
        ["the quorum can lose 0 more JournalNodes", f"JournalNode j1:1: {GONE}"],
    ),
    "two JournalNodes are gone": (
        journals({"error": GONE}, {"error": GONE}),
        [
            "the journal has no quorum: nothing can be written",
            f"JournalNode j1:1: {GONE}",
            f"JournalNode j2:1: {GONE}",
        ],
    ),
    "a JournalNode's disk has failed": (
        journals({"failed_because": "disk full"}),
        ["the quorum can lose 0 more JournalNodes", "JournalNode j1:1: FAILED: disk full"],
    ),
    "a JournalNode is not formatted": (
        journals({"formatted": False}),
        ["the quorum can lose 0 more JournalNodes", "JournalNode j1:1: NOT FORMATTED"],
    ),
    "the active says that one is out of sync": (
        {"namenodes": out_of_sync(1)},
        ["the quorum can lose 0 more JournalNodes", "JournalNode j1:1: OUT OF SYNC"],
    ),
    "a JournalNode is far behind": (
        journals({"last_txid": 10}),
        ["JournalNode j1:1 is 4,990 transactions behind"],
    ),
    "a standby is gone": (
        {"namenodes": (ACTIVE, NameNodeRow("nn2", "h:2", error=GONE))},
        [f"NameNode nn2: {GONE}"],
    ),
    "a controller is gone": (
        {"zkfcs": (WELL.zkfcs[0], ZkfcRow("nn2", "h:4", error=GONE))},
        [f"ZKFC of nn2: {GONE}"],
    ),
    "ZooKeeper is gone": (
        {"zookeepers": (ZooKeeperRow("z:1", error=GONE),), "lock": LockView(error="none answers")},
        [
            f"ZooKeeper z:1: {GONE}",
            "ZooKeeper has no quorum: no failover is possible until it is back",
        ],
    ),
}


@pytest.mark.parametrize("case", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_problems(case: tuple[dict[str, object], list[str]]) -> None:
    change, expected = case
    view = dataclasses.replace(WELL, **change)  # type: ignore[arg-type]
    assert list(problems(view)) == expected


def test_without_an_active_the_journal_tells_epoch_and_newest_transaction() -> None:
    gone = NameNodeRow("nn1", "h:1", error=GONE)
    view = dataclasses.replace(WELL, namenodes=(gone, STANDBY))
    assert view.active is None
    assert view.epoch == 5
    assert view.lag(STANDBY) == 10
    assert view.lag(gone) is None


def test_a_standby_that_was_asked_later_than_the_active_is_not_ahead() -> None:
    assert WELL.lag(dataclasses.replace(STANDBY, last_txid=5003)) == 0
    assert WELL.lag(ACTIVE) is None


def test_w22_a_second_zkfc_is_no_passing_obstacle_and_a_ceded_one_is() -> None:
    def may(because: str) -> bool:
        row = dataclasses.replace(WELL.zkfcs[1], in_election=False, out_because=because)
        view = dataclasses.replace(WELL, zkfcs=(WELL.zkfcs[0], row))
        return next(one for one in candidates_of(view) if one.namenode == row.namenode).callable

    assert may("asked to cede")
    assert not may("another zkfc of nn2 runs: process 7 on h9")


def keeper(number: int, cluster: str | None, *, learner: bool = False) -> JournalNodeRow:
    return JournalNodeRow(f"j{number}:1", formatted=True, learner=learner, cluster_id=cluster)


STRANGERS = {
    "all alike": ([keeper(1, "A"), keeper(2, "A"), keeper(3, "A", learner=True)], []),
    "one of another": ([keeper(1, "A"), keeper(2, "B"), keeper(3, "A")], ["j2:1"]),
    "voters outweigh": (
        [keeper(1, "A"), keeper(2, "B", learner=True), keeper(3, "B", learner=True)],
        ["j2:1", "j3:1"],
    ),
    "one each": ([keeper(1, "A"), keeper(2, "B"), JournalNodeRow("j3:1", error="silent")], []),
    "bare": ([keeper(1, "A"), JournalNodeRow("j2:1", formatted=False)], []),
    "none": ([], []),
}


@pytest.mark.parametrize("case", STRANGERS)
def test_a_journalnode_of_another_cluster_is_a_stranger(case: str) -> None:
    rows, strange = STRANGERS[case]
    marked = mark_strangers(rows)
    assert [row.node for row in marked if row.stranger is not None] == strange
    view = dataclasses.replace(WELL, journalnodes=marked)
    for row in marked:
        assert (view.state_of(row) == "STRANGER") is (row.node in strange)
        if row.node in strange:
            assert view.takes_part(row) is False
            assert any("of cluster B" in one for one in journalnode_remarks(view, row))
            assert of_journalnode(view, row).kind is Kind.BAD
