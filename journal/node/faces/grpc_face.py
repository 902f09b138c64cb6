"""Serves a JournalNode's journals over gRPC: the calls of ``calls``, and the stream of batches."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, Final, NoReturn

from google.protobuf.message import Message

from ha.record import dataclass
from journal.core import replies, requests
from journal.errors import BadRequest, JournalError
from journal.node.faces import grpc_codec
from journal.node.faces.calls import CALLS
from journal.node.faces.grpc_access import GrpcAccess
from journal.node.faces.grpc_guard import guarded_server
from journal.node.faces.grpc_watch import MOST_ACCEPTED
from journal.node.node import JournalNode
from journal.proto import journal_pb2 as pb
from journal.proto import journal_pb2_grpc
from journal.refusals import REFUSAL_KEY, kind_of, refusal

Context = Any
"""grpc.aio.ServicerContext; grpc has no types."""

MAX_STREAMS: Final = 32
"""Limit of the concurrent calls of a connection; a writer needs two, one of them its stream."""
HANDSHAKE_MILLIS: Final = 10_000
"""The longest time to set up TLS and HTTP/2; gRPC's default is two minutes."""
MAX_METADATA_BYTES: Final = 8 * 1024
"""The limit for one call; gRPC's defaults are a soft limit of 8 KiB and a hard one of 16 KiB."""
MAX_PIPELINED: Final = 64
"""Limit of the unanswered batches of a stream; later ones are not read before an answer."""


class JournalService:
    """The service nnha.journal.JournalNode; a call is carried out even if it is cancelled."""

    def __init__(self, node: JournalNode) -> None:
        self._node = node

    def __getattr__(self, method: str) -> Callable[[Any, Context], Awaitable[Message]]:
        """Return the handler of a unary call; gRPC asks for each when the service is added."""
        try:
            handle = CALLS[method].handle
        except KeyError:
            raise AttributeError(method) from None

        async def answer(request: Message, context: Context) -> Message:
            try:
                return await handle(self._node, request)
            except JournalError as error:
                await _refuse(context, error)

        return answer

    async def Write(
        self, stream: AsyncIterable[pb.WriteRequest], _context: Context
    ) -> AsyncIterator[pb.WriteReply]:
        """Answer the batches in order; read ahead during a sync, so that batches share the next."""
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
                    # The usual case: each batch is durable before the next one has come.
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
        """Serve one batch or heartbeat that came over Hadoop RPC, which has no streams.

        It is not shielded, which would cost a step of the event loop for each batch: its caller is
        cancelled only when the node stops.
        """
        serial = message.info.serial
        try:
            await self._begin(message)
        except JournalError as error:
            return pb.WriteReply(serial=serial, refusal=refusal(error))
        return pb.WriteReply(serial=serial)

    def _submit(self, message: pb.WriteRequest) -> "asyncio.Future[replies.Reply]":
        try:
            return self._begin(message)
        except JournalError as error:
            refused: asyncio.Future[replies.Reply] = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            return refused

    def _begin(self, message: pb.WriteRequest) -> "asyncio.Future[replies.Reply]":
        request = grpc_codec.write(message)
        limit = self._node.settings.max_message_bytes
        if isinstance(request, requests.Journal) and len(request.records) > limit:
            # gRPC's own refusal has the status of a busy node's, so the node must refuse.
            raise BadRequest(
                f"a batch of {len(request.records)} bytes; this node takes at most {limit}"
            )
        return self._node.owner_of(message.info.journal_id).submit(request)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A message of a stream that is not answered yet."""

    serial: int
    answer: "asyncio.Future[replies.Reply]"

    def reply(self) -> pb.WriteReply:
        """Return the reply to the writer; ``answer`` must be done."""
        try:
            self.answer.result()
        except JournalError as error:
            return pb.WriteReply(serial=self.serial, refusal=refusal(error))
        return pb.WriteReply(serial=self.serial)


async def _next(messages: AsyncIterator[pb.WriteRequest]) -> pb.WriteRequest | None:
    return await anext(messages, None)


async def _refuse(context: Context, error: JournalError) -> NoReturn:
    said = refusal(error)
    await context.abort(
        kind_of(error).status,
        said.message,
        trailing_metadata=((REFUSAL_KEY, said.SerializeToString()),),
    )
    raise AssertionError("abort raises")


def build_server(node: JournalNode, access: GrpcAccess | None = None) -> Any:  # noqa: ANN401 - grpc has no types
    """Make a grpc.aio server for a node, which is not bound to an address yet."""
    limit = node.settings.max_frame_bytes
    server = guarded_server(
        access,
        node.settings,
        (
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", limit),
            # With it two nodes could bind one port, and each would get some of the connections.
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_permit_without_calls", 1),
            # Not ``min_recv_ping_interval...``, the name in C: gRPC ignores that without an error.
            ("grpc.http2.min_ping_interval_without_data_ms", node.settings.min_ping_millis),
            ("grpc.max_concurrent_streams", MAX_STREAMS),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MILLIS),
            ("grpc.max_allowed_incoming_connections", MOST_ACCEPTED),
            ("grpc.max_metadata_size", MAX_METADATA_BYTES),
            ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
            # Else the window grows with the network's speed, and with it the bytes of a message
            # that are buffered before a read.
            ("grpc.http2.bdp_probe", 0),
        ),
    )
    journal_pb2_grpc.add_JournalNodeServicer_to_server(  # type: ignore[no-untyped-call]
        JournalService(node), server
    )
    return server
