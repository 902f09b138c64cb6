"""Calls between simulated machines: an answer, a broken connection, or silence."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast

from tests.simulation.blocks.nemesis import STRANDED
from tests.simulation.engine.clock import PROCESS, Process, VirtualLoop
from tests.simulation.engine.network import Link, Network
from tests.simulation.engine.verdict import Violated

T = TypeVar("T")

REFUSED_SECONDS: Final = 0.001
STRANDED_SECONDS: Final = (0.3, 3.0, 12.0)


class Broken(Exception):
    """The connection ended without an answer; whether the other side acted is unknown."""


class Machine:
    """One machine: at most one process of a program runs there, and serves calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: Process | None = None
        self.asleep_until = 0.0
        """Till then requests lie in the machine's sockets; its timers are the first to go on."""
        self.waiting: dict[asyncio.Future[Any], None] = {}
        """Callers whose calls are being served: they hear at once that the process has ended."""

    @property
    def runs(self) -> bool:
        """Whether anybody takes a connection, be it only the kernel for a frozen process."""
        return self.process is not None and self.process.alive


class Wires:
    """Carries calls.  A machine that was never entered here runs for ever and is never frozen."""

    def __init__(self, loop: VirtualLoop, network: Network) -> None:
        self.loop, self.network = loop, network
        self.machines: dict[str, Machine] = {}
        self.queueing: frozenset[str] = frozenset()
        """Machines that take a request from their queue though its sender has gone on."""

    def machine(self, name: str) -> Machine:
        if name not in self.machines:
            self.machines[name] = Machine(name)
        return self.machines[name]

    async def call(
        self, origin: str, target: str, what: str, handle: Callable[[], Awaitable[T]]
    ) -> T:
        """Have ``handle`` run on another machine, and bring its answer or its error back.

        Raises:
            Broken: if the connection ends before the answer is here.
        """
        if origin == target:
            return await handle()
        call = _Call(self, (origin, target), what, handle)
        place = f"{origin}>{target}"
        kind = f"strand-{what if what in STRANDED else 'request'}"
        if target in self.queueing and (name := self.network.faults.strikes(kind, place)):
            self._strand(call, name)
        else:
            self.network.post(call.link, what, call.arrive, lost=call.fail)
        return await call.done

    def _strand(self, call: "_Call[T]", name: str) -> None:
        """End the sender's connection; the request is served all the same, later."""
        magnitude = self.network.faults.random(name)
        seconds = magnitude.choice(STRANDED_SECONDS) * magnitude.random()
        self.network.trace.add("net", f"{call.what} is stranded for {seconds:.3f} s", name)
        self.loop.call_later(REFUSED_SECONDS, call.fail)
        arrive = call.arrive_alone(self.machine(call.link[1]).process)
        due = self.loop.now + seconds
        self.network.post(call.link, call.what, arrive, lost=_nothing, not_before=due)

    def ended(self, machine: Machine) -> None:
        """End the connections of a process that has ended, as the kernel does."""
        waiting, machine.waiting = machine.waiting, {}
        for done in waiting:
            self.loop.call_later(REFUSED_SECONDS, _break, done)


def _nothing() -> None:
    """Do nothing."""


def _break(done: "asyncio.Future[Any]") -> None:
    if not done.done():
        done.set_exception(Broken("the other process has ended"))


class _Call(Generic[T]):
    """One call on its way there and back."""

    def __init__(
        self, wires: Wires, link: Link, what: str, handle: Callable[[], Awaitable[T]]
    ) -> None:
        self._wires, self.link, self.what, self._handle = wires, link, what, handle
        self.done: asyncio.Future[T] = wires.loop.create_future()
        self._there = wires.machines.get(link[1])
        self._here = PROCESS.get()

    def fail(self) -> None:
        if not self.done.done():
            self.done.set_exception(Broken(f"{self.what} to {self.link[1]}"))

    def arrive(self) -> None:
        there = self._there
        if there is None:
            self._wires.loop.create_task(self._serve())
        elif there.process is None or not there.process.alive:
            self._wires.loop.call_later(REFUSED_SECONDS, self.fail)
        elif there.asleep_until > self._wires.loop.now:
            self._wires.loop.at(there.asleep_until + REFUSED_SECONDS, self.arrive)
        elif self._here is None or self._here.alive:
            there.waiting[self.done] = None
            there.process.spawn(self._serve())

    def arrive_alone(self, process: Process | None) -> Callable[[], None]:
        """Return how the request arrives at the process that it was sent to, whether or not its
        caller waits.
        """

        def arrive() -> None:
            if process is not None and process.alive:
                process.spawn(self._serve_alone())

        return arrive

    async def _serve_alone(self) -> None:
        try:
            await self._handle()
        except Violated:
            raise
        except Exception:  # noqa: BLE001 - no caller waits for it
            return

    async def _serve(self) -> None:
        failure: Exception | None = None
        answer: T | None = None
        try:
            answer = await self._handle()
        except Violated:
            raise
        except Exception as problem:  # noqa: BLE001 - it is the caller's to see
            failure = problem
        if self._there is not None:
            self._there.waiting.pop(self.done, None)
            if PROCESS.get() is not self._there.process:
                return  # an earlier life of it: its connection has ended
        origin, target = self.link
        take = partial(self._take, answer, failure)
        self._wires.network.post((target, origin), self.what, take, lost=self.fail, answer=True)

    def _take(self, answer: T | None, failure: Exception | None) -> None:
        if self.done.done():
            return
        if failure is not None:
            self.done.set_exception(failure)
        else:
            self.done.set_result(cast(T, answer))
