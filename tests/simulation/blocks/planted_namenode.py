"""Bugs of a NameNode: claims, orders, reports, and what becomes of them at a failover."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from journal.model import TxId
from namenode_sim.blocks import incremental_reports
from namenode_sim.blocks.blocks_map import BlocksMap
from namenode_sim.blocks.deletion_orders import Invalidations
from namenode_sim.blocks.model import Slot, Storage, StorageNumber
from namenode_sim.blocks.postponed_reports import PostponedReports, ReplicaReport
from namenode_sim.blocks.replicas import Replicas
from namenode_sim.blocks.state import BlockState
from namenode_sim.client_protocol import table
from namenode_sim.client_protocol.open_files import add_block, block_recovery, block_writes
from namenode_sim.client_protocol.words.model import EditPlan
from namenode_sim.datanode_protocol import intake, keeper
from namenode_sim.datanode_protocol.keeper import Keeper, Standing
from namenode_sim.datanodes import cluster, liveness, redundancy_check
from namenode_sim.process import datanodes
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role
from tests.simulation.blocks import namenode
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing

_TESTS: Final = "tests/namenode_sim/"
bug: Final = Planted(2_000)

_ALL_DURABLE = TxId(1 << 62)


@bug.replacing("storages stay confirmed over a takeover", keeper, "activate")
def confirmed_over_activation(state: BlockState) -> None:
    before = [(one, one.confirmed, one.heartbeated) for one in state.map.storages]
    incremental_reports.activate(state)
    for storage, _, heartbeated in before:
        storage.confirmed, storage.heartbeated = True, heartbeated


@bug.replacing("any report confirms", intake, "finish")
def any_report_confirms(_: BlockState, storage: Storage, **_more: object) -> None:
    storage.reports += 1
    storage.needs_full_report = False
    storage.confirmed = True


bug.add(
    "unconfirmed storages count for excess",
    replacing(redundancy_check, "_doubtful", lambda _cluster, _counts: frozenset()),
)


@bug.killed_by(
    _TESTS + "datanode_protocol/test_keeper.py::"
    "test_a_datanode_that_has_not_registered_is_not_dead_before_it_could",
    why="one world of 5,000 showed it: a writer must end while a DataNode is still to register",
)
@bug.replacing("who has not registered is dead", Keeper, "__init__")
def unregistered_are_dead(really: Any, self: Keeper, *args: Any, **more: Any) -> None:
    really(self, *args, **more)
    self.cluster.registered_by = 0.0


bug.add("orders outlive their term", replacing(Invalidations, "clear", lambda _self: None))


@bug.replacing("orders leave before their edits", Invalidations, "take_due")
def orders_before_their_edits(
    really: Any, self: Invalidations, number: StorageNumber, _durable: TxId, limit: int
) -> Any:
    return really(self, number, _ALL_DURABLE, limit)


@bug.replacing("a claim is what is written", namenode, "standing_of")
def claims_what_is_written(really: Any, owner: NameNode) -> Any:
    found = really(owner)
    return found if owner.edit_log is None else replace(found, durable=owner.edit_log.last_txid)


def lease_not_asked() -> Planting:
    """Let a former active claim without its read lease, too: for bugs of the claims."""
    standing_of = datanodes.standing_of

    def standing(owner: NameNode) -> Standing:
        found = standing_of(owner)
        is_open = owner.edit_log is not None and owner.writer is not None
        return replace(found, active=is_open and owner.state.role is Role.ACTIVE)

    return replacing(namenode, "standing_of", standing)


bug.add(
    "a standby drops reports from the future",
    replacing(incremental_reports, "_postpone", lambda *_: None),
)


@bug("the oldest report waits")
def oldest_waits() -> Planting:
    put, forget = PostponedReports.put, PostponedReports.forget

    def put_first(
        self: PostponedReports, block_id: int, number: StorageNumber, told: ReplicaReport
    ) -> set[StorageNumber]:
        if block_id in self.blocks_of(number):
            return set()
        return put(self, block_id, number, told)

    def forget_none(self: PostponedReports, block_id: int, number: StorageNumber) -> None:
        del self, block_id, number

    def drop_storage(self: PostponedReports, number: StorageNumber) -> None:
        for block_id in self.blocks_of(number):
            forget(self, block_id, number)

    return all_of(
        replacing(PostponedReports, "put", put_first),
        replacing(PostponedReports, "forget", forget_none),
        replacing(PostponedReports, "drop_storage", drop_storage),
    )


bug.add(
    "a late stamp makes the new replica corrupt",
    replacing(BlocksMap, "holds_current", lambda *_: False),
)


@bug.killed_by(
    _TESTS + "blocks/test_reports.py::test_a_full_report_does_not_undo_what_came_after_it_was_made",
    why="DataNodes tell one thing after another, and one whose report was held up is asked "
    "for another at once",
)
@bug("a full report undoes newer news")
def report_undoes_news() -> Planting:
    return replacing(incremental_reports, "_remember", lambda *_: None)


bug.add(
    "replicas of an old stamp stay",
    replacing(BlockState, "_drop_other_stamps", lambda *_: None),
    killer=_TESTS + "blocks/test_expect.py::"
    "test_a_replica_that_fell_out_of_a_recovered_pipeline_is_dropped",
    why="of a hundred worlds none shows it: mostly a new pipeline or a report settles the same",
)


@bug.replacing("a repeated addBlock gets another block", add_block, "is_retry")
def retry_is_a_new_block(really: Any, *arguments: Any) -> Any:
    really(*arguments)
    return False


@bug.replacing("a repeated addBlock gets no place", add_block, "_new_places")
def retry_has_no_place(really: Any, scene: Any, path: str, file: Any, request: Any) -> Any:
    again = bool(file.blocks) and not request.HasField("previous")
    return () if again else really(scene, path, file, request)


@bug("a storage's list is out of order")
def list_out_of_order() -> Planting:
    add = Replicas.add

    def first(self: Replicas, slot: Slot, storage: Storage) -> None:
        add(self, slot, storage)
        storage.slots[0], storage.slots[-1] = storage.slots[-1], storage.slots[0]

    return replacing(Replicas, "add", first)


@bug("a stamp is told and not logged")
def stamp_not_logged() -> Planting:
    call = table.WRITES["updateBlockForPipeline"]

    def plan(scene: Any, request: Any) -> EditPlan:
        return replace(call.plan(scene, request), ops=())

    def plant(stack: ExitStack) -> None:
        changed = {"updateBlockForPipeline": replace(call, plan=plan)}
        stack.enter_context(patch.dict(table.WRITES, changed))

    return plant


bug.add("any recovery commits", replacing(block_recovery, "_check_recovery", lambda *_: None))

bug.add("a sleep of its own makes DataNodes dead", replacing(liveness, "LATE_FACTOR", 1e9))


@bug.replacing("safe mode waits for open blocks", cluster, "counts_of")
def safe_mode_counts_all(really: Any, state: BlockState, live_datanodes: int) -> Any:
    return replace(really(state, live_datanodes), total=len(dict(state.map.items())))


@bug.killed_by(
    _TESTS + "client_protocol/test_block_writes.py::"
    "test_a_file_closes_once_enough_replicas_are_reported",
    why="simulated writers wait for the end of every replica before they close a file",
)
@bug("a file is closed without its replicas")
def closed_uncounted() -> Planting:
    return replacing(block_writes, "would_complete", lambda *_: True)


@bug.killed_by(
    _TESTS + "datanodes/test_registry.py::"
    "test_one_that_comes_again_keeps_its_replicas_but_proves_nothing",
    why="its report follows within seconds, and what its disks lost meanwhile is excused",
)
@bug.replacing("who registers again is trusted", BlockState, "registered")
def registration_keeps_trust(self: BlockState, node: str) -> None:
    for storage in self._storages.of(node):
        storage.reports = 0
