"""A namespace as plain data: to show it, and to compare two namespaces."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from namenode_sim.namespace import inode
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.diffs import is_current


def dump_node(node: inode.INode) -> dict[str, object]:
    """Return everything the fsimage holds of one inode, its parent and children left out."""
    plain: dict[str, object] = {
        "id": node.id,
        "user": node.user,
        "group": node.group,
        "mode": oct(node.mode),
        "mtime": node.mtime,
    }
    match node:
        case inode.INodeSymlink():
            return {"type": "symlink", **plain, "atime": node.atime, "target": node.target}
        case inode.INodeDirectory():
            plain |= {"type": "directory", "quotas": node.quotas}
        case inode.INodeFile():
            plain |= {
                "type": "file",
                "atime": node.atime,
                "replication": node.replication,
                "preferred_block_size": node.preferred_block_size,
                "blocks": node.blocks,
                "under_construction": node.under_construction,
                "storage_policy_id": node.storage_policy_id,
                "block_type": node.block_type,
                "ec_policy_id": node.ec_policy_id,
            }
    return {**plain, "acl": node.acl, "xattrs": node.xattrs}


def dump_tree(node: inode.INode) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield path and attributes of a node and all below it, in the order of ``ls -R``."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield inode.full_path(current), dump_node(current)
        if isinstance(current, inode.INodeDirectory):
            waiting.extend(reversed(list(current.ordered_children())))


def _dump_entry(entry: inode.Entry) -> object:
    match entry:
        case inode.OldName():
            return ("old name", entry.name, entry.reference.inode.id, entry.last_snapshot_id)
        case inode.NewPlace():
            return ("new place", entry.reference.inode.id, entry.snapshot_id)
        case _:
            return entry.id


def _dump_diff(diff: inode.FileDiff | inode.DirectoryDiff) -> tuple[object, ...]:
    copy = None if diff.copy is None else (diff.copy.name, dump_node(diff.copy))
    if isinstance(diff, inode.FileDiff):
        return (diff.snapshot_id, diff.size, copy, diff.packed_blocks)
    created = {name: _dump_entry(entry) for name, entry in diff.created.items()}
    deleted = {name: _dump_entry(entry) for name, entry in diff.deleted.items()}
    return (diff.snapshot_id, diff.children_size, diff.is_root, copy, created, deleted)


def dump_past(namespace: Namespace) -> dict[int, dict[str, object]]:
    """Return what snapshots hold of each inode: diffs, places, and itself if only they have it."""
    past: dict[int, dict[str, object]] = {}
    for number, node in namespace.tree.inodes.items():
        found: dict[str, object] = {}
        if namespace.tree.has_snapshots and not is_current(node):
            found["self"] = (node.name, dump_node(node))
            if isinstance(node, inode.INodeDirectory):
                found["children"] = {name: child.id for name, child in node.children.items()}
        if isinstance(node, inode.INodeFile) and node.history is not None:
            found["diffs"] = [_dump_diff(diff) for diff in node.history.diffs]
            found["deleted"] = node.history.deleted
        if isinstance(node, inode.INodeDirectory) and node.history is not None:
            found["diffs"] = [_dump_diff(diff) for diff in node.history.diffs]
            found["snapshottable"] = node.history.snapshottable
        if node.reference is not None:
            found["old names"] = [_dump_entry(name) for name in node.reference.old_names]
            place = node.reference.place
            found["place"] = None if place is None else _dump_entry(place)
        if found:
            past[number] = found
    return past


def dump_state(namespace: Namespace) -> dict[str, object]:
    """Return all outside the tree: counters, leases, secrets, cache, EC policies, snapshots."""
    snapshots = {
        namespace.tree.inodes[number].id: [
            (snapshot.id, snapshot.name, dump_node(snapshot.root)) for snapshot in taken
        ]
        for number, taken in namespace.snapshots.snapshottable.items()
    }
    return {
        "last_applied": namespace.last_applied,
        "counters": asdict(namespace.counters),
        "leases": {holder: sorted(files) for holder, files in namespace.tree.leases.items()},
        "inodes": sorted(namespace.tree.inodes),
        "keys": namespace.secrets.keys,
        "tokens": namespace.secrets.tokens,
        "current_key_id": namespace.secrets.current_key_id,
        "token_sequence_number": namespace.secrets.token_sequence_number,
        "cache_pools": namespace.cache.pools,
        "cache_directives": namespace.cache.directives,
        "next_directive_id": namespace.cache.next_directive_id,
        "ec_policies": {number: asdict(p) for number, p in namespace.ec_policies.items()},
        "snapshot_counter": namespace.snapshots.counter,
        "snapshots": snapshots,
        "rolling_upgrade_start": namespace.rolling_upgrade_start,
    }


def differences(one: Namespace, other: Namespace) -> list[str]:
    """Return the differences between two namespaces, one sentence each; empty if they are equal.

    The retry caches are not compared: an image does not hold them.
    """
    found = list(_unequal("", dump_state(one), dump_state(other)))
    left, right = dict(dump_tree(one.tree.root)), dict(dump_tree(other.tree.root))
    found += [f"{path} is only in the first" for path in left if path not in right]
    found += [f"{path} is only in the second" for path in right if path not in left]
    for path in left.keys() & right.keys():
        found += _unequal(f"{path} ", left[path], right[path])
    past, other_past = dump_past(one), dump_past(other)
    for number in past.keys() | other_past.keys():
        mine, theirs = past.get(number, {}), other_past.get(number, {})
        found += _unequal(f"inode {number} in the past, ", mine, theirs)
    return sorted(found)


def _unequal(where: str, one: Mapping[str, object], other: Mapping[str, object]) -> Iterator[str]:
    for key in one.keys() | other.keys():
        if one.get(key) != other.get(key):
            yield f"{where}{key}: {one.get(key)!r} against {other.get(key)!r}"
