"""Machines with the processes on them, and what befalls both."""

from collections.abc import Callable
from contextvars import Context, ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final

from ha.rpc.protocol import Catalogue
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.engine.network import Action, Link, Network
from tests.simulation.engine.trace import Trace

if TYPE_CHECKING:
    from tests.simulation.failover.rpc_seam import SimConnection

_LOOPBACK_SECONDS: Final = 0.0003

LIFE: ContextVar["Life"] = ContextVar("LIFE")
"""The process life that the running code belongs to."""


class WorldNetwork:
    """A network where what is under way belongs to no process.

    It arrives though its sender is frozen or dead.  A machine's own loopback loses nothing.
    """

    def __init__(self, inner: Network) -> None:
        self.faults = inner.faults
        self._inner = inner
        self._loop = inner.loop
        self._cuts: dict[Link, int] = {}
        self._healed: dict[Link, float] = {}

    @property
    def silence(self) -> float:
        """How many of the lost messages show as nothing at all, not as a broken connection."""
        return self._inner.silence

    def post(
        self,
        link: Link,
        what: str,
        arrive: Action,
        *,
        lost: Action,
        answer: bool = False,
        not_before: float = 0.0,
    ) -> float:
        """Send a message; return when it is due, for messages that must keep their order."""
        if link[0] == link[1]:
            return Context().run(self._loop_back, link[0], what, arrive, not_before)
        send = partial(self._inner.post, lost=lost, answer=answer, not_before=not_before)
        return Context().run(send, link, what, arrive)

    def cut(self, link: Link) -> None:
        """Let nothing through, in this direction."""
        self._cuts[link] = self._cuts.get(link, 0) + 1
        self._inner.cut(link)

    def heal(self, link: Link) -> None:
        if self._cuts.get(link, 0) > 1:
            self._cuts[link] -= 1
        else:
            self._cuts.pop(link, None)
            self._healed[link] = self._loop.now
        self._inner.heal(link)

    def heal_all(self) -> None:
        self._healed.update(dict.fromkeys(self._cuts, self._loop.now))
        self._cuts.clear()
        self._inner.heal_all()

    def is_cut(self, one: str, other: str) -> bool:
        return (one, other) in self._cuts or (other, one) in self._cuts

    def whole_since(self, one: str, other: str) -> float:
        """Return since when these two can reach each other; infinite where they cannot."""
        if self.is_cut(one, other):
            return float("inf")
        return max(self._healed.get(link, 0.0) for link in ((one, other), (other, one)))

    def is_cut_off(self, name: str) -> bool:
        return any(name in link for link in self._cuts)

    def _loop_back(self, name: str, what: str, arrive: Action, not_before: float) -> float:
        delay = _LOOPBACK_SECONDS
        if fault := self.faults.strikes("delay-request", f"{name}>{name}"):
            delay += self.faults.random(fault).choice((0.02, 0.4, 2.5, 6.0))
            self._inner.trace.add("net", f"{name} keeps {what} for {delay:.2f} s", fault)
        due = max(not_before, self._loop.now + delay)
        if fault is not None:
            self.faults.lasts(due)
        self._loop.at(due, arrive)
        return due


class Listener:
    """A port that a process serves."""

    def __init__(self, life: "Life", catalogue: Catalogue) -> None:
        self.life = life
        self.catalogue = catalogue
        self.connections: dict[SimConnection, None] = {}


class Life:
    """One life of one process on a host."""

    def __init__(self, host: "Host", name: str, pid: int) -> None:
        self.host = host
        self.name = name
        self.pid = pid
        self.process = Process(host.name, host.loop)
        self.process.context.run(LIFE.set, self)
        self.listeners: list[Listener] = []
        self.thawed_at = 0.0
        self.began_at = host.loop.now

    @property
    def alive(self) -> bool:
        """Whether the process has not ended; a frozen one has not."""
        return self.process.alive

    @property
    def runs(self) -> bool:
        """Whether the process is neither dead nor frozen."""
        return self.process.alive and not self.process.frozen


class Host:
    """A machine: on or off, with a NameNode and a controller, each in some life or none."""

    def __init__(self, name: str, loop: VirtualLoop, network: WorldNetwork, trace: Trace) -> None:
        self.name = name
        self.loop = loop
        self.network = network
        self.trace = trace
        self.on = True
        self.lives: dict[str, Life] = {}
        self.ports: dict[int, Listener] = {}
        self.ended: Callable[[Life], None] = lambda _life: None
        self.struck: Callable[[Life], None] = lambda _life: None
        """Called before the NameNode of this host is ended by the controller next to it."""

    def life(self, name: str) -> Life | None:
        found = self.lives.get(name)
        return found if found is not None and found.alive else None

    def begin(self, name: str, pid: int) -> Life:
        life = self.lives[name] = Life(self, name, pid)
        return life

    def listen(self, port: int, listener: Listener) -> None:
        self.ports[port] = listener
        listener.life.listeners.append(listener)

    def deafen(self, port: int) -> Listener | None:
        """Close this port of a process that lives on; return what it served there."""
        listener = self.ports.pop(port, None)
        if listener is not None:
            for connection in list(listener.connections):
                connection.hang_up()
        return listener

    def kill(self, name: str, why: str, fault: str = "") -> None:
        life = self.life(name)
        if life is None:
            return
        self.trace.add(self.name, f"{name} ends: {why}", fault)
        self._end(life)
        for listener in life.listeners:
            for connection in list(listener.connections):
                connection.hang_up()

    def power_off(self, fault: str = "") -> None:
        """End everything at once, without a message."""
        if not self.on:
            return
        self.trace.add(self.name, "loses power", fault)
        self.on = False
        for life in list(self.lives.values()):
            if life.alive:
                self._end(life)

    def power_on(self) -> None:
        """Switch the machine on; its processes must be started."""
        self.on = True

    def freeze(self, name: str) -> None:
        life = self.life(name)
        if life is not None:
            life.process.freeze()

    def thaw(self, name: str) -> None:
        life = self.life(name)
        if life is not None:
            life.thawed_at = self.loop.now
            life.process.thaw()

    def _end(self, life: Life) -> None:
        life.process.kill()
        self.ports = {port: one for port, one in self.ports.items() if one.life is not life}
        self.ended(life)
