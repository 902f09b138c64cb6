"""Calls that change attributes: mode, owner, times, replication, quota, policies (FSDirAttrOp)."""

from ha.rpc.java_names import ILLEGAL_ARGUMENT
from hadoop.longs import signed
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types
from namenode_sim.client_protocol.open_files.create import check_replication, policy_named
from namenode_sim.client_protocol.open_files.lease_recovery import LAZY_PERSIST_POLICY
from namenode_sim.client_protocol.words import errors, permissions, quotas
from namenode_sim.client_protocol.words.errors import denied
from namenode_sim.client_protocol.words.model import Caller, EditPlan, Scene, no_edits
from namenode_sim.client_protocol.words.new_inodes import MODE_BITS
from namenode_sim.client_protocol.words.paths import Route, as_directory, check_not_the_reserved
from namenode_sim.client_protocol.words.permissions import find
from namenode_sim.edits import ops
from namenode_sim.edits.values import StorageType
from namenode_sim.namespace import inode
from namenode_sim.namespace.attributes import quotas_after

_NO_TIME = -1
_NO_POLICY = 0
_LAZY_PERSIST = (
    "BlockStoragePolicy{LAZY_PERSIST:15, storageTypes=[RAM_DISK, DISK], creationFallbacks=[DISK], "
    "replicationFallbacks=[DISK]}"
)


def set_permission(scene: Scene, request: calls.SetPermissionRequestProto) -> EditPlan:
    """Change a mode, by the owner (chmod).  As in Hadoop, an unchanged mode makes no edit."""
    check_not_the_reserved(request.src)
    route = find(scene, request.src)
    permissions.check_owner(scene.caller, route)
    assert route.last is not None  # check_owner has refused a missing path.
    mode = request.permission.perm & MODE_BITS
    if mode == route.last.mode:
        return no_edits(calls.SetPermissionResponseProto())
    return EditPlan((ops.SetPermissions(route.path, mode),), calls.SetPermissionResponseProto)


def set_owner(scene: Scene, request: calls.SetOwnerRequestProto) -> EditPlan:
    """Change an owner, by the superuser; or a group, by the owner, to one that the owner is in.

    As in Hadoop, the owner and the group that there are leave no edit.
    """
    check_not_the_reserved(request.src)
    route = find(scene, request.src)
    permissions.check_owner(scene.caller, route)
    caller = scene.caller
    if not caller.is_super:
        if request.username and request.username != caller.user:
            raise denied(
                f"User {caller.user} is not a super user (non-super user cannot change owner)."
            )
        if request.groupname and request.groupname not in caller.groups:
            raise denied(f"User {caller.user} does not belong to {request.groupname}")
    node = route.last
    assert node is not None  # check_owner has refused a missing path.
    if request.username in {"", node.user} and request.groupname in {"", node.group}:
        return no_edits(calls.SetOwnerResponseProto())
    op = ops.SetOwner(route.path, request.username, request.groupname)
    return EditPlan((op,), calls.SetOwnerResponseProto)


def set_times(scene: Scene, request: calls.SetTimesRequestProto) -> EditPlan:
    """Set the times that are not negative; write access is enough."""
    route = find(scene, request.src)
    permissions.check_path(scene.caller, route, permissions.WRITE)
    if route.last is None:
        raise errors.not_found(f"File/Directory {route.path} does not exist.")
    mtime, atime = max(signed(request.mtime), _NO_TIME), max(signed(request.atime), _NO_TIME)
    if mtime == atime == _NO_TIME:
        return no_edits(calls.SetTimesResponseProto())
    return EditPlan((ops.Times(route.path, mtime, atime),), calls.SetTimesResponseProto)


def set_replication(scene: Scene, request: calls.SetReplicationRequestProto) -> EditPlan:
    """Change a file's replication; false for anything that is no replicated file."""
    check_replication(scene, request.replication, request.src, None)
    route = find(scene, request.src)
    permissions.check_path(scene.caller, route, permissions.WRITE)
    file = route.last
    if not isinstance(file, inode.INodeFile) or file.block_type != inode.CONTIGUOUS:
        return no_edits(calls.SetReplicationResponseProto(result=False))
    after = file.changed(file.packed_blocks, file.traits._replace(replication=request.replication))
    quotas.check_change(scene, file, after)
    op = ops.SetReplication(route.path, request.replication)
    return EditPlan((op,), lambda: calls.SetReplicationResponseProto(result=True))


def set_quota(scene: Scene, request: calls.SetQuotaRequestProto) -> EditPlan:
    """Set, keep or clear quotas.  Space by type has its own edit."""
    if not scene.settings.owners_set_quotas:
        permissions.check_superuser(scene.caller)
    route = find(scene, request.path)
    _check_may_set_quota(scene.caller, route)
    names, space = signed(request.namespaceQuota), signed(request.storagespaceQuota)
    if min(names, space) < inode.QUOTA_RESET:
        raise errors.FsError(
            ILLEGAL_ARGUMENT, f"Illegal value for nsQuota or ssQuota : {names} and {space}"
        )
    by_type = request.HasField("storageType")
    if by_type and names != inode.QUOTA_DONT_SET:
        raise errors.FsError(
            errors.UNSUPPORTED_ACTION,
            "Failed to set quota by storage type because eitherdfs.quota.by.storage.type.enabled "
            f"is set to true or nsQuota value is illegal {names}",
        )
    directory = as_directory(route)
    old = directory.quotas
    if by_type:
        kind = StorageType[types.StorageTypeProto.Name(request.storageType)]
        if space in {inode.QUOTA_DONT_SET, dict(old.by_type).get(kind, inode.QUOTA_RESET)}:
            return no_edits(calls.SetQuotaResponseProto())
        return EditPlan(
            (ops.SetQuotaByStorageType(route.path, kind, space),), calls.SetQuotaResponseProto
        )
    new = quotas_after(directory, names, space)
    if new == old:
        return no_edits(calls.SetQuotaResponseProto())
    # In an edit the greatest number, which only the root has, keeps what there is.  What takes the
    # root's quota away is another one, at which a NameNode of Hadoop 3.2 ends.
    taken_away = new.namespace == inode.QUOTA_DONT_SET != old.namespace
    names = inode.QUOTA_RESET if taken_away else new.namespace
    return EditPlan((ops.SetQuota(route.path, names, new.space),), calls.SetQuotaResponseProto)


def _check_may_set_quota(caller: Caller, route: Route) -> None:
    """Allow the superuser and the owner of the directory above, whose limits no other may lift."""
    if caller.exempt:
        return
    if route.names and route.parent is None:
        raise errors.not_found(f"Directory/File does not exist {route.parent_path}")
    if route.parent is None or route.parent.user != caller.user:
        raise denied(
            f"Access denied for user {caller.user}. Superuser or owner of parent folder "
            "privilege is required"
        )


def set_storage_policy(scene: Scene, request: calls.SetStoragePolicyRequestProto) -> EditPlan:
    policy = policy_named(request.policyName)
    route = _policy_target(scene, request.src, policy.id)
    return EditPlan(
        (ops.SetStoragePolicy(route.path, policy.id),), calls.SetStoragePolicyResponseProto
    )


def unset_storage_policy(scene: Scene, request: calls.UnsetStoragePolicyRequestProto) -> EditPlan:
    """Let a path follow the directory above it again."""
    route = _policy_target(scene, request.src, _NO_POLICY)
    return EditPlan(
        (ops.SetStoragePolicy(route.path, _NO_POLICY),), calls.UnsetStoragePolicyResponseProto
    )


def _policy_target(scene: Scene, path: str, policy_id: int) -> Route:
    """Return the route to set a policy on; a file's LAZY_PERSIST is from its creation or never."""
    route = find(scene, path)
    permissions.check_path(scene.caller, route, permissions.WRITE)
    if route.last is None:
        raise errors.not_found(f"File/Directory does not exist: {route.path}")
    if isinstance(route.last, inode.INodeFile):
        if policy_id == LAZY_PERSIST_POLICY:
            raise errors.illegal_argument(
                f"Policy {_LAZY_PERSIST} cannot be set after file creation."
            )
        if route.last.storage_policy_id == LAZY_PERSIST_POLICY:
            raise errors.illegal_argument(
                "Existing policy LAZY_PERSIST cannot be changed after file creation."
            )
    return route
