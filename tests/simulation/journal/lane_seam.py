"""Write lanes without sockets and threads: the product's own bytes and judge, one message a turn.

A lane's thread is played by callbacks of its node's process: ``serve_here`` is a plain call.  While
somebody on the node's loop has the journal's turn, a message waits as a thread would.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final, Protocol

from journal import lane
from journal.errors import JournalError
from journal.node.faces.lane_codec import LaneFace, face_of
from journal.node.node import JournalNode
from tests.simulation.engine.clock import PROCESS, Process, VirtualLoop
from tests.simulation.engine.network import Network
from tests.simulation.engine.verdict import PowerCut, Violated

LANE_PORT: Final = 8486
_AGAIN_SECONDS: Final = 0.0003
"""How soon a thread that waits for its turn looks again."""

Respond = Callable[[bytes | None], None]
"""What a node says on a lane; None closes it."""


class Serving(Protocol):
    """A machine that takes lanes, or does not."""

    silent: bool

    def lane_end(self, respond: Respond) -> "LaneEnd | None":
        """Return a new lane of the process that runs there."""


class NodeLanes:
    """In place of the listener: what one node process offers."""

    def __init__(self, rng: Random) -> None:
        self.offer = lane.Offer(LANE_PORT, rng.randbytes(lane.KEY_BYTES))

    def open_to(self, _journal_id: str) -> int:
        return 0


class LaneEnd:
    """A node's end: what a lane's thread does."""

    def __init__(
        self, node: JournalNode, process: Process, loop: VirtualLoop, respond: Respond
    ) -> None:
        self._node = node
        self._process = process
        self._loop = loop
        self._respond = respond
        self._face: LaneFace | None = None
        self._waiting: deque[tuple[bytes, Respond]] = deque()
        self._busy = False

    def feed(self, data: bytes, respond: Respond | None = None) -> None:
        """Take what the writer sent; it is served by the process that took the lane, or by none."""
        self._waiting.append((data, respond or self._respond))
        if not self._busy:
            self._busy = True
            self._later(self._loop._blocking_delay(self._process))

    def _later(self, seconds: float) -> None:
        due = self._loop.now + seconds
        self._loop.at(due, self._next, context=self._process.context)

    def _next(self) -> None:
        if not self._process.alive:
            return
        if self._face is not None and self._face.owner.turn.taken:
            self._later(_AGAIN_SECONDS)
            return
        data, respond = self._waiting.popleft()
        try:
            respond(self._said(data))
        except (lane.NoLane, JournalError):
            respond(None)
        except PowerCut:
            return
        self._busy = bool(self._waiting)
        if self._busy:
            self._later(self._loop._blocking_delay(self._process))

    def _said(self, data: bytes) -> bytes:
        if self._face is None:
            assert self._node.lanes is not None
            hello = lane.hello_of(data[: lane.HELLO_BYTES], data[lane.HELLO_BYTES :])
            self._face = face_of(self._node, self._node.lanes.offer, hello)
            return lane.WELCOME
        return self._face.answered(data[: lane.HEADER_BYTES], data[lane.HEADER_BYTES :])


class LaneBoard:
    """In place of the event loop's ``create_connection``; sees who uses what."""

    def __init__(self, network: Network, machines: dict[str, Serving]) -> None:
        self.network = network
        self.machines = machines
        self._in_use: set[tuple[Process, str]] = set()
        self.violation: Violated | None = None

    async def connect(
        self, protocol_factory: Callable[[], Any], host: str, port: int, *, ssl: object = None
    ) -> tuple["Wire", Any]:
        """Connect, or raise what the loop raises."""
        assert not ssl, "these worlds have no certificates"
        assert port == LANE_PORT
        process = PROCESS.get()
        assert process is not None, "a lane belongs to a process"
        wire = Wire(self, process, host, protocol_factory())
        await wire.made()
        return wire, wire.protocol

    def used(self, process: Process, machine: str) -> None:
        """Note a batch over a lane; until that is closed, nothing may go another way."""
        self._in_use.add((process, machine))

    def closed(self, process: Process, machine: str) -> None:
        self._in_use.discard((process, machine))

    def stream_used(self, process: Process, machine: str) -> None:
        if (process, machine) in self._in_use and self.violation is None:
            self.violation = Violated("I20", f"{process.machine} writes to {machine} by both ways")


class Wire:
    """A writer's end of one connection; ordered both ways, and one lost message ends it."""

    def __init__(self, board: LaneBoard, process: Process, machine: str, protocol: Any) -> None:  # noqa: ANN401
        self.protocol = protocol
        self._board = board
        self._process = process
        self._machine = machine
        self._there = (process.machine, machine)
        self._end: LaneEnd | None = None
        self._broken = False
        self._gone = False
        self._due = self._back_due = 0.0
        self._made: asyncio.Future[None] = board.network.loop.create_future()

    async def made(self) -> None:
        """Wait until connected; raise ConnectionError."""
        self._post(self._accept)
        await self._made

    def write(self, data: bytes) -> None:
        """Write as asyncio's transport does: nothing, where it has ended unnoticed."""
        if self._gone:
            return
        self._post(lambda: self._feed(data))
        network, end = self._board.network, self._end
        if end is None or len(data) < lane.HEADER_BYTES:
            return
        self._board.used(self._process, self._machine)

        def twin() -> None:
            end.feed(data, lambda _: None)

        network.remember(self._there, "Write", twin)
        link = f"{self._process.machine}>{self._machine}"
        if name := network.faults.strikes("duplicate", link):
            network.trace.add("net", f"{link} repeats Write on a lane", name)
            rng = network.faults.random(name)
            due = network.loop.now + rng.choice((0.0, 0.01, 0.1, 3.0)) * rng.random()
            network.post(self._there, "Write", twin, lost=lambda: None, not_before=due)

    def abort(self) -> None:
        """Abort as asyncio's transport does; what is on its way may arrive all the same."""
        self._lost(None)

    # ---- at the node ----

    def _accept(self) -> None:
        machine = self._board.machines[self._machine]
        self._end = machine.lane_end(self._respond)
        if self._end is not None:
            self._back(lambda: self._connected(None))
        elif not machine.silent:
            self._back(lambda: self._connected(ConnectionRefusedError("refused (simulated)")))

    def _feed(self, data: bytes) -> None:
        if self._end is not None and not self._broken:
            self._end.feed(data)

    def _respond(self, said: bytes | None) -> None:
        if said is None:
            self._back(lambda: self._lost(None))
        else:
            self._back(lambda: self._got(said))

    # ---- at the writer ----

    def _connected(self, failure: OSError | None) -> None:
        if self._made.done():
            return
        if failure is not None:
            self._made.set_exception(failure)
            return
        # Its loss may be heard before whoever connects goes on, and counts as behind this.
        self._run(self.protocol.connection_made, self)
        self._made.set_result(None)

    def _got(self, said: bytes) -> None:
        if not self._gone and self._process.alive:
            self._run(self.protocol.data_received, said)

    def _lost(self, failure: OSError | None) -> None:
        if not self._made.done():
            self._connected(failure or ConnectionResetError("reset (simulated)"))
            return
        if self._gone:
            return
        self._gone = True
        self._board.closed(self._process, self._machine)
        self._run(self.protocol.connection_lost, failure)

    def _run(self, callback: Callable[..., object], *args: object) -> None:
        """Call in the writer's own turn; a frozen one gets to it later."""
        loop = self._board.network.loop
        loop.call_soon(callback, *args, context=self._process.context)

    # ---- on the way ----

    def _post(self, arrive: Callable[[], None]) -> None:
        self._due = self._board.network.post(
            self._there, "Write", arrive, lost=self._cut(), not_before=self._due
        )

    def _back(self, arrive: Callable[[], None]) -> None:
        self._back_due = self._board.network.post(
            (self._machine, self._process.machine),
            "answer Write",
            arrive,
            lost=self._cut(),
            answer=True,
            not_before=self._back_due,
        )

    def _cut(self) -> Callable[[], None]:
        """Show a lost message as a broken connection, or as nothing at all."""
        network = self._board.network
        chance = network.faults.random("silence", "Write", self._machine).random()
        silent = chance < network.silence

        def lost() -> None:
            self._broken = True
            if not silent:
                self._lost(ConnectionResetError("reset (simulated)"))

        return lost
