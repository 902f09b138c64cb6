"""Where the blocks of a file are, as clients read it (BlockManager.createLocatedBlocks).

See docs/reference/namenode.md#block-locations.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from ha.record import field, record
from ha.rpc.frames import varint
from ha.rpc.java_names import ILLEGAL_ARGUMENT
from hadoop.block_tokens import NO_TOKEN, Grant, Mode
from hadoop.longs import signed, unsigned
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2
from namenode_sim.blocks.model import Slot, Stage
from namenode_sim.client_protocol.words import datanode_info
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.paths import as_file
from namenode_sim.client_protocol.words.permissions import (
    READ,
    check_path,
    check_readable_by_superuser,
    find,
)
from namenode_sim.datanodes.model import AdminState, Node, StorageType
from namenode_sim.datanodes.placement import Place
from namenode_sim.datanodes.topology import distance_from, is_stale
from namenode_sim.edits.ops import Times
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeFile

Rank = tuple[int, bool, int]
"""By what the DataNodes of a block are sorted: whether one leaves, whether stale, how far away."""

# The tags of fields: of LocatedBlockProto, LocatedBlocksProto and GetBlockLocationsResponseProto.
_LOCATION, _CORRUPT, _TOKEN, _CACHED = b"\x1a", b"\x20", b"\x2a", b"\x32"
_FILE_LENGTH, _BLOCK, _OPEN, _LAST_BLOCK, _COMPLETE = b"\x08", b"\x12", b"\x18", b"\x22", b"\x28"
_LOCATIONS: Final = b"\x0a"
_BOOL: Final = (b"\x00", b"\x01")
_MOST_KEPT: Final = 4096


@record
class Reader:
    """What is the same for all blocks of one answer: where the caller is, and what it was given.

    ``local``: the DataNodes on its host.  ``rack``: its own, where there are none.  Of each
    DataNode, by its id, it has the rank and what is written of it: each is in most of the blocks.
    """

    local: Sequence[Node] = ()
    rack: str | None = None
    ranks: dict[str, Rank] = field(default_factory=dict)
    locations: dict[str, bytes] = field(default_factory=dict)


_ONE_MODE = {mode: frozenset({mode}) for mode in Mode}
_LAST = {AdminState.ENTERING_MAINTENANCE: 1, AdminState.DECOMMISSIONED: 2}
"""DataNodes to be read from behind all others (DFSUtil.ServiceComparator)."""


def reader_at(scene: Scene) -> Reader:
    """Return the caller as a reader."""
    cluster, host = scene.cluster, scene.caller.host
    local = cluster.local_to(host)
    return Reader(local, None if local else cluster.rack_of_host(host))


def blocks_now(scene: Scene, file: INodeFile) -> tuple[Block, ...]:
    """Return a file's blocks, the last one with the length that its writer last reported.

    Edits contain the length only with the next block or with the end of the file.
    """
    blocks = file.blocks
    if not blocks:
        return blocks
    last = blocks[-1]
    length = scene.cluster.blocks.map.length(slot_of(scene, last))
    return (*blocks[:-1], Block(last.block_id, length, last.generation_stamp))


def stage_of(scene: Scene, block: Block) -> Stage:
    return scene.cluster.blocks.map.stage(slot_of(scene, block))


def slot_of(scene: Scene, block: Block) -> Slot:
    """Return the map's slot of a file's block.

    The map has the blocks of all files that are in the tree or in a snapshot.
    """
    return scene.cluster.blocks.map.slot(block.block_id)


def located_blocks(
    scene: Scene, file: INodeFile, offset: int, length: int, *, in_snapshot: bool
) -> bytes:
    """Return the blocks that hold a range of a file, and its last one: a LocatedBlocksProto.

    The length is that of the file without a last block which is being written: readers ask the
    DataNodes for that one's.  ``in_snapshot``: the file is what a snapshot kept of it, which ends
    where it ended and has no writer.
    """
    blocks = file.blocks if in_snapshot else blocks_now(scene, file)
    size = sum(block.num_bytes for block in blocks)
    if in_snapshot:  # not on to a last block of which nothing was known then
        length = min(length, size - offset)
    complete = bool(blocks) and (in_snapshot or stage_of(scene, blocks[-1]) is Stage.COMPLETE)
    starts, reader = size - blocks[-1].num_bytes if blocks else 0, reader_at(scene)
    found = [
        _field(_BLOCK, _located_block(scene, block, begin, reader))
        for begin, block in _in_range(blocks, offset, length)
    ]
    last = [
        _field(_LAST_BLOCK, _located_block(scene, block, starts, reader)) for block in blocks[-1:]
    ]
    return b"".join((
        _FILE_LENGTH, varint(size if complete else starts), *found,
        _OPEN, _BOOL[file.under_construction is not None], *last, _COMPLETE, _BOOL[complete],
    ))  # fmt: skip


def _field(tag: bytes, data: bytes) -> bytes:
    return tag + varint(len(data)) + data


def _in_range(blocks: tuple[Block, ...], offset: int, length: int) -> list[tuple[int, Block]]:
    """Return the blocks of a range with their offsets; the first one even where still empty."""
    found: list[tuple[int, Block]] = []
    begin = 0
    for block in blocks:
        end = begin + block.num_bytes
        if end > offset or blocks[0].num_bytes == 0:
            found.append((begin, block))
            if end >= offset + length:
                break
        begin = end
    return found


def _located_block(scene: Scene, block: Block, offset: int, reader: Reader) -> bytes:
    """Return a block with the DataNodes that have it, the nearest to the caller first."""
    places, corrupt = _readable(scene, slot_of(scene, block))
    nearest = _by_distance(scene, places, reader)
    return _block_bytes(scene, block, offset, nearest, reader, corrupt=corrupt)


def located_for_writing(
    scene: Scene, block: Block, offset: int
) -> hdfs_types_pb2.LocatedBlockProto:
    """Return a block with the DataNodes on which a client is to go on writing it.

    Those that leave service are left out where another has the block.  The bad schedule: a former
    active has said that a decommissioned one may go, of the pipeline only that one is left, and its
    operator takes it away.  Hadoop's append includes it.
    """
    places, corrupt = _readable(scene, slot_of(scene, block))
    staying = [place for place in places if place[0].admin is AdminState.NORMAL]
    chosen = _by_distance(scene, staying or places, reader_at(scene))
    return block_at(scene, block, offset, chosen, Mode.WRITE, corrupt=corrupt)


def _readable(scene: Scene, slot: Slot) -> tuple[list[Place], bool]:
    """Return the places to read from, and whether all are corrupt; else only good ones count.

    A DataNode in maintenance may be switched off any moment.
    """
    cluster, state = scene.cluster, scene.cluster.blocks
    construction = state.map.find_construction(slot)
    if construction is not None:
        return [cluster.place(one.storage) for one in construction.locations], False
    numbers, corrupt = state.map.storages_of(slot), state.map.corrupt_marks(slot)
    good = [number for number in numbers if number not in corrupt] if corrupt else numbers
    places = [cluster.place(number) for number in good or numbers]
    return [place for place in places if place[0].is_readable], bool(numbers) and not good


def _by_distance(scene: Scene, places: Iterable[Place], reader: Reader) -> list[Place]:
    """Sort places by distance from the caller, equals in random order.

    Stale ones come last, and those that leave service behind them, decommissioned ones at the end.
    """
    cluster, ranks = scene.cluster, reader.ranks

    def key(place: Place) -> tuple[Rank, float]:
        node, _ = place
        rank = ranks.get(node.id.uuid)
        if rank is None:
            stale = is_stale(node, scene.now, cluster.stale_seconds)
            distance = distance_from(reader.local, reader.rack, node)
            rank = ranks[node.id.uuid] = (_LAST.get(node.admin, 0), stale, distance)
        return rank, cluster.draw.random()

    return sorted(places, key=key)


def block_at(
    scene: Scene,
    block: Block,
    offset: int,
    places: Iterable[Place],
    mode: Mode = Mode.READ,
    *,
    corrupt: bool = False,
) -> hdfs_types_pb2.LocatedBlockProto:
    """Return a block at places, in their order, with a token that lets the caller do this there.

    ``offset`` -1 stands for a block of no file.
    """
    data = _block_bytes(scene, block, offset, tuple(places), Reader(), mode, corrupt=corrupt)
    return hdfs_types_pb2.LocatedBlockProto.FromString(data)


def _block_bytes(
    scene: Scene,
    block: Block,
    offset: int,
    places: Sequence[Place],
    reader: Reader,
    mode: Mode = Mode.READ,
    *,
    corrupt: bool,
) -> bytes:
    """Return the bytes of ``block_at``: the fields of a LocatedBlockProto in their order."""
    pool, number = scene.cluster.pool, block.block_id
    begin = hdfs_types_pb2.LocatedBlockProto(b=extended(scene, block), offset=unsigned(offset))
    locations, cached, types, uuids = [], [], [], []
    for node, storage in places:
        location = reader.locations.get(node.id.uuid)
        if location is None:
            info = datanode_info.info_bytes(node, scene.now, scene.now_ms)
            location = reader.locations[node.id.uuid] = _field(_LOCATION, info)
        locations.append(location)
        cached.append(number in node.cache.cached)
        kind, uuid = _storage(storage.type, storage.uuid)
        types.append(kind)
        uuids.append(uuid)
    keys, token = scene.cluster.block_keys, NO_TOKEN
    if keys is not None:
        names = [storage.type.name for _, storage in places]
        storages = tuple(storage.uuid for _, storage in places)
        grant = Grant(scene.caller.user, pool, number, _ONE_MODE[mode], tuple(names), storages)
        token = keys.token(grant, scene.now_ms)
    return b"".join((
        begin.SerializePartialToString(), *locations, _CORRUPT, _BOOL[corrupt],
        _field(_TOKEN, token.SerializeToString()),
        _field(_CACHED, bytes(cached)) if cached else b"", *types, *uuids,
    ))  # fmt: skip


def extended(scene: Scene, block: Block) -> hdfs_types_pb2.ExtendedBlockProto:
    """Return a block with its pool."""
    return hdfs_types_pb2.ExtendedBlockProto(
        poolId=scene.cluster.pool,
        blockId=unsigned(block.block_id),
        generationStamp=block.generation_stamp,
        numBytes=block.num_bytes,
    )


@lru_cache(_MOST_KEPT)
def _storage(kind: StorageType, uuid: str) -> tuple[bytes, bytes]:
    """Return what a located block says of a storage: its type and its id."""
    number = hdfs_types_pb2.StorageTypeProto.ValueType(int(kind))
    types = hdfs_types_pb2.LocatedBlockProto(storageTypes=[number])
    ids = hdfs_types_pb2.LocatedBlockProto(storageIDs=[uuid])
    return types.SerializePartialToString(), ids.SerializePartialToString()


def get_block_locations(scene: Scene, request: calls.GetBlockLocationsRequestProto) -> EditPlan:
    """Return the blocks of a file; reading it may move its access time (at most once an hour)."""
    ops, found = located(scene, request)
    return EditPlan(ops, lambda: calls.GetBlockLocationsResponseProto.FromString(found))


def located(
    scene: Scene, request: calls.GetBlockLocationsRequestProto
) -> tuple[tuple[Times, ...], bytes]:
    """Return the edit of ``get_block_locations``, if there is one, and the bytes of its answer."""
    for name, number in (("offset", request.offset), ("length", request.length)):
        if signed(number) < 0:
            raise FsError(
                ILLEGAL_ARGUMENT, f"Negative {name} is not supported. File: {request.src}"
            )
    route = find(scene, request.src)
    file = as_file(route)
    check_path(scene.caller, route, READ)
    check_readable_by_superuser(scene, file)
    found = located_blocks(
        scene, file, request.offset, request.length, in_snapshot=route.in_snapshot
    )
    precision = scene.settings.access_time_precision_ms
    ops: tuple[Times, ...] = ()
    if 0 < precision < scene.now_ms - file.atime and not route.in_snapshot:
        ops = (Times(route.path, -1, scene.now_ms),)
    return ops, _field(_LOCATIONS, found)
