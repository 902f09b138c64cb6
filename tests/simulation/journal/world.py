"""One seed's world: machines, network, contenders, standbys, faults; safety, then liveness."""

import asyncio
from collections.abc import Iterator, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import aiohttp
import grpc.aio

from ha.daemon.lazy_import import load
from journal.links import grpc_link
from journal.node.faces import transfer
from journal.node.repair import scrub
from journal.writer import batch_stream
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.network import Network
from tests.simulation.engine.runs import Outcome, note, to_the_end, unwind
from tests.simulation.engine.trace import Trace, traced
from tests.simulation.engine.verdict import Stuck, Violated
from tests.simulation.journal import ambush, byzantine, comebacks
from tests.simulation.journal.ambush import Ambushes
from tests.simulation.journal.comebacks import Comebacks
from tests.simulation.journal.contender import Contender, Habits, Life
from tests.simulation.journal.grpc_seam import SimulatedNames, Switchboard
from tests.simulation.journal.http_seam import session_maker
from tests.simulation.journal.lane_seam import LaneBoard
from tests.simulation.journal.liveness import go_on, heal
from tests.simulation.journal.machine import Machine, open_simulated
from tests.simulation.journal.nemesis import Event, cuts, plan
from tests.simulation.journal.oracle import Oracle
from tests.simulation.journal.reading import Standby
from tests.simulation.journal.swarm import LIFE_KINDS, WEAR_KINDS, Swarm
from tests.simulation.journal.wear import wear

load("aiohttp")
"""Or a process's first world waits for it as long as the real machine takes."""

_LINGER_SECONDS: Final = 8.0
_MAX_STEPS: Final = 200_000
_HADOOP_ROLLS: Final = 8
"""How many times as many segments a writer has where learners wait for its rolls."""


def run(seed: int, *, only: Set[str] | None = None, keep_trace: bool = False) -> Outcome:
    """Play one seed; ``only`` names the faults that may happen, None allows all that are drawn."""
    world = World(seed, only, keep_trace)
    return to_the_end(world, world.play())


class World:
    """Everything of one run."""

    def __init__(
        self, seed: int, only: Set[str] | None, keep_trace: bool, swarm: Swarm | None = None
    ) -> None:
        self.seed = seed
        self.swarm = swarm or _swarm_of(seed)
        self.faults = Faults(seed, self.swarm.rates, only)
        self._disk_delay = self.faults.random("disk delay")
        self.hangs: dict[str, list[float]] = {}
        self.loop = VirtualLoop(self._blocking_delay)
        self.loop.rate_of = self._rate_of
        self.trace = Trace(lambda: self.loop.now, keep=keep_trace)
        self.network = Network(self.loop, self.faults, self.trace, held=self.swarm.held)
        self.machines = {
            name: Machine(name, self.loop, self.faults, self.trace)
            for name in (f"jn{number}" for number in range(1, self.swarm.nodes + 1))
        }
        for machine in self.machines.values():
            machine.peers, machine.upkeep = tuple(self.machines), self.swarm.upkeep
            machine.takes_lanes = self.swarm.lanes
            machine.format()
        lane_servers: Any = self.machines
        self.lanes = LaneBoard(self.network, lane_servers)
        platters = {name: machine.platter for name, machine in self.machines.items()}
        self.oracle = Oracle(platters, self.trace)
        self.writers: dict[str, Process] = {}
        self.readers: dict[str, Process] = {}
        lurking = Comebacks if self.swarm.rejoin else Ambushes
        self.ambushes = lurking(self) if self.swarm.aimed else None
        self.loop.set_exception_handler(self._unhandled)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the simulated world in place: two clients, one way to open a file."""
        servers: Any = self.machines
        board = Switchboard(self.network, servers, self.lanes)
        with (
            traced(self.trace),
            patch.object(grpc.aio, "insecure_channel", board.channel),
            patch.object(grpc_link, "NAMES", SimulatedNames()),
            patch.object(aiohttp, "ClientSession", session_maker(self.network, servers)),
            patch.object(self.loop, "create_connection", self.lanes.connect),
            patch.object(batch_stream, "own_tls", lambda: self if self.swarm.beside else None),
            patch.object(transfer, "_open", open_simulated),
            patch.object(scrub, "_read", self._read),
        ):
            yield

    async def play(self) -> None:
        rng = self.faults.random("plan")
        for machine in self.machines.values():
            machine.booted = self.compare(machine)
            machine.boot()
        lives, horizon = self._lives()
        for life in lives:
            self.loop.call_at(life.begins, self.begin, life)
        if self.ambushes is not None:
            self.ambushes.lie(horizon)
        for number in range(1, self.swarm.readers + 1):
            self._tail(f"r{number}", rng.uniform(0.05, 0.5))
        if self.swarm.upkeep.byzantine:
            process = self.writers[byzantine.NAME] = Process(byzantine.NAME, self.loop)
            process.spawn(byzantine.speak(self, horizon))
        for event in plan(self.swarm, rng, horizon):
            self.loop.call_at(event.at, self._happen, event)
        while self.loop.time() < horizon + _LINGER_SECONDS and self._someone_lives(horizon):
            await asyncio.sleep(0.25)
            self.look()
        await heal(self)
        await go_on(self)

    def counts(self) -> tuple[int, int]:
        """Return how many states were checked, and how many edits acknowledged."""
        return self.oracle.checks, self.oracle.acknowledged

    def end(self) -> None:
        """Unwind every process, so that nothing is left for the collector to complain about."""
        self.faults.over = True
        processes = [*self.writers.values(), *self.readers.values()]
        for machine in self.machines.values():
            machine.platter.watcher = lambda: None
            if machine.process is not None:
                processes.append(machine.process)
        for process in processes:
            process.kill()
        unwind(self.loop)

    # ---- the safety phase ----

    def _lives(self) -> tuple[list[Life], float]:
        rng = self.faults.random("lives")
        begins, lives = 0.0, []
        rolls = _HADOOP_ROLLS if self.swarm.upkeep.hadoop_like else self.swarm.pace.rolls
        for number in range(1, self.swarm.writers + 1):
            drawn = partial(Life.drawn, number, begins, self.swarm.unclosed, rng)
            lives.append(drawn(rolls=rolls, pace=self.swarm.pace))
            begins += self.swarm.crowd * rng.random()
        return lives, begins + 1.0

    def begin(self, life: Life) -> None:
        process = self.writers[life.name] = Process(life.name, self.loop)
        upkeep, chance = self.swarm.upkeep, self.faults.random("habits", life.name)
        like = self.faults.random("kind", life.name).random() < upkeep.hadoop_like
        habits = Habits(
            upkeep.lease_seconds,
            upkeep.purging,
            chance,
            hadoop_like=like,
            window_bytes=self.swarm.window_bytes,
        )
        contender = Contender(life, self.machines, self.loop, self.oracle, self.trace, habits)
        self._handicap(life.name)
        if self.ambushes is not None:
            self.ambushes.begins(life.name)
        process.spawn(contender.live())

    def _handicap(self, name: str) -> None:
        """Give writers different majorities, and death half way through their messages."""
        rng, nodes = self.faults.random("handicap", name), list(self.machines)
        blind, fade = (rng.random() < self.swarm.lives[kind] for kind in LIFE_KINDS)
        unseen = rng.sample(nodes, rng.randint(1, (len(nodes) - 1) // 2))
        cut_off = rng.sample(nodes, rng.randint(1, len(nodes) - 1))
        # Its calls go to all nodes in turn; the first batches are the most telling place to stop.
        calls = rng.choice((rng.randint(0, 8), 3, 3, 4, 6))
        count = calls * len(nodes) + rng.randint(1, 2 * len(nodes))
        patience = rng.choice((0.0, 0.002, 0.02, 2.0))
        if blind and self.faults.allowed(f"blind@{name}"):
            self.trace.add(name, f"never reaches {unseen}", f"blind@{name}")
            self._sever(name, unseen)

        def begin_to_fade() -> None:
            if self.faults.allowed(f"fade@{name}"):
                self.trace.add(name, f"loses {cut_off}, then its life", f"fade@{name}")
                self._sever(name, cut_off)
                self.loop.call_later(patience, self.writers[name].kill)

        if fade:
            self.network.when_sending(name, count, begin_to_fade)

    def _sever(self, name: str, nodes: list[str]) -> None:
        for node in nodes:
            self.network.cut((name, node))
            self.network.cut((node, name))

    def _tail(self, name: str, interval: float) -> None:
        process = self.readers[name] = Process(name, self.loop)
        self.oracle.positions[name] = 1
        follow = self.faults.random("follows the open segment", name).random() < 0.7

        strict = self.faults.random("believes no single node", name).random() < 0.3

        async def tail() -> None:
            standby = Standby(
                name, self.machines, self.oracle, self.trace, follow=follow, strict=strict
            )
            await standby.tail(interval)

        process.spawn(tail())

    def _someone_lives(self, horizon: float) -> bool:
        if self.loop.time() < horizon:
            return True
        return any(
            process.alive and any(not task.done() for task in process.tasks)
            for process in self.writers.values()
        )

    def _happen(self, event: Event) -> None:
        if event.kind.endswith("-at-disk") or event.kind in {"eio", "enospc"}:
            machine = self._victim(event)
            machine.strike(event.after, event.kind.removesuffix("-at-disk"), event.name)
            self.loop.call_later(event.lasts + 1.0, self.restart, machine)
            return
        if event.kind in WEAR_KINDS:
            wear(event, self)
            return
        if not self.faults.allowed(event.name):
            return
        match event.kind:
            case "partition" | "isolate" | "one-way":
                links = cuts(event, tuple(self.machines), (*self.writers, *self.readers))
                self.trace.add("net", f"{event.kind} for {event.lasts:.2f} s: {_named(links)}",
                               event.name)  # fmt: skip
                for link in links:
                    self.network.cut(link)
                    self.loop.call_later(event.lasts, self.network.heal, link)
            case "power-all":
                for machine in self.machines.values():
                    machine.cut_power("everywhere", event.name)
                    self.loop.call_later(event.lasts, self.restart, machine)
            case "kill" | "power":
                machine = self._victim(event)
                end = machine.kill if event.kind == "kill" else machine.cut_power
                end("by plan", event.name)
                self.loop.call_later(event.lasts, self.restart, machine)
            case _:
                self._strike_process(event)

    def _strike_process(self, event: Event) -> None:
        victims = list(self.writers.values())
        if event.kind == "freeze-node":
            victims = [m.process for m in self.machines.values() if m.process is not None]
        if not victims:
            return
        process = victims[event.victim % len(victims)]
        if event.kind == "kill-writer":
            self.trace.add(process.machine, "killed", event.name)
            process.kill()
            return
        self.trace.add(process.machine, f"frozen for {event.lasts:.2f} s", event.name)
        process.freeze()
        self.loop.call_later(event.lasts, process.thaw)

    def _victim(self, event: Event) -> Machine:
        return list(self.machines.values())[event.victim % len(self.machines)]

    def restart(self, machine: Machine) -> None:
        """Start it, as a supervisor does, when it is gone, or has stopped its journal."""
        if machine.up and machine.owner is not None and machine.owner.failed_because is not None:
            machine.kill("its journal has stopped")
        if not machine.up and not self.faults.over:
            machine.boot()

    # ---- small matters ----

    def look(self) -> None:
        bound = max(self.oracle.on_quorum, self.oracle.settled, *self.oracle.must, 0)
        if self.swarm.upkeep.byzantine:
            # A sender with the writer's epoch is believed, about edits that the node has.
            bound = max(bound, self.oracle.stored)
        for machine in self.machines.values():
            if not machine.up or machine.owner is None:
                continue
            if machine.owner.state.committed > bound:
                raise Violated("I11", f"{machine.name} takes more than {bound} for committed")
            stopped = machine.owner.failed_because
            if stopped is not None and not machine.disk_was_hurt:
                raise Violated("I15", f"{machine.name} stops on a sound disk: {stopped}")
        for violation in (self.oracle.violation, self.lanes.violation):
            if violation is not None:
                raise violation
        if self.loop.steps > _MAX_STEPS:
            raise Stuck(f"{self.loop.steps} steps, and no end")

    def _rate_of(self, machine: str) -> float:
        drift = self.swarm.upkeep.drift
        return 1 + drift * self.faults.random("clock", machine).uniform(-1, 1) if drift else 1.0

    def _read(self, path: Path, offset: int) -> bytes:
        """Read in place of the scrubber's own look at a file."""
        files = self.machines[path.parts[1]].platter.cached
        if path not in files:
            raise FileNotFoundError(str(path))
        return bytes(files[path].cached[offset:])

    def compare(self, machine: Machine) -> Any:  # noqa: ANN401
        def compare() -> None:
            assert machine.owner is not None
            state = machine.owner.state
            segments = {int(f): (int(s.last), s.finalized) for f, s in state.segments.items()}
            self.oracle.compare_loaded(machine.name, state.promised, segments)
            self.network.send_twins(machine.name)

        return compare

    def _blocking_delay(self, process: Process | None) -> float:
        delay = 0.0003 * (0.5 + self._disk_delay.random())
        if process is not None and (hangs := self.hangs.get(process.machine)):
            delay += hangs.pop(0)
        if process is not None and (name := self.faults.strikes("slow-disk", process.machine)):
            delay += self.faults.random(name).choice((0.01, 0.3, 1.5, 4.0))
            self.trace.add(process.machine, f"disk hangs for {delay:.2f} s", name)
        return delay

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note an unhandled error: a bug, unless its process was killed."""
        failure = context.get("exception")
        if failure is None or not isinstance(failure, Exception):
            return
        if isinstance(failure, Violated):
            note(self, failure)
        elif not self.faults.over:
            note(self, Violated("I15", f"nobody handled {failure!r}: {context['message']}"))


def _swarm_of(seed: int) -> Swarm:
    if seed >= comebacks.FIRST_REJOIN:
        return comebacks.drawn(seed)
    return ambush.drawn(seed) if seed >= ambush.FIRST else Swarm.drawn(seed)


def _named(links: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{a}>{b}" for a, b in links[:8]) + (" ..." if len(links) > 8 else "")
