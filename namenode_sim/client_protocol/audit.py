"""The words in which Hadoop's audit log names each call of ClientProtocol.  Pure.

A line is written of a call that was done, and of one that its user may not make; a call that fails
otherwise has none, as in Hadoop 3.5's FSNamesystem.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ha.record import dataclass, record
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as hdfs


@dataclass(frozen=True, slots=True)
class Words:
    """A call's command, and the fields of its request that are ``src`` and ``dst``.

    ``perm``: which of the two has the file whose owner, group and mode are written.
    """

    cmd: str
    src: str = ""
    dst: str = ""
    perm: str = ""


_ROWS: Final = (
    # calls (with the command where it has another name), src, dst, whose permissions
    ("mkdirs create truncate setPermission setOwner setTimes setStoragePolicy unsetStoragePolicy "
     "setAcl modifyAclEntries removeAclEntries removeDefaultAcl removeAcl setXAttr removeXAttr "
     "getEZForPath", "src", "", "src"),
    ("append isFileClosed setReplication getAclStatus getXAttrs listXAttrs getErasureCodingPolicy "
     "getFileInfo=getfileinfo getFileLinkInfo=getfileinfo getLocatedFileInfo getListing=listStatus "
     "getBlockLocations=open delete abandonBlock complete fsync addBlock recoverLease "
     "satisfyStoragePolicy", "src", "", ""),
    ("listCachePools refreshNodes metaSave setBalancerBandwidth finalizeUpgrade listOpenFiles "
     "getDatanodeStorageReport getErasureCodingPolicies listEncryptionZones saveNamespace "
     "getDelegationToken renewDelegationToken cancelDelegationToken setSafeMode "
     "rollEdits=rollEditLog getDatanodeReport=datanodeReport getBatchedListing=listStatus "
     "getSlowDatanodeReport=slowDataNodesReport "
     "getSnapshottableDirListing=listSnapshottableDirectory", "", "", ""),
    ("getContentSummary=contentSummary getQuotaUsage=quotaUsage checkAccess setQuota "
     "getLinkTarget=getfileinfo", "path", "", ""),
    ("getEnclosingRoot=getEZForPath", "filename", "", "src"),
    ("rename rename2", "src", "dst", "dst"),
    ("concat", "srcs", "trg", "dst"),
    ("createSymlink", "link", "target", ""),
    ("allowSnapshot disallowSnapshot getSnapshotListing=ListSnapshot", "snapshotRoot", "", ""),
    ("createSnapshot", "snapshotRoot", "snapshotPath", ""),
    ("deleteSnapshot", "snapshotName", "", ""),
    ("renameSnapshot", "snapshotOldName", "snapshotNewName", ""),
    ("getSnapshotDiffReport=computeSnapshotDiff getSnapshotDiffReportListing=computeSnapshotDiff",
     "fromSnapshot", "toSnapshot", ""),
    ("addCachePool addCacheDirective", "info", "", ""),
    ("modifyCachePool modifyCacheDirective", "key", "info", ""),
    ("removeCachePool removeCacheDirective", "key", "", ""),
    ("listCacheDirectives", "filter", "", ""),
)  # fmt: skip
WORDS: Final[Mapping[str, Words]] = {
    method: Words(cmd or method, src, dst, perm)
    for methods, src, dst, perm in _ROWS
    for method, _, cmd in (one.partition("=") for one in methods.split())
}
_SILENT: Final = frozenset(
    ["abandonBlock", "complete", "fsync", "addBlock", "recoverLease", "satisfyStoragePolicy"]
)
"""Of these only refusals have a line."""
_UNCHANGED, _CLEARED = 2**63 - 1, 2**64 - 1


def _quota(request: calls.SetQuotaRequestProto) -> str:
    names, space = request.namespaceQuota, request.storagespaceQuota
    usual = "setQuota" if space == _UNCHANGED else "setSpaceQuota"
    only = {(_CLEARED, _UNCHANGED): "clearQuota", (_UNCHANGED, _CLEARED): "clearSpaceQuota"}
    return only.get((names, space), usual)


def _format_rename(request: calls.Rename2RequestProto) -> str:
    options = ["OVERWRITE"] * request.overwriteDest + ["TO_TRASH"] * request.moveToTrash
    return f"rename (options=[{', '.join(options or ['NONE'])}])"


_COMMANDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "setQuota": _quota,
    "rename2": _format_rename,
    "setSafeMode": lambda asked: hdfs.SafeModeActionProto.Name(asked.action).lower(),
    "getLocatedFileInfo": lambda asked: "open" if asked.needBlockToken else "getfileinfo",
}


@record
class Said:
    """What one line says of a call; ``perm_of``: the path of which owner, group and mode are."""

    cmd: str
    allowed: bool
    src: str | None = None
    dst: str | None = None
    perm_of: str | None = None


def said_of(method: str, request: Any, answer: Any) -> Sequence[Said]:  # noqa: ANN401 - of any call
    """Return the lines of a call; ``answer`` is None where its user may not make it."""
    words, allowed = WORDS[method], answer is not None
    cmd = _COMMANDS[method](request) if method in _COMMANDS else words.cmd
    if method == "getBatchedListing":
        return [Said(cmd, allowed, path) for path in request.paths]
    if allowed and method in ("delete", "rename") and not answer.result:
        allowed = False
    if answer is not None and (method in _SILENT or (method == "rename" and not allowed)):
        return ()
    src, dst = (_value(word, method, request, answer) for word in (words.src, words.dst))
    perm = {"src": src, "dst": dst, "": None}[words.perm] if allowed else None
    return (Said(cmd, allowed, src, dst, perm),)


def _value(word: str, method: str, request: Any, answer: Any) -> str | None:  # noqa: ANN401 - of any call
    match word:
        case "":
            return None
        case "srcs":
            return f"[{', '.join(request.srcs)}]"
        case "snapshotPath":
            return None if answer is None else str(answer.snapshotPath)
        case "snapshotName" | "snapshotOldName" | "snapshotNewName" | "fromSnapshot" | "toSnapshot":
            root, name = request.snapshotRoot, getattr(request, word)
            return f"{root.rstrip('/')}/.snapshot/{name}" if name else str(root)
        case "key":
            named = getattr(request, "info", request)
            name = "poolName" if method.endswith("Pool") else "id"
            return _format_fields({name: getattr(named, name)})
        case "info" if method.endswith("Pool"):
            return _pool(request.info, _NEW_POOL if method == "addCachePool" else {})
        case "info" | "filter":
            new = {"id": answer.id} if answer and method == "addCacheDirective" else {}
            return _format_fields(new | _set_in(getattr(request, word), _DIRECTIVE))
        case _:
            return str(getattr(request, word))


_DIRECTIVE: Final = ("id", "path", "replication", "pool")
_POOL: Final = {
    "poolName": "poolName", "ownerName": "ownerName", "groupName": "groupName", "mode": "mode",
    "limit": "limit", "defaultReplication": "defaultReplication",
    "maxRelativeExpiry": "maxRelativeExpiryMs",
}  # fmt: skip
_NEW_POOL: Final = {"limit": 2**63 - 1, "defaultReplication": 1, "maxRelativeExpiry": 2**61 - 1}


def _pool(info: Any, unset: Mapping[str, object]) -> str:  # noqa: ANN401 - as the next
    said: Mapping[str, object] = {**dict.fromkeys(_POOL, "null"), **unset, **_set_in(info, _POOL)}
    if info.HasField("mode"):
        said = {**said, "mode": f"0{info.mode:o}"}
    return _format_fields({_POOL[name]: value for name, value in said.items()}, ":")


def _set_in(info: Any, names: Sequence[str] | Mapping[str, str]) -> dict[str, Any]:  # noqa: ANN401 - HasField takes literals
    return {name: getattr(info, name) for name in names if info.HasField(name)}


def _format_fields(fields: Mapping[str, object], gap: str = ": ") -> str:
    return "{" + ", ".join(f"{name}{gap}{value}" for name, value in fields.items()) + "}"
