"""Which calls are served, by name: the request's type and the function that plans it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from namenode_sim.client_protocol import (
    acl_calls,
    attribute_writes,
    cluster_reads,
    file_writes,
    reads,
    snapshot_calls,
    tree_writes,
    xattr_calls,
)
from namenode_sim.client_protocol.model import Plan, Scene
from namenode_sim.proto import client_namenode_pb2 as calls


@dataclass(frozen=True, slots=True)
class Read:
    """A call that only looks."""

    request: type[Message]
    answer: Callable[[Scene, Any], Message]


@dataclass(frozen=True, slots=True)
class Write:
    """A call that may log edits.

    ``repeated`` gives the answer of the same call done before, for calls that Hadoop marks "at
    most once": the ones with ids in their edits.  The others may simply be done again.
    ``checked_as_read``: admitted where reads are (getBlockLocations, which may move a time).
    """

    request: type[Message]
    plan: Callable[[Scene, Any], Plan]
    repeated: Callable[[Scene, Any], Message] | None = None
    checked_as_read: bool = False


READS: dict[str, Read] = {
    "getFileInfo": Read(calls.GetFileInfoRequestProto, reads.get_file_info),
    "getFileLinkInfo": Read(calls.GetFileLinkInfoRequestProto, reads.get_file_link_info),
    "getLocatedFileInfo": Read(calls.GetLocatedFileInfoRequestProto, reads.get_located_file_info),
    "getListing": Read(calls.GetListingRequestProto, reads.get_listing),
    "isFileClosed": Read(calls.IsFileClosedRequestProto, reads.is_file_closed),
    "getPreferredBlockSize": Read(
        calls.GetPreferredBlockSizeRequestProto, reads.get_preferred_block_size
    ),
    "getLinkTarget": Read(calls.GetLinkTargetRequestProto, reads.get_link_target),
    "checkAccess": Read(calls.CheckAccessRequestProto, reads.check_access),
    "listOpenFiles": Read(calls.ListOpenFilesRequestProto, reads.list_open_files),
    "getServerDefaults": Read(
        calls.GetServerDefaultsRequestProto, cluster_reads.get_server_defaults
    ),
    "getFsStats": Read(calls.GetFsStatusRequestProto, cluster_reads.get_fs_stats),
    "getFsReplicatedBlockStats": Read(
        calls.GetFsReplicatedBlockStatsRequestProto, cluster_reads.get_fs_replicated_block_stats
    ),
    "getFsECBlockGroupStats": Read(
        calls.GetFsECBlockGroupStatsRequestProto, cluster_reads.get_fs_ec_block_group_stats
    ),
    "getDatanodeReport": Read(
        calls.GetDatanodeReportRequestProto, cluster_reads.get_datanode_report
    ),
    "getDatanodeStorageReport": Read(
        calls.GetDatanodeStorageReportRequestProto, cluster_reads.get_datanode_storage_report
    ),
    "getStoragePolicies": Read(
        calls.GetStoragePoliciesRequestProto, cluster_reads.get_storage_policies
    ),
    "getStoragePolicy": Read(calls.GetStoragePolicyRequestProto, cluster_reads.get_storage_policy),
    "getErasureCodingPolicies": Read(
        calls.GetErasureCodingPoliciesRequestProto, cluster_reads.get_erasure_coding_policies
    ),
    "getErasureCodingPolicy": Read(
        calls.GetErasureCodingPolicyRequestProto, cluster_reads.get_erasure_coding_policy
    ),
    "getEZForPath": Read(calls.GetEZForPathRequestProto, cluster_reads.get_ez_for_path),
    "listEncryptionZones": Read(
        calls.ListEncryptionZonesRequestProto, cluster_reads.list_encryption_zones
    ),
    "getEnclosingRoot": Read(calls.GetEnclosingRootRequestProto, cluster_reads.get_enclosing_root),
    "listCorruptFileBlocks": Read(
        calls.ListCorruptFileBlocksRequestProto, cluster_reads.list_corrupt_file_blocks
    ),
    "getSnapshottableDirListing": Read(
        calls.GetSnapshottableDirListingRequestProto,
        snapshot_calls.get_snapshottable_dir_listing,
    ),
    "getSnapshotListing": Read(
        calls.GetSnapshotListingRequestProto, snapshot_calls.get_snapshot_listing
    ),
    "getDelegationToken": Read(
        calls.GetDelegationTokenRequestProto, cluster_reads.get_delegation_token
    ),
    "getCurrentEditLogTxid": Read(
        calls.GetCurrentEditLogTxidRequestProto, cluster_reads.get_current_edit_log_txid
    ),
    "setSafeMode": Read(calls.SetSafeModeRequestProto, cluster_reads.set_safe_mode),
    "upgradeStatus": Read(calls.UpgradeStatusRequestProto, cluster_reads.upgrade_status),
    "msync": Read(calls.MsyncRequestProto, cluster_reads.msync),
    "getAclStatus": Read(calls.GetAclStatusRequestProto, acl_calls.get_acl_status),
    "getXAttrs": Read(calls.GetXAttrsRequestProto, xattr_calls.get_xattrs),
    "listXAttrs": Read(calls.ListXAttrsRequestProto, xattr_calls.list_xattrs),
}


def _created(scene: Scene, _: calls.CreateRequestProto) -> Message:
    return file_writes.created_before(scene)


def _appended(scene: Scene, _: calls.AppendRequestProto) -> Message:
    return file_writes.appended_before(scene)


def _snapshot_taken(scene: Scene, _: calls.CreateSnapshotRequestProto) -> Message:
    return snapshot_calls.created_before(scene)


def _done(answer: Message) -> Callable[[Scene, Any], Message]:
    return lambda _scene, _request: answer


WRITES: dict[str, Write] = {
    "mkdirs": Write(calls.MkdirsRequestProto, tree_writes.mkdirs),
    "delete": Write(
        calls.DeleteRequestProto,
        tree_writes.delete,
        _done(calls.DeleteResponseProto(result=True)),
    ),
    "rename": Write(
        calls.RenameRequestProto,
        tree_writes.rename,
        _done(calls.RenameResponseProto(result=True)),
    ),
    "rename2": Write(
        calls.Rename2RequestProto, tree_writes.rename2, _done(calls.Rename2ResponseProto())
    ),
    "createSymlink": Write(calls.CreateSymlinkRequestProto, tree_writes.create_symlink),
    "create": Write(calls.CreateRequestProto, file_writes.create, _created),
    "append": Write(calls.AppendRequestProto, file_writes.append, _appended),
    "complete": Write(calls.CompleteRequestProto, file_writes.complete),
    "fsync": Write(calls.FsyncRequestProto, file_writes.fsync),
    "renewLease": Write(calls.RenewLeaseRequestProto, file_writes.renew_lease),
    "recoverLease": Write(calls.RecoverLeaseRequestProto, file_writes.recover_lease),
    "addBlock": Write(calls.AddBlockRequestProto, file_writes.add_block),
    "truncate": Write(calls.TruncateRequestProto, file_writes.truncate),
    "setPermission": Write(calls.SetPermissionRequestProto, attribute_writes.set_permission),
    "setOwner": Write(calls.SetOwnerRequestProto, attribute_writes.set_owner),
    "setTimes": Write(calls.SetTimesRequestProto, attribute_writes.set_times),
    "setReplication": Write(calls.SetReplicationRequestProto, attribute_writes.set_replication),
    "setQuota": Write(calls.SetQuotaRequestProto, attribute_writes.set_quota),
    "setStoragePolicy": Write(
        calls.SetStoragePolicyRequestProto, attribute_writes.set_storage_policy
    ),
    "unsetStoragePolicy": Write(
        calls.UnsetStoragePolicyRequestProto, attribute_writes.unset_storage_policy
    ),
    "getBlockLocations": Write(
        calls.GetBlockLocationsRequestProto,
        attribute_writes.get_block_locations,
        checked_as_read=True,
    ),
    "setAcl": Write(calls.SetAclRequestProto, acl_calls.set_acl),
    "modifyAclEntries": Write(calls.ModifyAclEntriesRequestProto, acl_calls.modify_entries),
    "removeAclEntries": Write(calls.RemoveAclEntriesRequestProto, acl_calls.remove_entries),
    "removeDefaultAcl": Write(calls.RemoveDefaultAclRequestProto, acl_calls.remove_default),
    "removeAcl": Write(calls.RemoveAclRequestProto, acl_calls.remove_acl),
    "setXAttr": Write(
        calls.SetXAttrRequestProto, xattr_calls.set_xattr, _done(calls.SetXAttrResponseProto())
    ),
    "removeXAttr": Write(
        calls.RemoveXAttrRequestProto,
        xattr_calls.remove_xattr,
        _done(calls.RemoveXAttrResponseProto()),
    ),
    "allowSnapshot": Write(calls.AllowSnapshotRequestProto, snapshot_calls.allow),
    "disallowSnapshot": Write(calls.DisallowSnapshotRequestProto, snapshot_calls.disallow),
    "createSnapshot": Write(
        calls.CreateSnapshotRequestProto, snapshot_calls.create, _snapshot_taken
    ),
    "deleteSnapshot": Write(
        calls.DeleteSnapshotRequestProto,
        snapshot_calls.delete,
        _done(calls.DeleteSnapshotResponseProto()),
    ),
    "renameSnapshot": Write(
        calls.RenameSnapshotRequestProto,
        snapshot_calls.rename,
        _done(calls.RenameSnapshotResponseProto()),
    ),
}

NOT_SERVED = frozenset(
    {
        "abandonBlock",
        "concat",
        "getAdditionalDatanode",
        "saveNamespace",
        "updateBlockForPipeline",
        "updatePipeline",
    }
)
"""Calls that this build knows and refuses in words (UnsupportedOperationException)."""
