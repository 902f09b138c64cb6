"""One accepted connection: feeds its session, sends answers, keeps its limits."""

import asyncio
from collections.abc import Coroutine
from typing import Final, assert_never, cast

import structlog

from ha.rpc.call_header import Asked
from ha.rpc.connection_owner import Owner
from ha.rpc.limits import RpcLimits
from ha.rpc.metrics import METERS, Meters
from ha.rpc.packets import encode_wrapped
from ha.rpc.reading_thread import ReadingThread, Since
from ha.rpc.sasl.negotiation import Proved
from ha.rpc.session import Event, Greeted, Hangup, Phase, Send, ServerSession
from ha.security.caller import Caller
from ha.security.sasl import steps
from ha.security.sasl.mechanism import Layer, SaslFailure
from ha.security.sasl.way import Step

log = structlog.get_logger()

_STALLED: Final = "stalled_write_seconds"
_READ_BYTES: Final = 32 * 1024
"""At once from one socket: what a thousand peers send in one turn must not exceed the budget."""


class ServerConnection(asyncio.Protocol):
    """Glue between a socket and a ``ServerSession``.

    Reading stops while as many calls are unanswered, or as many bytes unsent, as the limits
    allow; what the peer sends then waits in its own socket.
    """

    def __init__(self, limits: RpcLimits, owner: Owner["ServerConnection"]) -> None:
        self.who = Greeted("", None, "")
        self.host = ""
        self.caller: Caller | None = None
        self._naming: asyncio.Task[None] | None = None
        self._limits = limits
        self._owner = owner
        self._session = ServerSession(limits)
        self._layer: Layer | None = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._unanswered = 0
        self._reading = True
        self._pumping = False
        self._starved = False
        self._thread: ReadingThread | None = None
        self._given_back: Event | None = None
        self._since = Since(self._loop.time(), self._loop.time())

    @property
    def user(self) -> str:
        """The user that the peer names."""
        return self.who.user

    @property
    def protocol(self) -> str:
        """What the peer says it is here for."""
        return self.who.protocol

    @property
    def privileged(self) -> bool:
        """Whether a part of what there is is kept for it."""
        return self._owner.is_privileged(self)

    @property
    def idle(self) -> bool:
        """Nothing is owed to the peer."""
        thread = self._thread
        return self._unanswered == 0 if thread is None else thread.waits

    @property
    def born_at(self) -> float:
        """When it was accepted."""
        return self._since.born

    @property
    def heard_at(self) -> float:
        """When the peer said something last, or was answered."""
        return self._since.heard

    # asyncio's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not by isinstance: uvloop's transports are of no class of asyncio's.
        transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.host = peer[0] if peer else ""
        self.caller = self._owner.access.caller(transport)
        if not self._owner.admit(self):
            transport.abort()
            return
        transport.set_write_buffer_limits(high=self._limits.outgoing_pause_bytes)
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES
        self._transport = transport
        if (control := self._owner.access.control) is not None and control.ways:
            simple = control.takes_simple or (self.caller is not None and self.caller.proven)
            self._session = ServerSession(self._limits, control.ways, simple=simple)
        if self.caller is not None and self._owner.access.lacks_name(self.caller):
            self._identify(self._name(self.caller))

    def _identify(self, work: Coroutine[None, None, None]) -> None:
        self._naming = self._loop.create_task(self._identified(work), name="identify a caller")

    async def _identified(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
            self._naming = None
            self.pump()
        except Exception:  # a caller of whom something is not known must not go on
            log.exception("rpc.not_identified", **self._peer_fields())
            self.abort("not_identified")

    async def _name(self, caller: Caller) -> None:
        self.caller = await self._owner.access.named(caller)

    def data_received(self, data: bytes) -> None:
        self._since.heard = self._loop.time()
        if self._since.frame is None:
            self._since.frame = self._since.heard
        self._session.receive(data)
        self.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the closed connection.  Handlers go on: half a transition is of no use."""
        if self._thread is not None:
            self._thread.shut()
        if self._transport is not None:
            self._transport = None
            self._owner.forget(self)

    def pause_writing(self) -> None:
        """Note since when the peer does not read its answers."""
        self._since.stalled = self._loop.time()

    def resume_writing(self) -> None:
        """Go on: the transport takes bytes again."""
        self._since.stalled = None
        self.pump()

    # What the owner asks of us.

    def pump(self) -> None:
        """Turn received bytes into calls, as far as the limits go."""
        if self._thread is None:
            self._pump()

    def begin_thread(self, asked: Asked) -> bool:
        """Have a call, and what follows it, carried out by a thread that reads this connection.

        False where that cannot be: something else is owed to the peer, or there is no room.
        """
        transport = self._transport
        if transport is None or self._unanswered != 1 or self._outgoing:
            return False
        shared = transport.get_extra_info("socket")
        if transport.get_extra_info("ssl_object") is not None or self._layer is not None:
            return False  # a thread would read what only the transport can decipher
        if shared is None or transport.get_write_buffer_size():
            return False
        if not self._owner.may_begin_thread(self):
            return False
        meters = METERS.open_thread_meters()
        self._thread = ReadingThread(
            self._session,
            self._since,
            lambda asked: self._owner.carry_out_in_thread(self, asked, meters),
            lambda event: self._loop.call_soon_threadsafe(self._thread_over, meters, event),
        )
        self._unanswered, self._starved = 0, False
        self._set_reading(wanted=False)
        try:
            self._thread.begin(shared, asked)
        except (OSError, RuntimeError) as full:
            log.warning("rpc.thread_not_begun", **self._peer_fields(), because=str(full))
            self._unanswered = 1
            self._leave_thread(meters)
            return False
        return True

    def recall(self) -> None:
        """Have the thread that reads this connection end after its call."""
        if self._thread is not None:
            self._thread.recall()

    def answer(self, data: bytes) -> None:
        """Send one call's answer."""
        self._unanswered -= 1
        self._since.heard = self._loop.time()  # a peer that had to wait for us was not idle
        self._send(data)
        if not self._reading:
            self._loop.call_soon(self.pump)

    def answer_and_hang_up(self, data: bytes, reason: str) -> None:
        """Send one call's answer and close."""
        self._unanswered -= 1
        self._hang_up(data, reason)

    def abort(self, cause: str) -> None:
        """Close now; nothing unsent is sent."""
        if self._transport is not None:
            log.info("rpc.connection.aborted", **self._peer_fields(), cause=cause)
            self._transport.abort()

    def give_way(self) -> None:
        """Close now, and leave the seat to another one."""
        self.abort("gave_way")
        self.connection_lost(None)

    def overdue(self, now: float) -> str | None:
        """Return the name of the limit whose wait the peer has exceeded."""
        limits, since, thread = self._limits, self._since, self._thread
        reading = self._reading if thread is None else thread.waits
        match self._session.phase:
            case Phase.PREAMBLE | Phase.CONTEXT:
                return _late("handshake_seconds", since.born, now, limits.handshake_seconds)
            case Phase.OVER:
                return _late(_STALLED, since.heard, now, limits.stalled_write_seconds)
            case Phase.CALLS if since.stalled is not None:
                return _late(_STALLED, since.stalled, now, limits.stalled_write_seconds)
            case Phase.CALLS if since.frame is not None and (reading or self._starved):
                return _late("frame_seconds", since.frame, now, limits.frame_seconds)
            case Phase.CALLS if self.idle and reading:
                return _late("idle_seconds", since.heard, now, limits.idle_seconds)
            case _:
                return None

    # Our own.

    def _peer_fields(self) -> dict[str, object]:
        """Return who is at the other end, for a log line."""
        uid = None if self.caller is None else self.caller.uid
        return {"host": self.host, "user": self.who.user} | ({} if uid is None else {"uid": uid})

    def _pump(self) -> None:
        progress = False
        event: Event | None = None
        self._pumping = True
        while may := self._may_take():
            event, self._given_back = self._given_back or self._session.next_event(), None
            if event is None:
                break
            progress = True
            self._handle(event)
        self._pumping = False
        if self._thread is not None:
            return
        if self._outgoing:
            self._flush()
        buffered = self._session.buffered_bytes
        if buffered == 0:
            self._since.frame = None
        elif progress:
            self._since.frame = self._loop.time()
        self._starved = self._transport is not None and not self._owner.budget.holds(self, buffered)
        self._set_reading(may and not self._starved)

    def _thread_over(self, meters: Meters, event: Event | None) -> None:
        """Take over from the ended thread; what it has read and not carried out comes next."""
        self._leave_thread(meters)
        self._given_back = event
        if self._transport is not None:
            self.pump()

    def _leave_thread(self, meters: Meters) -> None:
        assert self._thread is not None
        self._thread.end()
        self._thread = None
        METERS.close_thread_meters(meters)
        self._owner.thread_over(self)

    def _may_take(self) -> bool:
        return (
            self._transport is not None
            and self._naming is None  # uvloop reads on, whatever is paused before it has begun
            and self._thread is None
            and not self._transport.is_closing()
            and self._since.stalled is None
            and self._unanswered < self._limits.max_calls_per_connection
            and self._owner.has_room(self)
        )

    def _handle(self, event: Event) -> None:
        match event:
            case Asked():
                self._unanswered += 1
                self._owner.take(self, event)
            case Greeted():
                self._greet(event)
            case Step():
                self._identify(self._take(event))
            case Proved():
                self._prove(event)
            case Send():
                self._send(event.data)
            case Hangup():
                self._hang_up(event.last, event.reason)
            case _:
                assert_never(event)

    async def _take(self, step: Step) -> None:
        outcome = await steps.take(step)
        control = self._owner.access.control
        if isinstance(outcome, SaslFailure) and control and self.caller:
            control.not_proven(self.caller, step.way.method, str(outcome))
        self._given_back = self._session.answered(outcome)

    def _prove(self, proved: Proved) -> None:
        self.caller = self._owner.access.proved(self.caller, proved)
        self._outgoing.append(proved.last)
        self._flush()  # in plain: only what comes after it is wrapped
        self._layer = self._session.layer

    def _greet(self, greeted: Greeted) -> None:
        self.who = greeted
        access = self._owner.access
        found = access.greeted(self.caller, greeted)
        if isinstance(found, Caller) and access.control and access.control.admission:
            self._identify(self._admit(found, greeted))
        else:
            self._seat(found)

    async def _admit(self, caller: Caller, greeted: Greeted) -> None:
        found = await self._owner.access.admitted(caller, greeted)
        if self._transport is not None:  # else it has left its seat already
            self._seat(found)

    def _seat(self, found: Caller | Hangup | None) -> None:
        if isinstance(found, Hangup):
            self._hang_up(found.last, found.reason)
            return
        self.caller = found
        if found is not None and found.principal:
            self.who = Greeted(found.name, found.real or None, self.who.protocol)
        if not self._owner.greeted(self):
            self.abort("no_seat")

    def _set_reading(self, wanted: bool) -> None:  # noqa: FBT001 - mirrors pause/resume
        if wanted == self._reading or self._transport is None or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            if self._since.frame is not None:
                self._since.frame = self._loop.time()  # its rest could not come before
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _send(self, data: bytes) -> None:
        # Answers of one turn of the loop leave in one write: a system call costs more than most
        # handlers.  The last one that is owed has nothing to wait for.
        if self._transport is None:
            return
        self._outgoing.append(data)
        if self._pumping:
            return
        if self._unanswered == 0:
            self._flush()
        elif len(self._outgoing) == 1:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        try:
            data = data if self._layer is None else encode_wrapped(data, self._layer)
        except SaslFailure as failure:
            self.abort(f"wrap: {failure}")
            return
        if self._transport is None or self._transport.is_closing() or not data:
            return
        if self._transport.get_write_buffer_size() + len(data) > self._limits.max_outgoing_bytes:
            self.abort("max_outgoing_bytes")
            return
        self._transport.write(data)

    def _hang_up(self, last: bytes, reason: str) -> None:
        if self._transport is None:
            return
        log.info("rpc.connection.closed", **self._peer_fields(), reason=reason)
        self._outgoing.append(last)
        self._flush()
        self._transport.close()


def _late(limit: str, since: float, now: float, seconds: float) -> str | None:
    return limit if now - since > seconds else None
