"""The operations of WebHDFS: for each its parameters, its call of ClientProtocol, its answer.

The one table; ``namenode_sim.webhdfs.route`` carries it out through the very handlers of RPC.
Pure.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.message import Message

from ha.record import dataclass
from ha.rpc.java_names import UNSUPPORTED_OPERATION
from hadoop.proto import hdfs_types_pb2 as types
from hadoop.webhdfs import params
from hadoop.webhdfs.refusals import illegal, invalid_value
from namenode_sim.client_protocol import table
from namenode_sim.client_protocol.words.errors import HADOOP_ILLEGAL_ARGUMENT, FsError
from namenode_sim.webhdfs import answers
from namenode_sim.webhdfs.answers import Asked, Json

Fields = Mapping[str, Any]


def _no_more(_: Asked) -> Fields:
    return {}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is one call.

    ``fields`` of the request are given by ``field=parameter``, or ``field`` for the path; ``more``
    gives the others.  ``params``: ``!`` behind those that must be given.
    """

    call: str
    answer: Callable[[Any, Asked], Json | None]
    fields: str = ""
    params: str = ""
    more: Callable[[Asked], Fields] = _no_more

    def request(self, asked: Asked) -> Message:
        """Return the request of the call; raise FsError where the values make none."""
        told: dict[str, Any] = {}
        for field, _, name in (word.partition("=") for word in self.fields.split()):
            value = asked.values[name] if name else asked.path
            if value is not None:
                told[field] = value
        return table.request_of(self.call)(**told, **self.more(asked))


@dataclass(frozen=True, slots=True)
class Listing:
    """LISTSTATUS: as many calls as the directory has pages."""

    call: str = "getListing"
    params: str = ""


@dataclass(frozen=True, slots=True)
class Redirect:
    """An operation that a DataNode carries out; ``call`` is what the caller must have a right to.

    ``looks``: the file must be there.
    """

    call: str
    params: str
    looks: bool = True


@dataclass(frozen=True, slots=True)
class NotServed:
    """An operation of Hadoop that is refused, and why."""

    why: str
    java_class: str = UNSUPPORTED_OPERATION
    call: str = "getServerDefaults"
    params: str = ""


Row = Operation | Listing | Redirect | NotServed


def _u64(**numbers: int) -> Fields:
    return {name: value % 2**64 for name, value in numbers.items()}


def _mkdirs(asked: Asked) -> Fields:
    mode, unmasked = asked.values["permission"], asked.values["unmaskedpermission"]
    told = {"masked": {"perm": 0o755 if mode is None else mode}, "createParent": True}
    return told if unmasked is None else {**told, "unmasked": {"perm": unmasked}}


def _permission(asked: Asked) -> Fields:
    mode = asked.values["permission"]
    return {"permission": {"perm": 0o755 if mode is None else mode}}


def _some_owner(asked: Asked) -> Fields:
    if asked.values["owner"] is None and asked.values["group"] is None:
        raise illegal("Both owner and group are empty.")
    return {}


def _times(asked: Asked) -> Fields:
    return _u64(mtime=asked.values["modificationtime"], atime=asked.values["accesstime"])


def _quotas(asked: Asked) -> Fields:
    space = asked.values["storagespacequota"]
    told = _u64(
        namespaceQuota=asked.values.get("namespacequota", params.LONG), storagespaceQuota=space
    )
    kind = asked.values.get("storagetype")
    if kind is None:
        return told
    if kind.upper() not in types.StorageTypeProto.keys():  # noqa: SIM118 - an enum, no dict
        raise illegal(f"No enum constant org.apache.hadoop.fs.StorageType.{kind.upper()}")
    return {**told, "storageType": kind.upper()}


def _sources(asked: Asked) -> Fields:
    given = asked.values["sources"].split(",")
    return {"srcs": [one if one.startswith("/") else f"/{one}" for one in given]}


def _acl(*, with_permissions: bool) -> Callable[[Asked], Fields]:
    def fields(asked: Asked) -> Fields:
        entries = asked.values["aclspec"].split(",")
        return {"aclSpec": [_acl_entry(one, with_permissions) for one in entries]}

    return fields


def _acl_entry(spec: str, with_permissions: bool) -> types.AclEntryProto:  # noqa: FBT001 - of one caller
    own = spec.removeprefix("default:")
    kind, name, may = own.split(":")
    if bool(may) is not with_permissions:
        raise illegal(f"Invalid <aclSpec> : {spec}")
    known = types.AclEntryProto
    return known(
        type=known.AclEntryTypeProto.Value(kind.upper()),
        scope=known.ACCESS if own == spec else known.DEFAULT,
        permissions=known.FsActionProto.ValueType(_bits(may)),
        name=name or None,
    )


def _bits(may: str) -> int:
    return sum(bit for letter, bit in answers.ACTIONS if letter in may)


def _xattr(name: str, value: bytes | None = None) -> types.XAttrProto:
    """Return an attribute by its full name, as XAttrHelper reads it."""
    space, dot, own = name.partition(".")
    known = types.XAttrProto.XAttrNamespaceProto
    if dot and not own and len(space) > 2:
        raise FsError(HADOOP_ILLEGAL_ARGUMENT, "XAttr name cannot be empty.")
    if not own or space.upper() not in known.keys():  # noqa: SIM118 - an enum, no dict
        raise FsError(
            HADOOP_ILLEGAL_ARGUMENT,
            "An XAttr name must be prefixed with user/trusted/security/system/raw, followed by a "
            "'.'",
        )
    return types.XAttrProto(namespace=known.Value(space.upper()), name=own, value=value)


def _only_xattr(asked: Asked) -> types.XAttrProto:
    names = asked.values["xattr.name"]
    if len(names) > 1:
        raise invalid_value("xattr.name", f"it has {len(names)} values")
    return _xattr(names[0], _decode(asked.values.get("xattr.value")))


def _decode(value: str | None) -> bytes | None:
    """Return a value as XAttrCodec decodes it: in hexadecimal, in base 64, or as text."""
    if value is None:
        return None
    try:
        if value[:2].lower() == "0x":
            return bytes.fromhex(value[2:])
        if value[:2].lower() == "0s":
            return b64decode(value[2:], validate=True)
    except ValueError as error:
        raise invalid_value("xattr.value", str(error)) from error
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return (value[1:-1] if quoted else value).encode()


def _set_xattr(asked: Asked) -> Fields:
    flags = sum({"CREATE": 1, "REPLACE": 2}[one] for one in set(asked.values["flag"]))
    return {"xAttr": _only_xattr(asked), "flag": flags}


def _range(asked: Asked) -> Fields:
    length = asked.values["length"]
    return {"length": params.LONG if length is None else length}


def _ends(asked: Asked) -> Fields:
    """Return the two ends of a difference; an empty name is the directory as it is now."""
    old, new = asked.values["oldsnapshotname"], asked.values["snapshotname"]
    return {"fromSnapshot": old or "", "toSnapshot": new or ""}


def _ends_and_start(asked: Asked) -> Fields:
    start = (asked.values["snapshotdiffstartpath"] or "").encode()
    index = asked.values["snapshotdiffindex"]
    return {**_ends(asked), "cursor": {"startPath": start, "index": index}}


RENAME2: Final = Operation(
    "rename2", answers.nothing, "src dst=destination", "destination! renameoptions",
    lambda asked: {
        "overwriteDest": "OVERWRITE" in asked.values["renameoptions"],
        "moveToTrash": "TO_TRASH" in asked.values["renameoptions"],
    },
)  # fmt: skip
_DONE: Final = answers.nothing
_NO_EC: Final = NotServed("this NameNode writes no erasure-coded files")
_DATA: Final = "noredirect excludedatanodes buffersize"
_GET: Final[Mapping[str, Row]] = {
    "GETFILESTATUS": Operation("getFileInfo", answers.file_status, "src"),
    "GETFILELINKSTATUS": Operation("getFileLinkInfo", answers.file_status, "src"),
    "LISTSTATUS": Listing(),
    "LISTSTATUS_BATCH": Operation("getListing", answers.listing, "src", "startafter",
        lambda asked: {"startAfter": (asked.values["startafter"] or "").encode(),
                       "needLocation": False}),
    "GETCONTENTSUMMARY": Operation("getContentSummary", answers.content_summary, "path"),
    "GETQUOTAUSAGE": Operation("getQuotaUsage", answers.quota_usage, "path"),
    "GETHOMEDIRECTORY": Operation("getServerDefaults", answers.home),
    "GETTRASHROOT": Operation("getServerDefaults", answers.trash_root),
    "GETACLSTATUS": Operation("getAclStatus", answers.acl_status, "src"),
    "GETXATTRS": Operation("getXAttrs", answers.xattrs, "src", "xattr.name encoding!",
        lambda asked: {"xAttrs": [_xattr(name) for name in asked.values["xattr.name"]]}),
    "LISTXATTRS": Operation("listXAttrs", answers.xattr_names, "src"),
    "CHECKACCESS": Operation("checkAccess", _DONE, "path", "fsaction!",
        lambda asked: {"mode": _bits(asked.values["fsaction"])}),
    "GETSTORAGEPOLICY": Operation("getStoragePolicy", answers.storage_policy, "path"),
    "GETALLSTORAGEPOLICY": Operation("getStoragePolicies", answers.storage_policies),
    "GETFILEBLOCKLOCATIONS": Operation("getBlockLocations", answers.block_locations,
        "src offset=offset", "offset length", _range),
    "GET_BLOCK_LOCATIONS": Operation("getBlockLocations", answers.located_blocks,
        "src offset=offset", "offset length", _range),
    "GETSERVERDEFAULTS": Operation("getServerDefaults", answers.server_defaults),
    "GETSTATUS": Operation("getFsStats", answers.fs_status),
    "GETLINKTARGET": Operation("getLinkTarget", answers.only("Path", "targetPath"), "path"),
    "GETSNAPSHOTDIFF": Operation("getSnapshotDiffReport", answers.snapshot_diff, "snapshotRoot",
        "oldsnapshotname snapshotname", _ends),
    "GETSNAPSHOTDIFFLISTING": Operation("getSnapshotDiffReportListing",
        answers.snapshot_diff_listing, "snapshotRoot",
        "oldsnapshotname snapshotname snapshotdiffstartpath snapshotdiffindex", _ends_and_start),
    "GETSNAPSHOTTABLEDIRECTORYLIST": Operation("getSnapshottableDirListing", answers.snapshottable),
    "GETSNAPSHOTLIST": Operation("getSnapshotListing", answers.snapshot_list, "snapshotRoot"),
    "GETDELEGATIONTOKEN": Operation("getDelegationToken", answers.token, "",
        "renewer service kind", lambda asked: {"renewer": asked.values["renewer"] or asked.user}),
    "OPEN": Redirect("getBlockLocations", f"offset length {_DATA}"),
    "GETFILECHECKSUM": Redirect("getBlockLocations", "noredirect"),
    **dict.fromkeys(("GETECPOLICY", "GETECPOLICIES", "GETECCODECS"), _NO_EC),
    "GETTRASHROOTS": NotServed("there are no encryption zones here: ask for GETTRASHROOT"),
}  # fmt: skip
_PUT: Final[Mapping[str, Row]] = {
    "CREATE": Redirect("create", "permission unmaskedpermission overwrite replication blocksize "
        f"createparent createflag {_DATA}", looks=False),
    "MKDIRS": Operation("mkdirs", answers.boolean, "src", "permission unmaskedpermission", _mkdirs),
    "RENAME": Operation("rename", answers.boolean, "src dst=destination",
        "destination! renameoptions"),
    "SETPERMISSION": Operation("setPermission", _DONE, "src", "permission", _permission),
    "SETOWNER": Operation("setOwner", _DONE, "src username=owner groupname=group", "owner group",
        _some_owner),
    "SETTIMES": Operation("setTimes", _DONE, "src", "modificationtime accesstime", _times),
    "SETREPLICATION": Operation("setReplication", answers.boolean, "src replication=replication",
        "replication"),
    "CREATESYMLINK": Operation("createSymlink", _DONE,
        "link target=destination createParent=createparent", "destination! createparent",
        lambda _: {"dirPerm": {"perm": 0o777}}),
    "MODIFYACLENTRIES": Operation("modifyAclEntries", _DONE, "src", "aclspec!",
        _acl(with_permissions=True)),
    "REMOVEACLENTRIES": Operation("removeAclEntries", _DONE, "src", "aclspec!",
        _acl(with_permissions=False)),
    "SETACL": Operation("setAcl", _DONE, "src", "aclspec!", _acl(with_permissions=True)),
    "REMOVEDEFAULTACL": Operation("removeDefaultAcl", _DONE, "src"),
    "REMOVEACL": Operation("removeAcl", _DONE, "src"),
    "SETXATTR": Operation("setXAttr", _DONE, "src", "xattr.name! xattr.value flag!", _set_xattr),
    "REMOVEXATTR": Operation("removeXAttr", _DONE, "src", "xattr.name!",
        lambda asked: {"xAttr": _only_xattr(asked)}),
    "ALLOWSNAPSHOT": Operation("allowSnapshot", _DONE, "snapshotRoot"),
    "DISALLOWSNAPSHOT": Operation("disallowSnapshot", _DONE, "snapshotRoot"),
    "CREATESNAPSHOT": Operation("createSnapshot", answers.only("Path", "snapshotPath"),
        "snapshotRoot snapshotName=snapshotname", "snapshotname"),
    "RENAMESNAPSHOT": Operation("renameSnapshot", _DONE,
        "snapshotRoot snapshotOldName=oldsnapshotname snapshotNewName=snapshotname",
        "oldsnapshotname! snapshotname!"),
    "SETQUOTA": Operation("setQuota", _DONE, "path", "namespacequota storagespacequota", _quotas),
    "SETQUOTABYSTORAGETYPE": Operation("setQuota", _DONE, "path", "storagespacequota storagetype!",
        _quotas),
    "SETSTORAGEPOLICY": Operation("setStoragePolicy", _DONE, "src policyName=storagepolicy",
        "storagepolicy!"),
    "SATISFYSTORAGEPOLICY": Operation("satisfyStoragePolicy", _DONE, "src"),
    **dict.fromkeys(("SETECPOLICY", "ENABLEECPOLICY", "DISABLEECPOLICY"), _NO_EC),
    "RENEWDELEGATIONTOKEN": Operation("renewDelegationToken",
        answers.only("long", "newExpiryTime"), "token=token", "token!"),
    "CANCELDELEGATIONTOKEN": Operation("cancelDelegationToken", _DONE, "token=token", "token!"),
}  # fmt: skip
_POST: Final[Mapping[str, Row]] = {
    "APPEND": Redirect("append", _DATA),
    "CONCAT": Operation("concat", _DONE, "trg", "sources!", _sources),
    "TRUNCATE": Operation("truncate", answers.boolean, "src newLength=newlength", "newlength!",
        lambda asked: {"clientName": asked.client}),
    "UNSETSTORAGEPOLICY": Operation("unsetStoragePolicy", _DONE, "src"),
    "UNSETECPOLICY": _NO_EC,
}  # fmt: skip
_DELETE: Final[Mapping[str, Row]] = {
    "DELETE": Operation("delete", answers.boolean, "src recursive=recursive", "recursive"),
    "DELETESNAPSHOT": Operation(
        "deleteSnapshot", _DONE, "snapshotRoot snapshotName=snapshotname", "snapshotname!"
    ),
}
OPERATIONS: Final = {"GET": _GET, "PUT": _PUT, "POST": _POST, "DELETE": _DELETE}


def asked_for(
    method: str, query: params.Query, path: str, user: str, client: str
) -> tuple[Row, Asked]:
    """Return the operation that a request means, and what it gives.

    Raises:
        FsError: if the method has no such operation, or a parameter's value is none.
    """
    op = params.value_of("op", query)
    if op is None:
        raise FsError(UNSUPPORTED_OPERATION, "op=NULL is not supported")
    row = OPERATIONS[method].get(op.upper())
    if row is None:
        java = f"org.apache.hadoop.hdfs.web.resources.{method.capitalize()}OpParam.Op"
        raise invalid_value("op", f"No enum constant {java}.{op.upper()}")
    values = params.values_of(op.upper(), row.params, query)
    if values.get("renameoptions"):
        row = RENAME2
    return row, Asked(op.upper(), path, user, client, values)
