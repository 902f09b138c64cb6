"""Aimed faults: at the lock itself, at a port, and at the NameNode that is just being promoted."""

from contextvars import Context
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.simulation.failover.cluster import SERVICE_PORT
from tests.simulation.failover.hosts import Listener
from tests.simulation.failover.nemesis import Event
from tests.simulation.failover.zk_tree import Delete

if TYPE_CHECKING:
    from tests.simulation.failover.strikes import Strikes
    from tests.simulation.failover.world import World

_DELAYS: Final = {
    "relay": (0.05, 0.2, 0.5, 1.0),
    "stall": (0.0001,),
    "half-way": (0.0001, 0.002, 0.3, 1.5),
}
"""From the request to become active to the strike, in seconds; a lease is waited for 2.2 s."""


class Ambush:
    """Lies in wait for the next promotion."""

    def __init__(self, world: "World", strikes: "Strikes") -> None:
        self._world = world
        self._strikes = strikes
        self._waiting: list[Event] = []
        self._orphans: dict[str, str] = {}
        """The former active of each relay."""
        world.oracle.on_promotion = self._promoted

    def happen(self, event: Event, name: str) -> None:
        """Strike now, this NameNode, or from now on the next that is promoted."""
        match event.kind:
            case "unlock":
                self._unlock(event)
            case "deaf":
                self._deafen(event, name)
            case "overtake":
                self._overtake(event)
            case _:
                self._provoke(event)
                self._waiting.append(event)

    def _unlock(self, event: Event) -> None:
        """Delete the lock by hand; its owner's server may report that only later."""
        world, cluster = self._world, self._world.cluster
        session = cluster.ensemble.owner_of(cluster.lock)
        if session is None:
            return
        world.trace.add("oper", f"deletes the lock of {session.who}", event.name)
        if event.other % 2 and session.connection is not None:
            session.connection.replica.lags_until = world.loop.now + min(event.lasts, 3.0)
            self._strikes.operate(event, "cede", session.who, after=(event.other % 7) * 0.01)
        cluster.ensemble.commit(Delete(cluster.lock), "oper")

    def _deafen(self, event: Event, name: str) -> None:
        """End its RPC server, and not the NameNode: no request can make it stop."""
        listener = self._world.cluster.hosts[name].deafen(SERVICE_PORT)
        if listener is not None:
            self._world.trace.add(name, f"deaf for {event.lasts:.2f} s", event.name)
            self._world.loop.call_later(event.lasts, self._hears, listener)

    def _hears(self, listener: Listener) -> None:
        if listener.life.alive:
            listener.life.host.ports[SERVICE_PORT] = listener

    def _overtake(self, event: Event) -> None:
        """Give the lock to a standby that is asked to cede, and hears late that it is standby."""
        world, owner = self._world, self._world.cluster.lock_owner()
        others = [name for name in world.swarm.names if name != owner]
        if owner is None:
            return
        name = others[event.victim % len(others)]
        world.trace.add(name, "will say late that it is standby", event.name)
        world.cluster.conditions[name].answers_late = (0.1, 1.0)[event.other % 2]
        self._strikes.operate(event, "cede", name)
        expire = replace(event, kind="expire")
        world.loop.call_later(0.01, self._strikes.trouble_host, expire, owner)

    def _provoke(self, event: Event) -> None:
        """See to it that a NameNode is promoted soon."""
        owner = self._world.cluster.lock_owner()
        if owner is None:
            return
        others = [name for name in self._world.swarm.names if name != owner]
        if event.kind == "relay":
            self._orphans[event.name] = owner
            self._strikes.cut(replace(event, kind="orphan"), owner)
        elif event.other % 3 == 1:
            self._strikes.trouble_host(replace(event, kind="expire"), owner)
        elif event.other % 3 == 2:
            self._strikes.operate(event, "switchover", others[event.victim % len(others)])

    def _promoted(self, name: str) -> None:
        waiting, self._waiting = self._waiting, []
        if self._world.faults.over:
            return
        for event in waiting:
            orphan = self._orphans.pop(event.name, name)
            if orphan != name:
                # Its lease runs on, and no request can inform it that the journal is another's.
                alone = replace(event, kind="cut-journal", lasts=3.0 + event.lasts)
                self._strikes.cut(alone, orphan)
            delays = _DELAYS[event.kind]
            when = self._world.loop.now + delays[event.victim % len(delays)]
            # Not in the context of the controller that promotes: it may be frozen by then.
            Context().run(self._world.loop.at, when, self._strike, event, name)

    def _strike(self, event: Event, name: str) -> None:
        if self._world.faults.over:
            return
        strikes = self._strikes
        match event.kind:
            case "relay" if event.other % 2:
                strikes.trouble_host(replace(event, kind="kill-namenode"), name)
            case "relay":
                strikes.trouble_host(replace(event, kind="expire"), name)
            case "stall":
                longer = replace(event, kind="freeze-host", lasts=6.0 + event.lasts)
                strikes.trouble_host(longer, name)
            case "half-way":
                kind = "cede" if event.victim // 4 % 2 else "switchover"
                strikes.operate(event, kind, name)
            case _:
                raise AssertionError(event.kind)
