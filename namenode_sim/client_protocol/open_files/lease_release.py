"""Closing the file of a writer that is gone: at once, or by a recovery of its last block.

See docs/reference/blocks.md#releasing-a-lease.
"""

from collections.abc import Callable
from typing import assert_never

from ha.record import dataclass
from ha.rpc.java_names import ALREADY_BEING_CREATED
from namenode_sim.blocks.model import Stage, StorageNumber
from namenode_sim.client_protocol.open_files.open_files import close_edit
from namenode_sim.client_protocol.words.block_locations import blocks_now
from namenode_sim.client_protocol.words.errors import FsError, io_error
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.datanodes.model import StorageState
from namenode_sim.datanodes.recovery import begin, can_be_led, participants
from namenode_sim.edits.ops import Op, ReassignLease, SetGenstampV2, UpdateBlocks
from namenode_sim.edits.values import Block
from namenode_sim.leases import release as leases_release
from namenode_sim.namespace.inode import INodeFile


def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True)
class Released:
    """How a file's lease is released.

    ``blocks`` are the file's after the edits.  ``then`` is to be called once these are applied.
    """

    ops: tuple[Op, ...]
    blocks: tuple[Block, ...]
    closed: bool = False
    then: Callable[[], None] = _nothing


def release_lease(
    scene: Scene, file: INodeFile, path: str, new_holder: str | None = None
) -> Released:
    """Plan the next step for an open file (FSNamesystem.internalReleaseLease).

    ``new_holder`` holds the file while its last block is recovered; without it the holder stays.

    Raises:
        FsError: if only reports of DataNodes can help.
    """
    step = _step(scene, file)
    blocks = blocks_now(scene, file)
    match step:
        case leases_release.CloseFile():
            return Released((close_edit(file, path, scene.now_ms, blocks),), blocks, closed=True)
        case leases_release.DropLastAndClose():
            left = blocks[:-1]
            close = close_edit(file, path, scene.now_ms, left)
            return Released((UpdateBlocks(path, left), close), left, closed=True)
        case leases_release.RecoverLast():
            return _recover(scene, file, path, new_holder)
        case leases_release.RecoveryRuns():
            ops = _reassign(file, path, new_holder)
            return Released(ops, blocks, then=lambda: _renew(scene, file))
        case leases_release.BlocksWait():
            raise FsError(
                ALREADY_BEING_CREATED,
                "DIR* NameSystem.internalReleaseLease: Failed to release lease for file "
                f"{path}. Committed blocks are waiting to be minimally replicated.",
            )
        case leases_release.ReportsWait():
            raise FsError(
                ALREADY_BEING_CREATED,
                "DIR* NameSystem.internalReleaseLease: Failed to release lease for file "
                f"{path}. No DataNode has told of its last block yet, and not all DataNodes have "
                "told what they hold since this NameNode started or became active. Ask again.",
            )
        case leases_release.Impossible():
            raise io_error(
                "DIR* NameSystem.internalReleaseLease: attempt to release a create lock on "
                f"{path} but file is already closed."
            )
        case _:
            assert_never(step)


def _step(scene: Scene, file: INodeFile) -> leases_release.Step:
    state = scene.cluster.blocks
    began: float | None = None
    lost: frozenset[StorageNumber] = frozenset()
    found: list[leases_release.LastBlock] = []
    for block in file.blocks:
        slot = state.map.slot(block.block_id)
        construction = state.map.find_construction(slot)
        stored = state.map.block(slot)
        places = 0 if construction is None else len(participants(scene.cluster, slot))
        began = None if construction is None else construction.recovery_began
        lost = frozenset() if construction is None else construction.lost
        enough = state.map.has_minimum(state.map.live(slot))
        found.append(leases_release.LastBlock(stored.stage, stored.length, enough, places))
    seconds = None if began is None else scene.now - began
    limit = scene.settings.block_recovery_seconds
    all_told = _all_have_reported(scene) and not any(_is_dead(scene, number) for number in lost)
    return leases_release.release(found, seconds, limit, all_reported=all_told)


def _is_dead(scene: Scene, number: StorageNumber) -> bool:
    """Return whether a storage is one of a DataNode that is dead and may come back with it."""
    node, storage = scene.cluster.place(number)
    return not node.alive and storage.state is not StorageState.FAILED


def _all_have_reported(scene: Scene) -> bool:
    """Return whether every live DataNode has registered here, and reported to this active.

    Bad schedule: a NameNode that was just started is the active, and of all DataNodes only those
    without the block have registered.
    """
    told = [
        storage.held.confirmed
        for node in scene.cluster.nodes.values()
        if node.alive
        for storage in node.storages.values()
        if storage.state is not StorageState.FAILED
    ]
    return scene.now >= scene.cluster.registered_by and bool(told) and all(told)


def _recover(scene: Scene, file: INodeFile, path: str, new_holder: str | None) -> Released:
    stamp = scene.namespace.counters.generation_stamp_v2 + 1
    block_id = file.blocks[-1].block_id

    def then() -> None:
        begin(scene.cluster, block_id, stamp, scene.namespace.last_applied, scene.now)
        _renew(scene, file)

    ops = (SetGenstampV2(stamp), *_reassign(file, path, new_holder))
    return Released(ops, file.blocks, then=then)


def _reassign(file: INodeFile, path: str, new_holder: str | None) -> tuple[Op, ...]:
    writer = file.under_construction
    assert writer is not None
    if new_holder is None or new_holder == writer.client_name:
        return ()
    return (ReassignLease(writer.client_name, path, new_holder),)


def _renew(scene: Scene, file: INodeFile) -> None:
    """Give the file's present holder its full time, so that the recovery has its own."""
    writer = file.under_construction
    assert writer is not None
    scene.leases.renew(writer.client_name, scene.now)


def is_stalled(scene: Scene, block_id: int) -> bool:
    """Return whether a block waits for a recovery that has no leader, or that has had its time.

    It is not while no DataNode could lead one. A truncation is a recovery from its edit on, also
    for a NameNode that became the active since.
    """
    state = scene.cluster.blocks
    slot = state.map.slot(block_id)
    construction = state.map.find_construction(slot)
    if construction is None:
        return False
    recovers = construction.cut is not None or state.map.block(slot).stage is Stage.UNDER_RECOVERY
    began = construction.recovery_began
    over = began is None or scene.now - began >= scene.settings.block_recovery_seconds
    return recovers and over and can_be_led(scene.cluster, slot)
