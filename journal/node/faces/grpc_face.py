"""The gRPC face of a JournalNode: convert, ask the owner, convert."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

import grpc
import grpc.aio

from journal.core import replies, requests
from journal.errors import BadRequest, JournalError
from journal.messages import REFUSAL_KEY, namespace_message
from journal.node.faces import grpc_codec
from journal.node.finalized_segments import peer_manifest
from journal.node.node import JournalNode
from journal.proto import journal_pb2 as pb
from journal.proto import journal_pb2_grpc
from journal.storage.incarnation import random_id

M = TypeVar("M")
Context = Any
"""grpc.aio.ServicerContext; grpc has no types."""

MAX_PIPELINED: Final = 64
"""Batches of one stream that may be under way; more wait in the transport."""


class JournalService(journal_pb2_grpc.JournalNodeServicer):
    """The service nnha.journal.JournalNode; a cancelled call is carried out all the same."""

    def __init__(self, node: JournalNode) -> None:
        self._node = node

    async def IsFormatted(
        self, request: pb.JournalRequest, _context: Context
    ) -> pb.IsFormattedReply:
        owner = self._node.find(request.journal_id)
        if owner is None or owner.state.namespace is None:
            return pb.IsFormattedReply(is_formatted=False)
        return pb.IsFormattedReply(
            is_formatted=True, namespace_info=namespace_message(owner.state.namespace)
        )

    async def Format(self, request: pb.FormatRequest, context: Context) -> pb.Done:
        async def work() -> pb.Done:
            asked = requests.Format(
                grpc_codec.namespace(request.namespace_info),
                force=request.force,
                founding=request.founding,
                incarnation=random_id(),
                seen_promised=grpc_codec.seen_promised(request),
            )
            await self._node.format(request.journal_id, request.nameservice_id, asked)
            return pb.Done()

        return await _answer(context, work())

    async def GetJournalState(
        self, request: pb.JournalRequest, context: Context
    ) -> pb.GetJournalStateReply:
        async def work() -> pb.GetJournalStateReply:
            reply = self._node.owner_of(request.journal_id).read(requests.GetJournalState())
            assert isinstance(reply, replies.JournalStateReply)
            return pb.GetJournalStateReply(
                last_promised_epoch=reply.promised, http_port=self._node.http_port
            )

        return await _answer(context, work())

    async def NewEpoch(self, request: pb.NewEpochRequest, context: Context) -> pb.NewEpochReply:
        async def work() -> pb.NewEpochReply:
            owner = self._node.owner_of(request.journal_id)
            reply = await owner.ask(grpc_codec.new_epoch(request))
            assert isinstance(reply, replies.Promised)
            return pb.NewEpochReply(
                last_segment_txid=reply.last_segment_first,
                incarnation=owner.state.incarnation,
                previous_writer_heard_micros_ago=int(owner.writer_heard_seconds_ago() * 1e6),
                previous_read_lease_micros=owner.state.read_lease_micros,
            )

        return await _answer(context, work())

    async def StartLogSegment(
        self, request: pb.StartLogSegmentRequest, context: Context
    ) -> pb.Done:
        async def work() -> pb.Done:
            await self._node.owner_of(request.info.journal_id).ask(
                grpc_codec.start_segment(request)
            )
            return pb.Done()

        return await _answer(context, work())

    async def FinalizeLogSegment(
        self, request: pb.FinalizeLogSegmentRequest, context: Context
    ) -> pb.Done:
        async def work() -> pb.Done:
            await self._node.owner_of(request.info.journal_id).ask(grpc_codec.finalize(request))
            return pb.Done()

        return await _answer(context, work())

    async def PrepareRecovery(
        self, request: pb.PrepareRecoveryRequest, context: Context
    ) -> pb.PrepareRecoveryReply:
        async def work() -> pb.PrepareRecoveryReply:
            reply = await self._node.owner_of(request.info.journal_id).ask(
                grpc_codec.prepare(request)
            )
            assert isinstance(reply, replies.Prepared)
            return grpc_codec.prepared(reply, self._node.http_port)

        return await _answer(context, work())

    async def PeekRecovery(
        self, request: pb.PeekRecoveryRequest, context: Context
    ) -> pb.PrepareRecoveryReply:
        async def work() -> pb.PrepareRecoveryReply:
            first = grpc_codec.txid(request.segment_first_txid) or None
            reply = await self._node.owner_of(request.journal_id).ask(requests.PeekRecovery(first))
            assert isinstance(reply, replies.Prepared)
            return grpc_codec.prepared(reply, self._node.http_port)

        return await _answer(context, work())

    async def AcceptRecovery(self, request: pb.AcceptRecoveryRequest, context: Context) -> pb.Done:
        async def work() -> pb.Done:
            owner = self._node.owner_of(request.info.journal_id)
            await self._node.accept(owner, grpc_codec.accept(request), tuple(request.source_urls))
            return pb.Done()

        return await _answer(context, work())

    async def Admit(self, request: pb.AdmitRequest, context: Context) -> pb.Done:
        async def work() -> pb.Done:
            await self._node.owner_of(request.info.journal_id).ask(grpc_codec.admit(request))
            return pb.Done()

        return await _answer(context, work())

    async def PurgeLogs(self, request: pb.PurgeLogsRequest, context: Context) -> pb.Done:
        async def work() -> pb.Done:
            await self._node.owner_of(request.info.journal_id).ask(grpc_codec.purge(request))
            return pb.Done()

        return await _answer(context, work())

    async def ResumeSegment(
        self, request: pb.ResumeSegmentRequest, context: Context
    ) -> pb.ResumeSegmentReply:
        async def work() -> pb.ResumeSegmentReply:
            owner = self._node.owner_of(request.info.journal_id)
            reply = await owner.ask(grpc_codec.resume(request))
            assert isinstance(reply, replies.Resumed)
            return grpc_codec.resumed(reply.next_txid, owner.state)

        return await _answer(context, work())

    async def CatchUp(self, request: pb.CatchUpRequest, context: Context) -> pb.ResumeSegmentReply:
        async def work() -> pb.ResumeSegmentReply:
            owner = self._node.owner_of(request.info.journal_id)
            urls = tuple(request.source_urls)
            next_txid = await self._node.catch_up(owner, grpc_codec.catch_up(request), urls)
            return grpc_codec.resumed(next_txid, owner.state)

        return await _answer(context, work())

    async def GetEditLogManifest(
        self, request: pb.GetEditLogManifestRequest, context: Context
    ) -> pb.GetEditLogManifestReply:
        async def work() -> pb.GetEditLogManifestReply:
            asked = requests.GetEditLogManifest(
                grpc_codec.txid(request.since_txid), request.in_progress_ok
            )
            reply = self._node.owner_of(request.journal_id).read(asked)
            assert isinstance(reply, replies.Manifest)
            return grpc_codec.manifest(reply, self._node.http_port)

        return await _answer(context, work())

    async def GetJournaledEdits(
        self, request: pb.GetJournaledEditsRequest, context: Context
    ) -> pb.GetJournaledEditsReply:
        async def work() -> pb.GetJournaledEditsReply:
            owner = self._node.owner_of(request.journal_id)
            found = owner.journaled_edits(grpc_codec.txid(request.since_txid), request.max_txns)
            return grpc_codec.journaled_edits(found, owner.state.committed)

        return await _answer(context, work())

    async def GetPeerManifest(
        self, request: pb.GetEditLogManifestRequest, context: Context
    ) -> pb.GetEditLogManifestReply:
        async def work() -> pb.GetEditLogManifestReply:
            since = grpc_codec.txid(request.since_txid)
            reply = await peer_manifest(self._node.owner_of(request.journal_id), since)
            return grpc_codec.manifest(reply, self._node.http_port)

        return await _answer(context, work())

    async def PreUpgrade(self, request: pb.WriterRequest, context: Context) -> pb.Done:
        return await _answer(context, self._done(request.info, grpc_codec.pre_upgrade, request))

    async def Upgrade(self, request: pb.UpgradeRequest, context: Context) -> pb.Done:
        return await _answer(context, self._done(request.info, grpc_codec.upgrade, request))

    async def FinalizeUpgrade(self, request: pb.WriterRequest, context: Context) -> pb.Done:
        return await _answer(
            context, self._done(request.info, grpc_codec.finalize_upgrade, request)
        )

    async def RollBack(self, request: pb.WriterRequest, context: Context) -> pb.Done:
        return await _answer(context, self._done(request.info, grpc_codec.roll_back, request))

    async def DiscardSegments(
        self, request: pb.DiscardSegmentsRequest, context: Context
    ) -> pb.Done:
        return await _answer(context, self._done(request.info, grpc_codec.discard, request))

    async def CanRollBack(
        self, request: pb.CanRollBackRequest, context: Context
    ) -> pb.CanRollBackReply:
        async def work() -> pb.CanRollBackReply:
            reply = await self._node.owner_of(request.journal_id).ask(
                grpc_codec.can_roll_back(request)
            )
            assert isinstance(reply, replies.RollBackAnswer)
            return pb.CanRollBackReply(can_roll_back=reply.possible)

        return await _answer(context, work())

    async def GetJournalCTime(
        self, request: pb.JournalRequest, context: Context
    ) -> pb.GetJournalCTimeReply:
        async def work() -> pb.GetJournalCTimeReply:
            reply = await self._node.owner_of(request.journal_id).ask(requests.GetJournalCTime())
            assert isinstance(reply, replies.CTime)
            return pb.GetJournalCTimeReply(ctime=reply.value)

        return await _answer(context, work())

    async def _done(
        self, info: pb.RequestInfo, convert: Callable[[M], requests.Request], message: M
    ) -> pb.Done:
        await self._node.owner_of(info.journal_id).ask(convert(message))
        return pb.Done()

    async def GetStatus(self, request: pb.JournalRequest, context: Context) -> pb.JournalStatus:
        async def work() -> pb.JournalStatus:
            owner = self._node.owner_of(request.journal_id)
            return grpc_codec.status(
                owner.state,
                http_port=self._node.http_port,
                disk=self._node.disk_bytes(owner.journal_id),
                failed_because=owner.failed_because,
                disk_warning=self._node.disk_warning(owner.journal_id),
            )

        return await _answer(context, work())

    async def Write(
        self, stream: AsyncIterable[pb.WriteRequest], _context: Context
    ) -> AsyncIterator[pb.WriteReply]:
        """Answer in order.  While a batch waits for its sync, read ahead, so that more share it."""
        messages = aiter(stream)
        coming: asyncio.Task[pb.WriteRequest | None] | None = None
        pending: deque[_Pending] = deque()
        message: pb.WriteRequest | None
        try:
            while True:
                if pending and pending[0].answer.done():
                    yield pending.popleft().reply()
                    continue
                if not pending:
                    # The usual case: what came is durable by the time that we could look ahead.
                    message = await (anext(messages, None) if coming is None else coming)
                else:
                    if coming is None and len(pending) < MAX_PIPELINED:
                        coming = asyncio.create_task(_next(messages), name="write stream")
                    waiting: list[asyncio.Future[Any]] = [pending[0].answer]
                    waiting += [] if coming is None else [coming]
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    if coming is None or not coming.done():
                        continue
                    message = coming.result()
                coming = None
                if message is None:
                    break
                pending.append(_Pending(message.info.serial, self._submit(message)))
            for each in pending:
                await asyncio.wait([each.answer])
                yield each.reply()
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def write_one(self, message: pb.WriteRequest) -> pb.WriteReply:
        """One batch or heartbeat of a transport without streams.

        Its caller is cancelled only when the node stops, so it need not be shielded: each step of
        the event loop is time in which a commit waits.
        """
        serial = message.info.serial
        try:
            await self._begin(message)
        except JournalError as refusal:
            return pb.WriteReply(serial=serial, refusal=grpc_codec.refusal(refusal)[1])
        return pb.WriteReply(serial=serial)

    def _submit(self, message: pb.WriteRequest) -> "asyncio.Future[replies.Reply]":
        try:
            return self._begin(message)
        except JournalError as refusal:
            refused: asyncio.Future[replies.Reply] = asyncio.get_running_loop().create_future()
            refused.set_exception(refusal)
            return refused

    def _begin(self, message: pb.WriteRequest) -> "asyncio.Future[replies.Reply]":
        request = grpc_codec.write(message)
        limit = self._node.settings.max_message_bytes
        if isinstance(request, requests.Journal) and len(request.records) > limit:
            # Not the transport's no, which no client can tell from that of a node that is busy.
            raise BadRequest(
                f"a batch of {len(request.records)} bytes; this node takes at most {limit}"
            )
        return self._node.owner_of(message.info.journal_id).submit(request)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A message of a stream whose reply is due."""

    serial: int
    answer: "asyncio.Future[replies.Reply]"

    def reply(self) -> pb.WriteReply:
        """What the writer is told; the answer is there."""
        try:
            self.answer.result()
        except JournalError as refusal:
            return pb.WriteReply(serial=self.serial, refusal=grpc_codec.refusal(refusal)[1])
        return pb.WriteReply(serial=self.serial)


async def _next(messages: AsyncIterator[pb.WriteRequest]) -> pb.WriteRequest | None:
    return await anext(messages, None)


async def _answer(context: Context, work: Awaitable[M]) -> M:
    """Await the work; a JournalError ends the call with its status and the typed refusal."""
    try:
        return await work
    except JournalError as error:
        await _refuse(context, error)


async def _refuse(context: Context, error: JournalError) -> NoReturn:
    code, refusal = grpc_codec.refusal(error)
    await context.abort(
        code,
        refusal.message,
        trailing_metadata=((REFUSAL_KEY, refusal.SerializeToString()),),
    )
    raise AssertionError("abort raises")


def build_server(node: JournalNode) -> Any:  # noqa: ANN401 - grpc has no types
    """A grpc.aio server for a node, not yet bound to an address."""
    limit = node.settings.max_frame_bytes
    server = grpc.aio.server(
        maximum_concurrent_rpcs=node.settings.max_concurrent_calls,
        options=(
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", limit),
            # Two nodes on one port would share the writers between them.
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
        ),
    )
    journal_pb2_grpc.add_JournalNodeServicer_to_server(  # type: ignore[no-untyped-call]
        JournalService(node), server
    )
    return server
