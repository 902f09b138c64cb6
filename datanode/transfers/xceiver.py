"""Serves DataTransferProtocol: one task for each connection, one operation after another.

See docs/reference/datanode.md#datatransferprotocol.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final

import structlog

from datanode.metrics import BYTES_READ, BYTES_WRITTEN, OPERATIONS
from datanode.replicas.store import Store
from datanode.transfers.balance_throttle import MoveRefused, MoveRules
from datanode.transfers.block_access import BlockAccess
from datanode.transfers.block_checksum import block_checksum
from datanode.transfers.handshake import accept
from datanode.transfers.moves import Moves
from datanode.transfers.receive import Receiver
from datanode.transfers.send import open_stretch, opening, send_stretch
from datanode.transfers.transfer import DamagedSource, Targets, push
from datanode.transfers.write_plan import MAX_TARGETS, write_plan
from ha.daemon.door.door import Door, DoorLimits
from ha.daemon.door.origin import Origin, origin_of_ends
from ha.daemon.door.places import Seat, Standing
from ha.daemon.listening import listen_plainly, stop_listening
from hadoop.block_tokens import Mode, TokenRefused
from hadoop.blocks import Block, PoolId
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.block_messages import checked_block
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.connection import Connection, PeerLost
from hadoop.wire.errors import ChecksumMismatch, DataNodeError, MalformedTransfer
from hadoop.wire.handshake import is_privileged
from hadoop.wire.packets import OP_HEAD, Op, decode_op
from hadoop.wire.peer import Peer, TransferLimits

log = structlog.get_logger()

_CHECKSUMS_AT_ONCE: Final = 4
"""Of whole blocks: each has all checksums of its chunks in memory."""
_MOST_WAITING: Final = 512
_MOST_WAITING_OF_ORIGIN: Final = 128
_NOT_DONE: Final = {
    Op.READ_METADATA: "reading meta files",
    Op.REQUEST_SHORT_CIRCUIT_FDS: "short-circuit reads",
    Op.RELEASE_SHORT_CIRCUIT_FDS: "short-circuit reads",
    Op.REQUEST_SHORT_CIRCUIT_SHM: "short-circuit reads",
    Op.BLOCK_GROUP_CHECKSUM: "erasure coding",
    Op.CUSTOM: "custom operations",
}


class XceiverServer:
    """The port for blocks of one DataNode."""

    def __init__(
        self,
        store: Store,
        pool: PoolId,
        limits: TransferLimits | None = None,
        *,
        on_suspicion: Callable[[Block], None] = lambda _: None,
        on_damaged_source: Callable[[DamagedSource], None] = lambda _: None,
        moves: MoveRules | None = None,
        uuid: str = "",
        access: BlockAccess | None = None,
    ) -> None:
        """Serve a store; ``on_suspicion`` gets blocks that could not be read.

        ``on_damaged_source`` gets copies that came damaged from the DataNode that has the replica.
        ``uuid`` is this DataNode's own.  ``access`` asks for block tokens; without it none is asked
        for.
        """
        self._access = access or BlockAccess(pool, wanted=False)
        self._store, self._pool = store, pool
        self._on_suspicion, self._on_damaged_source = on_suspicion, on_damaged_source
        self.limits = limits or TransferLimits()
        self._budget = ByteBudget(self.limits.shared_bytes)
        self._checksumming = asyncio.Semaphore(_CHECKSUMS_AT_ONCE)
        self.moves = Moves(
            store, pool, self.limits, moves or MoveRules(), uuid, budget=self._budget,
            on_suspicion=on_suspicion, on_damaged_source=on_damaged_source, access=self._access,
        )  # fmt: skip
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._door: Door[asyncio.Task[Any]] = Door(
            "datanode", lambda task, _: task.cancel(), self._waits_since
        )
        self._origins: dict[asyncio.Task[Any], Origin] = {}
        self._at_work: set[asyncio.Task[Any]] = set()
        self._writing: dict[asyncio.Task[Any], Receiver] = {}

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port.  Raises ``OSError`` if the address cannot be had."""
        self._server = await listen_plainly(
            lambda: Connection(self._budget, self._connected), host, port, backlog=256
        )
        bound = int(self._server.sockets[0].getsockname()[1])
        if self._access.protections and is_privileged(bound) and not self._access.encrypts:
            log.warning("datanode.no_handshakes", port=bound, why="Hadoop has none below 1024")
            self._access.protections = ()
        return bound

    async def stop(self) -> None:
        """Close the port and end every transfer; what was received stays."""
        if self._server is None:
            return
        await stop_listening(self._server)
        running = list(self._tasks)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self._server.wait_closed()

    def evict_writers(self) -> int:
        """End the writes that come in, and return how many; their clients go on without us."""
        for task in self._writing:
            task.cancel()
        return len(self._writing)

    async def announce_restart(self) -> None:
        """Let clients that write know that this DataNode is back soon."""
        announced = (receiver.announce_restart() for receiver in self._writing.values())
        await asyncio.gather(*announced, return_exceptions=True)

    @property
    def active(self) -> int:
        return len(self._tasks)

    @property
    def shared_bytes(self) -> int:
        """How much memory connections have beyond what each may have."""
        return self._budget.held

    def _connected(self, connection: Connection) -> None:
        peer = Peer(connection)
        task = asyncio.get_running_loop().create_task(
            self._serve(peer), name=f"xceiver {peer.name}"
        )
        self._tasks.add(task)
        self._origins[task] = origin_of_ends(*peer.ends)

        def ended(_: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            self._door.leave(task)
            del self._origins[task]
            self._at_work.discard(task)
            peer.close()  # here, for a task that is cancelled before its first step has no finally

        task.add_done_callback(ended)
        if not self._door.take(task, self._seat(task, Standing.UNPROVEN)):
            task.cancel()

    def _seat(self, task: "asyncio.Task[Any]", standing: Standing) -> Seat:
        most = self.limits.max_connections
        waiting = min(_MOST_WAITING, max(1, most // 2))
        limits = DoorLimits(
            most=most, unproven=waiting, of_origin=max(1, most // 2),
            unproven_of_origin=min(_MOST_WAITING_OF_ORIGIN, max(1, waiting // 2)),
        )  # fmt: skip
        return limits.seat(self._origins[task], standing)

    def _waits_since(self, task: "asyncio.Task[Any]") -> float | None:
        return None if task in self._at_work else 0.0

    def _work(self) -> None:
        """Have this connection keep its place while its operation is carried out.

        Raises:
            PeerLost: others of its origin are served, and it must come again.
        """
        task = _own_task()
        self._at_work.add(task)
        if not self._door.take(task, self._seat(task, Standing.PROVEN)):
            raise PeerLost("others are being served")

    def _wait(self) -> None:
        """Let this connection give way until its next operation is admitted."""
        task = _own_task()
        self._at_work.discard(task)
        if not self._door.take(task, self._seat(task, Standing.UNPROVEN)):
            raise PeerLost("others wait already")

    async def _serve(self, peer: Peer) -> None:
        seconds = self.limits.operation_seconds
        try:
            if self._access.protections:
                await accept(peer, self._access, seconds=seconds)
            while True:
                head = await peer.read(OP_HEAD.size, seconds=seconds)
                op = decode_op(head)
                OPERATIONS.labels(op.name.lower()).inc()
                if not await self._carry_out(op, peer):
                    return
                self._wait()
                seconds = self.limits.keep_alive_seconds
        except PeerLost as gone:
            log.debug("datanode.peer_lost", peer=peer.name, why=str(gone))
            peer.abort()  # what it does not take would stay for ever
        except (DataNodeError, OSError) as problem:
            log.warning("datanode.operation_failed", peer=peer.name, why=str(problem))
        except Exception:
            log.exception("datanode.operation_broken", peer=peer.name)

    async def _carry_out(self, op: Op, peer: Peer) -> bool:
        """Carry out one operation; return whether another may follow on the connection."""
        asked = partial(peer.read_message, seconds=self.limits.operation_seconds)
        match op:
            case Op.WRITE_BLOCK:
                await self._write(await asked(pb.OpWriteBlockProto), peer)
                return False
            case Op.READ_BLOCK:
                return await self._read(await asked(pb.OpReadBlockProto), peer)
            case Op.BLOCK_CHECKSUM:
                return await self._checksum(await asked(pb.OpBlockChecksumProto), peer)
            case Op.TRANSFER_BLOCK:
                return await self._transfer(await asked(pb.OpTransferBlockProto), peer)
            case Op.COPY_BLOCK:
                copied = await asked(pb.OpCopyBlockProto)
                self._work()
                return await self._moved(self.moves.copy(copied, peer), peer)
            case Op.REPLACE_BLOCK:
                moved = await asked(pb.OpReplaceBlockProto)
                self._work()
                return await self._moved(self.moves.replace(moved, peer), peer, answers=True)
            case _:
                why = f"this DataNode does not do {_NOT_DONE[op]}"
                await self._answer(peer, pb.Status.ERROR_UNSUPPORTED, why)
                raise MalformedTransfer(why)

    async def _write(self, request: pb.OpWriteBlockProto, peer: Peer) -> None:
        rest = list(request.targetStorageIds)
        await self._admit(
            peer, request.header.baseHeader, Mode.WRITE,
            (request.storageType, *request.targetStorageTypes),
            (request.storageId, *rest) if rest else (),
            answers=bool(request.header.clientName),
        )  # fmt: skip
        try:
            plan = write_plan(request, self._pool)
        except MalformedTransfer as refusal:
            await self._answer(peer, pb.Status.ERROR_INVALID, str(refusal))
            raise
        pins = request.pinning and self.moves.rules.pinning
        receiver = Receiver(self._store, plan, peer, self.limits, self._access, pins=pins)
        task = _own_task()
        self._writing[task] = receiver
        try:
            await receiver.run()
        except ChecksumMismatch:
            if not plan.from_client and request.HasField("source"):
                length = request.header.baseHeader.block.numBytes
                self._on_damaged_source(DamagedSource(plan.block, length, request.source.id))
            raise
        finally:
            del self._writing[task]
            BYTES_WRITTEN.inc(receiver.bytes_taken)

    async def _admit(
        self, peer: Peer, header: pb.BaseHeaderProto, mode: Mode, types: Iterable[int] = (),
        storages: Iterable[str] = (), *, answers: bool = True,
    ) -> None:  # fmt: skip
        """Refuse a request without a block token for it, before anything else is looked at.

        Hadoop's client asks the NameNode for another token after ERROR_ACCESS_TOKEN.

        Raises:
            TokenRefused: the caller has its answer, if it waits for one.
        """
        try:
            self._access.check(header, mode, types, storages)
        except TokenRefused as refusal:
            if answers:
                await self._answer(peer, pb.Status.ERROR_ACCESS_TOKEN, str(refusal))
            raise
        self._work()

    async def _moved(
        self, work: Coroutine[Any, Any, None], peer: Peer, *, answers: bool = False
    ) -> bool:
        """Carry out a part of a move, the last of its connection; ``answers`` if it is done."""
        try:
            await work
        except MoveRefused as refusal:
            log.warning("datanode.move_refused", peer=peer.name, why=str(refusal))
            await self._answer(peer, refusal.status, str(refusal))
        else:
            if answers:
                await self._answer(peer, pb.Status.SUCCESS, "")
        return False

    async def _read(self, request: pb.OpReadBlockProto, peer: Peer) -> bool:
        await self._admit(peer, request.header.baseHeader, Mode.READ)
        limits = self.limits
        block = None
        try:
            block = checked_block(request.header.baseHeader.block, self._pool)
            stretch = await open_stretch(
                self._store, block, request.offset, request.len, with_sums=request.sendChecksums
            )
        except (DataNodeError, OSError) as refusal:
            await self._answer(peer, pb.Status.ERROR, str(refusal))
            log.warning("datanode.read_refused", peer=peer.name, why=str(refusal))
            if block is not None:
                self._on_suspicion(block)
            return True
        try:
            await peer.send_message(opening(stretch), seconds=limits.packet_seconds)
            try:
                await send_stretch(
                    peer, stretch, seconds=limits.packet_seconds, budget=self._budget
                )
            except OSError:
                self._on_suspicion(block)
                raise
            BYTES_READ.inc(stretch.end - stretch.start)
        finally:
            stretch.files.close()
        told = await peer.read_message(pb.ClientReadStatusProto, seconds=limits.packet_seconds)
        if told.status not in (pb.Status.SUCCESS, pb.Status.CHECKSUM_OK):
            log.warning("datanode.reader_complains", peer=peer.name, block=str(block))
            self._on_suspicion(block)
        return True

    async def _checksum(self, request: pb.OpBlockChecksumProto, peer: Peer) -> bool:
        await self._admit(peer, request.header, Mode.READ)
        named = request.header.block
        try:
            block = checked_block(named, self._pool)
            async with self._checksumming:
                found = await block_checksum(
                    self._store, block, named.numBytes, request.blockChecksumOptions
                )
        except (DataNodeError, OSError) as refusal:
            await self._answer(peer, pb.Status.ERROR, str(refusal))
            return True
        answer = pb.BlockOpResponseProto(status=pb.Status.SUCCESS, checksumResponse=found)
        await peer.send_message(answer, seconds=self.limits.packet_seconds)
        return True

    async def _transfer(self, request: pb.OpTransferBlockProto, peer: Peer) -> bool:
        await self._admit(
            peer, request.header.baseHeader, Mode.COPY, request.targetStorageTypes,
            request.targetStorageIds,
        )  # fmt: skip
        targets = Targets(
            list(request.targets), list(request.targetStorageTypes), list(request.targetStorageIds)
        )
        try:
            if len(targets.nodes) > MAX_TARGETS:
                raise MalformedTransfer(f"{len(targets.nodes)} targets; at most {MAX_TARGETS}")
            block = checked_block(request.header.baseHeader.block, self._pool)
            await push(
                self._store,
                self._pool,
                block,
                targets,
                self.limits,
                client=request.header.clientName,
                access=self._access,
            )
        except (DataNodeError, PeerLost, OSError) as problem:
            await self._answer(peer, pb.Status.ERROR, str(problem))
            log.warning("datanode.transfer_failed", peer=peer.name, why=str(problem))
            return True
        await self._answer(peer, pb.Status.SUCCESS, "")
        return True

    async def _answer(self, peer: Peer, status: pb.Status.ValueType, message: str) -> None:
        answer = pb.BlockOpResponseProto(status=status)
        if message:
            answer.message = message
        await peer.send_message(answer, seconds=self.limits.operation_seconds)


def _own_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task
