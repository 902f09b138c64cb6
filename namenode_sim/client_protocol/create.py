"""create: a new file, open for its caller (FSDirWriteFileOp.startFile)."""

from typing import NoReturn

from namenode_sim.client_protocol.creation import (
    Inherited,
    Modes,
    check_room,
    inherited_by_file,
    make_directories,
    new_ids,
    passable,
)
from namenode_sim.client_protocol.errors import (
    HADOOP_ILLEGAL_ARGUMENT,
    FsError,
    already_exists,
    invalid_path,
    io_error,
    not_found,
)
from namenode_sim.client_protocol.lease_taking import NotYet, take_lease
from namenode_sim.client_protocol.model import EditPlan, Scene
from namenode_sim.client_protocol.open_files import opened_before
from namenode_sim.client_protocol.paths import (
    Route,
    check_length,
    check_new_name,
    check_parent_exists,
    is_valid_name,
)
from namenode_sim.client_protocol.permissions import WRITE, check_ancestor, check_path, find
from namenode_sim.client_protocol.status import erasure_coding_of, status_of
from namenode_sim.datanodes.storage_policies import BY_NAME, POLICIES
from namenode_sim.edits.ops import Add, Mkdir
from namenode_sim.edits.values import Permission
from namenode_sim.leases.taking import Intent
from namenode_sim.namespace.inode import INodeDirectory
from namenode_sim.proto import client_namenode_pb2 as calls

CREATE, OVERWRITE, LAZY_PERSIST = 1, 2, 16
_LAZY_PERSIST_POLICY = 15


def create(scene: Scene, request: calls.CreateRequestProto) -> EditPlan:
    """Make a new file and open it for the caller; with OVERWRITE an old one goes first."""
    route = _check_create(scene, request)
    if route.last is not None and not request.createFlag & OVERWRITE:
        return _refusing(scene, route, request.clientName)
    check_replication(scene, request.replication, route.path, request.clientName)
    if route.last is not None:
        directories: list[Mkdir] = []
        add = _add(scene, request, route, scene.namespace.counters.last_inode_id + 1, None)
    else:
        directories, add = _add_with_parents(scene, request, route)
    scene.leases.renew(request.clientName, scene.now)
    return EditPlan((*directories, add), lambda: created(scene, add.path))


def _refusing(scene: Scene, route: Route, client: str) -> EditPlan:
    """The path is taken, also by an abandoned file; that one's lease is released all the same."""
    taken = take_lease(scene, route, client, Intent.CREATE)
    if isinstance(taken, NotYet):
        return taken.plan

    def answer() -> NoReturn:
        raise already_exists(f"{route.path} for client {scene.caller.host} already exists")

    return EditPlan(taken.ops, answer)


def created(scene: Scene, path: str) -> calls.CreateResponseProto:
    """The answer to create, from the file as it now is."""
    file = scene.namespace.tree.file(path)
    return calls.CreateResponseProto(fs=status_of(scene.namespace, file))


def created_before(scene: Scene) -> calls.CreateResponseProto:
    """The answer to a create that was carried out already, for a client that missed it."""
    file = opened_before(scene)
    return calls.CreateResponseProto(fs=status_of(scene.namespace, file))


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
    above = route.nodes[route.existing]
    if above is not None and erasure_coding_of(scene.namespace, above) is not None:
        raise io_error(
            f"{route.path} is to be created where an erasure coding policy is set; this NameNode "
            "writes no striped files. Create it elsewhere, or unset the policy"
        )
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
