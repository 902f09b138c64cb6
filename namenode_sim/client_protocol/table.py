"""The calls that are served, by name, with the function that answers or plans each."""

from collections.abc import Callable, Generator
from typing import Any

from google.protobuf.message import Message

from ha.record import dataclass
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import client_snapshots_pb2 as snapshots
from namenode_sim.client_protocol.open_files import (
    add_block,
    append,
    block_writes,
    create,
    lease_calls,
    pipeline_calls,
    truncate,
)
from namenode_sim.client_protocol.reads import (
    batched_listing,
    cluster_health,
    cluster_reads,
    quick,
    quick_listing,
    reads,
)
from namenode_sim.client_protocol.tokens import calls as tokens
from namenode_sim.client_protocol.tree import (
    acl_calls,
    attribute_writes,
    cache_directives,
    cache_pools,
    concat,
    snapshot_calls,
    tree_writes,
    xattr_calls,
)
from namenode_sim.client_protocol.words import block_locations as located
from namenode_sim.client_protocol.words.model import EditPlan, Scene

Answer = Callable[[Scene, Any], Message]
"""Returns the answer of a call that only looks, or of one that was done before."""

StepsOfAnswer = Callable[[Scene, Any], Generator[None, None, Message]]
"""Computes the answer of a call that only looks, and yields where other calls may come between."""


@dataclass(frozen=True, slots=True)
class WriteCall:
    """A call that may log edits.

    ``repeated`` gives the answer of the same call done before, for calls that Hadoop marks "at
    most once": the ones with ids in their edits.  The others may simply be done again.
    ``checked_as_read``: admitted where reads are (getBlockLocations, which may move a time).
    """

    plan: Callable[[Scene, Any], EditPlan]
    repeated: Answer | None = None
    checked_as_read: bool = False


READS: dict[str, Answer] = {
    "getFileInfo": reads.get_file_info,
    "getFileLinkInfo": reads.get_file_link_info,
    "getLocatedFileInfo": reads.get_located_file_info,
    "getListing": reads.get_listing,
    "getBatchedListing": batched_listing.get_batched_listing,
    "isFileClosed": reads.is_file_closed,
    "getPreferredBlockSize": reads.get_preferred_block_size,
    "getLinkTarget": reads.get_link_target,
    "checkAccess": reads.check_access,
    "listOpenFiles": reads.list_open_files,
    "getServerDefaults": cluster_reads.get_server_defaults,
    "getDataEncryptionKey": cluster_reads.get_data_encryption_key,
    "getFsStats": cluster_health.get_fs_stats,
    "getFsReplicatedBlockStats": cluster_health.get_fs_replicated_block_stats,
    "getFsECBlockGroupStats": cluster_health.get_fs_ec_block_group_stats,
    "getDatanodeReport": cluster_health.get_datanode_report,
    "getSlowDatanodeReport": cluster_health.get_slow_datanode_report,
    "getDatanodeStorageReport": cluster_health.get_datanode_storage_report,
    "getStoragePolicies": cluster_reads.get_storage_policies,
    "getStoragePolicy": cluster_reads.get_storage_policy,
    "satisfyStoragePolicy": cluster_reads.satisfy_storage_policy,
    "getErasureCodingPolicies": cluster_reads.get_erasure_coding_policies,
    "getErasureCodingPolicy": cluster_reads.get_erasure_coding_policy,
    "getEZForPath": cluster_reads.get_ez_for_path,
    "listEncryptionZones": cluster_reads.list_encryption_zones,
    "getEnclosingRoot": cluster_reads.get_enclosing_root,
    "listCorruptFileBlocks": cluster_health.list_corrupt_file_blocks,
    "getSnapshottableDirListing": snapshot_calls.get_snapshottable_dir_listing,
    "getSnapshotListing": snapshot_calls.get_snapshot_listing,
    "getCurrentEditLogTxid": cluster_reads.get_current_edit_log_txid,
    "upgradeStatus": cluster_reads.upgrade_status,
    "rollingUpgrade": cluster_reads.rolling_upgrade,
    "msync": cluster_reads.msync,
    "getAclStatus": acl_calls.get_acl_status,
    "getXAttrs": xattr_calls.get_xattrs,
    "listXAttrs": xattr_calls.list_xattrs,
    "listCachePools": cache_pools.listed,
    "listCacheDirectives": cache_directives.listed,
}


@dataclass(frozen=True, slots=True)
class Quick:
    """Writes the usual ``answer`` of a read without messages; None where it goes another way."""

    write: Callable[[Scene, Any], bytes | None]
    answer: type[Message]


QUICK: dict[str, Quick] = {
    "getFileInfo": Quick(quick.file_info, calls.GetFileInfoResponseProto),
    "getListing": Quick(quick_listing.listing, calls.GetListingResponseProto),
}


def _done(answer: Message) -> Answer:
    return lambda _scene, _request: answer


WRITES: dict[str, WriteCall] = {
    "mkdirs": WriteCall(tree_writes.mkdirs),
    "delete": WriteCall(
        tree_writes.delete,
        _done(calls.DeleteResponseProto(result=True)),
    ),
    "rename": WriteCall(
        tree_writes.rename,
        _done(calls.RenameResponseProto(result=True)),
    ),
    "rename2": WriteCall(tree_writes.rename2, _done(calls.Rename2ResponseProto())),
    "concat": WriteCall(concat.concat, _done(calls.ConcatResponseProto())),
    "createSymlink": WriteCall(tree_writes.create_symlink),
    "create": WriteCall(create.create, create.created_before),
    "append": WriteCall(append.append, append.appended_before),
    "abandonBlock": WriteCall(block_writes.abandon_block),
    "complete": WriteCall(block_writes.complete),
    "fsync": WriteCall(block_writes.fsync),
    "getAdditionalDatanode": WriteCall(pipeline_calls.get_additional_datanode),
    "updateBlockForPipeline": WriteCall(pipeline_calls.update_block_for_pipeline),
    "updatePipeline": WriteCall(
        pipeline_calls.update_pipeline,
        _done(calls.UpdatePipelineResponseProto()),
    ),
    "renewLease": WriteCall(lease_calls.renew_lease),
    "recoverLease": WriteCall(lease_calls.recover_lease),
    "addBlock": WriteCall(add_block.add_block),
    "truncate": WriteCall(truncate.truncate),
    "setPermission": WriteCall(attribute_writes.set_permission),
    "setOwner": WriteCall(attribute_writes.set_owner),
    "setTimes": WriteCall(attribute_writes.set_times),
    "setReplication": WriteCall(attribute_writes.set_replication),
    "setQuota": WriteCall(attribute_writes.set_quota),
    "setStoragePolicy": WriteCall(attribute_writes.set_storage_policy),
    "unsetStoragePolicy": WriteCall(attribute_writes.unset_storage_policy),
    "getBlockLocations": WriteCall(
        located.get_block_locations,
        checked_as_read=True,
    ),
    "reportBadBlocks": WriteCall(cluster_health.report_bad_blocks, checked_as_read=True),
    "setAcl": WriteCall(acl_calls.set_acl),
    "modifyAclEntries": WriteCall(acl_calls.modify_entries),
    "removeAclEntries": WriteCall(acl_calls.remove_entries),
    "removeDefaultAcl": WriteCall(acl_calls.remove_default),
    "removeAcl": WriteCall(acl_calls.remove_acl),
    "setXAttr": WriteCall(xattr_calls.set_xattr, _done(calls.SetXAttrResponseProto())),
    "removeXAttr": WriteCall(
        xattr_calls.remove_xattr,
        _done(calls.RemoveXAttrResponseProto()),
    ),
    "allowSnapshot": WriteCall(snapshot_calls.allow),
    "disallowSnapshot": WriteCall(snapshot_calls.disallow),
    "createSnapshot": WriteCall(snapshot_calls.create, snapshot_calls.created_before),
    "deleteSnapshot": WriteCall(
        snapshot_calls.delete,
        _done(calls.DeleteSnapshotResponseProto()),
    ),
    "renameSnapshot": WriteCall(
        snapshot_calls.rename,
        _done(calls.RenameSnapshotResponseProto()),
    ),
    "addCacheDirective": WriteCall(cache_directives.add, cache_directives.added_before),
    "modifyCacheDirective": WriteCall(
        cache_directives.modify, _done(calls.ModifyCacheDirectiveResponseProto())
    ),
    "removeCacheDirective": WriteCall(
        cache_directives.remove, _done(calls.RemoveCacheDirectiveResponseProto())
    ),
    "addCachePool": WriteCall(cache_pools.add, _done(calls.AddCachePoolResponseProto())),
    "modifyCachePool": WriteCall(cache_pools.modify, _done(calls.ModifyCachePoolResponseProto())),
    "removeCachePool": WriteCall(cache_pools.remove, _done(calls.RemoveCachePoolResponseProto())),
    "getDelegationToken": WriteCall(tokens.get),
    "renewDelegationToken": WriteCall(tokens.renew),
    "cancelDelegationToken": WriteCall(tokens.cancel),
}

_REQUESTS_OF_OTHER_NAMES = {
    "getFsStats": calls.GetFsStatusRequestProto,
    "getHAServiceState": calls.HAServiceStateRequestProto,
    "getSnapshotDiffReport": snapshots.GetSnapshotDiffReportRequestProto,
    "getSnapshotDiffReportListing": snapshots.GetSnapshotDiffReportListingRequestProto,
}


def request_of(method: str) -> type[Message]:
    """Return the class of a call's request (ClientNamenodeProtocol.proto's naming rule)."""
    named = f"{method[0].upper()}{method[1:]}RequestProto"
    found: type[Message] = _REQUESTS_OF_OTHER_NAMES.get(method) or getattr(calls, named)
    return found
