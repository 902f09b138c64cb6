"""Calls that change the tree's shape: mkdirs, rename, delete (FSDirMkdirOp and its siblings)."""

from ha.rpc.java_names import (
    PARENT_NOT_DIRECTORY,
    PATH_IS_NOT_EMPTY_DIRECTORY,
    UNSUPPORTED_OPERATION,
)
from namenode_sim.client_protocol.creation import (
    Modes,
    check_quotas,
    check_room,
    make_directories,
    new_ids,
    passable,
    unmasked,
)
from namenode_sim.client_protocol.errors import (
    FsError,
    already_exists,
    invalid_path,
    io_error,
    not_found,
    snapshot_error,
)
from namenode_sim.client_protocol.model import EditPlan, Scene, no_edits
from namenode_sim.client_protocol.paths import (
    Route,
    check_length,
    check_new_name,
    check_parent_exists,
    is_valid_name,
    text,
)
from namenode_sim.client_protocol.permissions import (
    ALL,
    WRITE,
    check_ancestor,
    check_parent,
    check_subtree,
    find,
)
from namenode_sim.client_protocol.protected import check_unprotected
from namenode_sim.edits.ops import Delete, Rename, RenameOld
from namenode_sim.edits.values import RenameOption
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeSymlink, full_path
from namenode_sim.namespace.paths import old_rename_target
from namenode_sim.namespace.tree import components, size
from namenode_sim.proto import client_namenode_pb2 as calls


def mkdirs(scene: Scene, request: calls.MkdirsRequestProto) -> EditPlan:
    """Create a directory and what is missing above it; true also if it exists."""
    check_length("mkdirs", request.src)
    if not is_valid_name(request.src):
        raise invalid_path(f"Invalid file name: {request.src}")
    route = find(scene, request.src, creates=True)
    answer = calls.MkdirsResponseProto(result=True)
    if route.last is not None:
        if not isinstance(route.last, INodeDirectory):
            raise already_exists(f"Path is not a directory: {route.path}")
        return no_edits(answer)
    check_ancestor(scene.caller, route, WRITE)
    if not request.createParent:
        check_parent_exists(route)
    mode = request.masked.perm
    modes = Modes(mode, unmasked(scene, request), above=passable(mode))
    made = make_directories(scene, new_ids(scene), route, len(route.names), modes)
    return EditPlan(tuple(made.ops), lambda: answer)


def delete(scene: Scene, request: calls.DeleteRequestProto) -> EditPlan:
    """Remove a path; false if there is none, or if it is the root."""
    route = find(scene, request.src, follow_last=False)
    node = route.last
    if isinstance(node, INodeDirectory) and node.children and not request.recursive:
        raise FsError(
            PATH_IS_NOT_EMPTY_DIRECTORY, f"`{route.path} is non empty': Directory is not empty"
        )
    check_parent(scene.caller, route, WRITE)
    check_subtree(scene.caller, node, ALL, ignore_empty=True)
    check_unprotected(scene, route)
    if node is None or not route.names:
        return no_edits(calls.DeleteResponseProto(result=False))
    check_no_snapshots(scene, node)
    op = Delete(route.path, scene.now_ms, scene.caller.rpc)
    return EditPlan((op,), lambda: calls.DeleteResponseProto(result=True))


def check_no_snapshots(scene: Scene, node: INode) -> bool:
    """A tree that holds snapshots can be neither deleted nor moved.

    Returns whether it has snapshottable directories at all (FSDirSnapshotOp.checkSnapshot).
    """
    found = False
    for number, taken in scene.namespace.snapshots.snapshottable.items():
        directory = scene.namespace.tree.inodes[number]
        step: INode | None = directory
        while step is not None and step is not node:
            step = step.parent
        if step is node and taken:
            path = full_path(directory)
            raise snapshot_error(
                f"The directory {path} cannot be deleted since {path} is snapshottable and "
                "already has snapshots"
            )
        found |= step is node
    return found


def _check_nesting(scene: Scene, source: Route, parent: INodeDirectory) -> None:
    """FSDirRenameOp.validateNestSnapshot.

    Hadoop's root always counts as snapshottable, if something is to be moved right below it.
    """
    snapshottable = scene.namespace.snapshots.snapshottable
    step: INodeDirectory | None = parent
    while step is not None and step.id not in snapshottable:
        step = step.parent
    if step is not None or parent.parent is None:
        raise snapshot_error(
            f"Unable to rename because {source.path} has snapshottable descendant directories and "
            f"{full_path(parent)} is a descent of a snapshottable directory, and HDFS does not "
            "support nested snapshottable directory."
        )


def rename(scene: Scene, request: calls.RenameRequestProto) -> EditPlan:
    """The first rename: false on failure, and an existing directory is moved into."""
    check_length("rename", request.dst)
    if not is_valid_name(request.dst):
        raise io_error(f"Invalid name: {request.dst}")
    source = find(scene, request.src, follow_last=False)
    target = find(scene, request.dst, follow_last=False, creates=True)
    check_unprotected(scene, source)
    requested = target.path
    if isinstance(target.last, INodeDirectory) and source.names:
        inside = f"{target.path.rstrip('/')}/{text(source.name)}"
        target = find(scene, inside, follow_last=False, creates=True)
    check_parent(scene.caller, source, WRITE)
    check_ancestor(scene.caller, target, WRITE)
    refused = no_edits(calls.RenameResponseProto(result=False))
    if old_rename_target(scene.namespace.tree, source.path, requested) is None:
        return refused
    if source.last is None or _to_own_target(source, target):
        return refused
    if source.names != target.names:
        _check_move(scene, source, target)
    op = RenameOld(source.path, target.path, scene.now_ms, scene.caller.rpc)
    return EditPlan((op,), lambda: calls.RenameResponseProto(result=True))


def rename2(scene: Scene, request: calls.Rename2RequestProto) -> EditPlan:
    """The rename with POSIX semantics: every failure is an exception."""
    check_length("rename", request.dst)
    if not is_valid_name(request.dst):
        raise invalid_path(f"Invalid name: {request.dst}")
    source = find(scene, request.src, follow_last=False)
    target = find(scene, request.dst, follow_last=False, creates=True)
    check_unprotected(scene, source)
    check_parent(scene.caller, source, WRITE)
    check_ancestor(scene.caller, target, WRITE)
    src, dst = source.path, target.path
    node = _check_rename_ends(source, target)
    if target.last is not None:
        _check_overwrite(node, target.last, src, dst, overwrite=request.overwriteDest)
        check_no_snapshots(scene, target.last)
    if target.parent is None:
        raise not_found(f"rename destination parent {dst} not found.")
    if not isinstance(target.parent, INodeDirectory):
        raise FsError(PARENT_NOT_DIRECTORY, f"rename destination parent {dst} is a file.")
    _check_move(scene, source, target)
    options = [RenameOption.OVERWRITE] if request.overwriteDest else []
    options += [RenameOption.TO_TRASH] if request.moveToTrash else []
    op = Rename(src, dst, scene.now_ms, tuple(options) or (RenameOption.NONE,), scene.caller.rpc)
    return EditPlan((op,), calls.Rename2ResponseProto)


def _check_rename_ends(source: Route, target: Route) -> INode:
    """What rename2 asks of its two paths themselves; returns the node that moves."""
    src, dst = source.path, target.path
    node = source.last
    if node is None:
        raise not_found(f"rename source {src} is not found.")
    if not source.names:
        raise io_error("rename source cannot be the root")
    if source.names == target.names:
        raise already_exists(f"The source {src} and destination {dst} are the same")
    if _to_own_target(source, target):
        raise already_exists(f"Cannot rename symlink {src} to its target {dst}")
    if target.names[: len(source.names)] == source.names:
        raise io_error(f"Rename destination {dst} is a directory or file under source {src}")
    if not target.names:
        raise io_error("rename destination cannot be the root")
    return node


def _to_own_target(source: Route, target: Route) -> bool:
    link = source.last
    return (
        isinstance(link, INodeSymlink)
        and tuple(components(link.target.decode("utf-8", "replace"))) == target.names
    )


def _check_overwrite(source: INode, target: INode, src: str, dst: str, *, overwrite: bool) -> None:
    if isinstance(source, INodeDirectory) != isinstance(target, INodeDirectory):
        raise io_error(f"Source {src} and destination {dst} must both be directories")
    if not overwrite:
        raise already_exists(f"rename destination {dst} already exists")
    if isinstance(target, INodeDirectory) and target.children:
        raise io_error(f"rename destination directory is not empty: {dst}")


def _check_move(scene: Scene, source: Route, target: Route) -> None:
    """Name length, directory size and quotas at the new place; snapshots at the old."""
    node, parent = source.last, target.parent
    assert node is not None
    assert isinstance(parent, INodeDirectory)
    if check_no_snapshots(scene, node):
        _check_nesting(scene, source, parent)
    check_new_name(target.name, parent, scene.settings)
    moved = size(node) - (size(target.last) if target.last is not None else 0)
    if parent is not source.parent:
        check_room(scene, parent, 0)
        check_quotas(scene, parent, moved, stop=_common(source, target))


def _common(source: Route, target: Route) -> INode | None:
    """The last directory that both paths go through."""
    common: INode | None = None
    for one, other in zip(source.nodes[:-1], target.nodes[:-1], strict=False):
        if one is not other:
            break
        common = one
    return common


def create_symlink(_: Scene, __: calls.CreateSymlinkRequestProto) -> EditPlan:
    """Symlinks are switched off, as in Hadoop."""
    raise FsError(UNSUPPORTED_OPERATION, "Symlinks not supported")
