"""What ``dfsadmin -metasave`` writes: blocks that lack replicas, orders and DataNodes."""

from collections.abc import Iterator

from namenode_sim.blocks.model import Slot
from namenode_sim.blocks.needed import Priority
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.datanodes.model import Node
from namenode_sim.namespace.inode import full_path


def meta_save(scene: Scene) -> Iterator[str]:
    """Yield the lines, in Hadoop's order and with its headings.

    Others may be served in between; what has changed by then is left out.
    """
    blocks, nodes = scene.cluster.blocks, tuple(scene.cluster.nodes.values())
    inodes, total = len(scene.namespace.tree.inodes), blocks.map.block_count()
    alive = sum(node.alive for node in nodes)
    objects = f"{inodes + total} total filesystem objects"
    yield f"{inodes} files and directories, {total} blocks = {objects}"
    yield f"Live Datanodes: {alive}"
    yield f"Dead Datanodes: {len(nodes) - alive}"
    lacking = [one for one in Priority if one is not Priority.MISSING]
    count = sum(blocks.needed.size(priority) for priority in lacking)
    yield f"Metasave: Blocks waiting for reconstruction: {count}"
    for priority in lacking:
        yield from _needed_lines(scene, priority)
    yield f"Metasave: Blocks currently missing: {blocks.needed.size(Priority.MISSING)}"
    yield from _needed_lines(scene, Priority.MISSING)
    yield "Mis-replicated blocks that have been postponed:"
    for slot in tuple(blocks.rechecks.postponed):
        if slot in blocks.rechecks.postponed:
            yield _block(scene, slot)
    orders = list(blocks.invalidations)
    storages = {number for number, *_ in orders}
    yield f"Metasave: Blocks {len(orders)} waiting deletion from {len(storages)} storages."
    for number, block_id, stamp, _ in orders:
        if place := scene.cluster.find_place(number):
            yield f"{place[0].id.transfer_address} blk_{block_id}_{stamp}"
    yield f"Metasave: Number of datanodes: {len(nodes)}"
    yield from (_datanode(node) for node in nodes)


def _needed_lines(scene: Scene, priority: Priority) -> Iterator[str]:
    needed = scene.cluster.blocks.needed
    for slot in needed.listed(priority):
        if needed.priority(slot) is priority:
            yield _block(scene, slot)


def _block(scene: Scene, slot: Slot) -> str:
    """Return a block's file, its name, and where its replicas are; (corrupt) ones are not good."""
    found, marks = scene.cluster.blocks.map, scene.cluster.blocks.map.corrupt_marks(slot)
    block, live = found.block(slot), found.live(slot)
    file = scene.namespace.tree.inodes.get(block.file_id)
    places = (
        scene.cluster.place(number)[0].id.transfer_address
        + ("(corrupt)" if number in marks else "")
        for number in found.storages_of(slot)
    )
    return (
        f"{full_path(file) if file is not None else '?'}: blk_{block.id}_{block.stamp}"
        f"{'' if live else ' MISSING'} (replicas: l: {live} c: {len(marks)}) {' '.join(places)}"
    ).rstrip()


def _datanode(node: Node) -> str:
    room, state = node.room(), node.admin.name if node.alive else "DEAD"
    return (
        f"{node.id.transfer_address} {node.rack} {state} capacity: {room.capacity} "
        f"used: {room.used} remaining: {room.remaining}"
    )
