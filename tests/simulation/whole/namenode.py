"""One life of a NameNode: the product's namespace, role, edit log, reader and faces."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Final

from ha.rpc.protocol import Call, RpcProtocol
from ha.service.ha_service import ha_service_protocol
from ha.service.model import ProcessIdentity, RequestSource, ServiceStatus
from journal.links.settings import ReaderSettings
from journal.reader.reader import JournalReader
from journal.writer.writer import QuorumWriter
from namenode_sim.blocks.safemode import SafeModeRules
from namenode_sim.blocks.state import BlockState
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.datanode_protocol.keeper import Keeper
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.client_service import ClientService
from namenode_sim.process.datanodes import standing_of
from namenode_sim.process.ha_service import NameNodeHaService
from namenode_sim.process.peer_service import witness_protocol
from namenode_sim.supervised import supervise
from namenode_sim.term.journal_access import JournalAccess
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role
from tests.simulation.blocks.namenode import RULES, Gate, NoGroups, methods_of
from tests.simulation.blocks.namenode import SETTINGS as FILES
from tests.simulation.blocks.names import POOL
from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.failover.hosts import Life
from tests.simulation.journal.contender import SETTINGS
from tests.simulation.journal.machine import JOURNAL, NAMESPACE, RPC_PORT

OPERATOR: Final = "hdfs"
CLIENT: Final = "root"
LEASE_SECONDS: Final = 1.5
TAIL_SECONDS: Final = 0.5
BIRTH: Final = 1.7e9
"""The wall clock's reading at the beginning of each world."""
LOOK_AT_LEASES_SECONDS: Final = 2.0
WITHOUT_DATANODES: Final = SafeModeRules(threshold=0.0, extension_seconds=0.0)
WITH_DATANODES: Final = SafeModeRules(extension_seconds=1.0)
_WRITER: Final = replace(SETTINGS, read_lease_seconds=LEASE_SECONDS)
_READER: Final = ReaderSettings(
    select_input_streams_timeout_seconds=1.0,
    http_open_timeout_seconds=1.0,
    http_read_timeout_seconds=1.0,
)


class NameNodeLife:
    """A NameNode that has loaded its image, which is empty: the journal has all edits."""

    def __init__(
        self,
        life: Life,
        journals: Sequence[str],
        loop: VirtualLoop,
        *,
        follows: bool,
        roll_seconds: float,
        datanodes: bool,
    ) -> None:
        """``follows``: as a standby it reads the open segment as well."""
        nodes = [(journal, RPC_PORT) for journal in journals]
        self.life = life
        self._roll_seconds = roll_seconds
        namespace = Namespace.empty(CLIENT)
        reader = _new_reader(nodes)
        gate = Gate()
        self.namenode = NameNode(
            name=life.host.name,
            namespace=namespace,
            journal=JournalAccess(
                partial(_new_writer, nodes, loop),
                reader,
                tails_open_segment=follows,
                silence=reader.writer_silence,
            ),
            gate=gate,  # type: ignore[arg-type] # a model of it
            tail_period_seconds=TAIL_SECONDS,
        )
        rules = WITH_DATANODES if datanodes else WITHOUT_DATANODES
        cluster = Cluster(POOL, BlockState(), Random(life.pid), rules)
        cluster.belong_to(namespace)
        self.keeper = self._new_keeper(cluster, loop, datanodes=datanodes)
        self._datanodes = datanodes
        self.face = ClientService(
            namespace,
            self.namenode,
            gate,
            CLIENT,
            cluster,
            settings=FILES if datanodes else Settings(),
            groups=NoGroups(),
            on_broken=self.namenode.end_because,
            clock=loop.time,
            wall_clock=lambda: BIRTH + loop.time(),
        )
        self.namenode.listen_for_roles(
            lambda role: self.face.became_active() if role is Role.ACTIVE else None
        )
        operators = NameNodeHaService(
            self.namenode, superuser=OPERATOR, automatic_failover=True, disk_trouble=lambda: None
        )
        self.methods = methods_of(self.face)
        self.protocols: tuple[RpcProtocol, ...] = (
            ha_service_protocol(_Identified(operators, life)),
            witness_protocol(reader.writer_silence),
            self.face.protocol(),
        )

    def _new_keeper(self, cluster: Cluster, loop: VirtualLoop, *, datanodes: bool) -> Keeper:
        keeper = Keeper(
            cluster,
            RULES,
            lambda: standing_of(self.namenode),
            has_caught_up=lambda: self.namenode.tailer.trouble is None,
            clock=loop.time,
        )
        if datanodes:
            keeper.safe_mode.await_edits()
            self.namenode.listen_for_roles(keeper.role_changed)
        return keeper

    @property
    def role(self) -> Role:
        return self.namenode.state.role

    async def run(self) -> str:
        """Be a standby, or what its controller makes of it, until it ends; return why it does."""
        self.namenode.start()
        if self._datanodes:
            duties = self.keeper.duties() | {"leases": self._expire_leases()}
            for name, work in duties.items():
                supervise(work, name, self.namenode.end_because)
        rolling = asyncio.create_task(self._roll())
        try:
            return await self.namenode.stopped_because
        finally:
            rolling.cancel()

    async def _expire_leases(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AT_LEASES_SECONDS)
            if self.role is Role.ACTIVE:
                await self.face.release_expired_leases()

    async def _roll(self) -> None:
        while True:
            await asyncio.sleep(self._roll_seconds)
            self.namenode.roll_edits()


def _new_reader(nodes: Sequence[tuple[str, int]]) -> JournalReader:
    return JournalReader(
        nodes,
        journal_id=JOURNAL,
        nameservice_id=JOURNAL,
        namespace=NAMESPACE,
        settings=_READER,
    )


def _new_writer(nodes: Sequence[tuple[str, int]], loop: VirtualLoop) -> QuorumWriter:
    writer = QuorumWriter(
        nodes,
        journal_id=JOURNAL,
        nameservice_id=JOURNAL,
        namespace=NAMESPACE,
        settings=_WRITER,
    )
    writer.read_lease.clock = loop.time
    return writer


@dataclass(frozen=True, slots=True)
class _Identified:
    """What operators see of it, with the process id that this world gave it."""

    face: NameNodeHaService
    life: Life

    async def status(self) -> ServiceStatus:
        told = await self.face.status()
        own = ProcessIdentity(self.life.pid, self.life.pid, self.life.host.name)
        return replace(told, process=own)

    async def monitor_health(self) -> None:
        await self.face.monitor_health()

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        await self.face.transition_to_active(
            source, call, predecessor_gone_until=predecessor_gone_until
        )

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        await self.face.transition_to_standby(source, call)
