"""Calls about ACLs: read, replace, modify, remove entries (FSDirAclOp, AclTransformation)."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from google.protobuf.message import Message

from ha.rpc.java_names import ACL
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types
from namenode_sim.client_protocol.words.errors import FsError, not_found
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.paths import Route
from namenode_sim.client_protocol.words.permissions import check_owner, find, symbolic
from namenode_sim.edits.ops import SetAcl
from namenode_sim.edits.values import AclEntry, AclScope, AclType
from namenode_sim.namespace.acl import logical_acl
from namenode_sim.namespace.inode import INodeDirectory, INodeFile

MAX_ENTRIES = 32
"""Per scope (AclTransformation.MAX_ENTRIES)."""

_STICKY = 0o1000
_REQUIRED = (AclType.USER, AclType.GROUP, AclType.OTHER)
_NAMELESS = (AclType.MASK, AclType.OTHER)
Key = tuple[AclScope, AclType, str | None]
Acl: TypeAlias = tuple[AclEntry, ...]


def _from_proto(entries: Iterable[types.AclEntryProto]) -> Acl:
    return tuple(
        AclEntry(
            AclScope(entry.scope),
            AclType(entry.type),
            entry.name or None,
            int(entry.permissions),
        )
        for entry in entries
    )


def _to_proto(entry: AclEntry) -> types.AclEntryProto:
    kinds = types.AclEntryProto
    return types.AclEntryProto(
        type=kinds.AclEntryTypeProto.ValueType(int(entry.type)),
        scope=kinds.AclEntryScopeProto.ValueType(int(entry.scope)),
        permissions=kinds.FsActionProto.ValueType(entry.permission),
        name=entry.name,
    )


def get_acl_status(
    scene: Scene, request: calls.GetAclStatusRequestProto
) -> calls.GetAclStatusResponseProto:
    """Return the ACL's feature entries; owner, mask and others are in the permission."""
    _check_enabled(scene)
    route = find(scene, request.src)
    if route.is_dot_snapshot:
        nobody = types.AclStatusProto(owner="", group="", sticky=False)
        return calls.GetAclStatusResponseProto(result=nobody)
    node = _node(route)
    return calls.GetAclStatusResponseProto(
        result=types.AclStatusProto(
            owner=node.user,
            group=node.group,
            sticky=bool(node.mode & _STICKY),
            entries=[_to_proto(entry) for entry in node.acl or ()],
            permission=types.FsPermissionProto(perm=node.mode),
        )
    )


def set_acl(scene: Scene, request: calls.SetAclRequestProto) -> EditPlan:
    """Replace the ACL; a scope that the new entries do not mention keeps its old ones."""
    spec = _from_proto(request.aclSpec)
    return _plan(scene, request.src, lambda acl: _replace(acl, spec), calls.SetAclResponseProto)


def modify_entries(scene: Scene, request: calls.ModifyAclEntriesRequestProto) -> EditPlan:
    spec, answer = _from_proto(request.aclSpec), calls.ModifyAclEntriesResponseProto
    return _plan(scene, request.src, lambda acl: _merge(acl, spec), answer)


def remove_entries(scene: Scene, request: calls.RemoveAclEntriesRequestProto) -> EditPlan:
    spec, answer = _from_proto(request.aclSpec), calls.RemoveAclEntriesResponseProto
    return _plan(scene, request.src, lambda acl: _without(acl, spec), answer)


def remove_default(scene: Scene, request: calls.RemoveDefaultAclRequestProto) -> EditPlan:
    return _plan(scene, request.src, _access_only, calls.RemoveDefaultAclResponseProto)


def remove_acl(scene: Scene, request: calls.RemoveAclRequestProto) -> EditPlan:
    """Return to a bare mode; logged, as in Hadoop, as an ACL without entries."""
    return _plan(scene, request.src, lambda _: (), calls.RemoveAclResponseProto)


def _check_enabled(scene: Scene) -> None:
    if not scene.settings.acls_enabled:
        raise FsError(
            ACL,
            "The ACL operation has been rejected.  Support for ACLs has been disabled by "
            "setting dfs.namenode.acls.enabled to false.",
        )


def _node(route: Route) -> INodeFile | INodeDirectory:
    """Return the existing inode that the path leads to; ``find`` has refused a symlink."""
    if not isinstance(route.last, INodeFile | INodeDirectory):
        raise not_found(f"cannot find {route.path}")
    return route.last


def _plan(
    scene: Scene, path: str, change: Callable[[Acl], Acl], answer: Callable[[], Message]
) -> EditPlan:
    """Plan the owner's change of the whole ACL of a file or directory."""
    _check_enabled(scene)
    route = find(scene, path)
    check_owner(scene.caller, route)
    node = _node(route)
    try:
        acl = change(logical_acl(node))
        if isinstance(node, INodeFile) and AclScope.DEFAULT in _scopes(acl):
            raise _invalid("only directories may have a default ACL.")
    except FsError as error:
        raise FsError(error.java_class, f"{error.message} Path: {route.path}") from error
    return EditPlan((SetAcl(route.path, acl),), answer)


def _replace(acl: Acl, spec: Acl) -> Acl:
    if not spec:
        return ()
    _check_limit(spec)
    _check_unique(spec)
    scopes = _scopes(spec)
    kept = [entry for entry in acl if entry.scope not in scopes]
    return _complete([*kept, *spec], touched=spec)


def _merge(acl: Acl, spec: Acl) -> Acl:
    _check_limit(spec)
    _check_unique(spec)
    by_key = {_key(entry): entry for entry in (*acl, *spec)}
    return _complete(by_key.values(), touched=spec)


def _without(acl: Acl, spec: Acl) -> Acl:
    _check_limit(spec)
    keys = {_key(entry) for entry in spec}
    kept = [entry for entry in acl if _key(entry) not in keys]
    return _complete(kept, touched=[entry for entry in acl if _key(entry) in keys])


def _access_only(acl: Acl) -> Acl:
    return tuple(entry for entry in acl if entry.scope == AclScope.ACCESS)


def _key(entry: AclEntry) -> Key:
    return entry.scope, entry.type, entry.name


def _scopes(entries: Iterable[AclEntry]) -> set[AclScope]:
    return {entry.scope for entry in entries}


def _complete(entries: Collection[AclEntry], *, touched: Collection[AclEntry]) -> Acl:
    """Return the ACL with copied defaults and computed masks, checked and in Hadoop's order.

    ``touched`` are the entries that the caller gave, or those that it took away.
    """
    masks = [entry for entry in entries if entry.type == AclType.MASK]
    rest = [entry for entry in entries if entry.type != AclType.MASK]
    rest += _copied_defaults(rest)
    acl = list(rest)
    for scope in _scopes(rest):
        ruled, mask, changes = (_of(scope, some) for some in (rest, masks, touched))
        acl += _mask(scope, ruled, mask, changes)
    acl.sort(key=_order)
    _check(acl)
    return tuple(acl)


def _copied_defaults(entries: Iterable[AclEntry]) -> list[AclEntry]:
    """Copy from the access entries what a default ACL lacks of owner, group and others."""
    by_key = {_key(entry): entry for entry in entries}
    if AclScope.DEFAULT not in _scopes(by_key.values()):
        return []
    sources = [by_key.get((AclScope.ACCESS, kind, None)) for kind in _REQUIRED]
    return [
        AclEntry(AclScope.DEFAULT, source.type, None, source.permission)
        for source in sources
        if source is not None and (AclScope.DEFAULT, source.type, None) not in by_key
    ]


def _of(scope: AclScope, entries: Iterable[AclEntry]) -> list[AclEntry]:
    return [entry for entry in entries if entry.scope == scope]


def _mask(
    scope: AclScope, ruled: list[AclEntry], mask: list[AclEntry], changes: list[AclEntry]
) -> list[AclEntry]:
    """Return as mask what all groups and named users may get, unless the caller decided on one.

    One that was there stays, computed anew, also when the last name is removed.
    """
    named = any(entry.name is not None for entry in ruled)
    decided = any(entry.type == AclType.MASK for entry in changes)
    if decided and named and not mask:
        raise _invalid("mask is required and cannot be deleted.")
    if decided or not changes:
        return mask
    if not (mask or named):
        return []
    limit = 0
    for entry in ruled:
        if entry.type == AclType.GROUP or entry.name is not None:
            limit |= entry.permission
    return [AclEntry(scope, AclType.MASK, None, limit)]


def _check_limit(entries: Iterable[AclEntry]) -> None:
    counts = Counter(entry.scope for entry in entries)
    for scope, count in sorted(counts.items()):
        if count > MAX_ENTRIES:
            raise _invalid(
                f"ACL has {count} {scope.name.lower()} entries, which exceeds "
                f"maximum of {MAX_ENTRIES}."
            )


def _check_unique(spec: Acl) -> None:
    if len({_key(entry) for entry in spec}) != len(spec):
        raise _invalid("multiple entries with same scope, type and name.")


def _check(acl: list[AclEntry]) -> None:
    for entry in acl:
        if entry.name is not None and entry.type in _NAMELESS:
            raise _invalid(f"this entry type must not have a name: {_text(entry)}.")
    _check_limit(acl)
    keys = {_key(entry) for entry in acl}
    if any((AclScope.ACCESS, kind, None) not in keys for kind in _REQUIRED):
        raise _invalid("the user, group and other entries are required.")


def _invalid(reason: str) -> FsError:
    return FsError(ACL, f"Invalid ACL: {reason}")


def _text(entry: AclEntry) -> str:
    scope = "default:" if entry.scope == AclScope.DEFAULT else ""
    bits = symbolic(entry.permission)[-3:]
    return f"{scope}{entry.type.name.lower()}:{entry.name or ''}:{bits}"


def _order(entry: AclEntry) -> tuple[int, int, str]:
    """Sort access before default; owner, named users, group, named groups, mask, others."""
    return entry.scope, entry.type, entry.name or ""
