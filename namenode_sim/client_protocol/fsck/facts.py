"""What is known of files and blocks: each replica, whether it counts, and what is done about it.

See docs/reference/datanodes.md#fsck.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from ha.record import record
from namenode_sim.blocks.model import RACKS, BlockInfo, Slot, StorageNumber
from namenode_sim.blocks.needed import Priority
from namenode_sim.client_protocol.words import permissions
from namenode_sim.client_protocol.words.errors import denied, not_found
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.paths import DOT_SNAPSHOT, Route, text
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.placement import Place
from namenode_sim.datanodes.reconstruction import Counts
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.datanodes.redundancy_check import Assessment, is_complete
from namenode_sim.datanodes.topology import is_stale
from namenode_sim.namespace.inode import STRIPED, INode, INodeDirectory, INodeFile, full_path
from namenode_sim.namespace.snapshots.view import SnapshotView, view_root

Found = tuple[str, INode | SnapshotView]


class Condition(StrEnum):
    """What a replica is; all but the last are named as the fields of ``Counts``."""

    LIVE = "live"
    EXCESS = "excess"
    CORRUPT = "corrupt"
    LEAVING = "decommissioning"
    LEFT = "decommissioned"
    MAINTAINED = "entering maintenance"
    AWAY = "in maintenance"
    WRITTEN = "being written"


@record
class ReplicaFacts:
    """A replica: why it counts or not, and what becomes of it; ``silent``: its DataNode is."""

    place: Place
    condition: Condition
    silent: bool
    why: str
    fate: str

    def as_json(self) -> Mapping[str, object]:
        node, storage = self.place
        return {
            "datanode": node.id.host, "address": node.id.transfer_address, "rack": node.rack,
            "storage": storage.uuid, "type": storage.type.name, "state": self.condition.value,
            "counts": self.condition is Condition.LIVE, "why": self.why, "fate": self.fate,
        }  # fmt: skip


@record
class BlockFacts:
    """A block and its replicas; ``judged`` is None while it is being written.

    ``action`` says what the NameNode does about it now, and why it does no more.
    """

    block: BlockInfo
    judged: Assessment | None
    replicas: tuple[ReplicaFacts, ...]
    action: str

    @property
    def counts(self) -> Counts:
        return _NONE if self.judged is None else self.judged.counts

    @property
    def readable(self) -> int:
        """Return how many replicas are good and stay, wherever they are."""
        return len(self.counts.live) + len(self.counts.out_of_service)

    @property
    def is_misplaced(self) -> bool:
        """Return whether it stands on too few racks, with those that leave."""
        known = {one.place[0].rack for one in self.replicas if one.condition not in _NOT_GOOD}
        return self.judged is not None and not self.judged.spread and 0 < len(known) < RACKS

    @property
    def state(self) -> str:
        """Return the worst that is to be said of it."""
        if self.judged is None:
            return "being written"
        if not self.readable:
            return "corrupt" if self.counts.corrupt and not self.counts.excess else "missing"
        if self.readable < self.block.expected:
            return "under-replicated"
        if self.is_misplaced:
            return "mis-replicated"
        return "over-replicated" if len(self.counts.live) > self.block.expected else "healthy"

    def as_json(self) -> Mapping[str, object]:
        block = self.block
        return {
            "block": f"blk_{block.id}_{block.stamp}", "bytes": block.length,
            "expected": block.expected, "live": len(self.counts.live), "state": self.state,
            "action": self.action, "replicas": [one.as_json() for one in self.replicas],
        }  # fmt: skip


_NONE: Final = Counts((), (), (), frozenset())
_NOT_GOOD: Final = (Condition.EXCESS, Condition.CORRUPT)
UNREADABLE: Final = ("missing", "corrupt")


def block_facts(scene: Scene, redundancy: Redundancy, slot: Slot) -> BlockFacts:
    """Return what the active knows of a block and does about it."""
    cluster, found = scene.cluster, scene.cluster.blocks.map
    block, construction = found.block(slot), found.find_construction(slot)
    if not is_complete(block):
        written = tuple(
            _replica(scene, one.storage, Condition.WRITTEN, f"; {one.length} bytes", "is written")
            for one in (() if construction is None else construction.locations)
        )
        return BlockFacts(block, None, written, "it is being written: nothing is copied")
    judged, marks = redundancy.assess(slot), found.corrupt_marks(slot)
    conditions = {
        number: condition
        for condition in Condition
        for number in getattr(judged.counts, condition.name.lower(), ())
    }
    replicas: list[ReplicaFacts] = []
    for number in found.storages_of(slot):
        why = f": {marks[number].reason.value}" if number in marks else ""
        fate = _fate(cluster, judged, slot, number)
        replicas.append(_replica(scene, number, conditions[number], why, fate))
    return BlockFacts(block, judged, tuple(replicas), _action(cluster, judged, slot))


def _replica(
    scene: Scene, number: StorageNumber, condition: Condition, more: str, fate: str
) -> ReplicaFacts:
    place = scene.cluster.place(number)
    why = "counts" if condition is Condition.LIVE else f"does not count: {condition}{more}"
    silent = is_stale(place[0], scene.now, scene.cluster.stale_seconds)
    if silent:
        why += f"; its DataNode was silent for {scene.now - place[0].last_heard:.0f} s"
    return ReplicaFacts(place, condition, silent, why, fate)


def _fate(cluster: Cluster, judged: Assessment, slot: Slot, number: StorageNumber) -> str:
    blocks, counts = cluster.blocks, judged.counts
    if blocks.map.is_pending_deletion(slot, number):
        if blocks.map.block(slot).id in blocks.invalidations.blocks_of(number):
            return "its deletion waits for a heartbeat of its DataNode"
        return "its DataNode was ordered to delete it, and has not reported that"
    if number in counts.corrupt:
        return "kept until there are enough good ones" if counts.live else "kept: none is good"
    return "stays; a full report has not confirmed it" if number in counts.unconfirmed else "stays"


def _action(cluster: Cluster, judged: Assessment, slot: Slot) -> str:
    """Say what is done about a block, and why no more."""
    blocks, priority = cluster.blocks, judged.priority
    if not blocks.rechecks.is_started():
        return "blocks are not judged yet: the safe mode of the start, or unknown hosts files"
    if priority is Priority.MISSING:
        return "nothing can be copied: no good replica is known"
    if judged.coming:
        return "on its way to " + ", ".join(node.id.transfer_address for node, _ in judged.coming)
    if priority is not None and cluster.safe_mode.is_on():
        return "it needs a copy, and nothing is copied in safe mode"
    if priority is not None:
        return f"waits for a copy, in the queue {priority.name.lower().replace('_', ' ')}"
    if slot in blocks.rechecks.postponed:
        return "deletions wait until all storages of the block have reported in full"
    return "its excess is deleted" if judged.counts.excess else "nothing is copied or deleted"


@record
class FileFacts:
    """A file with its blocks, of which nothing is known where they are striped.

    One in a snapshot has no writer; of an open one the ``length`` is what its writer last reported.
    """

    path: str
    node: INodeFile
    blocks: tuple[BlockFacts, ...]
    is_open: bool
    length: int


def check(
    scene: Scene, redundancy: Redundancy, path: str, *, with_snapshots: bool
) -> Iterator[FileFacts | tuple[str, str] | None]:
    """Yield all files at a path and below it, and the paths of others with what they are.

    The tree may change between two steps. None is yielded where other work may have its turn.
    Raises FsError if there is nothing there, or the caller may not read all of it.
    """
    waiting = [iter(_tops(scene, permissions.find(scene, path)))]
    while waiting:
        found = next(waiting[-1], None)
        if found is None:
            waiting.pop()
            continue
        where, seen = found
        node = seen.node if isinstance(seen, SnapshotView) else seen
        if isinstance(node, INodeFile):
            yield from _file(scene, redundancy, where, node, in_snapshot=node is not seen)
        elif isinstance(node, INodeDirectory):
            yield where, "dir"
            waiting.append(_below(scene, where, node, seen, with_snapshots=with_snapshots))
        else:
            yield where, "symlink"


def _tops(scene: Scene, route: Route) -> list[Found]:
    """Return where to begin; ``.snapshot`` of a directory are all of its snapshots."""
    if route.is_dot_snapshot:
        assert isinstance(route.parent, INodeDirectory)
        return list(_snapshots(scene, full_path(route.parent), route.parent))
    if route.last is None:
        raise not_found(f"Path '{route.path}' does not exist")
    return [(route.path, route.sight) if route.sight else (full_path(route.last), route.last)]


def _below(
    scene: Scene, path: str, directory: INodeDirectory, seen: INode | SnapshotView, *,
    with_snapshots: bool,
) -> Iterator[Found]:  # fmt: skip
    if not scene.caller.exempt:
        wanted = permissions.READ | permissions.EXECUTE
        permissions.check_directory(scene.caller, directory, wanted)
    view = seen if isinstance(seen, SnapshotView) else None
    if with_snapshots and view is None:
        yield from _snapshots(scene, path, directory)
    for name in list(directory.ordered_names()):
        # Moved since, perhaps to where the caller may not go: what is in it is not this path's.
        if view is None and full_path(directory) != path:
            return
        child = directory.children.get(name) if view is None else view.child(name)
        if child is not None:
            yield f"{path.rstrip('/')}/{text(name)}", child


def _snapshots(scene: Scene, path: str, directory: INodeDirectory) -> Iterator[Found]:
    for snapshot in list(scene.namespace.snapshots.snapshottable.get(directory.id, ())):
        name = text(DOT_SNAPSHOT + b"/" + snapshot.root.name)
        yield f"{path.rstrip('/')}/{name}", view_root(directory, snapshot)


def _file(
    scene: Scene, redundancy: Redundancy, path: str, node: INodeFile, *, in_snapshot: bool
) -> Iterator[FileFacts | None]:
    if not (scene.caller.exempt or permissions.allows(scene.caller, node, permissions.READ)):
        user = scene.caller.user
        raise denied(f'Permission denied: user={user}, access=READ, inode="{path}"')
    permissions.check_readable_by_superuser(scene, node)
    blocks: list[BlockFacts] = []
    for block in () if node.block_type == STRIPED else node.blocks:
        slot = scene.cluster.blocks.map.find(block.block_id)
        if slot is not None:  # else it was deleted since
            blocks.append(block_facts(scene, redundancy, slot))
            yield None
    is_open = node.under_construction is not None and not in_snapshot
    length = sum(one.block.length for one in blocks) if is_open else node.length()
    yield FileFacts(path, node, tuple(blocks), is_open, length)
