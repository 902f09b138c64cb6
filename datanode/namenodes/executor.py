"""Carries out commands of NameNodes, in order.

Whether the sender may command is checked when a command is taken from the queue.  See
docs/reference/datanode.md#commands.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, assert_never

import structlog

from datanode import errors
from datanode.metrics import COMMANDS
from datanode.model import Replica
from datanode.namenodes.claim import NameNodeId
from datanode.namenodes.commands import (
    Bandwidth,
    Cache,
    Command,
    Delete,
    Ignored,
    NewKeys,
    Recover,
    Register,
    Transfer,
    Uncache,
)
from datanode.namenodes.identity import Identity
from datanode.namenodes.namenode_client import NameNodeCalls
from datanode.namenodes.recovery import Leader
from datanode.replicas.caching import cache
from datanode.replicas.meta_file import BadMetaFile
from datanode.replicas.store import Store
from datanode.transfers.block_access import BlockAccess
from datanode.transfers.transfer import push
from ha.rpc.errors import RemoteFault, RpcError
from hadoop.blocks import Block, GenerationStamp
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import ChecksumMismatch, DataNodeError
from hadoop.wire.peer import TransferLimits

log = structlog.get_logger()

_MOST_QUEUED: Final = 100_000
_MOST_COPIES: Final = 4
"""At a time; NameNodes give no more than that either."""
_INVALID_BLOCK: Final = pb.ErrorReportRequestProto.INVALID_BLOCK


class Executor:
    """The commands that wait, and the copies and recoveries that run."""

    def __init__(
        self,
        store: Store,
        identity: Identity,
        limits: TransferLimits,
        *,
        obeyed: Callable[[], NameNodeId | None],
        calls: Callable[[NameNodeId], NameNodeCalls | None],
        on_suspicion: Callable[[Block], None] = lambda _: None,
        on_bandwidth: Callable[[int], None] = lambda _: None,
        access: BlockAccess | None = None,
    ) -> None:
        """``on_suspicion`` hears of a block whose replica could not be read as it was written.

        ``on_bandwidth`` hears how many bytes of moves may pass in a second.  ``access`` makes the
        block token under which another DataNode takes a copy.
        """
        self._on_suspicion, self._on_bandwidth = on_suspicion, on_bandwidth
        self._access = access or BlockAccess(identity.namespace.pool, wanted=False)
        self._store, self._identity, self._limits = store, identity, limits
        self._obeyed, self._calls = obeyed, calls
        self._leader = Leader(store, identity)
        self._queue: deque[tuple[NameNodeId, Command]] = deque()
        self._more = asyncio.Event()
        self._copies = asyncio.Semaphore(_MOST_COPIES)
        self._running: set[asyncio.Task[None]] = set()
        self.transfers = 0

    def add(self, who: NameNodeId, commands: Sequence[Command]) -> None:
        """Queue commands; beyond a limit they are dropped, for a NameNode gives them again."""
        room = _MOST_QUEUED - len(self._queue)
        for command in commands[:room]:
            self._queue.append((who, command))
        if len(commands) > room:
            log.warning("datanode.commands_dropped", namenode=who, count=len(commands) - room)
        self._more.set()

    def obey(self, who: NameNodeId) -> None:
        """Drop what others have ordered.

        Bad schedule: two NameNodes are obeyed in turn, and the first again, before this queue is
        taken.  The second has counted a replica, and had others deleted; an order from the first
        term of the first would delete it after all.
        """
        self._keep(lambda giver: giver == who, "orders of others", who)

    def forget(self, who: NameNodeId) -> None:
        """Drop what a NameNode has ordered; to be called where this DataNode registers with it.

        Bad schedule: it is another process of that name, as which orders of the one before would be
        carried out after all replicas were reported.  It counts one of them, and has others go.
        """
        self._keep(lambda giver: giver != who, "orders before it registered", who)

    def _keep(self, is_kept: Callable[[NameNodeId], bool], dropped: str, who: NameNodeId) -> None:
        kept = deque(ordered for ordered in self._queue if is_kept(ordered[0]))
        if count := len(self._queue) - len(kept):
            log.info("datanode.orders_dropped", what=dropped, count=count, namenode=who)
        self._queue = kept

    async def run(self) -> None:
        """Carry out queued commands until cancelled; the tasks that it has started end with it."""
        try:
            while True:
                await self._more.wait()
                self._more.clear()
                await self.take_queued()
        finally:
            for task in tuple(self._running):
                task.cancel()

    async def take_queued(self) -> None:
        """Take all commands that wait; to be awaited before a full report is made.

        Bad schedule: an active becomes a standby and active again, between two heartbeats, and this
        queue is slow.  The report of the new term names a replica that an order of the old one
        deletes afterwards, and the NameNode counts it and has the others deleted.
        """
        while self._queue:
            self._take(*self._queue.popleft())
            await asyncio.sleep(0)

    def _take(self, who: NameNodeId, command: Command) -> None:
        kind = type(command).__name__.lower()
        if self._obeyed() != who:
            COMMANDS.labels(kind, "not obeyed").inc()
            log.info("datanode.command_dropped", namenode=who, command=kind, obeyed=self._obeyed())
            return
        COMMANDS.labels(kind, "taken").inc()
        self._carry_out(who, command)

    def _carry_out(self, who: NameNodeId, command: Command) -> None:
        match command:
            case Delete():
                self._delete(command)
            case Transfer():
                self._beside(self._copy(who, command))
            case Recover():
                self._beside(self._recover(who, command))
            case Cache():
                self._beside(self._cache(command))
            case Uncache():
                for block_id in command.blocks:
                    self._store.memory.release(block_id)
            case Bandwidth():
                log.info("datanode.bandwidth", namenode=who, a_second=command.bytes_per_second)
                self._on_bandwidth(command.bytes_per_second)
            case Ignored():
                log.info("datanode.command_ignored", namenode=who, kind=command.kind)
            case Register() | NewKeys():
                return  # the actor has done it
            case _:
                assert_never(command)

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _delete(self, command: Delete) -> None:
        try:
            forgotten = self._store.forget(command.block)
        except DataNodeError as refusal:
            COMMANDS.labels("delete", "refused").inc()
            log.info("datanode.not_deleted", block=str(command.block), why=str(refusal))
            return
        self._beside(self._delete_files(command, forgotten))

    async def _delete_files(self, command: Delete, forgotten: Replica) -> None:
        try:
            await self._store.delete(forgotten, quietly=command.quietly)
        except DataNodeError as problem:
            log.warning("datanode.files_stay", block=str(command.block), why=str(problem))

    async def _cache(self, command: Cache) -> None:
        for block_id in command.blocks:
            try:
                await cache(self._store, block_id)
            except (DataNodeError, OSError) as problem:
                log.warning("datanode.not_cached", block=block_id, why=str(problem))
                if isinstance(problem, ChecksumMismatch | BadMetaFile | OSError):
                    self._on_suspicion(Block(block_id, GenerationStamp(0)))

    async def _copy(self, who: NameNodeId, command: Transfer) -> None:
        async with self._copies:
            self.transfers += 1
            try:
                pool = self._identity.namespace.pool
                await push(
                    self._store, pool, command.block, command.targets, self._limits,
                    source=self._identity.node_id, access=self._access,
                )  # fmt: skip
            except (DataNodeError, PeerLost, OSError) as problem:
                log.warning("datanode.copy_failed", block=str(command.block), why=str(problem))
                await self._complain(who, command, problem)
            finally:
                self.transfers -= 1

    async def _complain(self, who: NameNodeId, command: Transfer, problem: Exception) -> None:
        """Report to the NameNode a failed transfer for which only it has a remedy."""
        calls = self._calls(who)
        if calls is None:
            return
        try:
            if isinstance(problem, errors.ReplicaMissing):
                await calls.error(
                    self._identity, _INVALID_BLOCK, f"Can't send invalid block {command.block}"
                )
            elif isinstance(problem, ChecksumMismatch | OSError):
                replica = self._store.find(command.block)
                storage_type = self._store.volumes.types.get(replica.storage, "DISK")
                await calls.bad_replica(self._identity, replica, storage_type)
        except (RpcError, RemoteFault, DataNodeError) as failure:
            log.warning("datanode.complaint_lost", namenode=who, why=str(failure))

    async def _recover(self, who: NameNodeId, command: Recover) -> None:
        calls = self._calls(who)
        if calls is None:
            return
        try:
            await self._leader.lead(command, calls)
        except errors.RecoveryInProgress as other:
            log.info("datanode.recovery_elsewhere", block=str(command.block), why=str(other))
        except (DataNodeError, RpcError, RemoteFault) as problem:
            log.warning("datanode.recovery_failed", block=str(command.block), why=str(problem))
