"""Takes the place of the RPC connection and server under the product's own clients and faces."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar

from google.protobuf.message import Message

from ha.rpc.errors import ConnectFailed, ConnectionLost, DeadlineExceeded, RemoteFault
from ha.rpc.java_names import IO_EXCEPTION
from ha.rpc.packets import CallKey
from ha.rpc.protocol import Call, Catalogue, NotServed, RpcProtocol
from ha.rpc.sasl.initiation import LoginToken
from tests.simulation.engine.clock import PROCESS, Process, VirtualLoop
from tests.simulation.failover.hosts import LIFE, Host, Life, Listener, WorldNetwork

M = TypeVar("M", bound=Message)
Sent = Callable[[str, str, str, Message, int], None]
"""Called for each call as it is sent: sender's machine, receiver's, method, request, its number."""
Begun = Callable[[str, Message, int], None]
"""Called when a call has arrived: at whom, the request, its number."""
Heard = Callable[[str, str, str], None]
"""Called when a good answer has come in time: to whose machine, from whose, of which method."""
Answered = Callable[[str, Message, int, float | None], None]
"""Called when a call has ended: by whom, the request, its number, when sent (None: failed)."""


class Switchboard:
    """The machines that can be called, and how calls get there."""

    def __init__(self, loop: VirtualLoop, network: WorldNetwork, hosts: Mapping[str, Host]) -> None:
        self.loop = loop
        self.network = network
        self.hosts = hosts
        self.on_call: Sent = lambda _from, _to, _method, _request, _number: None
        self.on_begin: Begun = lambda _by, _request, _number: None
        self.on_answer: Heard = lambda _from, _to, _method: None
        self.on_end: Answered = lambda _by, _request, _number, _sent_at: None
        self.calls = count(1)
        numbers = count(1)
        self.client_ids = defaultdict[Process, bytes](lambda: next(numbers).to_bytes(16))
        """Of each process that has called anybody, as RPC clients draw them."""
        self._rng = network.faults.random("rpc")

    async def open(
        self,
        host: str,
        port: int,
        *,
        protocol: str,
        user: str | None = None,
        deadline_seconds: float,
        client_id: bytes = b"",
        token: LoginToken | None = None,
    ) -> "SimConnection":
        """Open as RpcConnection.open does."""
        assert token is None, "no controller logs in by a token"
        here = PROCESS.get()
        assert here is not None
        accepted: asyncio.Future[Listener | None] = self.loop.create_future()
        there = self.hosts[host]
        link = (here.machine, host)

        def answer(listener: Listener | None) -> None:
            self.network.post(
                link[::-1],
                "accept",
                partial(_in, here, self.loop, _resolve, accepted, listener),
                lost=_nothing,
                answer=True,
            )

        def arrive() -> None:
            if there.on:  # a frozen process's kernel accepts for it
                listener = there.ports.get(port)
                answer(listener if listener is not None and listener.life.alive else None)

        self.network.post(link, f"connect {port}", arrive, lost=_nothing)
        try:
            async with asyncio.timeout(deadline_seconds):
                listener = await accepted
        except TimeoutError as failure:
            raise ConnectFailed(f"no connection to {host}:{port} in time") from failure
        if listener is None:
            refused = ConnectionRefusedError("refused (simulated)")
            raise ConnectFailed(f"no connection to {host}:{port}: {refused}") from refused
        asker = client_id or self.client_ids[here]
        return SimConnection(self, here, there, listener, protocol, user or "hdfs", asker)

    def breaks_silently(self) -> bool:
        return self._rng.random() < self.network.silence


class SimConnection:
    """As RpcConnection."""

    def __init__(
        self, board: Switchboard, here: Process, there: Host, listener: Listener,
        protocol: str, user: str, client_id: bytes,
    ) -> None:  # fmt: skip
        self._board = board
        self._here = here
        self._there = there
        self._listener = listener
        self._protocol = protocol
        self._user = user
        self._client_id = client_id
        self._loop = board.loop
        self._gone: asyncio.Future[Exception] = self._loop.create_future()
        self._pending: dict[asyncio.Future[Any], None] = {}
        self._up_due = self._down_due = 0.0
        listener.connections[self] = None

    @property
    def closed(self) -> bool:
        return self._gone.done()

    async def call(
        self, method: str, request: Message, response: type[M], *, deadline_seconds: float,
        context: str = "", key: CallKey | None = None,
    ) -> M:  # fmt: skip
        assert key is None, "daemons repeat no call under its number"
        if self._gone.done():
            raise ConnectionLost(f"{method} was not sent: {self._gone.result()}")
        answer: asyncio.Future[M] = self._loop.create_future()
        self._pending[answer] = None
        number = next(self._board.calls)
        if self._here.alive:
            self._board.on_call(self._here.machine, self._there.name, method, request, number)
            self._up_due = self._board.network.post(
                (self._here.machine, self._there.name),
                method,
                partial(self._arrived, method, request, number, context, self._loop.now, answer),
                lost=self._break,
                not_before=self._up_due,
            )
        late = DeadlineExceeded(f"no answer to {method} within {deadline_seconds} s")
        timer = self._loop.call_later(deadline_seconds, _fail, answer, late)
        try:
            return await answer
        finally:
            timer.cancel()
            self._pending.pop(answer, None)

    async def wait_closed(self) -> Exception:
        """Wait until the connection is gone, and say why."""
        return await asyncio.shield(self._gone)

    async def close(self) -> None:
        self._listener.connections.pop(self, None)
        self._end("closed by this side")

    def hang_up(self) -> None:
        """Close from the server's side: its process has ended, on a machine that runs on."""
        self._listener.connections.pop(self, None)
        self._tell("FIN", partial(self._end, "the peer has closed the connection"))

    # ---- at the server ---------------------------------------------------------------------

    def _arrived(
        self, method: str, request: Message, number: int, context: str, sent_at: float,
        answer: asyncio.Future[Any],
    ) -> None:  # fmt: skip
        life = self._listener.life
        if not self._there.on:
            return
        if not life.alive:
            self._tell("RST", partial(self._end, "reset by peer"))
            return
        here, asker = self._here.machine, self._client_id
        call = Call(self._protocol, method, asker, number, 0, self._user, None, here, context)
        life.process.spawn(self._serve(life, call, request, sent_at, answer))

    async def _serve(
        self, life: Life, call: Call, request: Message, sent_at: float, answer: asyncio.Future[Any]
    ) -> None:
        found = self._listener.catalogue.find(self._protocol, call.method, 1)
        reply: Message | Exception
        if isinstance(found, NotServed):
            reply = RemoteFault(found.java_class, found.message)
        else:
            self._board.on_begin(life.host.name, request, call.call_id)
            try:
                reply = await found.handle(call, request)
            except RemoteFault as fault:
                reply = fault
            except Exception as failure:  # noqa: BLE001 - as the dispatcher answers it
                reply = RemoteFault(IO_EXCEPTION, repr(failure))
            done = None if isinstance(reply, Exception) else sent_at
            self._board.on_end(life.host.name, request, call.call_id, done)
        if life.alive:
            self._tell(
                f"answer to {call.method}", partial(self._settle, call.method, answer, reply)
            )

    def _tell(self, what: str, act: Callable[[], None]) -> None:
        self._down_due = self._board.network.post(
            (self._there.name, self._here.machine),
            what,
            partial(_in, self._here, self._loop, act),
            lost=self._break,
            answer=True,
            not_before=self._down_due,
        )

    def _settle(self, method: str, answer: asyncio.Future[Any], reply: Message | Exception) -> None:
        if isinstance(reply, Exception):
            _fail(answer, reply)
        elif not answer.done():
            self._board.on_answer(self._here.machine, self._there.name, method)
            answer.set_result(reply)

    # ---- ends ------------------------------------------------------------------------------

    def _break(self) -> None:
        if not self._board.breaks_silently():
            _in(self._here, self._loop, self._end, "broken on the way")

    def _end(self, why: str) -> None:
        if not self._gone.done():
            self._gone.set_result(ConnectionLost(why))
        for answer in tuple(self._pending):
            _fail(answer, ConnectionLost(why))


class SimServer:
    """As RpcServer."""

    def __init__(self, board: Switchboard, protocols: Sequence[RpcProtocol]) -> None:
        self._board = board
        self._catalogue = Catalogue.of(protocols)
        self._port = 0

    async def start(self, _host: str, port: int) -> int:
        """Start as RpcServer.start does."""
        life: Life = LIFE.get()
        serve(self._board.hosts[life.host.name], life, port, self._catalogue)
        self._port = port
        return port

    async def stop(self) -> None:
        """Stop as RpcServer.stop does."""
        life: Life = LIFE.get()
        port, self._port = self._port, 0
        listener = life.host.ports.get(port)
        if listener is not None and listener.life is life and life.alive:
            del life.host.ports[port]
            for connection in list(listener.connections):
                connection.hang_up()


def serve(host: Host, life: Life, port: int, catalogue: Catalogue) -> None:
    host.listen(port, Listener(life, catalogue))


def _in(process: Process, loop: VirtualLoop, act: Callable[..., object], *args: object) -> None:
    """Let something happen in a process, when it runs; never in a dead one."""
    if process.alive:
        process.context.run(loop.call_soon, act, *args)


def _resolve(future: "asyncio.Future[Any]", value: object) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: "asyncio.Future[Any]", failure: Exception) -> None:
    if not future.done():
        future.set_exception(failure)


def _nothing() -> None:
    """Lose a SYN or its answer: the one that waits will give up."""
