"""What a world must come back to when all faults have ended."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from namenode_sim.blocks.model import RACKS, Stage
from namenode_sim.blocks.safemode import force_exit
from namenode_sim.datanodes.membership.admin import Kind
from namenode_sim.datanodes.model import AdminState, StorageState
from namenode_sim.term.role import Role
from tests.simulation.blocks.namenode import NameNodeLife
from tests.simulation.blocks.nemesis import NEVER
from tests.simulation.blocks.oracle import DEAD_SECONDS
from tests.simulation.blocks.strikes import NAMENODES
from tests.simulation.engine.verdict import Violated

if TYPE_CHECKING:
    from tests.simulation.blocks.world import World

QUIET_SECONDS: Final = 300.0
LEAST_SECONDS: Final = 6.0


async def demand_order(world: "World") -> None:
    """Faults end; after a while every map says what is true."""
    _end_faults(world)
    await _in_order(world)
    if world.swarm.late_seconds and not _is_lossy(world):
        await _demand_leave(world)


async def _in_order(world: "World") -> None:
    await _until(world, lambda: _trouble(world), "P7")


async def _until(world: "World", trouble: Callable[[], str], invariant: str) -> None:
    """Wait until there is no trouble any more. Raises Violated if it does not end."""
    begins = world.loop.now
    while True:
        await asyncio.sleep(1.0)
        world.look()
        found = trouble()
        if not found and world.loop.now >= begins + LEAST_SECONDS:
            return
        if world.loop.now > begins + QUIET_SECONDS:
            raise Violated(invariant, f"{QUIET_SECONDS:g} s after the last fault: {found}")


def _is_lossy(world: "World") -> bool:
    blocks = world.oracle.truth.blocks.values()
    return any(known.may_be_lost or not known.complete for known in blocks)


async def _demand_leave(world: "World") -> None:
    """Without faults a DataNode may go in the end, and what it had is where it is to be."""
    drawn = world.faults.random("leaves last")
    owner = drawn.choice(list(world.datanodes.values()))
    wanted = [known.wanted[-1][1] for known in world.oracle.truth.blocks.values()]
    kind = drawn.choice((Kind.DECOMMISSION, Kind.MAINTENANCE))
    if kind is Kind.DECOMMISSION and max(wanted, default=0) >= len(world.datanodes):
        return  # it has to stay
    world.hosts.ask_one(owner, kind)

    def stays() -> str:
        away = not world.hosts.is_asked(owner) or not owner.machine.runs
        return "" if away else f"{owner.name} is asked for {kind.name}, and may not go"

    await _until(world, stays, "P9")
    if kind is Kind.MAINTENANCE:
        await asyncio.sleep(DEAD_SECONDS + LEAST_SECONDS)
        world.hosts.serve_again(owner)
        await _in_order(world)
        owner.start()
    await _in_order(world)


def _end_faults(world: "World") -> None:
    world.faults.over = True
    world.trace.add("-", "liveness: all faults end")
    world.network.heal_all()
    for machine in world.wires.machines.values():
        machine.asleep_until = 0.0
        if machine.process is not None:
            machine.process.thaw()
    for name in NAMENODES:
        world.boot(name)
    for owner in world.datanodes.values():
        owner.start()
    world.hosts.end()
    for life in world.lives.values():
        life.cluster.set_safe_mode(replace(life.cluster.safe_mode, by_hand=False))


def _trouble(world: "World") -> str:
    """Return what is not in order yet; empty if all is."""
    actives = [life for life in world.lives.values() if life.role is Role.ACTIVE]
    if len(actives) != 1 or len(world.lives) != 2:
        return f"{len(actives)} of {len(world.lives)} NameNodes are active"
    active = actives[0]
    if active.cluster.safe_mode.is_on():
        if any(known.may_be_lost for known in world.oracle.truth.blocks.values()):
            active.cluster.set_safe_mode(force_exit())  # an operator knows that nothing more comes
        return f"{active.name} is in safe mode"
    if trouble := _datanodes_differ(world, active):
        return trouble
    for life in world.lives.values():
        if trouble := _differs(world, life):
            return trouble
    return ""


def _datanodes_differ(world: "World", active: NameNodeLife) -> str:
    for storage in active.cluster.blocks.map.storages:
        node, place = active.cluster.place(storage.number)
        is_there = node.alive and place.state is StorageState.NORMAL
        if is_there and not storage.confirmed:
            return f"{storage.uuid} is not confirmed on {active.name}"
    for node in active.cluster.nodes.values():
        if node.admin is not AdminState.NORMAL:
            return f"{node.id.uuid} is {node.admin.name} on {active.name}"
    for owner in world.datanodes.values():
        # Java's DataNodes obey an active that was without its lease only after its next edit.
        if owner.life is not None and owner.life.claims.obeyed != active.name and not owner.java:
            return f"{owner.name} obeys {owner.life.claims.obeyed}, not {active.name}"
    return ""


def _doubted(life: NameNodeLife) -> set[str]:
    """DataNodes of which a standby knows that old news may have come; an active asks them."""
    storages = () if life.role is Role.ACTIVE else life.cluster.blocks.map.storages
    doubted = (one.number for one in storages if one.needs_full_report)
    return {life.cluster.place(number)[0].id.host for number in doubted}


def _differs(world: "World", life: NameNodeLife) -> str:
    blocks = life.cluster.blocks
    lost = {one.file_id for one in world.oracle.truth.blocks.values() if one.may_be_lost}
    for block_id, known in world.oracle.truth.blocks.items():
        slot = blocks.map.find(block_id)
        if slot is None:
            return f"{life.name} does not know {block_id}"
        if not known.complete:
            if known.file_id in lost:
                continue  # no replica can make it whole
            return f"the file of {block_id} is still open"
        if blocks.map.block(slot).stage is not Stage.COMPLETE:
            if known.may_be_lost:
                continue
            return f"{block_id} is not complete on {life.name}"
        told = {
            life.cluster.place(number)[0].id.host
            for number in blocks.map.storages_of(slot)
            if blocks.map.is_good(slot, number)
        }
        there = world.oracle.good_places(block_id)
        if told - _doubted(life) != there - _doubted(life):
            return f"{life.name} has {block_id} on {sorted(told)}, and it is on {sorted(there)}"
        # What a recovery left behind on a DataNode keeps copies off until its next full report.
        unclear = known.may_be_lost or world.swarm.report_seconds == NEVER
        running = [owner for owner in world.datanodes.values() if owner.life is not None]
        wanted = 0 if unclear else min(known.wanted[-1][1], len(running))
        if wanted and len(there) != wanted:
            return f"{block_id} is on {sorted(there)}, {wanted} replicas are wanted"
        racks = {world.datanodes[name].rack for name in there}
        most = len({owner.rack for owner in running})
        if wanted and len(racks) < min(RACKS, wanted, most):
            return f"{block_id} is on {sorted(there)}, all on {sorted(racks)}"
    return ""
