"""Where a block is to be written, which replaces what was reported of it before."""

from namenode_sim.blocks.incremental_reports import receive
from namenode_sim.blocks.model import Location, ReplicaState, Reported, Stage
from namenode_sim.blocks.state import BlockState

BLOCK, OLD, NEW = 1 << 31, 1005, 1007


def test_a_replica_of_an_earlier_pipeline_is_not_corrupt_in_the_next_one() -> None:
    """Its report of the old stamp came after the edit that showed the new one."""
    state = BlockState()
    state.activate()
    storage = state.add_storage("dn1", "DS-1")
    slot = state.add_block(16386, BLOCK, 0, NEW, 3, Stage.UNDER_CONSTRUCTION)
    receive(state, storage, [(BLOCK, Reported(ReplicaState.RBW, OLD, 0))], 1.0)
    assert storage.number in state.map.corrupt_marks(slot)
    state.expect(slot, (Location(storage.number, ReplicaState.RBW, NEW, 0),))
    state.map.check()
    assert not state.map.corrupt_marks(slot)
    assert [one.storage for one in state.map.construction(slot).locations] == [storage.number]


def test_a_replica_that_fell_out_of_a_recovered_pipeline_is_dropped() -> None:
    """The edit shows the new pipeline's stamp; the DataNode that was left out has the old one."""
    state = BlockState()
    state.activate()
    left_out, other = (state.add_storage(name, "DS-1") for name in ("dn1", "dn2"))
    slot = state.add_block(16386, BLOCK, 0, OLD, 2, Stage.UNDER_CONSTRUCTION)
    for storage, stamp in ((left_out, OLD), (other, OLD), (other, NEW)):
        receive(state, storage, [(BLOCK, Reported(ReplicaState.RBW, stamp, 0))], 1.0)
    state.revise(slot, NEW, 0)
    state.map.check()
    assert [one.storage for one in state.map.construction(slot).locations] == [other.number]
