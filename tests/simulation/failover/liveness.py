"""The second phase: faults end, and service must return, and stay."""

import asyncio
from typing import TYPE_CHECKING, Final

from ha.notices.store import drains_path, pause_path
from ha.service.model import ServiceState
from tests.simulation.engine.verdict import Violated
from tests.simulation.failover.cluster import ZOOKEEPER
from tests.simulation.failover.zk_tree import Delete

if TYPE_CHECKING:
    from tests.simulation.failover.world import World

BOUND_SECONDS: Final = 45.0
"""Session, pauses after failures and cedes, a slow promotion that was under way, one more round."""
_CALM_SECONDS: Final = 4.0


async def demand_service(world: "World") -> None:
    """Heal everything; within the bound one NameNode must be active, and stay so.

    What was begun before the faults ended may still happen, and disturb the peace once more: it
    must be over before it counts as peace.
    """
    heal(world)
    healed = peace = world.loop.now
    active, missing = world.cluster.lock_owner(), what_is_missing(world)
    while world.loop.now < peace + _CALM_SECONDS:
        await asyncio.sleep(0.5)
        _end_notices(world)
        world.look()
        missing = what_is_missing(world)
        happens = world.loop.now < world.faults.lasts_until
        if happens or missing is not None or world.cluster.lock_owner() != active:
            peace, active = world.loop.now, world.cluster.lock_owner()
        if peace > healed + BOUND_SECONDS:
            why = missing or "the active changes again and again"
            raise Violated("I10", f"{BOUND_SECONDS:.0f} s after all faults ended, {why}")
    takeovers = world.oracle.counts.takeovers
    if world.swarm.calm and takeovers != 1:
        raise Violated("I14", f"only ZooKeeper was in trouble, and there were {takeovers} actives")
    world.trace.add("----", f"service after {peace - healed:.1f} s")


def heal(world: "World") -> None:
    """End all faults, and start whatever is dead."""
    cluster = world.cluster
    world.trace.add("----", "liveness: all faults end")
    world.faults.over = True
    world.network.heal_all()
    cluster.ensemble.heal()
    world.journal.heal()
    _end_notices(world)
    for name, host in cluster.hosts.items():
        host.power_on()
        cluster.conditions[name].unwell = ""
        cluster.conditions[name].ready = True
        for what in ("namenode", "zkfc"):
            host.thaw(what)
            world.boot(name, what)


def _end_notices(world: "World") -> None:
    """End all pauses and drains, also one that took effect after its operator gave up."""
    cluster = world.cluster
    drains = (f"{drains_path(ZOOKEEPER)}/{name}" for name in cluster.hosts)
    for path in (pause_path(ZOOKEEPER), *drains):
        if cluster.ensemble.znode(path) is not None:
            cluster.ensemble.commit(Delete(path), "operator")


def _started_again(world: "World") -> str | None:
    """Start what has ended on a host, as its supervisor would; return the host.

    Also where no host has the lock: a fencing command that hung may kill the last NameNode after
    all faults have ended.
    """
    for name in world.cluster.hosts:
        if world.cluster.namenode(name) is None or world.cluster.controller(name) is None:
            world.boot(name, "namenode")
            world.boot(name, "zkfc")
            return name
    return None


def what_is_missing(world: "World") -> str | None:
    cluster = world.cluster
    if (absent := _started_again(world)) is not None:
        return f"{absent} is not there"
    owner = cluster.lock_owner()
    if owner is None:
        return "nobody has the lock"
    if cluster.named() != owner:
        return f"{owner} has the lock, and the breadcrumb names {cluster.named()}"
    for name in cluster.hosts:
        node = cluster.namenode(name)
        assert node is not None
        state = ServiceState.ACTIVE if name == owner else ServiceState.STANDBY
        if node.state is not state:
            return f"{name} is {node.state}, and {owner} has the lock"
        if name != owner and not stands_by(world, name, owner):
            return f"{name}'s controller does not wait for the lock, which {owner} has"
    if not world.oracle.conduct.serves(owner):
        return f"{owner} was not made active under the lock that it has"
    active = cluster.namenode(owner)
    if active is None or active.epoch != world.journal.epoch:
        return f"{owner} cannot write"
    return None


def stands_by(world: "World", name: str, owner: str) -> bool:
    """Return whether ZooKeeper will inform this controller's election when the lock is gone.

    One whose rank is lower than that of another standby waits outside, as it should.
    """
    names = world.swarm.names if world.swarm.ranked else (name,)
    if any(better != owner for better in names[: names.index(name)]):
        return True
    ensemble = world.cluster.ensemble
    session = ensemble.sessions.get(world.cluster.wire.standing(name) or 0)
    link = None if session is None or not session.alive else session.connection
    return link is not None and link in link.replica.watches.get(world.cluster.lock, {})
