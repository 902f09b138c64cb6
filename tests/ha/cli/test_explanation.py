"""nnha explain on one look: each situation's headline, reasons, outlook and lines, in words."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ha.cli.explain.explanation import explain
from ha.cluster.candidates import Obstacle
from ha.cluster.problems import no_answer_message
from ha.cluster.unreachable import ask_again
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import LockView, NoticesView
from ha.console.result import API_VERSION
from ha.notices.model import FailoverKind, HistoryEntry
from tests.ha.cli import plan_views
from tests.ha.cli.test_cluster_view import GONE as REFUSED
from tests.ha.cli.test_cluster_view import SILENT, WELL, journals
from tests.ha.notices.test_model import NOON, RECORD

TWO = plan_views.with_namenode(WELL, "nn2", state="active")


def changed(view: ClusterView, changes: dict[str, object]) -> ClusterView:
    return replace(view, **changes)  # type: ignore[arg-type]


def without_journal(view: ClusterView) -> ClusterView:
    return changed(view, journals({"error": REFUSED}, {"error": REFUSED}))


def journal_not_known(view: ClusterView) -> ClusterView:
    """Silence two of three JournalNodes, with no active that reports them."""
    return changed(view, journals({"error": SILENT}, {"error": SILENT}))


def without_zkfcs(view: ClusterView) -> ClusterView:
    return replace(view, zkfcs=())


HEADLINES: dict[str, tuple[ClusterView, str]] = {
    "one is active": (WELL, "nn1 is active (epoch 5)"),
    "its epoch is not known": (
        replace(plan_views.with_namenode(WELL, "nn1", epoch=None), journalnodes=()),
        "nn1 is active",
    ),
    "two of three are active": (
        plan_views.with_namenode(plan_views.THREE, "nn2", state="active"),
        "MORE than one NameNode says that it is active",
    ),
    "two are active": (TWO, "MORE than one NameNode says that it is active"),
    "none is active": (plan_views.NOBODY, "NO NameNode is active"),
    "one is silent": (
        plan_views.without_answer(plan_views.NOBODY, "nn2"),
        "NO NameNode says that it is active",
    ),
    "one cannot be asked": (
        plan_views.without_answer(plan_views.NOBODY, "nn2", plan_views.NO_ROUTE),
        "NO NameNode says that it is active",
    ),
    "one does not run": (
        plan_views.without_answer(plan_views.NOBODY, "nn2", REFUSED),
        "NO NameNode is active",
    ),
}


@pytest.mark.parametrize(("view", "headline"), HEADLINES.values(), ids=HEADLINES)
def test_the_first_line_says_who_is_active(view: ClusterView, headline: str) -> None:
    assert next(explain(view).as_lines()) == headline


def test_where_nobody_answers_only_that_is_said() -> None:
    assert list(explain(plan_views.ALL_SILENT).as_lines()) == [
        no_answer_message(plan_views.ALL_SILENT)
    ]


WON = "it won the election; the history does not tell how"
HAS_LOCK = "its ZKFC holds the lock in ZooKeeper"
OTHERS = "it says so itself, although nn2 holds the lock in ZooKeeper"
LOCK_OF_NN2 = replace(WELL, lock=LockView(holder="nn2"))
WHY_ACTIVE: dict[str, tuple[ClusterView, list[str]]] = {
    "it holds the lock": (WELL, [WON, HAS_LOCK]),
    "no ZKFC is known": (without_zkfcs(WELL), [WON, HAS_LOCK]),
    "its ZKFC is gone": (
        plan_views.with_zkfc(WELL, "nn1", error=REFUSED),
        [WON, f"its ZKFC: {REFUSED}; the lock is still there, and ends with its session"],
    ),
    "nobody holds the lock": (replace(WELL, lock=LockView()), [WON]),
    "nobody holds the lock, and its ZKFC is gone": (
        plan_views.with_zkfc(replace(WELL, lock=LockView()), "nn1", error=REFUSED),
        [WON],
    ),
    "another holds the lock": (LOCK_OF_NN2, [WON, OTHERS]),
    "another holds the lock, and its own ZKFC is gone": (
        plan_views.with_zkfc(LOCK_OF_NN2, "nn1", error=REFUSED),
        [WON, OTHERS],
    ),
    "ZooKeeper does not answer": (
        replace(WELL, lock=LockView(error=SILENT)),
        ["it says so itself; how it became so stands in ZooKeeper, which cannot be read now"],
    ),
    "by hand": (
        plan_views.by_hand(WELL),
        ["an operator has made it so: dfs.ha.automatic-failover.enabled is not set"],
    ),
}


@pytest.mark.parametrize(("view", "why"), WHY_ACTIVE.values(), ids=WHY_ACTIVE)
def test_why_the_active_is_active(view: ClusterView, why: list[str]) -> None:
    assert list(explain(view).why) == why


@pytest.mark.parametrize(
    ("kind", "previous", "told"),
    [
        (FailoverKind.AUTO, "nn2", "auto after nn2, in 0.25 s, 30m 0s ago"),
        (FailoverKind.FIRST, None, "first, in 0.25 s, 30m 0s ago"),
    ],
)
def test_the_history_says_after_whom_it_became_active_if_there_was_one(
    kind: FailoverKind, previous: str | None, told: str
) -> None:
    record = replace(RECORD, namenode="nn1", kind=kind, previous=previous)
    view = replace(
        WELL,
        taken_at=(NOON + timedelta(minutes=30)).isoformat(),
        notices=NoticesView(history=(HistoryEntry(1, record),)),
    )
    assert f"(history 1: {told} at " in explain(view).why[0]


NO_FIT = "no NameNode is fit, each for the reason below"
NN1_UNREADY = plan_views.with_namenode(plan_views.NOBODY, "nn1", ready=False)
HANGS = "nn1 holds the lock and gives no answer: it is slow or hangs, or the network is broken"
UNHEALTHY = (
    "its ZKFC keeps the lock until nn1 has not answered it for ha.health-monitor.rpc-timeout.ms; "
    "then the next one fences it and takes over"
)
PAUSED = "its ZKFC keeps the lock during a pause, even if the NameNode fails"
DOES_NOT_RUN = f"nn1 holds the lock, but its NameNode gives no usable answer: {REFUSED}"
WHY_NOBODY: dict[str, tuple[ClusterView, list[str]]] = {
    "two are active": (TWO, ["nn1 and nn2 both say that they are"]),
    "by hand": (
        plan_views.by_hand(plan_views.NOBODY),
        ["dfs.ha.automatic-failover.enabled is not set: an operator makes one active by hand"],
    ),
    "the election is open": (plan_views.NOBODY, []),
    "only one is fit": (NN1_UNREADY, []),
    "none is fit": (plan_views.with_namenode(NN1_UNREADY, "nn2", ready=False), [NO_FIT]),
    "of one it is not known whether it is fit": (
        plan_views.without_answer(NN1_UNREADY, "nn2"),
        [f"nn2 may be active: {SILENT}"],
    ),
    "one cannot be asked": (
        plan_views.without_answer(plan_views.NOBODY, "nn2", plan_views.NO_ROUTE),
        [f"nn2 may be active: {plan_views.NO_ROUTE}"],
    ),
    "both are silent": (
        plan_views.without_answer(plan_views.without_answer(plan_views.NOBODY, "nn1"), "nn2"),
        [f"nn1 may be active: {SILENT}", f"nn2 may be active: {SILENT}"],
    ),
    "one does not run": (plan_views.without_answer(plan_views.NOBODY, "nn2", REFUSED), []),
    "one takes over": (
        replace(plan_views.NOBODY, lock=LockView(holder="nn2")),
        ["nn2 holds the lock and is taking over, or tries to"],
    ),
    "ZooKeeper is silent": (
        replace(plan_views.NOBODY, lock=LockView(error=SILENT)),
        [f"who holds the lock is not known: {SILENT}"],
    ),
    "ZooKeeper has no quorum": (
        replace(plan_views.NOBODY, lock=LockView(error="no server answers")),
        ["the election cannot be held: no server answers"],
    ),
    "a takeover failed": (
        plan_views.with_zkfc(plan_views.NOBODY, "nn2", last_failure="no method"),
        ["the last takeover by nn2 failed: no method"],
    ),
    "there is no journal": (
        without_journal(plan_views.NOBODY),
        ["the journal has no quorum, and without one nobody can serve"],
    ),
    "the holder hangs": (plan_views.HUNG, [HANGS, UNHEALTHY]),
    "the holder hangs in a pause": (plan_views.paused(plan_views.HUNG), [HANGS, PAUSED]),
    "the holder hangs, and no ZKFC is known": (without_zkfcs(plan_views.HUNG), [HANGS, UNHEALTHY]),
    "the holder hangs, and its ZKFC is gone": (
        plan_views.with_zkfc(plan_views.HUNG, "nn1", error=REFUSED),
        [HANGS, f"its ZKFC: {REFUSED}; the lock ends with its session in ZooKeeper"],
    ),
    "the holder does not run": (plan_views.GONE, [DOES_NOT_RUN]),
    "the holder does not run, in a pause": (
        plan_views.paused(plan_views.GONE),
        [DOES_NOT_RUN, PAUSED],
    ),
    "the holder answers with an error": (
        plan_views.without_answer(WELL, "nn1", "answers with an error: x"),
        ["nn1 holds the lock, but its NameNode gives no usable answer: answers with an error: x"],
    ),
}


@pytest.mark.parametrize(("view", "why"), WHY_NOBODY.values(), ids=WHY_NOBODY)
def test_why_nobody_is_active(view: ClusterView, why: list[str]) -> None:
    assert list(explain(view).why) == why


NO_QUORUM = "the journal has no quorum"
START = "start the JournalNodes, or see why they failed: nnha journal status"
NOT_SET = Obstacle(
    "dfs.ha.automatic-failover.enabled is not set",
    "set it to true and run a ZKFC beside each NameNode",
)
IN_GENERAL: dict[str, tuple[ClusterView, list[Obstacle]]] = {
    "nothing": (WELL, []),
    "a pause": (
        plan_views.paused(WELL),
        [
            Obstacle(
                "automatic failover is paused by ann@ops1 until it is ended: new switch",
                "nnha resume",
            )
        ],
    ),
    "there are no ZKFCs": (plan_views.by_hand(WELL), [NOT_SET]),
    "without ZKFCs ZooKeeper is not asked for": (
        replace(plan_views.by_hand(WELL), lock=LockView(error=SILENT)),
        [NOT_SET],
    ),
    "ZooKeeper is silent": (
        replace(WELL, lock=LockView(error=SILENT)),
        [Obstacle(f"ZooKeeper: {SILENT}", "ask again with more time: nnha explain --timeout 10")],
    ),
    "the journal is lost": (without_journal(WELL), [Obstacle(NO_QUORUM, START)]),
    "the journal is not known": (
        journal_not_known(plan_views.NOBODY),
        [
            Obstacle(
                "whether the journal has a quorum is not known: too few JournalNodes answered",
                "nnha journal status --timeout 10",
                known=False,
            )
        ],
    ),
    "a notice cannot be read": (
        replace(WELL, notices=NoticesView(unreadable=("NnhaPause: no pause",))),
        [Obstacle("NnhaPause: no pause", "read that znode, and delete it if it is of no use")],
    ),
}


@pytest.mark.parametrize(("view", "bars"), IN_GENERAL.values(), ids=IN_GENERAL)
def test_what_prevents_every_automatic_failover(view: ClusterView, bars: list[Obstacle]) -> None:
    told = explain(view)
    assert list(told.in_general) == bars
    assert [line for line in told.as_lines() if line.startswith("! ")] == [
        f"! {one.text}  → {one.next}" for one in bars
    ]


NONE = "No NameNode could become active {}:"
NOT_KNOWN = "Whether a NameNode could become active {} is not known:"
FAILED, HELD = "if it failed now", "once nn1 has lost the lock"
BUT = ", if nothing above prevented it:"
AT_ONCE = "  → at once: nnha switchover nn2"
FUTURES: dict[str, tuple[ClusterView, str]] = {
    "the other one": (WELL, f"nn2 would become active {FAILED}:"),
    "one of two": (plan_views.NOBODY, "nn1 would become active now:"),
    "in a pause": (plan_views.paused(WELL), f"nn2 would become active {FAILED}{BUT}"),
    "by hand": (plan_views.by_hand(WELL), f"nn2 would become active {FAILED}{BUT}"),
    "none": (plan_views.UNREADY, NONE.format(FAILED)),
    "none of two": (plan_views.with_namenode(NN1_UNREADY, "nn2", ready=False), NONE.format("now")),
    "the other one is silent": (plan_views.without_answer(WELL, "nn2"), NOT_KNOWN.format(FAILED)),
    "one is silent, the other not ready": (
        plan_views.without_answer(NN1_UNREADY, "nn2"),
        NOT_KNOWN.format("now"),
    ),
    "the other one is not ready, and the active's ZKFC is silent": (
        plan_views.with_zkfc(plan_views.UNREADY, "nn1", error=SILENT),
        NONE.format(FAILED),
    ),
    "one of three is silent": (
        plan_views.without_answer(plan_views.THREE, "nn3"),
        f"nn2 would become active {FAILED}:",
    ),
    "the holder hangs": (plan_views.HUNG, f"nn2 would become active {HELD}:{AT_ONCE}"),
    "the holder hangs in a pause": (
        plan_views.paused(plan_views.HUNG),
        f"nn2 would become active {HELD}{BUT}{AT_ONCE}",
    ),
    "the holder hangs, and there is no journal": (
        without_journal(plan_views.HUNG),
        f"nn2 would become active {HELD}{BUT}",
    ),
    "the holder hangs, and so does its ZKFC": (
        plan_views.with_zkfc(plan_views.HUNG, "nn1", error=SILENT),
        f"nn2 would become active {HELD}:",
    ),
}


@pytest.mark.parametrize("only", [None, "nn1", "nn2"])
@pytest.mark.parametrize(("view", "future"), FUTURES.values(), ids=FUTURES)
def test_who_would_be_next_whichever_of_them_is_asked_about(
    view: ClusterView, future: str, only: str | None
) -> None:
    assert future in list(explain(view, only=only).as_lines())


NO_ZKFC = f"ZKFC: {REFUSED}"
START_ZKFC = "start it on h: nnha zkfc -D dfs.ha.namenode.id=nn1"
OBSERVER = "it is an observer, and observers are never candidates"
LINES: dict[str, tuple[ClusterView, list[str]]] = {
    "well": (WELL, ["  nn1  active", "  nn2  1. fit: 10 transactions behind, priority 100"]),
    "names of two lengths": (
        plan_views.with_namenode(WELL, "nn2", namenode="nn10"),
        ["  nn1   active", "  nn10  1. fit: 10 transactions behind, priority 100"],
    ),
    "an active whose ZKFC is gone": (
        plan_views.with_zkfc(WELL, "nn1", error=REFUSED),
        [
            f"  nn1  active, but: {NO_ZKFC}  → {START_ZKFC}",
            "  nn2  1. fit: 10 transactions behind, priority 100",
        ],
    ),
    "an observer": (
        plan_views.with_namenode(WELL, "nn2", state="observer"),
        ["  nn1  active", f"  nn2  no: {OBSERVER}"],
    ),
    "a silent one": (
        plan_views.without_answer(WELL, "nn2"),
        ["  nn1  active", f"  nn2  not known: NameNode: {SILENT}  → {ask_again('h')}"],
    ),
}


@pytest.mark.parametrize(("view", "expected"), LINES.values(), ids=LINES)
def test_each_namenode_has_its_lines(view: ClusterView, expected: list[str]) -> None:
    lines = list(explain(view).as_lines())
    assert [line for line in lines if line.startswith("  nn")] == expected


def test_the_document_says_all_of_it_by_fixed_keys() -> None:
    record = replace(RECORD, namenode="nn1", kind=FailoverKind.FIRST, previous=None)
    view = plan_views.with_namenode(
        replace(plan_views.THREE, lock=LockView(error=SILENT)), "nn3", state="observer"
    )
    view = replace(view, notices=NoticesView(history=(HistoryEntry(7, record),)))
    told = explain(view)
    assert told.as_json() == {
        "apiVersion": API_VERSION,
        "command": "explain",
        "nameservice": "ns1",
        "taken_at": "2026-01-01T00:00:00.000Z",
        "active": "nn1",
        "epoch": 5,
        "why": list(told.why),
        "elected_by": 7,
        "next_active": "nn2",
        "in_general": [
            {
                "text": f"ZooKeeper: {SILENT}",
                "next": "ask again with more time: nnha explain --timeout 10",
            }
        ],
        "namenodes": [
            of_namenode("nn1", active=True, lag_transactions=None),
            of_namenode("nn2", rank=1),
            of_namenode("nn3", fit=False, obstacles=[{"text": OBSERVER, "next": None}]),
        ],
    }


def of_namenode(name: str, **changes: object) -> dict[str, object]:
    standby = {"active": False, "fit": True, "rank": None, "priority": 100, "lag_transactions": 10}
    return {"namenode": name, **standby, "obstacles": [], **changes}
