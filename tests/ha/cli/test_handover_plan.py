"""What becomes of a switchover or a failover that is asked for: one row for each look at a cluster.

A refusal names what helps each NameNode; a fit one is offered by a command that would do it.
"""

from dataclasses import replace
from typing import Final

import pytest

from ha.cli.operate.plan.drain import refusal
from ha.cli.operate.plan.handover import HandoverPlan, judge, plan_failover, plan_switchover
from ha.cluster.unreachable import NOT_RUNNING
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import LockView
from ha.console.result import Code, CommandOutcome, Ending, Reason
from tests.ha.cli.plan_views import (
    ALL_SILENT,
    GONE,
    HUNG,
    JOURNAL_ELSEWHERE,
    JOURNAL_HEARD,
    JOURNAL_LOST,
    JOURNAL_NOT_REPORTED,
    JOURNAL_SILENT,
    NO_ROUTE,
    NOBODY,
    THREE,
    UNREADY,
    by_hand,
    paused,
    unready,
    with_namenode,
    with_zkfc,
    without_answer,
)
from tests.ha.cli.test_cluster_view import SILENT, WELL

NO_ZOOKEEPER: Final = LockView(error="no ZooKeeper of z:1 answered")
UNKNOWN_HOLDER: Final = with_zkfc(HUNG, "nn1", error=SILENT)
"""Neither the holder of the lock nor its ZKFC answers."""
NOBODY_READY: Final = unready(unready(NOBODY, "nn1"), "nn2")
TWO_ACTIVE: Final = with_namenode(THREE, "nn2", state="active")

Refused = tuple[Code, str]

SWITCHOVERS: Final[dict[str, tuple[ClusterView, str | None, HandoverPlan | Refused]]] = {
    "to a fit standby": (WELL, "nn2", HandoverPlan("nn2", "nn1")),
    "to whoever is fit": (unready(THREE, "nn2"), None, HandoverPlan("nn3", "nn1")),
    "to a fit standby while another is silent": (
        without_answer(THREE, "nn2"), None, HandoverPlan("nn3", "nn1"),
    ),
    "from a holder of the lock that hangs": (
        HUNG, "nn2", HandoverPlan("nn2", "nn1", unheard=True),
    ),
    "from a holder of the lock that is gone": (
        GONE, None, HandoverPlan("nn2", "nn1", unheard=True),
    ),
    "while the JournalNodes answer the active alone": (
        JOURNAL_HEARD, None, HandoverPlan("nn2", "nn1"),
    ),
    "where the JournalNodes' ports are closed to us alone": (
        JOURNAL_ELSEWHERE, None, HandoverPlan("nn2", "nn1"),
    ),
    "from an active that tells nothing of the journal": (
        JOURNAL_NOT_REPORTED, None, HandoverPlan("nn2", "nn1"),
    ),
    "from a holder of the lock that hangs, while the journal is silent": (
        without_answer(JOURNAL_SILENT, "nn1"), None, HandoverPlan("nn2", "nn1", unheard=True),
    ),
    "while the active alone waits for the journal": (
        with_namenode(WELL, "nn1", read_lease_valid=False), None, HandoverPlan("nn2", "nn1"),
    ),
    "from a holder of the lock that hangs, without a quorum of the journal": (
        without_answer(JOURNAL_LOST, "nn1"), "nn2",
        (Code.NO_CANDIDATE, "the journal has no quorum"),
    ),
    "without a quorum of the journal": (
        JOURNAL_LOST, "nn2", (Code.NO_CANDIDATE, "the journal has no quorum"),
    ),
    "while too few JournalNodes answer anybody": (
        JOURNAL_SILENT, None,
        (Code.NO_ANSWER, "whether the journal has a quorum is not known: JournalNode j1:1"),
    ),
    "to whom is active": (WELL, "nn1", (Code.ALREADY_SO, "nn1 is active already")),
    "where nothing is automatic": (
        by_hand(WELL), "nn2", (Code.NOT_AUTOMATIC, "automatic-failover.enabled is not set"),
    ),
    "where nobody answers": (
        ALL_SILENT, "nn2", (Code.NO_ANSWER, "nothing is known of the cluster: NameNode nn1, "),
    ),
    "to a NameNode that is none": (WELL, "nn7", (Code.NO_SUCH_NODE, "it has nn1, nn2")),
    "where two are active": (TWO_ACTIVE, "nn3", (Code.TWO_ACTIVE, "nn1 and nn2 both say")),
    "where nobody is active": (NOBODY, "nn2", (Code.NO_ACTIVE, "none can be asked to hand over")),
    "from a holder whose ZKFC is silent, too": (
        UNKNOWN_HOLDER, "nn2", (Code.NO_ANSWER, "which NameNode is active is not known"),
    ),
    "from a silent holder that has no ZKFC": (
        replace(HUNG, zkfcs=HUNG.zkfcs[1:]), "nn2",
        (Code.NO_ANSWER, "which NameNode is active is not known"),
    ),
    "where the only other is silent": (
        without_answer(WELL, "nn2"), None,
        (Code.NO_ANSWER, "whether a NameNode can take over from nn1 is not known: NameNode nn2"),
    ),
    "where one is silent, and the other surely cannot": (
        unready(without_answer(THREE, "nn2"), "nn3"), None,
        (Code.NO_ANSWER, "whether a NameNode can take over from nn1 is not known"),
    ),
    "where the only other cannot be reached": (
        without_answer(WELL, "nn2", NO_ROUTE), None,
        (Code.NO_ANSWER, "can take over from nn1 is not known: a process gave no answer"),
    ),
    "where no other can take over": (
        UNREADY, None, (Code.NO_CANDIDATE, "no NameNode can take over from nn1 now"),
    ),
    "where no other can take over, and the active's own ZKFC is silent": (
        with_zkfc(UNREADY, "nn1", error=SILENT), None,
        (Code.NO_CANDIDATE, "no NameNode can take over from nn1 now"),
    ),
    "to a silent one": (
        without_answer(WELL, "nn2"), "nn2",
        (Code.NO_ANSWER, "whether nn2 can take over is not known"),
    ),
    "to an unfit one": (UNREADY, "nn2", (Code.CANDIDATE_UNFIT, "nn2 cannot take over now")),
    "to an unfit one while another is silent": (
        unready(without_answer(THREE, "nn3"), "nn2"), "nn2",
        (Code.CANDIDATE_UNFIT, "nn2 cannot take over now"),
    ),
}  # fmt: skip

FAILOVERS: Final[dict[str, tuple[ClusterView, str, HandoverPlan | Refused]]] = {
    "where nobody is active": (NOBODY, "nn2", HandoverPlan("nn2", None, ("nn1",))),
    "where nobody is active, one of whom is unfit": (
        unready(NOBODY, "nn1"), "nn2", HandoverPlan("nn2", None),
    ),
    "from a holder whose ZKFC is silent, too": (
        UNKNOWN_HOLDER, "nn2", HandoverPlan("nn2", None),
    ),
    "from a holder that is gone": (GONE, "nn2", HandoverPlan("nn2", None)),
    "where only this command reaches no ZooKeeper": (
        replace(with_zkfc(NOBODY, "nn2", zookeeper="connected"), lock=NO_ZOOKEEPER), "nn2",
        HandoverPlan("nn2", None, ("nn1",)),
    ),
    "where only the target's ZKFC reaches no ZooKeeper": (
        with_zkfc(NOBODY, "nn2", zookeeper="connection lost"), "nn2",
        HandoverPlan("nn2", None, ("nn1",)),
    ),
    "where no ZKFC of the target says whether it reaches ZooKeeper": (
        replace(NOBODY, zkfcs=NOBODY.zkfcs[:1], lock=NO_ZOOKEEPER), "nn2",
        HandoverPlan("nn2", None, ("nn1",)),
    ),
    "where nobody reaches ZooKeeper": (
        replace(with_zkfc(NOBODY, "nn2", zookeeper="connecting"), lock=NO_ZOOKEEPER), "nn2",
        (Code.ZOOKEEPER_UNREACHABLE, "neither this command nor the ZKFC of nn2 reaches ZooKeeper"),
    ),
    "where nothing is automatic": (
        by_hand(NOBODY), "nn2", (Code.NOT_AUTOMATIC, "automatic-failover.enabled is not set"),
    ),
    "where nobody answers": (
        ALL_SILENT, "nn2", (Code.NO_ANSWER, "nothing is known of the cluster"),
    ),
    "to a NameNode that is none": (NOBODY, "nn7", (Code.NO_SUCH_NODE, "it has nn1, nn2")),
    "where two are active": (TWO_ACTIVE, "nn3", (Code.TWO_ACTIVE, "nn1 and nn2 both say")),
    "where one is active": (WELL, "nn2", (Code.ACTIVE_PRESENT, "nn1 is active and answers")),
    "from a holder that hangs": (HUNG, "nn2", (Code.ACTIVE_PRESENT, "nn1 holds the lock, ")),
    "to a holder that hangs": (
        HUNG, "nn1", (Code.NO_ANSWER, "whether nn1 can take over is not known"),
    ),
    "in a pause": (paused(NOBODY), "nn2", (Code.PAUSED, "paused by ann@ops1")),
    "to an unfit one": (
        NOBODY_READY, "nn2", (Code.CANDIDATE_UNFIT, "nn2 cannot take over now"),
    ),
    "to one that does not run while another is silent": (
        without_answer(without_answer(NOBODY, "nn1"), "nn2", NOT_RUNNING), "nn2",
        (Code.CANDIDATE_UNFIT, "nn2 cannot take over now"),
    ),
}  # fmt: skip

OUTCOMES: Final = {
    Code.ALREADY_SO: CommandOutcome.DONE,
    Code.NO_ANSWER: CommandOutcome.UNREACHABLE,
    Code.ZOOKEEPER_UNREACHABLE: CommandOutcome.UNREACHABLE,
}
"""All others are refusals."""


def planned(command: str, view: ClusterView, target: str | None) -> HandoverPlan | Ending:
    if command == "switchover":
        return plan_switchover(view, target)
    assert target is not None
    return plan_failover(view, target)


def ended(command: str, view: ClusterView, target: str | None) -> Ending:
    found = planned(command, view, target)
    assert isinstance(found, Ending)
    assert (found.command, found.target) == (command, target)
    return found


def check(
    command: str, view: ClusterView, target: str | None, expected: HandoverPlan | Refused
) -> None:
    if isinstance(expected, HandoverPlan):
        assert planned(command, view, target) == expected
        return
    code, text = expected
    found = ended(command, view, target)
    assert found.code is code
    assert found.outcome is OUTCOMES.get(code, CommandOutcome.REFUSED)
    assert text in found.message


@pytest.mark.parametrize(("view", "target", "end"), SWITCHOVERS.values(), ids=SWITCHOVERS)
def test_a_switchover(view: ClusterView, target: str | None, end: HandoverPlan | Refused) -> None:
    check("switchover", view, target, end)


@pytest.mark.parametrize(("view", "target", "end"), FAILOVERS.values(), ids=FAILOVERS)
def test_a_failover(view: ClusterView, target: str, end: HandoverPlan | Refused) -> None:
    check("failover", view, target, end)


NOBODY_OF_THREE: Final = replace(with_namenode(THREE, "nn1", state="standby"), lock=LockView())
OFFERED: Final = {
    "a switchover to an unfit one": ("switchover", unready(THREE, "nn2"), "nnha switchover nn3"),
    "a switchover although nobody is active": (
        "switchover", NOBODY_OF_THREE, "nnha failover nn3",
    ),
    "a failover although one is active": ("failover", THREE, "nnha switchover nn3"),
    "a failover although the holder of the lock may be active": (
        "failover", without_answer(THREE, "nn1"), "nnha switchover nn3",
    ),
    "a failover to an unfit one": (
        "failover", unready(NOBODY_OF_THREE, "nn2"), "nnha failover nn3",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("command", "view", "offered"), OFFERED.values(), ids=OFFERED)
def test_another_is_offered_by_the_command_that_would_do_it(
    command: str, view: ClusterView, offered: str
) -> None:
    fit = "fit: 10 transactions behind, priority 100"
    assert ended(command, view, "nn2").reasons[2] == Reason("nn3", fit, offered, fit=True)
    assert isinstance(planned(offered.split()[1], view, "nn3"), HandoverPlan)


def test_of_the_active_it_is_said_that_it_is_active_and_of_an_unfit_one_what_helps() -> None:
    unfit = Reason(
        "nn2", "NameNode: not ready: it gives no reason", "wait, and look again: nnha status -w"
    )
    assert judge(UNREADY, "switchover") == (Reason("nn1", "active", fit=True), unfit)


@pytest.mark.parametrize(
    "view", [by_hand(THREE), TWO_ACTIVE], ids=["without ZKFCs", "two are active"]
)
def test_no_command_is_offered_where_none_would_be_obeyed(view: ClusterView) -> None:
    fit = "fit: 10 transactions behind, priority 100"
    assert ended("switchover", view, "nn3").reasons[2] == Reason("nn3", fit, fit=True)


def test_without_a_quorum_of_the_journal_nothing_is_offered_to_any_namenode() -> None:
    assert ended("switchover", JOURNAL_LOST, "nn2").reasons == judge(JOURNAL_LOST, "")
    refused = refusal(JOURNAL_LOST, "nn1", ends=False, anyway=False)
    assert refused is not None
    assert refused.reasons == judge(JOURNAL_LOST, "")


HINTS: Final = {
    "in a pause nobody is active": ("failover", paused(NOBODY), "nnha resume"),
    "in a pause the holder of the lock is gone": (
        "failover", paused(GONE), "nnha switchover nn2, or nnha resume",
    ),
    "by hand, two of three": ("switchover", by_hand(THREE), "nnha haadmin -failover nn1 nn2"),
    "one is active": ("failover", WELL, "nnha switchover nn2"),
}  # fmt: skip


@pytest.mark.parametrize(("command", "view", "hint"), HINTS.values(), ids=HINTS)
def test_the_hint_is_a_command_that_can_be_given(
    command: str, view: ClusterView, hint: str
) -> None:
    assert ended(command, view, "nn2").hint == hint


@pytest.mark.parametrize(
    ("command", "view", "active"),
    [
        ("switchover", UNREADY, "nn1"),
        ("failover", WELL, "nn1"),
        ("failover", HUNG, None),
        ("switchover", TWO_ACTIVE, None),
    ],
    ids=["unfit", "active present", "holder hangs", "two are active"],
)
def test_the_active_stays_what_it_was(command: str, view: ClusterView, active: str | None) -> None:
    ending = ended(command, view, "nn2")
    assert (ending.active_before, ending.active_now) == (active, active)
