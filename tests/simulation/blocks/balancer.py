"""A balancer and a mover: they ask the active what may move, and DataNodes to move it."""

import asyncio
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from datanode.model import Finalized, StorageId
from ha.rpc.java_names import NAMENODE_PROTOCOL
from ha.rpc.protocol import Call
from hadoop.blocks import Block
from hadoop.proto import namenode_protocol_pb2 as pb
from namenode_sim.client_protocol.reads.movable_blocks import get_blocks
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.term.role import Role
from tests.simulation.blocks.actor import CALL_SECONDS
from tests.simulation.blocks.datanode import Datanode, block
from tests.simulation.blocks.executor import LOST, change_volume, take_copy
from tests.simulation.blocks.names import id_of
from tests.simulation.blocks.nemesis import Event
from tests.simulation.blocks.told import told
from tests.simulation.engine.clock import Process

if TYPE_CHECKING:
    from tests.simulation.blocks.world import World

NAME: Final = "balancer"
ASK: Final = Call(NAMENODE_PROTOCOL, "getBlocks", b"", 0, 0, "hdfs", None, "")
MOVES: Final = 8
PAUSE_SECONDS: Final = 1.0
TO_A_VOLUME: Final = 0.5


def balance(world: "World", event: Event) -> None:
    """Begin to move some replicas."""
    process = Process(NAME, world.loop)
    world.wires.machine(NAME).process = process
    world.processes.append(process)
    told(process.spawn(_balance(world, Random(event.victim))), world.loop)


async def _balance(world: "World", random: Random) -> None:
    for _ in range(MOVES):
        await asyncio.sleep(random.random() * PAUSE_SECONDS)
        source = random.choice(list(world.datanodes.values()))
        found = _movable(world, source)
        if found:
            move = _move(world, source, random.choice(found), random)
            told(asyncio.ensure_future(move), world.loop)


def _movable(world: "World", source: Datanode) -> list[pb.BlockWithLocationsProto]:
    active = [life for life in world.lives.values() if life.role is Role.ACTIVE]
    request = pb.GetBlocksRequestProto(datanode=id_of(source), size=1 << 40, minBlockSize=0)
    try:
        return list(get_blocks(active[0].face.scene(ASK), request).blocks.blocks) if active else []
    except FsError:
        return []  # it has not registered there


async def _move(
    world: "World", source: Datanode, found: pb.BlockWithLocationsProto, random: Random
) -> None:
    what = block(found.block.blockId, found.block.genStamp)
    holders = [one for one in world.datanodes.values() if one.uuid in found.datanodeUuids]
    others = [one for one in world.datanodes.values() if one not in holders]
    within = not others or random.random() < TO_A_VOLUME
    target = source if within else random.choice(others)
    storage = random.choice(list(target.disks.volumes))
    work = (
        partial(change_volume, source, what, storage)
        if within
        else partial(_fetch, target, random.choice(holders), what, storage, source.uuid)
    )
    with suppress(*LOST):
        async with asyncio.timeout(CALL_SECONDS):
            await world.wires.call(NAME, target.name, f"move of {what}", work)


async def _fetch(
    target: Datanode, proxy: Datanode, what: Block, storage: StorageId, hint: str
) -> None:
    if proxy.life is None:
        return
    stored = proxy.life.map.known.get(what.block_id)
    if stored is None or stored.replica.block != what or not isinstance(stored.replica, Finalized):
        return
    await take_copy(target, what, storage, stored.data, hint)
