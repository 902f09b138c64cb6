"""Speaks to one NameNode, for ever: handshake, heartbeats, reports.

See docs/reference/datanode.md#datanodeprotocol.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

import structlog

from datanode.errors import OtherNamespace
from datanode.metrics import HEARTBEATS, REPORTS
from datanode.model import Replica
from datanode.namenodes.claim import NameNodeId, Said
from datanode.namenodes.commands import Command, NewKeys, Register, commands_of
from datanode.namenodes.identity import Identity, Namespace, namespace_of
from datanode.namenodes.incremental_reports import IncrementalQueue
from datanode.namenodes.namenode_client import Condition, NameNodeCalls
from datanode.replicas.store import Announcement, Store
from datanode.transfers.transfer import DamagedSource
from ha.conf.topology import HostPort
from ha.record import dataclass
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.java_names import STANDBY_EXCEPTION
from hadoop.proto import block_tokens_pb2 as tokens
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import namenode_protocol_pb2 as nn
from hadoop.wire.errors import DataNodeError, MalformedTransfer

log = structlog.get_logger()

_CONNECT_SECONDS: Final = 5.0
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 5.0
_MOST_DAMAGED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a NameNode hears of us, in seconds.

    From ``split_blocks`` on, each volume has a call of its own in a full report.
    """

    heartbeat_seconds: float = 3.0
    report_seconds: float = 6 * 3600.0
    split_blocks: int = 1_000_000
    cache_report_seconds: float = 10.0


class Member(Protocol):
    """The DataNode as an actor sees it."""

    async def join(self, who: NameNodeId, namespace: Namespace) -> tuple[Identity, Store]:
        """Become a DataNode of the namespace of this NameNode.

        Raises:
            WrongNamespace: if this DataNode belongs to none of its NameNodes.
            OtherNamespace: if it does not belong to this one.
        """

    def condition(self) -> Condition:
        """Return the condition of this DataNode, for a heartbeat."""

    async def heard(self, who: NameNodeId, said: Said, txid: int) -> None:
        """Handle a NameNode's statement that it is active or standby."""

    def commanded(self, who: NameNodeId, commands: Sequence[Command]) -> None:
        """Handle the commands that a NameNode has sent."""

    def forget_orders(self, who: NameNodeId) -> None:
        """Drop the commands that a NameNode sent before this registration."""

    async def take_queued(self) -> None:
        """Begin to carry out all commands that wait: a full report names no replica that goes."""

    def learn_keys(self, who: NameNodeId, keys: tokens.ExportedBlockKeysProto) -> None:
        """Take over a NameNode's keys of block tokens, whatever its role."""


class Actor:
    """The connection to one NameNode, and what is still to be reported to it."""

    def __init__(
        self,
        who: NameNodeId,
        address: HostPort,
        member: Member,
        rhythm: Rhythm,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.who, self.address, self._member, self._rhythm = who, address, member, rhythm
        self._pause = pause
        self._queue = IncrementalQueue()
        self._damaged: list[Replica | DamagedSource] = []
        self._wake = asyncio.Event()
        self._calls: NameNodeCalls | None = None
        self._report_due = self._cache_report_due = 0.0
        self._registered = False
        self.state = "not reached yet"

    def tell(self, announcement: Announcement) -> None:
        """Queue an announcement for the NameNode; one that a block is complete is sent at once."""
        self._queue.add(announcement)
        if self._queue.urgent:
            self._wake.set()

    def report_damaged(self, damaged: Replica | DamagedSource) -> None:
        """Report a damaged replica, so that the NameNode has it copied from another."""
        others = [one for one in self._damaged if one != damaged]
        if len(others) < _MOST_DAMAGED:
            self._damaged = [*others, damaged]
        self._wake.set()

    def report_soon(self) -> None:
        """Report all replicas with the next lease."""
        self._report_due = 0.0
        self._wake.set()

    def send_news_soon(self) -> None:
        """Send what waits for the next heartbeat now."""
        self._queue.urgent = True
        self._wake.set()

    def use_rhythm(self, rhythm: Rhythm) -> None:
        """Report in this rhythm; what would be due earlier by it is due then."""
        now = asyncio.get_running_loop().time()
        self._rhythm = rhythm
        self._report_due = min(self._report_due, now + rhythm.report_seconds)
        self._cache_report_due = min(self._cache_report_due, now + rhythm.cache_report_seconds)
        self._wake.set()

    @property
    def calls(self) -> NameNodeCalls | None:
        return self._calls if self._registered else None

    async def run(self) -> None:
        """Connect repeatedly; raise only what ends the DataNode (``WrongNamespace``)."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                calls = await NameNodeCalls.open(self.address, seconds=_CONNECT_SECONDS)
                try:
                    self._calls = calls
                    await self._serve(calls)
                finally:
                    self._calls, self._registered = None, False
                    await calls.close()
            except (RpcError, RemoteFault, MalformedTransfer, OtherNamespace) as problem:
                if self.state != str(problem):
                    log.warning("datanode.namenode_lost", namenode=self.who, why=str(problem))
                pause = _FIRST_PAUSE_SECONDS if self.state == "registered" else pause
                self.state = str(problem)
            await self._pause(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def _serve(self, calls: NameNodeCalls) -> None:
        identity, store = await self._greet(calls)
        loop = asyncio.get_running_loop()
        next_heartbeat = loop.time()
        while True:
            lease = 0
            if loop.time() >= next_heartbeat:
                next_heartbeat = loop.time() + self._rhythm.heartbeat_seconds
                lease = await self._heartbeat(calls, identity)
                await self._send_news(calls, identity, store)
            elif self._queue.urgent:
                await self._send_news(calls, identity, store)
            if lease:
                await self._report(calls, identity, store, lease)
            if store.memory.capacity and loop.time() >= self._cache_report_due:
                self._cache_report_due = loop.time() + self._rhythm.cache_report_seconds
                await self._report_memory(calls, identity, store)
            await self._send_damage(calls, identity, store)
            self._wake.clear()
            if self._queue.urgent:
                continue
            next_heartbeat = min(next_heartbeat, loop.time() + self._rhythm.heartbeat_seconds)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_heartbeat):
                    await self._wake.wait()

    async def _greet(self, calls: NameNodeCalls) -> tuple[Identity, Store]:
        info = await calls.version()
        identity, store = await self._member.join(self.who, namespace_of(info))
        keys = await calls.register(identity)
        self._member.forget_orders(self.who)
        self._member.learn_keys(self.who, keys)
        self.state, self._registered = "registered", True
        self._report_due = self._cache_report_due = 0.0
        log.info("datanode.registered", namenode=self.who, address=str(self.address))
        if info.state == nn.NNHAStatusHeartbeatProto.STANDBY:
            self._queue.clear()  # the report that follows says all of it
        return identity, store

    async def _heartbeat(self, calls: NameNodeCalls, identity: Identity) -> int:
        """Send a heartbeat, and return the lease for a full report, or 0 for none."""
        now = asyncio.get_running_loop().time()
        wants = now >= self._report_due
        try:
            answer = await calls.heartbeat(identity, self._member.condition(), wants_lease=wants)
        except (RpcError, RemoteFault):
            HEARTBEATS.labels("failed").inc()
            raise
        HEARTBEATS.labels("answered").inc()
        active = answer.haStatus.state == nn.NNHAStatusHeartbeatProto.ACTIVE
        said = Said.ACTIVE if active else Said.STANDBY
        await self._member.heard(self.who, said, answer.haStatus.txid)
        await self._take(answer.cmds, calls, identity)
        return answer.fullBlockReportLeaseId

    async def _take(
        self,
        messages: Sequence[pb.DatanodeCommandProto],
        calls: NameNodeCalls,
        identity: Identity,
    ) -> None:
        commands: list[Command] = []
        for message in messages:
            try:
                commands.extend(commands_of(message, identity.namespace.pool))
            except DataNodeError as problem:
                log.warning("datanode.bad_command", namenode=self.who, why=str(problem))
        if any(isinstance(one, Register) for one in commands):
            # A NameNode that asks for this does not know this DataNode: its other commands are not
            # obeyed.
            await self._greet(calls)
            commands = [one for one in commands if isinstance(one, NewKeys)]
        for one in commands:
            if isinstance(one, NewKeys):
                self._member.learn_keys(self.who, one.keys)
        self._member.commanded(self.who, [one for one in commands if not isinstance(one, NewKeys)])

    async def _send_news(self, calls: NameNodeCalls, identity: Identity, store: Store) -> None:
        while news := self._queue.take(store.has):
            try:
                await calls.incremental(identity, news, store.volumes.types)
            except (RpcError, RemoteFault):
                self._queue.put_back(news)
                raise
            REPORTS.labels("incremental").inc()

    async def _report_memory(self, calls: NameNodeCalls, identity: Identity, store: Store) -> None:
        try:
            await calls.cache_report(identity, store.memory.blocks())
        except RemoteFault as refusal:  # as of a NameNode that is older and does not know the call
            log.warning("datanode.cache_report_refused", namenode=self.who, why=refusal.reason)
            return
        REPORTS.labels("cache").inc()

    async def _send_damage(self, calls: NameNodeCalls, identity: Identity, store: Store) -> None:
        while self._damaged:
            damaged = self._damaged[0]
            if not isinstance(damaged, DamagedSource) and not store.holds(damaged):
                # It was deleted.  A copy that has come since may be the last good one.
                self._damaged.remove(damaged)
                continue
            try:
                if isinstance(damaged, DamagedSource):
                    await calls.bad_source(identity, damaged)
                else:
                    storage_type = store.volumes.types.get(damaged.storage, "DISK")
                    await calls.bad_replica(identity, damaged, storage_type)
            except RemoteFault as refusal:
                if refusal.java_class == STANDBY_EXCEPTION:
                    # Our own damage waits for its term; of another's we do not hear how it ends.
                    self._damaged = [
                        one for one in self._damaged if not isinstance(one, DamagedSource)
                    ]
                else:
                    log.warning("datanode.damage_refused", namenode=self.who, why=refusal.reason)
                return  # with the next heartbeat again
            REPORTS.labels("damage").inc()
            self._damaged.remove(damaged)

    async def _report(
        self, calls: NameNodeCalls, identity: Identity, store: Store, lease: int
    ) -> None:
        await self._member.take_queued()
        await self._send_news(calls, identity, store)
        self._report_due = asyncio.get_running_loop().time() + self._rhythm.report_seconds
        try:
            await calls.full_report(
                identity,
                store,
                store.volumes.types,
                lease=lease,
                split_blocks=self._rhythm.split_blocks,
            )
        except (RpcError, RemoteFault) as problem:
            # A lease may have ended while we worked: the connection goes on, and asks again.
            self._report_due = 0.0
            if isinstance(problem, RpcError):
                raise
            log.warning("datanode.report_refused", namenode=self.who, why=problem.reason)
            return
        REPORTS.labels("full").inc()
        log.info("datanode.reported", namenode=self.who, replicas=len(store))
