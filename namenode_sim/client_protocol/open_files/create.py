"""create: a new file, open for its caller (FSDirWriteFileOp.startFile)."""

from collections.abc import Iterator

from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.open_files import lease_recovery
from namenode_sim.client_protocol.open_files.open_files import opened_before
from namenode_sim.client_protocol.words import errors, new_inodes, paths, quotas
from namenode_sim.client_protocol.words.model import EditPlan, Scene, refused
from namenode_sim.client_protocol.words.permissions import WRITE, check_ancestor, check_path, find
from namenode_sim.client_protocol.words.status import erasure_coding_of, status_of
from namenode_sim.datanodes.storage_policies import BY_NAME, StoragePolicy
from namenode_sim.edits.ops import Add, Mkdir
from namenode_sim.edits.values import Permission
from namenode_sim.leases.taking import Intent
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.namespace.snapshots import diffs
from namenode_sim.namespace.usage import Use, effective_policy_id

CREATE, OVERWRITE, LAZY_PERSIST, SHOULD_REPLICATE = 1, 2, 16, 128
_REPLICATION = "replication"
"""The name of the erasure coding policy that is none."""


def create(scene: Scene, request: calls.CreateRequestProto) -> EditPlan:
    """Make a new file and open it for the caller; with OVERWRITE an old one goes first."""
    route = _check_path(scene, request)
    above = route.nodes[min(route.existing, len(route.names) - 1)]
    assert isinstance(above, INodeDirectory)
    _check_kind(scene, request, route, above)
    if route.last is not None and not request.createFlag & OVERWRITE:
        return _refusing(scene, route, request.clientName)
    ids = new_inodes.new_ids(scene)
    if route.last is None:
        directories = _missing(scene, ids, route, above)
    else:
        directories = []
        _check_name_held(scene, route, above)
    add = _add(scene, request, route, above, next(ids))
    scene.leases.renew(request.clientName, scene.now)
    return EditPlan(
        (*directories, add), lambda: _create_response(scene, scene.namespace.tree.file(add.path))
    )


def _check_name_held(scene: Scene, route: paths.Route, above: INodeDirectory) -> None:
    """Check that there is a name left for a file whose predecessor a snapshot keeps.

    Both count for the quota of names (FSDirWriteFileOp.addFile checks after the deletion).
    """
    assert route.last is not None
    latest = diffs.latest_snapshot(scene.namespace.tree, route.path)
    if diffs.in_latest(diffs.entry_of(route.last), latest):
        quotas.check(scene, above, Use(1))


def _refusing(scene: Scene, route: paths.Route, client: str) -> EditPlan:
    """Refuse a path that is taken; release the lease of an abandoned file there all the same."""
    taken = lease_recovery.take_lease(scene, route, client, Intent.CREATE)
    if isinstance(taken, lease_recovery.StillOpen):
        return taken.plan
    error = errors.already_exists(f"{route.path} for client {scene.caller.host} already exists")
    return refused(taken.ops, error)


def created_before(scene: Scene, _: calls.CreateRequestProto) -> calls.CreateResponseProto:
    """Return the answer to a create that was carried out already, for a client that missed it."""
    return _create_response(scene, opened_before(scene))


def _create_response(scene: Scene, file: INodeFile) -> calls.CreateResponseProto:
    """Return the answer to create, from the file as it now is."""
    return calls.CreateResponseProto(fs=status_of(scene.namespace, file))


def _check_path(scene: Scene, request: calls.CreateRequestProto) -> paths.Route:
    """Check that the caller may create, or overwrite, at this path."""
    paths.check_length("create", request.src)
    if not paths.is_valid_name(request.src) or paths.is_reserved(request.src):
        raise errors.invalid_path(request.src)
    if request.createFlag & SHOULD_REPLICATE and request.ecPolicyName:
        raise errors.illegal_argument(
            "SHOULD_REPLICATE flag and ecPolicyName are exclusive parameters. "
            "Set both is not allowed!"
        )
    route = find(scene, request.src, creates=True)
    check_ancestor(scene.caller, route, WRITE)
    if isinstance(route.last, INodeDirectory):
        raise errors.already_exists(f"{route.path} already exists as a directory")
    if route.last is not None:
        if request.createFlag & OVERWRITE:
            check_path(scene.caller, route, WRITE)
        return route
    if not request.createParent:
        paths.check_parent_exists(route)
    if not request.createFlag & CREATE:
        raise errors.not_found(f"Can't overwrite non-existent {route.path}")
    return route


def _check_kind(
    scene: Scene, request: calls.CreateRequestProto, route: paths.Route, above: INodeDirectory
) -> None:
    """Check that there can be such a file: its block size, and its replication if it has one."""
    if request.blockSize < scene.settings.min_block_size:
        raise errors.io_error(
            "Specified block size is less than configured minimum value "
            f"(dfs.namenode.fs-limits.min-block-size): {request.blockSize} < "
            f"{scene.settings.min_block_size}"
        )
    if _is_striped(scene, request, above):
        raise errors.io_error(
            f"{route.path} is to be created with an erasure coding policy, its own or that of a "
            "directory above; this NameNode writes no striped files. Create it elsewhere, unset "
            "the policy, or ask for a replicated file"
        )
    check_replication(scene, request.replication, route.path, scene.caller.host)


def _is_striped(scene: Scene, request: calls.CreateRequestProto, above: INodeDirectory) -> bool:
    """Return whether Hadoop's NameNode would stripe the file."""
    if request.createFlag & SHOULD_REPLICATE:
        return False
    if request.ecPolicyName:
        return request.ecPolicyName.lower() != _REPLICATION
    return erasure_coding_of(scene.namespace, above) is not None


def check_replication(scene: Scene, replication: int, path: str, asker: str | None) -> None:
    """Check a replication (BlockManager.verifyReplication); ``asker`` is named in a refusal."""
    lowest, highest = scene.settings.min_replication, scene.settings.max_replication
    if replication > highest:
        broken = f"exceeds maximum of {highest}"
    elif replication < lowest:
        broken = f"is less than the required minimum of {lowest}"
    else:
        return
    by = f", clientName={asker}" if asker else ""
    raise errors.io_error(f"Requested replication factor of {replication} {broken} for {path}{by}")


def _missing(
    scene: Scene, ids: Iterator[int], route: paths.Route, above: INodeDirectory
) -> list[Mkdir]:
    """Make the missing directories above a new file, with the mode of the last one there."""
    mode = new_inodes.passable(above.mode)
    modes = new_inodes.Modes(mode, None, above=mode)
    return new_inodes.make_directories(scene, ids, route, len(route.names) - 1, modes)


def _add(
    scene: Scene,
    request: calls.CreateRequestProto,
    route: paths.Route,
    above: INodeDirectory,
    inode_id: int,
) -> Add:
    """Return the edit for the file, whose group and ACL come from the last directory there."""
    unmasked = new_inodes.unmasked(scene, request)
    mode, acl = new_inodes.inherit(above.acl, request.masked.perm, unmasked, directory=False)
    return Add(
        inode_id=inode_id,
        path=route.path,
        replication=request.replication,
        mtime=scene.now_ms,
        atime=scene.now_ms,
        block_size=request.blockSize,
        blocks=(),
        permission=Permission(scene.caller.user, above.group, mode),
        acl=acl,
        client_name=request.clientName,
        client_machine=scene.caller.host,
        overwrite=bool(request.createFlag & OVERWRITE),
        storage_policy_id=_policy_for(request, above),
        rpc=scene.caller.rpc,
    )


def policy_named(name: str) -> StoragePolicy:
    """Return a storage policy by its name in any case; raise FsError."""
    policy = BY_NAME.get(name.upper())
    if policy is None:
        raise errors.illegal_argument(f"Cannot find a block policy with the name {name}")
    return policy


def _policy_for(request: calls.CreateRequestProto, above: INodeDirectory) -> int:
    """Return the file's own storage policy, 0 for none; LAZY_PERSIST is never only inherited."""
    policy_id = policy_named(request.storagePolicy).id if request.storagePolicy else 0
    if request.createFlag & LAZY_PERSIST:
        return lease_recovery.LAZY_PERSIST_POLICY
    if (policy_id or effective_policy_id(above)) == lease_recovery.LAZY_PERSIST_POLICY:
        return lease_recovery.LAZY_PERSIST_POLICY
    return policy_id
