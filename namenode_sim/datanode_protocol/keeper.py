"""The one owner of blocks and DataNodes: calls, changes of the role and the clock come to it.

A call changes the map within one turn of the event loop; long work is cut in slices
(docs/reference/datanodes.md#long-work).
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, assert_never

import structlog

from ha.record import dataclass, replace
from journal.model import TxId
from namenode_sim.blocks.incremental_reports import activate
from namenode_sim.datanode_protocol import metrics
from namenode_sim.datanode_protocol.cache_watch import CacheRules, CacheWatch
from namenode_sim.datanode_protocol.drain_check import DrainCheck, ReadPage, read_page
from namenode_sim.datanode_protocol.gone import GoneStorages
from namenode_sim.datanode_protocol.hosts import Hosts
from namenode_sim.datanode_protocol.intake import Intake
from namenode_sim.datanode_protocol.leaving import LeavingRules
from namenode_sim.datanode_protocol.racks import Racks, move_to_racks
from namenode_sim.datanode_protocol.safe_mode import SafeModeWatch
from namenode_sim.datanode_protocol.upkeep import Upkeep
from namenode_sim.datanodes import commands as datanode_commands
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.commands import hear
from namenode_sim.datanodes.damage import Damaged, check_known, note_damage
from namenode_sim.datanodes.draining import DrainRules, awaits_drain, note_orders, undrained
from namenode_sim.datanodes.errors import NotIncluded, UnevenRacks, UnresolvedRack
from namenode_sim.datanodes.files_summary import files_summary
from namenode_sim.datanodes.liveness import LOOK_SECONDS, LivenessRules, Watch
from namenode_sim.datanodes.model import DEFAULT_RACK, Node, NodeCache, StorageState
from namenode_sim.datanodes.reachable import Lacking, count_lacking
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.datanodes.redundancy_check import RedundancyRules
from namenode_sim.datanodes.registry import Registration, RegistryRules, check_namespace, register
from namenode_sim.datanodes.report_leases import NO_LEASE, LeaseRules, ReportLeases
from namenode_sim.term.role import Role

log = structlog.get_logger()

SHOWN_BLOCKS: Final = 20
REST: Final = 50
"""A count of what lacks replicas is kept for this number of times that it took."""
_KINDS: Final = {
    datanode_commands.Delete: "delete",
    datanode_commands.Transfer: "copies",
    datanode_commands.Recover: "recoveries",
    datanode_commands.Cache: "cache",
    datanode_commands.Uncache: "uncache",
    datanode_commands.Bandwidth: "bandwidth",
}
"""What metrics and logs call the commands."""
JUDGING: Final = frozenset({Role.OPENING, Role.ACTIVE})
"""In these roles every edit of the journal is applied, and none but ours will come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperRules:
    """What is configured about DataNodes."""

    registry: RegistryRules
    leases: LeaseRules = LeaseRules()
    liveness: LivenessRules = LivenessRules()
    redundancy: RedundancyRules = RedundancyRules()
    draining: DrainRules = DrainRules()
    hosts: LeavingRules = LeavingRules()
    cache: CacheRules = CacheRules()
    reject_unresolved: bool = False
    deletions_at_once: int = 1000


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether this NameNode may say that it is the active, and its last durable edit.

    ``lapsed``: it has the role, and is without its read lease; another one may be the active.
    """

    active: bool
    durable: TxId
    lapsed: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a heartbeat; ``lease`` is NO_LEASE where none is given."""

    standing: Standing
    commands: tuple[datanode_commands.Command, ...] = ()
    lease: int = NO_LEASE
    must_register: bool = False


class Keeper:
    """Owns the cluster of one NameNode.

    ``standing`` returns what the role and the read lease allow at this instant.
    """

    def __init__(
        self,
        cluster: Cluster,
        rules: KeeperRules,
        standing: Callable[[], Standing],
        *,
        has_caught_up: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
        read: ReadPage = read_page,
    ) -> None:
        """``has_caught_up``: whether all edits of the journal have been applied once.

        ``read`` reads the pages of DataNodes.
        """
        self.cluster = cluster
        self.rules = rules
        self.standing = standing
        self.leases = ReportLeases(cluster.draw, rules.leases)
        self.intake = Intake(cluster, self.leases, clock)
        self.safe_mode = SafeModeWatch(cluster, has_caught_up, clock)
        self._clock = clock
        self.gone = GoneStorages(cluster)
        redundancy = Redundancy(cluster, rules.redundancy)
        self.upkeep = Upkeep(redundancy, cluster.blocks.map, clock)
        self.hosts = Hosts(
            cluster, redundancy, self.gone, rules.hosts,
            drop=self._drop, durable=self._durable, clock=clock,
        )  # fmt: skip
        self.use_racks(Racks())
        self.drain_check = DrainCheck(cluster, rules.draining, clock, read)
        self.cache_watch = CacheWatch(cluster, rules.cache, clock)
        self._watch = Watch(clock(), silence_counts_from=clock())
        self._counted: Lacking | None = None
        self._count_again = 0.0
        cluster.registered_by = clock() + rules.liveness.dead_seconds
        cluster.on_damage = _log_damage

    def use_racks(self, racks: Racks) -> None:
        """Look racks up there."""
        self.racks, self.cluster.rack_of_host = racks, racks.of_client

    def use_rules(self, rules: KeeperRules) -> None:
        """Judge DataNodes, reports, copies and deletions by these from now on."""
        self.rules, self.leases.rules = rules, rules.leases
        self.upkeep.redundancy.rules = rules.redundancy

    # ---- the role ----

    def role_changed(self, role: Role) -> None:
        """Judge as the active once all edits of the journal are applied, else as a standby."""
        if (role in JUDGING) != self.cluster.is_active():
            self._change_role(as_active=role in JUDGING)
        self.safe_mode.role_changed(role)

    def _change_role(self, *, as_active: bool) -> None:
        blocks = self.cluster.blocks
        self.cluster.term += 1
        self.leases.clear()
        self.cluster.cache.counted = {}
        for node in self.cluster.nodes.values():
            node.forget_orders()
        waited = len(blocks.postponed_reports)
        if as_active:
            activate(blocks)
            self.hosts.activated()
        else:
            blocks.demote()
        log.info(
            "datanodes.role",
            judges_as=blocks.role.value,
            term=self.cluster.term,
            judged=waited if as_active else 0,
            storages=len(blocks.map.storages),
        )

    # ---- calls ----

    def register(self, registration: Registration) -> Node:
        """Let a DataNode in.

        Raises:
            DatanodesError: if it is refused.
        """
        check_namespace(registration, self.rules.registry)
        if not self.hosts.lists.includes(registration.id):
            raise NotIncluded(registration.id.host)
        try:
            found = register(self.cluster, registration, self.rules.registry, self._clock())
        except UnevenRacks:
            self.racks.forget(registration.id)
            raise
        self.leases.give_back(found.node.id.uuid)
        for old in found.replaced:
            self.leases.give_back(old.id.uuid)
            self.gone.add_all(old, for_good=True)
        self.hosts.registered(found.node)
        log.info(
            "datanodes.registered",
            datanode=found.node.id.uuid,
            address=found.node.id.transfer_address,
            rack=found.node.rack,
            version=registration.software_version,
            replaced=[node.id.uuid for node in found.replaced],
        )
        return found.node

    async def find_rack(self, registration: Registration) -> Registration:
        """Return a registration with the DataNode's rack; raise UnresolvedRack if it needs one."""
        rack = await self.racks.of(registration.id)
        if rack is None and self.rules.reject_unresolved:
            raise UnresolvedRack(registration.id.host)
        return replace(registration, rack=rack or DEFAULT_RACK)

    async def refresh_nodes(self) -> None:
        """Read the hosts files again, and look all racks up anew. Raises DatanodesError."""
        await self.hosts.refresh()
        if await move_to_racks(self.cluster, self.racks):
            self.upkeep.redundancy.racks_changed()

    def hear(self, heartbeat: datanode_commands.Heartbeat, *, wants_lease: bool) -> Answer:
        """Take a heartbeat in, and give the orders that may leave now.

        Raises:
            TooManyStorages, TooManyStoragesHere: nothing of it was taken in.
        """
        standing, now = self.standing(), self._clock()
        node = datanode_commands.is_registered(self.cluster, heartbeat.of)
        if node is None:
            return Answer(standing, must_register=True)
        self._hear(node, heartbeat, now)
        commands: tuple[datanode_commands.Command, ...] = ()
        if standing.active:
            datanode_commands.claimed(node, now)
            if not self.cluster.safe_mode.is_on():
                commands = self._orders(node, standing.durable, now)
        lease = NO_LEASE
        if wants_lease or self._solicits(node, standing, now):
            confirms = standing.active and not self._awaits_drain(node)
            lease = self.leases.give(node.id.uuid, now, after_claim=confirms)
        return Answer(standing, commands, lease)

    def damaged(self, found: Sequence[Damaged]) -> None:
        """Take in which replicas a DataNode found damaged: its own, or those it could not copy.

        Raises:
            UnknownDatanode: nothing of it was taken in.
        """
        for one in found:
            check_known(self.cluster, one)
        for one in found:
            note_damage(self.cluster, one)

    def lifeline(self, heartbeat: datanode_commands.Heartbeat) -> None:
        """Take in that a DataNode lives; one that is not registered learns it by a heartbeat."""
        node = datanode_commands.is_registered(self.cluster, heartbeat.of)
        if node is not None:
            self._hear(node, heartbeat, self._clock())

    def _hear(self, node: Node, heartbeat: datanode_commands.Heartbeat, now: float) -> None:
        for storage in hear(self.cluster, node, heartbeat, now):
            log.warning("datanodes.storage_failed", datanode=node.id.uuid, storage=storage.uuid)
            self.gone.add(node, storage)

    def _orders(
        self, node: Node, durable: TxId, now: float
    ) -> tuple[datanode_commands.Command, ...]:
        rules = self.rules
        commands = datanode_commands.orders(
            self.cluster, node, durable, rules.liveness, now, rules.deletions_at_once
        )
        for command in commands:
            metrics.COMMANDS.labels(_KINDS[type(command)]).inc()
            _log_command(node, command)
            if isinstance(command, datanode_commands.Delete) and self._awaits_drain(node):
                note_orders(node, (block_id for block_id, _ in command.replicas))
        return commands

    def _awaits_drain(self, node: Node) -> bool:
        return awaits_drain(node, self.rules.draining)

    def _solicits(self, node: Node, standing: Standing, now: float) -> bool:
        """Return whether to ask a DataNode for a report: what its storages hold is not certain."""
        if self.leases.has(node.id.uuid, now):
            return False
        if not standing.active or self.cluster.blocks.is_starting():
            return node.lacks_first_report(now)
        could_confirm = not self._awaits_drain(node)
        return any(
            storage.held.needs_full_report or (could_confirm and not storage.held.confirmed)
            for storage in node.storages.values()
            if storage.state is not StorageState.FAILED
        )

    # ---- the clock, and what lasts ----

    def summary(self) -> Mapping[str, object]:
        """Return what operators are shown of blocks and DataNodes."""
        tip = self.safe_mode.tip() or None
        rules = self.rules
        now = self._clock()
        return files_summary(
            self.cluster, rules.liveness, rules.draining, tip, now, self._lacking(now)
        )

    def _lacking(self, now: float) -> Lacking:
        """Count what lacks replicas; a count that took long is kept for a while."""
        if self._counted is None or now >= self._count_again:
            pending = self.upkeep.redundancy.pending
            self._counted = count_lacking(self.cluster, pending, self.rules.liveness, now)
            self._count_again = now + REST * (self._clock() - now)
        return self._counted

    def duties(self) -> dict[str, Coroutine[Any, Any, None]]:
        """Return what is to run as long as the NameNode does, by name."""
        return {
            "watch-datanodes": self._look_on(),
            "empty-storages": self.gone.run(),
            "keep-replicas": self.upkeep.run(),
            "drain-datanodes": self.drain_check.run(),
            "follow-hosts": self.hosts.run(),
            "cache-blocks": self.cache_watch.run(),
        }

    async def _look_on(self) -> None:
        while True:
            self.safe_mode.look()
            if self._clock() >= self._watch.last_look + LOOK_SECONDS:
                self.look()
            metrics.measure(self.cluster, self.rules.liveness, self._clock())
            metrics.UNDRAINED.set(undrained(self.cluster, self.rules.draining))
            metrics.measure_redundancy(self.cluster, self.upkeep.redundancy)
            if self.cluster.namespace is not None:
                metrics.measure_limits(self.cluster, self.cluster.namespace)
            metrics.measure_lacking(self._lacking(self._clock()))
            await asyncio.sleep(self.safe_mode.look_again_seconds)

    def look(self) -> None:
        starting, now = self.cluster.blocks.is_starting(), self._clock()
        nodes = self.cluster.nodes.values()
        for node in self._watch.died(nodes, self.rules.liveness, now, starting=starting):
            log.warning(
                "datanodes.died", datanode=node.id.uuid, address=node.id.transfer_address,
                silent_seconds=round(now - node.last_heard),
            )  # fmt: skip
            self._drop(node)

    def _durable(self) -> TxId | None:
        standing = self.standing()
        return standing.durable if standing.active else None

    def _drop(self, node: Node) -> None:
        """Have a DataNode count as dead; what it holds counts for nothing but in maintenance."""
        node.alive = False
        node.forget_orders()
        node.cache = NodeCache()
        self.leases.give_back(node.id.uuid)
        if node.admin.is_maintained and self.hosts.lists.includes(node.id):
            self.cluster.recheck(node)
        else:
            self.gone.add_all(node)


def _log_command(node: Node, command: datanode_commands.Command) -> None:
    """Log a command with some of its blocks by id: it may have thousands."""
    match command:
        case datanode_commands.Delete():
            blocks = [block_id for block_id, _ in command.replicas]
        case datanode_commands.Transfer() | datanode_commands.Recover():
            blocks = [one.block_id for one in command.blocks]
        case datanode_commands.Cache() | datanode_commands.Uncache():
            blocks = list(command.blocks)
        case datanode_commands.Bandwidth():
            blocks = []
        case _:
            assert_never(command)
    log.info(
        "datanodes.command",
        datanode=node.id.uuid,
        kind=_KINDS[type(command)],
        count=len(blocks),
        blocks=blocks[:SHOWN_BLOCKS],
    )


def _log_damage(block_id: int, stamp: int, datanode: str) -> None:
    log.warning("datanodes.damaged_replica", block=block_id, stamp=stamp, datanode=datanode)
