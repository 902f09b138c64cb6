"""Carries out calls: finds the method, begins it or runs it as a task, turns the end into bytes."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from google.protobuf.message import EncodeError, Message

from ha.rpc.call_access import CallAccess
from ha.rpc.call_header import Asked
from ha.rpc.call_share import CallQueue
from ha.rpc.connection import ServerConnection
from ha.rpc.connection_table import ConnectionTable
from ha.rpc.errors import MalformedFrame, RemoteFault
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.java_names import IO_EXCEPTION, RPC_SERVER
from ha.rpc.limits import RpcLimits
from ha.rpc.metrics import METERS, Meters, MethodMeters
from ha.rpc.packets import Detail, encode_failure, encode_success, parse_request
from ha.rpc.protocol import Call, Catalogue, Method, NotServed
from ha.rpc.reading_thread import THREAD_BYTES
from ha.rpc.session import Hangup
from ha.security.caller import Method as Proof

log = structlog.get_logger()


class Dispatcher:
    """The connections and running calls of one server."""

    def __init__(
        self, catalogue: Catalogue, limits: RpcLimits, budget: FrameBudget, access: CallAccess
    ) -> None:
        self.budget = budget
        self.access = access
        self.connections: set[ServerConnection] = set()
        self._seats = ConnectionTable(limits, catalogue.privileged)
        self.accepting = True
        self.catalogue = catalogue
        self._calls = CallQueue(limits)
        self._idle = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_threads: set[ServerConnection] = set()
        self._pump_is_due = False
        self._loop = asyncio.get_running_loop()

    # For connections (their Owner).

    def admit(self, connection: ServerConnection) -> bool:
        """Return whether one more connection may be open, and keep it if so."""
        if not self.accepting or not self._seats.admit(connection):
            return False
        self.connections.add(connection)
        return True

    def greeted(self, connection: ServerConnection) -> bool:
        """Return whether a connection may stay that has just named its user and protocol."""
        return self._seats.greeted(connection)

    def is_privileged(self, connection: ServerConnection) -> bool:
        """Return whether reserved seats and calls are open to this connection."""
        return self._seats.is_privileged(connection)

    def forget(self, connection: ServerConnection) -> None:
        """Drop a closed connection: its calls continue, and their answers are dropped."""
        self.connections.discard(connection)
        self._calls.leave(connection)
        self._seats.leave(connection)
        self.budget.forget(connection)

    def has_room(self, connection: ServerConnection) -> bool:
        """Return whether one more call may be taken; if not, pump the connection when it may."""
        return self._calls.has_room(connection)

    def close_unidentified(self) -> None:
        """Hang up on those of whom nothing is known, where there are too many."""
        self._seats.close_unidentified()

    def take(self, connection: ServerConnection, asked: Asked) -> None:
        """Start a call, or answer it at once if its method is not served."""
        method = self.catalogue.find(asked.protocol, asked.method, asked.version)
        if isinstance(method, NotServed):
            METERS.unknown += 1
            connection.answer(
                encode_failure(asked.key, method.java_class, method.message, method.detail)
            )
            return
        refusal = self.access.refusal(connection.caller, asked, method)
        if refusal is not None:
            METERS.of(asked.protocol, asked.method).refused += 1
            connection.answer(refusal)
            return
        if method.look is not None and self._look(method.look, connection, asked):
            return
        if method.in_thread is not None and connection.begin_thread(asked):
            return
        self._calls.began(connection.user)
        running = _Running(self, connection, asked, method, self._loop.time())
        try:
            call, request = _call(connection, asked), parse_request(method.request, asked.request)
            if method.begin is not None and method.begin(call, request, running.ended):
                return
        except Exception as failure:  # noqa: BLE001 - it is reported as the call's outcome
            running.ended(failure)
            return
        task = self._loop.create_task(_handle(method, call, request, running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _look(
        self,
        look: Callable[[Call, bytes], bytes | None],
        connection: ServerConnection,
        asked: Asked,
    ) -> bool:
        """Return whether a call was answered in this turn."""
        began = self._loop.time()
        try:
            found = look(_call(connection, asked), asked.request)
        except Exception:  # the caller gets what the usual way finds
            log.exception("rpc.look_failed", method=asked.method, host=connection.host)
            return False
        if found is None:
            return False
        meters = METERS.of(asked.protocol, asked.method)
        meters.running += 1  # which ``took`` counts off
        meters.succeeded += 1
        meters.took(self._loop.time() - began)
        connection.answer(encode_success(asked.key, found))
        return True

    def may_begin_thread(self, connection: ServerConnection) -> bool:
        """Return whether a thread of its own may read a connection; ``thread_over`` ends it."""
        if not self.accepting or not self.budget.set_aside(connection, THREAD_BYTES):
            return False
        self._in_threads.add(connection)
        return True

    def carry_out_in_thread(
        self, connection: ServerConnection, asked: Asked, meters: Meters
    ) -> bytes | Hangup | None:
        """Carry out a call where this is called, which may block; None: it is the loop's."""
        method = self.catalogue.find(asked.protocol, asked.method, asked.version)
        if isinstance(method, NotServed) or method.in_thread is None:
            return None
        if not self.access.may(connection.caller, asked):
            return None
        began, counted = time.monotonic(), meters.of(asked.protocol, asked.method)
        counted.running += 1
        outcome: Message | Exception
        try:
            outcome = method.in_thread(parse_request(method.request, asked.request))
        except Exception as failure:  # noqa: BLE001 - it is reported as the call's outcome
            outcome = failure
        answer = encode_answer(asked, connection.host, outcome, counted)
        counted.took(time.monotonic() - began)
        return answer

    def thread_over(self, connection: ServerConnection) -> None:
        """Take note that a connection is read by the loop again."""
        self._in_threads.discard(connection)
        if not self._in_threads:
            self._idle.set()

    # For the server.

    async def drain(self, seconds: float) -> None:
        """Let running calls end; cancel the handlers of those that take longer than ``seconds``."""
        for connection in tuple(self._in_threads):
            connection.recall()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._until_idle()
        leftover = tuple(self._tasks)
        for task in leftover:
            task.cancel()
        if leftover:
            log.warning("rpc.server.calls_cancelled", count=len(leftover))
            await asyncio.wait(leftover, timeout=seconds)

    # For calls.

    def ended(self, user: str, meters: MethodMeters, started_at: float) -> None:
        """Count off a call that is answered, or will never be."""
        meters.took(self._loop.time() - started_at)
        self._calls.ended(user)
        if self._calls.running == 0:
            self._idle.set()
        if self._calls.waiting and not self._pump_is_due:
            # Not from here: a call that ends at once would take the next connection's, and so on.
            self._pump_is_due = True
            self._loop.call_soon(self._pump_waiting)

    # Our own.

    async def _until_idle(self) -> None:
        while self._calls.running or self._in_threads:
            self._idle.clear()
            await self._idle.wait()

    async def until_no_threads(self) -> None:
        """Wait for what threads are carrying out: that cannot be cancelled."""
        while self._in_threads:
            self._idle.clear()
            await self._idle.wait()

    def _pump_waiting(self) -> None:
        # The one that has waited longest goes first, and takes what it may.  Where that is nothing,
        # for it has half a frame, the next one must have its turn now: no later event may bring it
        # one.
        self._pump_is_due = False
        while (connection := self._calls.next_one()) is not None:
            connection.pump()


def _call(connection: ServerConnection, asked: Asked) -> Call:
    """Return the call for its handler."""
    key, who, caller = asked.key, connection.who, connection.caller
    return Call(
        asked.protocol,
        asked.method,
        key.client_id,
        key.call_id,
        key.retry_count,
        who.user,
        who.real_user,
        connection.host,
        asked.context,
        Proof.SIMPLE if caller is None else caller.method,
    )


class _Running:
    """A call that was taken and has not ended."""

    __slots__ = (
        "_asked", "_connection", "_dispatcher", "_meters", "_method", "_started_at", "_user",
    )  # fmt: skip

    def __init__(
        self,
        dispatcher: Dispatcher,
        connection: ServerConnection,
        asked: Asked,
        method: Method,
        started_at: float,
    ) -> None:
        self._dispatcher = dispatcher
        self._connection = connection
        self._asked = asked
        self._method = method
        self._meters = METERS.of(asked.protocol, asked.method)
        self._meters.running += 1
        self._started_at = started_at
        self._user = connection.user

    def ended(self, outcome: Message | Exception) -> None:
        """Answer it."""
        self._tell(outcome)
        answer = encode_answer(self._asked, self._connection.host, outcome, self._meters)
        if isinstance(answer, Hangup):
            self._connection.answer_and_hang_up(answer.last, answer.reason)
        else:
            self._connection.answer(answer)
        self.over()

    def cut_off(self) -> None:
        """Count a call that is not carried out to its end; it is not answered."""
        self._tell(None)
        self.over()

    def over(self) -> None:
        """Count the call as ended, answered or not."""
        self._dispatcher.ended(self._user, self._meters, self._started_at)

    def _tell(self, outcome: Message | Exception | None) -> None:
        self._dispatcher.access.ended(self._connection.caller, self._asked, self._method, outcome)


async def _handle(method: Method, call: Call, request: Message, running: _Running) -> None:
    outcome: Message | Exception
    try:
        outcome = await method.handle(call, request)
    except Exception as failure:  # noqa: BLE001 - it is the call's outcome, and reported as such
        outcome = failure
    except asyncio.CancelledError:
        running.cut_off()
        raise
    running.ended(outcome)


def encode_answer(
    asked: Asked, host: str, outcome: Message | Exception, meters: MethodMeters
) -> bytes | Hangup:
    """Return the answer to a call: a frame, or the last bytes of its connection."""
    if isinstance(outcome, Message):
        try:
            data = encode_success(asked.key, outcome.SerializeToString())
        except EncodeError as failure:  # a required field is missing
            outcome = failure
        else:
            meters.succeeded += 1
            return data
    match outcome:
        case RemoteFault(fatal=True):
            meters.refused += 1
            return _fatal(asked, outcome)
        case RemoteFault():
            meters.refused += 1
            return _error(asked, outcome.java_class, outcome.message)
        case MalformedFrame():
            meters.refused += 1
            return _error(asked, RPC_SERVER, str(outcome), Detail.ERROR_RPC_SERVER)
        case _:
            meters.failed += 1
            log.error("rpc.handler.failed", method=asked.method, host=host, exc_info=outcome)
            return _error(asked, IO_EXCEPTION, f"{type(outcome).__name__}: {outcome}")


def _error(
    asked: Asked, java_class: str, message: str, detail: Detail = Detail.ERROR_APPLICATION
) -> bytes:
    return encode_failure(asked.key, java_class, message, detail)


def _fatal(asked: Asked, fault: RemoteFault) -> Hangup:
    last = encode_failure(
        asked.key, fault.java_class, fault.message, Detail.FATAL_UNKNOWN, fatal=True
    )
    return Hangup(last, str(fault))
