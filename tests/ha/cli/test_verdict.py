"""The first line about a cluster, as a table of situations."""

from dataclasses import replace
from typing import Any

import pytest

from ha.cli.explain.doctor.cluster import check_cluster
from ha.cluster.candidates import Readiness
from ha.cluster.check_result import Severity
from ha.cluster.problems import problems
from ha.cluster.verdict import Condition, verdict
from ha.cluster.view import ClusterView
from tests.ha.cli.plan_views import ALL_SILENT, HUNG, NOBODY, UNREADY, by_hand, with_namenode
from tests.ha.cli.test_cluster_view import WELL
from tests.ha.web.recorded import FILES
from tests.ha.web.situations import HEALTHY, SITUATIONS, UNDER_WAY

LINES = {
    "healthy": (Condition.SERVING, "SERVING, and a failover could follow"),
    "failover-under-way": (Condition.TAKING_OVER, "TAKING OVER: nn2 becomes active"),
    "nobody-active": (Condition.NOT_SERVING, "NOT SERVING: no NameNode is active"),
    "zookeeper-away": (Condition.SERVING, "SERVING, but no failover could follow"),
    "two-journalnodes-away": (
        Condition.NOT_SERVING, "NOTHING CAN BE WRITTEN: the journal has no quorum",
    ),
    "paused": (Condition.SERVING, "SERVING, but no failover could follow"),
    "drained": (Condition.SERVING, "SERVING, but no failover could follow"),
    "loading": (Condition.SERVING, "SERVING, but no failover could follow"),
    "learner": (Condition.SERVING, "SERVING, and a failover could follow"),
    "data-at-risk": (
        Condition.UNREADABLE,
        "FILES CANNOT BE READ: 2 blocks have no usable replica, and a failover could follow",
    ),
    "nobody-answers": (Condition.UNKNOWN, "NOTHING IS KNOWN: no process has answered"),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_situation_has_its_line(name: str) -> None:
    found = verdict(SITUATIONS[name])
    assert (found.condition, found.text) == LINES[name]


def test_two_actives_safe_mode_and_failover_by_hand() -> None:
    first, second = HEALTHY.namenodes
    both = replace(HEALTHY, namenodes=(first, replace(second, state="active")))
    assert verdict(both).condition is Condition.TWO_ACTIVE
    safe = replace(first, files=replace(FILES, safe_mode="it waits for blocks"))
    assert verdict(replace(HEALTHY, namenodes=(safe, second))).condition is Condition.READ_ONLY
    by_hand = verdict(replace(HEALTHY, automatic_failover=False))
    assert by_hand.text == "SERVING; a failover is made by hand"
    assert by_hand.failover is None


def test_silence_is_unknown() -> None:
    first, second = HEALTHY.namenodes
    silent = replace(first, state=None, error="no answer in 1 s")
    found = verdict(replace(HEALTHY, namenodes=(silent, second)))
    assert found.condition is Condition.UNKNOWN
    assert found.text.startswith("UNKNOWN: no NameNode says that it is active")


def test_a_takeover_tells_from_whom_the_role_comes() -> None:
    first, second = UNDER_WAY.zkfcs
    asked = replace(UNDER_WAY, zkfcs=(first, replace(second, handing_over_from="nn1")))
    assert verdict(asked).text == "TAKING OVER: nn2 becomes active from nn1"


def test_while_one_is_active_a_takeover_that_began_changes_nothing() -> None:
    both = replace(UNDER_WAY, namenodes=HEALTHY.namenodes)
    assert verdict(both).condition is Condition.SERVING


SAFE = with_namenode(UNREADY, "nn1", files=replace(FILES, safe_mode="it waits for blocks"))
NOT_READY = "nn2: NameNode: not ready: it gives no reason"


@pytest.mark.parametrize(
    ("view", "failover", "beginnings"),
    [
        (WELL, Readiness.READY, []),
        (UNREADY, Readiness.BLOCKED, [NOT_READY]),
        (SAFE, Readiness.BLOCKED, [NOT_READY]),
        (by_hand(UNREADY), None, []),
        (NOBODY, Readiness.READY, []),
        (
            with_namenode(WELL, "nn2", state="active"),
            Readiness.BLOCKED,
            ["nn1 and nn2 both say that they are active"],
        ),
        (HUNG, Readiness.READY, ["no NameNode says that it is active; nn1 holds the lock"]),
        (ALL_SILENT, Readiness.UNKNOWN, ["none of 4 processes gave an answer in 2 s"]),
    ],
    ids=[
        "serving",
        "serving, and blocked",
        "read only, and blocked",
        "by hand",
        "none is active",
        "two are active",
        "the holder is silent",
        "all are silent",
    ],
)
def test_reasons_say_why_it_is_no_better(
    view: ClusterView, failover: Readiness | None, beginnings: list[str]
) -> None:
    found = verdict(view)
    assert found.failover is failover
    assert len(found.reasons) == len(beginnings)
    assert all(one.startswith(begin) for one, begin in zip(found.reasons, beginnings, strict=True))


HEARD = replace(FILES, live_datanodes=3, stale_datanodes=0, dead_datanodes=0, blocks=10)
DATA = {
    "all can be read": ({}, Condition.SERVING, "SERVING", []),
    "no block, and no DataNode ever": (
        {"live_datanodes": 0, "blocks": 0}, Condition.SERVING, "SERVING", [],
    ),
    "blocks, and no DataNode ever": (
        {"live_datanodes": 0}, Condition.UNREADABLE, "FILES CANNOT BE READ: no DataNode is heard",
        ["no DataNode is heard"],
    ),
    "blocks, no DataNode ever, and safe mode": (
        {"live_datanodes": 0, "safe_mode": "it waits"}, Condition.UNREADABLE,
        "FILES CANNOT BE READ: no DataNode is heard", ["no DataNode is heard", "safe mode is on"],
    ),
    "all are stale": (
        {"stale_datanodes": 3, "missing": 10}, Condition.UNREADABLE,
        "FILES CANNOT BE READ: no DataNode is heard",
        ["10 blocks have no usable replica", "no DataNode is heard", "3 DataNodes are silent"],
    ),
    "all are stale, and there is no block": (
        {"stale_datanodes": 3, "blocks": 0}, Condition.SERVING, "SERVING",
        ["no DataNode is heard", "3 DataNodes are silent"],
    ),
    "all are dead": (
        {"live_datanodes": 0, "dead_datanodes": 3, "missing": 10}, Condition.UNREADABLE,
        "FILES CANNOT BE READ: no DataNode is heard",
        ["10 blocks have no usable replica", "no DataNode is heard", "3 DataNodes are dead"],
    ),
    "one block is lost": (
        {"missing": 1}, Condition.UNREADABLE, "FILES CANNOT BE READ: 1 block has no usable replica",
        ["1 block has no usable replica"],
    ),
    "one is stale": (
        {"stale_datanodes": 1, "under_replicated": 4}, Condition.SERVING, "SERVING",
        ["1 DataNode is silent", "4 blocks have too few replicas"],
    ),
    "one block has a damaged replica": (
        {"corrupt": 1}, Condition.SERVING, "SERVING", ["1 block has damaged replicas"],
    ),
    "one volume has failed": (
        {"failed_volumes": 1}, Condition.SERVING, "SERVING", ["1 volume has failed"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "condition", "text", "beginnings"), DATA.values(), ids=DATA)
def test_what_cannot_be_read_is_never_healthy(
    changes: dict[str, Any], condition: Condition, text: str, beginnings: list[str]
) -> None:
    first, second = HEALTHY.namenodes
    view = replace(HEALTHY, namenodes=(replace(first, files=replace(HEARD, **changes)), second))
    assert verdict(view).condition is condition
    assert verdict(view).text == f"{text}, and a failover could follow"
    found = problems(view)
    assert len(found) == len(beginnings)
    for one, beginning in zip(found, beginnings, strict=True):
        assert one.startswith(beginning)
    wanted = {
        (False, False): Severity.OK,
        (True, False): Severity.WARN,
        (True, True): Severity.FAIL,
    }[bool(found), condition is Condition.UNREADABLE]
    judged = {one.verdict for one in check_cluster(view) if one.check == "data"}
    assert judged == {wanted}


def test_where_the_page_of_the_active_fails_the_data_is_not_called_healthy() -> None:
    first, second = HEALTHY.namenodes
    silent = replace(first, files=None, software=None, note="status page: HTTP 401")
    view = replace(HEALTHY, namenodes=(silent, second))
    assert problems(view) == ("whether files can be read is not known: status page: HTTP 401",)
    (found,) = [one for one in check_cluster(view) if one.check == "data"]
    assert found.verdict is Severity.UNKNOWN
