"""Carries out the planned faults, and ends them all for the conclusion."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ha.rpc.errors import RpcError
from ha.service.errors import ServiceError
from ha.service.zkfc_client import ZkfcClient
from tests.simulation.engine.clock import Process
from tests.simulation.failover.cluster import address
from tests.simulation.whole.nemesis import (
    CLIENTS,
    DATANODE_KINDS,
    JOURNALS,
    READER,
    REPLACED_SECONDS,
    ZOOKEEPERS,
    Event,
)

if TYPE_CHECKING:
    from tests.simulation.whole.world import World


QUIET_SECONDS: Final = 0.5


class Strikes:
    """What happens to this world."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def happen(self, event: Event) -> None:
        if not self._world.faults.allowed(event.name):
            return
        name = self._host(event)
        self._world.trace.add(name, f"{event.kind} for {event.lasts:.2f} s", event.name)
        if event.kind in ("kill-journal", "power-journal", "power-all", "freeze-journal", "disk"):
            self._trouble_journal(event)
        elif event.kind in ("isolate", "orphan", "deposed", "cut-journal", "cut-clients"):
            self._cut(event, name)
        elif event.kind == "ambush":
            self._ambush(event, name)
        elif event.kind in DATANODE_KINDS:
            self._world.datanodes.happen(event)
        else:
            self._trouble_host(event, name)

    def _host(self, event: Event) -> str:
        """Return mostly the active's: there is most to be lost."""
        world = self._world
        owner = world.cluster.lock_owner()
        if owner is not None and event.victim % 3:
            return owner
        return world.swarm.hosts[event.victim // 3 % len(world.swarm.hosts)]

    def _trouble_host(self, event: Event, name: str) -> None:
        world, host = self._world, self._world.cluster.hosts[name]
        match event.kind:
            case "kill-namenode" | "kill-zkfc":
                host.kill(event.kind.removeprefix("kill-"), "killed", event.name)
            case "freeze-namenode" | "freeze-zkfc" | "freeze-host":
                what = event.kind.removeprefix("freeze-")
                for one in ("namenode", "zkfc") if what == "host" else (what,):
                    host.freeze(one)
                    self._later(event.lasts, partial(host.thaw, one))
            case "power-host":
                host.power_off(event.name)
                self._later(event.lasts, partial(world.power_on, name))
            case "expire":
                session = world.cluster.session_of(name)
                found = world.cluster.ensemble.sessions.get(session or 0)
                if found is not None:
                    world.cluster.ensemble.expire(found)
            case "zk-away":
                world.cluster.ensemble.go_away()
                self._later(event.lasts, world.cluster.ensemble.come_back)
            case "switchover":
                process = Process("op1", world.loop)
                world.others.append(process)
                process.spawn(self._switch_over(event))
            case _:
                raise AssertionError(event.kind)

    async def _switch_over(self, event: Event) -> None:
        """Ask some NameNode's controller to take over, as an operator does."""
        hosts = self._world.swarm.hosts
        target = address(hosts[event.victim % len(hosts)]).zkfc
        try:
            async with ZkfcClient.connected(
                target, deadline_seconds=2.0, connect=self._world.board.open
            ) as client:
                await client.graceful_failover(deadline_seconds=20.0)
        except (ServiceError, RpcError) as failure:
            self._world.trace.add("op1", f"no switchover: {failure}")

    def _trouble_journal(self, event: Event) -> None:
        world = self._world
        names = JOURNALS if event.kind == "power-all" else (JOURNALS[event.victim % 3],)
        for machine in (world.machines[name] for name in names):
            match event.kind:
                case "kill-journal":
                    machine.kill("killed", event.name)
                case "power-journal" | "power-all":
                    machine.cut_power("by plan", event.name)
                case "disk":
                    machine.strike(event.victim % 7, "kill" if event.victim % 2 else "power",
                                   f"{event.name}-struck")  # fmt: skip
                case _:
                    process = machine.process
                    if process is not None:
                        process.freeze()
                        self._later(event.lasts, process.thaw)
            self._later(event.lasts, partial(world.restart, machine))

    def _ambush(self, event: Event, name: str) -> None:
        """Strike a writer whose edits reach no quorum; each other time their JournalNode, too."""
        world, host = self._world, self._world.cluster.hosts[name]
        first = event.victim % 3
        one, other, third = (JOURNALS[(first + more) % 3] for more in range(3))
        self._cut_off(event, [(name, one), (name, other)], both=event.victim % 2 == 0)
        struck = event.lasts * 0.6
        if event.victim % 2:
            machine = world.machines[third]
            self._later(struck, partial(machine.kill, "ambushed", event.name))
            self._later(struck + REPLACED_SECONDS, partial(world.restart, machine))
        if event.victim % 5 < 3:
            self._later(struck, partial(host.kill, "namenode", "ambushed", event.name))
        else:
            self._later(struck, partial(host.freeze, "namenode"))
            self._later(struck + 4.0, partial(host.thaw, "namenode"))

    def _cut(self, event: Event, name: str) -> None:
        peers = [one for one in self._world.swarm.hosts if one != name]
        files = self._world.datanodes.machines
        others: Sequence[str] = [*ZOOKEEPERS, *peers, *JOURNALS, *CLIENTS, READER, *files]
        if event.kind in ("orphan", "deposed"):
            event = replace(event, lasts=REPLACED_SECONDS + event.lasts)
        if event.kind == "orphan":
            # It reaches the journal and its clients, and no one that could make it stop.
            others = [*ZOOKEEPERS, *peers]
        elif event.kind == "deposed":
            # It hears those who only read.  An active holds reads back behind a write that cannot
            # end: so what is written has a moment to end before the rest is cut.
            self._cut_off(event, [(name, one) for one in CLIENTS], both=True)
            others = [*ZOOKEEPERS, *peers, *JOURNALS]
            links = [(name, one) for one in others]
            self._later(QUIET_SECONDS, partial(self._cut_off, event, links, both=True))
            return
        elif event.kind == "cut-journal":
            others = JOURNALS if event.victim % 2 else JOURNALS[: 1 + event.victim % 3]
        elif event.kind == "cut-clients":
            others = CLIENTS
        both = event.kind in ("orphan", "deposed") or event.victim % 4 > 0
        self._cut_off(event, [(name, one) for one in others], both=both)

    def _cut_off(self, event: Event, links: Sequence[tuple[str, str]], *, both: bool) -> None:
        network = self._world.network
        for one, other in links:
            for link in ((one, other), (other, one)) if both else ((one, other),):
                network.cut(link)
                self._later(event.lasts, partial(network.heal, link))

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        self._world.loop.at(self._world.loop.now + seconds, act)
