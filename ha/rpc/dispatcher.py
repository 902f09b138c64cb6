"""Carries out calls: finds the method, begins it or runs it as a task, turns the end into bytes."""

import asyncio
from contextlib import suppress

import structlog
from google.protobuf.message import EncodeError, Message

from ha.rpc.connection import ServerConnection
from ha.rpc.errors import MalformedFrame, RemoteFault
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.java_names import IO_EXCEPTION, RPC_SERVER
from ha.rpc.limits import RpcLimits
from ha.rpc.metrics import METERS, MethodMeters
from ha.rpc.packets import Detail, encode_failure, encode_success, parse_request
from ha.rpc.protocol import Call, Catalogue, Method, NotServed
from ha.rpc.seats import Seats
from ha.rpc.session import Asked

log = structlog.get_logger()


class Dispatcher:
    """The connections and running calls of one server."""

    def __init__(self, catalogue: Catalogue, limits: RpcLimits, budget: FrameBudget) -> None:
        self.budget = budget
        self.connections: set[ServerConnection] = set()
        self._seats = Seats(limits, catalogue.privileged)
        self.accepting = True
        self.catalogue = catalogue
        self._limits = limits
        self._running = 0
        self._idle = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[ServerConnection, None] = {}
        self._pump_is_due = False
        self._loop = asyncio.get_running_loop()

    # For connections (their Owner).

    def admit(self, connection: ServerConnection) -> bool:
        """Whether one more connection may be."""
        if not self.accepting or not self._seats.admit(connection):
            return False
        self.connections.add(connection)
        return True

    def greeted(self, connection: ServerConnection) -> bool:
        """Whether a connection may stay that has just said what it is for."""
        return self._seats.greeted(connection)

    def is_privileged(self, connection: ServerConnection) -> bool:
        """Whether a part of what there is is kept for this connection."""
        return self._seats.is_privileged(connection)

    def forget(self, connection: ServerConnection) -> None:
        """Drop a closed connection: its calls continue, and their answers are dropped."""
        self.connections.discard(connection)
        self._waiting.pop(connection, None)
        self._seats.leave(connection)
        self.budget.forget(connection)

    def has_room(self, connection: ServerConnection) -> bool:
        """Whether one more call may be taken; if not, the connection is pumped when it may."""
        if self._running < self._limits.max_calls:
            return True
        self._waiting[connection] = None
        return False

    def take(self, connection: ServerConnection, asked: Asked) -> None:
        """Start a call, or answer it at once if its method is not served."""
        method = self.catalogue.find(asked.protocol, asked.method, asked.version)
        if isinstance(method, NotServed):
            METERS.unknown += 1
            connection.answer(
                encode_failure(asked.key, method.java_class, method.message, method.detail)
            )
            return
        self._running += 1
        running = _Running(self, connection, asked, self._loop.time())
        try:
            call, request = running.call(), parse_request(method.request, asked.request)
            if method.begin is not None and method.begin(call, request, running.ended):
                return
        except Exception as failure:  # noqa: BLE001 - it is the call's outcome, and told as such
            running.ended(failure)
            return
        task = self._loop.create_task(_handle(method, call, request, running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # For the server.

    async def drain(self, seconds: float) -> None:
        """Let running calls end; cancel the handlers of those that take longer than ``seconds``."""
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

    def ended(self, meters: MethodMeters, started_at: float) -> None:
        """A call is answered, or will never be."""
        meters.took(self._loop.time() - started_at)
        self._running -= 1
        if self._running == 0:
            self._idle.set()
        if self._waiting and not self._pump_is_due:
            # Not from here: a call that ends at once would take the next connection's, and so on.
            self._pump_is_due = True
            self._loop.call_soon(self._pump_waiting)

    # Our own.

    async def _until_idle(self) -> None:
        while self._running:
            self._idle.clear()
            await self._idle.wait()

    def _pump_waiting(self) -> None:
        # The one that has waited longest goes first, and takes what it may.  Where that is nothing,
        # for it has half a frame, it is the next one's turn now: it may be nobody's ever again.
        self._pump_is_due = False
        while self._waiting and self._running < self._limits.max_calls:
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            connection.pump()


class _Running:
    """A call that was taken and has not ended."""

    __slots__ = ("_asked", "_connection", "_dispatcher", "_meters", "_started_at")

    def __init__(
        self,
        dispatcher: Dispatcher,
        connection: ServerConnection,
        asked: Asked,
        started_at: float,
    ) -> None:
        self._dispatcher = dispatcher
        self._connection = connection
        self._asked = asked
        self._meters = METERS.of(asked.protocol, asked.method)
        self._meters.running += 1
        self._started_at = started_at

    def call(self) -> Call:
        """What its handler is told."""
        asked, who = self._asked, self._connection.who
        key = asked.key
        return Call(
            asked.protocol,
            asked.method,
            key.client_id,
            key.call_id,
            key.retry_count,
            who.user,
            who.real_user,
            self._connection.host,
            asked.context,
        )

    def ended(self, outcome: Message | Exception) -> None:
        """Answer it."""
        key, meters = self._asked.key, self._meters
        data = b""
        if isinstance(outcome, Message):
            try:
                data = encode_success(key, outcome.SerializeToString())
            except EncodeError as failure:  # a required field is missing
                outcome = failure
        match outcome:
            case Message():
                meters.succeeded += 1
                self._connection.answer(data)
            case RemoteFault():
                meters.refused += 1
                self._answer_fault(outcome)
            case MalformedFrame():
                meters.refused += 1
                self._fail(RPC_SERVER, str(outcome), Detail.ERROR_RPC_SERVER)
            case _:
                meters.failed += 1
                self._answer_failure(outcome)
        self.over()

    def over(self) -> None:
        """Count the call as ended, answered or not."""
        self._dispatcher.ended(self._meters, self._started_at)

    def _fail(self, java_class: str, message: str, detail: Detail) -> None:
        self._connection.answer(encode_failure(self._asked.key, java_class, message, detail))

    def _answer_failure(self, failure: Exception) -> None:
        method, host = self._asked.method, self._connection.host
        log.error("rpc.handler.failed", method=method, host=host, exc_info=failure)
        message = f"{type(failure).__name__}: {failure}"
        self._fail(IO_EXCEPTION, message, Detail.ERROR_APPLICATION)

    def _answer_fault(self, fault: RemoteFault) -> None:
        if not fault.fatal:
            self._fail(fault.java_class, fault.message, Detail.ERROR_APPLICATION)
            return
        data = encode_failure(
            self._asked.key, fault.java_class, fault.message, Detail.FATAL_UNKNOWN, fatal=True
        )
        self._connection.answer_and_hang_up(data, str(fault))


async def _handle(method: Method, call: Call, request: Message, running: _Running) -> None:
    outcome: Message | Exception
    try:
        outcome = await method.handle(call, request)
    except Exception as failure:  # noqa: BLE001 - it is the call's outcome, and told as such
        outcome = failure
    except asyncio.CancelledError:
        running.over()
        raise
    running.ended(outcome)
