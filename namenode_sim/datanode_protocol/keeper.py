"""The one owner of blocks and DataNodes: calls, changes of the role and the clock come to it.

A call changes the map within one turn of the event loop; long work is cut in slices
(docs/reference/datanodes.md#long-work).
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from journal.model import TxId
from namenode_sim.blocks.incoming import activate, receive
from namenode_sim.blocks.model import Storage
from namenode_sim.blocks.reports import Differences, Part, compare, finish, settle
from namenode_sim.datanode_protocol.errors import BadMessage, Overtaken
from namenode_sim.datanode_protocol.gone import GoneStorages
from namenode_sim.datanode_protocol.messages import MAX_STORAGES, ListedStorage, StorageNews
from namenode_sim.datanode_protocol.metrics import (
    COMMANDS,
    REPORT_DIFFERENCES,
    REPORT_SECONDS,
    measure,
)
from namenode_sim.datanode_protocol.slices import SLICE_ITEMS, in_slices
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.errors import NotRegistered
from namenode_sim.datanodes.heartbeat import (
    Command,
    Heartbeat,
    claimed,
    hear,
    is_registered,
    orders,
)
from namenode_sim.datanodes.liveness import LOOK_SECONDS, LivenessRules, Watch
from namenode_sim.datanodes.model import DatanodeId, Node, NodeStorage, StorageState, StorageType
from namenode_sim.datanodes.registry import Registration, RegistryRules, check_namespace, register
from namenode_sim.datanodes.report_leases import NO_LEASE, Held, LeaseRules, ReportLeases
from namenode_sim.term.role import Role

log = structlog.get_logger()

JUDGING: Final = frozenset({Role.OPENING, Role.ACTIVE})
"""In these roles every edit of the journal is applied, and none but ours will come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperRules:
    """What is configured about DataNodes."""

    registry: RegistryRules
    leases: LeaseRules = LeaseRules()
    liveness: LivenessRules = LivenessRules()
    deletions_at_once: int = 1000


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether this NameNode may say that it is the active, and its last durable edit."""

    active: bool
    durable: TxId


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a heartbeat; ``lease`` is NO_LEASE where none is given."""

    standing: Standing
    commands: tuple[Command, ...] = ()
    lease: int = NO_LEASE
    must_register: bool = False


@dataclass(frozen=True, slots=True)
class ReportContext:
    """Which part of a report this is, and the lease that it came under."""

    lease: int = NO_LEASE
    is_last: bool = True


class Keeper:
    """Owns the cluster of one NameNode.

    ``standing`` tells what the role and the read lease allow at this instant.
    """

    def __init__(
        self,
        cluster: Cluster,
        rules: KeeperRules,
        standing: Callable[[], Standing],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster = cluster
        self.rules = rules
        self.leases = ReportLeases(cluster.draw, rules.leases)
        self.term = 0
        self.standing = standing
        self._clock = clock
        self._taking_in = asyncio.Lock()
        self._gone = GoneStorages(cluster)
        self._watch = Watch.begun(clock())

    # ---- the role ----

    def role_changed(self, role: Role) -> None:
        """Judge as the active once all edits of the journal are applied, else as a standby."""
        blocks = self.cluster.blocks
        judges = role in JUDGING
        if judges == self.cluster.is_active():
            return
        self.term += 1
        self.leases.clear()
        for node in self.cluster.nodes.values():
            node.told_active = node.obeys = False
            node.copy_orders.clear()
            node.recovery_orders.clear()
        waited = len(blocks.waiting)
        if judges:
            activate(blocks)
        else:
            blocks.demote()
        log.info(
            "datanodes.role",
            judges_as=blocks.role.value,
            term=self.term,
            judged=waited if judges else 0,
            storages=len(blocks.storages),
        )

    # ---- calls ----

    def register(self, registration: Registration) -> Node:
        """Let a DataNode in.

        Raises:
            DatanodesError: if it is refused.
        """
        found = register(self.cluster, registration, self.rules.registry, self._clock())
        self.leases.give_back(found.node.id.uuid)
        for old in found.replaced:
            self.leases.give_back(old.id.uuid)
            self._gone.add_all(old, for_good=True)
        log.info(
            "datanodes.registered",
            datanode=found.node.id.uuid,
            address=found.node.id.transfer_address,
            version=registration.software_version,
            replaced=[node.id.uuid for node in found.replaced],
        )
        return found.node

    def check(self, registration: Registration) -> None:
        """Raises StrangeNamespace for a DataNode of another namespace."""
        check_namespace(registration, self.rules.registry)

    def hear(self, heartbeat: Heartbeat, *, wants_lease: bool) -> Answer:
        """Take a heartbeat in, and give the orders that may leave now.

        Raises:
            TooManyStorages, TooManyStoragesHere: nothing of it was taken in.
        """
        standing, now = self.standing(), self._clock()
        node = is_registered(self.cluster, heartbeat.of)
        if node is None:
            return Answer(standing, must_register=True)
        self._hear(node, heartbeat, now)
        commands: tuple[Command, ...] = ()
        if standing.active:
            claimed(node)
            if not self.cluster.safe_mode.is_on():
                commands = self._orders(node, standing.durable, now)
        lease = NO_LEASE
        if wants_lease or self._solicits(node, standing, now):
            lease = self.leases.give(node.id.uuid, now, after_claim=standing.active)
        return Answer(standing, commands, lease)

    def lifeline(self, heartbeat: Heartbeat) -> None:
        """Take in that a DataNode lives; one that is not registered learns it by a heartbeat."""
        node = is_registered(self.cluster, heartbeat.of)
        if node is not None:
            self._hear(node, heartbeat, self._clock())

    def _hear(self, node: Node, heartbeat: Heartbeat, now: float) -> None:
        for storage in hear(self.cluster, node, heartbeat, now):
            log.warning("datanodes.storage_failed", datanode=node.id.uuid, storage=storage.uuid)
            self._gone.add(node, storage)

    def _orders(self, node: Node, durable: TxId, now: float) -> tuple[Command, ...]:
        rules = self.rules
        commands = orders(self.cluster, node, durable, rules.liveness, now, rules.deletions_at_once)
        for command in commands:
            COMMANDS.labels(type(command).__name__.lower()).inc()
            log.info("datanodes.command", datanode=node.id.uuid, command=repr(command)[:500])
        return commands

    def _solicits(self, node: Node, standing: Standing, now: float) -> bool:
        """Whether a DataNode is asked for a report: what its storages hold is not certain."""
        if not standing.active or self.leases.has(node.id.uuid, now):
            return False
        return any(
            storage.held.needs_full_report or not storage.held.confirmed
            for storage in node.storages.values()
            if storage.state is not StorageState.FAILED
        )

    async def report(
        self, of: DatanodeId, storages: Sequence[ListedStorage], context: ReportContext
    ) -> bool:
        """Take a full report in; False if the DataNode must register first.

        Raises:
            LeaseNotHeld, MalformedReport, BadReport, TooManyStorages, BadMessage: if it is refused.
            Overtaken: if it was not taken in to its end.
        """
        began = self._clock()
        node = is_registered(self.cluster, of)
        if node is None:
            return False
        lease = self.leases.check(of.uuid, context.lease, began)
        rows = differences = 0
        for listed in storages:
            storage = self._storage(node, listed.uuid, listed.type, listed.state)
            if self.cluster.blocks.starting and storage.held.reports > 0:
                continue
            try:
                count, listing = await asyncio.to_thread(listed.decoded)
            except Exception:
                node.must_register = True
                raise
            rows += count
            async with self._taking_in:
                differences += await self._take_in(node, storage.held, listing, lease)
        if context.is_last:
            self.leases.give_back(of.uuid)
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

    async def _take_in(
        self, node: Node, storage: Storage, listing: Sequence[Part], lease: Held | None
    ) -> int:
        blocks, goes_on = self.cluster.blocks, self._same_as_now(node)
        # Without a lease nobody knows when the report was made.
        age = self.rules.leases.seconds
        made_after = self._clock() - age if lease is None else lease.since
        total = 0
        for part in listing:
            if not goes_on():
                break
            differences = compare(blocks, storage, part, made_after)
            total += len(differences)
            if not await in_slices(_settling(self.cluster, storage, differences), goes_on):
                break
            await asyncio.sleep(0)
        if not goes_on():
            raise Overtaken(node.id.uuid)
        finish(blocks, storage, after_claim=lease is not None and lease.after_claim)
        return total

    def _same_as_now(self, node: Node) -> Callable[[], bool]:
        """Whether role and registration are still those of this moment."""
        term, registrations = self.term, node.registrations

        def holds() -> bool:
            return node.alive and (self.term, node.registrations) == (term, registrations)

        return holds

    async def receive(self, of: DatanodeId, news: Sequence[StorageNews]) -> None:
        """Take an incremental report in.

        Raises:
            NotRegistered: if the DataNode must register first.
            Overtaken: if it was not taken in to its end.
        """
        began = self._clock()
        node = is_registered(self.cluster, of)
        if node is None:
            raise NotRegistered(of.uuid, "an incremental block report")
        try:
            for one in news:
                await self._receive_one(node, one, began)
        except Exception:
            # Its reports are no longer complete, and it does not know that.
            node.must_register = True
            raise
        REPORT_SECONDS.labels("incremental").observe(self._clock() - began)

    async def _receive_one(self, node: Node, news: StorageNews, began: float) -> None:
        goes_on = self._same_as_now(node)
        storage = self._storage(node, news.uuid, news.type, news.state).held
        if not await in_slices(_receiving(self.cluster, storage, news, began), goes_on):
            raise Overtaken(node.id.uuid)

    def _storage(
        self, node: Node, uuid: str, kind: StorageType, state: StorageState
    ) -> NodeStorage:
        if uuid not in node.storages and len(node.storages) >= MAX_STORAGES:
            raise BadMessage("a report", f"storage {uuid} is one more than {MAX_STORAGES}")
        storage = self.cluster.add_storage(node, uuid)
        storage.type = kind
        if storage.state is not StorageState.FAILED:
            storage.state = state
        return storage

    # ---- the clock, and what lasts ----

    def duties(self) -> dict[str, Coroutine[object, object, None]]:
        """What is to run as long as the NameNode does."""
        return {"watch-datanodes": self._look_on(), "empty-storages": self._gone.run()}

    async def _look_on(self) -> None:
        while True:
            self.look()
            measure(self.cluster, self.rules.liveness, self._clock())
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Find the DataNodes that have died."""
        starting, now = self.cluster.blocks.starting, self._clock()
        nodes = self.cluster.nodes.values()
        for node in self._watch.died(nodes, self.rules.liveness, now, starting=starting):
            log.warning(
                "datanodes.died", datanode=node.id.uuid, address=node.id.transfer_address,
                silent_seconds=round(now - node.last_heard),
            )  # fmt: skip
            self.leases.give_back(node.id.uuid)
            self._gone.add_all(node)


def _settling(cluster: Cluster, storage: Storage, differences: Differences) -> Iterator[int]:
    step = SLICE_ITEMS // 10
    for start in range(0, len(differences), step):
        end = min(start + step, len(differences))
        settle(cluster.blocks, storage, differences, start, end)
        yield end - start


def _receiving(cluster: Cluster, storage: Storage, news: StorageNews, now: float) -> Iterator[int]:
    step = SLICE_ITEMS // 10
    for start in range(0, len(news.items), step):
        some = news.items[start : start + step]
        receive(cluster.blocks, storage, some, now)
        yield len(some)
