"""A writer's end of a write lane: docs/reference/quorum-journal.md#write-lanes."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from ha.security.caller import Role
from ha.security.own_tls import context_for, falls_back
from journal import lane as journal_lane
from journal.errors import JournalError, Unavailable
from journal.links.countdown import STEPS, Countdown
from journal.links.link import WriterMessage
from journal.proto import journal_pb2 as pb
from journal.refusals import error_of

CONNECT_SECONDS: Final = 1.0
_JOINED_BYTES: Final = 64 * 1024
"""Longer edits are not copied to stand behind their header."""

Done = Callable[[JournalError | None], None]
"""Called once with the end of a message: None if it is durable, else the error."""


class Transport(Protocol):
    """asyncio.Transport as far as it is used."""

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None:
        """Close at once."""


class Lane(asyncio.Protocol):
    """One connection with one message under way.

    A message is sent in the caller's turn of the event loop, and its answer is reported in the turn
    that reads it: no task, no future and no timer per message.  One countdown watches them all.
    """

    def __init__(self, deadline_seconds: float) -> None:
        self._transport: Transport | None = None
        self._received = b""
        self._serial = 0
        self._done: Done | None = None
        self._sent_step = 0
        self._countdown = Countdown(deadline_seconds, self._stepped)
        loop = asyncio.get_running_loop()
        self._welcome: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()

    @classmethod
    async def open(
        cls, host: str, port: int, hello: journal_lane.Hello, deadline_seconds: float
    ) -> "Lane":
        """Connect, and be let in.

        Raises:
            Unavailable: not within ``CONNECT_SECONDS``, or not at all.
        """
        lane: Lane | None = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                lane = await cls._connect(host, port, deadline_seconds)
                lane.write(journal_lane.hello_bytes(hello))
                await lane._welcome
        except TimeoutError:
            raise Unavailable(f"not within {CONNECT_SECONDS:g} s") from None
        except OSError as failure:
            raise Unavailable(failure.strerror or repr(failure)) from None
        else:
            ready, lane = lane, None
            return ready
        finally:
            if lane is not None:
                lane.drop()

    @classmethod
    async def _connect(cls, host: str, port: int, deadline_seconds: float) -> "Lane":
        secured = context_for(Role.JOURNALNODE)
        try:
            return await cls._make(host, port, deadline_seconds, secured)
        except OSError as failure:
            if not falls_back(failure):
                raise
        return await cls._make(host, port, deadline_seconds, None)

    @classmethod
    async def _make(
        cls, host: str, port: int, deadline_seconds: float, secured: ssl.SSLContext | None
    ) -> "Lane":
        lane = cls(deadline_seconds)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: lane, host, port, ssl=secured)
        return lane

    # ---- the channel's side ----

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._transport is None

    @property
    def idle(self) -> bool:
        """Whether a message may be sent."""
        return self._transport is not None and self._done is None

    async def wait_closed(self) -> None:
        """Return once the socket of a lane that has ended is closed."""
        await asyncio.shield(self._closed)

    def send(self, message: WriterMessage, done: Done) -> None:
        """Send a message while the lane is idle."""
        assert self.idle, "one message is under way"
        records = message.records
        committed = journal_lane.NONE if message.committed is None else message.committed
        head = journal_lane.HEADER.pack(
            journal_lane.LEAST_LENGTH + len(records),
            message.serial,
            message.epoch,
            committed,
            message.read_lease_micros,
            message.segment_first,
            message.first,
            message.count,
        )
        self._serial, self._done = message.serial, done
        self._sent_step = self._countdown.step
        self._countdown.start()
        if len(records) > _JOINED_BYTES:
            self.write(head)
            self.write(records)
        else:
            self.write(head + records)

    async def exchange(self, message: WriterMessage) -> None:
        """Send a message and wait for its answer.

        Raises:
            Rejected, StorageFailed, InvariantBroken: the node's no.
            Unavailable: no answer; whether the node acted is unknown.
        """
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: JournalError | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(None)
            else:
                answer.set_exception(error)

        self.send(message, done)
        await answer

    def drop(self) -> None:
        """End the lane; a pending message gets no answer any more."""
        self._done = None
        self._close()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    # ---- the loop's side ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment] # it can write

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        if not self._welcome.done():
            if received[:1] != journal_lane.WELCOME:
                self._end("it answered nonsense")
                return
            self._welcome.set_result(None)
            received = received[1:]
        while len(received) >= journal_lane.ANSWER_BYTES:
            length, serial = journal_lane.ANSWER.unpack_from(received)
            end = journal_lane.LENGTH_BYTES + length
            if (
                not journal_lane.SERIAL_BYTES <= length <= journal_lane.MOST_ANSWER_BYTES
                or self._done is None
            ):
                self._end("its answers make no sense")
                return
            if len(received) < end:
                break
            if serial != self._serial:
                self._end(f"it answers message {serial}, and {self._serial} is under way")
                return
            said, received = received[journal_lane.ANSWER_BYTES : end], received[end:]
            self._received = received
            self._answer(said)
        self._received = received

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("the lane has ended" + (f": {exc}" if exc else ""))
        if not self._closed.done():
            self._closed.set_result(None)

    def _answer(self, said: bytes) -> None:
        error: JournalError | None = None
        if said:
            try:
                error = error_of(pb.Refusal.FromString(said))
            except DecodeError as failure:
                error = Unavailable(f"a refusal that cannot be read: {failure}")
        done, self._done = self._done, None
        if done is not None:
            done(error)

    def _end(self, why: str) -> None:
        """Close the lane and report ``why`` to what waits.

        Whether the node acts on the message that is under way is unknown.
        """
        self._close()
        if not self._welcome.done():
            self._welcome.set_exception(Unavailable(why))
            self._welcome.exception()  # the caller of open() may have given up
        done, self._done = self._done, None
        if done is not None:
            done(Unavailable(why))

    def _close(self) -> None:
        transport, self._transport = self._transport, None
        self._countdown.stop()
        if transport is not None:
            transport.abort()

    def _stepped(self) -> bool:
        if self._done is None:
            return False
        if self._countdown.step - self._sent_step > STEPS:
            self._end(f"no answer within {self._countdown.seconds:g} s")
            return False
        return True
