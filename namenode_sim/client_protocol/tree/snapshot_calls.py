"""Calls about snapshots: allow, disallow, take, drop, rename, list (FSDirSnapshotOp)."""

from datetime import UTC, datetime

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import HdfsFileStatusProto
from namenode_sim.client_protocol.words import errors, paths, permissions
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.permissions import find
from namenode_sim.client_protocol.words.status import snapshot_root_status, status_of
from namenode_sim.edits import ops
from namenode_sim.namespace.inode import INodeDirectory, full_path, signed_order
from namenode_sim.namespace.retry_cache import SnapshotTaken
from namenode_sim.namespace.snapshots.snapshots import DELETED_MARK
from namenode_sim.namespace.state import Snapshot
from namenode_sim.namespace.usage import above

SNAPSHOT_TIME_LAYOUT = -66
"""Since then edits about snapshots contain their time."""

_NO_COMPONENTS = {".", "..", paths.DOT_SNAPSHOT.decode(), ".reserved"}
"""DFSUtil.isValidNameForComponent refuses these."""

SNAPSHOT_QUOTA = 1 << 16
"""DirectorySnapshottableFeature.SNAPSHOT_QUOTA_DEFAULT."""


def _time(scene: Scene) -> int | None:
    """Return the time for an edit, if the layout that we write has a place for it.

    Otherwise it must not be used: a standby would not know it (HDFS-15566).
    """
    return scene.now_ms if scene.layout <= SNAPSHOT_TIME_LAYOUT else None


def _find_owned(scene: Scene, path: str) -> paths.Route:
    """Return the route of a path that the caller owns, where permissions are switched on."""
    route = find(scene, path)
    if scene.settings.permissions_enabled:
        permissions.check_owner(scene.caller, route)
    return route


def _snapshots(scene: Scene, route: paths.Route) -> list[Snapshot]:
    """Return a directory's snapshots if it may have some (SnapshotManager.getSnapshottableRoot)."""
    directory = paths.as_directory(route)
    taken = scene.namespace.snapshots.snapshottable.get(directory.id)
    if taken is None:
        raise errors.snapshot_error(f"Directory is not a snapshottable directory: {route.path}")
    return taken


def allow(scene: Scene, request: calls.AllowSnapshotRequestProto) -> EditPlan:
    """Let a directory have snapshots; neither one above nor one below it may have."""
    permissions.check_superuser(scene.caller)
    route = find(scene, request.snapshotRoot)
    directory = paths.as_directory(route)
    for number in scene.namespace.snapshots.snapshottable:
        other = scene.namespace.tree.inodes[number]
        assert isinstance(other, INodeDirectory)
        is_ancestor = other in above(directory.parent)
        if is_ancestor or directory in above(other.parent):
            raise errors.snapshot_error(
                f"Nested snapshottable directories not allowed: path={route.path}, the "
                f"{'ancestor' if is_ancestor else 'subdirectory'} {full_path(other)} is already a "
                "snapshottable directory."
            )
    return EditPlan((ops.AllowSnapshot(route.path),), calls.AllowSnapshotResponseProto)


def disallow(scene: Scene, request: calls.DisallowSnapshotRequestProto) -> EditPlan:
    """Take that back; all its snapshots must be gone."""
    permissions.check_superuser(scene.caller)
    route = find(scene, request.snapshotRoot)
    if scene.namespace.snapshots.snapshottable.get(paths.as_directory(route).id):
        raise errors.snapshot_error(
            f"The directory {route.path} has snapshot(s). Please redo the operation after removing "
            "all the snapshots."
        )
    return EditPlan((ops.DisallowSnapshot(route.path),), calls.DisallowSnapshotResponseProto)


def create(scene: Scene, request: calls.CreateSnapshotRequestProto) -> EditPlan:
    """Take a snapshot; without a name it gets one from the time, in UTC."""
    paths.check_length("createSnapshot", request.snapshotRoot)
    route = _find_owned(scene, request.snapshotRoot)
    name = request.snapshotName
    if not name:
        now = datetime.fromtimestamp(scene.now_ms / 1000, UTC)
        name = f"s{now:%Y%m%d-%H%M%S}.{scene.now_ms % 1000:03}"
    elif name in _NO_COMPONENTS or ":" in name or "/" in name:
        raise errors.invalid_path(f"Invalid snapshot name: {name}")
    _check_name(scene, name, route.path)
    taken = _snapshots(scene, route)
    _check_room(scene, len(taken))
    if any(snapshot.name == name for snapshot in taken):
        raise errors.snapshot_error(
            f'Failed to add snapshot: there is already a snapshot with the same name "{name}".'
        )
    op = ops.CreateSnapshot(route.path, name, _time(scene), scene.caller.rpc)
    answer = calls.CreateSnapshotResponseProto(snapshotPath=SnapshotTaken(route.path, name).path)
    return EditPlan((op,), lambda: answer)


def created_before(
    scene: Scene, _: calls.CreateSnapshotRequestProto
) -> calls.CreateSnapshotResponseProto:
    """Return the answer to a snapshot that was taken already, for a client that missed it."""
    answer = scene.namespace.retry_cache.find(scene.caller.rpc)
    assert isinstance(answer, SnapshotTaken)
    return calls.CreateSnapshotResponseProto(snapshotPath=answer.path)


def _check_name(scene: Scene, name: str, path: str) -> None:
    if "/" in name:
        raise errors.illegal_argument('Snapshot name cannot contain "/"')
    encoded = name.encode("utf-8", "replace")
    paths.check_not_reserved(encoded, in_root=False)
    if paths.is_too_long(encoded, scene.settings):
        raise paths.too_long(encoded, path, scene.settings)


def _check_room(scene: Scene, taken: int) -> None:
    total = scene.namespace.snapshots.count()
    for count, kind, limit in (
        (total, "file system", scene.settings.max_snapshots),
        (taken, "per directory", scene.settings.max_snapshots_of_one),
    ):
        if count >= limit:
            raise errors.snapshot_error(
                f"Failed to create snapshot: there are already {count} snapshot(s) and the {kind} "
                f"snapshot limit is {limit}"
            )


def delete(scene: Scene, request: calls.DeleteSnapshotRequestProto) -> EditPlan:
    if not request.snapshotName:
        raise errors.io_error("The snapshot name is null or empty.")
    route = _find_owned(scene, request.snapshotRoot)
    name = request.snapshotName
    if all(snapshot.name != name for snapshot in _snapshots(scene, route)):
        raise errors.snapshot_error(
            f"Cannot delete snapshot {name} from path {route.path}: the snapshot does not exist."
        )
    op = ops.DeleteSnapshot(route.path, name, _time(scene), scene.caller.rpc)
    return EditPlan((op,), calls.DeleteSnapshotResponseProto)


def rename(scene: Scene, request: calls.RenameSnapshotRequestProto) -> EditPlan:
    if not request.snapshotNewName:
        raise errors.io_error("The new snapshot name is null or empty.")
    route = _find_owned(scene, request.snapshotRoot)
    old, new = request.snapshotOldName, request.snapshotNewName
    _check_name(scene, new, route.path)
    names = {snapshot.name for snapshot in _snapshots(scene, route)}
    if old not in names:
        raise errors.snapshot_error(f"The snapshot {old} does not exist for directory {route.path}")
    if new in names and new != old:
        raise errors.snapshot_error(f"The snapshot {new} already exists for directory {route.path}")
    op = ops.RenameSnapshot(route.path, old, new, _time(scene), scene.caller.rpc)
    return EditPlan((op,), calls.RenameSnapshotResponseProto)


def get_snapshottable_dir_listing(
    scene: Scene, _: calls.GetSnapshottableDirListingRequestProto
) -> calls.GetSnapshottableDirListingResponseProto:
    """Return the snapshottable directories that the caller owns; all of them for the superuser."""
    snapshottable = scene.namespace.snapshots.snapshottable
    answer = calls.GetSnapshottableDirListingResponseProto()
    if not snapshottable:
        return answer
    answer.snapshottableDirList.SetInParent()
    found: list[tuple[bytes, INodeDirectory]] = []
    for number in snapshottable:
        directory = scene.namespace.tree.inodes[number]
        assert isinstance(directory, INodeDirectory)
        if scene.caller.is_super or directory.user == scene.caller.user:
            parent = full_path(directory.parent).encode() if directory.parent is not None else b""
            found.append((parent, directory))
    found.sort(key=lambda one: (signed_order(one[0]), signed_order(one[1].name)))
    for parent, directory in found:
        answer.snapshottableDirList.snapshottableDirListing.add(
            dirStatus=_plain(status_of(scene.namespace, directory, directory.name)),
            snapshot_quota=SNAPSHOT_QUOTA,
            snapshot_number=len(snapshottable[directory.id]),
            parent_fullpath=parent,
        )
    return answer


def _plain(status: HdfsFileStatusProto) -> HdfsFileStatusProto:
    """Clear in the status what Hadoop leaves out where it lists snapshots and their directories."""
    status.ClearField("flags")
    status.ClearField("ecPolicy")
    status.storagePolicy = 0
    return status


def get_snapshot_listing(
    scene: Scene, request: calls.GetSnapshotListingRequestProto
) -> calls.GetSnapshotListingResponseProto:
    route = find(scene, request.snapshotRoot)
    permissions.check_path(scene.caller, route, permissions.READ)
    directory = paths.as_directory(route)
    # The root counts as snapshottable even where it may have none.
    is_root = directory.parent is None
    taken = scene.namespace.snapshots.snapshottable.get(directory.id, []) if is_root else None
    taken = _snapshots(scene, route) if taken is None else taken
    answer = calls.GetSnapshotListingResponseProto()
    answer.snapshotList.SetInParent()
    for snapshot in sorted(taken, key=lambda one: signed_order(one.root.name)):
        mark = (DELETED_MARK.namespace, DELETED_MARK.name)
        answer.snapshotList.snapshotListing.add(
            dirStatus=_plain(snapshot_root_status(scene.namespace, directory, snapshot)),
            snapshotID=snapshot.id,
            parent_fullpath=full_path(directory).encode(),
            isDeleted=any((x.namespace, x.name) == mark for x in snapshot.root.xattrs or ()),
        )
    return answer
