"""Calls that open, close and lease files (FSDirWriteFileOp, FSNamesystem's lease checks)."""

from ha.rpc.java_names import ALREADY_BEING_CREATED
from namenode_sim.client_protocol.creation import (
    Inherited,
    Modes,
    check_room,
    described,
    inherited_by_file,
    make_directories,
    new_ids,
    passable,
)
from namenode_sim.client_protocol.errors import (
    HADOOP_ILLEGAL_ARGUMENT,
    RECOVERY_IN_PROGRESS,
    FsError,
    already_exists,
    invalid_path,
    io_error,
    lease_expired,
    no_datanodes,
    not_found,
)
from namenode_sim.client_protocol.leases import SOFT_LIMIT_SECONDS
from namenode_sim.client_protocol.model import EditPlan, Scene, no_edits
from namenode_sim.client_protocol.paths import (
    Route,
    as_file,
    check_length,
    check_new_name,
    check_parent_exists,
    is_valid_name,
    resolve,
    route_to,
)
from namenode_sim.client_protocol.permissions import (
    WRITE,
    check_ancestor,
    check_path,
    find,
)
from namenode_sim.client_protocol.policies import BY_NAME, POLICIES
from namenode_sim.client_protocol.status import status_of
from namenode_sim.edits.ops import Add, Append, Close, Mkdir, Op, UpdateBlocks
from namenode_sim.edits.values import Permission
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.namespace.retry_cache import Opened
from namenode_sim.proto import client_namenode_pb2 as calls

CREATE, OVERWRITE, LAZY_PERSIST, NEW_BLOCK = 1, 2, 16, 32
_LAZY_PERSIST_POLICY = 15


def create(scene: Scene, request: calls.CreateRequestProto) -> EditPlan:
    """Make a new file and open it for the caller; with OVERWRITE an old one goes first."""
    route = _check_create(scene, request)
    closing: tuple[Op, ...] = ()
    if route.last is not None and not request.createFlag & OVERWRITE:
        closing = _recover_lease(scene, route, request.clientName, "CREATE_FILE")
        if not closing:
            raise already_exists(f"{route.path} for client {scene.caller.host} already exists")
    if closing:
        # The abandoned file is complete now, so the path is taken; the close itself stays.
        return EditPlan(closing, lambda: _taken(route, scene.caller.host))
    check_replication(scene, request.replication, route.path, request.clientName)
    if route.last is not None:
        directories: list[Mkdir] = []
        add = _add(scene, request, route, scene.namespace.counters.last_inode_id + 1, None)
    else:
        directories, add = _add_with_parents(scene, request, route)
    scene.leases.renew(request.clientName, scene.now)
    return EditPlan((*directories, add), lambda: created(scene, add.path))


def _taken(route: Route, host: str) -> calls.CreateResponseProto:
    raise already_exists(f"{route.path} for client {host} already exists")


def created(scene: Scene, path: str) -> calls.CreateResponseProto:
    """The answer to create, from the file as it now is."""
    file = scene.namespace.tree.file(path)
    return calls.CreateResponseProto(fs=status_of(scene.namespace, file))


def created_before(scene: Scene) -> calls.CreateResponseProto:
    """The answer to a create that was carried out already, for a client that missed it."""
    file = _opened(scene)
    return calls.CreateResponseProto(fs=status_of(scene.namespace, file))


def appended_before(scene: Scene) -> calls.AppendResponseProto:
    """The answer to an append that was carried out already."""
    return calls.AppendResponseProto(stat=status_of(scene.namespace, _opened(scene)))


def _opened(scene: Scene) -> INodeFile:
    answer = scene.namespace.retry_cache.find(scene.caller.rpc)
    assert isinstance(answer, Opened)
    return answer.file


def _check_create(scene: Scene, request: calls.CreateRequestProto) -> Route:
    check_length("create", request.src)
    if not is_valid_name(request.src):
        raise invalid_path(f"Invalid file name: {request.src}")
    if request.blockSize < scene.settings.min_block_size:
        raise io_error(
            "Specified block size is less than configured minimum value "
            f"(dfs.namenode.fs-limits.min-block-size): {request.blockSize} < "
            f"{scene.settings.min_block_size}"
        )
    route = find(scene, request.src, creates=True)
    check_ancestor(scene.caller, route, WRITE)
    if isinstance(route.last, INodeDirectory):
        raise already_exists(f"{route.path} already exists as a directory")
    if route.last is not None:
        if request.createFlag & OVERWRITE:
            check_path(scene.caller, route, WRITE)
        return route
    if not request.createParent:
        check_parent_exists(route)
    if not request.createFlag & CREATE:
        raise not_found(f"Can't overwrite non-existent {route.path}")
    return route


def check_replication(scene: Scene, replication: int, path: str, client: str | None) -> None:
    """BlockManager.verifyReplication."""
    lowest, highest = scene.settings.min_replication, scene.settings.max_replication
    if lowest <= replication <= highest:
        return
    broken = (
        f"exceeds maximum of {highest}"
        if replication > highest
        else f"is less than the required minimum of {lowest}"
    )
    asker = f" from {client}" if client else ""
    raise io_error(f"Requested replication factor of {replication} {broken} for {path}{asker}")


def _add_with_parents(
    scene: Scene, request: calls.CreateRequestProto, route: Route
) -> tuple[list[Mkdir], Add]:
    """A new file, and the directories missing above it, whose mode comes from the last there."""
    ids, first = new_ids(scene), route.existing
    above = route.nodes[first]
    assert isinstance(above, INodeDirectory)
    mode = passable(above.mode)
    made = make_directories(scene, ids, route, len(route.names) - 1, Modes(mode, None, above=mode))
    check_new_name(route.name, above, scene.settings)
    check_room(scene, above, len(route.names) - first)
    placed = (made.group, inherited_by_file(scene, request, made.acl))
    return made.ops, _add(scene, request, route, ids.next(), placed)


def _add(
    scene: Scene,
    request: calls.CreateRequestProto,
    route: Route,
    inode_id: int,
    placed: tuple[str, Inherited] | None,
) -> Add:
    if placed is None:  # overwriting: the directory is there, the old file goes first
        parent = route.parent
        assert isinstance(parent, INodeDirectory)
        placed = (parent.group, inherited_by_file(scene, request, parent.acl))
    group, inherited = placed
    return Add(
        inode_id=inode_id,
        path=route.path,
        replication=request.replication,
        mtime=scene.now_ms,
        atime=scene.now_ms,
        block_size=request.blockSize,
        blocks=(),
        permission=Permission(scene.caller.user, group, inherited.mode),
        acl=inherited.acl,
        client_name=request.clientName,
        client_machine=scene.caller.host,
        overwrite=bool(request.createFlag & OVERWRITE),
        storage_policy_id=_policy_for(request),
        rpc=scene.caller.rpc,
    )


def _policy_for(request: calls.CreateRequestProto) -> int:
    if request.storagePolicy:
        policy = BY_NAME.get(request.storagePolicy.upper())
        if policy is None:
            raise FsError(
                HADOOP_ILLEGAL_ARGUMENT,
                f"Cannot find a block policy with the name {request.storagePolicy}",
            )
        return policy.id
    if request.createFlag & LAZY_PERSIST and _LAZY_PERSIST_POLICY in POLICIES:
        return _LAZY_PERSIST_POLICY
    return 0


def _recover_lease(scene: Scene, route: Route, client: str, op: str) -> tuple[Op, ...]:
    """Refuse while another writes the file; closing edits if its lease has run out.

    FSNamesystem.recoverLeaseInternal.  A holder silent for longer than the soft limit loses the
    file at once if it has no block; one with blocks needs DataNodes to agree on its length.
    """
    file = as_file(route)
    writer = file.under_construction
    if writer is None:
        return ()
    caller = f"Failed to {op} {route.path} for {client} on {scene.caller.host} because"
    if writer.client_name == client:
        raise FsError(
            ALREADY_BEING_CREATED, f"{caller} {client} is already the current lease holder."
        )
    silent = scene.leases.idle_seconds(writer.client_name, scene.now)
    if silent <= SOFT_LIMIT_SECONDS:
        raise FsError(
            ALREADY_BEING_CREATED,
            f"{caller} this file lease is currently owned by {writer.client_name} on "
            f"{writer.client_machine}",
        )
    if file.blocks:
        raise FsError(
            RECOVERY_IN_PROGRESS, f"{caller} lease recovery is in progress. Try again later."
        )
    return (close_edit(file, route.path, scene.now_ms),)


def close_edit(file: INodeFile, path: str, now_ms: int) -> Close:
    """The edit that completes a file."""
    return Close(
        inode_id=0,
        path=path,
        replication=file.replication,
        mtime=now_ms,
        atime=file.atime,
        block_size=file.preferred_block_size,
        blocks=file.blocks,
        permission=described(file),
    )


def recover_lease(scene: Scene, request: calls.RecoverLeaseRequestProto) -> EditPlan:
    """Take a file from its writer; true once it is closed."""
    route = find(scene, request.src)
    file = as_file(route)
    if file.under_construction is None:
        return no_edits(calls.RecoverLeaseResponseProto(result=True))
    check_path(scene.caller, route, WRITE)
    if file.blocks:
        return no_edits(calls.RecoverLeaseResponseProto(result=False))
    op = close_edit(file, route.path, scene.now_ms)
    return EditPlan((op,), lambda: calls.RecoverLeaseResponseProto(result=True))


def complete(scene: Scene, request: calls.CompleteRequestProto) -> EditPlan:
    """Close a file; true also for a repeated call that succeeded before."""
    route = _by_id(scene, request.src, request.fileId)
    node = route.last
    closed = isinstance(node, INodeFile) and node.under_construction is None
    if closed and _same_last_block(request, node):
        # The file is closed and ends in the very block that the caller says: its first call
        # got through and the answer was lost.
        return no_edits(calls.CompleteResponseProto(result=True))
    file = check_lease(scene, route, request.clientName, request.fileId)
    if request.HasField("last") or file.blocks:
        return no_edits(calls.CompleteResponseProto(result=False))
    op = close_edit(file, route.path, scene.now_ms)
    return EditPlan((op,), lambda: calls.CompleteResponseProto(result=True))


def _same_last_block(request: calls.CompleteRequestProto, file: object) -> bool:
    assert isinstance(file, INodeFile)
    if not request.HasField("last"):
        return not file.blocks
    last = (request.last.blockId, request.last.generationStamp)
    return bool(file.blocks) and last == (
        file.blocks[-1].block_id % 2**64,
        file.blocks[-1].generation_stamp,
    )


def _by_id(scene: Scene, path: str, file_id: int) -> Route:
    """Where the file is now, which may have been renamed since it was opened."""
    if file_id == 0:
        return find(scene, path)
    node = scene.namespace.tree.inodes.get(file_id)
    if node is None:
        route = resolve(scene.namespace, path)
        return Route(route.path, route.names, (*route.nodes[:-1], None))
    return route_to(node)


def check_lease(scene: Scene, route: Route, holder: str, file_id: int) -> INodeFile:
    """The caller must hold the file's lease (FSNamesystem.checkLease)."""
    files = scene.namespace.tree.leases.get(holder)
    lease = (
        f"[Lease.  Holder: {holder}, pending creates: {len(files)}]"
        if files
        else f"Holder {holder} does not have any open files."
    )
    where = f"{route.path} (inode {file_id}) {lease}"
    if route.last is None:
        raise not_found(f"File does not exist: {where}")
    if not isinstance(route.last, INodeFile):
        raise lease_expired(f"INode is not a regular file: {where}")
    writer = route.last.under_construction
    if writer is None:
        raise lease_expired(f"File is not open for writing: {where}")
    if writer.client_name != holder:
        raise lease_expired(
            f"Client (={holder}) is not the lease owner (={writer.client_name}: {where}"
        )
    scene.leases.renew(holder, scene.now)
    return route.last


def fsync(scene: Scene, request: calls.FsyncRequestProto) -> EditPlan:
    """Record the blocks of an open file."""
    route = _by_id(scene, request.src, request.fileId)
    file = check_lease(scene, route, request.client, request.fileId)
    return EditPlan((UpdateBlocks(route.path, file.blocks),), calls.FsyncResponseProto)


def renew_lease(scene: Scene, request: calls.RenewLeaseRequestProto) -> EditPlan:
    if request.clientName in scene.namespace.tree.leases:
        scene.leases.renew(request.clientName, scene.now)
    return no_edits(calls.RenewLeaseResponseProto())


def append(scene: Scene, request: calls.AppendRequestProto) -> EditPlan:
    """Reopen an empty file; one with blocks would need DataNodes."""
    route = find(scene, request.src)
    file = as_file(route)
    check_path(scene.caller, route, WRITE)
    closing = _recover_lease(scene, route, request.clientName, "APPEND_FILE")
    if file.blocks:
        raise no_datanodes(route.path)
    scene.leases.renew(request.clientName, scene.now)
    op = Append(
        route.path,
        request.clientName,
        scene.caller.host,
        new_block=bool(request.flag & NEW_BLOCK),
        rpc=scene.caller.rpc,
    )
    return EditPlan((*closing, op), lambda: appended(scene, route.path))


def appended(scene: Scene, path: str) -> calls.AppendResponseProto:
    """The answer to append: no block to go on with, so the client asks for a new one."""
    file = scene.namespace.tree.file(path)
    return calls.AppendResponseProto(stat=status_of(scene.namespace, file))


def add_block(scene: Scene, request: calls.AddBlockRequestProto) -> EditPlan:
    """Refused: there is no DataNode in this build to put a block on."""
    route = _by_id(scene, request.src, request.fileId)
    file = check_lease(scene, route, request.clientName, request.fileId)
    if len(file.blocks) >= scene.settings.max_blocks:
        raise io_error(
            "File has reached the limit on maximum number of blocks "
            f"(dfs.namenode.fs-limits.max-blocks-per-file): {len(file.blocks)} >= "
            f"{scene.settings.max_blocks}"
        )
    raise no_datanodes(route.path)


def truncate(scene: Scene, request: calls.TruncateRequestProto) -> EditPlan:
    """Only to the length that the file already has; cutting blocks needs DataNodes."""
    route = find(scene, request.src)
    file = as_file(route)
    check_path(scene.caller, route, WRITE)
    closing = _recover_lease(scene, route, request.clientName, "TRUNCATE_FILE")
    length = file.length()
    if request.newLength > length:
        raise FsError(
            HADOOP_ILLEGAL_ARGUMENT,
            f"Cannot truncate to a larger file size. Current size: {length}, "
            f"truncate size: {request.newLength}.",
        )
    if request.newLength < length:
        raise no_datanodes(route.path)
    return EditPlan(closing, lambda: calls.TruncateResponseProto(result=True))


def expired_leases(scene: Scene) -> list[Close]:
    """The edits that close the empty files of writers silent beyond the hard limit."""
    tree, found = scene.namespace.tree, []
    for holder, files in tree.leases.items():
        if scene.leases.idle_seconds(holder, scene.now) <= scene.settings.hard_lease_seconds:
            continue
        for number in sorted(files):
            file = as_file(route_to(tree.inodes[number]))
            if not file.blocks:
                found.append(close_edit(file, route_to(file).path, scene.now_ms))
    return found
