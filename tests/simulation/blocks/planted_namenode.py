"""Bugs of a NameNode: claims, orders, reports, and what becomes of them at a failover."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from journal.model import TxId
from namenode_sim.blocks import incremental_reports, safemode
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
from tests.simulation.engine.mutants import Planting, all_of, replacing

_ALL_DURABLE = TxId(1 << 62)
_BEGIN = Keeper.__init__


def confirmed_over_activation() -> Planting:
    def activate(state: BlockState) -> None:
        before = [(one, one.confirmed, one.heartbeated) for one in state.map.storages]
        incremental_reports.activate(state)
        for storage, _, heartbeated in before:
            storage.confirmed, storage.heartbeated = True, heartbeated

    return replacing(keeper, "activate", activate)


def any_report_confirms() -> Planting:
    def finish(_: BlockState, storage: Storage, **_more: object) -> None:
        storage.reports += 1
        storage.needs_full_report = False
        storage.confirmed = True

    return replacing(intake, "finish", finish)


def unconfirmed_counts() -> Planting:
    """Excess replicas are chosen as if every storage were confirmed."""
    return replacing(redundancy_check, "_doubtful", lambda _cluster, _counts: frozenset())


def unregistered_are_dead() -> Planting:
    return replacing(Keeper, "__init__", _knows_all)


def _knows_all(self: Keeper, *args: Any, **more: Any) -> None:  # noqa: ANN401
    _BEGIN(self, *args, **more)
    self.cluster.registered_by = 0.0


def orders_outlive_terms() -> Planting:
    return replacing(Invalidations, "clear", lambda _self: None)


def orders_before_their_edits() -> Planting:
    take_due = Invalidations.take_due

    def at_once(
        self: Invalidations, number: StorageNumber, _durable: TxId, limit: int
    ) -> list[tuple[int, int]]:
        return take_due(self, number, _ALL_DURABLE, limit)

    return replacing(Invalidations, "take_due", at_once)


def claims_what_is_written() -> Planting:
    standing_of = datanodes.standing_of

    def standing(owner: NameNode) -> Standing:
        found = standing_of(owner)
        return found if owner.edit_log is None else replace(found, durable=owner.edit_log.last_txid)

    return replacing(namenode, "standing_of", standing)


def lease_not_asked() -> Planting:
    """Let a former active claim without its read lease, too: for bugs of the claims."""
    standing_of = datanodes.standing_of

    def standing(owner: NameNode) -> Standing:
        found = standing_of(owner)
        is_open = owner.edit_log is not None and owner.writer is not None
        return replace(found, active=is_open and owner.state.role is Role.ACTIVE)

    return replacing(namenode, "standing_of", standing)


def waiting_forgotten() -> Planting:
    return replacing(incremental_reports, "_postpone", lambda *_: None)


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


def late_stamp_is_corrupt() -> Planting:
    return replacing(BlocksMap, "holds_current", lambda *_: False)


def report_undoes_news() -> Planting:
    return replacing(incremental_reports, "_remember", lambda *_: None)


def old_stamps_stay() -> Planting:
    """After a pipeline's recovery those that fell out of it still count as its locations."""
    return replacing(BlockState, "_drop_other_stamps", lambda *_: None)


def retry_is_a_new_block() -> Planting:
    is_retry = add_block.is_retry

    def never(*arguments: Any) -> bool:  # noqa: ANN401
        is_retry(*arguments)
        return False

    return replacing(add_block, "is_retry", never)


def retry_has_no_place() -> Planting:
    return replacing(add_block, "_new_places", _only_new(add_block._new_places))


def _only_new(choose: Any) -> Any:  # noqa: ANN401
    def places(scene: Any, path: str, file: Any, request: Any) -> Any:  # noqa: ANN401
        blocks = file.blocks
        again = bool(blocks) and not request.HasField("previous")
        return () if again else choose(scene, path, file, request)

    return places


def list_out_of_order() -> Planting:
    add = Replicas.add

    def first(self: Replicas, slot: Slot, storage: Storage) -> None:
        add(self, slot, storage)
        storage.slots[0], storage.slots[-1] = storage.slots[-1], storage.slots[0]

    return replacing(Replicas, "add", first)


def stamp_not_logged() -> Planting:
    call = table.WRITES["updateBlockForPipeline"]

    def plan(scene: Any, request: Any) -> EditPlan:  # noqa: ANN401
        return replace(call.plan(scene, request), ops=())

    def plant(stack: ExitStack) -> None:
        changed = {"updateBlockForPipeline": replace(call, plan=plan)}
        stack.enter_context(patch.dict(table.WRITES, changed))

    return plant


def any_recovery_commits() -> Planting:
    return replacing(block_recovery, "_check_recovery", lambda *_: None)


def dead_after_a_sleep() -> Planting:
    return replacing(liveness, "LATE_FACTOR", 1e9)


def safe_mode_counts_all() -> Planting:
    """Safe mode waits for blocks that are still being written."""
    counts_of = safemode.counts_of

    def counted(state: BlockState, live_datanodes: int) -> safemode.Counts:
        return replace(counts_of(state, live_datanodes), total=len(dict(state.map.items())))

    return replacing(cluster, "counts_of", counted)


def closed_uncounted() -> Planting:
    return replacing(block_writes, "would_complete", lambda *_: True)


def registration_keeps_trust() -> Planting:
    def registered(self: BlockState, node: str) -> None:
        for storage in self._storages.of(node):
            storage.reports = 0

    return replacing(BlockState, "registered", registered)
