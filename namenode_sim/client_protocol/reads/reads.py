"""Calls that change nothing: what the answer is, given the namespace and the caller."""

from bisect import bisect_right

from ha.rpc.java_names import ACCESS_CONTROL
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types
from namenode_sim.client_protocol.words import errors, permissions
from namenode_sim.client_protocol.words import status as words_status
from namenode_sim.client_protocol.words.block_locations import located_blocks
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.paths import DOT_SNAPSHOT, Route, as_file, resolve, text
from namenode_sim.client_protocol.words.permissions import find
from namenode_sim.datanodes.model import AdminState
from namenode_sim.namespace import inode
from namenode_sim.namespace.inode import signed_order
from namenode_sim.namespace.snapshots.diffs import names_in_order
from namenode_sim.namespace.tree import components


def get_file_info(
    scene: Scene, request: calls.GetFileInfoRequestProto
) -> calls.GetFileInfoResponseProto:
    """Return a path's status; an unset field if there is none."""
    return calls.GetFileInfoResponseProto(fs=_status(scene, request.src, follow_last=True))


def get_file_link_info(
    scene: Scene, request: calls.GetFileLinkInfoRequestProto
) -> calls.GetFileLinkInfoResponseProto:
    """Do as getFileInfo, but return a symlink's own status instead of its target's."""
    return calls.GetFileLinkInfoResponseProto(fs=_status(scene, request.src, follow_last=False))


def get_located_file_info(
    scene: Scene, request: calls.GetLocatedFileInfoRequestProto
) -> calls.GetLocatedFileInfoResponseProto:
    """Do as getFileInfo, and add the block locations of a file."""
    status = _status(scene, request.src, follow_last=True, located=True)
    return calls.GetLocatedFileInfoResponseProto(fs=status)


def _status(
    scene: Scene, path: str, *, follow_last: bool, located: bool = False
) -> types.HdfsFileStatusProto | None:
    """Return a path's status; None if there is nothing: the answer's field stays unset."""
    route = _find_or_none(scene, path, follow_last=follow_last)
    if route is not None and route.is_dot_snapshot:
        return words_status.dot_snapshot_status()
    if route is not None and route.is_reserved:
        return words_status.reserved_status()
    if route is None or route.last is None:
        return None
    return _entry(scene, route, route.last, located=located)


def _find_or_none(scene: Scene, path: str, *, follow_last: bool) -> Route | None:
    """Return None for the one denial that a superuser can get: a file among the ancestors."""
    try:
        return find(scene, path, follow_last=follow_last)
    except errors.FsError as error:
        if scene.caller.is_super and error.java_class == ACCESS_CONTROL:
            return None
        raise


def get_listing(
    scene: Scene, request: calls.GetListingRequestProto
) -> calls.GetListingResponseProto:
    """Return one page of a directory, after the name ``startAfter``; a file lists itself."""
    route = find(scene, request.src)
    after = _start_name(scene, request.startAfter)
    if route.is_dot_snapshot:
        return _list_snapshots(scene, route, after)
    if route.is_reserved:
        # Of the supergroup in Hadoop, to which the root belongs until its group is changed.
        entries = words_status.reserved_entries(scene.namespace.tree.root.group)
        listing = types.DirectoryListingProto(partialListing=entries, remainingEntries=0)
        return calls.GetListingResponseProto(dirList=listing)
    node = route.last
    if node is None:
        if route.name == DOT_SNAPSHOT:
            if route.parent is None:
                raise errors.not_found(f"Directory does not exist: {route.parent_path}")
            raise errors.snapshot_error(
                f"Directory is not a snapshottable directory: {route.parent_path}"
            )
        return calls.GetListingResponseProto()
    listing = types.DirectoryListingProto(remainingEntries=0)
    if not isinstance(node, inode.INodeDirectory):
        listing.partialListing.append(_entry(scene, route, node, located=request.needLocation))
        return calls.GetListingResponseProto(dirList=listing)
    permissions.check_path(scene.caller, route, permissions.READ | permissions.EXECUTE)
    page, remaining = page_of(scene, node.ordered_names(), after)
    left_out = _list(scene, route, node, page, listing, located=request.needLocation)
    listing.remainingEntries = remaining + left_out
    return calls.GetListingResponseProto(dirList=listing)


def _list(
    scene: Scene,
    route: Route,
    directory: inode.INodeDirectory,
    names: list[bytes],
    listing: types.DirectoryListingProto,
    *,
    located: bool,
) -> int:
    """Add the entries of these names; return how many are left out, as replicas are too many.

    The status of a file that is like the one before takes a third of the time: it is that one's,
    with other numbers.
    """
    replicas, entry, like = 0, types.HdfsFileStatusProto(), None
    for number, name in enumerate(names):
        if replicas >= scene.settings.listing_limit:
            return len(names) - number
        child = _child(route, directory, name)
        if like is not None and isinstance(child, inode.INodeFile) and _is_sibling(child, like):
            words_status.fill_in_numbers(entry, child, name)
        else:
            entry = _entry(scene, route, child, name, located=located)
            replicas += len(entry.locations.blocks) * entry.block_replication
            like = child if isinstance(child, inode.INodeFile) and not located else None
        listing.partialListing.append(entry)
    return 0


def _is_sibling(node: inode.INodeFile, like: inode.INodeFile) -> bool:
    """Return whether a file differs from another of its directory in name and numbers alone.

    A past inode has no parent, and what is above it may be another's.
    """
    return node.traits is like.traits and node.parent is like.parent is not None


def _start_name(scene: Scene, after: bytes) -> bytes:
    """Return the name to begin after, which an NFS gateway gives as the path of its inode."""
    if not after.startswith(b"/.reserved/"):
        return after
    try:
        return resolve(scene.namespace, text(after)).name
    except errors.FsError as gone:
        raise errors.FsError(
            errors.START_AFTER_NOT_FOUND, f"Can't find startAfter {text(after)}"
        ) from gone


def _child(route: Route, directory: inode.INodeDirectory, name: bytes) -> inode.INode:
    """Return a directory's child, as it was if the route leads into a snapshot."""
    below = route.sight.child(name) if route.sight is not None else None
    return directory.children[name] if below is None else below.node


def _entry(
    scene: Scene, route: Route, node: inode.INode, name: bytes = b"", *, located: bool
) -> types.HdfsFileStatusProto:
    """Return a status, with a file's blocks if they are asked for."""
    status = words_status.status_of(scene.namespace, node, name)
    if located and isinstance(node, inode.INodeFile):
        status.locations.MergeFromString(
            located_blocks(scene, node, 0, node.length(), in_snapshot=route.in_snapshot)
        )
    return status


def page_of(scene: Scene, names: list[bytes], after: bytes) -> tuple[list[bytes], int]:
    """Return the names of one answer, and how many come after them."""
    start = bisect_right(names, signed_order(after), key=signed_order)
    end = min(start + scene.settings.listing_limit, len(names))
    return names[start:end], len(names) - end


def _list_snapshots(scene: Scene, route: Route, after: bytes) -> calls.GetListingResponseProto:
    """Return the snapshots of a directory as the entries of its ``.snapshot``."""
    directory = route.parent
    assert isinstance(directory, inode.INodeDirectory)
    taken = scene.namespace.snapshots.snapshottable.get(directory.id, [])
    by_name = {snapshot.root.name: snapshot for snapshot in taken}
    page, remaining = page_of(scene, names_in_order(by_name), after)
    listing = types.DirectoryListingProto(remainingEntries=remaining)
    for name in page:
        listing.partialListing.append(
            words_status.snapshot_root_status(scene.namespace, directory, by_name[name])
        )
    return calls.GetListingResponseProto(dirList=listing)


def is_file_closed(
    scene: Scene, request: calls.IsFileClosedRequestProto
) -> calls.IsFileClosedResponseProto:
    file = as_file(find(scene, request.src))
    return calls.IsFileClosedResponseProto(result=file.under_construction is None)


def get_preferred_block_size(
    scene: Scene, request: calls.GetPreferredBlockSizeRequestProto
) -> calls.GetPreferredBlockSizeResponseProto:
    file = as_file(find(scene, request.filename, follow_last=False))
    return calls.GetPreferredBlockSizeResponseProto(bsize=file.preferred_block_size)


def get_link_target(
    scene: Scene, request: calls.GetLinkTargetRequestProto
) -> calls.GetLinkTargetResponseProto:
    """Return the target of a link at or on the way to a path: clients go on there in both cases."""
    try:
        status = _status(scene, request.path, follow_last=False)
    except errors.FsError as error:
        if error.java_class == errors.UNRESOLVED_PATH:
            return calls.GetLinkTargetResponseProto(targetPath=error.message)
        raise
    if status is None:
        raise errors.not_found(f"File does not exist: {request.path}")
    if status.fileType != types.HdfsFileStatusProto.IS_SYMLINK:
        raise errors.io_error(f"Path {request.path} is not a symbolic link")
    return calls.GetLinkTargetResponseProto(targetPath=text(status.symlink))


def check_access(
    scene: Scene, request: calls.CheckAccessRequestProto
) -> calls.CheckAccessResponseProto:
    route = find(scene, request.path)
    if route.last is None:
        raise errors.not_found(f"Path not found: {route.path}")
    permissions.check_path(scene.caller, route, int(request.mode))
    return calls.CheckAccessResponseProto()


def list_open_files(
    scene: Scene, request: calls.ListOpenFilesRequestProto
) -> calls.ListOpenFilesResponseProto:
    """Return a page of the files under construction with inode ids above ``id``, in order.

    An empty page ends the list for clients, so files elsewhere than at the path are passed over.
    """
    permissions.check_superuser(scene.caller)
    answer = calls.ListOpenFilesResponseProto(hasMore=False, types=request.types)
    only_blocking = bool(request.types) and types.ALL_OPEN_FILES not in request.types
    leases, top = scene.namespace.tree.leases, components(request.path)
    later = (number for files in leases.values() for number in files if number > request.id)
    for number in sorted(later):
        file = scene.namespace.tree.inodes[number]
        path = inode.full_path(file)
        if components(path)[: len(top)] != top:
            continue
        if only_blocking and not _holds_up_decommission(scene, file):
            continue
        if len(answer.entries) == scene.settings.listing_limit:
            answer.hasMore = True
            break
        answer.entries.append(_open_file(file, path))
    return answer


def _holds_up_decommission(scene: Scene, file: inode.INode) -> bool:
    """Return whether a DataNode that is being decommissioned has a block of an open file."""
    assert isinstance(file, inode.INodeFile)
    find, storages = scene.cluster.blocks.map.find, scene.cluster.blocks.map.storages_of
    found = (find(block.block_id) for block in file.blocks)
    numbers = (n for slot in found if slot is not None for n in storages(slot))
    nodes = (scene.cluster.place(number)[0] for number in numbers)
    return any(node.admin is AdminState.DECOMMISSION_INPROGRESS for node in nodes)


def _open_file(file: inode.INode, path: str) -> calls.OpenFilesBatchResponseProto:
    assert isinstance(file, inode.INodeFile)
    writer = file.under_construction
    assert writer is not None  # or it would not be in the list of leases
    return calls.OpenFilesBatchResponseProto(
        id=file.id, path=path, clientName=writer.client_name, clientMachine=writer.client_machine
    )
