"""When a standby saves and ships, as a table."""

import pytest

from journal.model import TxId
from namenode_sim.checkpoint.schedule import (
    CheckpointRules,
    CheckpointState,
    Shipment,
    UploadAnswer,
    due_reason,
    note_answer,
    note_saved,
    targets_for,
)

RULES = CheckpointRules(period_seconds=100.0, edits=10, check_seconds=60.0)
START = CheckpointState(last_at=1000.0, last_txid=TxId(50))


@pytest.mark.parametrize(
    ("applied", "now", "due"),
    [
        (50, 5000.0, False),  # nothing new: an equal image would be refused anyway
        (59, 1099.0, False),
        (60, 1001.0, True),  # by edits
        (51, 1100.0, True),  # by time
        (40, 5000.0, False),  # another's image is ahead of what we have applied
    ],
)
def test_due_by_edits_or_by_time(applied: int, now: float, *, due: bool) -> None:
    assert bool(due_reason(START, RULES, TxId(applied), now)) is due


def test_the_first_by_time_comes_one_period_after_the_start_and_then_again() -> None:
    state = note_saved(START, TxId(51), 1100.0)
    assert not due_reason(state, RULES, TxId(52), 1199.0)
    assert due_reason(state, RULES, TxId(52), 1200.0)


def test_it_looks_at_least_once_a_period() -> None:
    assert RULES.pause_seconds == 60.0
    assert CheckpointRules(period_seconds=5.0).pause_seconds == 5.0


def test_a_failed_upload_is_offered_again_though_no_edit_came() -> None:
    """Hadoop's trap: the next look finds the image saved and skips the shipping as well."""
    state = note_saved(START, TxId(60), 1100.0)
    assert targets_for(state, RULES, ("nn1",), 1100.0) == ("nn1",)
    state = note_answer(state, "nn1", TxId(60), UploadAnswer.FAILED, 1100.0)
    assert targets_for(state, RULES, ("nn1",), 1160.0) == ("nn1",)
    state = note_answer(state, "nn1", TxId(60), UploadAnswer.ACCEPTED, 1161.0)
    assert targets_for(state, RULES, ("nn1",), 1220.0) == ()


def test_a_standby_that_is_forestalled_keeps_quiet_for_a_period_and_a_half() -> None:
    state = note_answer(
        note_saved(START, TxId(60), 0.0), "nn1", TxId(60), UploadAnswer.HAS_NEWER, 1000.0
    )
    assert targets_for(state, RULES, ("nn1",), 1150.0) == ()  # it has refused that very image
    state = note_saved(state, TxId(70), 1100.0)
    assert targets_for(state, RULES, ("nn1",), 1149.0) == ()
    assert targets_for(state, RULES, ("nn1",), 1150.0) == ("nn1",)
    again = note_answer(state, "nn1", TxId(70), UploadAnswer.ACCEPTED, 1150.0)
    assert again.shipments["nn1"] == Shipment(offered=TxId(70))
    assert targets_for(note_saved(again, TxId(80), 1151.0), RULES, ("nn1",), 1151.0) == ("nn1",)


def test_a_standby_that_is_forestalled_keeps_quiet_through_a_failover() -> None:
    state = note_answer(
        note_saved(START, TxId(60), 0.0), "nn1", TxId(60), UploadAnswer.HAS_NEWER, 1000.0
    )
    state = note_answer(
        note_saved(state, TxId(70), 0.0), "nn1", TxId(70), UploadAnswer.NOT_ACTIVE, 1010.0
    )
    state = note_saved(state, TxId(80), 1100.0)
    assert targets_for(state, RULES, ("nn1",), 1149.0) == ()
    assert targets_for(state, RULES, ("nn1",), 1150.0) == ("nn1",)


def test_each_target_has_its_own_history() -> None:
    state = note_saved(START, TxId(60), 0.0)
    state = note_answer(state, "nn1", TxId(60), UploadAnswer.ACCEPTED, 1.0)
    state = note_answer(state, "nn3", TxId(60), UploadAnswer.NOT_ACTIVE, 1.0)
    assert targets_for(state, RULES, ("nn1", "nn3", "nn4"), 2.0) == ("nn4",)
    assert targets_for(note_saved(state, TxId(70), 3.0), RULES, ("nn1", "nn3"), 3.0) == (
        "nn1",
        "nn3",
    )
