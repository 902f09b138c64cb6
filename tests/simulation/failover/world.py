"""One seed's world: hosts, controllers, ensemble, faults, operators; safety, then liveness."""

import asyncio
from collections.abc import Callable, Set
from contextlib import AbstractContextManager
from itertools import count
from typing import Final

from fencing.model import JournalEpochMethod, MethodSpec, ShellMethod, SshMethod
from ha.conf.topology import HostPort
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.rpc.protocol import Catalogue
from ha.service.ha_service import ha_service_protocol
from ha.service.journal_witness import journal_witness_protocol
from ha.zkfc.process.controller import ElectionImpossible
from ha.zkfc.process.kept_session import close_inherited
from ha.zkfc.surroundings.positions import Position
from tests.simulation.engine.clock import Process, VirtualLoop
from tests.simulation.engine.faults import Faults
from tests.simulation.engine.network import Network
from tests.simulation.engine.runs import Outcome, to_the_end, unhandled, unwind
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Stuck, Violated
from tests.simulation.failover import late_notices, places
from tests.simulation.failover.cluster import SERVICE_PORT, ZOOKEEPER, Cluster, settings
from tests.simulation.failover.controllers import new_controller
from tests.simulation.failover.fencing_seam import POWER, Fencers
from tests.simulation.failover.hosts import Host, Life, WorldNetwork
from tests.simulation.failover.journal_nodes import QuorumJournal
from tests.simulation.failover.liveness import demand_service
from tests.simulation.failover.namenode import Condition, Journal, NameNode, SharedLog
from tests.simulation.failover.nemesis import Swarm, plan, plan_aimed, plan_silent
from tests.simulation.failover.oracle import Oracle
from tests.simulation.failover.rpc_seam import Switchboard, serve
from tests.simulation.failover.seams import surroundings, traced
from tests.simulation.failover.strikes import Strikes
from tests.simulation.failover.trials import Trial
from tests.simulation.failover.zk_ensemble import Ensemble
from tests.simulation.failover.zk_tree import Create

_MAX_STEPS: Final = 400_000
_FIRST_ACTIVE_BY: Final = 8.0
METHODS: Final[dict[str, tuple[MethodSpec, ...]]] = {
    "ssh": (SshMethod(None, 22),),
    "power": (ShellMethod(POWER),),
    "ssh+power": (SshMethod(None, 22), ShellMethod(POWER)),
    "epoch": (JournalEpochMethod(),),
    "ssh+epoch": (SshMethod(None, 22), JournalEpochMethod()),
}


def run(seed: int, *, only: Set[str] | None = None, keep_trace: bool = False) -> Outcome:
    """Play one seed; ``only`` names the faults that may happen, None allows all that are drawn."""
    world = World(seed, only, keep_trace)
    return to_the_end(world, world.play())


class World:
    """Everything of one run."""

    def __init__(self, seed: int, only: Set[str] | None, keep_trace: bool) -> None:
        self.seed = seed
        self.swarm = places.drawn(seed) if seed >= places.FIRST else Swarm.drawn(seed)
        self.faults = Faults(seed, self.swarm.rates, only)
        self.faults.over = True  # until there is something to hurt
        self.loop = VirtualLoop(lambda _process: 0.0)
        self.loop.rate_of = self._rate_of
        self.trace = Trace(lambda: self.loop.now, keep=keep_trace)
        inner = Network(self.loop, self.faults, self.trace, held=self.swarm.held)
        self.network = WorldNetwork(inner)
        ensemble = Ensemble(self.loop, self.network, self.faults, self.trace)
        hosts = {name: Host(name, self.loop, self.network, self.trace) for name in self.swarm.names}
        self.cluster = Cluster(self.loop, self.network, ensemble, hosts)
        self.oracle = Oracle(self.cluster, self.trace)
        self.journal: SharedLog = Journal(self.network, self.loop, self.oracle)
        if self.swarm.witnessed:
            nodes = QuorumJournal(
                self.network, self.loop, self.oracle, self._rate_of, java=self.swarm.java
            )
            self.oracle.removals.watch(nodes, reliable=self.swarm.reliable, java=self.swarm.java)
            self.journal = nodes
        self.board = Switchboard(self.loop, self.network, hosts)
        self.fencers = Fencers(hosts, self.network, self.faults, self.trace, self.loop)
        self.operators: list[Process] = []
        self.gave_up: str | None = None
        self._pids = count(100)
        self._lives: list[Life] = []
        self._sessions: dict[str, tuple[SessionTicket | None, Life]] = {}
        self.around = surroundings(self.board, ensemble, self.fencers, self._position)
        self._connect()
        self.loop.set_exception_handler(unhandled(self, "I15", lambda: self.closing))

    def _connect(self) -> None:
        self.cluster.ensemble.on_commit = self.oracle.committed
        wire, conduct, unasked = self.cluster.wire, self.oracle.conduct, self.oracle.unasked
        wire.on_wish, wire.on_leaving = conduct.wishes, unasked.left
        wire.on_removal = self.oracle.removals.sent
        conduct.on_ceded = unasked.ceded
        self.board.on_call = self.oracle.called
        self.board.on_answer = self.oracle.answered
        self.board.on_begin, self.board.on_end = conduct.begun_call, self.oracle.ended_call
        self.fencers.on_success = self._fenced
        for host in self.cluster.hosts.values():
            host.ended = self._ended
            host.struck = lambda life: self.oracle.struck(life.host.name)
            self.cluster.conditions[host.name] = Condition()

    def in_place(self) -> AbstractContextManager[None]:
        """Send what the product logs to the trace."""
        return traced(self.trace)

    async def play(self) -> None:
        rng = self.faults.random("plan")
        for path in ("/hadoop-ha", ZOOKEEPER.scope):
            self.cluster.ensemble.commit(Create(path, b"", 0, ZOOKEEPER.acl), "format")
        for name in self.cluster.hosts:
            self.boot(name, "namenode")
            self.loop.at(rng.uniform(0, 0.5), self.boot, name, "zkfc")
        await self._first_active()
        self.faults.over = False
        strikes = Strikes(self)
        if self.swarm.placed:
            places.Places(self, strikes)
        begins = self.loop.now
        aimed = plan_aimed(self.swarm, self.faults.random("aimed"), begins)
        silent = plan_silent(self.swarm, self.faults.random("silent"), begins)
        for event in (*plan(self.swarm, rng, begins), *aimed, *silent):
            self.loop.at(event.at, strikes.happen, event)
        trial, late = Trial(self), late_notices.drawn(self)
        while self.loop.now < begins + self.swarm.horizon:
            await asyncio.sleep(0.5)
            self.look()
        await demand_service(self)
        await trial.stand()
        if late:
            await late_notices.stand(self, trial)

    async def _first_active(self) -> None:
        while not self.oracle.counts.takeovers:
            await asyncio.sleep(0.2)
            self._check_all_go_on()
            if self.loop.now > _FIRST_ACTIVE_BY:
                raise Violated("L1", f"nobody is active after {_FIRST_ACTIVE_BY} s")

    # ---- processes -------------------------------------------------------------------------

    def boot(self, name: str, what: str) -> None:
        """Start a process on a host, if it can be and is not there."""
        host = self.cluster.hosts[name]
        if not host.on or host.life(what) is not None or self.closing:
            return
        life = host.begin(what, next(self._pids))
        self._lives.append(life)
        self.trace.add(name, f"{what} starts as {life.pid}")
        if what == "namenode":
            self._boot_namenode(life)
        else:
            life.process.spawn(self._control(life))

    def _boot_namenode(self, life: Life) -> None:
        name = life.host.name
        node = NameNode(
            life, self.journal, self.oracle, self.faults, self.trace,
            self.cluster.conditions[name], aborts=self.swarm.aborts,
        )  # fmt: skip
        self.cluster.nodes[name] = node
        protocols = [ha_service_protocol(node), journal_witness_protocol(node.writer_silence)]
        serve(life.host, life, SERVICE_PORT, Catalogue.of(protocols))
        seconds = self.faults.random("start", life.pid).uniform(0.05, 1.5)
        life.process.spawn(node.start(seconds))

    async def _control(self, life: Life) -> None:
        name = life.host.name
        own = settings(
            name,
            self.swarm.names,
            METHODS[self.swarm.fencing],
            ranked=self.swarm.ranked,
            witnessed=self.swarm.witnessed,
        )
        ticket, keep = self._kept_session(life)
        controller = new_controller(own, self.around, ticket, keep)
        self.cluster.controllers[name] = controller
        contact = asyncio.Event()
        contact.set()
        life.process.spawn(close_inherited(controller, contact))
        try:
            await controller.run()
        except ElectionImpossible as failure:
            self.trace.add(name, f"gives up: {failure}")
            self.gave_up = f"{name}: {failure}"
            life.host.kill("zkfc", "gave up")

    def _kept_session(
        self, life: Life
    ) -> tuple[SessionTicket | None, Callable[[SessionTicket | None], None]]:
        """Return the session of a controller that has ended on this host, and how ours is kept."""
        name = life.host.name
        if not self.swarm.keeps:
            return None, lambda _: None

        def keep(ticket: SessionTicket | None) -> None:
            self._sessions[name] = (ticket, life)

        ticket, holder = self._sessions.get(name, (None, life))
        return (None if holder.runs else ticket), keep

    def _ended(self, life: Life) -> None:
        if life.name == "namenode":
            self.oracle.ended(life.host.name)
        else:
            self.oracle.conduct.died(life.host.name)
            self.oracle.removals.ended(life.host.name)
        if self.swarm.restarts and not self.closing:
            seconds = self.faults.random("restart", life.pid).uniform(0.3, 6.0)
            self.loop.call_later(seconds, self.boot, life.host.name, life.name)

    def _fenced(self, victim: str, by: str, true: bool | None) -> None:
        self.oracle.fenced(victim, by, true)

    async def _position(self, http: HostPort, *, deadline_seconds: float) -> Position:
        """Return what a NameNode's /status says of its epoch."""
        node = self.cluster.namenode(http.host)
        if node is None or not node.life.runs:
            raise ConnectionRefusedError("refused (simulated)")
        return Position(epoch=node.epoch or None)

    # ---- small matters ---------------------------------------------------------------------

    closing = False

    def look(self) -> None:
        """Check what must hold now and then."""
        self.oracle.look()
        self._check_all_go_on()
        if self.loop.steps > _MAX_STEPS:
            raise Stuck(f"{self.loop.steps} steps, and no end")

    def _check_all_go_on(self) -> None:
        if self.gave_up is not None:
            raise Violated("L2", f"a controller gave up: {self.gave_up}")

    def counts(self) -> tuple[int, int]:
        """Return how many states were checked, and how many takeovers there were."""
        return self.oracle.counts.checks, self.oracle.counts.takeovers

    def end(self) -> None:
        """Unwind every process, so that nothing is left for the collector to complain about."""
        self.closing = self.faults.over = True
        for process in [*(life.process for life in self._lives), *self.operators]:
            process.kill()
        unwind(self.loop)

    def _rate_of(self, machine: str) -> float:
        drift = self.swarm.drift
        return 1 + drift * self.faults.random("clock", machine).uniform(-1, 1) if drift else 1.0
