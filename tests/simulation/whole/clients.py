"""Clients that share paths, and write down what they asked and what was answered."""

import asyncio
from random import Random
from typing import Any, Final

from google.protobuf.message import Message

from ha.rpc.client import Connection
from ha.rpc.errors import ConnectFailed, RemoteFault, RpcError
from ha.rpc.java_names import CLIENT_PROTOCOL, RETRIABLE, SAFE_MODE_EXCEPTION, STANDBY_EXCEPTION
from ha.rpc.packets import CallAnswer, Status
from tests.campaigns.soak.faults.clients import UnexpectedAnswer, meaning, request_of
from tests.campaigns.soak.faults.history import UNKNOWN, Ask, Call
from tests.simulation.engine.clock import Process
from tests.simulation.engine.verdict import Violated
from tests.simulation.failover.cluster import SERVICE_PORT
from tests.simulation.failover.rpc_seam import Switchboard
from tests.simulation.whole.namenode import CLIENT

ANSWER_SECONDS: Final = 3.0
CALL_SECONDS: Final = 8.0
PAUSE_SECONDS: Final = (0.05, 0.4)
PAIRS: Final = 2
"""This number of pairs of paths is shared at a time; things move within a pair."""
CALLS_PER_PAIR: Final = 40
"""Then another takes its place: the search for an order grows with the length of a history."""
_WEIGHTS: Final = {Ask.MAKE: 20, Ask.OWN: 30, Ask.DELETE: 12, Ask.READ: 30, Ask.MOVE: 12}
_NOT_CARRIED_OUT: Final = (STANDBY_EXCEPTION, RETRIABLE, SAFE_MODE_EXCEPTION)


class Paths:
    """The pairs of paths that all clients share just now."""

    def __init__(self) -> None:
        self._made = 0
        self._live: list[tuple[int, int]] = []

    def one(self, rng: Random) -> tuple[str, str]:
        """Return a path to ask for, and the other one of its pair; count the call."""
        while len(self._live) < PAIRS:
            self._live.append((self._made, CALLS_PER_PAIR))
            self._made += 1
        pair, left = self._live.pop(rng.randrange(PAIRS))
        if left > 1:
            self._live.append((pair, left - 1))
        one, other = rng.sample(_of(pair), 2)
        return one, other

    def live(self) -> list[str]:
        return [path for pair, _ in self._live for path in _of(pair)]


def _of(pair: int) -> tuple[str, str]:
    return f"/p{pair}", f"/q{pair}"


class Client:
    """One client: a process with a call under way at most."""

    def __init__(
        self, number: int, process: Process, board: Switchboard, servers: tuple[str, ...]
    ) -> None:
        self.number = number
        self.process = process
        self.told: list[Call] = []
        self._board = board
        self._servers = servers
        self._connections: dict[str, Connection] = {}
        self._at = number % len(servers)
        self._values = 0

    async def wander(self, paths: Paths, rng: Random) -> None:
        kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        while True:
            await self.ask(rng.choices(kinds, weights)[0], *paths.one(rng))
            await asyncio.sleep(rng.uniform(*PAUSE_SECONDS))

    async def read(self, paths: Paths, rng: Random) -> None:
        """Read what others change, for ever: writes would show it that an active is old."""
        while True:
            if live := paths.live():
                await self.ask(Ask.READ, rng.choice(live))
            await asyncio.sleep(rng.uniform(*PAUSE_SECONDS))

    async def ask(self, ask: Ask, path: str, other: str = "") -> str:
        """Make one call, from its begin to the line in the history; return its answer."""
        value = other if ask is Ask.MOVE else ""
        if ask is Ask.OWN:
            self._values += 1
            value = f"c{self.number}v{self._values}"
        method, message, _ = request_of(ask, path, value)
        # On the world's clock, that of all clients.
        began = self._board.loop.now
        index = len(self.told)
        # A client that is killed has asked all the same.
        self.told.append(Call(self.number, path, ask, value, began, began, UNKNOWN))
        answer, by = await self._answer(ask, method, message)
        self.told[index] = Call(
            self.number, path, ask, value, began, self._board.loop.now, answer, by
        )
        return answer

    async def _answer(self, ask: Ask, method: str, message: Message) -> tuple[str, str]:
        ends = self._board.loop.now + CALL_SECONDS
        while self._board.loop.now < ends:
            name = self._servers[self._at]
            try:
                connection = await self._connected(name)
                reply: Any = await connection.call(
                    method, message, type(message), deadline_seconds=ANSWER_SECONDS
                )
            except ConnectFailed:
                pass
            except RemoteFault as fault:
                if fault.java_class not in _NOT_CARRIED_OUT:
                    refused = CallAnswer(0, b"", Status.ERROR, java_class=fault.java_class)
                    return meaning(ask, refused), name
            except RpcError:
                self._connections.pop(name, None)
                self._at = (self._at + 1) % len(self._servers)
                return UNKNOWN, ""
            else:
                done = CallAnswer(0, b"", Status.SUCCESS, reply.SerializeToString())
                try:
                    return meaning(ask, done), name
                except UnexpectedAnswer as wrong:
                    raise Violated("W1", f"{name}: {wrong}") from wrong
            self._at = (self._at + 1) % len(self._servers)
            await asyncio.sleep(0.1)
        return UNKNOWN, ""

    async def _connected(self, name: str) -> Connection:
        known = self._connections.get(name)
        if known is None or getattr(known, "closed", False):
            known = await self._board.open(
                name, SERVICE_PORT, protocol=CLIENT_PROTOCOL, user=CLIENT, deadline_seconds=1.0
            )
            self._connections[name] = known
        return known
