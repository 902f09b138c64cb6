"""Reports about single replicas: what they leave behind, and what is from the future."""

from typing import Final

import pytest

from namenode_sim.blocks import incremental_reports, reports
from namenode_sim.blocks.incremental_reports import RECENT_LIMIT, RECENT_SECONDS
from namenode_sim.blocks.model import Deleted, Reason, Reported
from namenode_sim.blocks.postponed_reports import ReplicaReport
from namenode_sim.namespace.changes import BlockAdded, BlockIdGiven, BlocksGone, StampGiven
from tests.namenode_sim.blocks import test_reports as given
from tests.namenode_sim.blocks.test_reports import FINALIZED, RBW, B, a_map, added, told, written

WHOLE: Final = Reported(FINALIZED, 1001, 700)

# ---- replicas on their way ----

ARRIVED: Final = {
    "a final replica": (WHOLE, 1),
    "a replica being written": (Reported(RBW, 1001, 0), 2),
    "a replica that waits for its recovery": (Reported(given.RWR, 1001, 0), 2),
    "a deleted replica": (Deleted(1001), 2),
}
"""What is reported, and how many of two replicas are still on their way."""


@pytest.mark.parametrize(("news", "left"), ARRIVED.values(), ids=ARRIVED)
def test_a_replica_has_come_to_its_storage_when_it_is_final(news: ReplicaReport, left: int) -> None:
    state, one, _ = a_map(*written())
    for _ in range(2):
        one.scheduled.add(0.0)
    told(state, one, (B, news))
    assert one.scheduled.count(0.0) == left


# ---- what was reported lately ----


@pytest.mark.parametrize(
    ("later", "known"),
    [
        (RECENT_SECONDS, [B, B + 1, B + 2]),
        (RECENT_SECONDS + 0.5, [B + 1, B + 2]),
        (RECENT_SECONDS + 1.0, [B + 1, B + 2]),
        (2 * RECENT_SECONDS, [B + 2]),
    ],
)
def test_a_storage_remembers_for_ten_minutes_of_which_blocks_it_was_told(
    later: float, known: list[int]
) -> None:
    state, one, _ = a_map()
    told(state, one, (B, WHOLE), now=0.0)
    told(state, one, (B + 1, WHOLE), now=1.0)
    told(state, one, (B + 2, WHOLE), now=later)
    assert list(one.recent) == known
    assert RECENT_SECONDS == 600.0


def test_a_block_that_is_told_of_again_is_remembered_from_then_on() -> None:
    state, one, _ = a_map()
    for number, now in ((B, 0.0), (B + 1, 1.0), (B, 500.0), (B + 2, 700.0)):
        told(state, one, (number, WHOLE), now=now)
    assert one.recent == {B: (500.0, 1001), B + 2: (700.0, 1001)}


def test_of_a_block_the_newest_stamp_that_was_told_is_remembered() -> None:
    state, one, _ = a_map()
    for stamp in (1001, 1003, 1002):
        told(state, one, (B, Reported(RBW, stamp, 0)), now=1.0)
    assert one.recent == {B: (1.0, 1003)}


@pytest.mark.parametrize(
    ("known", "forgotten"),
    [(RECENT_LIMIT - 1, []), (RECENT_LIMIT, [0]), (RECENT_LIMIT + 1, [0, 1])],
)
def test_of_a_hundred_thousand_blocks_the_oldest_is_forgotten(
    known: int, forgotten: list[int]
) -> None:
    state, one, _ = a_map()
    one.recent.update(dict.fromkeys(range(known), (1.0, 1001)))
    told(state, one, (B, WHOLE), now=2.0)
    left = dict.fromkeys(range(len(forgotten), known), (1.0, 1001))
    assert one.recent == left | {B: (2.0, 1001)}
    assert RECENT_LIMIT == 100_000


# ---- late news of replicas that are gone ----

GONE: Final = Deleted(1001)
AFTER_A_DELETION: Final = {
    "it has not come before": ([WHOLE], True),
    "it is told once more": ([WHOLE, WHOLE], True),
    "it was told to be gone": ([WHOLE, GONE, WHOLE], False),
    "it was told to be gone once more": ([WHOLE, GONE, GONE, WHOLE], False),
    "one with an older stamp is gone": ([Deleted(1000), WHOLE], True),
    "an older one was told late in between": (
        [WHOLE, GONE, Reported(FINALIZED, 1000, 700), WHOLE],
        False,
    ),
    "an older one was told to be gone since": ([WHOLE, GONE, Deleted(1000), WHOLE], False),
    "it is being written again": ([WHOLE, GONE, Reported(RBW, 1001, 0)], True),
}
"""What is reported of a replica, and whether its storage stays confirmed."""


@pytest.mark.parametrize(("news", "sure"), AFTER_A_DELETION.values(), ids=AFTER_A_DELETION)
def test_news_of_a_replica_that_is_gone_may_be_late(
    *, news: list[ReplicaReport], sure: bool
) -> None:
    """Between them its DataNode registers anew, and is asked for a report."""
    state, one, other = a_map(*written())
    incremental_reports.activate(state)
    for now, each in enumerate(news):
        state.registered("n1")
        one.confirmed = one.heartbeated = other.confirmed = True
        told(state, one, (B, each), now=now)
    assert (one.confirmed, one.needs_full_report, other.confirmed) == (sure, not sure, True)


def test_what_is_told_to_be_gone_again_is_doubted_from_then_on() -> None:
    state, one, _ = a_map(*written(), *written(B + 1), *written(B + 2))
    for number, now in ((B, 0.0), (B + 1, 1.0), (B, 500.0), (B + 2, 700.0)):
        told(state, one, (number, GONE), now=now)
    assert one.gone == {B: (500.0, 1001), B + 2: (700.0, 1001)}


def test_a_replica_that_is_here_is_doubted_once() -> None:
    """Its report may be repeated, and its storage would never be sure."""
    state, one, _ = a_map(*written())
    for each in (GONE, WHOLE):
        told(state, one, (B, each))
    one.confirmed, one.needs_full_report = True, False
    told(state, one, (B, WHOLE))
    assert (one.confirmed, one.needs_full_report) == (True, False)


@pytest.mark.parametrize("later", [RECENT_SECONDS, RECENT_SECONDS + 1])
def test_a_replica_that_a_full_report_lacks_is_gone_for_ten_minutes(later: float) -> None:
    state, one, _ = a_map(*written(), *written(B + 1))
    told(state, one, (B, WHOLE))
    given.reported(state, one, made_after=1.0)
    one.confirmed = True
    told(state, one, (B + 1, GONE), now=1.0 + later)
    told(state, one, (B, WHOLE), now=1.0 + later)
    assert one.confirmed is (later > RECENT_SECONDS)


@pytest.mark.parametrize(("made_after", "settled"), [(2.0, False), (3.0, False), (3.5, True)])
def test_late_news_is_settled_by_a_report_that_was_made_after_it(
    *, made_after: float, settled: bool
) -> None:
    state, one, _ = a_map(*written())
    incremental_reports.activate(state)
    told(state, one, (B, GONE), now=1.0)
    told(state, one, (B, WHOLE), now=3.0)
    one.heartbeated = True
    reports.finish(state, one, made_after=made_after)
    assert (one.confirmed, one.needs_full_report) == (settled, not settled)


def test_of_a_block_that_the_map_does_not_have_no_late_news_is_feared() -> None:
    state, one, _ = a_map()
    told(state, one, (B, GONE))
    assert not one.gone


def test_of_a_hundred_thousand_replicas_that_are_gone_the_oldest_is_forgotten() -> None:
    state, one, _ = a_map(*written())
    one.gone.update(dict.fromkeys(range(RECENT_LIMIT), (1.0, 1001)))
    told(state, one, (B, GONE), now=2.0)
    assert len(one.gone) == RECENT_LIMIT
    assert 0 not in one.gone


# ---- late news of deletions ----

LATE_DELETIONS: Final = {
    "of this replica": ([WHOLE], 1001, (False, True)),
    "of an older one": ([WHOLE], 1000, (True, False)),
    "of a newer one": ([WHOLE], 1002, (False, True)),
    "of a corrupt one": ([Reported(FINALIZED, 1000, 700)], 1000, (False, True)),
    "of an older one than the corrupt": ([Reported(FINALIZED, 1000, 700)], 999, (True, False)),
    "where none is known": ([], 1000, (False, True)),
}
"""What was reported of a replica, the stamp of the deletion, and then: is it held, is it sure."""


@pytest.mark.parametrize(("news", "stamp", "left"), LATE_DELETIONS.values(), ids=LATE_DELETIONS)
def test_a_deletion_of_an_older_replica_is_late_and_takes_none(
    news: list[ReplicaReport], stamp: int, left: tuple[bool, bool]
) -> None:
    state, one, other = a_map(*written())
    incremental_reports.activate(state)
    for each in news:
        told(state, one, (B, each))
    one.confirmed = one.heartbeated = other.confirmed = True
    recent = dict(one.recent)
    told(state, one, (B, Deleted(stamp)), now=5.0)
    slot = state.map.find(B)
    assert slot is not None
    assert (state.map.holds(slot, one.number), one.confirmed) == left
    assert (one.needs_full_report, one.doubted == 5.0, other.confirmed) == (
        not left[1], not left[1], True,
    )  # fmt: skip
    assert left[1] or (dict(one.recent), dict(one.gone)) == (recent, {})


@pytest.mark.parametrize(("stamp", "expected"), [(1000, True), (1001, False)])
def test_a_late_deletion_leaves_a_replica_that_is_being_written(
    stamp: int, *, expected: bool
) -> None:
    state, one, _ = a_map(*added())
    told(state, one, (B, Reported(RBW, 1001, 0)), (B, Deleted(stamp)))
    slot = state.map.find(B)
    assert slot is not None
    assert (state.map.stamp_on(slot, one.number) == 1001) is expected
    assert one.needs_full_report is expected


OF_THE_FUTURE: Final = Reported(FINALIZED, 1005, 700)
NEXT: Final = Reported(RBW, 1006, 0)
WAITING: Final = {
    "a final replica after one being written": ([Reported(RBW, 1005, 0), OF_THE_FUTURE], 1),
    "one being written, late": ([OF_THE_FUTURE, Reported(RBW, 1005, 0)], 0),
    "one being written under a newer stamp": ([OF_THE_FUTURE, NEXT], 1),
    "a final one of an older stamp, late": ([NEXT, OF_THE_FUTURE], 0),
    "the same once more": ([OF_THE_FUTURE, OF_THE_FUTURE], 1),
    "its deletion": ([OF_THE_FUTURE, Deleted(1005)], 1),
    "a deletion of an older one, late": ([OF_THE_FUTURE, Deleted(1004)], 0),
    "a replica after its deletion": ([Deleted(1005), OF_THE_FUTURE], 1),
    "a deletion after a deletion": ([Deleted(1005), Deleted(1004)], 1),
}
"""What a standby is sent in this order about edits to come, and which of it waits."""


@pytest.mark.parametrize(("news", "waits"), WAITING.values(), ids=WAITING)
def test_of_two_reports_the_newer_state_of_the_replica_waits(
    news: list[ReplicaReport], waits: int
) -> None:
    """The bad schedule: news of a replica being written is held up until it is final."""
    state, one, _ = a_map()
    for each in news:
        told(state, one, (B, each))
    assert list(state.postponed_reports) == [(B, one.number, news[waits])]


def test_a_full_report_says_of_waiting_replicas_what_is_true_now() -> None:
    state, one, _ = a_map()
    told(state, one, (B, NEXT))
    incremental_reports.take_in(state, one, B, OF_THE_FUTURE, of_full_report=True)
    assert list(state.postponed_reports) == [(B, one.number, OF_THE_FUTURE)]


# ---- blocks that the map does not know ----


@pytest.mark.parametrize("news", [WHOLE, Deleted(1001)], ids=["final", "deleted"])
@pytest.mark.parametrize(("block_id", "counts"), [(-16, 0), (-1, 0), (0, 1), (1, 1)])
def test_a_report_about_a_unit_of_a_striped_group_does_not_count(
    block_id: int, counts: int, news: ReplicaReport
) -> None:
    """A standby lets that about another block wait: its stamp is new."""
    state, one, _ = a_map()
    told(state, one, (block_id, news))
    assert len(state.postponed_reports) == counts


UNKNOWN: Final = {
    "the first full report in the safe mode of the start": (True, 0, True, 300, {}),
    "another full report": (True, 1, True, 0, {("n1", B): 2000}),
    "an incremental report": (True, 0, False, 0, {("n1", B): 2000}),
    "the first full report after the safe mode": (False, 0, True, 0, {("n1", B): 2000}),
}
"""Whether it is the start, full reports before, and what becomes of a replica from the future."""


@pytest.mark.parametrize(
    ("starting", "reports", "full", "in_future", "ordered"), UNKNOWN.values(), ids=UNKNOWN
)
def test_an_active_has_an_unknown_replica_deleted_but_for_first_reports_of_the_start(
    *, starting: bool, reports: int, full: bool, in_future: int, ordered: dict[tuple[str, int], int]
) -> None:
    state, one, _ = a_map()
    incremental_reports.activate(state)
    state.set_starting(starting=starting)
    one.reports = reports
    incremental_reports.take_in(state, one, B, Reported(FINALIZED, 2000, 300), of_full_report=full)
    assert (state.map.safe_counts()[2], given.orders(state)) == (in_future, ordered)


@pytest.mark.parametrize("active", [False, True], ids=["standby", "active"])
@pytest.mark.parametrize(("stamp", "counted"), [(1000, 0), (2000, 300)], ids=["old", "new"])
def test_bytes_are_counted_that_are_from_the_future_of_an_active(
    stamp: int, counted: int, *, active: bool
) -> None:
    """A standby waits for the edits that are still to come."""
    state, one, _ = a_map(*written())
    if active:
        incremental_reports.activate(state)
    told_of = Reported(FINALIZED, stamp, 300)
    incremental_reports.take_in(state, one, B - 1, told_of, of_full_report=True)
    assert state.map.safe_counts()[2] == (counted if active else 0)


FUTURE: Final = {
    "a shown block and stamp": (B, 1005, False),
    "a shown block with a newer stamp": (B, 1006, True),
    "a shown block with an older stamp": (B + 4, 1001, False),
    "an unknown block before the last": (B + 1, 1001, False),
    "an unknown block before the last, with a newer stamp": (B + 1, 1006, True),
    "the last block, which is gone": (B + 5, 1001, False),
    "an unknown block after the last": (B + 6, 1001, True),
    "a block after the last one whose stamp is its id": (B + 6, 1005, True),
}


@pytest.mark.parametrize(("block_id", "stamp", "is_new"), FUTURE.values(), ids=FUTURE)
def test_a_newer_stamp_is_from_the_future_and_a_newer_id_of_an_unknown_block(
    block_id: int, stamp: int, *, is_new: bool
) -> None:
    state, *_ = a_map(*written(B + 4), *written(B + 5), *added(B, 1005), BlocksGone((B + 5,)))
    assert state.map.is_from_future(block_id, stamp) is is_new


def test_a_block_that_is_known_is_not_from_the_future_by_its_id() -> None:
    state, *_ = a_map(*written())
    state.ids.seen_id = B - 1
    assert not state.map.is_from_future(B, 1001)


# ---- late reports ----

LATE: Final = {
    "the block's own stamp is told of a final replica": ([Reported(FINALIZED, 1002, 700)], True),
    "the block's own stamp is told of one being written": ([Reported(RBW, 1002, 0)], True),
    "nothing is told": ([], False),
    "an older stamp is told": ([Reported(RBW, 1001, 0)], False),
}
"""What was reported of a block being written, and whether an old stamp is late then."""


@pytest.mark.parametrize(("news", "is_late"), LATE.values(), ids=LATE)
def test_an_old_stamp_is_late_when_the_storage_has_told_the_blocks_own(
    news: list[Reported], *, is_late: bool
) -> None:
    state, one, _ = a_map(*added(B, 1002))
    incremental_reports.activate(state)
    told(state, one, *((B, item) for item in news))
    told(state, one, (B, Reported(RBW, 1001, 1002)))
    assert given.corrupt(state) == ([] if is_late else [Reason.GENSTAMP_MISMATCH])


def test_an_old_stamp_is_not_late_when_the_storage_holds_a_stamp_of_another_writing() -> None:
    """The replica is newer than the block, whose edit with its stamp is yet to come."""
    state, one, _ = a_map(*added(B, 1002))
    incremental_reports.activate(state)
    told(state, one, (B, Reported(RBW, 1003, 1002)))
    told(state, one, (B, Reported(RBW, 1001, 0)))
    assert given.corrupt(state) == [Reason.GENSTAMP_MISMATCH]


# ---- deletions, and the role ----


@pytest.mark.parametrize("active", [False, True], ids=["standby", "active"])
def test_a_deletion_that_is_from_the_future_waits_on_a_standby(*, active: bool) -> None:
    state, one, _ = a_map(*written())
    if active:
        incremental_reports.activate(state)
    told(state, one, (B, WHOLE), (B, Deleted(1002)))
    assert (given.good(state), len(state.postponed_reports)) == (([], 0) if active else (["n1"], 1))


def test_what_waits_is_judged_by_a_new_active() -> None:
    """One replica is of an unknown block, and one has been written again."""
    state, one, other = a_map(*written())
    told(state, one, (B + 9, Reported(FINALIZED, 1009, 1)), (B, Reported(RBW, 1002, 700)))
    told(state, other, (B, Reported(FINALIZED, 1002, 900)))
    incremental_reports.activate(state)
    state.map.check()
    assert (len(state.postponed_reports), given.orders(state)) == (0, {("n1", B + 9): 1009})
    assert given.corrupt(state) == [Reason.GENSTAMP_MISMATCH] * 2


GIVEN: Final = {
    "the given ones are ahead": ([StampGiven(1009), BlockIdGiven(B + 9)], 1009, B + 9),
    "the shown ones are ahead": ([], 1005, B + 5),
}


@pytest.mark.parametrize(("changes", "stamp", "block_id"), GIVEN.values(), ids=GIVEN)
def test_an_active_has_seen_what_was_given_out_and_what_was_shown(
    changes: list[StampGiven | BlockIdGiven], stamp: int, block_id: int
) -> None:
    state, *_ = a_map(BlockAdded(given.FILE, B + 5, 0, 1005, 3, complete=True), *changes)
    assert (state.ids.seen_stamp, state.ids.seen_id) == (1005, B + 5)
    incremental_reports.activate(state)
    assert (state.ids.seen_stamp, state.ids.seen_id) == (stamp, block_id)
