"""Simulated operators: switchovers, cedes, pauses and drains, and the answers that they get."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ha.conf.topology import HostPort
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.znodes import connected
from ha.notices.model import Drain, Pause
from ha.notices.store import clear_drain, clear_pause, write_drain, write_pause
from ha.service.errors import ServiceError
from ha.service.zkfc_client import ZkfcClient
from tests.simulation.engine.clock import Process
from tests.simulation.engine.runs import note
from tests.simulation.engine.verdict import Violated
from tests.simulation.failover.cluster import ZKFC_PORT, ZOOKEEPER
from tests.simulation.failover.liveness import what_is_missing
from tests.simulation.failover.nemesis import Event
from tests.simulation.failover.seams import BIRTH

if TYPE_CHECKING:
    from tests.simulation.failover.world import World

_BACK_SECONDS: Final = 1.5
_PATIENCE_SECONDS: Final = 60.0
_RIVALS_SECONDS: Final = 10.0
"""Of two hand-overs at once each must have ended by then, where nothing else is wrong."""
_WHO: Final = "oper"


class Operators:
    """Each wish is somebody's process; two of them may be at work at once."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._names = world.swarm.names
        self._rivals: dict[str, list[bool]] = {}
        """How the two of each pair ended."""

    def operate(self, event: Event, name: str) -> None:
        targets = [name]
        if event.kind == "two-switchovers":
            targets = [name, next(one for one in self._names if one != name)]
        for number, target in enumerate(targets, start=1):
            process = Process(f"op{number}", self._world.loop)
            self._world.operators.append(process)
            if self._world.swarm.rivals:
                process.spawn(self._rival(event, target, (number - 1) * event.lasts))
            elif event.kind in {"pause", "drain"}:
                process.spawn(self._notice(event, target))
            else:
                process.spawn(self._switch(event, target))

    async def _rival(self, event: Event, target: str, after: float) -> None:
        """Wish as one of two for different NameNodes: one gets its wish, and each an answer."""
        await asyncio.sleep(after)
        began, world = self._world.loop.now, self._world
        outcomes = self._rivals.setdefault(event.name, [])
        outcomes.append(await self._switch(event, target))
        if world.closing:
            return
        lasted = world.loop.now - began
        if lasted > _RIVALS_SECONDS:
            note(world, Violated("L3", f"a hand-over to {target}, one of two, took {lasted:.1f} s"))
        if len(outcomes) == 2 and not any(outcomes):
            note(
                world, Violated("L3", "of two hand-overs at once both failed, and nothing is wrong")
            )

    async def _switch(self, event: Event, target: str) -> bool:
        world, began = self._world, self._world.oracle.asks()
        try:
            client = await ZkfcClient.open(
                HostPort(target, ZKFC_PORT), deadline_seconds=2.0, connect=world.around.connect
            )
            if event.kind == "cede":
                world.trace.add(_WHO, f"asks {target} to cede", event.name)
                await client.cede_active(round(event.lasts * 1000), deadline_seconds=10.0)
                return True
            world.trace.add(_WHO, f"wants {target} active", event.name)
            await client.graceful_failover(deadline_seconds=_PATIENCE_SECONDS)
        except ServiceError as failure:
            world.trace.add(_WHO, f"{target} says: {failure}")
            world.oracle.refused(target, str(failure), orderly=world.swarm.orderly)
            return False
        world.trace.add(_WHO, f"{target} says that it is active")
        world.oracle.switched(target, began)
        if world.swarm.orderly:
            world.loop.call_later(_BACK_SECONDS, self._look_at_the_others, target)
        return True

    def _look_at_the_others(self, target: str) -> None:
        """Check that all that stood back for this hand-over stand again."""
        missing = what_is_missing(self._world)
        if missing is not None and not self._world.closing:
            why = f"{_BACK_SECONDS} s after the hand-over to {target}: {missing}"
            note(self._world, Violated("L3", why))

    async def _notice(self, event: Event, target: str) -> None:
        world = self._world
        since = BIRTH + timedelta(seconds=world.loop.now)
        until = since + timedelta(seconds=event.lasts) if event.other % 2 else None
        what = event.kind if event.kind == "pause" else f"drain of {target}"
        world.trace.add(_WHO, f"wants a {what} until {until}", event.name)
        try:
            async with self._session() as session:
                if event.kind == "pause":
                    pause = Pause(owner="op", reason="test", since=since, until=until)
                    await write_pause(session, ZOOKEEPER, pause)
                else:
                    drain = Drain(owner="op", reason="test", since=since, until=until)
                    await write_drain(session, ZOOKEEPER, target, drain)
        except (ZooKeeperUnavailable, ZooKeeperRefused) as failure:
            world.trace.add(_WHO, f"{what}: {failure}")
            return
        world.trace.add(_WHO, f"{what} is written")
        if until is None:
            world.loop.call_later(event.lasts, self._resume, event.kind, target)

    def _session(self) -> AbstractAsyncContextManager[Session]:
        session = self._world.around.session
        return connected(ZOOKEEPER, deadline_seconds=5.0, open_session=session)

    def _resume(self, kind: str, target: str) -> None:
        if self._world.faults.over:
            return  # all notices have been ended
        process = Process("op3", self._world.loop)
        self._world.operators.append(process)
        process.spawn(self._clear(kind, target))

    async def _clear(self, kind: str, target: str) -> None:
        try:
            async with self._session() as session:
                if kind == "pause":
                    await clear_pause(session, ZOOKEEPER)
                else:
                    await clear_drain(session, ZOOKEEPER, target)
        except (ZooKeeperUnavailable, ZooKeeperRefused) as failure:
            self._world.trace.add(_WHO, f"cannot end the {kind}: {failure}")
            return
        self._world.trace.add(_WHO, f"{kind} is ended")
