"""When a NameNode is drained, and why not: each row is what was seen and what was asked."""

from typing import Final

import pytest

from ha.cli.operate.plan.drain import may_have_to_hand_over, refusal
from ha.cli.operate.plan.handover import judge
from ha.cluster.view import ClusterView
from ha.console.result import Code, CommandOutcome, Ending
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
    with_zkfc,
    without_answer,
)
from tests.ha.cli.test_cluster_view import SILENT, WELL

ENDS: Final = {"ends": True, "anyway": False}
ANYWAY: Final = {"ends": False, "anyway": True}
BEGINS: Final = {"ends": False, "anyway": False}

Row = tuple[ClusterView, str, dict[str, bool]]

DRAINED: Final[dict[str, Row]] = {
    "the active, and a standby takes over": (WELL, "nn1", BEGINS),
    "the active, and one of two standbys takes over": (unready(THREE, "nn2"), "nn1", BEGINS),
    "the active, and one takes over although another is silent": (
        without_answer(THREE, "nn2"), "nn1", BEGINS,
    ),
    "the active, once another can take over": (UNREADY, "nn1", ANYWAY),
    "the active, once the pause is over": (paused(WELL), "nn1", ANYWAY),
    "the active, while the JournalNodes answer it alone": (JOURNAL_HEARD, "nn1", BEGINS),
    "the active, while their ports are closed to us alone": (JOURNAL_ELSEWHERE, "nn1", BEGINS),
    "an active that tells nothing of the journal": (JOURNAL_NOT_REPORTED, "nn1", BEGINS),
    "a standby": (WELL, "nn2", BEGINS),
    "a standby without a quorum of the journal": (JOURNAL_LOST, "nn2", BEGINS),
    "the active, once the journal has a quorum": (JOURNAL_LOST, "nn1", ANYWAY),
    "a standby that could not take over": (UNREADY, "nn2", BEGINS),
    "a standby in a pause": (paused(WELL), "nn2", BEGINS),
    "a standby beside a hung holder of the lock": (unready(HUNG, "nn2"), "nn2", BEGINS),
    "one of those of which none is active": (unready(NOBODY, "nn2"), "nn1", BEGINS),
    "no longer, although nobody could take over": (UNREADY, "nn1", ENDS),
    "no longer, although there is a pause": (paused(WELL), "nn1", ENDS),
}  # fmt: skip

NOT_DRAINED: Final[dict[str, tuple[Row, Code, str]]] = {
    "nothing is automatic": (
        (by_hand(WELL), "nn1", BEGINS), Code.NOT_AUTOMATIC, "nothing happens by itself anyway",
    ),
    "nobody answers": (
        (ALL_SILENT, "nn1", BEGINS), Code.NO_ANSWER,
        "nothing is known of the cluster: NameNode nn1, NameNode nn2, ZKFC of nn1, ZKFC of nn2 "
        "gave no answer in 2 s",
    ),
    "nobody answers, and a drain is to end": (
        (ALL_SILENT, "nn1", ENDS), Code.NO_ANSWER, "nothing is known of the cluster",
    ),
    "there is no such NameNode": (
        (WELL, "nn7", BEGINS), Code.NO_SUCH_NODE,
        "there is no NameNode nn7 in ns1: it has nn1, nn2",
    ),
    "there is no such NameNode to end a drain of": (
        (WELL, "nn7", ENDS), Code.NO_SUCH_NODE, "there is no NameNode nn7",
    ),
    "the journal has no quorum": (
        (JOURNAL_LOST, "nn1", BEGINS), Code.NO_CANDIDATE, "the journal has no quorum",
    ),
    "too few JournalNodes answer anybody": (
        (JOURNAL_SILENT, "nn1", BEGINS), Code.NO_ANSWER,
        "whether the journal has a quorum is not known: JournalNode j1:1",
    ),
    "the active would not hand over in a pause": (
        (paused(WELL), "nn1", BEGINS), Code.PAUSED,
        "nn1 is active, and would not hand over: automatic failover is paused by ann@ops1 until it "
        "is ended",
    ),
    "a hung holder of the lock would not hand over in a pause": (
        (paused(HUNG), "nn1", BEGINS), Code.PAUSED,
        "nn1 holds the lock and does not say whether it is active, and would not hand over",
    ),
    "no other can take over": (
        (UNREADY, "nn1", BEGINS), Code.NO_CANDIDATE,
        "nn1 is active, and no NameNode can take over from it now",
    ),
    "no other can take over from a hung holder of the lock": (
        (unready(HUNG, "nn2"), "nn1", BEGINS), Code.NO_CANDIDATE,
        "nn1 holds the lock and does not say whether it is active, and no NameNode can take over",
    ),
    "no other can take over from a holder of the lock that is gone": (
        (unready(GONE, "nn2"), "nn1", BEGINS), Code.NO_CANDIDATE, "no NameNode can take over",
    ),
    "no other can take over, and only its own ZKFC is silent": (
        (with_zkfc(UNREADY, "nn1", error=SILENT), "nn1", BEGINS), Code.NO_CANDIDATE,
        "no NameNode can take over from it now",
    ),
    "the only other is silent": (
        (without_answer(WELL, "nn2"), "nn1", BEGINS), Code.NO_ANSWER,
        "whether a NameNode can take over from nn1 is not known: NameNode nn2 gave no answer",
    ),
    "one is silent, and the other surely cannot": (
        (unready(without_answer(THREE, "nn2"), "nn3"), "nn1", BEGINS), Code.NO_ANSWER,
        "whether a NameNode can take over from nn1 is not known: NameNode nn2 gave no answer",
    ),
    "the only other cannot be reached": (
        (without_answer(WELL, "nn2", NO_ROUTE), "nn1", BEGINS), Code.NO_ANSWER,
        "whether a NameNode can take over from nn1 is not known: a process gave no answer in 2 s",
    ),
}  # fmt: skip


def refused(row: Row) -> Ending | None:
    view, node, asked = row
    return refusal(view, node, **asked)


@pytest.mark.parametrize("row", DRAINED.values(), ids=DRAINED)
def test_it_is_drained(row: Row) -> None:
    assert refused(row) is None


@pytest.mark.parametrize(("row", "code", "text"), NOT_DRAINED.values(), ids=NOT_DRAINED)
def test_it_is_not_drained(row: Row, code: Code, text: str) -> None:
    ending = refused(row)
    assert ending is not None
    assert (ending.command, ending.code) == ("drain", code)
    assert ending.target == (None if code is Code.NOT_AUTOMATIC else row[1])
    assert text in ending.message
    # A silent process may be well: silence is no refusal.
    silence = code is Code.NO_ANSWER
    assert ending.outcome is (CommandOutcome.UNREACHABLE if silence else CommandOutcome.REFUSED)


@pytest.mark.parametrize(
    ("view", "active"), [(UNREADY, "nn1"), (unready(HUNG, "nn2"), None)], ids=["known", "unknown"]
)
def test_a_refusal_says_who_is_active_and_what_is_to_be_said_of_each(
    view: ClusterView, active: str | None
) -> None:
    ending = refusal(view, "nn1", **BEGINS)
    assert ending is not None
    assert (ending.active_before, ending.active_now) == (active, active)
    assert ending.reasons == judge(view, "switchover")
    assert "--anyway" in ending.hint


@pytest.mark.parametrize(
    ("view", "handing_over"),
    [
        (WELL, {"nn1"}),
        (HUNG, {"nn1"}),
        (GONE, {"nn1"}),
        (NOBODY, set()),
        (with_zkfc(WELL, "nn1", error=SILENT), {"nn1"}),
    ],
    ids=["active", "holder hangs", "holder is gone", "nobody", "active without a ZKFC"],
)
def test_who_is_active_or_may_be_has_to_hand_over(
    view: ClusterView, handing_over: set[str]
) -> None:
    names = [row.namenode for row in view.namenodes]
    assert {name for name in names if may_have_to_hand_over(view, name)} == handing_over
