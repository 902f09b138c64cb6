"""The socket of a client's connection: bytes to answers, and who waits for which."""

import asyncio
from typing import Final, cast

from ha.rpc import errors, packets
from ha.rpc.frames import FrameSplitter
from ha.rpc.packets import SASL_CALL_ID, CallAnswer
from ha.rpc.proto.rpc_header_pb2 import RpcSaslProto
from ha.security.sasl.mechanism import Layer, SaslFailure

MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
MAX_CALLS_IN_FLIGHT: Final = 1024


class Wire(asyncio.Protocol):
    """The connection's socket, and who waits for which answer."""

    def __init__(self, client_id: bytes) -> None:
        self.client_id = client_id
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[Exception] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._splitter = FrameSplitter()
        self._pending: dict[int, asyncio.Future[CallAnswer]] = {}
        self._slots = asyncio.Semaphore(MAX_CALLS_IN_FLIGHT)
        self._writable = asyncio.Event()
        self._writable.set()
        self._outgoing: list[bytes] = []
        self._inner = FrameSplitter()
        self.layer: Layer | None = None
        """What protects all that is sent and received from now on."""
        self.negotiated = False
        """Whether we have proved our name; the preamble is sent."""

    async def negotiate(self, message: RpcSaslProto) -> RpcSaslProto:
        """Send a part of a negotiation; return the server's.

        Raises:
            RemoteFault, ConnectionLost, MalformedFrame: there is none.
        """
        answer = await self.begin(SASL_CALL_ID, packets.encode_sasl_request(message), "SASL")
        if answer.status is not packets.Status.SUCCESS:
            raise errors.RemoteFault(answer.java_class, answer.message, fatal=True)
        return packets.parse(RpcSaslProto, answer.body)

    async def exchange(
        self, call_id: int, frame: bytes, method: str, deadline_seconds: float
    ) -> CallAnswer:
        """Send a call and wait for its answer, all within the deadline."""
        deadline = self._loop.time() + deadline_seconds
        await self._take_slot(method, deadline)
        timer: asyncio.TimerHandle | None = None
        try:
            answer = self.begin(call_id, frame, method)
            timer = self._loop.call_at(deadline, _expire, answer, method, deadline_seconds)
            return await answer
        finally:
            if timer is not None:
                timer.cancel()
            self._pending.pop(call_id, None)
            self._slots.release()

    def begin(self, call_id: int, frame: bytes, method: str) -> asyncio.Future[CallAnswer]:
        """Send a call; its answer when it comes."""
        if self.gone.done():
            raise errors.ConnectionLost(f"{method} was not sent: {self.gone.result()}")
        answer: asyncio.Future[CallAnswer] = self._loop.create_future()
        self._pending[call_id] = answer
        self.send(frame)
        return answer

    def send(self, data: bytes) -> None:
        """Send at once, or with many calls under way, all of one turn in one write."""
        self._outgoing.append(data)
        if len(self._pending) <= 1:
            self._flush()
        elif len(self._outgoing) == 1:
            self._loop.call_soon(self._flush)

    def drop(self, reason: Exception) -> None:
        """End the connection with this error, for all pending calls, too."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        if self.gone.done():
            return
        self.gone.set_result(reason)
        self._writable.set()
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(_loss(reason))

    # asyncio's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not by isinstance: uvloop's transports are of no class of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._splitter.feed(data)
        try:
            while not self.gone.done():
                frame = self._next_frame()
                if frame is None:
                    return
                self._accept(packets.decode_answer(frame))
        except errors.MalformedFrame as failure:
            self.drop(failure)
        except SaslFailure as failure:
            self.drop(errors.MalformedFrame(f"a protected answer was altered: {failure}"))

    def _next_frame(self) -> bytes | None:
        if self.layer is None:
            return self._splitter.take_frame(MAX_FRAME_BYTES)
        while (frame := self._inner.take_frame(MAX_FRAME_BYTES)) is None:
            outer = self._splitter.take_frame(MAX_FRAME_BYTES)
            if outer is None:
                return None
            piece = packets.decode_answer(outer)
            if piece.call_id != SASL_CALL_ID or piece.status is not packets.Status.SUCCESS:
                raise errors.MalformedFrame("an answer that is not wrapped, where all must be")
            said = packets.parse(RpcSaslProto, piece.body)
            if said.state != RpcSaslProto.WRAP:
                raise errors.MalformedFrame("a negotiation on a connection that wraps")
            self._inner.feed(self.layer.unwrap(said.token))
        return frame

    def eof_received(self) -> bool:
        self.drop(errors.ConnectionLost("closed by the peer"))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop(
            errors.ConnectionLost(f"connection broken: {exc}" if exc else "closed by the peer")
        )

    def pause_writing(self) -> None:
        """Hold calls back: the server does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let calls be sent again."""
        self._writable.set()

    # Our own.

    async def _take_slot(self, method: str, deadline: float) -> None:
        if self._writable.is_set() and not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._writable.wait()
                await self._slots.acquire()
        except TimeoutError as failure:
            raise errors.DeadlineExceeded(
                f"{method} was not sent: the server takes no more"
            ) from failure

    def _accept(self, answer: CallAnswer) -> None:
        if answer.client_id and answer.client_id != self.client_id:
            raise errors.MalformedFrame("an answer to another client")
        waiting = self._pending.pop(answer.call_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)  # else it comes after its deadline, and no caller waits
        if answer.status is packets.Status.FATAL:
            self.drop(errors.RemoteFault(answer.java_class, answer.message, fatal=True))

    def _flush(self) -> None:
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        if self._transport is None or not data:
            return
        if self.layer is not None:
            try:
                data = packets.encode_wrapped(data, self.layer, packets.SASL_HEADER)
            except SaslFailure as failure:
                self.drop(errors.ConnectionLost(str(failure)))
                return
        self._transport.write(data)


def _expire(answer: asyncio.Future[CallAnswer], method: str, seconds: float) -> None:
    if not answer.done():
        answer.set_exception(errors.DeadlineExceeded(f"no answer to {method} within {seconds} s"))


def _loss(reason: Exception) -> Exception:
    # One exception for each who waits: a shared one would collect everybody's traceback.
    match reason:
        case errors.RemoteFault():
            return errors.RemoteFault(reason.java_class, reason.message, fatal=True)
        case errors.MalformedFrame():
            return errors.MalformedFrame(str(reason))
        case _:
            return errors.ConnectionLost(str(reason))
