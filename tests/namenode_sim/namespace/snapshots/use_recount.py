"""What directories use, counted anew by a plain walk."""

from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile, full_path, subtree
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots import held
from namenode_sim.namespace.snapshots.held import only_in_snapshots
from namenode_sim.namespace.usage import Kind, storage_policy_of


def charged(file: INodeFile, policy: int) -> tuple[Kind, int]:
    """Return what a file takes: each of its blocks once, an open last one as a whole one."""
    diffs = file.history.diffs if file.history is not None else []
    lengths = {block.block_id: block.num_bytes for block in file.blocks}
    if lengths and file.under_construction is not None:
        lengths[file.blocks[-1].block_id] = file.preferred_block_size
    for diff in diffs:
        for number, length, _ in PACKED_BLOCK.iter_unpack(diff.packed_blocks or b""):
            lengths.setdefault(number, length)
    copies = [diff.copy.replication for diff in diffs if diff.copy is not None]
    deleted = file.history is not None and file.history.deleted and copies
    replication = max(copies if deleted else [file.replication, *copies])
    return Kind(file.storage_policy_id or policy, replication), sum(lengths.values())


def recounted(directory: INodeDirectory) -> tuple[int, dict[Kind, int]]:
    """Return names and bytes by a walk, those of snapshots alone included."""
    nodes = [one for node in subtree(directory) for one in (node, *only_in_snapshots(node))]
    sizes: dict[Kind, int] = {}
    for node in nodes:
        if isinstance(node, INodeFile):
            kind, size = charged(node, nearest_policy(node))
            sizes[kind] = sizes.get(kind, 0) + size
    return len(nodes), {kind: size for kind, size in sizes.items() if size}


def nearest_policy(node: INode) -> int:
    chain = [node]
    while (parent := chain[-1].parent) is not None:
        chain.append(parent)
    return next(filter(None, map(storage_policy_of, chain)), 0)


def counted_wrong(namespace: Namespace) -> dict[str, tuple[object, object]]:
    """Return the directories whose kept use is not that of a walk, with both."""
    wrongly: dict[str, tuple[object, object]] = {}
    for node in subtree(namespace.tree.root):
        if isinstance(node, INodeDirectory):
            use, walked = held.use_of(namespace.tree, node), recounted(node)
            if (use.names, use.sizes) != walked:
                wrongly[full_path(node)] = (use, walked)
    return wrongly
