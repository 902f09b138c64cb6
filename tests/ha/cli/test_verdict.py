"""The first line about a cluster, as a table of situations."""

from dataclasses import replace

import pytest

from ha.cli.cluster.verdict import Condition, verdict
from tests.ha.web.situations import FILES, HEALTHY, SITUATIONS

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
    assert verdict(replace(HEALTHY, namenodes=(silent, second))).condition is Condition.UNKNOWN
