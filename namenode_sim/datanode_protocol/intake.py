"""Takes reports of DataNodes in: full ones against the map, incremental ones item by item.

See docs/reference/blocks.md#full-reports.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

import structlog

from ha.record import dataclass
from namenode_sim.blocks.incremental_reports import receive
from namenode_sim.blocks.model import Storage
from namenode_sim.blocks.recheck_queue import DeleteHint
from namenode_sim.blocks.reports import Differences, Part, compare, finish, settle
from namenode_sim.datanode_protocol.errors import BadMessage, Overtaken
from namenode_sim.datanode_protocol.messages import MAX_STORAGES, ListedStorage, StorageNews
from namenode_sim.datanode_protocol.metrics import REPORT_DIFFERENCES, REPORT_SECONDS
from namenode_sim.datanode_protocol.slices import SLICE_ITEMS, in_slices
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.commands import is_registered
from namenode_sim.datanodes.draining import note_deletions
from namenode_sim.datanodes.errors import NotRegistered
from namenode_sim.datanodes.model import DatanodeId, Node, NodeStorage, StorageState, StorageType
from namenode_sim.datanodes.redundancy import note_hint
from namenode_sim.datanodes.report_leases import NO_LEASE, Held, ReportLeases

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ReportContext:
    """Which part of a report this is, and the lease that it came under."""

    lease: int = NO_LEASE
    is_last: bool = True


@dataclass(frozen=True, slots=True)
class _Report:
    """A full report under way: the lease that it came under, and whether it still counts."""

    lease: Held | None
    goes_on: Callable[[], bool]


class Intake:
    """The reports of all DataNodes; one full report is compared at a time."""

    def __init__(self, cluster: Cluster, leases: ReportLeases, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._leases = leases
        self._clock = clock
        self._taking_in = asyncio.Lock()

    async def report(
        self, of: DatanodeId, storages: Sequence[ListedStorage], context: ReportContext
    ) -> bool:
        """Take a full report in; False if the DataNode must register first.

        Raises:
            LeaseNotHeld, MalformedReport, BadReport, TooManyStorages, BadMessage: if it is refused.
            Overtaken: if it was not taken in to its end.
        """
        began = self._clock()
        node = is_registered(self._cluster, of)
        if node is None:
            return False
        lease = self._leases.check(of.uuid, context.lease, began)
        taken = _Report(lease, self._same_as_now(node))
        rows = differences = 0
        for listed in storages:
            if not taken.goes_on():
                raise Overtaken(of.uuid)
            storage = self._storage(node, listed.uuid, listed.type, listed.state)
            if self._cluster.blocks.is_starting() and storage.held.reports > 0:
                continue
            try:
                count, listing = await asyncio.to_thread(listed.decoded)
            except Exception:
                node.must_register = True
                raise
            rows += count
            async with self._taking_in:
                differences += await self._take_in(taken, storage.held, listing)
        if context.is_last:
            node.last_report = self._clock()
            self._leases.give_back(of.uuid)
        REPORT_SECONDS.labels("full").observe(self._clock() - began)
        REPORT_DIFFERENCES.inc(differences)
        log.info(
            "datanodes.reported",
            datanode=of.uuid,
            storages=len(storages),
            replicas=rows,
            differences=differences,
            confirmed=all(one.held.confirmed for one in node.storages.values()),
            seconds=round(self._clock() - began, 4),
        )
        return True

    async def _take_in(self, report: _Report, storage: Storage, listing: Sequence[Part]) -> int:
        blocks, lease = self._cluster.blocks, report.lease
        # Without a lease it is not known when the report was made.
        age = self._leases.rules.seconds
        made_after = self._clock() - age if lease is None else lease.since
        total = 0
        for part in listing:
            if not report.goes_on():
                break
            differences = compare(blocks, storage, part, made_after)
            total += len(differences)
            if not await in_slices(_settling(self._cluster, storage, differences), report.goes_on):
                break
            await asyncio.sleep(0)
        if not report.goes_on():
            raise Overtaken(storage.node)
        confirms = lease is not None and lease.after_claim
        finish(blocks, storage, after_claim=confirms, made_after=made_after)
        return total

    def _same_as_now(self, node: Node) -> Callable[[], bool]:
        """Return a function: whether role and registration are still those of this moment."""
        term, is_same = self._cluster.term, _same_registration(node)
        return lambda: self._cluster.term == term and is_same()

    async def receive(self, of: DatanodeId, news: Sequence[StorageNews]) -> None:
        """Take an incremental report in.

        Raises:
            NotRegistered: if the DataNode must register first.
            Overtaken: if it was not taken in to its end.
        """
        began = self._clock()
        node = is_registered(self._cluster, of)
        if node is None:
            raise NotRegistered(of.uuid, "an incremental block report")
        goes_on = _same_registration(node)
        try:
            for one in news:
                await self._receive_one(node, one, began, goes_on)
        except Overtaken:
            raise
        except Exception:
            # Its reports are no longer complete, and it does not know that.
            node.must_register = True
            raise
        REPORT_SECONDS.labels("incremental").observe(self._clock() - began)

    def cached(self, of: DatanodeId, blocks: frozenset[int]) -> None:
        """Take in which blocks a DataNode has in memory; raise NotRegistered."""
        node = is_registered(self._cluster, of)
        if node is None:
            raise NotRegistered(of.uuid, "a cache report")
        if node.cache.report(blocks):
            self._cluster.cache.reported = True

    async def _receive_one(
        self, node: Node, news: StorageNews, began: float, goes_on: Callable[[], bool]
    ) -> None:
        if not goes_on():
            raise Overtaken(node.id.uuid)
        storage = self._storage(node, news.uuid, news.type, news.state).held
        steps = _receiving(self._cluster, node, storage, news, began)
        if not await in_slices(steps, goes_on):
            raise Overtaken(node.id.uuid)

    def _storage(
        self, node: Node, uuid: str, kind: StorageType, state: StorageState
    ) -> NodeStorage:
        if uuid not in node.storages and len(node.storages) >= MAX_STORAGES:
            raise BadMessage("a report", f"storage {uuid} is one more than {MAX_STORAGES}")
        storage = self._cluster.add_storage(node, uuid)
        storage.type = kind
        if storage.state is not StorageState.FAILED:
            storage.state = state
        return storage


def _same_registration(node: Node) -> Callable[[], bool]:
    """Return a function: whether a DataNode lives and has not registered anew since now."""
    registrations = node.registrations
    return lambda: node.alive and node.registrations == registrations


def _settling(cluster: Cluster, storage: Storage, differences: Differences) -> Iterator[int]:
    step = SLICE_ITEMS // 10
    for start in range(0, len(differences), step):
        end = min(start + step, len(differences))
        settle(cluster.blocks, storage, differences, start, end)
        yield end - start


def _receiving(
    cluster: Cluster, node: Node, storage: Storage, news: StorageNews, now: float
) -> Iterator[int]:
    step, hints = SLICE_ITEMS // 10, dict(news.hints)
    for start in range(0, len(news.items), step):
        some = news.items[start : start + step]
        receive(cluster.blocks, storage, some, now)
        note_deletions(node, some, now)
        # In the same turn: without its hint the block would lose another replica.
        for block_id in hints.keys() & (block_id for block_id, _ in some) if hints else ():
            note_hint(cluster, block_id, DeleteHint(hints[block_id], node.id.uuid))
        yield len(some)
