"""One seed's world: two NameNodes, DataNodes, clients, faults; then the end of all faults."""

import asyncio
from collections.abc import Coroutine, Iterable, MutableMapping, Set
from contextlib import AbstractContextManager
from dataclasses import replace
from random import Random
from typing import Any, Final

from journal.model import TxId
from namenode_sim.datanode_protocol.keeper import Keeper
from namenode_sim.process.client_service import ClientService
from namenode_sim.term.role import Role
from tests.simulation.blocks.actor import Actor
from tests.simulation.blocks.client import Client
from tests.simulation.blocks.datanode import Datanode, Life
from tests.simulation.blocks.deeds import Deeds, shrink_all, write_all
from tests.simulation.blocks.executor import Executor
from tests.simulation.blocks.hosts import HostsOperator
from tests.simulation.blocks.liveness import demand_order
from tests.simulation.blocks.model_journal import Journal
from tests.simulation.blocks.namenode import SETTINGS, NameNodeLife
from tests.simulation.blocks.nemesis import Swarm, plan
from tests.simulation.blocks.oracle import Oracle
from tests.simulation.blocks.strikes import NAMENODES, Strikes
from tests.simulation.blocks.told import told
from tests.simulation.blocks.wires import Wires
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.network import Network
from tests.simulation.engine.runs import Outcome, note, to_the_end, unwind
from tests.simulation.engine.trace import Trace, traced
from tests.simulation.engine.verdict import Stuck, Violated

MAX_STEPS: Final = 600_000
FIRST_ACTIVE_BY: Final = 20.0
LOOK_SECONDS: Final = 1.0
PATIENCE_LOOKS: Final = 3
"""How many looks without an active pass before a standby is promoted."""


def run(seed: int, *, only: Set[str] | None = None, keep_trace: bool = False) -> Outcome:
    """Play one seed; ``only`` names the faults that may happen, None allows all that are drawn."""
    world = World(seed, only, keep_trace)
    return to_the_end(world, world.play())


class World:
    """Everything of one run."""

    closing = False

    def __init__(self, seed: int, only: Set[str] | None, keep_trace: bool) -> None:
        self.seed = seed
        self.swarm = Swarm.drawn(seed)
        self.faults = Faults(seed, self.swarm.rates, only)
        self.faults.over = True  # until there is something to hurt
        self.loop = VirtualLoop(lambda _process: 0.001)
        self.trace = Trace(lambda: self.loop.now, keep=keep_trace)
        self.network = Network(self.loop, self.faults, self.trace, held=self.swarm.held)
        self.wires = Wires(self.loop, self.network)
        self.wires.queueing = frozenset(NAMENODES)
        self.journal = Journal()
        self.lives: dict[str, NameNodeLife] = {}
        self.datanodes: dict[str, Datanode] = {}
        self.oracle = Oracle(
            self.journal, self.lives, self.datanodes, self.trace, lambda: self.loop.now
        )
        self.processes: list[Process] = []
        self.hosts = HostsOperator(self)
        self._boots = 0
        self._idle = 0
        self._switching = False
        self.clients: list[Client] = []
        self.ends = 0.0
        self._make_datanodes()
        self.loop.set_exception_handler(self._unhandled)

    def _make_datanodes(self) -> None:
        swarm = self.swarm
        for number in range(1, swarm.datanodes + 1):
            name = f"dn{number}"
            self.datanodes[name] = Datanode(
                name,
                number,
                self.loop,
                self.wires,
                self._tasks,
                self.oracle,
                self.faults.random("datanode", name),
                namenodes=NAMENODES,
                volumes=swarm.volumes,
                java=number <= swarm.java,
                deletion_seconds=swarm.deletion_seconds,
                report_seconds=swarm.report_seconds,
                command_seconds=swarm.command_seconds,
                rack=f"/r{number % swarm.racks}",
            )

    def _tasks(self, life: Life) -> Iterable[Coroutine[Any, Any, None]]:
        def keeper(name: str) -> Keeper | None:
            found = self.lives.get(name)
            return None if found is None else found.keeper

        def face(name: str) -> ClientService | None:
            found = self.lives.get(name)
            return None if found is None else found.face

        for name in NAMENODES:
            yield Actor(life, name, keeper).run()
        yield Executor(life, self.datanodes, face).run()

    def in_place(self) -> AbstractContextManager[None]:
        return traced(self.trace, _without_durations)

    # ---- the run ----

    async def play(self) -> None:
        """Both phases."""
        for name in NAMENODES:
            self.boot(name)
        for owner in self.datanodes.values():
            owner.start()
        while not any(life.role is Role.ACTIVE for life in self.lives.values()):
            await self._look()
            if self.loop.now > FIRST_ACTIVE_BY:
                raise Violated("L1", f"nobody is active after {FIRST_ACTIVE_BY} s")
        await asyncio.sleep(5.0)
        if self.swarm.prepared:
            await self._prepare()
        self.faults.over = False
        begins = self.loop.now
        strikes = Strikes(self)
        for event in plan(self.swarm, self.faults.random("plan"), begins):
            self.loop.at(event.at, strikes.happen, event)
        ends = self.ends = begins + self.swarm.horizon
        for number in range(1, self.swarm.clients + 1):
            self._begin_client(f"c{number}", ends)
        while self.loop.now < ends:
            await self._look()
        await demand_order(self)
        self.look()

    async def _prepare(self) -> None:
        client, process = self._new_client("c0")
        done = told(process.spawn(write_all(client, self.swarm.replication)), self.loop)
        while not done.done():
            await self._look()

    def _new_client(self, name: str) -> tuple[Client, Process]:
        process = Process(name, self.loop)
        self.wires.machine(name).process = process
        self.processes.append(process)
        client = Client(
            name, self.loop, self.wires, self.datanodes, self.lives, self.oracle,
            self.faults.random("client", name),
        )  # fmt: skip
        return client, process

    def _begin_client(self, name: str, ends: float) -> None:
        client, process = self._new_client(name)
        self.clients.append(client)
        deeds = Deeds(client, self.swarm, self.trace)
        told(process.spawn(deeds.until(ends)), self.loop)

    def _writers(self) -> list[tuple[Client, Process]]:
        found = ((client, self.wires.machine(client.name).process) for client in self.clients)
        return [(client, process) for client, process in found if process and process.alive]

    def shrink(self, *, at_once: bool = False) -> None:
        """Have every file that there is want one replica only."""
        for client, process in self._writers()[:1]:
            told(process.spawn(shrink_all(client, at_once=at_once)), self.loop)

    def replace_client(self, number: int) -> None:
        """End a client's process; another one begins, without any of its files."""
        alive = self._writers()
        _, process = alive[number % len(alive)]
        process.kill()
        self._begin_client(f"c{len(self.clients) + 1}", self.ends)

    async def _look(self) -> None:
        await asyncio.sleep(LOOK_SECONDS)
        self.look()

    def look(self) -> None:
        """Check the invariants each second, and do the controllers' part."""
        self.oracle.look()
        self.hosts.look()
        if self.oracle.violation is not None:
            raise self.oracle.violation
        if self.loop.steps > MAX_STEPS:
            raise Stuck(f"{self.loop.steps} steps, and no end")
        self._control()

    # ---- NameNodes ----

    def boot(self, name: str) -> None:
        """Start a NameNode, if none runs there."""
        machine = self.wires.machine(name)
        if machine.runs or self.closing:
            return
        self._boots += 1
        random = self.faults.random("namenode", name, self._boots)
        image = TxId(random.randrange(self.journal.last + 1))
        self.trace.add(name, f"starts from an image of {image}")
        process = machine.process = Process(name, self.loop)
        self.processes.append(process)
        process.context.run(self._load, name, process, random, image)

    def _load(self, name: str, process: Process, random: Random, image: TxId) -> None:
        settings = replace(SETTINGS, block_recovery_seconds=self.swarm.recovery_seconds)
        life = NameNodeLife(
            name, process, self.loop, self.journal, self.wires, random, image, settings
        )
        life.follow(lambda: self.hosts.lists)
        self.lives[name] = life
        life.on_death = self.oracle.died
        life.start()
        life.namenode.stopped_because.add_done_callback(lambda _: self._stopped(life))

    def _stopped(self, life: NameNodeLife) -> None:
        stopped = life.namenode.stopped_because
        if self.closing or stopped.cancelled() or self.lives.get(life.name) is not life:
            return
        self.trace.add(life.name, f"stops: {stopped.result()}")
        if "unexpectedly" in stopped.result() or "cannot be applied" in stopped.result():
            self.oracle.violated("P6", f"{life.name} broke: {stopped.result()}")
        self.kill(life.name)
        self.loop.call_later(3.0, self.boot, life.name)

    def kill(self, name: str) -> None:
        machine = self.wires.machine(name)
        if machine.process is not None and machine.process.alive:
            machine.process.kill()
            self.lives.pop(name, None)
            self.wires.ended(machine)

    def _control(self) -> None:
        """Promote a standby, as controllers do, when no NameNode seems to be active."""
        seen = [
            life
            for life in self.lives.values()
            if not life.process.frozen and life.role is not Role.STANDBY
        ]
        self._idle = 0 if seen or self._switching else self._idle + 1
        if self._idle < PATIENCE_LOOKS:
            return
        ready = [
            life
            for life in self.lives.values()
            if not life.process.frozen and life.role is Role.STANDBY
        ]
        if ready:
            chosen = ready[self.faults.random("promote", self.loop.now).randrange(len(ready))]
            self._idle = 0
            if self.swarm.fenced:
                for name in NAMENODES:
                    if name != chosen.name and self.wires.machine(name).runs:
                        self.trace.add("zkfc", f"kills {name}")
                        self.kill(name)
                        self.loop.call_later(3.0, self.boot, name)
            self.promote(chosen.name)

    def promote(self, name: str) -> None:
        """Have a NameNode become active, if it runs."""
        life = self.lives.get(name)
        if life is not None:
            self.trace.add("zkfc", f"promotes {name}")
            life.process.spawn(life.become_active())

    def switch(self) -> None:
        """Have the active stand by, and then the other one become active."""
        told(self.loop.create_task(self._switch()), self.loop)

    async def _switch(self) -> None:
        active = [life for life in self.lives.values() if life.role is Role.ACTIVE]
        if not active or self._switching:
            return
        self._switching = True
        try:
            async with asyncio.timeout(10.0):
                await self._asked(active[0], "become_standby")
                others = [life for life in self.lives.values() if life is not active[0]]
                if others:
                    await self._asked(others[0], "become_active")
        except TimeoutError:
            pass
        finally:
            self._switching = False

    async def _asked(self, life: NameNodeLife, what: str) -> None:
        done: asyncio.Future[None] = self.loop.create_future()
        task = life.process.spawn(getattr(life, what)())
        task.add_done_callback(lambda _: _ended(done))
        await done

    # ---- small matters ----

    def counts(self) -> tuple[int, int]:
        return self.oracle.checks, sum(client.done for client in self.clients)

    def end(self) -> None:
        """Unwind every process, so that nothing is left for the collector to complain about."""
        self.closing = self.faults.over = True
        for process in self.processes:
            process.kill()
        for owner in self.datanodes.values():
            owner.kill()
        unwind(self.loop)

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take an unhandled error for a bug, unless it is an answer that no caller waited for."""
        failure = context.get("exception")
        if not isinstance(failure, Exception) or "task" not in context or self.closing:
            return
        if isinstance(failure, Violated):
            note(self, failure)
        else:
            note(self, Violated("P6", f"nobody handled {failure!r}: {context['message']}"))


def _ended(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_result(None)


def _without_durations(
    _logger: object, _level: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Real time would make every trace another one."""
    for name in [name for name in event if "seconds" in name or name == "exc_info"]:
        event[name] = repr(event[name]) if name == "exc_info" else "-"
    return event
