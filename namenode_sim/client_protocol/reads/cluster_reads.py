"""Calls about the cluster rather than a path: defaults, policies, safe mode."""

from ha.rpc.java_names import UNSUPPORTED_OPERATION
from hadoop.block_tokens import NONCE_BYTES
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types
from namenode_sim.client_protocol.words import errors
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.paths import Route
from namenode_sim.client_protocol.words.permissions import READ, check_path, check_superuser, find
from namenode_sim.client_protocol.words.status import ec_policy_proto, erasure_coding_of
from namenode_sim.datanodes import storage_policies
from namenode_sim.datanodes.storage_policies import StoragePolicy, Types
from namenode_sim.namespace.inode import INodeSymlink
from namenode_sim.namespace.usage import effective_policy_id


def get_server_defaults(
    scene: Scene, _: calls.GetServerDefaultsRequestProto
) -> calls.GetServerDefaultsResponseProto:
    """Return the defaults that a client may take over from the server."""
    settings = scene.settings
    return calls.GetServerDefaultsResponseProto(
        serverDefaults=types.FsServerDefaultsProto(
            blockSize=settings.block_size,
            bytesPerChecksum=settings.bytes_per_checksum,
            writePacketSize=settings.write_packet_size,
            replication=settings.replication,
            fileBufferSize=settings.file_buffer_size,
            encryptDataTransfer=settings.data_algorithm is not None,
            trashInterval=settings.trash_interval_minutes,
            checksumType=types.ChecksumTypeProto.Value(f"CHECKSUM_{settings.checksum_type}"),
            keyProviderUri="",
            policyId=storage_policies.DEFAULT_POLICY_ID,
            snapshotTrashRootEnabled=False,
        )
    )


def get_data_encryption_key(
    scene: Scene, _: calls.GetDataEncryptionKeyRequestProto
) -> calls.GetDataEncryptionKeyResponseProto:
    """Return a new key for connections to DataNodes; none where they are not encrypted."""
    ring, algorithm = scene.cluster.block_keys, scene.settings.data_algorithm
    if ring is None or algorithm is None:
        return calls.GetDataEncryptionKeyResponseProto()
    nonce = scene.random(NONCE_BYTES)
    made = ring.data_key(scene.cluster.pool, nonce, scene.now_ms, algorithm)
    return calls.GetDataEncryptionKeyResponseProto(dataEncryptionKey=made)


def get_storage_policies(
    _: Scene, __: calls.GetStoragePoliciesRequestProto
) -> calls.GetStoragePoliciesResponseProto:
    policies = [_policy_proto(policy) for policy in storage_policies.POLICIES.values()]
    return calls.GetStoragePoliciesResponseProto(policies=policies)


def get_storage_policy(
    scene: Scene, request: calls.GetStoragePolicyRequestProto
) -> calls.GetStoragePolicyResponseProto:
    """Return the policy in force at a path; in a snapshot, that of the inode as it is now."""
    route = find(scene, request.path, follow_last=False)
    if isinstance(route.last, INodeSymlink):
        raise errors.FsError(UNSUPPORTED_OPERATION, "Storage policy are not supported on symlinks")
    check_path(scene.caller, route, READ)
    node = route.last if route.sight is None else route.sight.live
    if node is None:
        raise errors.not_found(f"File/Directory does not exist: {route.path}")
    policy_id = effective_policy_id(node) or storage_policies.DEFAULT_POLICY_ID
    if policy_id not in storage_policies.POLICIES:
        raise errors.illegal_argument(f"Cannot find a block policy of id {policy_id}")
    return calls.GetStoragePolicyResponseProto(
        storagePolicy=_policy_proto(storage_policies.POLICIES[policy_id])
    )


def satisfy_storage_policy(
    _: Scene, __: calls.SatisfyStoragePolicyRequestProto
) -> calls.SatisfyStoragePolicyResponseProto:
    """Refuse, as Hadoop does where no storage policy satisfier runs, its default."""
    raise errors.FsError(
        errors.UNSUPPORTED_ACTION,
        "Cannot request to satisfy storage policy when storage policy satisfier feature has been "
        "disabled by admin. Seek for an admin help to enable it or use Mover tool.",
    )


def get_erasure_coding_policies(
    scene: Scene, _: calls.GetErasureCodingPoliciesRequestProto
) -> calls.GetErasureCodingPoliciesResponseProto:
    policies = [ec_policy_proto(policy) for policy in scene.namespace.ec_policies.values()]
    return calls.GetErasureCodingPoliciesResponseProto(ecPolicies=policies)


def _readable(scene: Scene, path: str) -> Route:
    """Return the route of a path, there or not, whose last step the caller may read."""
    route = find(scene, path)
    check_path(scene.caller, route, READ)
    return route


def get_erasure_coding_policy(
    scene: Scene, request: calls.GetErasureCodingPolicyRequestProto
) -> calls.GetErasureCodingPolicyResponseProto:
    """Return the erasure coding policy in force at a path; unset if it is replicated."""
    route = _readable(scene, request.src)
    if route.is_dot_snapshot:
        return calls.GetErasureCodingPolicyResponseProto()
    if route.last is None:
        raise errors.not_found(f"Path not found: {route.path}")
    policy = erasure_coding_of(scene.namespace, route.last)
    if policy is None:
        return calls.GetErasureCodingPolicyResponseProto()
    return calls.GetErasureCodingPolicyResponseProto(ecPolicy=ec_policy_proto(policy))


def get_ez_for_path(
    scene: Scene, request: calls.GetEZForPathRequestProto
) -> calls.GetEZForPathResponseProto:
    """Return no zone: encryption zones are not served."""
    _readable(scene, request.src)
    return calls.GetEZForPathResponseProto()


def list_encryption_zones(
    scene: Scene, _: calls.ListEncryptionZonesRequestProto
) -> calls.ListEncryptionZonesResponseProto:
    """Return an empty list: encryption zones are not served."""
    check_superuser(scene.caller)
    return calls.ListEncryptionZonesResponseProto(hasMore=False)


def get_enclosing_root(
    scene: Scene, request: calls.GetEnclosingRootRequestProto
) -> calls.GetEnclosingRootResponseProto:
    """Return the root: without encryption zones it encloses everything."""
    _readable(scene, request.filename)
    return calls.GetEnclosingRootResponseProto(enclosingRootPath="/")


def get_current_edit_log_txid(
    scene: Scene, _: calls.GetCurrentEditLogTxidRequestProto
) -> calls.GetCurrentEditLogTxidResponseProto:
    check_superuser(scene.caller)
    return calls.GetCurrentEditLogTxidResponseProto(txid=scene.namespace.last_applied)


def upgrade_status(
    _: Scene, __: calls.UpgradeStatusRequestProto
) -> calls.UpgradeStatusResponseProto:
    """Return that no upgrade is open, as ever."""
    return calls.UpgradeStatusResponseProto(upgradeFinalized=True)


def rolling_upgrade(
    scene: Scene, request: calls.RollingUpgradeRequestProto
) -> calls.RollingUpgradeResponseProto:
    """Return since when a rolling upgrade runs, if one does; it is not begun or ended here."""
    check_superuser(scene.caller)
    if request.action != calls.RollingUpgradeActionProto.QUERY:
        raise errors.FsError(
            UNSUPPORTED_OPERATION, "this NameNode begins and ends no rolling upgrade"
        )
    started = scene.namespace.rolling_upgrade_start
    if started is None:
        return calls.RollingUpgradeResponseProto()
    return calls.RollingUpgradeResponseProto(
        rollingUpgradeInfo=calls.RollingUpgradeInfoProto(
            status=calls.RollingUpgradeStatusProto(blockPoolId=scene.cluster.pool),
            startTime=started,
            finalizeTime=0,
            createdRollbackImages=False,
        )
    )


def msync(_: Scene, __: calls.MsyncRequestProto) -> calls.MsyncResponseProto:
    """Do nothing: every answer is as new as the active's state."""
    return calls.MsyncResponseProto()


def _policy_proto(policy: StoragePolicy) -> types.BlockStoragePolicyProto:
    return types.BlockStoragePolicyProto(
        policyId=policy.id,
        name=policy.name,
        creationPolicy=_types(policy.creation),
        creationFallbackPolicy=_types(policy.creation_fallback),
        replicationFallbackPolicy=_types(policy.replication_fallback),
    )


def _types(kinds: Types) -> types.StorageTypesProto:
    numbers = [types.StorageTypeProto.ValueType(int(kind)) for kind in kinds]
    return types.StorageTypesProto(storageTypes=numbers)
