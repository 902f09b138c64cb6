"""Which calls are served, by name: the request's type and the function that plans it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.open_files import (
    add_block,
    append,
    block_writes,
    create,
    lease_calls,
    pipeline_calls,
    truncate,
)
from namenode_sim.client_protocol.reads import cluster_health, cluster_reads, reads
from namenode_sim.client_protocol.tree import (
    acl_calls,
    attribute_writes,
    concat,
    snapshot_calls,
    tree_writes,
    xattr_calls,
)
from namenode_sim.client_protocol.words import block_locations as located
from namenode_sim.client_protocol.words.model import EditPlan, Scene


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call that only looks."""

    request: type[Message]
    answer: Callable[[Scene, Any], Message]


@dataclass(frozen=True, slots=True)
class WriteCall:
    """A call that may log edits.

    ``repeated`` gives the answer of the same call done before, for calls that Hadoop marks "at
    most once": the ones with ids in their edits.  The others may simply be done again.
    ``checked_as_read``: admitted where reads are (getBlockLocations, which may move a time).
    """

    request: type[Message]
    plan: Callable[[Scene, Any], EditPlan]
    repeated: Callable[[Scene, Any], Message] | None = None
    checked_as_read: bool = False


READS: dict[str, ReadCall] = {
    "getFileInfo": ReadCall(calls.GetFileInfoRequestProto, reads.get_file_info),
    "getFileLinkInfo": ReadCall(calls.GetFileLinkInfoRequestProto, reads.get_file_link_info),
    "getLocatedFileInfo": ReadCall(
        calls.GetLocatedFileInfoRequestProto, reads.get_located_file_info
    ),
    "getListing": ReadCall(calls.GetListingRequestProto, reads.get_listing),
    "isFileClosed": ReadCall(calls.IsFileClosedRequestProto, reads.is_file_closed),
    "getPreferredBlockSize": ReadCall(
        calls.GetPreferredBlockSizeRequestProto, reads.get_preferred_block_size
    ),
    "getLinkTarget": ReadCall(calls.GetLinkTargetRequestProto, reads.get_link_target),
    "checkAccess": ReadCall(calls.CheckAccessRequestProto, reads.check_access),
    "listOpenFiles": ReadCall(calls.ListOpenFilesRequestProto, reads.list_open_files),
    "getServerDefaults": ReadCall(
        calls.GetServerDefaultsRequestProto, cluster_reads.get_server_defaults
    ),
    "getFsStats": ReadCall(calls.GetFsStatusRequestProto, cluster_health.get_fs_stats),
    "getFsReplicatedBlockStats": ReadCall(
        calls.GetFsReplicatedBlockStatsRequestProto, cluster_health.get_fs_replicated_block_stats
    ),
    "getFsECBlockGroupStats": ReadCall(
        calls.GetFsECBlockGroupStatsRequestProto, cluster_health.get_fs_ec_block_group_stats
    ),
    "getDatanodeReport": ReadCall(
        calls.GetDatanodeReportRequestProto, cluster_health.get_datanode_report
    ),
    "getDatanodeStorageReport": ReadCall(
        calls.GetDatanodeStorageReportRequestProto, cluster_health.get_datanode_storage_report
    ),
    "getStoragePolicies": ReadCall(
        calls.GetStoragePoliciesRequestProto, cluster_reads.get_storage_policies
    ),
    "getStoragePolicy": ReadCall(
        calls.GetStoragePolicyRequestProto, cluster_reads.get_storage_policy
    ),
    "getErasureCodingPolicies": ReadCall(
        calls.GetErasureCodingPoliciesRequestProto, cluster_reads.get_erasure_coding_policies
    ),
    "getErasureCodingPolicy": ReadCall(
        calls.GetErasureCodingPolicyRequestProto, cluster_reads.get_erasure_coding_policy
    ),
    "getEZForPath": ReadCall(calls.GetEZForPathRequestProto, cluster_reads.get_ez_for_path),
    "listEncryptionZones": ReadCall(
        calls.ListEncryptionZonesRequestProto, cluster_reads.list_encryption_zones
    ),
    "getEnclosingRoot": ReadCall(
        calls.GetEnclosingRootRequestProto, cluster_reads.get_enclosing_root
    ),
    "listCorruptFileBlocks": ReadCall(
        calls.ListCorruptFileBlocksRequestProto, cluster_health.list_corrupt_file_blocks
    ),
    "getSnapshottableDirListing": ReadCall(
        calls.GetSnapshottableDirListingRequestProto,
        snapshot_calls.get_snapshottable_dir_listing,
    ),
    "getSnapshotListing": ReadCall(
        calls.GetSnapshotListingRequestProto, snapshot_calls.get_snapshot_listing
    ),
    "getDelegationToken": ReadCall(
        calls.GetDelegationTokenRequestProto, cluster_reads.get_delegation_token
    ),
    "getCurrentEditLogTxid": ReadCall(
        calls.GetCurrentEditLogTxidRequestProto, cluster_reads.get_current_edit_log_txid
    ),
    "upgradeStatus": ReadCall(calls.UpgradeStatusRequestProto, cluster_reads.upgrade_status),
    "msync": ReadCall(calls.MsyncRequestProto, cluster_reads.msync),
    "getAclStatus": ReadCall(calls.GetAclStatusRequestProto, acl_calls.get_acl_status),
    "getXAttrs": ReadCall(calls.GetXAttrsRequestProto, xattr_calls.get_xattrs),
    "listXAttrs": ReadCall(calls.ListXAttrsRequestProto, xattr_calls.list_xattrs),
}


def _created(scene: Scene, _: calls.CreateRequestProto) -> Message:
    return create.created_before(scene)


def _snapshot_taken(scene: Scene, _: calls.CreateSnapshotRequestProto) -> Message:
    return snapshot_calls.created_before(scene)


def _done(answer: Message) -> Callable[[Scene, Any], Message]:
    return lambda _scene, _request: answer


WRITES: dict[str, WriteCall] = {
    "mkdirs": WriteCall(calls.MkdirsRequestProto, tree_writes.mkdirs),
    "delete": WriteCall(
        calls.DeleteRequestProto,
        tree_writes.delete,
        _done(calls.DeleteResponseProto(result=True)),
    ),
    "rename": WriteCall(
        calls.RenameRequestProto,
        tree_writes.rename,
        _done(calls.RenameResponseProto(result=True)),
    ),
    "rename2": WriteCall(
        calls.Rename2RequestProto, tree_writes.rename2, _done(calls.Rename2ResponseProto())
    ),
    "concat": WriteCall(
        calls.ConcatRequestProto, concat.concat, _done(calls.ConcatResponseProto())
    ),
    "createSymlink": WriteCall(calls.CreateSymlinkRequestProto, tree_writes.create_symlink),
    "create": WriteCall(calls.CreateRequestProto, create.create, _created),
    "append": WriteCall(calls.AppendRequestProto, append.append, append.appended_before),
    "abandonBlock": WriteCall(calls.AbandonBlockRequestProto, block_writes.abandon_block),
    "complete": WriteCall(calls.CompleteRequestProto, block_writes.complete),
    "fsync": WriteCall(calls.FsyncRequestProto, block_writes.fsync),
    "getAdditionalDatanode": WriteCall(
        calls.GetAdditionalDatanodeRequestProto, pipeline_calls.get_additional_datanode
    ),
    "updateBlockForPipeline": WriteCall(
        calls.UpdateBlockForPipelineRequestProto, pipeline_calls.update_block_for_pipeline
    ),
    "updatePipeline": WriteCall(
        calls.UpdatePipelineRequestProto,
        pipeline_calls.update_pipeline,
        _done(calls.UpdatePipelineResponseProto()),
    ),
    "renewLease": WriteCall(calls.RenewLeaseRequestProto, lease_calls.renew_lease),
    "recoverLease": WriteCall(calls.RecoverLeaseRequestProto, lease_calls.recover_lease),
    "addBlock": WriteCall(calls.AddBlockRequestProto, add_block.add_block),
    "truncate": WriteCall(calls.TruncateRequestProto, truncate.truncate),
    "setPermission": WriteCall(calls.SetPermissionRequestProto, attribute_writes.set_permission),
    "setOwner": WriteCall(calls.SetOwnerRequestProto, attribute_writes.set_owner),
    "setTimes": WriteCall(calls.SetTimesRequestProto, attribute_writes.set_times),
    "setReplication": WriteCall(calls.SetReplicationRequestProto, attribute_writes.set_replication),
    "setQuota": WriteCall(calls.SetQuotaRequestProto, attribute_writes.set_quota),
    "setStoragePolicy": WriteCall(
        calls.SetStoragePolicyRequestProto, attribute_writes.set_storage_policy
    ),
    "unsetStoragePolicy": WriteCall(
        calls.UnsetStoragePolicyRequestProto, attribute_writes.unset_storage_policy
    ),
    "getBlockLocations": WriteCall(
        calls.GetBlockLocationsRequestProto,
        located.get_block_locations,
        checked_as_read=True,
    ),
    "reportBadBlocks": WriteCall(
        calls.ReportBadBlocksRequestProto, cluster_health.report_bad_blocks, checked_as_read=True
    ),
    "setAcl": WriteCall(calls.SetAclRequestProto, acl_calls.set_acl),
    "modifyAclEntries": WriteCall(calls.ModifyAclEntriesRequestProto, acl_calls.modify_entries),
    "removeAclEntries": WriteCall(calls.RemoveAclEntriesRequestProto, acl_calls.remove_entries),
    "removeDefaultAcl": WriteCall(calls.RemoveDefaultAclRequestProto, acl_calls.remove_default),
    "removeAcl": WriteCall(calls.RemoveAclRequestProto, acl_calls.remove_acl),
    "setXAttr": WriteCall(
        calls.SetXAttrRequestProto, xattr_calls.set_xattr, _done(calls.SetXAttrResponseProto())
    ),
    "removeXAttr": WriteCall(
        calls.RemoveXAttrRequestProto,
        xattr_calls.remove_xattr,
        _done(calls.RemoveXAttrResponseProto()),
    ),
    "allowSnapshot": WriteCall(calls.AllowSnapshotRequestProto, snapshot_calls.allow),
    "disallowSnapshot": WriteCall(calls.DisallowSnapshotRequestProto, snapshot_calls.disallow),
    "createSnapshot": WriteCall(
        calls.CreateSnapshotRequestProto, snapshot_calls.create, _snapshot_taken
    ),
    "deleteSnapshot": WriteCall(
        calls.DeleteSnapshotRequestProto,
        snapshot_calls.delete,
        _done(calls.DeleteSnapshotResponseProto()),
    ),
    "renameSnapshot": WriteCall(
        calls.RenameSnapshotRequestProto,
        snapshot_calls.rename,
        _done(calls.RenameSnapshotResponseProto()),
    ),
}

NOT_SERVED = frozenset(
    {
        "saveNamespace",
    }
)
"""Calls that this build knows and refuses in words (UnsupportedOperationException)."""
