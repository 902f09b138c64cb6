"""What a heartbeat reports, and which orders its answer carries.

See docs/reference/datanodes.md#heartbeats.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from ha.record import dataclass
from journal.model import TxId
from namenode_sim.blocks.model import Cut
from namenode_sim.datanodes import model
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.errors import TooManyStoragesHere
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.reconstruction import MAX_STREAMS
from namenode_sim.datanodes.recovery import participants

MAX_STORAGES_OF_ONE: Final = 64
MAX_RECOVERIES_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class StorageReport:
    """A storage as its DataNode reports it."""

    uuid: str
    type: model.StorageType
    state: model.StorageState
    room: model.Room


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a DataNode reports every few seconds."""

    of: model.DatanodeId
    storages: tuple[StorageReport, ...]
    transceivers: int = 0
    copies: int = 0
    failed_volumes: int = 0
    cache_capacity: int = 0
    cache_used: int = 0


@dataclass(frozen=True, slots=True)
class Delete:
    """Replicas that the DataNode is to delete: block and stamp of each."""

    replicas: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """A replica that the DataNode is to send to others."""

    block_id: int
    stamp: int
    length: int
    targets: tuple[tuple[model.Node, model.NodeStorage], ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """All that the DataNode is to send now."""

    blocks: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class Recovery:
    """A block whose replicas the DataNode is to make agree.

    ``cut``: and to shorten; what comes of it is the block ``becomes``, itself or a copy.
    """

    block_id: int
    stamp: int
    length: int
    recovery_stamp: int
    places: tuple[tuple[model.Node, model.NodeStorage], ...]
    becomes: int
    cut: Cut | None


@dataclass(frozen=True, slots=True)
class Recover:
    """All that the DataNode is to recover now."""

    blocks: tuple[Recovery, ...]


@dataclass(frozen=True, slots=True)
class Cache:
    """Blocks whose replicas the DataNode is to hold in memory."""

    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Uncache:
    """Blocks whose replicas need not be in its memory any more."""

    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """The bytes a second that all moves of a DataNode may take."""

    bytes_per_second: int


Command: TypeAlias = Delete | Transfer | Recover | Cache | Uncache | Bandwidth


def is_registered(cluster: Cluster, who: model.DatanodeId) -> model.Node | None:
    """Return the DataNode with this name and address; None if it must register first."""
    node = cluster.nodes.get(who.uuid)
    if node is None or not node.alive or node.must_register:
        return None
    return node if node.id.transfer_address == who.transfer_address else None


def hear(
    cluster: Cluster, node: model.Node, heartbeat: Heartbeat, now: float
) -> tuple[model.NodeStorage, ...]:
    """Note how a DataNode is; returns the storages that have failed by it.

    Raises:
        TooManyStoragesHere, TooManyStorages: nothing of the heartbeat counts then.
    """
    told = {report.uuid for report in heartbeat.storages}
    count = len(told | node.storages.keys())
    if count > MAX_STORAGES_OF_ONE:
        raise TooManyStoragesHere(node.id.uuid, count, MAX_STORAGES_OF_ONE)
    failed: list[model.NodeStorage] = []
    for report in heartbeat.storages:
        storage = cluster.add_storage(node, report.uuid)
        was_well = storage.state is not model.StorageState.FAILED
        storage.type, storage.state, storage.room = report.type, report.state, report.room
        if was_well == (report.state is not model.StorageState.FAILED):
            continue
        if was_well:
            failed.append(storage)
        else:
            storage.held.needs_full_report = True
    # What is missing may only be late to appear, unless the DataNode says that volumes failed; or
    # it came back from a failure, but by a heartbeat from before, which was late.
    more_failed = heartbeat.failed_volumes > node.failed_volumes
    for uuid, storage in node.storages.items():
        came_back = storage.held.needs_full_report and not storage.held.slots
        if uuid in told or not (more_failed or came_back):
            continue
        if storage.state is not model.StorageState.FAILED:
            storage.state = model.StorageState.FAILED
            failed.append(storage)
    node.last_heard, node.broken = now, False
    node.transceivers, node.copies = heartbeat.transceivers, heartbeat.copies
    node.failed_volumes = heartbeat.failed_volumes
    node.cache.capacity, node.cache.used = heartbeat.cache_capacity, heartbeat.cache_used
    return tuple(failed)


def claimed(node: model.Node, now: float) -> None:
    """Note that the answer says that this NameNode is the active."""
    if node.told_active and not node.obeys:
        node.drain.quiet_since = now
    node.obeys, node.told_active = node.told_active, True
    for storage in node.storages.values():
        storage.held.heartbeated = True


def orders(
    cluster: Cluster,
    node: model.Node,
    durable: TxId,
    liveness: LivenessRules,
    now: float,
    limit: int,
) -> tuple[Command, ...]:
    """Return the orders that leave with this answer, whose edits are durable.

    To be asked only where the answer claims that this NameNode is the active, and out of safe mode.
    A recovery goes alone: copies of its block must not overtake it.
    """
    recoveries = _recoveries(cluster, node, durable, liveness, now)
    if recoveries:
        return (Recover(recoveries),)
    commands: list[Command] = []
    if copies := _copies(cluster, node, durable):
        commands.append(Transfer(copies))
    if deletions := _deletions(cluster, node, durable, limit):
        commands.append(Delete(deletions))
    commands += _cache_orders(node.cache, durable, now)
    if node.bandwidth_order:
        commands.append(Bandwidth(node.bandwidth_order))
        node.bandwidth_order = 0
    return tuple(commands)


def _cache_orders(cache: model.NodeCache, durable: TxId, now: float) -> Iterator[Command]:
    """Yield all orders about a DataNode's memory, if there are new ones or if it is time again."""
    if cache.cause > durable or now < cache.send_at:
        return
    cache.send_at = now + model.RESEND_SECONDS
    if cache.to_cache:
        yield Cache(tuple(cache.to_cache))
    if cache.to_uncache:
        yield Uncache(tuple(cache.to_uncache))


def _recoveries(
    cluster: Cluster, node: model.Node, durable: TxId, liveness: LivenessRules, now: float
) -> tuple[Recovery, ...]:
    found: list[Recovery] = []
    queue = node.recovery_orders
    while queue and queue[0].cause <= durable and len(found) < MAX_RECOVERIES_AT_ONCE:
        recovery = _recovery(cluster, queue.popleft(), liveness, now)
        if recovery is not None:
            found.append(recovery)
    return tuple(found)


def _recovery(
    cluster: Cluster, order: model.RecoveryOrder, liveness: LivenessRules, now: float
) -> Recovery | None:
    """Return an order as it is to be sent now; None if the block is gone or recovered otherwise."""
    blocks = cluster.blocks
    slot = blocks.map.find(order.block_id)
    if slot is None:
        return None
    construction = blocks.map.find_construction(slot)
    if construction is None or construction.recovery_stamp != order.recovery_stamp:
        return None
    cut = construction.cut
    source_id = order.block_id if cut is None else cut.source_id
    slot_of_source = blocks.map.find(source_id)
    if slot_of_source is None:
        return None
    source = blocks.map.block(slot_of_source)
    alive = [place for place in participants(cluster, slot) if place[0].alive]
    fresh = [place for place in alive if not liveness.is_stale(place[0], now)]
    return Recovery(
        source_id,
        source.stamp,
        source.length,
        order.recovery_stamp,
        tuple(fresh if len(fresh) > 1 else alive),
        order.block_id,
        cut,
    )


def _copies(cluster: Cluster, node: model.Node, durable: TxId) -> tuple[Copy, ...]:
    """Take as many orders as the DataNode may carry out in addition to those that it reports."""
    found: list[Copy] = []
    queue, most = node.copy_orders, MAX_STREAMS - node.copies
    while queue and queue[0].cause <= durable and len(found) < most:
        copy = _copy(cluster, queue.popleft())
        if copy is not None:
            found.append(copy)
    return tuple(found)


def _copy(cluster: Cluster, order: model.CopyOrder) -> Copy | None:
    slot = cluster.blocks.map.find(order.block_id)
    if slot is None:
        return None
    targets = tuple(
        place for place in map(cluster.find_place, order.targets) if place and place[0].alive
    )
    if not targets:
        return None
    block = cluster.blocks.map.block(slot)
    return Copy(order.block_id, block.stamp, block.length, targets)


def _deletions(
    cluster: Cluster, node: model.Node, durable: TxId, limit: int
) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for storage in node.storages.values():
        left = limit - len(found)
        found += cluster.blocks.invalidations.take_due(storage.held.number, durable, left)
    return tuple(found)
