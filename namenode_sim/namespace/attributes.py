"""Edits about a node's attributes: owner, mode, times, quotas, xattrs, storage policy."""

from collections.abc import Iterable
from dataclasses import replace

from namenode_sim.edits import ops
from namenode_sim.edits.values import XAttr, XAttrNamespace
from namenode_sim.namespace import inode, usage
from namenode_sim.namespace.acl import set_acl as _set_acl
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.snapshots.diffs import about_to_change
from namenode_sim.namespace.state import SnapshotRules
from namenode_sim.namespace.tree import Tree


def set_permissions(tree: Tree, op: ops.SetPermissions) -> None:
    """Set the mode; where there is an ACL its group bits are the mask."""
    node = tree.node(op.path)
    about_to_change(tree, op.path, node)
    node.mode = op.mode


def set_owner(tree: Tree, op: ops.SetOwner) -> None:
    """Set the owner and the group, each if not empty."""
    node = tree.node(op.path)
    if op.user or op.group:
        about_to_change(tree, op.path, node)
    if op.user:
        node.user = tree.intern(op.user)
    if op.group:
        node.group = tree.intern(op.group)


def times(tree: Tree, op: ops.Times, rules: SnapshotRules) -> None:
    """Assign the times that are not -1.  No image holds the access time of a directory."""
    node = tree.node(op.path)
    if op.mtime != -1 or (op.atime != -1 and not rules.skip_access_time):
        about_to_change(tree, op.path, node)
    if op.mtime != -1:
        node.mtime = op.mtime
    if op.atime != -1:
        node.atime = op.atime


def set_quota(tree: Tree, path: str, ns_quota: int, ds_quota: int) -> None:
    path = tree.resolved(path)
    directory = _directory(tree, path)
    _set_quotas(tree, path, directory, quotas_after(directory, ns_quota, ds_quota))


def quotas_after(directory: inode.INodeDirectory, ns_quota: int, ds_quota: int) -> inode.Quotas:
    """Return a directory's quotas after an edit; the root's name quota is the greatest if reset."""
    quotas = directory.quotas
    if ns_quota == inode.QUOTA_DONT_SET:
        ns_quota = quotas.namespace
    elif ns_quota == inode.QUOTA_RESET and directory.parent is None:
        ns_quota = inode.QUOTA_DONT_SET
    return inode.Quotas(
        namespace=ns_quota,
        space=quotas.space if ds_quota == inode.QUOTA_DONT_SET else ds_quota,
        by_type=quotas.by_type,
    )


def _set_quotas(
    tree: Tree, path: str, directory: inode.INodeDirectory, quotas: inode.Quotas
) -> None:
    if quotas != directory.quotas:
        about_to_change(tree, path, directory)
        directory.quotas = quotas


def set_quota_by_type(tree: Tree, op: ops.SetQuotaByStorageType) -> None:
    path = tree.resolved(op.path)
    directory = _directory(tree, path)
    by_type = dict(directory.quotas.by_type)
    if op.quota == inode.QUOTA_RESET:
        by_type.pop(op.storage_type, None)
    elif op.quota != inode.QUOTA_DONT_SET:
        by_type[op.storage_type] = op.quota
    quotas = replace(directory.quotas, by_type=tuple(sorted(by_type.items())))
    _set_quotas(tree, path, directory, quotas)


def _directory(tree: Tree, path: str) -> inode.INodeDirectory:
    node = tree.node(path)
    if not isinstance(node, inode.INodeDirectory):
        raise ApplyError(f"{path} is not a directory")
    return node


def _node_with_features(tree: Tree, path: str) -> inode.INodeFile | inode.INodeDirectory:
    node: inode.INode = tree.node(path)
    if isinstance(node, inode.INodeSymlink):
        raise ApplyError(f"{path} is a symlink, which has neither ACL nor xattrs")
    return node


def set_acl(tree: Tree, op: ops.SetAcl) -> None:
    """Replace or remove an ACL; the mtime stays."""
    node = _node_with_features(tree, op.path)
    if op.entries or node.acl is not None:
        about_to_change(tree, op.path, node)
    _set_acl(node, op.entries)


def held_xattrs(xattrs: Iterable[XAttr]) -> tuple[XAttr, ...] | None:
    """Return attributes as an inode holds them: an empty value is none, no attributes are None.

    Hadoop packs them so (XAttrFormat); its image never has an empty value.
    """
    return tuple(xattr if xattr.value else replace(xattr, value=None) for xattr in xattrs) or None


def set_xattrs(tree: Tree, path: str, xattrs: tuple[XAttr, ...]) -> None:
    """Set extended attributes; the new ones go to the front, as listings show them."""
    node = _node_with_features(tree, path)
    names = {(xattr.namespace, xattr.name) for xattr in xattrs}
    kept = [old for old in node.xattrs or () if (old.namespace, old.name) not in names]
    _set_xattrs(tree, path, node, (*xattrs, *kept))


def _set_xattrs(
    tree: Tree, path: str, node: inode.INodeFile | inode.INodeDirectory, xattrs: tuple[XAttr, ...]
) -> None:
    if xattrs or node.xattrs:
        about_to_change(tree, path, node)
    policy_id = usage.storage_policy_of(node)
    node.xattrs = held_xattrs(xattrs)
    if usage.storage_policy_of(node) != policy_id:
        tree.usage.clear()


def remove_xattrs(tree: Tree, path: str, xattrs: tuple[XAttr, ...]) -> None:
    node = _node_with_features(tree, path)
    names = {(xattr.namespace, xattr.name) for xattr in xattrs}
    kept = tuple(old for old in node.xattrs or () if (old.namespace, old.name) not in names)
    if len(kept) != len(node.xattrs or ()):
        _set_xattrs(tree, path, node, kept)


def set_storage_policy(tree: Tree, op: ops.SetStoragePolicy) -> None:
    """Set a storage policy: a file's field, or a directory's system xattr; 0 removes that."""
    node = tree.node(op.path)
    if isinstance(node, inode.INodeFile):
        about_to_change(tree, op.path, node)
        tree.usage.touch(node)
        node.storage_policy_id = op.policy_id
        return
    xattr = XAttr(XAttrNamespace.SYSTEM, usage.STORAGE_POLICY, bytes([op.policy_id & 0xFF]))
    if op.policy_id == 0:
        remove_xattrs(tree, op.path, (xattr,))
    else:
        set_xattrs(tree, op.path, (xattr,))
