"""How an ACL is split between an inode's mode and its ACL feature (Hadoop's AclStorage)."""

from namenode_sim.edits.values import AclEntry, AclScope, AclType
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.inode import INodeDirectory, INodeFile

_MINIMAL = 3
_STICKY = 0o1000


def set_acl(node: INodeFile | INodeDirectory, entries: tuple[AclEntry, ...]) -> None:
    """Replace a node's ACL by a whole logical one, sorted as Hadoop sorts; none removes it.

    The owner's and the others' entries live in the mode, whose group bits are the mask if there is
    one; the rest is the feature (docs/reference/formats.md#acls-and-attributes-in-an-image).
    """
    if not entries:
        remove_acl(node)
        return
    access = tuple(entry for entry in entries if entry.scope == AclScope.ACCESS)
    default = tuple(entry for entry in entries if entry.scope == AclScope.DEFAULT)
    if len(access) < _MINIMAL:
        raise ApplyError(f"an ACL needs entries for user, group and other, got {entries}")
    if default and not isinstance(node, INodeDirectory):
        raise ApplyError("only a directory can have default ACL entries")
    feature = access[1:-2] + default  # of a minimal one, there is nothing in between
    node.acl = feature or None
    node.mode = (node.mode & _STICKY) | (
        access[0].permission << 6 | access[-2].permission << 3 | access[-1].permission
    )


def remove_acl(node: INodeFile | INodeDirectory) -> None:
    """Drop the feature; what its ``group::`` entry held returns to the mode's group bits."""
    for entry in node.acl or ():
        if (entry.scope, entry.type, entry.name) == (AclScope.ACCESS, AclType.GROUP, None):
            node.mode = (node.mode & ~0o070) | entry.permission << 3
    node.acl = None


def logical_acl(node: INodeFile | INodeDirectory) -> tuple[AclEntry, ...]:
    """Return the whole ACL as ``set_acl`` takes it (AclStorage.readINodeLogicalAcl)."""
    feature = node.acl or ()
    access = tuple(entry for entry in feature if entry.scope == AclScope.ACCESS)
    default = tuple(entry for entry in feature if entry.scope == AclScope.DEFAULT)
    user, group, other = (node.mode >> 6) & 7, (node.mode >> 3) & 7, node.mode & 7
    middle = AclType.MASK if access else AclType.GROUP
    return (
        AclEntry(AclScope.ACCESS, AclType.USER, None, user),
        *access,
        AclEntry(AclScope.ACCESS, middle, None, group),
        AclEntry(AclScope.ACCESS, AclType.OTHER, None, other),
        *default,
    )
