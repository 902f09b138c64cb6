"""Calls about extended attributes: set, get, list, remove (FSDirXAttrOp)."""

from namenode_sim.client_protocol.errors import (
    HADOOP_ILLEGAL_ARGUMENT,
    FsError,
    denied,
    io_error,
    not_found,
)
from namenode_sim.client_protocol.model import EditPlan, Scene
from namenode_sim.client_protocol.paths import Route
from namenode_sim.client_protocol.permissions import (
    EXECUTE,
    READ,
    WRITE,
    check_owner,
    check_parent,
    check_path,
    find,
)
from namenode_sim.edits.ops import RemoveXAttr, SetXAttr
from namenode_sim.edits.values import XAttr, XAttrNamespace
from namenode_sim.namespace.inode import INodeDirectory, INodeSymlink
from namenode_sim.proto import client_namenode_pb2 as calls
from namenode_sim.proto import hdfs_types_pb2 as types

_CREATE, _REPLACE = 1, 2
_STICKY = 0o1000
_UNREADABLE = "hdfs.unreadable.by.superuser"
_NOT_FOUND = "At least one of the attributes provided was not found."


def _from_proto(xattr: types.XAttrProto) -> XAttr:
    value = xattr.value if xattr.HasField("value") else None
    return XAttr(XAttrNamespace(xattr.namespace), xattr.name, value)


def _to_proto(xattr: XAttr, *, with_value: bool = True) -> types.XAttrProto:
    proto = types.XAttrProto(
        namespace=types.XAttrProto.XAttrNamespaceProto.ValueType(int(xattr.namespace)),
        name=xattr.name,
    )
    if with_value and xattr.value is not None:
        proto.value = xattr.value
    return proto


def _may_see(scene: Scene, xattr: XAttr) -> bool:
    """XAttrPermissionFilter: user for all, trusted for the superuser, security's one exception."""
    match xattr.namespace:
        case XAttrNamespace.USER:
            return True
        case XAttrNamespace.TRUSTED:
            return scene.caller.is_super
        case XAttrNamespace.SECURITY:
            return xattr.name == _UNREADABLE
        case XAttrNamespace.SYSTEM | XAttrNamespace.RAW:
            return False


def _check_visible(scene: Scene, xattr: XAttr) -> None:
    if not _may_see(scene, xattr):
        raise denied(
            f"User doesn't have permission for xattr: {xattr.namespace.name.lower()}.{xattr.name}"
        )


def _check_change(scene: Scene, path: str, xattr: XAttr) -> Route:
    """Write access, and for user xattrs in a sticky directory its ownership."""
    _check_visible(scene, xattr)
    route = find(scene, path)
    if route.last is None:
        raise not_found(f"File does not exist: {route.path}")
    sticky = isinstance(route.last, INodeDirectory) and route.last.mode & _STICKY
    if xattr.namespace == XAttrNamespace.USER and sticky and not scene.caller.exempt:
        check_owner(scene.caller, route)
    check_path(scene.caller, route, WRITE)
    return route


def set_xattr(scene: Scene, request: calls.SetXAttrRequestProto) -> EditPlan:
    """Set one extended attribute; the flags say whether it must, or must not, be there."""
    xattr = _from_proto(request.xAttr)
    size = len(xattr.name.encode()) + len(xattr.value or b"")
    if size > scene.settings.max_xattr_bytes:
        raise FsError(
            HADOOP_ILLEGAL_ARGUMENT,
            "The XAttr is too big. The maximum combined size of the name and value is "
            f"{scene.settings.max_xattr_bytes}, but the total size is {size}",
        )
    route = _check_change(scene, request.src, xattr)
    held = _xattrs(route)
    there = any((x.namespace, x.name) == (xattr.namespace, xattr.name) for x in held)
    if there and not request.flag & _REPLACE:
        raise io_error(f"XAttr: {xattr.name} already exists. The REPLACE flag must be specified.")
    if not there and not request.flag & _CREATE:
        raise io_error(f"XAttr: {xattr.name} does not exist. The CREATE flag must be specified.")
    visible = sum(x.namespace in {XAttrNamespace.USER, XAttrNamespace.TRUSTED} for x in held)
    if not there and visible >= scene.settings.max_xattrs:
        raise io_error(
            "Cannot add additional XAttr to inode, would exceed limit of "
            f"{scene.settings.max_xattrs}"
        )
    op = SetXAttr(route.path, (xattr,), scene.caller.rpc)
    return EditPlan((op,), calls.SetXAttrResponseProto)


def remove_xattr(scene: Scene, request: calls.RemoveXAttrRequestProto) -> EditPlan:
    """Remove one extended attribute."""
    xattr = _from_proto(request.xAttr)
    route = _check_change(scene, request.src, xattr)
    if not any((x.namespace, x.name) == (xattr.namespace, xattr.name) for x in _xattrs(route)):
        raise io_error("No matching attributes found for remove operation")
    named = XAttr(xattr.namespace, xattr.name, None)
    op = RemoveXAttr(route.path, (named,), scene.caller.rpc)
    return EditPlan((op,), calls.RemoveXAttrResponseProto)


def get_xattrs(scene: Scene, request: calls.GetXAttrsRequestProto) -> calls.GetXAttrsResponseProto:
    """The asked-for attributes, all of which must be there; or all that the caller may see."""
    asked = [_from_proto(xattr) for xattr in request.xAttrs]
    for xattr in asked:
        _check_visible(scene, xattr)
    route = find(scene, request.src)
    if route.last is None:
        raise not_found(f"File does not exist: {route.path}")
    check_path(scene.caller, route, READ)
    seen = [xattr for xattr in _xattrs(route) if _may_see(scene, xattr)]
    if asked:
        by_name = {(xattr.namespace, xattr.name): xattr for xattr in seen}
        try:
            seen = [by_name[xattr.namespace, xattr.name] for xattr in asked]
        except KeyError:
            raise io_error(_NOT_FOUND) from None
    return calls.GetXAttrsResponseProto(xAttrs=[_to_proto(xattr) for xattr in seen])


def list_xattrs(
    scene: Scene, request: calls.ListXAttrsRequestProto
) -> calls.ListXAttrsResponseProto:
    """The names of the attributes that the caller may see."""
    route = find(scene, request.src)
    if route.last is None:
        raise not_found(f"File does not exist: {route.path}")
    check_parent(scene.caller, route, EXECUTE)
    seen = [xattr for xattr in _xattrs(route) if _may_see(scene, xattr)]
    return calls.ListXAttrsResponseProto(
        xAttrs=[_to_proto(xattr, with_value=False) for xattr in seen]
    )


def _xattrs(route: Route) -> tuple[XAttr, ...]:
    node = route.last
    return () if node is None or isinstance(node, INodeSymlink) else node.xattrs or ()
