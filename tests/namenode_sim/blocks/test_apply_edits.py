"""What the map of blocks takes from a namespace, and from single edits."""

from typing import Final

import pytest

from journal.model import TxId
from namenode_sim.blocks import apply_edits, incremental_reports
from namenode_sim.blocks.model import Cut, Reported, Role, Slot, Stage
from namenode_sim.blocks.state import BlockState
from namenode_sim.edits.values import Block
from namenode_sim.namespace.changes import (
    BlockAdded,
    BlockCut,
    BlockIdGiven,
    BlockSettled,
    StampGiven,
)
from namenode_sim.namespace.file_numbers import pack_blocks, pack_numbers
from namenode_sim.namespace.inode import (
    FileDiff,
    FileHistory,
    FileTraits,
    INodeFile,
    UnderConstruction,
)
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.blocks.test_reports import (
    FILE,
    FINALIZED,
    RBW,
    B,
    a_map,
    added,
    after,
    closed,
    good,
    orders,
    stage_of,
    told,
    written,
)

LEGACY: Final = 1500
"""The highest stamp of the old kind in these namespaces; stamps of the new kind begin at 2000."""


def a_file(
    number: int,
    *blocks: Block,
    replication: int = 3,
    is_open: bool = False,
    kept: Block | None = None,
) -> INodeFile:
    """Build a file; ``kept`` is a block that only a snapshot of it has."""
    traits = FileTraits(
        "hdfs",
        "hdfs",
        0o644,
        replication,
        2**27,
        under_construction=UnderConstruction("client", "host") if is_open else None,
        history=FileHistory([FileDiff(1, 700, packed_blocks=pack_blocks((kept,)))])
        if kept
        else None,
    )
    return INodeFile(b"%d" % number, pack_numbers(number, 0, 0, pack_blocks(blocks)), traits)


def a_namespace(*files: INodeFile, given_stamp: int = 2000, given_id: int = B) -> Namespace:
    """Build a namespace after its edit 41, upgraded from one with stamps of the old kind."""
    namespace = Namespace.empty("hdfs")
    namespace.tree.inodes.extend(list(files))
    namespace.counters.generation_stamp_v1 = LEGACY
    namespace.counters.generation_stamp_v1_limit = 2000
    namespace.counters.generation_stamp_v2 = given_stamp
    namespace.counters.last_block_id = given_id
    namespace.last_applied = TxId(41)
    return namespace


def loaded(*files: INodeFile, given_stamp: int = 2000, given_id: int = B) -> BlockState:
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
        a_file(FILE, Block(1, 100, 2001), Block(B, 200, 2002)),
        a_file(FILE + 1),
        a_file(FILE + 2, Block(B + 1, 300, 2003), replication=2),
        a_file(FILE + 3, Block(-16, 400, 2004), replication=0),
        a_file(FILE + 4, Block(B + 2, 500, 2005), Block(B + 3, 0, 2006), is_open=True),
        a_file(FILE + 5, Block(B + 4, 600, 2007), kept=Block(B + 5, 700, 2008)),
        a_file(FILE + 6, Block(B + 6, 800, 2009)),
    )
    assert rows(state) == {
        1: (FILE, 100, 2001, 3, Stage.COMPLETE),
        B: (FILE, 200, 2002, 3, Stage.COMPLETE),
        B + 1: (FILE + 2, 300, 2003, 2, Stage.COMPLETE),
        -16: (FILE + 3, 400, 2004, 0, Stage.COMPLETE),
        B + 2: (FILE + 4, 500, 2005, 3, Stage.COMPLETE),
        B + 3: (FILE + 4, 0, 2006, 3, Stage.UNDER_CONSTRUCTION),
        B + 4: (FILE + 5, 600, 2007, 3, Stage.COMPLETE),
        B + 5: (FILE + 5, 700, 2008, 3, Stage.COMPLETE),
        B + 6: (FILE + 6, 800, 2009, 3, Stage.COMPLETE),
    }
    assert (state.map.safe_counts()[0], state.applied) == (7, 41)
    assert (state.ids.seen_stamp, state.ids.seen_id) == (2009, B + 6)


GIVEN: Final = {
    "the counters are ahead of the blocks": (2050, B + 50),
    "the blocks are ahead of the counters": (2001, B + 1),
}


@pytest.mark.parametrize(("given_stamp", "given_id"), GIVEN.values(), ids=GIVEN)
def test_no_stamp_or_id_counts_as_new_that_a_counter_or_a_block_has(
    given_stamp: int, given_id: int
) -> None:
    file = a_file(FILE, Block(B + 9, 700, 2009))
    state = loaded(file, given_stamp=given_stamp, given_id=given_id)
    assert (state.ids.seen_stamp, state.ids.seen_id) == (2009, B + 9)
    assert (state.ids.given_stamp, state.ids.given_id) == (
        max(given_stamp, 2009),
        max(given_id, B + 9),
    )


def test_an_edit_that_settles_a_block_shows_its_stamp_and_no_new_id() -> None:
    state, *_ = a_map(*added())
    after(state, [BlockSettled(B, B + 9, B + 5, complete=True)])
    assert (state.ids.seen_stamp, state.ids.seen_id) == (B + 5, B)


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
    state = loaded(a_file(FILE, Block(7, 700, 1400)), a_file(FILE + 1, Block(B, 700, 2001)))
    assert state.map.is_from_future(7, stamp) is is_new


@pytest.mark.parametrize("role", Role)
def test_stamps_and_ids_that_were_given_out_only_rise_and_the_active_has_seen_them(
    role: Role,
) -> None:
    state, *_ = a_map()
    if role is Role.ACTIVE:
        incremental_reports.activate(state)
    seen = state.ids.seen_stamp, state.ids.seen_id
    for stamp, block_id in ((1001, B), (1009, B + 9), (1005, B + 5)):
        after(state, [StampGiven(stamp), BlockIdGiven(block_id)])
    assert (state.ids.given_stamp, state.ids.given_id) == (1009, B + 9)
    assert (state.ids.seen_stamp, state.ids.seen_id) == (
        seen if role is Role.STANDBY else (1009, B + 9)
    )


def test_a_standby_keeps_the_replica_of_an_id_that_was_given_out_before_its_block_is_added() -> (
    None
):
    # Another block has shown a newer stamp: only the id says that this one is still to come.
    state, one, _ = a_map(*added(B, 1005), BlockIdGiven(B + 1))
    told(state, one, (B + 1, Reported(FINALIZED, 1004, 700)))
    after(state, [BlockAdded(FILE, B + 1, 700, 1004, 3, complete=True)])
    assert good(state, B + 1) == ["n1"]


def test_a_truncation_keeps_the_replicas_that_are_to_be_cut() -> None:
    state, one, other = a_map(*written())
    for storage in (one, other):
        told(state, storage, (B, Reported(FINALIZED, 1001, 700)))
    after(state, [BlockSettled(B, 700, 1001, complete=False), BlockCut(B, 300, 1002, B)])
    (construction,) = map(state.map.construction, state.map.unfinished())
    assert construction.cut == Cut(300, 1002, B)
    assert {place.storage for place in construction.locations} == {one.number, other.number}


def test_an_append_keeps_the_replicas_that_were_to_be_deleted() -> None:
    state, one, other = a_map(*written())
    incremental_reports.activate(state)
    for storage in (one, other):
        told(state, storage, (B, Reported(FINALIZED, 1001, 700)))
    slot = state.map.find(B)
    assert slot is not None
    state.order_deletion(slot, one.number, now=1.0)
    after(state, [BlockSettled(B, 700, 1001, complete=False)])
    assert (orders(state), list(state.map.pending_deletions)) == ({}, [])
    assert good(state) == ["n1", "n2"]


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
    state, *_ = a_map(*added())
    incremental_reports.activate(state)
    slot = state.map.find(B)
    assert slot is not None
    state.set_stage(slot, stage)
    after(state, [BlockSettled(B, 700, 1001, complete=False)])
    state.map.check()
    assert stage_of(state) is then


def test_a_committed_block_that_is_reopened_is_complete_only_after_the_next_close() -> None:
    state, one, _ = a_map(*added())
    incremental_reports.activate(state)
    after(state, closed())
    after(state, [BlockSettled(B, 700, 1001, complete=False)])
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    assert stage_of(state) is Stage.UNDER_CONSTRUCTION
    told(state, one, (B, Reported(RBW, 1002, 700)))
    after(state, closed(stamp=1002, length=900))
    assert stage_of(state) is Stage.COMMITTED
    told(state, one, (B, Reported(FINALIZED, 1002, 900)))
    assert stage_of(state) is Stage.COMPLETE
