"""Carries out the planned faults, and operators' wishes among them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.simulation.failover.ambush import Ambush
from tests.simulation.failover.nemesis import AIMED_KINDS, OPERATOR_KINDS, SILENT_KINDS, Event
from tests.simulation.failover.operators import Operators
from tests.simulation.failover.seams import WALL_STEPS
from tests.simulation.failover.silences import Silences

if TYPE_CHECKING:
    from tests.simulation.failover.world import World

_ZOOKEEPERS: Final = ("zk1", "zk2", "zk3")


class Strikes:
    """What happens to this world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._cluster = world.cluster
        self._names = list(world.swarm.names)
        self._operators = Operators(world)
        self._ambush = Ambush(world, self)
        self._silences = Silences(world, self)

    def happen(self, event: Event) -> None:
        if not self._world.faults.allowed(event.name):
            return
        name = self._victim(event)
        if event.kind in OPERATOR_KINDS:
            self._operators.operate(event, name)
        elif event.kind in SILENT_KINDS:
            self._silences.happen(event, name)
        elif event.kind in AIMED_KINDS:
            self._ambush.happen(event, name)
        elif event.kind.startswith("zk-"):
            self._trouble_zookeeper(event)
        elif event.kind in {"isolate", "partition", "cut-zookeeper", "orphan"}:
            self.cut(event, name)
        else:
            self.trouble_host(event, name)

    def operate(self, event: Event, kind: str, name: str, *, after: float = 0.0) -> None:
        """Let an operator wish this, in the course of another fault."""
        wish = replace(event, kind=kind)
        self._world.loop.call_later(after, self._operators.operate, wish, name)

    def _victim(self, event: Event) -> str:
        """Return mostly the active: there is most to be lost."""
        owner = self._cluster.lock_owner()
        if owner is not None and event.victim % 2:
            return owner
        return self._names[event.victim // 2 % len(self._names)]

    def trouble_host(self, event: Event, name: str) -> None:
        """Strike a machine or its processes."""
        world, host = self._world, self._cluster.hosts[name]
        match event.kind:
            case "kill-namenode" | "kill-zkfc":
                host.kill(event.kind.removeprefix("kill-"), "killed", event.name)
            case "freeze-namenode" | "freeze-zkfc" | "freeze-host":
                what = event.kind.removeprefix("freeze-")
                for one in ("namenode", "zkfc") if what == "host" else (what,):
                    host.freeze(one)
                    self._later(event, host.thaw, one)
                world.trace.add(name, f"{what} frozen for {event.lasts:.2f} s", event.name)
            case "power":
                host.power_off(event.name)
                self._later(event, self._power_on, name)
            case "unwell":
                world.trace.add(name, f"unwell for {event.lasts:.2f} s", event.name)
                self._cluster.conditions[name].unwell = "no space (simulated)"
                self._later(event, self._recover, name)
            case "unready":
                world.trace.add(name, f"not ready for {event.lasts:.2f} s", event.name)
                self._cluster.conditions[name].ready = False
                self._later(event, self._recover, name)
            case "wall-step":
                WALL_STEPS[name] = (event.other - 500) * 10.0
                world.trace.add(name, f"wall clock steps {WALL_STEPS[name]} s", event.name)
            case "expire":
                session = self._cluster.session_of(name)
                found = self._cluster.ensemble.sessions.get(session or 0)
                if found is not None:
                    world.trace.add(name, "its session is ended", event.name)
                    self._cluster.ensemble.expire(found)
            case _:
                raise AssertionError(event.kind)

    def _trouble_zookeeper(self, event: Event) -> None:
        ensemble, trace = self._cluster.ensemble, self._world.trace
        replica = _ZOOKEEPERS[event.victim % 3]
        trace.add(replica, f"{event.kind} for {event.lasts:.2f} s", event.name)
        match event.kind:
            case "zk-away":
                ensemble.go_away()
                self._later(event, ensemble.come_back)
            case "zk-restart":
                ensemble.restart(replica, event.lasts)
            case "zk-lag":
                ensemble.replicas[replica].lags_until = self._world.loop.now + event.lasts
            case _:
                raise AssertionError(event.kind)

    def cut(self, event: Event, name: str) -> None:
        peers = [one for one in self._names if one != name]
        others = [*_ZOOKEEPERS, *peers, *self._world.journal.names, "op1", "op2"]
        if event.kind == "partition":
            others = [peers[event.other % len(peers)]]
        elif event.kind == "cut-zookeeper":
            others = list(_ZOOKEEPERS)
        elif event.kind == "cut-journal":
            others = list(self._world.journal.names)
        elif event.kind == "orphan":
            # It reaches the journal and its clients, and no one that could make it stop.
            others = [*_ZOOKEEPERS, *peers]
            event = replace(event, lasts=6.0 + event.lasts)
        self.cut_off(event, name, others)

    def cut_off(self, event: Event, name: str, others: Sequence[str]) -> None:
        network = self._world.network
        self._world.trace.add(name, f"cut off from {others} for {event.lasts:.2f} s", event.name)
        for link in [(a, b) for one in others for a, b in ((name, one), (one, name))]:
            network.cut(link)
            self._later(event, network.heal, link)

    def _later(self, event: Event, act: object, *arguments: object) -> None:
        self._world.loop.call_later(event.lasts, act, *arguments)  # type: ignore[arg-type]

    def _power_on(self, name: str) -> None:
        self._cluster.hosts[name].power_on()
        if self._world.swarm.restarts:
            for what in ("namenode", "zkfc"):
                self._world.boot(name, what)

    def _recover(self, name: str) -> None:
        self._cluster.conditions[name].unwell = ""
        self._cluster.conditions[name].ready = True
