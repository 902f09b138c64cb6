"""Calls that change nothing: what the answer is, given the namespace and the caller."""

from bisect import bisect_right

from namenode_sim.client_protocol.errors import FsError, not_found
from namenode_sim.client_protocol.located import located_blocks
from namenode_sim.client_protocol.model import Scene
from namenode_sim.client_protocol.paths import Route, as_file, route_to
from namenode_sim.client_protocol.permissions import (
    EXECUTE,
    READ,
    check_path,
    check_superuser,
    find,
)
from namenode_sim.client_protocol.status import (
    dot_snapshot_status,
    snapshot_root_status,
    status_of,
)
from namenode_sim.namespace.inode import (
    INode,
    INodeDirectory,
    INodeFile,
    INodeSymlink,
    signed_order,
)
from namenode_sim.namespace.snapshots.diffs import names_in_order
from namenode_sim.proto import client_namenode_pb2 as calls
from namenode_sim.proto import hdfs_types_pb2 as types

ACCESS_CONTROL_CLASSES = frozenset({"org.apache.hadoop.security.AccessControlException"})


def get_file_info(
    scene: Scene, request: calls.GetFileInfoRequestProto
) -> calls.GetFileInfoResponseProto:
    """A path's status; an unset field if there is none."""
    return calls.GetFileInfoResponseProto(fs=_status(scene, request.src, follow_last=True))


def get_file_link_info(
    scene: Scene, request: calls.GetFileLinkInfoRequestProto
) -> calls.GetFileLinkInfoResponseProto:
    """As getFileInfo, but a symlink's own status instead of its target's."""
    return calls.GetFileLinkInfoResponseProto(fs=_status(scene, request.src, follow_last=False))


def get_located_file_info(
    scene: Scene, request: calls.GetLocatedFileInfoRequestProto
) -> calls.GetLocatedFileInfoResponseProto:
    """As getFileInfo, with the block locations of a file."""
    route = _find_or_none(scene, request.src, follow_last=True)
    if route is None or route.last is None:
        return calls.GetLocatedFileInfoResponseProto()
    status = status_of(scene.namespace, route.last)
    if not isinstance(route.last, INodeDirectory):
        status.locations.CopyFrom(_all_blocks(scene, as_file(route), in_snapshot=route.in_snapshot))
    return calls.GetLocatedFileInfoResponseProto(fs=status)


def _status(scene: Scene, path: str, *, follow_last: bool) -> types.HdfsFileStatusProto | None:
    """None where there is nothing, which leaves the answer's field unset."""
    route = _find_or_none(scene, path, follow_last=follow_last)
    if route is not None and route.is_dot_snapshot:
        return dot_snapshot_status()
    if route is None or route.last is None:
        return None
    return status_of(scene.namespace, route.last)


def _find_or_none(scene: Scene, path: str, *, follow_last: bool) -> Route | None:
    """The superuser's one possible denial, a file among the ancestors, means "no such path"."""
    try:
        return find(scene, path, follow_last=follow_last)
    except FsError as error:
        if scene.caller.is_super and error.java_class in ACCESS_CONTROL_CLASSES:
            return None
        raise


def _all_blocks(scene: Scene, file: INodeFile, *, in_snapshot: bool) -> types.LocatedBlocksProto:
    return located_blocks(scene, file, 0, file.length(), in_snapshot=in_snapshot)


def get_listing(
    scene: Scene, request: calls.GetListingRequestProto
) -> calls.GetListingResponseProto:
    """One page of a directory, from the name after ``startAfter`` on; a file lists itself."""
    route = find(scene, request.src)
    if route.is_dot_snapshot:
        return _list_snapshots(scene, route, request.startAfter)
    node = route.last
    if isinstance(node, INodeDirectory):
        check_path(scene.caller, route, READ | EXECUTE)
    if node is None:
        return calls.GetListingResponseProto()
    listing = types.DirectoryListingProto(remainingEntries=0)
    if not isinstance(node, INodeDirectory):
        listing.partialListing.append(_entry(scene, route, request, node, b""))
        return calls.GetListingResponseProto(dirList=listing)
    sight = route.sight
    names = sight.names() if sight is not None else node.ordered_names()
    page, remaining = _page(scene, names, request.startAfter)
    replicas = 0
    for number, name in enumerate(page):
        if replicas >= scene.settings.listing_limit:
            remaining += len(page) - number
            break
        child: INode | None = node.children[name]
        if sight is not None:
            below = sight.child(name)
            child = below.node if below is not None else None
        if child is not None:
            entry = _entry(scene, route, request, child, name)
            replicas += sum(len(block.locs) for block in entry.locations.blocks)
            listing.partialListing.append(entry)
    listing.remainingEntries = remaining
    return calls.GetListingResponseProto(dirList=listing)


def _entry(
    scene: Scene, route: Route, request: calls.GetListingRequestProto, node: INode, name: bytes
) -> types.HdfsFileStatusProto:
    """One entry of a listing, with its blocks if they are asked for."""
    status = status_of(scene.namespace, node, name)
    if request.needLocation and isinstance(node, INodeFile):
        status.locations.CopyFrom(_all_blocks(scene, node, in_snapshot=route.in_snapshot))
    return status


def _page(scene: Scene, names: list[bytes], after: bytes) -> tuple[list[bytes], int]:
    """The names of one answer, and how many come after them."""
    start = bisect_right(names, signed_order(after), key=signed_order)
    end = min(start + scene.settings.listing_limit, len(names))
    return names[start:end], len(names) - end


def _list_snapshots(scene: Scene, route: Route, after: bytes) -> calls.GetListingResponseProto:
    """The snapshots of a directory as the entries of its ``.snapshot``."""
    directory = route.parent
    assert isinstance(directory, INodeDirectory)
    taken = scene.namespace.snapshots.snapshottable.get(directory.id, [])
    by_name = {snapshot.root.name: snapshot for snapshot in taken}
    page, remaining = _page(scene, names_in_order(by_name), after)
    listing = types.DirectoryListingProto(remainingEntries=remaining)
    for name in page:
        listing.partialListing.append(
            snapshot_root_status(scene.namespace, directory, by_name[name])
        )
    return calls.GetListingResponseProto(dirList=listing)


def is_file_closed(
    scene: Scene, request: calls.IsFileClosedRequestProto
) -> calls.IsFileClosedResponseProto:
    """Whether nobody writes the file."""
    file = as_file(find(scene, request.src))
    return calls.IsFileClosedResponseProto(result=file.under_construction is None)


def get_preferred_block_size(
    scene: Scene, request: calls.GetPreferredBlockSizeRequestProto
) -> calls.GetPreferredBlockSizeResponseProto:
    """The block size that a file was created with."""
    file = as_file(find(scene, request.filename, follow_last=False))
    return calls.GetPreferredBlockSizeResponseProto(bsize=file.preferred_block_size)


def get_link_target(
    scene: Scene, request: calls.GetLinkTargetRequestProto
) -> calls.GetLinkTargetResponseProto:
    route = find(scene, request.path, follow_last=False)
    if route.last is None:
        raise not_found(f"File does not exist: {route.path}")
    answer = calls.GetLinkTargetResponseProto()
    if isinstance(route.last, INodeSymlink):
        answer.targetPath = route.last.target.decode("utf-8", "replace")
    return answer


def check_access(
    scene: Scene, request: calls.CheckAccessRequestProto
) -> calls.CheckAccessResponseProto:
    """Refuse if the caller has not all the asked-for access."""
    route = find(scene, request.path)
    if route.last is None:
        raise not_found(f"Path not found: {route.path}")
    check_path(scene.caller, route, int(request.mode))
    return calls.CheckAccessResponseProto()


def list_open_files(
    scene: Scene, request: calls.ListOpenFilesRequestProto
) -> calls.ListOpenFilesResponseProto:
    """Files under construction with inode ids above ``id``, in their order, page by page."""
    check_superuser(scene.caller)
    tree = scene.namespace.tree
    held = sorted((number, holder) for holder, files in tree.leases.items() for number in files)
    later = [(number, holder) for number, holder in held if number > request.id]
    page = later[: scene.settings.listing_limit]
    answer = calls.ListOpenFilesResponseProto(hasMore=len(later) > len(page))
    for number, holder in page:
        entry = _open_file(scene, number, holder)
        if not request.path or entry.path.startswith(request.path):
            answer.entries.append(entry)
    answer.types.extend(request.types)
    return answer


def _open_file(scene: Scene, number: int, holder: str) -> calls.OpenFilesBatchResponseProto:
    node = scene.namespace.tree.inodes[number]
    route = route_to(node)
    writer = as_file(route).under_construction
    return calls.OpenFilesBatchResponseProto(
        id=number,
        path=route.path,
        clientName=holder,
        clientMachine=writer.client_machine if writer else "",
    )
