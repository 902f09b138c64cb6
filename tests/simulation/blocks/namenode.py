"""One life of a NameNode's process: the product's parts, put together as its daemon does it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, Protocol, cast

from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import CLIENT_PROTOCOL, STANDBY_EXCEPTION
from ha.rpc.protocol import Call
from journal.model import TxId
from namenode_sim.blocks.safemode import SafeModeRules
from namenode_sim.blocks.state import BlockState
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.datanode_protocol.gone import GoneStorages
from namenode_sim.datanode_protocol.keeper import Keeper, KeeperRules
from namenode_sim.datanode_protocol.leaving import LeavingRules
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.draining import DrainRules
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.membership.host_lists import HostLists
from namenode_sim.datanodes.model import Node
from namenode_sim.datanodes.redundancy_check import RedundancyRules
from namenode_sim.datanodes.registry import RegistryRules
from namenode_sim.datanodes.report_leases import LeaseRules
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.client_service import ClientService
from namenode_sim.process.datanodes import standing_of
from namenode_sim.supervised import supervise
from namenode_sim.term.namenode import NameNode, TransitionRefused
from namenode_sim.term.role import Role
from tests.namenode_sim.carried_out import carried_out
from tests.simulation.blocks.actor import IDS
from tests.simulation.blocks.model_journal import Journal, access, frames_of
from tests.simulation.blocks.names import POOL
from tests.simulation.blocks.wires import Wires
from tests.simulation.engine.clock import Process, VirtualLoop

SUPERUSER: Final = "hdfs"
BLOCK_SIZE: Final = 40
RULES: Final = KeeperRules(
    registry=RegistryRules(namespace=IDS),
    leases=LeaseRules(most=2, seconds=20.0),
    liveness=LivenessRules(stale_seconds=10.0, dead_seconds=40.0),
    draining=DrainRules(check=False),
    redundancy=RedundancyRules(pending_seconds=15.0, excess_seconds=30.0),
    hosts=LeavingRules(look_seconds=2.0),
)
SAFE_MODE: Final = SafeModeRules(extension_seconds=3.0)
SETTINGS: Final = Settings(block_size=BLOCK_SIZE, min_block_size=1, hard_lease_seconds=30.0)
TAIL_SECONDS: Final = 1.0
BIRTH: Final = 1.7e9
"""The wall clock's reading at the beginning of each world."""

Handle = Callable[[Call, Any], Awaitable[Message]]


class Gate:
    """Lets clients' calls in where they are served; no call waits at it."""

    def __init__(self) -> None:
        self._role = Role.STANDBY

    def role_changed(self, role: Role) -> None:
        self._role = role

    def is_open(self) -> bool:
        return self._role is Role.ACTIVE

    async def admit(self, method: str, *, writes: bool) -> None:
        """Raise RemoteFault where another NameNode should be asked."""
        if self._role is not Role.ACTIVE:
            raise RemoteFault(STANDBY_EXCEPTION, f"{method}: {self._role.value}, writes={writes}")

    async def close(self) -> None:
        """Do nothing."""


@dataclass(slots=True)
class NoGroups:
    """Everybody is the superuser."""

    def has_learnt(self, user: str) -> bool:
        """Known."""
        return True

    def forget(self) -> None:
        return

    async def learn(self, user: str) -> None:
        """Known."""

    def known(self, user: str) -> frozenset[str]:
        """Return the user's own group only."""
        return frozenset({user})


def replayed(journal: Journal, through: TxId) -> Namespace:
    namespace = Namespace.empty(SUPERUSER)
    for first, _, records in journal.batches:
        if first > through:
            break
        for txid, op in frames_of(records):
            if txid <= through:
                namespace.apply(txid, op)
    return namespace


class NameNodeLife:
    """A NameNode that has loaded its image, and stands by."""

    def __init__(
        self,
        name: str,
        process: Process,
        loop: VirtualLoop,
        journal: Journal,
        wires: Wires,
        random: Random,
        image: TxId,
        settings: Settings,
    ) -> None:
        self.name, self.process, self.loop = name, process, loop
        self.active_since = 0.0
        self.on_death: Callable[[NameNodeLife, str], None] = lambda _life, _host: None
        self.cluster = Cluster(POOL, BlockState(), random, SAFE_MODE)
        namespace = replayed(journal, image)
        self.cluster.belong_to(namespace)
        gate = Gate()
        self.namenode = NameNode(
            name=name,
            namespace=namespace,
            journal=access(journal, wires, name),
            gate=gate,  # type: ignore[arg-type] # a model of it
            tail_period_seconds=TAIL_SECONDS,
        )
        self.keeper = Keeper(
            self.cluster,
            RULES,
            lambda: standing_of(self.namenode),
            has_caught_up=lambda: self.namenode.tailer.trouble is None,
            clock=loop.time,
        )
        self.keeper.safe_mode.await_edits()
        self.keeper.gone = cast(GoneStorages, _Gone(self, self.keeper.gone))
        self.face = ClientService(
            namespace,
            self.namenode,
            gate,
            SUPERUSER,
            self.cluster,
            settings=settings,
            groups=NoGroups(),
            on_broken=self.namenode.end_because,
            clock=loop.time,
            wall_clock=lambda: BIRTH + loop.time(),
        )
        self.methods = methods_of(self.face)
        self.namenode.listen_for_roles(self.keeper.role_changed)
        self.namenode.listen_for_roles(self._role_changed)

    def follow(self, read: Callable[[], HostLists]) -> None:
        """Follow hosts files from now on, which are read at once."""
        hosts = self.keeper.hosts
        hosts.read, hosts.wall_clock = read, self.face.wall_clock
        hosts.apply(read())

    def _role_changed(self, role: Role) -> None:
        if role is Role.ACTIVE:
            self.active_since = self.loop.time()
            self.face.became_active()

    @property
    def role(self) -> Role:
        """What it is now."""
        return self.namenode.state.role

    @property
    def shows_durable(self) -> bool:
        edit_log = self.namenode.edit_log
        return edit_log is None or edit_log.committed_txid >= self.namenode.namespace.last_applied

    def start(self) -> None:
        """Begin; called in the process."""
        self.namenode.start()
        duties = self.keeper.duties() | {
            "leases": self._leases(),
        }
        for name, work in duties.items():
            supervise(work, name, self.namenode.end_because)

    async def _leases(self) -> None:
        while True:
            await asyncio.sleep(2.0)
            if self.role is Role.ACTIVE:
                await self.face.release_expired_leases()

    async def become_active(self) -> bool:
        try:
            await self.namenode.become_active()
        except TransitionRefused:
            return False
        return True

    async def become_standby(self) -> bool:
        try:
            await self.namenode.become_standby()
        except TransitionRefused:
            return False
        return True


class _Gone:
    """Storages that are gone; the oracle hears of each DataNode that is taken for dead."""

    def __init__(self, life: NameNodeLife, storages: GoneStorages) -> None:
        self._life, self._storages = life, storages
        self.add, self.run = storages.add, storages.run

    def add_all(self, node: Node, *, for_good: bool = False) -> None:
        if not for_good:
            self._life.on_death(self._life, node.id.host)
        self._storages.add_all(node, for_good=for_good)


def methods_of(face: ClientService) -> dict[str, tuple[type[Message], Handle]]:
    methods = face.protocol().methods
    return {name: (one.request, partial(carried_out, one)) for name, one in methods.items()}


class Serving(Protocol):
    """What clients need of a NameNode."""

    methods: dict[str, tuple[type[Message], Handle]]


async def served(
    life: Serving, method: str, client: bytes, number: int, request: Message, *, user: str
) -> Message:
    _, handle = life.methods[method]
    call = Call(CLIENT_PROTOCOL, method, client, number, 0, user, None, "10.9.9.9")
    return await handle(call, request)
