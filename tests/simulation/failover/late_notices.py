"""Notices that reach a controller late: they show the active of before its own win.

The schedule, in a pause: what a standby's controller reads of the notices is on its way to it while
its NameNode becomes active by a hand-over.  Then it hears that the former active is active, which
was true, and is asked to hand the role back; but that NameNode dies in its promotion.  The one that
gave the lock away must take it back: no other may, until the pause is over.
"""

import asyncio
from contextvars import Context
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

from ha.notices.model import decode_pause, encode_pause
from ha.notices.store import members_path, pause_path
from tests.simulation.engine.verdict import Violated
from tests.simulation.failover.cluster import ZOOKEEPER
from tests.simulation.failover.liveness import what_is_missing
from tests.simulation.failover.zk_tree import SetData

if TYPE_CHECKING:
    from tests.simulation.failover.trials import Trial
    from tests.simulation.failover.world import World

KIND: Final = "late-notices"
SHARE: Final = 0.15
"""Of the worlds."""
_HELD_SECONDS: Final = 1.2
"""A request that is not answered within a third of the session counts as failed."""
_TURN_SECONDS: Final = 0.0002


def drawn(world: "World") -> bool:
    """Return whether it is played in this world; to be asked before the faults are over."""
    return Random(f"{world.seed} {KIND}").random() < SHARE and world.faults.allowed(KIND)


async def stand(world: "World", trial: "Trial") -> None:
    """Play it when all is well; afterwards everything must be in order again."""
    former = world.cluster.lock_owner()
    if former is None:
        return
    heir = next(name for name in world.cluster.hosts if name != former)
    world.trace.add("----", f"{KIND}: {former} is active, and {heir} is to follow")
    path = await trial.notice(pause_path(ZOOKEEPER))
    if not await _read_on_its_way(world, heir, former):
        trial.end(path)
        return
    trial.ask_for(heir)
    await trial.until("L5", f"{heir} was wished for", lambda: trial.serves_not(heir))
    if not await _old_notices_heard(world, heir):
        trial.end(path)
        return
    world.oracle.on_promotion = lambda name: _die(world, former) if name == former else None
    trial.ask_for(former, in_vain=True)
    await trial.until("L5", f"{former} has died", lambda: _lives(world, former))
    world.oracle.on_promotion = lambda _name: None
    await trial.until("L5", f"{heir} may have its lock back", lambda: trial.serves_not(heir))
    trial.end(path)
    await trial.until("I10", f"{KIND} is over", lambda: what_is_missing(world))


async def _read_on_its_way(world: "World", heir: str, former: str) -> bool:
    """Have the heir's controller read the notices anew, and hold the answers back."""
    ensemble, path = world.cluster.ensemble, pause_path(ZOOKEEPER)
    pause = decode_pause(ensemble.head.znodes[path].data)
    changed = encode_pause(replace(pause, reason="as before"))
    ensemble.commit(SetData(path, changed), "operator")
    for _ in range(200):
        await asyncio.sleep(_TURN_SECONDS)
        if world.cluster.wire.is_reading(heir, f"{members_path(ZOOKEEPER)}/{former}"):
            return _hold(world, heir)
    return False


async def _old_notices_heard(world: "World", heir: str) -> bool:
    """Wait for the answers; what the heir's controller asks next is held back as well."""
    controller = world.cluster.controller(heir)
    assert controller is not None
    lock = world.cluster.ensemble.head.znodes[world.cluster.lock].written
    if controller.candidacy.standing.own_lock != lock:
        raise Violated("L5", f"{heir} does not know which transaction made its own lock, {lock}")
    before = controller.candidacy.standing.notices
    for _ in range(int(2 * _HELD_SECONDS / _TURN_SECONDS)):
        await asyncio.sleep(_TURN_SECONDS)
        if controller.candidacy.standing.notices is not before:
            return _hold(world, heir)
    return False


def _hold(world: "World", heir: str) -> bool:
    session = world.cluster.ensemble.owner_of(f"{members_path(ZOOKEEPER)}/{heir}")
    if session is None or session.connection is None:
        return False
    session.connection.hold(_HELD_SECONDS)
    return True


def _die(world: "World", name: str) -> None:
    host = world.cluster.hosts[name]
    # Not in the context of the controller that promotes.
    Context().run(world.loop.at, world.loop.now + 0.0001, host.kill, "namenode", KIND)


def _lives(world: "World", name: str) -> str | None:
    return f"{name} lives" if world.cluster.namenode(name) is not None else None
