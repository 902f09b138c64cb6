"""What the map of blocks takes from a namespace, and from single edits."""

from typing import Final

import pytest

from journal.model import TxId
from namenode_sim.blocks import apply_edits, incremental_reports
from namenode_sim.blocks.model import Cut, Reported, Role, Slot, Stage
from namenode_sim.blocks.state import BlockState
from namenode_sim.edits.values import Block
from namenode_sim.namespace import changes, inode
from namenode_sim.namespace.file_numbers import pack_blocks, pack_numbers
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.blocks import test_reports as given

LEGACY: Final = 1500
"""The highest stamp of the old kind in these namespaces; stamps of the new kind begin at 2000."""


def a_file(
    number: int,
    *blocks: Block,
    replication: int = 3,
    is_open: bool = False,
    kept: Block | None = None,
) -> inode.INodeFile:
    """Build a file; ``kept`` is a block that only a snapshot of it has."""
    traits = inode.FileTraits(
        "hdfs",
        "hdfs",
        0o644,
        replication,
        2**27,
        under_construction=inode.UnderConstruction("client", "host") if is_open else None,
        history=inode.FileHistory([inode.FileDiff(1, 700, packed_blocks=pack_blocks((kept,)))])
        if kept
        else None,
    )
    return inode.INodeFile(b"%d" % number, pack_numbers(number, 0, 0, pack_blocks(blocks)), traits)


def a_namespace(
    *files: inode.INodeFile, given_stamp: int = 2000, given_id: int = given.B
) -> Namespace:
    """Build a namespace after its edit 41, upgraded from one with stamps of the old kind."""
    namespace = Namespace.empty("hdfs")
    namespace.tree.inodes.extend(list(files))
    namespace.counters.generation_stamp_v1 = LEGACY
    namespace.counters.generation_stamp_v1_limit = 2000
    namespace.counters.generation_stamp_v2 = given_stamp
    namespace.counters.last_block_id = given_id
    namespace.last_applied = TxId(41)
    return namespace


def loaded(*files: inode.INodeFile, given_stamp: int = 2000, given_id: int = given.B) -> BlockState:
    state = BlockState()
    apply_edits.load(state, a_namespace(*files, given_stamp=given_stamp, given_id=given_id))
    state.map.check()
    return state


def rows(state: BlockState) -> dict[int, tuple[int, int, int, int, Stage]]:
    """Of each block its file, length, stamp, expected replicas and stage."""
    found = {}
    for slot in map(Slot, range(state.map.slot_count())):
        block = state.map.block(slot)
        assert state.map.find(block.id) == slot
        found[block.id] = block.file_id, block.length, block.stamp, block.expected, block.stage
    assert len(found) == state.map.block_count()
    return found


@pytest.mark.parametrize("at_once", [1, 2, 3, 50_000])
def test_every_block_of_a_namespace_is_loaded_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever number of plain files is loaded together."""
    monkeypatch.setattr(apply_edits, "AT_ONCE", at_once)
    state = loaded(
        a_file(given.FILE, Block(1, 100, 2001), Block(given.B, 200, 2002)),
        a_file(given.FILE + 1),
        a_file(given.FILE + 2, Block(given.B + 1, 300, 2003), replication=2),
        a_file(given.FILE + 3, Block(-16, 400, 2004), replication=0),
        a_file(
            given.FILE + 4, Block(given.B + 2, 500, 2005), Block(given.B + 3, 0, 2006), is_open=True
        ),
        a_file(given.FILE + 5, Block(given.B + 4, 600, 2007), kept=Block(given.B + 5, 700, 2008)),
        a_file(given.FILE + 6, Block(given.B + 6, 800, 2009)),
    )
    assert rows(state) == {
        1: (given.FILE, 100, 2001, 3, Stage.COMPLETE),
        given.B: (given.FILE, 200, 2002, 3, Stage.COMPLETE),
        given.B + 1: (given.FILE + 2, 300, 2003, 2, Stage.COMPLETE),
        -16: (given.FILE + 3, 400, 2004, 0, Stage.COMPLETE),
        given.B + 2: (given.FILE + 4, 500, 2005, 3, Stage.COMPLETE),
        given.B + 3: (given.FILE + 4, 0, 2006, 3, Stage.UNDER_CONSTRUCTION),
        given.B + 4: (given.FILE + 5, 600, 2007, 3, Stage.COMPLETE),
        given.B + 5: (given.FILE + 5, 700, 2008, 3, Stage.COMPLETE),
        given.B + 6: (given.FILE + 6, 800, 2009, 3, Stage.COMPLETE),
    }
    assert (state.map.safe_counts()[0], state.applied) == (7, 41)
    assert (state.ids.seen_stamp, state.ids.seen_id) == (2009, given.B + 6)


GIVEN: Final = {
    "the counters are ahead of the blocks": (2050, given.B + 50),
    "the blocks are ahead of the counters": (2001, given.B + 1),
}


@pytest.mark.parametrize(("given_stamp", "given_id"), GIVEN.values(), ids=GIVEN)
def test_no_stamp_or_id_counts_as_new_that_a_counter_or_a_block_has(
    given_stamp: int, given_id: int
) -> None:
    file = a_file(given.FILE, Block(given.B + 9, 700, 2009))
    state = loaded(file, given_stamp=given_stamp, given_id=given_id)
    assert (state.ids.seen_stamp, state.ids.seen_id) == (2009, given.B + 9)
    assert (state.ids.given_stamp, state.ids.given_id) == (
        max(given_stamp, 2009),
        max(given_id, given.B + 9),
    )


def test_an_edit_that_settles_a_block_shows_its_stamp_and_no_new_id() -> None:
    state, *_ = given.a_map(*given.added())
    given.after(state, [changes.BlockSettled(given.B, given.B + 9, given.B + 5, complete=True)])
    assert (state.ids.seen_stamp, state.ids.seen_id) == (given.B + 5, given.B)


FROM_FUTURE: Final = {
    "old kind, given out": (LEGACY, False),
    "old kind, after the last one": (LEGACY + 1, True),
    "old kind, the highest that there can be": (1999, True),
    "new kind, the lowest that there can be": (2000, False),
    "new kind, shown": (2001, False),
    "new kind, after the last one": (2002, True),
}


@pytest.mark.parametrize(("stamp", "is_new"), FROM_FUTURE.values(), ids=FROM_FUTURE)
def test_stamps_of_the_old_kind_have_a_counter_of_their_own(stamp: int, is_new: bool) -> None:
    state = loaded(
        a_file(given.FILE, Block(7, 700, 1400)), a_file(given.FILE + 1, Block(given.B, 700, 2001))
    )
    assert state.map.is_from_future(7, stamp) is is_new


@pytest.mark.parametrize("role", Role)
def test_stamps_and_ids_that_were_given_out_only_rise_and_the_active_has_seen_them(
    role: Role,
) -> None:
    state, *_ = given.a_map()
    if role is Role.ACTIVE:
        incremental_reports.activate(state)
    seen = state.ids.seen_stamp, state.ids.seen_id
    for stamp, block_id in ((1001, given.B), (1009, given.B + 9), (1005, given.B + 5)):
        given.after(state, [changes.StampGiven(stamp), changes.BlockIdGiven(block_id)])
    assert (state.ids.given_stamp, state.ids.given_id) == (1009, given.B + 9)
    assert (state.ids.seen_stamp, state.ids.seen_id) == (
        seen if role is Role.STANDBY else (1009, given.B + 9)
    )


def test_a_standby_keeps_the_replica_of_an_id_that_was_given_out_before_its_block_is_added() -> (
    None
):
    # Another block has shown a newer stamp: only the id says that this one is still to come.
    state, one, _ = given.a_map(*given.added(given.B, 1005), changes.BlockIdGiven(given.B + 1))
    given.told(state, one, (given.B + 1, Reported(given.FINALIZED, 1004, 700)))
    given.after(state, [changes.BlockAdded(given.FILE, given.B + 1, 700, 1004, 3, complete=True)])
    assert given.good(state, given.B + 1) == ["n1"]


def test_a_truncation_keeps_the_replicas_that_are_to_be_cut() -> None:
    state, one, other = given.a_map(*given.written())
    for storage in (one, other):
        given.told(state, storage, (given.B, Reported(given.FINALIZED, 1001, 700)))
    given.after(
        state,
        [
            changes.BlockSettled(given.B, 700, 1001, complete=False),
            changes.BlockCut(given.B, 300, 1002, given.B),
        ],
    )
    (construction,) = map(state.map.construction, state.map.unfinished())
    assert construction.cut == Cut(300, 1002, given.B)
    assert {place.storage for place in construction.locations} == {one.number, other.number}


def test_an_append_keeps_the_replicas_that_were_to_be_deleted() -> None:
    state, one, other = given.a_map(*given.written())
    incremental_reports.activate(state)
    for storage in (one, other):
        given.told(state, storage, (given.B, Reported(given.FINALIZED, 1001, 700)))
    slot = state.map.find(given.B)
    assert slot is not None
    state.order_deletion(slot, one.number, now=1.0)
    given.after(state, [changes.BlockSettled(given.B, 700, 1001, complete=False)])
    assert (given.orders(state), list(state.map.pending_deletions)) == ({}, [])
    assert given.good(state) == ["n1", "n2"]


REOPENED: Final = {
    "complete": (Stage.COMPLETE, Stage.UNDER_CONSTRUCTION),
    "committed": (Stage.COMMITTED, Stage.UNDER_CONSTRUCTION),
    "being written": (Stage.UNDER_CONSTRUCTION, Stage.UNDER_CONSTRUCTION),
    "being recovered": (Stage.UNDER_RECOVERY, Stage.UNDER_RECOVERY),
}


@pytest.mark.parametrize(("stage", "then"), REOPENED.values(), ids=REOPENED)
def test_an_edit_that_leaves_a_block_open_reopens_one_whose_writing_had_ended(
    stage: Stage, then: Stage
) -> None:
    """A committed block would otherwise become complete while it is written."""
    state, *_ = given.a_map(*given.added())
    incremental_reports.activate(state)
    slot = state.map.find(given.B)
    assert slot is not None
    state.set_stage(slot, stage)
    given.after(state, [changes.BlockSettled(given.B, 700, 1001, complete=False)])
    state.map.check()
    assert given.stage_of(state) is then


def test_a_committed_block_that_is_reopened_is_complete_only_after_the_next_close() -> None:
    state, one, _ = given.a_map(*given.added())
    incremental_reports.activate(state)
    given.after(state, given.closed())
    given.after(state, [changes.BlockSettled(given.B, 700, 1001, complete=False)])
    given.told(state, one, (given.B, Reported(given.FINALIZED, 1001, 700)))
    assert given.stage_of(state) is Stage.UNDER_CONSTRUCTION
    given.told(state, one, (given.B, Reported(given.RBW, 1002, 700)))
    given.after(state, given.closed(stamp=1002, length=900))
    assert given.stage_of(state) is Stage.COMMITTED
    given.told(state, one, (given.B, Reported(given.FINALIZED, 1002, 900)))
    assert given.stage_of(state) is Stage.COMPLETE
