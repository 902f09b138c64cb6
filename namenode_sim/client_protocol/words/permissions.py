"""HDFS's permission model (Hadoop's FSPermissionChecker): which users may do what.

The superuser is exempt from all of it; so is everybody with ``dfs.permissions.enabled`` false, but
for the calls that change owners, modes and ACLs (HdfsPermissionsGuide).  Access is given as bits:
r=4, w=2, x=1.
"""

from ha.rpc.java_names import PARENT_NOT_DIRECTORY
from namenode_sim.client_protocol.words import errors, paths
from namenode_sim.client_protocol.words.errors import denied
from namenode_sim.client_protocol.words.model import Caller, Scene
from namenode_sim.edits.values import AclEntry, AclScope, AclType, XAttrNamespace
from namenode_sim.namespace import inode
from namenode_sim.namespace.tree import components

READ, WRITE, EXECUTE, ALL = 4, 2, 1, 7
UNREADABLE_BY_SUPERUSER = (XAttrNamespace.SECURITY, "hdfs.unreadable.by.superuser")
"""This extended attribute keeps the superuser from reading the file that has it."""
_STICKY = 0o1000
ACTIONS = (
    "NONE",
    "EXECUTE",
    "WRITE",
    "WRITE_EXECUTE",
    "READ",
    "READ_EXECUTE",
    "READ_WRITE",
    "ALL",
)


def find(
    scene: Scene, path: str, *, follow_last: bool = True, creates: bool = False
) -> paths.Route:
    """Resolve a path and check that the caller may walk it (FSDirectory.resolvePath).

    Calls that create something report that a parent is no directory; the others report the same as
    an access problem, since their Java signatures have no other exception for it.
    """
    route = paths.resolve(scene.namespace, path)
    if scene.changes and route.path != path and paths.is_raw(components(path)):
        check_superuser(scene.caller)
    try:
        _check_way(route, None if scene.caller.exempt else scene.caller)
    except errors.FsError as error:
        if error.java_class == PARENT_NOT_DIRECTORY and not creates:
            raise denied(error.message) from error
        raise
    if scene.changes and route.in_snapshot:
        raise errors.FsError(
            errors.SNAPSHOT_ACCESS_CONTROL, "Modification on a read-only snapshot is disallowed"
        )
    if follow_last:
        paths.check_not_symlink(route)
    return route


def _check_way(route: paths.Route, walker: Caller | None) -> None:
    """Check that every existing step before the last is a directory that the walker may go through.

    Step by step, so that a caller does not learn what is in a directory that is closed to it.
    """
    for index, node in enumerate(route.nodes[:-1]):
        if node is None:
            return
        paths.check_is_directory(route, index)
        if walker is not None:
            _require(walker, route, index, EXECUTE)


def check_path(caller: Caller, route: paths.Route, access: int) -> None:
    if not caller.exempt:
        _require(caller, route, len(route.names), access)


def check_ancestor(caller: Caller, route: paths.Route, access: int) -> None:
    if not caller.exempt and route.names:
        _require(caller, route, min(route.existing, len(route.names) - 1), access)


def check_parent(caller: Caller, route: paths.Route, access: int) -> None:
    """Check access to the directory that holds the path; with WRITE also its sticky bit."""
    if caller.exempt or not route.names:
        return
    if access & WRITE and route.last is not None:
        _check_sticky(caller, route.last)
    _require(caller, route, len(route.names) - 1, access)


def check_subtree(caller: Caller, node: inode.INode | None) -> None:
    """Require all access to a directory and to those below it that are not empty, not to files."""
    if caller.exempt or node is None:
        return
    for below in inode.subtree(node):
        if isinstance(below, inode.INodeDirectory) and below.children:
            check_directory(caller, below, ALL)
            for child in below.children.values():
                _check_sticky(caller, child)


def check_directory(caller: Caller, node: inode.INodeDirectory, access: int) -> None:
    """Check access to one directory, wherever it is, for a caller that is not exempt."""
    if not allows(caller, node, access):
        raise denied(_denial(caller, node, inode.full_path(node), access))


def check_owner(caller: Caller, route: paths.Route) -> None:
    """Check that the caller owns the path, also where permissions are switched off."""
    if route.last is None:
        raise errors.not_found(f"Directory/File does not exist {route.path}")
    if caller.is_super:
        return
    _check_way(route, caller)  # which ``find`` leaves out for who is exempt
    if route.last.user != caller.user:
        raise denied(
            f"Permission denied. user={caller.user} is not the owner of inode={route.path}"
        )


def check_readable_by_superuser(scene: Scene, file: inode.INodeFile) -> None:
    """Refuse a superuser a file with this mark (FSDirectory.checkUnreadableBySuperuser)."""
    if not (scene.caller.is_super and scene.settings.permissions_enabled):
        return
    if UNREADABLE_BY_SUPERUSER in ((xattr.namespace, xattr.name) for xattr in file.xattrs or ()):
        raise denied(
            f"Access is denied for {scene.caller.user} since the superuser is not allowed to "
            "perform this operation."
        )


def check_superuser(caller: Caller) -> None:
    if not caller.exempt:
        raise denied(f"Access denied for user {caller.user}. Superuser privilege is required")


def allows(caller: Caller, node: inode.INodeFile | inode.INodeDirectory, access: int) -> bool:
    """Return whether a node's mode or ACL gives the caller all these bits."""
    entries = [entry for entry in node.acl or () if entry.scope == AclScope.ACCESS]
    if caller.user == node.user:
        granted = node.mode >> 6
    elif entries:
        return _acl_allows(caller, node, entries, access)
    elif node.group in caller.groups:
        granted = node.mode >> 3
    else:
        granted = node.mode
    return granted & access == access


def _acl_allows(
    caller: Caller,
    node: inode.INodeFile | inode.INodeDirectory,
    entries: list[AclEntry],
    access: int,
) -> bool:
    """Check an ACL for others than the owner: named users, groups (any that grants), the rest.

    The mode's bits of the group limit what the entries grant.
    """
    matched = False
    for entry in entries:
        granted = entry.permission & node.mode >> 3 & access == access
        if entry.type == AclType.USER and entry.name == caller.user:
            return granted
        if entry.type == AclType.GROUP and (entry.name or node.group) in caller.groups:
            if granted:
                return True
            matched = True
    return not matched and node.mode & access == access


def _require(caller: Caller, route: paths.Route, index: int, access: int) -> None:
    node = route.nodes[index]
    assert not isinstance(
        node, inode.INodeSymlink
    )  # ``find`` refuses it, or no caller asks about it
    if node is not None and not allows(caller, node, access):
        raise denied(_denial(caller, node, route.prefix(index), access))


def _denial(caller: Caller, node: inode.INode, path: str, access: int) -> str:
    return (
        f"Permission denied: user={caller.user}, access={ACTIONS[access]}, "
        f'inode="{path}":{_describe(node)}'
    )


def _check_sticky(caller: Caller, node: inode.INode) -> None:
    """Refuse to let any but its owner and the node's take a node out of a sticky directory."""
    parent = node.parent
    assert parent is not None
    if not parent.mode & _STICKY or caller.user in {parent.user, node.user}:
        return
    raise denied(
        f"Permission denied by sticky bit: user={caller.user}, "
        f'path="{inode.full_path(node)}":{_describe(node)}, '
        f'parent="{inode.full_path(parent)}":{_describe(parent)}'
    )


def _describe(node: inode.INode) -> str:
    kind = "d" if isinstance(node, inode.INodeDirectory) else "-"
    return f"{node.user}:{node.group}:{kind}{symbolic(node.mode)}"


def symbolic(mode: int) -> str:
    """Return a mode as ``rwxr-xr-t`` (FsPermission.toString)."""
    bits = "".join(
        letter if mode & 0o400 >> index else "-" for index, letter in enumerate("rwxrwxrwx")
    )
    if not mode & _STICKY:
        return bits
    return bits[:-1] + ("t" if mode & 1 else "T")
