"""nnha doctor on one look at the cluster: what each check finds, and what it says to do."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ha.cli.explain.doctor.cluster import check_clocks, check_cluster
from ha.cluster.check_result import Finding, fail, ok, unknown, warn
from ha.cluster.problems import no_answer_message
from ha.cluster.unreachable import ask_again
from ha.cluster.view import ClusterView, NameNodeRow
from ha.cluster.zookeeper_view import LockView, NoticesView, ZooKeeperRow
from ha.notices.model import FailoverKind, FailoverRecord, FailoverResult, HistoryEntry, Pause
from tests.ha.cli import plan_views
from tests.ha.cli.test_cluster_view import ACTIVE, SILENT, STANDBY
from tests.ha.cli.test_cluster_view import GONE as REFUSED
from tests.ha.cli.test_cluster_view import WELL as ONE_ZOOKEEPER
from tests.ha.notices.test_model import MEMBER, NOON, RECORD

ENSEMBLE = tuple(ZooKeeperRow(f"z{number}:1", mode="follower") for number in range(1, 6))
WELL = replace(
    ONE_ZOOKEEPER, taken_at="2026-05-01T12:30:00.000Z", zookeepers=ENSEMBLE[:3], limit_seconds=2.0
)
NOW = NOON + timedelta(minutes=30)


def found_by(check: str, view: ClusterView) -> list[Finding]:
    return [one for one in check_cluster(view) if one.check == check]


def noted(**notices: object) -> ClusterView:
    return replace(WELL, notices=NoticesView(**notices))  # type: ignore[arg-type]


OF_ALL_CLUSTERS = [
    "one active",
    "failover ready",
    "NameNode nn1",
    "NameNode nn2",
    "journal size",
    "journal hosts",
    "journal majority",
]
OF_ZKFCS = ["ZooKeeper", "ZooKeeper size", "ZKFC of nn1", "ZKFC of nn2", "pause", "failovers"]


def test_without_zkfcs_nothing_is_said_of_them_and_of_zookeeper() -> None:
    assert [one.check for one in check_cluster(WELL)] == OF_ALL_CLUSTERS + OF_ZKFCS
    assert [one.check for one in check_cluster(plan_views.by_hand(WELL))] == OF_ALL_CLUSTERS


def test_where_nobody_answers_only_that_is_said() -> None:
    assert list(check_cluster(plan_views.ALL_SILENT)) == [
        unknown("cluster", no_answer_message(plan_views.ALL_SILENT), "nnha status --timeout 10")
    ]


@pytest.mark.parametrize(
    ("skew", "told"),
    [
        (2.0, None),
        (-2.0, None),
        (2.5, "the clock of nn1 on h1 is 2.50 s ahead of this machine's"),
        (-2.5, "the clock of nn1 on h1 is 2.50 s behind this machine's"),
    ],
)
def test_a_clock_is_told_of_from_two_seconds_on_and_which_way_it_goes(
    skew: float, told: str | None
) -> None:
    (one,) = check_clocks([("nn1", "h1", skew), ("nn2", "h2", None)])
    assert one.found == (told or "1 daemons agree with this machine to 2 s")


SOON = "nnha status -w; it should end within seconds"
MAYBE = "no NameNode says that it is active; {} gave no answer, and may be"
ROLES: dict[str, tuple[ClusterView, Finding]] = {
    "one is active": (WELL, ok("one active", "nn1, epoch 5")),
    "its epoch is not known": (
        replace(plan_views.with_namenode(WELL, "nn1", epoch=None), journalnodes=()),
        ok("one active", "nn1, epoch unknown"),
    ),
    "none is": (plan_views.NOBODY, fail("one active", "no NameNode is active", "nnha explain")),
    "the only one that may be is silent": (
        plan_views.HUNG,
        unknown("one active", MAYBE.format("nn1"), "nnha explain --timeout 10"),
    ),
    "two may be": (
        plan_views.without_answer(plan_views.HUNG, "nn2", plan_views.NO_ROUTE),
        unknown("one active", MAYBE.format("nn1 and nn2"), "nnha explain --timeout 10"),
    ),
    "the other one is silent": (
        plan_views.without_answer(WELL, "nn2"),
        ok("one active", "nn1, epoch 5"),
    ),
    "the only one that could be does not run": (
        plan_views.GONE,
        fail("one active", "no NameNode is active", "nnha explain"),
    ),
    "two are": (
        plan_views.with_namenode(WELL, "nn2", state="active"),
        fail("one active", "nn1 and nn2 both say that they are active", SOON),
    ),
    "another holds the lock": (
        replace(WELL, lock=LockView(holder="nn2")),
        fail("one active", "nn1 is active, but nn2 holds the lock", SOON),
    ),
    "nobody holds the lock": (
        replace(WELL, lock=LockView()),
        fail("one active", "nn1 is active, but no ZKFC holds the lock", SOON),
    ),
    "who holds the lock is not known": (
        replace(WELL, lock=LockView(error=SILENT)),
        ok("one active", "nn1, epoch 5"),
    ),
    "there is no lock without ZKFCs": (plan_views.by_hand(WELL), ok("one active", "nn1, epoch 5")),
}


@pytest.mark.parametrize(("view", "expected"), ROLES.values(), ids=ROLES)
def test_exactly_one_is_active_and_holds_the_lock(view: ClusterView, expected: Finding) -> None:
    assert found_by("one active", view) == [expected]


READY: dict[str, tuple[ClusterView, Finding]] = {
    "ready": (WELL, ok("failover ready", "nn2 could take over")),
    "not known": (
        plan_views.without_answer(WELL, "nn2"),
        unknown("failover ready", f"nn2: NameNode: {SILENT}", "nnha explain --timeout 10"),
    ),
    "blocked": (
        plan_views.UNREADY,
        fail("failover ready", "nn2: NameNode: not ready: it gives no reason", "nnha explain"),
    ),
    "by hand": (
        plan_views.by_hand(WELL),
        warn(
            "failover ready",
            "dfs.ha.automatic-failover.enabled is not set",
            "set it to true and run a ZKFC beside each NameNode",
        ),
    ),
}


@pytest.mark.parametrize(("view", "expected"), READY.values(), ids=READY)
def test_whether_a_failover_could_follow(view: ClusterView, expected: Finding) -> None:
    assert found_by("failover ready", view) == [expected]


HADOOPS = "Hadoop 3.4.2"
ERROR = "answers with an error: x"
NEW = replace(STANDBY, address="[fd00::2]:8020")
NAMENODES: dict[str, tuple[NameNodeRow, Finding]] = {
    "well": (NEW, ok("NameNode nn2", "[fd00::2]:8020: standby")),
    "its page cannot be read": (
        replace(NEW, note="status page: x"),
        warn("NameNode nn2", "[fd00::2]:8020: status page: x", "open its HTTP port to operators"),
    ),
    "Hadoop's has no such page": (
        replace(NEW, note=HADOOPS, software=HADOOPS),
        ok("NameNode nn2", "[fd00::2]:8020: standby"),
    ),
    "Hadoop's can be far behind, too": (
        replace(NEW, note=HADOOPS, software=HADOOPS, last_txid=39_999),
        warn("NameNode nn2", "10,001 transactions behind", "see its log: does it tail edits?"),
    ),
    "as far behind as is usual": (
        replace(NEW, last_txid=40_000),
        ok("NameNode nn2", "[fd00::2]:8020: standby"),
    ),
    "down": (
        replace(NEW, error=REFUSED),
        fail("NameNode nn2", f"[fd00::2]:8020: {REFUSED}", "start it, or open the port"),
    ),
    "an error": (
        replace(NEW, error=ERROR),
        fail("NameNode nn2", f"[fd00::2]:8020: {ERROR}", "see its log"),
    ),
    "silent": (
        replace(NEW, error=SILENT),
        unknown("NameNode nn2", f"[fd00::2]:8020: {SILENT}", ask_again("[fd00::2]")),
    ),
}


@pytest.mark.parametrize(("row", "expected"), NAMENODES.values(), ids=NAMENODES)
def test_a_namenode_is_well_or_what_mends_it_is_said(row: NameNodeRow, expected: Finding) -> None:
    ahead = 50_000 if row.last_txid != STANDBY.last_txid else 5000
    view = replace(WELL, namenodes=(replace(ACTIVE, last_txid=ahead), row))
    assert found_by("NameNode nn2", view) == [expected]


OPEN = "start it, or open the port"
PAGE = "from its znode; status page: not running"
ZKFCS: dict[str, tuple[dict[str, object], Finding]] = {
    "well": ({}, ok("ZKFC of nn2", "h:4: healthy")),
    "down": (
        {"error": REFUSED},
        fail("ZKFC of nn2", f"h:4: {REFUSED}", "start it, or open the port"),
    ),
    "silent": ({"error": SILENT}, unknown("ZKFC of nn2", f"h:4: {SILENT}", ask_again("h"))),
    "its takeover failed": (
        {"last_failure": "no method"},
        fail(
            "ZKFC of nn2",
            "its last takeover failed: no method",
            "nnha fence test nn2, nnha history",
        ),
    ),
    "its page is its own host's": (
        {"note": PAGE},
        warn(
            "ZKFC of nn2",
            PAGE,
            "set nnha.zkfc.http-address.ns1.nn2 to an address that operators reach",
        ),
    ),
    "another note is no fault": (
        {"note": "the active is kept: flapping"},
        ok("ZKFC of nn2", "h:4: healthy"),
    ),
}


@pytest.mark.parametrize(("changes", "expected"), ZKFCS.values(), ids=ZKFCS)
def test_a_zkfc_is_well_or_what_mends_it_is_said(
    changes: dict[str, object], expected: Finding
) -> None:
    assert found_by("ZKFC of nn2", plan_views.with_zkfc(WELL, "nn2", **changes)) == [expected]


USERS: dict[str, tuple[tuple[str, str], list[str]]] = {
    "one user": (("hdfs", "hdfs"), []),
    "two": (("hdfs", "root"), ["nn1 as hdfs, nn2 as root: they deny each other hand-overs"]),
    "one says none": (("hdfs", ""), []),
}


@pytest.mark.parametrize(("users", "expected"), USERS.values(), ids=USERS)
def test_zkfcs_that_run_as_two_users_are_told(users: tuple[str, str], expected: list[str]) -> None:
    members = {
        name: replace(MEMBER, namenode=name, user=user)
        for name, user in zip(("nn1", "nn2"), users, strict=True)
    }
    found = found_by("users of ZKFCs", noted(members=members))
    assert [one.found for one in found] == expected


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({}, []),
        ({"nn1": "0.1.0", "nn2": "0.1.0"}, [ok("versions", "all ZKFCs run 0.1.0")]),
        (
            {"nn2": "0.1.0", "nn1": "0.2.0"},
            [warn("versions", "nn1 0.2.0, nn2 0.1.0", "upgrade the older ones")],
        ),
    ],
    ids=["no members", "one version", "two versions"],
)
def test_zkfcs_of_two_versions_are_told(versions: dict[str, str], expected: list[Finding]) -> None:
    members = {name: replace(MEMBER, namenode=name, version=one) for name, one in versions.items()}
    assert found_by("versions", noted(members=members)) == expected


PAUSES: dict[str, tuple[timedelta, timedelta | None, bool]] = {
    "short, with an end": (timedelta(minutes=5), timedelta(hours=9), False),
    "of four hours, with an end": (timedelta(hours=4), timedelta(hours=9), False),
    "longer, with an end": (timedelta(hours=4, seconds=1), timedelta(hours=9), True),
    "short, without an end": (timedelta(minutes=5), None, True),
}


@pytest.mark.parametrize(("age", "length", "forgotten"), PAUSES.values(), ids=PAUSES)
def test_a_pause_that_may_be_forgotten_is_a_failure(
    age: timedelta, length: timedelta | None, *, forgotten: bool
) -> None:
    since = NOW - age
    end = None if length is None else since + length
    pause = Pause(owner="ann@ops1", reason="switch", since=since, until=end)
    (found,) = found_by("pause", noted(pause=pause))
    expected = "if it is no longer needed: nnha resume" if forgotten else "nnha resume"
    assert (found.next, found.found.startswith("for ")) == (expected, forgotten)


def ago(minutes: float, **changes: object) -> FailoverRecord:
    at = NOW - timedelta(minutes=minutes)
    return replace(RECORD, at=at, **changes)  # type: ignore[arg-type]


FIRST = {"kind": FailoverKind.FIRST}
FAILED = {"result": FailoverResult.FAILED, "failure": "no method"}
FLAPS = "nnha history; nnha pause while you look for the cause"
HISTORIES: dict[str, tuple[list[FailoverRecord | None], Finding]] = {
    "none": ([], ok("failovers", "0 in the last 10 minutes")),
    "one that cannot be read": ([None, ago(1)], ok("failovers", "1 in the last 10 minutes")),
    "one of ten minutes ago": ([ago(9.9), ago(10)], ok("failovers", "1 in the last 10 minutes")),
    "three by themselves": (
        [ago(1), ago(2), ago(3)],
        warn("failovers", "3 automatic ones in the last 10 minutes", FLAPS),
    ),
    "three, of which one was the first election": (
        [ago(1), ago(2), ago(3, **FIRST)],
        ok("failovers", "3 in the last 10 minutes"),
    ),
    "one failed": (
        [ago(1), ago(2, **FAILED)],
        fail("failovers", "1 failed in the last 10 minutes: no method", "nnha history"),
    ),
}


@pytest.mark.parametrize(("records", "expected"), HISTORIES.values(), ids=HISTORIES)
def test_what_became_of_the_newest_failovers(
    records: list[FailoverRecord | None], expected: Finding
) -> None:
    history = tuple(HistoryEntry(number, one) for number, one in enumerate(records))
    assert found_by("failovers", noted(history=history)) == [expected]
