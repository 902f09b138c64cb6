"""Calls about extended attributes: set, get, list, remove (FSDirXAttrOp)."""

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types
from namenode_sim.client_protocol.words import errors, permissions
from namenode_sim.client_protocol.words.model import EditPlan, Scene
from namenode_sim.client_protocol.words.paths import Route, is_raw
from namenode_sim.client_protocol.words.permissions import find
from namenode_sim.edits.ops import RemoveXAttr, SetXAttr
from namenode_sim.edits.values import XAttr, XAttrNamespace
from namenode_sim.namespace.inode import INodeDirectory, INodeFile, INodeSymlink
from namenode_sim.namespace.tree import components

_CREATE, _REPLACE = 1, 2
_STICKY = 0o1000
_MARK = "security.hdfs.unreadable.by.superuser"
_COUNTED = {XAttrNamespace.USER, XAttrNamespace.TRUSTED}


def _from_proto(xattr: types.XAttrProto) -> XAttr:
    value = xattr.value if xattr.HasField("value") else None
    return XAttr(XAttrNamespace(xattr.namespace), xattr.name, value)


def _to_proto(xattr: XAttr) -> types.XAttrProto:
    return types.XAttrProto(
        namespace=types.XAttrProto.XAttrNamespaceProto.ValueType(int(xattr.namespace)),
        name=xattr.name,
        value=xattr.value,
    )


def _check_enabled(scene: Scene) -> None:
    if not scene.settings.xattrs_enabled:
        raise errors.io_error(
            "The XAttr operation has been rejected.  Support for XAttrs has been disabled by "
            "setting dfs.namenode.xattrs.enabled to false."
        )


def _full_name(xattr: XAttr) -> tuple[XAttrNamespace, str]:
    return xattr.namespace, xattr.name


def _may_see(scene: Scene, xattr: XAttr, path: str) -> bool:
    """Return whether the caller sees an attribute by that path (XAttrPermissionFilter).

    All see user's, the superuser sees trusted's, and all see one of security's.  Raw's are seen
    below /.reserved/raw, where distcp reads them, and ``find`` lets the superuser alone write.
    """
    if xattr.namespace == XAttrNamespace.RAW:
        return is_raw(components(path))
    if xattr.namespace == XAttrNamespace.TRUSTED:
        return scene.caller.is_super
    return (
        xattr.namespace == XAttrNamespace.USER
        or _full_name(xattr) == permissions.UNREADABLE_BY_SUPERUSER
    )


def _check_visible(scene: Scene, xattr: XAttr, path: str) -> None:
    if not _may_see(scene, xattr, path):
        raise errors.denied(
            f"User doesn't have permission for xattr: {xattr.namespace.name.lower()}.{xattr.name}"
        )
    if _full_name(xattr) == permissions.UNREADABLE_BY_SUPERUSER and xattr.value is not None:
        raise errors.denied(
            f"Attempt to set a value for '{_MARK}'. Values are not allowed for this xattr."
        )


def _inode(route: Route) -> INodeFile | INodeDirectory:
    if route.last is None:
        raise errors.not_found(f"cannot find {route.path}")
    assert not isinstance(route.last, INodeSymlink)  # ``find`` refuses it
    return route.last


def _check_change(scene: Scene, route: Route) -> INodeFile | INodeDirectory:
    """Let only its owner change a sticky directory's attributes, and writers those of others."""
    node = _inode(route)
    if not (isinstance(node, INodeDirectory) and node.mode & _STICKY):
        permissions.check_path(scene.caller, route, permissions.WRITE)
    elif not scene.caller.exempt:
        permissions.check_owner(scene.caller, route)
    return node


def set_xattr(scene: Scene, request: calls.SetXAttrRequestProto) -> EditPlan:
    """Set one extended attribute; the flags say whether it must, or must not, be there."""
    _check_enabled(scene)
    xattr = _from_proto(request.xAttr)
    size = len(xattr.name.encode()) + len(xattr.value or b"")
    if size > scene.settings.max_xattr_bytes:
        raise errors.illegal_argument(
            "The XAttr is too big. The maximum combined size of the name and value is "
            f"{scene.settings.max_xattr_bytes}, but the total size is {size}"
        )
    _check_visible(scene, xattr, request.src)
    route = find(scene, request.src)
    node = _check_change(scene, route)
    held = node.xattrs or ()
    others = [other for other in held if _full_name(other) != _full_name(xattr)]
    _check_flags(xattr.name, request.flag, there=len(others) < len(held))
    if sum(each.namespace in _COUNTED for each in (xattr, *others)) > scene.settings.max_xattrs:
        raise errors.io_error(
            "Cannot add additional XAttr to inode, would exceed limit of "
            f"{scene.settings.max_xattrs}"
        )
    if _full_name(xattr) == permissions.UNREADABLE_BY_SUPERUSER and isinstance(
        node, INodeDirectory
    ):
        raise errors.io_error(f"Can only set '{_MARK}' on a file.")
    op = SetXAttr(route.path, (xattr,), scene.caller.rpc)
    return EditPlan((op,), calls.SetXAttrResponseProto)


def _check_flags(name: str, flags: int, *, there: bool) -> None:
    if not flags & (_CREATE | _REPLACE):
        raise errors.illegal_argument("A flag must be specified.")
    if there and not flags & _REPLACE:
        raise errors.io_error(f"XAttr: {name} already exists. The REPLACE flag must be specified.")
    if not there and not flags & _CREATE:
        raise errors.io_error(f"XAttr: {name} does not exist. The CREATE flag must be specified.")


def remove_xattr(scene: Scene, request: calls.RemoveXAttrRequestProto) -> EditPlan:
    _check_enabled(scene)
    xattr = _from_proto(request.xAttr)
    _check_visible(scene, xattr, request.src)
    route = find(scene, request.src)
    held = _check_change(scene, route).xattrs or ()
    if held and _full_name(xattr) == permissions.UNREADABLE_BY_SUPERUSER:
        raise errors.denied(f"The xattr '{_MARK}' can not be deleted.")
    if _full_name(xattr) not in map(_full_name, held):
        raise errors.io_error("No matching attributes found for remove operation")
    named = XAttr(xattr.namespace, xattr.name, None)
    op = RemoveXAttr(route.path, (named,), scene.caller.rpc)
    return EditPlan((op,), calls.RemoveXAttrResponseProto)


def get_xattrs(scene: Scene, request: calls.GetXAttrsRequestProto) -> calls.GetXAttrsResponseProto:
    """Return the asked-for attributes, which must all be there; or all that the caller may see."""
    _check_enabled(scene)
    asked = [_from_proto(xattr) for xattr in request.xAttrs]
    for xattr in asked:
        _check_visible(scene, xattr, request.src)
    seen = _readable_xattrs(scene, request.src)
    if asked:
        by_name = {_full_name(xattr): xattr for xattr in seen}
        try:
            seen = [by_name[_full_name(xattr)] for xattr in asked]
        except KeyError:
            message = "At least one of the attributes provided was not found."
            raise errors.FsError(errors.XATTR_NOT_FOUND, message) from None
    return calls.GetXAttrsResponseProto(xAttrs=[_to_proto(xattr) for xattr in seen])


def list_xattrs(
    scene: Scene, request: calls.ListXAttrsRequestProto
) -> calls.ListXAttrsResponseProto:
    """Return all attributes that the caller may see, of which a Java client keeps the names."""
    _check_enabled(scene)
    seen = _readable_xattrs(scene, request.src)
    return calls.ListXAttrsResponseProto(xAttrs=[_to_proto(xattr) for xattr in seen])


def _readable_xattrs(scene: Scene, path: str) -> list[XAttr]:
    """Return the attributes for a caller that may read the path (even their names need it)."""
    route = find(scene, path)
    node = _inode(route)
    permissions.check_path(scene.caller, route, permissions.READ)
    return [xattr for xattr in node.xattrs or () if _may_see(scene, xattr, path)]
