"""Where the blocks of a file are, as clients read it (BlockManager.createLocatedBlocks).

See docs/reference/namenode.md#block-locations.
"""

from collections.abc import Iterable

from ha.record import dataclass, field
from ha.rpc.java_names import ILLEGAL_ARGUMENT
from hadoop.block_tokens import NO_TOKEN, Grant, Mode
from hadoop.longs import signed, unsigned
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2
from namenode_sim.blocks.model import Slot, Stage
from namenode_sim.client_protocol.words.datanode_info import info_of
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.paths import as_file
from namenode_sim.client_protocol.words.permissions import (
    READ,
    check_path,
    check_readable_by_superuser,
    find,
)
from namenode_sim.datanodes.model import AdminState, Node
from namenode_sim.datanodes.placement import Place
from namenode_sim.datanodes.topology import distance_from, is_stale, on_host
from namenode_sim.edits.ops import Times
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeFile

Infos = dict[str, hdfs_types_pb2.DatanodeInfoProto]
"""What readers are given of DataNodes, by their ids: each is in most of the blocks of a file."""


@dataclass(frozen=True, slots=True)
class Reader:
    """What is the same for all blocks of one answer: where the caller is, and what it was given.

    ``local``: the DataNodes on its host.  ``rack``: its own, where there are none.
    """

    local: list[Node]
    rack: str | None
    infos: Infos = field(default_factory=Infos)


_ONE_MODE = {mode: frozenset({mode}) for mode in Mode}
_LAST = {AdminState.ENTERING_MAINTENANCE: 1, AdminState.DECOMMISSIONED: 2}
"""DataNodes to be read from behind all others (DFSUtil.ServiceComparator)."""


def reader_at(scene: Scene) -> Reader:
    """Return the caller as a reader."""
    cluster, host = scene.cluster, scene.caller.host
    local = on_host(cluster.nodes.values(), host)
    return Reader(local, None if local else cluster.rack_of_host(host))


def blocks_now(scene: Scene, file: INodeFile) -> tuple[Block, ...]:
    """Return a file's blocks, the last one with the length that its writer last reported.

    Edits contain the length only with the next block or with the end of the file.
    """
    blocks = file.blocks
    if not blocks:
        return blocks
    last = blocks[-1]
    length = scene.cluster.blocks.map.block(slot_of(scene, last)).length
    return (*blocks[:-1], Block(last.block_id, length, last.generation_stamp))


def stage_of(scene: Scene, block: Block) -> Stage:
    return scene.cluster.blocks.map.block(slot_of(scene, block)).stage


def slot_of(scene: Scene, block: Block) -> Slot:
    """Return the map's slot of a file's block.

    The map has the blocks of all files that are in the tree or in a snapshot.
    """
    return scene.cluster.blocks.map.slot(block.block_id)


def located_blocks(
    scene: Scene, file: INodeFile, offset: int, length: int, *, in_snapshot: bool
) -> hdfs_types_pb2.LocatedBlocksProto:
    """Return the blocks that hold a range of a file, and its last one.

    The length is that of the file without a last block which is being written: readers ask the
    DataNodes for that one's.  ``in_snapshot``: the file is what a snapshot kept of it, which ends
    where it ended and has no writer.
    """
    blocks = file.blocks if in_snapshot else blocks_now(scene, file)
    is_open = file.under_construction is not None
    if not blocks:
        return hdfs_types_pb2.LocatedBlocksProto(
            fileLength=0, underConstruction=is_open, isLastBlockComplete=False
        )
    size = sum(block.num_bytes for block in blocks)
    if in_snapshot:  # not on to a last block of which nothing was known then
        length = min(length, size - offset)
    last_complete = in_snapshot or stage_of(scene, blocks[-1]) is Stage.COMPLETE
    starts = size - blocks[-1].num_bytes
    ranged, reader = _in_range(blocks, offset, length), reader_at(scene)
    located = [located_block(scene, block, begin, reader) for begin, block in ranged]
    return hdfs_types_pb2.LocatedBlocksProto(
        fileLength=size if last_complete else starts,
        underConstruction=is_open,
        blocks=located,
        lastBlock=located_block(scene, blocks[-1], starts, reader),
        isLastBlockComplete=last_complete,
    )


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


def located_block(
    scene: Scene, block: Block, offset: int, reader: Reader
) -> hdfs_types_pb2.LocatedBlockProto:
    """Return a block with the DataNodes that have it, the nearest to the caller first."""
    places, corrupt = _readable(scene, slot_of(scene, block))
    nearest = _by_distance(scene, places, reader)
    return block_at(scene, block, offset, nearest, corrupt=corrupt, infos=reader.infos)


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
    numbers = state.map.storages_of(slot)
    good = [number for number in numbers if state.map.is_good(slot, number)]
    places = [cluster.place(number) for number in good or numbers]
    return [place for place in places if place[0].is_readable], bool(numbers) and not good


def _by_distance(scene: Scene, places: Iterable[Place], reader: Reader) -> list[Place]:
    """Sort places by distance from the caller, equals in random order.

    Stale ones come last, and those that leave service behind them, decommissioned ones at the end.
    """
    cluster = scene.cluster

    def key(place: Place) -> tuple[int, bool, int, float]:
        node, _ = place
        last = _LAST.get(node.admin, 0)
        stale = is_stale(node, scene.now, cluster.stale_seconds)
        return last, stale, distance_from(reader.local, reader.rack, node), cluster.draw.random()

    return sorted(places, key=key)


def block_at(
    scene: Scene,
    block: Block,
    offset: int,
    places: Iterable[Place],
    mode: Mode = Mode.READ,
    *,
    corrupt: bool = False,
    infos: Infos | None = None,
) -> hdfs_types_pb2.LocatedBlockProto:
    """Return a block at places, in their order, with a token that lets the caller do this there.

    ``offset`` -1 stands for a block of no file.  ``infos`` keeps what was made of each DataNode in
    the same answer.
    """
    infos = Infos() if infos is None else infos
    answer = hdfs_types_pb2.LocatedBlockProto(
        b=extended(scene, block),
        offset=unsigned(offset),
        corrupt=corrupt,
        blockToken=NO_TOKEN,
    )
    places = tuple(places)
    for node, storage in places:
        info = infos.get(node.id.uuid)
        if info is None:
            info = infos[node.id.uuid] = info_of(node, scene.now, scene.now_ms)
        answer.locs.append(info)
        answer.isCached.append(block.block_id in node.cache.cached)
        answer.storageTypes.append(hdfs_types_pb2.StorageTypeProto.ValueType(int(storage.type)))
        answer.storageIDs.append(storage.uuid)
    keys = scene.cluster.block_keys
    if keys is not None:
        grant = Grant(
            scene.caller.user, scene.cluster.pool, block.block_id, _ONE_MODE[mode],
            tuple(storage.type.name for _, storage in places),
            tuple(storage.uuid for _, storage in places),
        )  # fmt: skip
        answer.blockToken.CopyFrom(keys.token(grant, scene.now_ms))
    return answer


def extended(scene: Scene, block: Block) -> hdfs_types_pb2.ExtendedBlockProto:
    """Return a block with its pool."""
    return hdfs_types_pb2.ExtendedBlockProto(
        poolId=scene.cluster.pool,
        blockId=unsigned(block.block_id),
        generationStamp=block.generation_stamp,
        numBytes=block.num_bytes,
    )


def get_block_locations(scene: Scene, request: calls.GetBlockLocationsRequestProto) -> EditPlan:
    """Return the blocks of a file; reading it may move its access time (at most once an hour)."""
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
    return EditPlan(ops, lambda: calls.GetBlockLocationsResponseProto(locations=found))
