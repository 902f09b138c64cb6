"""Whether what a namespace shows of the tree and of snapshots is what the model has."""

from collections.abc import Iterator

from namenode_sim.edits.values import XAttrNamespace
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile, INodeSymlink
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.diffs import inode_of
from namenode_sim.namespace.snapshots.view import SnapshotView, view_root
from namenode_sim.namespace.usage import storage_policy_of
from tests.namenode_sim.namespace.given_edits import names_seen
from tests.worlds.model_tree import Model, Thing


def wrong(namespace: Namespace, model: Model) -> list[str]:
    found = list(_wrong_below("", namespace.tree.root, model.root))
    for number, taken in model.snapshots.items():
        live = namespace.tree.inodes[number]
        assert isinstance(live, INodeDirectory)
        known = {snapshot.name: snapshot for snapshot in namespace.snapshots.snapshottable[number]}
        if known.keys() != taken.keys():
            found.append(f"snapshots of {number}: {sorted(known)} instead of {sorted(taken)}")
            continue
        for name, top in taken.items():
            sight = view_root(live, known[name])
            if sight.node.mtime != top.attributes["mtime"]:
                found.append(f"{name} has the time {sight.node.mtime}")
            found += _wrong_in_snapshot(f"{number}/.snapshot/{name}", sight, top)
    return [*found, *_wrong_numbers(namespace, model)]


def _wrong_numbers(namespace: Namespace, model: Model) -> Iterator[str]:
    """Yield what is there of nothing, or missing.

    An inode too many may be there where a directory was moved: Hadoop takes all that is in such a
    one for part of every snapshot (INode.isInLatestSnapshot), and may keep what none has.
    """
    held, wanted = set(namespace.tree.inodes), model.numbers()
    if wanted - held:
        yield f"inodes are missing: {sorted(wanted - held)}"
    if held != set(_reachable(namespace)):
        yield f"inodes without a place: {sorted(held ^ set(_reachable(namespace)))}"
    moved = any(node.reference is not None for node in namespace.tree.inodes.values())
    if held - wanted and not moved:
        yield f"inodes of nothing: {sorted(held - wanted)}"


def _reachable(namespace: Namespace) -> Iterator[int]:
    waiting: list[INode] = [namespace.tree.root]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        yield node.id
        if isinstance(node, INodeDirectory):
            waiting += node.children.values()
            for diff in node.history.diffs if node.history is not None else []:
                waiting += [inode_of(entry) for entry in diff.deleted.values()]


def _wrong_below(path: str, node: INode, thing: Thing) -> Iterator[str]:
    yield from _wrong_alone(path, node, thing)
    if isinstance(node, INodeDirectory):
        names = {name.decode() for name in node.children}
        if names != thing.children.keys():
            yield f"{path} has {sorted(names)} instead of {sorted(thing.children)}"
            return
        for name, child in thing.children.items():
            yield from _wrong_below(f"{path}/{name}", node.children[name.encode()], child)


def _wrong_in_snapshot(path: str, sight: SnapshotView, thing: Thing) -> Iterator[str]:
    yield from _wrong_alone(path, sight.node, thing)
    names = {name.decode() for name in names_seen(sight)}
    if names != thing.children.keys():
        yield f"{path} has {sorted(names)} instead of {sorted(thing.children)}"
        return
    for name, child in thing.children.items():
        seen = sight.child(name.encode())
        assert seen is not None
        yield from _wrong_in_snapshot(f"{path}/{name}", seen, child)


def _wrong_alone(path: str, node: INode, thing: Thing) -> Iterator[str]:
    shown, wanted = _shown(node), {"number": thing.number, "kind": thing.kind, **thing.attributes}
    if isinstance(node, INodeFile):
        if thing.open:
            # Hadoop saves an open file's state when it is opened; what is written after that
            # shows in snapshots too, unless dfs.namenode.snapshot.capture.openfiles is set.
            wanted |= {"mtime": node.mtime, "atime": node.atime}
        else:
            shown["blocks"] = [(block.block_id, block.num_bytes) for block in node.blocks]
            wanted["blocks"] = thing.blocks
    elif isinstance(node, INodeDirectory):
        wanted.pop("mtime", None)
    wanted["policy"] = wanted.get("policy") or None
    for key in shown.keys() | wanted.keys():
        if shown.get(key) != wanted.get(key):
            yield f"{path}: {key} is {shown.get(key)} instead of {wanted.get(key)}"


def _shown(node: INode) -> dict[str, object]:
    shown: dict[str, object] = {
        "number": node.id,
        "mode": node.mode,
        "user": node.user,
        "group": node.group,
    }
    match node:
        case INodeSymlink():
            return {**shown, "kind": "symlink", "target": node.target}
        case INodeDirectory():
            shown["kind"] = "directory"
            if node.quotas.namespace not in {-1, 2**63 - 1}:
                shown["quota"] = node.quotas.namespace
        case INodeFile():
            shown |= {
                "kind": "file",
                "replication": node.replication,
                "mtime": node.mtime,
                "atime": node.atime,
            }
    if storage_policy_of(node):
        shown["policy"] = storage_policy_of(node)
    users = [xattr for xattr in node.xattrs or () if xattr.namespace == XAttrNamespace.USER]
    return shown | ({"xattrs": users[0].value} if users else {})
