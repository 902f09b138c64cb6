"""Carries out calls: finds the method, runs its handler as a task, turns the outcome into bytes."""

import asyncio

import structlog

from ha.rpc.connection import ServerConnection
from ha.rpc.errors import MalformedFrame, RemoteFault
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.java_names import IO_EXCEPTION, RPC_SERVER
from ha.rpc.limits import RpcLimits
from ha.rpc.metrics import IN_FLIGHT, UNKNOWN, Meters
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
        self._meters = Meters()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[ServerConnection, None] = {}
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
        if len(self._tasks) < self._limits.max_calls:
            return True
        self._waiting[connection] = None
        return False

    def take(self, connection: ServerConnection, asked: Asked) -> None:
        """Start a call, or answer it at once if its method is not served."""
        method = self.catalogue.find(asked.protocol, asked.method, asked.version)
        if isinstance(method, NotServed):
            UNKNOWN.inc()
            connection.answer(
                encode_failure(asked.key, method.java_class, method.message, method.detail)
            )
            return
        IN_FLIGHT.inc()
        task = self._loop.create_task(self._run(connection, asked, method))
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    # For the server.

    async def drain(self, seconds: float) -> None:
        """Let running handlers finish; cancel those that take longer than ``seconds``."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        leftover = tuple(self._tasks)
        for task in leftover:
            task.cancel()
        if leftover:
            log.warning("rpc.server.calls_cancelled", count=len(leftover))
            await asyncio.wait(leftover, timeout=seconds)

    # Our own.

    async def _run(self, connection: ServerConnection, asked: Asked, method: Method) -> None:
        who = connection.who
        key = asked.key
        meters = self._meters.of(asked.protocol, asked.method)
        started = self._loop.time()
        try:
            call = Call(
                asked.protocol,
                asked.method,
                key.client_id,
                key.call_id,
                key.retry_count,
                who.user,
                who.real_user,
                connection.host,
                asked.context,
            )
            response = await method.handle(call, parse_request(method.request, asked.request))
            connection.answer(encode_success(key, response.SerializeToString()))
            meters.succeeded.inc()
        except RemoteFault as fault:
            meters.refused.inc()
            _answer_fault(connection, asked, fault)
        except MalformedFrame as failure:
            meters.refused.inc()
            connection.answer(
                encode_failure(key, RPC_SERVER, str(failure), Detail.ERROR_RPC_SERVER)
            )
        except Exception as failure:
            meters.failed.inc()
            log.exception("rpc.handler.failed", method=asked.method, host=connection.host)
            message = f"{type(failure).__name__}: {failure}"
            connection.answer(encode_failure(key, IO_EXCEPTION, message, Detail.ERROR_APPLICATION))
        finally:
            meters.seconds.observe(self._loop.time() - started)

    def _finished(self, task: asyncio.Task[None]) -> None:
        IN_FLIGHT.dec()
        self._tasks.discard(task)
        # The one that has waited longest goes first, and takes what it may.  Where that is nothing,
        # for it has half a frame, it is the next one's turn now: it may be nobody's ever again.
        while self._waiting and len(self._tasks) < self._limits.max_calls:
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            connection.pump()


def _answer_fault(connection: ServerConnection, asked: Asked, fault: RemoteFault) -> None:
    detail = Detail.FATAL_UNKNOWN if fault.fatal else Detail.ERROR_APPLICATION
    data = encode_failure(asked.key, fault.java_class, fault.message, detail, fatal=fault.fatal)
    if fault.fatal:
        connection.answer_and_hang_up(data, str(fault))
    else:
        connection.answer(data)
