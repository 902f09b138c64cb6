"""Calls about ACLs: read, replace, modify, remove entries (FSDirAclOp, AclTransformation)."""

from collections.abc import Iterable

from ha.rpc.java_names import ACL
from namenode_sim.client_protocol.errors import FsError, not_found
from namenode_sim.client_protocol.model import EditPlan, Scene
from namenode_sim.client_protocol.paths import Route
from namenode_sim.client_protocol.permissions import check_owner, find
from namenode_sim.edits.ops import SetAcl
from namenode_sim.edits.values import AclEntry, AclScope, AclType
from namenode_sim.namespace.acl import logical_acl
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.proto import client_namenode_pb2 as calls
from namenode_sim.proto import hdfs_types_pb2 as types

MAX_ENTRIES = 32
"""Per scope (AclTransformation.MAX_ENTRIES)."""

_STICKY = 0o1000
_TYPE_ORDER = (AclType.USER, AclType.GROUP, AclType.MASK, AclType.OTHER)
Key = tuple[AclScope, AclType, str | None]


def _from_proto(entries: Iterable[types.AclEntryProto]) -> tuple[AclEntry, ...]:
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
        name=entry.name or "",
    )


def get_acl_status(
    scene: Scene, request: calls.GetAclStatusRequestProto
) -> calls.GetAclStatusResponseProto:
    """The ACL's feature entries; owner, mask and others are in the permission."""
    _check_enabled(scene)
    route = find(scene, request.src)
    if route.last is None:
        raise not_found(f"File does not exist: {route.path}")
    node = route.last
    entries = node.acl or () if isinstance(node, INodeFile | INodeDirectory) else ()
    return calls.GetAclStatusResponseProto(
        result=types.AclStatusProto(
            owner=node.user,
            group=node.group,
            sticky=bool(node.mode & _STICKY),
            entries=[_to_proto(entry) for entry in entries],
            permission=types.FsPermissionProto(perm=node.mode),
        )
    )


def set_acl(scene: Scene, request: calls.SetAclRequestProto) -> EditPlan:
    """Replace the ACL; a scope that the new entries do not mention keeps its old ones."""
    route, node = _target(scene, request.src)
    entries = _from_proto(request.aclSpec)
    scopes = {entry.scope for entry in entries}
    kept = [entry for entry in logical_acl(node) if entry.scope not in scopes]
    _check_unique(entries)
    acl = _complete([*kept, *entries], given=_masks(entries), changed=scopes)
    return EditPlan((_edit(route, node, acl),), calls.SetAclResponseProto)


def modify_entries(scene: Scene, request: calls.ModifyAclEntriesRequestProto) -> EditPlan:
    """Add entries or replace those of the same scope, type and name."""
    route, node = _target(scene, request.src)
    entries = _from_proto(request.aclSpec)
    _check_unique(entries)
    merged = {_key(entry): entry for entry in logical_acl(node)}
    merged |= {_key(entry): entry for entry in entries}
    scopes = {entry.scope for entry in entries}
    acl = _complete(merged.values(), given=_masks(entries), changed=scopes)
    return EditPlan((_edit(route, node, acl),), calls.ModifyAclEntriesResponseProto)


def remove_entries(scene: Scene, request: calls.RemoveAclEntriesRequestProto) -> EditPlan:
    """Remove entries by scope, type and name."""
    route, node = _target(scene, request.src)
    gone = {_key(entry) for entry in _from_proto(request.aclSpec)}
    kept = [entry for entry in logical_acl(node) if _key(entry) not in gone]
    acl = _complete(kept, given=set(), changed={scope for scope, _, _ in gone})
    return EditPlan((_edit(route, node, acl),), calls.RemoveAclEntriesResponseProto)


def remove_default(scene: Scene, request: calls.RemoveDefaultAclRequestProto) -> EditPlan:
    route, node = _target(scene, request.src)
    kept = tuple(entry for entry in logical_acl(node) if entry.scope == AclScope.ACCESS)
    return EditPlan((_edit(route, node, kept),), calls.RemoveDefaultAclResponseProto)


def remove_acl(scene: Scene, request: calls.RemoveAclRequestProto) -> EditPlan:
    """Back to a bare mode; logged, as in Hadoop, as an ACL without entries."""
    route, _ = _target(scene, request.src)
    return EditPlan((SetAcl(route.path, ()),), calls.RemoveAclResponseProto)


def _check_enabled(scene: Scene) -> None:
    if not scene.settings.acls_enabled:
        raise FsError(
            ACL,
            "The ACL operation has been rejected.  Support for ACLs has been disabled by "
            "setting dfs.namenode.acls.enabled to false.",
        )


def _target(scene: Scene, path: str) -> tuple[Route, INodeFile | INodeDirectory]:
    _check_enabled(scene)
    route = find(scene, path)
    check_owner(scene.caller, route)
    if not isinstance(route.last, INodeFile | INodeDirectory):
        raise not_found(f"File does not exist: {route.path}")
    return route, route.last


def _edit(route: Route, node: INodeFile | INodeDirectory, acl: tuple[AclEntry, ...]) -> SetAcl:
    if isinstance(node, INodeFile) and any(e.scope == AclScope.DEFAULT for e in acl):
        raise FsError(
            ACL,
            "Invalid ACL: only directories may have a default ACL. Path: " + route.path,
        )
    return SetAcl(route.path, acl)


def _key(entry: AclEntry) -> Key:
    return entry.scope, entry.type, entry.name


def _masks(entries: Iterable[AclEntry]) -> set[AclScope]:
    return {entry.scope for entry in entries if entry.type == AclType.MASK}


def _check_unique(entries: tuple[AclEntry, ...]) -> None:
    if len({_key(entry) for entry in entries}) != len(entries):
        raise FsError(ACL, "Invalid ACL: multiple entries with same scope, type and name.")


def _complete(
    entries: Iterable[AclEntry], *, given: set[AclScope], changed: set[AclScope]
) -> tuple[AclEntry, ...]:
    """Defaults copied from access, masks computed, all checked and in Hadoop's order."""
    by_key = {_key(entry): entry for entry in entries}
    for scope in AclScope:
        _copy_defaults(by_key, scope)
        _set_mask(by_key, scope, given=scope in given, changed=scope in changed)
    _check(by_key)
    return tuple(sorted(by_key.values(), key=_order))


def _copy_defaults(by_key: dict[Key, AclEntry], scope: AclScope) -> None:
    """A default ACL lacks nothing: owner, group and others come from the access entries."""
    if scope != AclScope.DEFAULT or not any(key[0] == scope for key in by_key):
        return
    for kind in (AclType.USER, AclType.GROUP, AclType.OTHER):
        source = by_key.get((AclScope.ACCESS, kind, None))
        if (scope, kind, None) not in by_key and source is not None:
            by_key[scope, kind, None] = AclEntry(scope, kind, None, source.permission)


def _set_mask(by_key: dict[Key, AclEntry], scope: AclScope, *, given: bool, changed: bool) -> None:
    """The mask is what all groups and named users may get, unless the caller gave one."""
    named = any(key[0] == scope and key[2] is not None for key in by_key)
    mask = (scope, AclType.MASK, None)
    if not named and not given:
        if changed:
            by_key.pop(mask, None)
        return
    if given or (mask in by_key and not changed):
        return
    limit = 0
    for key, entry in by_key.items():
        if key[0] == scope and (key[1] == AclType.GROUP or key[2] is not None):
            limit |= entry.permission
    by_key[mask] = AclEntry(scope, AclType.MASK, None, limit)


def _check(by_key: dict[Key, AclEntry]) -> None:
    for kind in (AclType.USER, AclType.GROUP, AclType.OTHER):
        if (AclScope.ACCESS, kind, None) not in by_key:
            raise FsError(ACL, "Invalid ACL: the user, group and other entries are required.")
    for scope in AclScope:
        count = sum(key[0] == scope for key in by_key)
        if count > MAX_ENTRIES:
            raise FsError(
                ACL,
                f"Invalid ACL: ACL has {count} {scope.name.lower()} entries, which exceeds "
                f"maximum of {MAX_ENTRIES}.",
            )
    for (_, kind, name), _entry in by_key.items():
        if name is not None and kind in {AclType.MASK, AclType.OTHER}:
            raise FsError(ACL, f"Invalid ACL: this entry type must not have a name: {kind.name}.")


def _order(entry: AclEntry) -> tuple[int, int, bool, str]:
    """Access before default; owner, named users, group, named groups, mask, others."""
    return (
        entry.scope,
        _TYPE_ORDER.index(entry.type),
        entry.name is not None,
        entry.name or "",
    )
