"""Reports and failovers, schedule by schedule."""

from collections.abc import Iterable

import numpy as np
import pytest

from journal.model import TxId
from namenode_sim.blocks import apply_edits, incremental_reports, reports
from namenode_sim.blocks.errors import BadReport, TooManyStorages
from namenode_sim.blocks.model import Deleted, Reason, ReplicaState, Reported, Stage, Storage
from namenode_sim.blocks.postponed_reports import ReplicaReport
from namenode_sim.blocks.state import BlockState
from namenode_sim.blocks.storages import MAX_STORAGES, Storages
from namenode_sim.namespace import changes as namespace_changes
from namenode_sim.namespace.changes import BlockChange, BlockSettled, BlocksGone, StampGiven

B = 2**30 + 1
FILE = 16386
FINALIZED, RBW, RWR = ReplicaState.FINALIZED, ReplicaState.RBW, ReplicaState.RWR


def added(block_id: int = B, stamp: int = 1001) -> list[BlockChange]:
    return [
        namespace_changes.BlockIdGiven(block_id),
        StampGiven(stamp),
        namespace_changes.BlockAdded(FILE, block_id, 0, stamp, 3, complete=False),
    ]


def closed(block_id: int = B, stamp: int = 1001, length: int = 700) -> list[BlockChange]:
    return [BlockSettled(block_id, length, stamp, complete=True)]


def written(block_id: int = B) -> list[BlockChange]:
    return added(block_id) + closed(block_id)


def after(state: BlockState, changes: Iterable[BlockChange]) -> None:
    """Let the map follow one more edit."""
    apply_edits.apply_edit(state, TxId(state.applied + 1), changes)


def a_map(*changes: BlockChange) -> tuple[BlockState, Storage, Storage]:
    state = BlockState()
    after(state, changes)
    return state, state.add_storage("n1", "a"), state.add_storage("n2", "a")


def told(
    state: BlockState, storage: Storage, *items: tuple[int, ReplicaReport], now: float = 0.0
) -> None:
    incremental_reports.receive(state, storage, items, now)
    state.map.check()


def rows(*listed: tuple[int, int, int, int]) -> reports.Rows:
    table = np.array(listed, np.int64).reshape(-1, 4)
    return reports.Rows(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.uint8))


def reported(
    state: BlockState, storage: Storage, *listed: tuple[int, int, int, int], made_after: float = 0.0
) -> reports.Differences:
    (whole,) = reports.parts(reports.in_order(rows(*listed)))
    found = reports.compare(state, storage, whole, made_after)
    reports.settle(state, storage, found, 0, len(found))
    reports.finish(state, storage)
    state.map.check()
    return found


def orders(state: BlockState) -> dict[tuple[str, int], int]:
    return {
        (state.map.storages.at(number).node, block_id): stamp
        for number, block_id, stamp, _ in state.invalidations
    }


def good(state: BlockState, block_id: int = B) -> list[str]:
    slot = state.map.find(block_id)
    assert slot is not None
    numbers = [n for n in state.map.storages_of(slot) if state.map.is_good(slot, n)]
    return [state.map.storages.at(number).node for number in numbers]


def stage_of(state: BlockState, block_id: int = B) -> Stage:
    slot = state.map.find(block_id)
    assert slot is not None
    return state.map.block(slot).stage


def corrupt(state: BlockState, block_id: int = B) -> list[Reason]:
    slot = state.map.find(block_id)
    assert slot is not None
    return [mark.reason for mark in state.map.corrupt_marks(slot).values()]


def test_a_standby_has_the_replicas_of_edits_that_come_later() -> None:
    state, one, other = a_map()
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, other, (B, Reported(RBW, 1001, 0)))
    assert len(state.postponed_reports) == 2
    after(state, written())
    assert good(state) == ["n1"]
    assert len(state.postponed_reports) == 0


def test_an_id_that_is_given_out_does_not_drop_a_replica_of_the_block_to_come() -> None:
    # SET_GENSTAMP_V2 is tailed, the report comes, ADD_BLOCK is tailed only then.
    state, one, _ = a_map(namespace_changes.BlockIdGiven(B), StampGiven(1001))
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    after(state, written())
    assert good(state) == ["n1"]


def test_a_copy_of_an_old_block_does_not_hide_the_one_after_it() -> None:
    # Another block has shown the stamp; the id alone says that this one is from the future.
    state, one, _ = a_map(*added(B, 1005))
    told(state, one, (B + 1, Reported(FINALIZED, 1004, 700)))
    assert len(state.postponed_reports) == 1


@pytest.mark.row("B10")
def test_an_append_while_a_standby_lags_corrupts_nothing() -> None:
    # RBW with the new stamp, FINALIZED with it, and only then the edits of the append.
    state, one, _ = a_map(*written())
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, one, (B, Reported(RBW, 1002, 700)), (B, Reported(FINALIZED, 1002, 900)))
    assert len(state.postponed_reports) == 1
    after(
        state,
        [
            BlockSettled(B, 700, 1001, complete=False),
            StampGiven(1002),
            BlockSettled(B, 700, 1002, complete=False),
        ],
    )
    after(state, closed(stamp=1002, length=900))
    incremental_reports.activate(state)
    assert (good(state), corrupt(state)) == (["n1"], [])


APPENDS = 5


@pytest.mark.row("B10")
@pytest.mark.parametrize("readable", range(3 * APPENDS + 3))
def test_b10_a_standby_that_cannot_read_edits_during_appends_corrupts_nothing(
    readable: int,
) -> None:
    """It reads ``readable`` edits at once, and the others only when it becomes the active."""
    edits: list[list[BlockChange]] = [added(), closed(length=100)]
    news: dict[int, list[ReplicaReport]] = {
        0: [Reported(RBW, 1001, 0)],
        1: [Reported(FINALIZED, 1001, 100)],
    }
    for stamp in range(1002, 1002 + APPENDS):
        length = (stamp - 1000) * 100
        edits.append([BlockSettled(B, length - 100, stamp - 1, complete=False)])
        edits.append([StampGiven(stamp), BlockSettled(B, length - 100, stamp, complete=False)])
        news[len(edits) - 1] = [
            Reported(RBW, stamp, length - 100),
            Reported(FINALIZED, stamp, length),
        ]
        edits.append(closed(stamp=stamp, length=length))
    state, one, other = a_map()
    for number, edit in enumerate(edits):
        if number < readable:
            after(state, edit)
        for item in news.get(number, ()):
            told(state, one, (B, item))
            told(state, other, (B, item))
    assert orders(state) == {}
    for edit in edits[readable:]:
        after(state, edit)
    incremental_reports.activate(state)
    state.map.check()
    assert (good(state), corrupt(state), len(state.postponed_reports)) == (["n1", "n2"], [], 0)
    assert orders(state) == {}


def test_a_report_of_a_replica_being_written_that_is_held_up_until_after_the_close() -> None:
    state, one, other = a_map(*written())
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, other, (B, Reported(RBW, 1001, 0)))
    incremental_reports.activate(state)
    told(state, other, (B, Reported(FINALIZED, 1001, 700)))
    assert (good(state), corrupt(state)) == (["n1", "n2"], [])


def test_the_newest_of_several_reports_waits() -> None:
    state, one, _ = a_map()
    told(state, one, (B, Reported(RBW, 1001, 0)), (B, Reported(FINALIZED, 1002, 700)))
    told(state, one, (B, Deleted(1002)))
    assert len(state.postponed_reports) == 1
    after(state, added(B, 1002) + closed(B, 1002))
    assert good(state) == []


def test_a_late_report_of_an_old_stamp_leaves_the_new_replica_alone() -> None:
    state, one, _ = a_map(*added())
    incremental_reports.activate(state)
    after(state, [StampGiven(1002), BlockSettled(B, 0, 1002, complete=False)])
    told(state, one, (B, Reported(FINALIZED, 1002, 700)))
    after(state, closed(stamp=1002))
    told(state, one, (B, Reported(FINALIZED, 1001, 300)))
    assert (good(state), corrupt(state)) == (["n1"], [])


def test_an_old_replica_in_a_first_full_report_is_not_late() -> None:
    # The disk was restored from a copy while its DataNode was away.
    state, one, _ = a_map(*added(B, 1002), *closed(B, 1002))
    told(state, one, (B, Reported(FINALIZED, 1002, 700)))
    incremental_reports.activate(state)
    state.registered("n1")
    reported(state, one, (B, 300, 1001, FINALIZED))
    assert (good(state), corrupt(state)) == ([], [Reason.GENSTAMP_MISMATCH])


def test_a_wrong_stamp_is_forgiven_by_a_right_one() -> None:
    state, one, _ = a_map(*added(B, 1002), *closed(B, 1002))
    incremental_reports.activate(state)
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    assert corrupt(state) == [Reason.GENSTAMP_MISMATCH]
    told(state, one, (B, Reported(FINALIZED, 1002, 700)))
    assert (good(state), corrupt(state)) == (["n1"], [])


def test_a_full_report_does_not_undo_what_came_after_it_was_made() -> None:
    state, one, _ = a_map(*written(), *written(B + 1))
    told(state, one, (B + 1, Reported(FINALIZED, 1001, 700)), now=50.0)
    told(state, one, (B, Deleted(1001)), now=100.0)
    told(state, one, (B + 1, Reported(FINALIZED, 1001, 700)), now=100.0)
    reported(state, one, (B, 700, 1001, FINALIZED), made_after=90.0)
    assert (good(state), good(state, B + 1)) == ([], ["n1"])
    reported(state, one, (B, 700, 1001, FINALIZED), made_after=110.0)
    assert (good(state), good(state, B + 1)) == (["n1"], [])


def test_a_report_that_says_nothing_new_is_done_at_once() -> None:
    state, one, _ = a_map(*(change for number in range(50) for change in written(B + number)))
    listed = [(B + number, 700, 1001, int(FINALIZED)) for number in reversed(range(50))]
    first = reported(state, one, *listed)
    assert (first.taken, len(first)) == (50, 0)
    again = reported(state, one, *listed)
    assert (again.same, again.taken, len(again)) == (50, 0, 0)
    assert state.map.safe_counts()[1] == state.map.safe_counts()[0] == 50


def test_an_active_has_unknown_replicas_deleted_once_the_start_is_over() -> None:
    state, one, _ = a_map(*written())
    incremental_reports.activate(state)
    reported(state, one, (B - 9, 700, 900, FINALIZED))
    assert orders(state) == {}
    reported(state, one, (B - 9, 700, 900, FINALIZED))
    assert orders(state) == {("n1", B - 9): 900}
    told(state, one, (B - 9, Deleted(900)))
    assert orders(state) == {}


def test_replicas_of_an_image_that_is_too_old_are_counted_and_kept() -> None:
    state, one, _ = a_map(*written())
    incremental_reports.activate(state)
    reported(state, one, (B, 700, 1001, FINALIZED), (B + 9, 300, 2000, FINALIZED))
    assert state.map.safe_counts()[2] == 300
    assert orders(state) == {}


def test_a_deleted_block_takes_its_replicas_with_their_own_stamps() -> None:
    state, one, other = a_map(*added(B, 1002), *closed(B, 1002))
    incremental_reports.activate(state)
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, other, (B, Reported(FINALIZED, 1002, 700)))
    after(state, [BlocksGone((B,))])
    assert orders(state) == {("n1", B): 1001, ("n2", B): 1002}


def test_an_order_leaves_when_the_edit_behind_it_is_durable() -> None:
    state, one, _ = a_map(*written(), *written(B + 1))
    incremental_reports.activate(state)
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, one, (B + 1, Reported(FINALIZED, 1001, 700)))
    after(state, [BlocksGone((B,))])
    after(state, [BlocksGone((B + 1,))])
    assert state.invalidations.take_due(one.number, TxId(1), 10) == []
    assert state.invalidations.take_due(one.number, TxId(2), 10) == [(B, 1001)]
    assert state.invalidations.take_due(one.number, TxId(3), 10) == [(B + 1, 1001)]
    assert len(state.invalidations) == 0


def test_an_append_takes_orders_back() -> None:
    state, one, _ = a_map(*written())
    incremental_reports.activate(state)
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    state.invalidate(one.number, B, 1001)
    after(state, [BlockSettled(B, 700, 1001, complete=False)])
    assert orders(state) == {}


def test_a_standby_orders_nothing() -> None:
    state, one, _ = a_map(*written())
    told(state, one, (B, Reported(FINALIZED, 1001, 700)), (B - 9, Reported(FINALIZED, 900, 1)))
    after(state, [BlocksGone((B,))])
    assert orders(state) == {}


def test_a_committed_block_waits_for_a_replica_and_a_standby_does_not() -> None:
    state, one, _ = a_map(*added())
    incremental_reports.activate(state)
    after(state, closed())
    assert stage_of(state) is Stage.COMMITTED
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    assert stage_of(state) is Stage.COMPLETE
    standby, *_ = a_map(*written())
    assert standby.map.safe_counts()[:2] == (1, 0)


def test_a_storage_is_confirmed_by_a_report_after_a_heartbeat_after_the_activation() -> None:
    state, one, _ = a_map(*written())
    seen: list[bool] = []
    for happens in ("beat", "report", "activate", "report", "beat", "report", "register"):
        match happens:
            case "beat":
                one.heartbeated = True
            case "report":
                reported(state, one)
            case "activate":
                incremental_reports.activate(state)
            case "register":
                state.registered("n1")
        seen.append(one.confirmed)
    assert seen == [False, True, False, False, False, True, False]


def test_what_waits_has_a_limit() -> None:
    state = BlockState(postponed_limit=2)
    one, other = state.add_storage("n1", "a"), state.add_storage("n2", "a")
    told(state, one, (B, Reported(FINALIZED, 1001, 1)))
    told(state, other, (B + 1, Reported(FINALIZED, 1001, 1)))
    short_of_reports = [[each.needs_full_report for each in (one, other)]]
    told(state, other, (B + 2, Reported(FINALIZED, 1001, 1)))
    short_of_reports.append([each.needs_full_report for each in (one, other)])
    reported(state, one)
    short_of_reports.append([each.needs_full_report for each in (one, other)])
    assert short_of_reports == [[False, False], [True, False], [False, False]]


def test_two_storages_of_a_datanode_have_one_replica_together() -> None:
    state, one, _ = a_map(*written())
    second = state.add_storage("n1", "b")
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, second, (B, Reported(FINALIZED, 1001, 700)))
    assert (good(state), len(one.slots), len(second.slots)) == (["n1"], 0, 1)


def test_of_rows_with_one_id_the_newest_stamp_counts() -> None:
    ordered = reports.in_order(rows((9, 5, 3, 0), (7, 5, 1, 0), (9, 5, 4, 0), (9, 5, 2, 0)))
    assert (ordered.ids.tolist(), ordered.stamps.tolist()) == ([7, 9], [1, 4])


def test_ids_at_both_ends_are_sorted() -> None:
    ordered = reports.in_order(rows((B, 5, 3, 0), (-(2**63) + 16, 5, 1, 0)))
    assert ordered.ids.tolist() == [-(2**63) + 16, B]


def test_impossible_rows_are_left_out_and_many_of_them_refuse_the_report() -> None:
    sane = [(number, 5, 3, 0) for number in range(1, 200)]
    assert len(reports.in_order(rows(*sane, (200, -1, 3, 0)))) == 199
    with pytest.raises(BadReport, match="3 of 202 rows"):
        reports.in_order(rows(*sane, (200, 5, -1, 0), (201, 2**48, 3, 0), (202, 5, 3, 5)))


def test_storages_have_numbers_of_sixteen_bits() -> None:
    storages = Storages()
    for number in range(MAX_STORAGES):
        storages.add("n", f"s{number}")
    with pytest.raises(TooManyStorages, match="one more than the 65535"):
        storages.add("n", "another")
    first = storages.find("n", "s0")
    assert first is not None
    storages.remove(first)
    assert storages.add("n", "another").number == 0
