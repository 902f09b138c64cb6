"""A pipeline of simulated DataNodes: set up, packets, the end; each step is the product's core."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from datanode import model
from datanode.replicas.operations import Complete, News, Operation, news_of
from datanode.replicas.replica import acknowledged, received
from hadoop.blocks import Block
from tests.simulation.blocks.datanode import Datanode, Life
from tests.simulation.blocks.disks import NotDone, Stored
from tests.simulation.blocks.wires import Broken

SETUP_SECONDS: Final = 6.0
PACKET_SECONDS: Final = 5.0
PER_NODE_SECONDS: Final = 1.0
"""Nodes farther up wait longer, so that the one next to the trouble reports it."""


class BadLink(Exception):
    """A DataNode of the pipeline failed."""

    def __init__(self, node: str, why: str) -> None:
        super().__init__(f"{node}: {why}")
        self.node = node


@dataclass(frozen=True, slots=True)
class Place:
    """A DataNode of a pipeline, and the storage that is to have the replica."""

    owner: Datanode
    storage: model.StorageId


Pipeline = Sequence[Place]


async def onward(
    origin: str, rest: Pipeline, what: str, seconds: float, step: Callable[[Pipeline], object]
) -> None:
    """Have the next DataNode, if there is one, and those behind it do their part."""
    if not rest:
        return
    target = rest[0].owner
    try:
        async with asyncio.timeout(seconds + PER_NODE_SECONDS * len(rest)):
            await target.wires.call(origin, target.name, what, lambda: step(rest))  # type: ignore[arg-type, return-value]
    except (Broken, TimeoutError, NotDone) as failure:
        raise BadLink(target.name, repr(failure)) from failure


def _life(owner: Datanode) -> Life:
    if owner.life is None:
        raise Broken(f"{owner.name} is not running")
    return owner.life


async def set_up(
    origin: str, pipeline: Pipeline, operation: Callable[[model.StorageId], Operation]
) -> None:
    """Carry an operation out on every DataNode; raises BadLink."""

    async def step(rest: Pipeline) -> None:
        place = rest[0]
        life = _life(place.owner)
        known = place.owner.disks.volumes
        storage = place.storage if place.storage in known else next(iter(known))
        asked = operation(storage)
        stored = life.map.perform(asked)
        _announce(life, news_of(asked), stored)
        await onward(place.owner.name, rest[1:], "set-up", SETUP_SECONDS, step)

    await onward(origin, pipeline, "set-up", SETUP_SECONDS, step)


def _announce(life: Life, news: News | None, stored: Stored) -> None:
    if isinstance(stored.replica, model.Finalized):
        life.owner.watcher.whole(life.owner.name, stored)
    if news is not None:
        life.announce(news, stored.replica)


async def send(origin: str, pipeline: Pipeline, block: Block, start: int, payload: bytes) -> None:
    """Send one packet, and wait until all have acknowledged it; raise BadLink."""

    async def step(rest: Pipeline) -> None:
        life, end = _life(rest[0].owner), start + len(payload)
        await write_packet(life, block, start, payload)
        await onward(life.owner.name, rest[1:], "packet", PACKET_SECONDS, step)
        stored = _written(life, block)
        stored.replica = acknowledged(stored.replica, end, b"")

    await onward(origin, pipeline, "packet", PACKET_SECONDS, step)


async def write_packet(life: Life, block: Block, start: int, payload: bytes) -> None:
    """Write a packet's bytes; raises NotDone."""
    stored, end = _written(life, block), start + len(payload)
    if stored.replica.length < start:
        raise NotDone(f"{block} has {stored.replica.length} bytes, and the packet {start} on")
    stored.data = stored.data[:start] + payload + stored.data[end:]
    stored.replica = received(stored.replica, end)


async def finish(origin: str, pipeline: Pipeline, block: Block, length: int) -> None:
    """Send the last, empty packet: every replica becomes final; raise BadLink."""

    async def step(rest: Pipeline) -> None:
        life = _life(rest[0].owner)
        _written(life, block)
        await onward(life.owner.name, rest[1:], "last packet", PACKET_SECONDS, step)
        await finalize(life, block, length)

    await onward(origin, pipeline, "last packet", PACKET_SECONDS, step)


async def finalize(life: Life, block: Block, length: int) -> None:
    """Make a replica final, and announce it; raise NotDone."""
    if _written(life, block).replica.length != length:
        raise NotDone(f"{block} is not {length} bytes long")
    stored = life.map.perform(Complete(block))
    _announce(life, News.RECEIVED, stored)


def _written(life: Life, block: Block) -> Stored:
    stored = life.map.find(block)
    if not isinstance(stored.replica, model.BeingWritten):
        raise NotDone(f"{block} is not being written")
    return stored


async def read(origin: str, owner: Datanode, block: Block, length: int | None) -> bytes:
    """Return the bytes of a replica that its DataNode shows, at most ``length``.

    Raises:
        Broken, TimeoutError, NotDone: if it cannot be read there.
    """

    async def there() -> bytes:
        life = _life(owner)
        stored = life.map.known.get(block.block_id)
        if stored is None or stored.replica.block.stamp < block.stamp:
            raise NotDone(f"{block} is not here")
        shown = model.readable_length(stored.replica)
        if length is not None and shown < length:
            raise NotDone(f"{block} has {shown} bytes here, {length} are wanted")
        return stored.data[: shown if length is None else length]

    async with asyncio.timeout(SETUP_SECONDS):
        return await owner.wires.call(origin, owner.name, "read", there)
