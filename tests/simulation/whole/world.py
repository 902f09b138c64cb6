"""One seed's world: faults under clients, then calm, and a judgement of all that they heard."""

import asyncio
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final
from unittest.mock import patch

import aiohttp
import grpc.aio

from ha.conf.topology import HostPort
from ha.daemon.lazy_import import load
from ha.rpc.protocol import Catalogue
from ha.zkfc.process.controller import ElectionImpossible
from ha.zkfc.surroundings.positions import Position
from journal.links import grpc_link
from journal.node.faces import transfer
from journal.writer import batch_stream
from namenode_sim.blocks.errors import MapBroken
from namenode_sim.term.role import Role
from tests.campaigns.soak.faults.history import UNKNOWN, Ask, Call, paths_of
from tests.campaigns.soak.faults.linearizability import judge
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.network import Network
from tests.simulation.engine.runs import Outcome, note, to_the_end, unhandled, unwind
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Stuck, Violated
from tests.simulation.failover.cluster import SERVICE_PORT, ZOOKEEPER, Cluster, settings
from tests.simulation.failover.controllers import new_controller
from tests.simulation.failover.fencing_seam import Fencers
from tests.simulation.failover.hosts import Host, Life, WorldNetwork
from tests.simulation.failover.rpc_seam import Switchboard, serve
from tests.simulation.failover.seams import surroundings, traced
from tests.simulation.failover.world import METHODS
from tests.simulation.failover.zk_ensemble import Ensemble
from tests.simulation.failover.zk_tree import Create
from tests.simulation.journal.grpc_seam import SimulatedNames
from tests.simulation.journal.grpc_seam import Switchboard as JournalSwitchboard
from tests.simulation.journal.http_seam import session_maker
from tests.simulation.journal.lane_seam import LaneBoard
from tests.simulation.journal.machine import Machine, open_simulated
from tests.simulation.journal.swarm import Upkeep
from tests.simulation.whole.clients import Client, Paths
from tests.simulation.whole.datanodes import Datanodes
from tests.simulation.whole.namenode import NameNodeLife
from tests.simulation.whole.nemesis import CLIENTS, JOURNALS, READER, Swarm, plan
from tests.simulation.whole.strikes import Strikes

load("aiohttp")
"""Or a process's first world waits for it as long as the real machine takes."""

_MAX_STEPS: Final = 1_500_000
_FIRST_ACTIVE_BY: Final = 15.0
CALM_SECONDS: Final = 60.0
"""With all faults gone, clients are answered within this number of seconds."""
AUDIT_SECONDS: Final = 30.0


@dataclass(slots=True)
class Verdict:
    """What was found first."""

    violation: Violated | None = None


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
        self._disk_delay = self.faults.random("disk delay")
        self.loop = VirtualLoop(self._blocking_delay)
        self.trace = Trace(lambda: self.loop.now, keep=keep_trace)
        self.inner = Network(self.loop, self.faults, self.trace, held=self.swarm.held)
        self.network = WorldNetwork(self.inner)
        self.machines = {name: self._machine(name) for name in JOURNALS}
        servers: Any = self.machines
        self.lanes = LaneBoard(self.inner, servers)
        ensemble = Ensemble(self.loop, self.network, self.faults, self.trace)
        hosts = {name: Host(name, self.loop, self.network, self.trace) for name in self.swarm.hosts}
        self.cluster = Cluster(self.loop, self.network, ensemble, hosts)
        self.board = Switchboard(self.loop, self.network, hosts)
        fencers = Fencers(hosts, self.network, self.faults, self.trace, self.loop)
        self.around = surroundings(self.board, ensemble, fencers, self._position)
        self.oracle = Verdict()
        self.namenodes: dict[str, NameNodeLife] = {}
        self.datanodes = Datanodes(self)
        self.clients: list[Client] = []
        self.others: list[Process] = []
        self.takeovers = self.checks = 0
        self._claims: dict[int, set[str]] = {}
        self._gave_up: str | None = None
        self._pids = count(100)
        self._lives: list[Life] = []
        for host in hosts.values():
            host.ended = self._ended
        self.loop.set_exception_handler(unhandled(self, "W5", lambda: self.closing))

    def _machine(self, name: str) -> Machine:
        machine = Machine(name, self.loop, self.faults, self.trace)
        machine.peers, machine.takes_lanes = JOURNALS, self.swarm.lanes
        machine.cache_bytes = 20_000
        machine.upkeep = Upkeep(sync_seconds=1.0 if self.swarm.synced else 0.0)
        machine.format()
        return machine

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the simulated ways to a JournalNode in place of the real ones; trace the logs."""
        servers: Any = self.machines
        board = JournalSwitchboard(self.inner, servers, self.lanes)
        with (
            traced(self.trace),
            patch.object(grpc.aio, "insecure_channel", board.channel),
            patch.object(grpc_link, "NAMES", SimulatedNames()),
            patch.object(aiohttp, "ClientSession", session_maker(self.inner, servers)),
            patch.object(self.loop, "create_connection", self.lanes.connect),
            patch.object(batch_stream, "own_tls", lambda: self if self.swarm.beside else None),
            patch.object(transfer, "_open", open_simulated),
        ):
            yield

    async def play(self) -> None:
        """Play faults under clients, then calm."""
        rng = self.faults.random("plan")
        for path in ("/hadoop-ha", ZOOKEEPER.scope):
            self.cluster.ensemble.commit(Create(path, b"", 0, ZOOKEEPER.acl), "format")
        for machine in self.machines.values():
            machine.boot()
        for name in self.swarm.hosts:
            self.boot(name, "namenode")
            self.loop.at(rng.uniform(0, 0.5), self.boot, name, "zkfc")
        self.datanodes.start()
        while not self._actives():
            await asyncio.sleep(0.2)
            self.look()
            if self.loop.now > _FIRST_ACTIVE_BY:
                raise Violated("W4", f"nobody is active after {_FIRST_ACTIVE_BY} s")
        self.faults.over = False
        paths = Paths()
        for number, where in enumerate(CLIENTS):
            client = self._client(number, where)
            client.process.spawn(client.wander(paths, self.faults.random("client", number)))
        reader = self._client(len(CLIENTS), READER)
        reader.process.spawn(reader.read(paths, self.faults.random("client", READER)))
        self.datanodes.write()
        begins, strikes = self.loop.now, Strikes(self)
        for event in plan(self.swarm, rng, begins):
            self.loop.at(event.at, strikes.happen, event)
        while self.loop.now < begins + self.swarm.horizon:
            await asyncio.sleep(0.25)
            self.look()
        await self._conclude()

    # ---- processes -------------------------------------------------------------------------

    def boot(self, name: str, what: str) -> None:
        """Start a process on a host, if it can be and is not there."""
        host = self.cluster.hosts[name]
        if not host.on or host.life(what) is not None or self.closing:
            return
        life = host.begin(what, next(self._pids))
        self._lives.append(life)
        self.trace.add(name, f"{what} starts as {life.pid}")
        life.process.spawn(self._serve(life) if what == "namenode" else self._control(life))

    def restart(self, machine: Machine) -> None:
        """Start it, as a supervisor does, when it is gone, or has stopped its journal."""
        if machine.up and machine.owner is not None and machine.owner.failed_because is not None:
            machine.kill("its journal has stopped")
        if not machine.up and not self.closing:
            machine.boot()

    def power_on(self, name: str) -> None:
        self.cluster.hosts[name].power_on()
        for what in ("namenode", "zkfc"):
            self.boot(name, what)

    async def _serve(self, life: Life) -> None:
        await asyncio.sleep(self.faults.random("start", life.pid).uniform(0.05, 1.0))
        node = NameNodeLife(
            life,
            JOURNALS,
            self.loop,
            follows=self.swarm.follows,
            roll_seconds=self.swarm.roll_seconds,
            datanodes=self.swarm.datanodes,
        )
        self.namenodes[life.host.name] = node
        self.datanodes.serves(life.host.name, life.process)
        node.namenode.listen_for_roles(lambda role: self._became(node, role))
        serve(life.host, life, SERVICE_PORT, Catalogue.of(node.protocols))
        why = await node.run()
        life.host.kill("namenode", why)

    async def _control(self, life: Life) -> None:
        name = life.host.name
        methods = METHODS.get(self.swarm.fencing, METHODS["epoch"])
        own = settings(name, self.swarm.hosts, methods, ranked=False, witnessed=True)
        controller = self.cluster.controllers[name] = new_controller(own, self.around)
        try:
            await controller.run()
        except ElectionImpossible as failure:
            self._gave_up = f"{name}: {failure}"
            life.host.kill("zkfc", "gave up")

    def _client(self, number: int, machine: str) -> Client:
        client = Client(number, Process(machine, self.loop), self.board, self.swarm.hosts)
        self.clients.append(client)
        return client

    def _ended(self, life: Life) -> None:
        if life.name == "namenode":
            self.namenodes.pop(life.host.name, None)
            self.datanodes.ended(life.host.name)
        if not self.closing:
            seconds = self.faults.random("restart", life.pid).uniform(0.3, 4.0)
            self.loop.at(self.loop.now + seconds, self.boot, life.host.name, life.name)

    async def _position(self, http: HostPort, *, deadline_seconds: float) -> Position:
        """Return what a NameNode's /status says of its epoch."""
        del deadline_seconds
        node = self.namenodes.get(http.host)
        if node is None or not node.life.runs:
            raise ConnectionRefusedError("refused (simulated)")
        return Position(epoch=node.namenode.epoch)

    # ---- what must hold --------------------------------------------------------------------

    def _became(self, node: NameNodeLife, role: Role) -> None:
        if role is not Role.ACTIVE:
            return
        self.takeovers += 1
        epoch, name = node.namenode.epoch or 0, f"{node.life.host.name}.{node.life.pid}"
        claims = self._claims.setdefault(epoch, set())
        claims.add(name)
        if len(claims) > 1:
            note(self, Violated("W2", f"{' and '.join(sorted(claims))} are active in {epoch}"))

    def _actives(self) -> list[str]:
        return [name for name, node in self.namenodes.items() if node.role is Role.ACTIVE]

    def look(self) -> None:
        """Check what must hold at any time."""
        self.checks += 1
        for machine in self.machines.values():
            owner = machine.owner
            if machine.up and owner is not None and owner.failed_because is not None:
                raise Violated("W3", f"{machine.name} stops: {owner.failed_because}")
        if self._gave_up is not None:
            raise Violated("W5", f"a controller gave up: {self._gave_up}")
        for found in (self.oracle.violation, self.lanes.violation):
            if found is not None:
                raise found
        self._check_maps()
        if self.loop.steps > _MAX_STEPS:
            raise Stuck(f"{self.loop.steps} steps, and no end")

    def _check_maps(self) -> None:
        for name, node in self.namenodes.items():
            try:
                node.keeper.cluster.blocks.map.check()
            except MapBroken as broken:
                raise Violated("W7", f"{name}: {broken}") from broken

    async def _conclude(self) -> None:
        """End all faults; clients are answered, every path is read again; then judge all."""
        self.trace.add("-", "all faults end")
        self.faults.over = True
        self.network.heal_all()
        self.cluster.ensemble.come_back()
        self.cluster.ensemble.heal()
        for machine in self.machines.values():
            machine.platter.blows.clear()
            if machine.process is not None:
                machine.process.thaw()
            self.restart(machine)
        for name, host in self.cluster.hosts.items():
            for what in ("namenode", "zkfc"):
                host.thaw(what)
            self.power_on(name)
        self.datanodes.heal()
        await self._answered()
        for client in self.clients:
            client.process.kill()
        auditor = self._client(len(self.clients), "auditor")
        told = [call for client in self.clients for call in client.told]
        audit = auditor.process.spawn(self._audit(auditor, paths_of(told)))
        await asyncio.wait({audit}, timeout=AUDIT_SECONDS)
        self.look()
        if not audit.done():
            raise Violated("W4", f"paths cannot be read {AUDIT_SECONDS:g} s after all is well")
        audit.result()
        await self.datanodes.audit()
        self.look()
        self._judge()

    async def _answered(self) -> None:
        began = self.loop.now
        while True:
            known = [call for client in self.clients for call in client.told if call.known]
            if any(call.began > began for call in known):
                return
            if self.loop.now > began + CALM_SECONDS:
                raise Violated("W4", f"nobody is answered {CALM_SECONDS:g} s after all faults")
            await asyncio.sleep(0.25)
            self.look()

    async def _audit(self, auditor: Client, paths: list[str]) -> None:
        for path in paths:
            while await auditor.ask(Ask.READ, path) == UNKNOWN:
                await asyncio.sleep(0.1)

    def _judge(self) -> None:
        calls: list[Call] = [call for client in self.clients for call in client.told]
        self.trace.add("-", f"{len(calls)} calls, {sum(call.known for call in calls)} answered")
        judged = judge(calls)
        if judged.violations:
            wrong = judged.violations[0]
            stuck = "; ".join(
                f"{call.began:.3f}-{call.ended:.3f} c{call.client} {call.ask} {call.path} "
                f"{call.value} -> {call.answer or 'done'} {call.by}"
                for call in wrong.stuck
            )
            raise Violated("W1", f"no order explains what clients were told of {wrong.path}: "
                                 f"{stuck}")  # fmt: skip
        if judged.undecided:
            raise Violated("W1", f"undecided, which is no proof: {judged.undecided[0]}")

    # ---- small matters ---------------------------------------------------------------------

    def counts(self) -> tuple[int, int]:
        """Return how many times all was looked at, and how many calls were answered."""
        answered = sum(call.known for client in self.clients for call in client.told)
        return self.checks, answered + sum(writer.told for writer in self.datanodes.writers)

    def end(self) -> None:
        """Unwind every process, so that nothing is left for the collector to complain about."""
        self.closing = self.faults.over = True
        own = [machine.process for machine in self.machines.values() if machine.process is not None]
        clients = [client.process for client in self.clients]
        lives = [life.process for life in self._lives]
        for process in (*lives, *clients, *self.others, *own):
            process.kill()
        self.datanodes.end()
        unwind(self.loop)

    def _blocking_delay(self, process: Process | None) -> float:
        delay = 0.0003 * (0.5 + self._disk_delay.random())
        if process is not None and (name := self.faults.strikes("slow-disk", process.machine)):
            delay += self.faults.random(name).choice((0.01, 0.3, 1.5, 4.0))
        return delay
