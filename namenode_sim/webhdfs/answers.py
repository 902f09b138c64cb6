"""The answers of ClientProtocol as Hadoop's JSON (org.apache.hadoop.hdfs.web.JsonUtil).  Pure."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from google.protobuf.message import Message

from ha.record import dataclass
from hadoop.proto import hdfs_types_pb2 as types
from hadoop.webhdfs import token_text
from namenode_sim.client_protocol.words.errors import not_found
from namenode_sim.client_protocol.words.paths import text

Json = Mapping[str, object]
Answer = Any
"""A message of ClientProtocol; the row in the table of operations says which."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was read and let in.  ``values`` are its parameters, by name.

    ``client``: the name of a writer, of this request alone.
    """

    op: str
    path: str
    user: str
    client: str
    values: Mapping[str, Any]


ACTIONS: Final = (("r", 4), ("w", 2), ("x", 1))
_STATUS: Final = types.HdfsFileStatusProto
_KINDS: Final = {"IS_DIR": "DIRECTORY", "IS_FILE": "FILE", "IS_SYMLINK": "SYMLINK"}
_BITS: Final = {
    "aclBit": _STATUS.HAS_ACL, "encBit": _STATUS.HAS_CRYPT, "ecBit": _STATUS.HAS_EC,
    "snapshotEnabled": _STATUS.SNAPSHOT_ENABLED,
}  # fmt: skip
_LISTS: Final = {
    "createList": "createdEntries", "deleteList": "deletedEntries", "modifyList": "modifiedEntries",
}  # fmt: skip
_CHANGES: Final = {"+": "CREATE", "-": "DELETE", "M": "MODIFY", "R": "RENAME"}


def _take(message: Message, names: str, /, **more: object) -> dict[str, object]:
    """Return fields by name, ``json=field`` where they differ: bytes as text, numbers as Java's."""
    told: dict[str, object] = {}
    for name, _, field in (word.partition("=") for word in names.split()):
        value = getattr(message, field or name)
        if isinstance(value, bytes):
            value = text(value)
        elif isinstance(value, int) and value >= 2**63:
            value -= 2**64
        told[name] = value
    return told | more


def _if_set(message: Message, *names: str) -> dict[str, object]:
    return _take(message, " ".join(name for name in names if message.HasField(name)))


def nothing(_: object, __: Asked) -> None:
    """Answer without a body."""


def only(name: str, field: str) -> Callable[[Answer, Asked], Json]:
    """Return how to answer with one field alone, under this name."""
    return lambda answer, _: {name: getattr(answer, field)}


boolean: Final = only("boolean", "result")


# Status and listings.


def status(found: types.HdfsFileStatusProto) -> Json:
    bits = {name: True for name, bit in _BITS.items() if found.flags & bit}
    policy = {"ecPolicy": found.ecPolicy.name} if found.HasField("ecPolicy") else {}
    told = _take(
        found,
        "pathSuffix=path length owner group accessTime=access_time childrenNum fileId storagePolicy"
        " modificationTime=modification_time blockSize=blocksize replication=block_replication",
        type=_KINDS[_STATUS.FileType.Name(found.fileType)],
        permission=f"{found.permission.perm:o}",
    )
    return told | _if_set(found, "symlink") | bits | policy


def file_status(answer: Answer, asked: Asked) -> Json:
    if not answer.HasField("fs"):
        raise not_found(f"File does not exist: {asked.path}")
    return {"FileStatus": status(answer.fs)}


def page(answer: Answer, asked: Asked) -> types.DirectoryListingProto:
    """Return a page of a directory; raise FsError where there is no such directory."""
    if not answer.HasField("dirList"):
        raise not_found(f"File {asked.path} does not exist.")
    found: types.DirectoryListingProto = answer.dirList
    return found


def listing(answer: Answer, asked: Asked) -> Json:
    found = page(answer, asked)
    entries = {"FileStatuses": {"FileStatus": [status(one) for one in found.partialListing]}}
    return {"DirectoryListing": _take(found, "remainingEntries", partialListing=entries)}


# Sums.


def content_summary(answer: Answer, _: Asked) -> Json:
    names = (
        "directoryCount fileCount length quota spaceConsumed spaceQuota"
        " ecPolicy=erasureCodingPolicy snapshotDirectoryCount snapshotFileCount"
        " snapshotLength snapshotSpaceConsumed"
    )
    return {"ContentSummary": _take(answer.summary, names, typeQuota=_quotas(answer.summary))}


def quota_usage(answer: Answer, _: Asked) -> Json:
    names = "fileAndDirectoryCount quota spaceConsumed spaceQuota"
    return {"QuotaUsage": _take(answer.usage, names, typeQuota=_quotas(answer.usage))}


def _quotas(found: Answer) -> Json:
    set_ones = (one for one in found.typeQuotaInfos.typeQuotaInfo if one.quota < 2**63)
    return {types.StorageTypeProto.Name(one.type): _take(one, "quota consumed") for one in set_ones}


def fs_status(answer: Answer, _: Asked) -> Json:
    return {"FsStatus": _take(answer, "used remaining capacity")}


# Blocks.


def located_blocks(answer: Answer, _: Asked) -> Json:
    found = answer.locations
    return {
        "LocatedBlocks": _take(
            found,
            "fileLength isLastBlockComplete isUnderConstruction=underConstruction",
            lastLocatedBlock=_located_block(found.lastBlock)
            if found.HasField("lastBlock")
            else None,
            locatedBlocks=[_located_block(block) for block in found.blocks],
        )
    }


def _located_block(block: types.LocatedBlockProto) -> Json:
    return _take(
        block,
        "isCorrupt=corrupt startOffset=offset",
        block=_take(block.b, "blockId blockPoolId=poolId generationStamp numBytes"),
        blockToken={"urlString": "AAAAAA"},  # none, as Hadoop spells it: DataNodes get their own
        cachedLocations=[_datanode(node) for node in _cached_nodes(block)],
        locations=[_datanode(node) for node in block.locs],
        storageTypes=_storage_types(block.storageTypes),
    )


def _datanode(node: types.DatanodeInfoProto) -> Json:
    names = (
        "blockPoolUsed cacheCapacity cacheUsed capacity dfsUsed lastBlockReportMonotonic remaining"
        " lastBlockReportTime lastUpdate lastUpdateMonotonic xceiverCount networkLocation=location"
    )
    own = "hostName infoPort infoSecurePort ipAddr ipcPort xferPort storageID=datanodeUuid"
    state = types.DatanodeInfoProto.AdminState.Name(node.adminState)
    return _take(node, names, adminState=state, name=_address(node.id)) | _take(node.id, own)


def block_locations(answer: Answer, _: Asked) -> Json:
    """Return places as BlockLocation has them, which names no block."""
    told = [
        _take(
            block,
            "corrupt offset",
            cachedHosts=[node.id.hostName for node in _cached_nodes(block)],
            hosts=[node.id.hostName for node in block.locs],
            length=block.b.numBytes,
            names=[_address(node.id) for node in block.locs],
            storageTypes=_storage_types(block.storageTypes),
            topologyPaths=[f"{node.location}/{_address(node.id)}" for node in block.locs],
        )
        for block in answer.locations.blocks
    ]
    return {"BlockLocations": {"BlockLocation": told}}


def _cached_nodes(block: types.LocatedBlockProto) -> list[types.DatanodeInfoProto]:
    return [node for node, cached in zip(block.locs, block.isCached, strict=False) if cached]


def _storage_types(found: Iterable["types.StorageTypeProto.ValueType"]) -> list[str]:
    return [types.StorageTypeProto.Name(one) for one in found]


def _address(node: types.DatanodeIDProto) -> str:
    return f"{node.ipAddr}:{node.xferPort}"


# Settings of the cluster.


def server_defaults(answer: Answer, _: Asked) -> Json:
    names = (
        "blockSize bytesPerChecksum writePacketSize replication fileBufferSize encryptDataTransfer"
        " trashInterval checksumType keyProviderUri defaultStoragePolicyId=policyId"
    )
    return {"FsServerDefaults": _take(answer.serverDefaults, names)}


def storage_policy(answer: Answer, _: Asked) -> Json:
    return {"BlockStoragePolicy": _policy(answer.storagePolicy)}


def storage_policies(answer: Answer, _: Asked) -> Json:
    told = [_policy(policy) for policy in answer.policies]
    return {"BlockStoragePolicies": {"BlockStoragePolicy": told}}


def _policy(found: types.BlockStoragePolicyProto) -> Json:
    return _take(
        found,
        "name id=policyId",
        copyOnCreateFile=found.name == "LAZY_PERSIST",
        creationFallbacks=_storage_types(found.creationFallbackPolicy.storageTypes),
        replicationFallbacks=_storage_types(found.replicationFallbackPolicy.storageTypes),
        storageTypes=_storage_types(found.creationPolicy.storageTypes),
    )


# Attributes.


def acl_status(answer: Answer, _: Asked) -> Json:
    found: types.AclStatusProto = answer.result
    told = _take(
        found,
        "owner group stickyBit=sticky",
        permission=f"{found.permission.perm:o}",
        entries=[_acl_entry(entry) for entry in found.entries],
    )
    return {"AclStatus": told}


def _acl_entry(entry: types.AclEntryProto) -> str:
    """Return an entry as AclEntry.toStringStable writes it."""
    scope = "default:" if entry.scope == types.AclEntryProto.DEFAULT else ""
    kind = types.AclEntryProto.AclEntryTypeProto.Name(entry.type).lower()
    may = "".join(letter if entry.permissions & bit else "-" for letter, bit in ACTIONS)
    return f"{scope}{kind}:{entry.name}:{may}"


def xattrs(answer: Answer, asked: Asked) -> Json:
    encoding = asked.values["encoding"][0]
    told = [{"name": _name(one), "value": _encode(one, encoding)} for one in answer.xAttrs]
    return {"XAttrs": told}


def xattr_names(answer: Answer, _: Asked) -> Json:
    """Return names as Hadoop does: JSON within a string of JSON."""
    return {"XAttrNames": json.dumps([_name(one) for one in answer.xAttrs])}


def _name(one: types.XAttrProto) -> str:
    space = types.XAttrProto.XAttrNamespaceProto.Name(one.namespace).lower()
    return f"{space}.{one.name}"


def _encode(one: types.XAttrProto, encoding: str) -> str | None:
    """Return a value as XAttrCodec encodes it; None where there is none."""
    if not one.HasField("value"):
        return None
    if encoding == "HEX":
        return f"0x{one.value.hex()}"
    return f"0s{b64encode(one.value).decode()}" if encoding == "BASE64" else f'"{text(one.value)}"'


# Links, snapshots and paths.


def home(_: object, asked: Asked) -> Json:
    return {"Path": f"/user/{asked.user}"}


def trash_root(_: object, asked: Asked) -> Json:
    return {"Path": f"/user/{asked.user}/.Trash"}


def token(answer: Answer, asked: Asked) -> Json:
    """Return a token under the name and the service that its holder will look for."""
    if not answer.HasField("token"):
        return {"Token": None}
    given = answer.token
    given.kind = asked.values["kind"] or token_text.KIND
    given.service = asked.values["service"] or ""
    return {"Token": {"urlString": token_text.encoded(given)}}


def snapshottable(answer: Answer, _: Asked) -> Json:
    names = "snapshotNumber=snapshot_number snapshotQuota=snapshot_quota"
    if not answer.HasField("snapshottableDirList"):
        return {"SnapshottableDirectoryList": None}
    told = [
        _take(one, f"{names} parentFullPath=parent_fullpath", dirStatus=status(one.dirStatus))
        for one in answer.snapshottableDirList.snapshottableDirListing
    ]
    return {"SnapshottableDirectoryList": told}


def snapshot_list(answer: Answer, _: Asked) -> Json:
    told = [
        _take(
            one,
            "snapshotID",
            deletionStatus="DELETED" if one.isDeleted else "ACTIVE",
            dirStatus=status(one.dirStatus),
            fullPath=f"{text(one.parent_fullpath).rstrip('/')}/.snapshot/{text(one.dirStatus.path)}",
        )
        for one in answer.snapshotList.snapshotListing
    ]
    return {"SnapshotList": told}


def snapshot_diff(answer: Answer, _: Asked) -> Json:
    found = answer.diffReport
    told = [
        _take(one, "sourcePath=fullpath", type=_CHANGES[one.modificationLabel])
        | _if_set(one, "targetPath")
        for one in found.diffReportEntries
    ]
    names = "fromSnapshot snapshotRoot toSnapshot"
    return {"SnapshotDiffReport": _take(found, names, diffList=told)}


def snapshot_diff_listing(answer: Answer, _: Asked) -> Json:
    found = answer.diffReport
    told = _take(found, "isFromEarlier") | _take(found.cursor, "lastIndex=index lastPath=startPath")
    for name, entries in _LISTS.items():
        told[name] = [
            _take(one, "dirId fileId isReference sourcePath=fullpath") | _if_set(one, "targetPath")
            for one in getattr(found, entries)
        ]
    return {"SnapshotDiffReportListing": told}
