"""When service has returned, one more thing happens, and what must come of it is known.

A standby must take over, whatever its controller calls itself; and a pause or a drain must
leave open what it does not forbid.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from ha.conf.topology import HostPort
from ha.notices.model import Pause, encode_pause
from ha.notices.store import drains_path, pause_path
from ha.service.errors import ServiceError
from ha.service.model import ServiceState
from ha.service.zkfc_client import ZkfcClient
from tests.simulation.engine.clock import Process
from tests.simulation.engine.runs import note
from tests.simulation.engine.verdict import Violated
from tests.simulation.failover.cluster import ZKFC_PORT, ZOOKEEPER
from tests.simulation.failover.liveness import what_is_missing
from tests.simulation.failover.seams import BIRTH
from tests.simulation.failover.wire import DRAIN, PAUSE
from tests.simulation.failover.zk_tree import Create, Delete, SetData

if TYPE_CHECKING:
    from tests.simulation.failover.world import World

TRIALS: Final = (
    "trial-kill",
    "trial-pause-expire",
    "trial-pause-restart",
    "trial-pause-kill",
    "trial-pause-switch",
    "trial-drain",
    "trial-drain-kill",
)
BOUND_SECONDS: Final = 25.0
"""One round of fencing and promotion, and the pauses after the failures of before."""
_READ_SECONDS: Final = 1.5
"""Within this time every controller reads a notice, where nothing is wrong."""
_CUT_SECONDS: Final = 3.0
"""A client gives a silent connection up after half a session."""
_ZOOKEEPERS: Final = ("zk1", "zk2", "zk3")
_FORBIDDEN_SECONDS: Final = 6.0
"""For this number of seconds nothing may happen that a notice forbids."""


class Trial:
    """That of one world: drawn before its faults end, and stood when service has returned."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._cluster = world.cluster
        self.kind = Random(f"{world.seed} trial").choice(TRIALS)
        self._allowed = world.faults.allowed(self.kind)

    async def stand(self) -> None:
        """Play the trial, whatever it is; afterwards everything must be in order again."""
        if not self._allowed:
            return
        for process in self._world.operators:
            process.kill()  # one of them might end a notice of ours in the place of its own
        # What they have asked for is done all the same, even in a pause (seed 49011010).
        await self.until("L3", "its operators are gone", self._handed_over)
        active = self._cluster.lock_owner()
        if active is None:
            return
        self._world.trace.add("----", f"{self.kind}: {active} is active")
        match self.kind:
            case "trial-kill":
                self._kill(active)
                await self.until("L7", f"{active} was killed", lambda: self._another(active))
            case "trial-pause-expire" | "trial-pause-restart":
                await self._lose_the_session_in_a_pause(active)
            case "trial-pause-kill":
                await self._kill_in_a_pause(active)
            case "trial-pause-switch":
                await self._switch_in_a_pause(active)
            case "trial-drain":
                path = await self.notice(f"{drains_path(ZOOKEEPER)}/{active}")
                await self.until("L6", f"{active} is drained", lambda: self._another(active))
                self.end(path)
            case _:
                await self._kill_beside_a_drain(active)
        await self.until("I10", f"{self.kind} is over", lambda: what_is_missing(self._world))

    # ---- in a pause ------------------------------------------------------------------------

    async def _lose_the_session_in_a_pause(self, active: str) -> None:
        """Let the former active take its lock again, and no other."""
        path = await self.notice(pause_path(ZOOKEEPER))
        session = self._cluster.ensemble.owner_of(self._cluster.lock)
        assert session is not None
        if self.kind == "trial-pause-restart":
            self._cluster.hosts[active].kill("zkfc", self.kind)
            self._world.boot(active, "zkfc")
        # Cut off, it hears of the end of its session, and of no lock that was gone before.
        links = [(a, b) for zk in _ZOOKEEPERS for a, b in ((active, zk), (zk, active))]
        for link in links:
            self._world.network.cut(link)
        self._cluster.ensemble.expire(session)
        await self._look_on(_CUT_SECONDS)
        for link in links:
            self._world.network.heal(link)
        await self.until(
            "L5", f"{active} has lost its session in a pause", lambda: self.serves_not(active)
        )
        self.end(path)

    async def _kill_in_a_pause(self, active: str) -> None:
        path = await self.notice(pause_path(ZOOKEEPER))
        before = self._world.oracle.counts.takeovers
        self._kill(active)
        await self._look_on(_FORBIDDEN_SECONDS)
        if self._world.oracle.counts.takeovers != before:
            raise Violated("P1", f"{active} was killed in a pause, and somebody has taken over")
        self.end(path)

    async def _switch_in_a_pause(self, active: str) -> None:
        """Expect that what an operator asks for is done."""
        path = await self.notice(pause_path(ZOOKEEPER))
        target = next(name for name in self._cluster.hosts if name != active)
        self.ask_for(target)
        await self.until("L5", f"{target} was wished for", lambda: self.serves_not(target))
        self.end(path)

    def ask_for(self, target: str, *, in_vain: bool = False) -> None:
        """Ask for a hand-over as an operator; only one asked for ``in_vain`` may fail."""
        process = Process("op4", self._world.loop)
        self._world.operators.append(process)
        process.spawn(self._ask(target, in_vain=in_vain))

    async def _ask(self, target: str, *, in_vain: bool) -> None:
        try:
            async with ZkfcClient.connected(
                HostPort(target, ZKFC_PORT),
                deadline_seconds=2.0,
                connect=self._world.around.connect,
            ) as client:
                await client.graceful_failover(deadline_seconds=BOUND_SECONDS)
        except ServiceError as failure:
            if not self._world.closing and not in_vain:
                why = f"a hand-over to {target} fails in a pause: {failure}"
                note(self._world, Violated("L5", why))

    # ---- next to a drain ------------------------------------------------------------------

    async def _kill_beside_a_drain(self, active: str) -> None:
        """Expect that the drained one does not take over; another does, if there is one."""
        drained = next(name for name in self._cluster.hosts if name != active)
        path = await self.notice(f"{drains_path(ZOOKEEPER)}/{drained}")
        self._kill(active)
        ends = self._world.loop.now + _FORBIDDEN_SECONDS
        others = [name for name in self._cluster.hosts if name not in (active, drained)]
        if others:
            await self.until(
                "L7", f"{active} was killed", lambda: self.serves_not(*others, besides=active)
            )
        await self._look_on(ends - self._world.loop.now)
        node = self._cluster.namenode(drained)
        if node is not None and node.state is ServiceState.ACTIVE:
            raise Violated("P1", f"{drained} is drained, and has become active")
        self.end(path)

    # ---- what they are made of -------------------------------------------------------------

    def _handed_over(self) -> str | None:
        """Return what operators asked for that is still under way, or what is missing after it."""
        wished = [one for one in self._cluster.hosts if self._world.oracle.conduct.is_wished(one)]
        return f"a hand-over to {wished} is under way" if wished else what_is_missing(self._world)

    def _kill(self, name: str) -> None:
        self._cluster.hosts[name].kill("namenode", self.kind)

    async def notice(self, path: str) -> str:
        """Write it as an operator; all controllers read it."""
        ensemble = self._cluster.ensemble
        above = path.rpartition("/")[0]
        if ensemble.znode(above) is None:
            ensemble.commit(Create(above, b"", 0, ZOOKEEPER.acl), "operator")
        since = BIRTH + timedelta(seconds=self._world.loop.now)
        pause = Pause(owner="op", reason="trial", since=since, until=None)
        content = encode_pause(pause)
        there = ensemble.znode(path) is not None  # by an operator who had given up
        made = SetData(path, content) if there else Create(path, content, 0, ZOOKEEPER.acl)
        ensemble.commit(made, "operator")
        await self._look_on(_READ_SECONDS)
        await self.until("L5", f"{path} was written", lambda: self._unread(path))
        return path

    def _unread(self, path: str) -> str | None:
        """Return which were not shown a notice: an older request may keep a controller waiting."""
        kind, whom = PAUSE, list(self._cluster.hosts)
        if path != pause_path(ZOOKEEPER):
            kind, whom = DRAIN, [path.rpartition("/")[2]]
        unread = [name for name in whom if kind not in self._cluster.wire.told_bars(name)]
        return f"{unread} were not shown it" if unread else None

    def end(self, path: str) -> None:
        if self._cluster.ensemble.znode(path) is not None:
            self._cluster.ensemble.commit(Delete(path), "operator")

    async def _look_on(self, seconds: float) -> None:
        ends = self._world.loop.now + seconds
        while self._world.loop.now < ends:
            await asyncio.sleep(0.25)
            self._world.look()

    def serves_not(self, *names: str, besides: str = "") -> str | None:
        owner = self._cluster.lock_owner()
        if owner is None or owner not in (*names, besides):
            return f"{owner or 'nobody'} has the lock"
        node = self._cluster.namenode(owner)
        if node is None or not self._world.oracle.conduct.serves(owner):
            return f"{owner} has the lock, and was not made active under it"
        return None if node.epoch == self._world.journal.epoch else f"{owner} cannot write"

    def _another(self, active: str) -> str | None:
        return self.serves_not(*(name for name in self._cluster.hosts if name != active))

    async def until(self, invariant: str, what: str, missing: Callable[[], str | None]) -> None:
        began = self._world.loop.now
        while (why := missing()) is not None:
            if self._world.loop.now > began + BOUND_SECONDS:
                late = f"{BOUND_SECONDS:.0f} s after that {why}"
                raise Violated(invariant, f"{self.kind}: {what}, and {late}")
            await self._look_on(0.25)
