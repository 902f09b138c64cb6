"""The first line about a cluster, as a table of situations."""

from dataclasses import replace

import pytest

from ha.cluster.candidates import Readiness
from ha.cluster.verdict import Condition, verdict
from ha.cluster.view import ClusterView
from tests.ha.cli.plan_views import ALL_SILENT, HUNG, NOBODY, UNREADY, by_hand, with_namenode
from tests.ha.cli.test_cluster_view import WELL
from tests.ha.web.situations import FILES, HEALTHY, SITUATIONS, UNDER_WAY

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
