"""The mark of each state: its kind, which decides shape and colour, and its word."""

from dataclasses import replace

import pytest

from ha.cluster import marks
from ha.cluster.candidates import Readiness
from ha.cluster.files_view import DatanodeView
from ha.cluster.marks import Kind, Mark
from ha.cluster.unreachable import ANSWERS_WITH_AN_ERROR, NO_ANSWER, NOT_RUNNING
from ha.cluster.verdict import Condition, Verdict
from ha.cluster.view import ClusterView, JournalNodeRow
from ha.cluster.zookeeper_view import ZooKeeperRow
from ha.notices.model import FailoverResult
from tests.ha.web.situations import HEALTHY, HISTORY, namenode, zkfc

ABSENT = {
    NOT_RUNNING: Mark(Kind.BAD, "down"),
    f"{ANSWERS_WITH_AN_ERROR}: 500": Mark(Kind.BAD, "error"),
    f"{NO_ANSWER} in 1 s": Mark(Kind.UNKNOWN, "unknown"),
}
NN1, ZKFC1, JN1 = HEALTHY.namenodes[0], HEALTHY.zkfcs[0], HEALTHY.journalnodes[0]


def test_no_two_kinds_have_one_shape() -> None:
    shapes = {kind: Mark(kind, "").shape for kind in Kind}
    assert len(set(shapes.values())) == len(Kind)
    assert (shapes[Kind.GOOD], shapes[Kind.BAD]) == ("●", "✖")


VERDICTS = {
    (Condition.SERVING, Readiness.READY): Kind.GOOD,
    (Condition.SERVING, None): Kind.GOOD,
    (Condition.SERVING, Readiness.BLOCKED): Kind.WARNING,
    (Condition.SERVING, Readiness.UNKNOWN): Kind.WARNING,
    (Condition.READ_ONLY, Readiness.READY): Kind.WARNING,
    (Condition.UNREADABLE, Readiness.READY): Kind.BAD,
    (Condition.TAKING_OVER, Readiness.READY): Kind.WARNING,
    (Condition.UNKNOWN, Readiness.READY): Kind.UNKNOWN,
    (Condition.NOT_SERVING, Readiness.READY): Kind.BAD,
    (Condition.TWO_ACTIVE, Readiness.READY): Kind.BAD,
}


@pytest.mark.parametrize(("condition", "failover"), VERDICTS)
def test_the_verdicts_mark(condition: Condition, failover: Readiness | None) -> None:
    found = marks.of_verdict(Verdict(condition, failover, "so it is", ()))
    assert found == Mark(VERDICTS[condition, failover], "so it is")


def test_every_condition_is_in_the_table() -> None:
    assert {condition for condition, _ in VERDICTS} == set(Condition)


@pytest.mark.parametrize("error", ABSENT)
def test_who_gave_no_answer_is_marked_by_what_is_known(error: str) -> None:
    found = [
        marks.of_namenode(replace(NN1, error=error)),
        marks.of_zkfc(replace(ZKFC1, error=error)),
        marks.of_journalnode(HEALTHY, JournalNodeRow(JN1.node, error=error)),
        marks.of_zookeeper(ZooKeeperRow("zk1.example:2181", error=error)),
    ]
    assert found == [ABSENT[error]] * 4


ROLES = {
    "active": (namenode("nn1", "active"), Mark(Kind.GOOD, "active")),
    "standby": (
        replace(namenode("nn1", "standby"), activity="recovering"),
        Mark(Kind.IDLE, "standby"),
    ),
    "observer": (namenode("nn1", "observer"), Mark(Kind.IDLE, "observer")),
    "initializing": (namenode("nn1", "initializing"), Mark(Kind.WARNING, "initializing")),
    "not told": (replace(NN1, state=None), Mark(Kind.UNKNOWN, "not told")),
    "loading": (replace(NN1, activity="loading", progress=0.43), Mark(Kind.WARNING, "loading 43%")),
    "loading, of unknown length": (
        replace(NN1, activity="loading", progress=None),
        Mark(Kind.WARNING, "loading"),
    ),
}


@pytest.mark.parametrize("name", ROLES)
def test_a_namenodes_mark(name: str) -> None:
    row, mark = ROLES[name]
    assert marks.of_namenode(row) == mark


HEALTHS = {
    "healthy": Mark(Kind.GOOD, "healthy"),
    "HEALTHY": Mark(Kind.GOOD, "HEALTHY"),
    "initializing": Mark(Kind.IDLE, "initializing"),
    "not_responding": Mark(Kind.BAD, "not responding"),
    None: Mark(Kind.UNKNOWN, "not told"),
}


@pytest.mark.parametrize("health", HEALTHS)
def test_a_healths_mark(health: str | None) -> None:
    row = replace(zkfc("nn1", "active"), health=health)
    assert marks.of_zkfc(row) == marks.of_health(health) == HEALTHS[health]


def synced(node: str, *, in_sync: bool) -> ClusterView:
    journal = tuple(
        replace(one, in_sync=in_sync) if one.node == node else one for one in NN1.journal
    )
    return replace(HEALTHY, namenodes=(replace(NN1, journal=journal), HEALTHY.namenodes[1]))


JOURNALNODES = {
    "in sync": (HEALTHY, JN1, Kind.GOOD),
    "up": (replace(HEALTHY, namenodes=()), JN1, Kind.GOOD),
    "learner": (HEALTHY, replace(JN1, learner=True), Kind.LEARNER),
    "out of sync": (synced(JN1.node, in_sync=False), JN1, Kind.WARNING),
    "failed": (HEALTHY, replace(JN1, failed_because="its disk"), Kind.BAD),
    "not formatted": (HEALTHY, replace(JN1, formatted=False), Kind.BAD),
}


@pytest.mark.parametrize("word", JOURNALNODES)
def test_a_journalnodes_mark(word: str) -> None:
    view, row, kind = JOURNALNODES[word]
    assert marks.of_journalnode(view, row) == Mark(kind, word)


def test_the_marks_of_servers_of_zookeeper_and_of_records() -> None:
    server = HEALTHY.zookeepers[0]
    assert marks.of_zookeeper(server) == Mark(Kind.GOOD, "follower")
    assert marks.of_zookeeper(replace(server, mode=None)) == Mark(Kind.GOOD, "serving")
    record = HISTORY[0].record
    assert record is not None
    assert marks.of_record(record) == Mark(Kind.GOOD, "succeeded")
    failed = replace(record, result=FailoverResult.FAILED)
    assert marks.of_record(failed) == Mark(Kind.BAD, "failed")


DATANODES = {
    ("live", 0): Kind.GOOD,
    ("live", 1): Kind.WARNING,
    ("stale", 0): Kind.WARNING,
    ("dead", 0): Kind.BAD,
}


@pytest.mark.parametrize(("state", "failed"), DATANODES)
def test_a_datanodes_mark(state: str, failed: int) -> None:
    row = DatanodeView("u", "d1", "10.0.0.1:9866", state, 1.0, 0, failed, ())
    assert marks.of_datanode(row) == Mark(
        DATANODES[state, failed], "live, volume failed" if failed else state
    )
