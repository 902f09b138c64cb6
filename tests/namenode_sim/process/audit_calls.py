"""Calls of ClientProtocol, one after the other, of which Hadoop and nnha write the same lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from google.protobuf.message import Message

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import client_snapshots_pb2 as snapshots
from hadoop.proto import hdfs_types_pb2 as hdfs


@dataclass(frozen=True, slots=True)
class Asked:
    """One call, by the superuser if it is by no other."""

    method: str
    request: Message
    user: str = ""
    context: str = ""


def _mode(bits: int) -> hdfs.FsPermissionProto:
    return hdfs.FsPermissionProto(perm=bits)


def _mkdirs(path: str, bits: int = 0o755, **more: str) -> Asked:
    request = calls.MkdirsRequestProto(src=path, masked=_mode(bits), createParent=True)
    return Asked("mkdirs", request, **more)


def _create(path: str, flag: int = 1, **more: str) -> Asked:
    request = calls.CreateRequestProto(
        src=path, masked=_mode(0o644), clientName="audit", createFlag=flag, createParent=True,
        replication=1, blockSize=1 << 20,
    )  # fmt: skip
    return Asked("create", request, **more)


def _acl(*names: str) -> list[hdfs.AclEntryProto]:
    return [
        hdfs.AclEntryProto(
            type=hdfs.AclEntryProto.USER, scope=hdfs.AclEntryProto.ACCESS,
            permissions=hdfs.AclEntryProto.READ, name=name,
        )
        for name in names
    ]  # fmt: skip


_XATTR = hdfs.XAttrProto(namespace=hdfs.XAttrProto.USER, name="k", value=b"v")
EVIL: Final = "tab\there\nline\x1b[2J\u202e\\"
CALLS: Final[Sequence[Asked]] = (
    _mkdirs("/a", 0o777),
    _mkdirs("/a/b/c"),
    _mkdirs("/a", 0o777),
    _mkdirs("/no", user="mallory"),
    _mkdirs("/a/with space"),
    _mkdirs(f"/a/{EVIL}"),
    _create("/a/f"),
    _create("/a/f"),
    _create("/a/f", 1 | 2),
    _create("/a/mine", user="mallory"),
    _create("/no", user="mallory"),
    Asked("complete", calls.CompleteRequestProto(src="/a/f", clientName="audit")),
    Asked("getFileInfo", calls.GetFileInfoRequestProto(src="/a/f")),
    Asked("getFileInfo", calls.GetFileInfoRequestProto(src="/a/f"), context="why\tit"),
    Asked("getFileInfo", calls.GetFileInfoRequestProto(src="/nowhere")),
    Asked("getLocatedFileInfo", calls.GetLocatedFileInfoRequestProto(src="/a/f")),
    Asked("getLocatedFileInfo", calls.GetLocatedFileInfoRequestProto(
        src="/a/f", needBlockToken=True)),
    Asked("getBatchedListing", calls.GetBatchedListingRequestProto(
        paths=["/a", "/a/b"], startAfter=b"", needLocation=False)),
    Asked("getFileLinkInfo", calls.GetFileLinkInfoRequestProto(src="/a/f")),
    Asked("isFileClosed", calls.IsFileClosedRequestProto(src="/a/f")),
    Asked("getListing", calls.GetListingRequestProto(src="/a", startAfter=b"", needLocation=False)),
    Asked("getBlockLocations", calls.GetBlockLocationsRequestProto(src="/a/f", offset=0, length=1)),
    Asked(
        "getBlockLocations", calls.GetBlockLocationsRequestProto(src="/nowhere", offset=0, length=1)
    ),
    Asked("getContentSummary", calls.GetContentSummaryRequestProto(path="/a")),
    Asked("getQuotaUsage", calls.GetQuotaUsageRequestProto(path="/a")),
    Asked("getPreferredBlockSize", calls.GetPreferredBlockSizeRequestProto(filename="/a/f")),
    Asked("checkAccess", calls.CheckAccessRequestProto(path="/a", mode=hdfs.AclEntryProto.READ)),
    Asked("append", calls.AppendRequestProto(src="/a/f", clientName="audit", flag=4)),
    Asked("complete", calls.CompleteRequestProto(src="/a/f", clientName="audit")),
    Asked("recoverLease", calls.RecoverLeaseRequestProto(src="/a/f", clientName="audit")),
    Asked("recoverLease", calls.RecoverLeaseRequestProto(src="/a/f", clientName="m"),
          user="mallory"),
    Asked("setPermission", calls.SetPermissionRequestProto(src="/a/f", permission=_mode(0o1777))),
    Asked("setPermission", calls.SetPermissionRequestProto(src="/nowhere", permission=_mode(1))),
    Asked(
        "setPermission", calls.SetPermissionRequestProto(src="/a/b", permission=_mode(0o700)),
        user="mallory",
    ),
    Asked("setPermission", calls.SetPermissionRequestProto(src="/a/b", permission=_mode(0o700))),
    Asked("getListing", calls.GetListingRequestProto(
        src="/a/b", startAfter=b"", needLocation=False), user="mallory"),
    Asked("getFileInfo", calls.GetFileInfoRequestProto(src="/a/b/c"), user="mallory"),
    Asked("getContentSummary", calls.GetContentSummaryRequestProto(path="/a/b"), user="mallory"),
    Asked("delete", calls.DeleteRequestProto(src="/a/b", recursive=True), user="mallory"),
    Asked("setOwner", calls.SetOwnerRequestProto(src="/a/f", username="u", groupname="g")),
    Asked("setOwner", calls.SetOwnerRequestProto(src="/a/f", username="x"), user="mallory"),
    Asked("setTimes", calls.SetTimesRequestProto(src="/a/f", mtime=1, atime=2)),
    Asked("setReplication", calls.SetReplicationRequestProto(src="/a/f", replication=2)),
    Asked("setStoragePolicy", calls.SetStoragePolicyRequestProto(src="/a/b", policyName="COLD")),
    Asked("unsetStoragePolicy", calls.UnsetStoragePolicyRequestProto(src="/a/b")),
    Asked("getStoragePolicy", calls.GetStoragePolicyRequestProto(path="/a/b")),
    Asked("satisfyStoragePolicy", calls.SatisfyStoragePolicyRequestProto(src="/a/b")),
    Asked("getErasureCodingPolicy", calls.GetErasureCodingPolicyRequestProto(src="/a/b")),
    Asked("getErasureCodingPolicies", calls.GetErasureCodingPoliciesRequestProto()),
    Asked("getEZForPath", calls.GetEZForPathRequestProto(src="/a/b")),
    Asked("listEncryptionZones", calls.ListEncryptionZonesRequestProto(id=0)),
    Asked("getEnclosingRoot", calls.GetEnclosingRootRequestProto(filename="/a/b")),
    Asked("getStoragePolicies", calls.GetStoragePoliciesRequestProto()),
    Asked("setQuota", calls.SetQuotaRequestProto(
        path="/a/b", namespaceQuota=100, storagespaceQuota=(1 << 63) - 1)),
    Asked("setQuota", calls.SetQuotaRequestProto(
        path="/a/b", namespaceQuota=(1 << 63) - 1, storagespaceQuota=1 << 40)),
    Asked("setQuota", calls.SetQuotaRequestProto(
        path="/a/b", namespaceQuota=100, storagespaceQuota=1 << 40)),
    Asked("setQuota", calls.SetQuotaRequestProto(
        path="/a/b", namespaceQuota=(1 << 64) - 1, storagespaceQuota=(1 << 63) - 1)),
    Asked("setQuota", calls.SetQuotaRequestProto(
        path="/a/b", namespaceQuota=(1 << 63) - 1, storagespaceQuota=(1 << 64) - 1)),
    Asked("setQuota", calls.SetQuotaRequestProto(
        path="/a/b", namespaceQuota=(1 << 64) - 1, storagespaceQuota=(1 << 64) - 1)),
    Asked("setQuota", calls.SetQuotaRequestProto(
        path="/a/b", namespaceQuota=(1 << 63) - 1, storagespaceQuota=1 << 40,
        storageType=hdfs.SSD)),
    Asked("setQuota", calls.SetQuotaRequestProto(
        path="/a/b", namespaceQuota=1, storagespaceQuota=1), user="mallory"),
    Asked("setAcl", calls.SetAclRequestProto(src="/a/f", aclSpec=[
        *_acl("bob"),
        hdfs.AclEntryProto(type=hdfs.AclEntryProto.USER, scope=hdfs.AclEntryProto.ACCESS,
                          permissions=hdfs.AclEntryProto.PERM_ALL),
        hdfs.AclEntryProto(type=hdfs.AclEntryProto.GROUP, scope=hdfs.AclEntryProto.ACCESS,
                          permissions=hdfs.AclEntryProto.READ),
        hdfs.AclEntryProto(type=hdfs.AclEntryProto.OTHER, scope=hdfs.AclEntryProto.ACCESS,
                          permissions=hdfs.AclEntryProto.READ)])),
    Asked("modifyAclEntries", calls.ModifyAclEntriesRequestProto(src="/a/f", aclSpec=_acl("eve"))),
    Asked("getAclStatus", calls.GetAclStatusRequestProto(src="/a/f")),
    Asked("removeAclEntries", calls.RemoveAclEntriesRequestProto(src="/a/f", aclSpec=_acl("eve"))),
    Asked("removeDefaultAcl", calls.RemoveDefaultAclRequestProto(src="/a/f")),
    Asked("removeAcl", calls.RemoveAclRequestProto(src="/a/f")),
    Asked("setXAttr", calls.SetXAttrRequestProto(src="/a/f", xAttr=_XATTR, flag=1)),
    Asked("getXAttrs", calls.GetXAttrsRequestProto(src="/a/f", xAttrs=[_XATTR])),
    Asked("getXAttrs", calls.GetXAttrsRequestProto(src="/a/f")),
    Asked("listXAttrs", calls.ListXAttrsRequestProto(src="/a/f")),
    Asked("removeXAttr", calls.RemoveXAttrRequestProto(src="/a/f", xAttr=_XATTR)),
    Asked("rename", calls.RenameRequestProto(src="/a/f", dst="/a/g")),
    Asked("rename", calls.RenameRequestProto(src="/nowhere", dst="/a/g")),
    Asked("rename", calls.RenameRequestProto(src="/a/g", dst="/h"), user="mallory"),
    Asked("rename2", calls.Rename2RequestProto(src="/a/g", dst="/a/f", overwriteDest=True)),
    Asked("rename2", calls.Rename2RequestProto(src="/a/f", dst="/a/g", overwriteDest=False)),
    Asked("rename2", calls.Rename2RequestProto(
        src="/a/g", dst="/a/f", overwriteDest=False, moveToTrash=True)),
    Asked("truncate", calls.TruncateRequestProto(src="/a/f", newLength=0, clientName="audit")),
    Asked("concat", calls.ConcatRequestProto(trg="/a/f", srcs=["/a/mine"])),
    Asked("allowSnapshot", calls.AllowSnapshotRequestProto(snapshotRoot="/a")),
    Asked("createSnapshot", calls.CreateSnapshotRequestProto(
        snapshotRoot="/a", snapshotName="s1")),
    Asked("createSnapshot", calls.CreateSnapshotRequestProto(
        snapshotRoot="/a", snapshotName="s1"), user="mallory"),
    Asked("renameSnapshot", calls.RenameSnapshotRequestProto(
        snapshotRoot="/a", snapshotOldName="s1", snapshotNewName="s2")),
    Asked("getSnapshottableDirListing", calls.GetSnapshottableDirListingRequestProto()),
    Asked("getSnapshotListing", calls.GetSnapshotListingRequestProto(snapshotRoot="/a")),
    Asked("getSnapshotDiffReport", snapshots.GetSnapshotDiffReportRequestProto(
        snapshotRoot="/a", fromSnapshot="s2", toSnapshot="")),
    Asked("getSnapshotDiffReportListing", snapshots.GetSnapshotDiffReportListingRequestProto(
        snapshotRoot="/a", fromSnapshot="s2", toSnapshot="",
        cursor=snapshots.SnapshotDiffReportCursorProto(startPath=b"", index=-1))),
    Asked("deleteSnapshot", calls.DeleteSnapshotRequestProto(
        snapshotRoot="/a", snapshotName="s2")),
    Asked("disallowSnapshot", calls.DisallowSnapshotRequestProto(snapshotRoot="/a")),
    Asked("addCachePool", calls.AddCachePoolRequestProto(
        info=hdfs.CachePoolInfoProto(poolName="p", ownerName="o", groupName="g", mode=0o755))),
    Asked("modifyCachePool", calls.ModifyCachePoolRequestProto(
        info=hdfs.CachePoolInfoProto(poolName="p", limit=10))),
    Asked("addCacheDirective", calls.AddCacheDirectiveRequestProto(
        info=hdfs.CacheDirectiveInfoProto(path="/a/f", pool="p", replication=1), cacheFlags=1)),
    Asked("modifyCacheDirective", calls.ModifyCacheDirectiveRequestProto(
        info=hdfs.CacheDirectiveInfoProto(id=1, replication=2), cacheFlags=1)),
    Asked("listCacheDirectives", calls.ListCacheDirectivesRequestProto(
        prevId=0, filter=hdfs.CacheDirectiveInfoProto(pool="p"))),
    Asked("listCachePools", calls.ListCachePoolsRequestProto(prevPoolName="")),
    Asked("removeCacheDirective", calls.RemoveCacheDirectiveRequestProto(id=1)),
    Asked("removeCachePool", calls.RemoveCachePoolRequestProto(poolName="p")),
    Asked("getFsStats", calls.GetFsStatusRequestProto()),
    Asked("getServerDefaults", calls.GetServerDefaultsRequestProto()),
    Asked("getDatanodeReport", calls.GetDatanodeReportRequestProto(type=hdfs.LIVE)),
    Asked("getDatanodeStorageReport", calls.GetDatanodeStorageReportRequestProto(type=hdfs.LIVE)),
    Asked("getSlowDatanodeReport", calls.GetSlowDatanodeReportRequestProto()),
    Asked("listCorruptFileBlocks", calls.ListCorruptFileBlocksRequestProto(path="/a")),
    Asked("listOpenFiles", calls.ListOpenFilesRequestProto(
        id=0, types=[hdfs.ALL_OPEN_FILES], path="/")),
    Asked("setSafeMode", calls.SetSafeModeRequestProto(action=hdfs.SAFEMODE_GET)),
    Asked("setSafeMode", calls.SetSafeModeRequestProto(action=hdfs.SAFEMODE_ENTER)),
    _mkdirs("/safe"),
    Asked("setSafeMode", calls.SetSafeModeRequestProto(action=hdfs.SAFEMODE_LEAVE)),
    Asked("setSafeMode", calls.SetSafeModeRequestProto(action=hdfs.SAFEMODE_ENTER), user="mallory"),
    Asked("refreshNodes", calls.RefreshNodesRequestProto()),
    Asked("refreshNodes", calls.RefreshNodesRequestProto(), user="mallory"),
    Asked("rollEdits", calls.RollEditsRequestProto()),
    Asked("setBalancerBandwidth", calls.SetBalancerBandwidthRequestProto(bandwidth=1 << 20)),
    Asked("finalizeUpgrade", calls.FinalizeUpgradeRequestProto()),
    Asked("upgradeStatus", calls.UpgradeStatusRequestProto()),
    Asked("rollingUpgrade", calls.RollingUpgradeRequestProto(action=calls.QUERY)),
    Asked("saveNamespace", calls.SaveNamespaceRequestProto(timeWindow=0, txGap=0)),
    Asked("getCurrentEditLogTxid", calls.GetCurrentEditLogTxidRequestProto()),
    Asked("renewLease", calls.RenewLeaseRequestProto(clientName="audit")),
    Asked("delete", calls.DeleteRequestProto(src="/a/f", recursive=False)),
    Asked("delete", calls.DeleteRequestProto(src="/a/f", recursive=False)),
    Asked("delete", calls.DeleteRequestProto(src="/a", recursive=True)),
)  # fmt: skip

GOLDEN: Final = Path(__file__).parent / "audit_lines.txt"
"""What Hadoop 3.5.0 wrote: ``tests/interop/test_client_audit.py`` holds it to that."""
_EXPIRATION: Final = re.compile(r", expiration: [\w:+-]*")
"""A year in which no cache directive ends, by the clock."""


def shown(asked: Asked, lines: Sequence[str], superuser: str) -> str:
    """Return a call and its audit lines without what is of a machine and of its clock."""
    text = f"{asked.method} {asked.user or 'SUPER'}\n"
    for line in lines:
        line = _EXPIRATION.sub("", line).replace(f"ugi={superuser} ", "ugi=SUPER ")
        text += f"    {line.replace(f'perm={superuser}:', 'perm=SUPER:')}\n".replace("\t", " | ")
    return text
