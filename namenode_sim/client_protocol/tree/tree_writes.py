"""Calls that change the tree's shape: mkdirs, rename, delete (FSDirMkdirOp and its siblings)."""

from ha.rpc.java_names import PATH_IS_NOT_EMPTY_DIRECTORY, UNSUPPORTED_OPERATION
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.tree.protected_directories import check_unprotected
from namenode_sim.client_protocol.words import errors, new_inodes, paths, permissions, quotas
from namenode_sim.client_protocol.words.model import EditPlan, Scene, no_edits
from namenode_sim.client_protocol.words.permissions import find
from namenode_sim.edits.ops import Delete, Rename, RenameOld
from namenode_sim.edits.values import RenameOption
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeSymlink, full_path
from namenode_sim.namespace.paths import old_rename_target
from namenode_sim.namespace.snapshots.held import use_below
from namenode_sim.namespace.snapshots.snapshots import is_at_or_below
from namenode_sim.namespace.usage import above, effective_policy_id

_RESERVED = (b".reserved",)


def mkdirs(scene: Scene, request: calls.MkdirsRequestProto) -> EditPlan:
    """Create a directory and what is missing above it; true also if it exists."""
    paths.check_length("mkdirs", request.src)
    if not paths.is_valid_name(request.src):
        raise errors.invalid_path(f"Invalid file name: {request.src}")
    route = find(scene, request.src, creates=True)
    answer = calls.MkdirsResponseProto(result=True)
    if route.last is not None:
        if not isinstance(route.last, INodeDirectory):
            raise errors.already_exists(f"Path is not a directory: {route.path}")
        return no_edits(answer)
    permissions.check_ancestor(scene.caller, route, permissions.WRITE)
    if not request.createParent:
        paths.check_parent_exists(route)
    mode = request.masked.perm
    modes = new_inodes.Modes(
        mode, new_inodes.unmasked(scene, request), above=new_inodes.passable(mode)
    )
    made = new_inodes.make_directories(
        scene, new_inodes.new_ids(scene), route, len(route.names), modes
    )
    return EditPlan(tuple(made), lambda: answer)


def delete(scene: Scene, request: calls.DeleteRequestProto) -> EditPlan:
    """Remove a path; false if there is none, or if it is the root."""
    paths.check_not_the_reserved(request.src)
    route = find(scene, request.src, follow_last=False)
    node = route.last
    permissions.check_parent(scene.caller, route, permissions.WRITE)
    permissions.check_subtree(scene.caller, node)
    if isinstance(node, INodeDirectory) and node.children and not request.recursive:
        raise errors.FsError(
            PATH_IS_NOT_EMPTY_DIRECTORY, f"`{route.path} is non empty': Directory is not empty"
        )
    check_unprotected(scene, route)
    if node is None or not route.names:
        return no_edits(calls.DeleteResponseProto(result=False))
    check_no_snapshots(scene, node)
    op = Delete(route.path, scene.now_ms, scene.caller.rpc)
    return EditPlan((op,), lambda: calls.DeleteResponseProto(result=True))


def check_no_snapshots(scene: Scene, node: INode) -> None:
    """Refuse a tree that holds snapshots: it can be neither deleted nor moved (FSDirSnapshotOp)."""
    for directory in _snapshottable_in(scene, node):
        if scene.namespace.snapshots.snapshottable[directory.id]:
            path = full_path(directory)
            raise errors.snapshot_error(
                f"The directory {path} cannot be deleted since {path} is snapshottable and "
                "already has snapshots"
            )


def _snapshottable_in(scene: Scene, node: INode) -> list[INode]:
    inodes = scene.namespace.tree.inodes
    directories = [inodes[number] for number in scene.namespace.snapshots.snapshottable]
    return [directory for directory in directories if is_at_or_below(directory, node)]


def _check_nesting(scene: Scene, source: paths.Route, parent: INodeDirectory) -> None:
    """Check nested snapshottable directories (FSDirRenameOp.validateNestSnapshot).

    Hadoop's root always counts as snapshottable, if something is to be moved right below it.
    """
    snapshottable = scene.namespace.snapshots.snapshottable
    if parent.parent is None or any(step.id in snapshottable for step in above(parent)):
        raise errors.snapshot_error(
            f"Unable to rename because {source.path} has snapshottable descendant directories and "
            f"{full_path(parent)} is a descent of a snapshottable directory, and HDFS does not "
            "support nested snapshottable directory."
        )


def rename(scene: Scene, request: calls.RenameRequestProto) -> EditPlan:
    """Rename as of old: false on failure, and an existing directory is moved into."""
    source, target = _find_ends(scene, request)
    check_unprotected(scene, source)
    requested = target.path
    if isinstance(target.last, INodeDirectory):
        inside = f"{target.path.rstrip('/')}/{paths.text(source.name)}"
        target = find(scene, inside, follow_last=False)
    permissions.check_parent(scene.caller, source, permissions.WRITE)
    permissions.check_ancestor(scene.caller, target, permissions.WRITE)
    refused = no_edits(calls.RenameResponseProto(result=False))
    if source.last is None or not source.names:
        return refused
    check_no_snapshots(scene, source.last)
    if old_rename_target(scene.namespace.tree, source.path, requested) is None:
        return refused
    if _to_own_target(source, target):
        return refused
    _check_not_to_reserved(target)
    if source.names != target.names:
        _check_move(scene, source, target)
    op = RenameOld(source.path, target.path, scene.now_ms, scene.caller.rpc)
    return EditPlan((op,), lambda: calls.RenameResponseProto(result=True))


def rename2(scene: Scene, request: calls.Rename2RequestProto) -> EditPlan:
    """Rename with POSIX semantics: every failure is an exception.

    What is moved to the trash will be deleted there, so the caller must be allowed to delete it.
    """
    source, target = _find_ends(scene, request)
    check_unprotected(scene, source)
    permissions.check_parent(scene.caller, source, permissions.WRITE)
    if request.moveToTrash:
        permissions.check_subtree(scene.caller, source.last)
    permissions.check_ancestor(scene.caller, target, permissions.WRITE)
    src, dst = source.path, target.path
    node = _check_rename_ends(scene, source, target)
    if target.last is not None:
        _check_overwrite(node, target.last, src, dst, overwrite=request.overwriteDest)
        check_no_snapshots(scene, target.last)
    if target.parent is None:
        raise errors.not_found(f"rename destination parent {dst} not found.")
    _check_move(scene, source, target)
    options = [RenameOption.OVERWRITE] if request.overwriteDest else []
    options += [RenameOption.TO_TRASH] if request.moveToTrash else []
    op = Rename(src, dst, scene.now_ms, tuple(options) or (RenameOption.NONE,), scene.caller.rpc)
    return EditPlan((op,), calls.Rename2ResponseProto)


def _find_ends(
    scene: Scene, request: calls.RenameRequestProto | calls.Rename2RequestProto
) -> tuple[paths.Route, paths.Route]:
    """Find the source and the destination of a rename, which may be links themselves."""
    paths.check_length("rename", request.dst)
    source = find(scene, request.src, follow_last=False)
    if not paths.is_valid_name(request.dst):
        raise errors.invalid_path(f"Invalid file name: {request.dst}")
    return source, find(scene, request.dst, follow_last=False, creates=True)


def _check_rename_ends(scene: Scene, source: paths.Route, target: paths.Route) -> INode:
    """Check what rename2 asks of its two paths themselves; return the node that moves."""
    src, dst = source.path, target.path
    node = source.last
    if node is None:
        raise errors.not_found(f"rename source {src} is not found.")
    if not source.names:
        raise errors.io_error("rename source cannot be the root")
    check_no_snapshots(scene, node)
    if source.names == target.names:
        raise errors.already_exists(f"The source {src} and destination {dst} are the same")
    if _to_own_target(source, target):
        raise errors.already_exists(f"Cannot rename symlink {src} to its target {dst}")
    if target.names[: len(source.names)] == source.names:
        raise errors.io_error(f"Rename destination {dst} is a directory or file under source {src}")
    _check_not_to_reserved(target)
    if not target.names:
        raise errors.io_error("rename destination cannot be the root")
    return node


def _check_not_to_reserved(target: paths.Route) -> None:
    """Refuse ``/.reserved`` as a destination, in both renames (validateDestination)."""
    if target.names == _RESERVED:
        raise errors.invalid_path("Cannot rename to or from /.reserved")


def _to_own_target(source: paths.Route, target: paths.Route) -> bool:
    """Return whether a link is to be moved to where it leads, as written in it."""
    link = source.last
    written = target.prefix(len(target.names))
    return isinstance(link, INodeSymlink) and paths.text(link.target) == written


def _check_overwrite(source: INode, target: INode, src: str, dst: str, *, overwrite: bool) -> None:
    if isinstance(source, INodeDirectory) != isinstance(target, INodeDirectory):
        raise errors.io_error(f"Source {src} and destination {dst} must both be directories")
    if not overwrite:
        raise errors.already_exists(f"rename destination {dst} already exists")
    if isinstance(target, INodeDirectory) and target.children:
        raise errors.io_error(f"rename destination directory is not empty: {dst}")


def _check_move(scene: Scene, source: paths.Route, target: paths.Route) -> None:
    """Check the new place: snapshots, the name's length, the directory's size, quotas."""
    node, parent = source.last, target.parent
    assert node is not None
    assert isinstance(parent, INodeDirectory)
    if _snapshottable_in(scene, node):
        _check_nesting(scene, source, parent)
    paths.check_new_name(target.name, parent, scene.settings)
    if parent is not source.parent:
        new_inodes.check_room(scene, parent, 0)
        common = next(step for step in reversed(target.nodes) if step in source.nodes)
        if not any(quotas.limited(parent, common)):
            return  # what is moved may be millions of files, and need not be counted
        tree, policy_id = scene.namespace.tree, effective_policy_id(parent)
        moved = use_below(tree, node, policy_id)
        if target.last is not None:
            moved.add(use_below(tree, target.last, policy_id), -1)
        quotas.check(scene, parent, moved, stop=common)


def create_symlink(_: Scene, __: calls.CreateSymlinkRequestProto) -> EditPlan:
    """Refuse: symlinks are switched off, as in Hadoop."""
    raise errors.FsError(UNSUPPORTED_OPERATION, "Symlinks not supported")
