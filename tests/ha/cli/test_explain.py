"""nnha explain: the present from the history, the future from what is seen."""

import dataclasses
from datetime import timedelta

import pytest

from ha.cli.explain.explanation import explain
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import LockView, NoticesView
from ha.notices.model import FailoverResult, HistoryEntry, Pause
from tests.ha.cli import schema
from tests.ha.cli.test_cluster_view import ACTIVE, GONE, SILENT, STANDBY, WELL, journals
from tests.ha.notices.test_model import NOON, RECORD

LATER = (NOON + timedelta(days=12, hours=4)).isoformat()
VIEW = dataclasses.replace(WELL, taken_at=LATER)
WON = HistoryEntry(12, dataclasses.replace(RECORD, namenode="nn1", previous="nn2"))
NOBODY = dataclasses.replace(
    VIEW, namenodes=(dataclasses.replace(ACTIVE, state="standby"), STANDBY), lock=LockView()
)


def told_by(view: ClusterView, *entries: HistoryEntry) -> ClusterView:
    return dataclasses.replace(view, notices=dataclasses.replace(view.notices, history=entries))


def lines(view: ClusterView, *entries: HistoryEntry) -> list[str]:
    return list(explain(told_by(view, *entries)).as_lines())


def test_the_history_tells_why_the_active_is_active() -> None:
    assert lines(VIEW, WON) == [
        "nn1 is active (epoch 5)",
        "  because nn1 stopped answering health checks (history 12: auto after nn2, in 0.25 s, "
        "12d 4h ago at 2026-05-01T12:00:00.000Z)",
        "  because its ZKFC holds the lock in ZooKeeper",
        "nn2 would become active if it failed now:",
        "  nn1  active",
        "  nn2  1. fit: 10 transactions behind, priority 100",
    ]


def test_a_record_of_another_term_is_not_taken_for_this_one() -> None:
    newer = HistoryEntry(13, dataclasses.replace(RECORD, namenode="nn2"))
    assert explain(told_by(VIEW, newer, WON)).elected_by is None


def test_a_lock_that_the_active_lost_and_won_again_is_not_how_it_became_active() -> None:
    again = dataclasses.replace(RECORD, namenode="nn1", previous="nn1")
    assert explain(told_by(VIEW, HistoryEntry(14, again), WON)).elected_by == 12
    restarted = dataclasses.replace(again, epoch=42)
    assert explain(told_by(VIEW, HistoryEntry(14, restarted), WON)).elected_by == 14


def test_a_failed_attempt_and_an_unreadable_one_are_passed_over() -> None:
    failed = dataclasses.replace(RECORD, namenode="nn2", result=FailoverResult.FAILED)
    entries = [HistoryEntry(15, None, "?"), HistoryEntry(14, failed), WON]
    assert explain(told_by(VIEW, *entries)).elected_by == 12


def test_a_pause_stands_above_the_future() -> None:
    pause = Pause(owner="ann@ops1", reason="new switch", since=NOON, until=None)
    told = lines(dataclasses.replace(VIEW, notices=NoticesView(pause=pause)))
    assert (
        "! automatic failover is paused by ann@ops1 until it is ended: new switch  → nnha resume"
        in told
    )
    assert "nn2 would become active if it failed now, if nothing above prevented it:" in told


NOBODYS: dict[str, tuple[dict[str, object], str]] = {
    "taking over": ({"lock": LockView(holder="nn2")}, "nn2 holds the lock and is taking over"),
    "no ZooKeeper": (
        {"lock": LockView(error="no ZooKeeper server answers")},
        "the election cannot be held: no ZooKeeper server answers",
    ),
    "fencing fails": (
        {"zkfcs": (dataclasses.replace(WELL.zkfcs[0], last_failure="no method succeeded"),)},
        "the last takeover by nn1 failed: no method succeeded",
    ),
    "no journal": (
        journals({"error": GONE}, {"error": GONE}),
        "the journal has no quorum, and without one nobody can serve",
    ),
    "by hand": ({"automatic_failover": False}, "dfs.ha.automatic-failover.enabled is not set"),
    "none fit": (
        {"namenodes": tuple(dataclasses.replace(row, error=GONE) for row in (ACTIVE, STANDBY))},
        "no NameNode is fit, each for the reason below",
    ),
}


@pytest.mark.parametrize("situation", NOBODYS)
def test_where_nobody_is_active_the_cause_is_named(situation: str) -> None:
    changes, cause = NOBODYS[situation]
    view = dataclasses.replace(NOBODY, **changes)  # type: ignore[arg-type]
    if situation == "none fit":
        view = dataclasses.replace(
            view, namenodes=tuple(dataclasses.replace(row, state=None) for row in view.namenodes)
        )
    told = explain(view)
    assert any(cause in reason for reason in told.why), told.why
    assert next(told.as_lines()) == "NO NameNode is active"


def silent(**of_its_zkfc: str) -> ClusterView:
    """nn1 holds the lock and gives no answer, as a process under SIGSTOP."""
    row = dataclasses.replace(ACTIVE, state=None, error=SILENT)
    zkfc = dataclasses.replace(WELL.zkfcs[0], **of_its_zkfc)  # type: ignore[arg-type]
    return dataclasses.replace(VIEW, namenodes=(row, STANDBY), zkfcs=(zkfc, WELL.zkfcs[1]))


def test_an_active_that_hangs_is_told_from_a_takeover_and_what_ends_the_wait() -> None:
    assert lines(silent()) == [
        "NO NameNode says that it is active",
        "  because nn1 holds the lock and gives no answer: it is slow or hangs, or the network is "
        "broken",
        "  because its ZKFC keeps the lock until nn1 has not answered it for "
        "ha.health-monitor.rpc-timeout.ms; then the next one fences it and takes over",
        "nn2 would become active once nn1 has lost the lock:  → at once: nnha switchover nn2",
        f"  nn1  not known: NameNode: {SILENT}  → ask again with more time (--timeout 10); if it "
        "stays silent, look on h whether the process runs and how busy the machine is",
        "  nn2  1. fit: 10 transactions behind, priority 100",
    ]


def test_where_its_zkfc_is_away_too_no_command_is_promised_to_help() -> None:
    told = "\n".join(lines(silent(error=SILENT)))
    assert f"its ZKFC: {SILENT}; the lock ends with its session in ZooKeeper" in told
    assert "switchover" not in told


def test_a_pause_in_which_the_active_is_gone_is_no_takeover() -> None:
    pause = Pause(owner="ann@ops1", reason="new switch", since=NOON, until=None)
    row = dataclasses.replace(ACTIVE, state=None, error=GONE)
    notices = NoticesView(pause=pause)
    told = lines(dataclasses.replace(VIEW, namenodes=(row, STANDBY), notices=notices))
    assert told[:3] == [
        "NO NameNode is active",
        f"  because nn1 holds the lock, but its NameNode gives no usable answer: {GONE}",
        "  because its ZKFC keeps the lock during a pause, even if the NameNode fails",
    ]
    assert (
        "nn2 would become active once nn1 has lost the lock, if nothing above prevented it:  "
        "→ at once: nnha switchover nn2"
    ) in told


def test_an_active_whose_zkfc_is_gone_is_told_with_what_comes_of_it() -> None:
    zkfc = dataclasses.replace(WELL.zkfcs[0], error=GONE)
    told = lines(dataclasses.replace(VIEW, zkfcs=(zkfc, WELL.zkfcs[1])))
    assert f"  because its ZKFC: {GONE}; the lock is still there, and ends with its session" in told
    assert (
        f"  nn1  active, but: ZKFC: {GONE}  → start it on h: nnha zkfc -D dfs.ha.namenode.id=nn1"
    ) in told


def test_without_zookeeper_the_history_is_not_blamed() -> None:
    view = dataclasses.replace(VIEW, lock=LockView(error="no ZooKeeper server answers"))
    assert "stands in ZooKeeper, which cannot be read now" in lines(view)[1]


BARE: dict[str, object] = {"formatted": False}


@pytest.mark.parametrize(
    ("changes", "helps"),
    [
        ({"lock": LockView(error="/x is not formatted; nnha")}, "  → nnha zkfc --format-zk"),
        ({"lock": LockView(error="no server answers")}, "  → start its servers"),
        (journals(BARE, BARE, BARE), "nnha namenode --format"),
        (journals(BARE, BARE), "start the JournalNodes that do not answer"),
        (journals({"error": GONE}, {"error": GONE}), "start the JournalNodes"),
    ],
)
def test_what_bars_everybody_is_told_with_what_mends_it(
    changes: dict[str, object], helps: str
) -> None:
    view = dataclasses.replace(NOBODY, **changes)  # type: ignore[arg-type]
    assert any(line.startswith("! ") and helps in line for line in lines(view)), lines(view)


def test_each_obstacle_has_its_line_and_what_helps() -> None:
    down = dataclasses.replace(STANDBY, state=None, error=GONE)
    zkfc = dataclasses.replace(WELL.zkfcs[1], error=GONE)
    view = dataclasses.replace(VIEW, namenodes=(ACTIVE, down), zkfcs=(WELL.zkfcs[0], zkfc))
    told = lines(view)
    assert "No NameNode could become active if it failed now:" in told
    start = "start it on h: nnha"
    ours = "-D dfs.ha.namenode.id=nn2"
    assert f"  nn2  no: NameNode: {GONE}  → {start} namenode {ours}" in told
    assert f"  nn2  no: ZKFC: {GONE}  → {start} zkfc {ours}" in told


def test_one_node_alone_keeps_its_rank() -> None:
    told = explain(told_by(VIEW, WON), only="nn2")
    assert [one.namenode for one in told.candidates_of] == ["nn2"]
    assert told.as_json()["namenodes"][0]["rank"] == 1  # type: ignore[index]


def test_the_document_is_as_its_schema_says() -> None:
    for view in (dataclasses.replace(VIEW, taken_at=WELL.taken_at), NOBODY):
        document = {**explain(told_by(view, WON)).as_json(), "taken_at": WELL.taken_at}
        assert schema.faults("explain", document) == []
