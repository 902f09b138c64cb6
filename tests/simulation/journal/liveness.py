"""Liveness: after all faults end, a new writer continues, and the nodes become equal."""

import asyncio
from typing import TYPE_CHECKING, Final

from journal.errors import JournalError
from tests.simulation.engine.clock import Process
from tests.simulation.engine.verdict import Violated
from tests.simulation.journal.contender import Contender, Habits, Life
from tests.simulation.journal.reading import Standby
from tests.simulation.journal.swarm import Upkeep

if TYPE_CHECKING:
    from tests.simulation.journal.world import World

_LIVENESS_SECONDS: Final = 20.0
_SYNC_SECONDS: Final = 10.0
"""Two rounds of the syncer, with time for its downloads."""
_STALL_SECONDS: Final = 3.0
_ATTEMPTS: Final = 5
_CALM: Final = Upkeep(sync_seconds=1.0, scrub_seconds=1.0)


async def heal(world: "World") -> None:
    """Let everything work from here on; whatever is down comes up."""
    world.trace.add("-", "liveness: all faults end, one clean writer")
    world.faults.over = True
    world.network.heal_all()
    for process in [*world.writers.values(), *world.readers.values()]:
        process.kill()
    for machine in world.machines.values():
        machine.platter.blows.clear()
        if machine.process is not None:
            machine.process.thaw()
        if machine.owner is not None and machine.owner.failed_because is not None:
            machine.kill("its journal has stopped")
        if not machine.up:
            machine.boot()
        if not machine.up:
            machine.boot()
    if world.oracle.learners():
        _tend(world)
    await asyncio.sleep(0.1)
    world.look()


async def go_on(world: "World", *, alike: bool = True) -> None:
    """Let a clean writer recover and write, and a reader read it all; syncing ends differences."""
    began = world.loop.time()
    for attempt in range(_ATTEMPTS):
        if await _take_over(world, f"w{90 + attempt}", last=attempt == _ATTEMPTS - 1):
            break
    world.look()
    took = world.loop.time() - began
    if took > _LIVENESS_SECONDS:
        raise Violated("L1", f"with all faults gone it took {took:.1f} s to go on")
    if alike and world.oracle.learners():
        # One that promised a contender of the storm more than this writer's epoch refuses it, as
        # any node would; the next writer's epoch is the larger one.
        await _take_over(world, "w99", last=True)
    if alike:
        await _become_alike(world)
    world.look()


async def _take_over(world: "World", name: str, *, last: bool) -> bool:
    process = world.writers[name] = Process(name, world.loop)
    return bool(await process.spawn(_conclude(world, name, last=last)))


async def _conclude(world: "World", name: str, *, last: bool) -> bool:
    """Make one attempt; late messages of the storm may spoil all but the last one."""
    life = Life(name, 0, (), 0)
    habits = Habits(world.swarm.upkeep.lease_seconds, 0.0, world.faults.random(name))
    contender = Contender(life, world.machines, world.loop, world.oracle, world.trace, habits)
    standby = Standby("r9", world.machines, world.oracle, world.trace)
    standby.next_txid = world.oracle.purged_below
    try:
        await contender.finish_cleanly()
        await standby.catch_up()
    except Violated as behind:
        # A stranger's serial shuts the writer of that epoch out of a node, and no later one.
        if last or not world.swarm.upkeep.byzantine or "came after request" not in str(behind):
            raise
        world.trace.add(name, f"attempt failed: {behind}")
        return False
    except JournalError as failure:
        world.trace.add(name, f"attempt failed: {failure}")
        if last:
            raise Violated("L2", f"with all faults gone: {failure}") from failure
        return False
    finally:
        await standby.close()
    world.oracle.conclude(world.oracle.purged_below, contender.last, standby.tags)
    return True


async def _become_alike(world: "World") -> None:
    """Check that after two rounds of syncing all nodes hold the same finalized segments."""
    if world.oracle.differences() is None:
        await _look_for_leftovers(world)
        return
    _tend(world)
    until = world.loop.time() + _SYNC_SECONDS
    while (differ := world.oracle.differences()) is not None:
        if world.loop.time() > until:
            raise Violated("L4", f"with all faults gone and the syncers on, {differ}")
        await asyncio.sleep(0.25)
        world.look()
    await _look_for_leftovers(world)


async def _look_for_leftovers(world: "World") -> None:
    """Check that nothing half fetched lies around, once the storm's last download gave up."""
    until = world.loop.time() + _STALL_SECONDS
    while left := [
        f"{machine.name}: {path.name}"
        for machine in world.machines.values()
        for path in machine.platter.cached
        if path.parts[-2] == "edits.sync"
        or (".epoch=" in path.name and path.parts[-2] == "current")  # an upgrade keeps it, too
    ]:
        if world.loop.time() > until:
            raise Violated("I22", f"still there: {sorted(left)}")
        await asyncio.sleep(0.25)


def _tend(world: "World") -> None:
    """Switch the background work of all nodes on, where it is off."""
    for machine in world.machines.values():
        if machine.upkeep != _CALM:
            machine.upkeep = _CALM
            machine.kill("its settings change")
            machine.boot()
