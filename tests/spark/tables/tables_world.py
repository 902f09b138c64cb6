"""What the tables of an image must say, by the reader that holds the whole namespace."""

from pathlib import Path
from random import Random
from typing import Any

from namenode_sim.edits import ops
from namenode_sim.namespace import inode
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.usage import storage_policy_of
from tests import TESTDATA
from tests.worlds.attribute_deeds import ATTRIBUTE_DEEDS
from tests.worlds.author import FILE_DEEDS, Author

Row = dict[str, Any]

REAL_IMAGES = (
    "name-dir/fsimage_0000000000000000026",
    "fsimage/fsimage_0000000000000061740",
    "fsimage/fsi_small_h3_2.img",
)


def real_images() -> list[Path]:
    return [path for name in REAL_IMAGES if (path := TESTDATA / name).exists()]


def wrapped(number: int) -> int:
    """Return a number as 64 bits with sign."""
    return (number + 2**63) % 2**64 - 2**63


def _text(raw: bytes) -> tuple[str, bytes | None]:
    try:
        return raw.decode(), None
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), raw


def inode_row(node: inode.INode) -> Row:
    name, name_bytes = _text(node.name)
    row: Row = {
        "id": node.id, "type": "SYMLINK", "name": name, "name_bytes": name_bytes,
        "user": node.user, "group": node.group, "mode": node.mode, "mtime_ms": node.mtime,
        "atime_ms": None, "replication": 0, "preferred_block_size": 0, "length": 0, "blocks": 0,
        "under_construction": False, "ec_policy_id": 0,
        "storage_policy_id": storage_policy_of(node), "ns_quota": None, "ds_quota": None,
        "acl": False, "xattrs": 0, "target": None,
    }  # fmt: skip
    if isinstance(node, inode.INodeSymlink):
        return row | {"atime_ms": node.atime, "target": _text(node.target)[0] or None}
    row |= {"acl": node.acl is not None, "xattrs": len(node.xattrs or ())}
    if isinstance(node, inode.INodeDirectory):
        quotas = {"ns_quota": node.quotas.namespace, "ds_quota": node.quotas.space}
        limits = {name: None if value == -1 else value for name, value in quotas.items()}
        return row | {"type": "DIRECTORY"} | limits
    return row | {
        "type": "FILE",
        "atime_ms": node.atime,
        "replication": node.replication,
        "preferred_block_size": node.preferred_block_size,
        "length": wrapped(node.length()),
        "blocks": len(node.blocks),
        "under_construction": node.under_construction is not None,
        "ec_policy_id": node.ec_policy_id,
    }


def exported_row(node: inode.INode) -> Row:
    row = inode_row(node)
    del row["target"]
    return row | {"parent_id": node.parent.id if node.parent else None}


def directory_row(node: inode.INodeDirectory) -> Row:
    below = list(inode.subtree(node))[1:]
    children = list(node.children.values())

    def counts(nodes: list[inode.INode]) -> tuple[int, int, int]:
        directories = sum(isinstance(one, inode.INodeDirectory) for one in nodes)
        size = sum(one.length() for one in nodes if isinstance(one, inode.INodeFile))
        return len(nodes) - directories, directories, size

    files, directories, size = counts(children)
    all_files, all_directories, all_size = counts(below)
    path = inode.full_path(node)
    return {
        "id": node.id, "parent_id": node.parent.id if node.parent else None, "path": path,
        "depth": 0 if path == "/" else path.count("/"), "files": files,
        "subdirectories": directories, "bytes": size, "subtree_files": all_files,
        "subtree_directories": all_directories, "subtree_bytes": all_size,
    }  # fmt: skip


def random_namespace(seed: int, steps: int = 400) -> tuple[Namespace, list[tuple[int, ops.Op]]]:
    author = Author(Random(seed), Namespace.empty("hdfs"))
    author.write(ops.StartLogSegment())
    for _ in range(steps):
        author.step(FILE_DEEDS + ATTRIBUTE_DEEDS)
    author.write(ops.EndLogSegment())
    return author.namespace, [(int(txid), op) for txid, op in author.log]
