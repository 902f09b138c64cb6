"""Edits about what files hold: creation, blocks, leases.

See docs/reference/namenode.md#effects-of-edits.
"""

from dataclasses import replace
from typing import Protocol

from namenode_sim.edits import ops
from namenode_sim.edits.values import Block
from namenode_sim.namespace import inode
from namenode_sim.namespace.acl import set_acl
from namenode_sim.namespace.attributes import held_xattrs
from namenode_sim.namespace.changes import BlockCut
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.file_numbers import pack_blocks, pack_numbers
from namenode_sim.namespace.paths import delete_node, insert
from namenode_sim.namespace.snapshots import diffs
from namenode_sim.namespace.state import Snapshots
from namenode_sim.namespace.tree import Tree


class _ListsBlocks(Protocol):
    """An edit that gives a file's whole block list."""

    @property
    def path(self) -> str: ...
    @property
    def blocks(self) -> tuple[Block, ...]: ...


def add(
    tree: Tree, snapshots: Snapshots, op: ops.Add, inode_id: int, limits: tuple[int, int]
) -> inode.INodeFile:
    """Create a file; or, in logs before layout -62, reopen one or update its blocks."""
    existing = tree.find(op.path)
    if existing is not None and not isinstance(existing, inode.INodeFile):
        raise ApplyError(f"{op.path} is not a file")
    if existing is not None and op.overwrite:
        delete_node(tree, snapshots, existing, op.path, op.mtime)
        existing = None
    if existing is None:
        return _create(tree, op, inode_id, limits)
    if existing.under_construction is None:
        diffs.about_to_change(tree, op.path, existing)
        tree.usage.touch(existing)
        _touch_unless_full(tree, existing)
        _open(tree, existing, op.client_name, op.client_machine)
    existing.set_times(op.mtime, op.atime)
    update_blocks(tree, existing, op)
    return existing


def _create(tree: Tree, op: ops.Add, inode_id: int, limits: tuple[int, int]) -> inode.INodeFile:
    parent, name = tree.parent_of(op.path)
    if parent is None:
        raise ApplyError(f"{op.path} has no directory to be created in")
    striped = op.ec_policy_id != 0
    traits = inode.FileTraits(
        user=tree.intern(op.permission.user),
        group=tree.intern(op.permission.group) or parent.group,
        mode=op.permission.mode,
        replication=0 if striped else _clamp(op.replication, limits),
        preferred_block_size=op.block_size or 1,  # the header field's minimum in Hadoop
        under_construction=inode.UnderConstruction(tree.intern(op.client_name), op.client_machine),
        xattrs=held_xattrs(op.xattrs),
        storage_policy_id=op.storage_policy_id,
        block_type=inode.STRIPED if striped else inode.CONTIGUOUS,
        ec_policy_id=op.ec_policy_id,
    )
    numbers = pack_numbers(inode_id, op.mtime, op.atime, pack_blocks(op.blocks))
    file = inode.INodeFile(name, numbers, traits)
    if op.acl:
        set_acl(file, op.acl)
    insert(tree, parent, file, op.path)
    if tree.watch is not None and file.packed_blocks:
        tree.watch.create(file)
    tree.add_lease(file)
    return file


def _clamp(replication: int, limits: tuple[int, int]) -> int:
    lowest, highest = limits
    return max(lowest, min(highest, replication))


def _touch_unless_full(tree: Tree, file: inode.INodeFile) -> None:
    """Reopen the last block, unless it is full and stays as it is (convertLastBlockToUC)."""
    last = file.blocks[-1] if file.packed_blocks else None
    if last is not None and last.num_bytes < file.preferred_block_size:
        tree.touch(file)


def _open(tree: Tree, file: inode.INodeFile, client_name: str, client_machine: str) -> None:
    file.under_construction = inode.UnderConstruction(tree.intern(client_name), client_machine)
    tree.add_lease(file)


def close(tree: Tree, op: ops.Close) -> None:
    """Complete a file.  The op's inode id is always 0; the path says which file it is."""
    file = tree.file(op.path)
    file.set_times(op.mtime, op.atime)
    update_blocks(tree, file, op)
    if file.under_construction is None:
        raise ApplyError(f"{op.path} is not under construction and cannot be closed")
    tree.drop_lease(file)
    file.under_construction = None


def append(tree: Tree, op: ops.Append) -> inode.INodeFile:
    """Reopen a closed file; an open one stays as it is."""
    file = tree.file(op.path)
    if file.under_construction is None:
        diffs.about_to_change(tree, op.path, file)
        tree.usage.touch(file)
        if not op.new_block:
            _touch_unless_full(tree, file)
        _open(tree, file, op.client_name, op.client_machine)
    return file


def add_block(tree: Tree, op: ops.AddBlock) -> None:
    """Give an open file its next block, and the one before it its final length."""
    file = tree.file(op.path)
    tree.touch(file)
    before = file.blocks
    if op.penultimate is None:
        if before:
            raise ApplyError(f"{op.path} has {len(before)} blocks, the edit knows of none")
    else:
        _ensure_same(op.path, before[-1] if before else None, op.penultimate)
        before = (*before[:-1], op.penultimate)
    file.blocks = (*before, op.last)
    diffs.follow_blocks(file)


def _ensure_same(path: str, held: Block | None, told: Block) -> None:
    if held is None or (held.block_id, held.generation_stamp) != (
        told.block_id,
        told.generation_stamp,
    ):
        raise ApplyError(f"{path}: the edit's block {told} is not the file's {held}")


def update_blocks(tree: Tree, file: inode.INodeFile, op: _ListsBlocks) -> None:
    """Set the blocks (FSEditLogLoader.updateBlocks): at most one less, or any number more.

    Only the last block of an equally long list may change its generation stamp (its pipeline was
    recovered); an id never changes.
    """
    tree.touch(file)
    old, new = file.blocks, op.blocks
    if len(new) < len(old) - 1:
        raise ApplyError(f"{op.path}: from {len(old)} to {len(new)} blocks in one edit")
    for index, (held, told) in enumerate(zip(old, new, strict=False)):
        restamped = len(old) == len(new) and index == len(new) - 1
        if held.block_id != told.block_id or (
            held.generation_stamp != told.generation_stamp and not restamped
        ):
            raise ApplyError(f"{op.path}: block {index} is {held}, the edit says {told}")
    file.blocks = new
    diffs.follow_blocks(file)


def truncate(tree: Tree, op: ops.Truncate) -> None:
    """Cut a file; a cut inside a block leaves the file open for that block's recovery."""
    file = tree.file(op.path)
    tree.touch(file)
    diffs.about_to_change(tree, op.path, file, with_blocks=True)
    kept, size = 0, 0
    while kept < len(file.blocks) and op.new_length > size:
        size += file.blocks[kept].num_bytes
        kept += 1
    file.blocks = file.blocks[:kept]
    file.mtime = op.time
    if size == op.new_length:
        return
    if not file.blocks:
        raise ApplyError(f"{op.path} has no block in which it could be cut at {op.new_length}")
    _open(tree, file, op.client_name, op.client_machine)
    last = file.blocks[-1]
    length = last.num_bytes - (size - op.new_length)
    if op.block is None:
        return
    if op.block.block_id != last.block_id:
        # Copy on truncate: a snapshot or an upgrade still needs the old block.  The edit contains
        # no length of the new one (FSDirTruncateOp.prepareFileForTruncate).
        file.blocks = (*file.blocks[:-1], replace(op.block, num_bytes=length))
    if tree.watch is not None:
        cut = BlockCut(op.block.block_id, length, op.block.generation_stamp, last.block_id)
        tree.watch.tell(cut)


def concat(tree: Tree, op: ops.ConcatDelete) -> None:
    """Move the blocks of the sources to the target's end; the sources go away.

    The caller that logs this must ensure that no snapshot has a source.
    """
    target = tree.file(op.target)
    parent = target.parent
    assert parent is not None
    latest = diffs.latest_snapshot(tree, op.target)
    diffs.about_to_change(tree, op.target, target)
    tree.touch(target)
    for path in op.sources:
        source = tree.file(path)
        tree.touch(source)
        target.blocks += source.blocks
        source.blocks = ()
        diffs.remove_child(tree, diffs.entry_of(source), latest)
        tree.drop(source)
    target.mtime = op.time
    diffs.update_mtime(parent, op.time, latest)


def set_replication(tree: Tree, op: ops.SetReplication, limits: tuple[int, int]) -> None:
    """Change a file's replication; anything else (or a striped file) is left alone."""
    node = tree.find(op.path)
    if isinstance(node, inode.INodeFile) and node.block_type == inode.CONTIGUOUS:
        tree.touch(node)
        diffs.about_to_change(tree, op.path, node)
        node.replication = _clamp(op.replication, limits)


def reassign_lease(tree: Tree, op: ops.ReassignLease) -> None:
    file = tree.file(op.path)
    if file.under_construction is None:
        raise ApplyError(f"{op.path} is not under construction, its lease cannot move")
    tree.drop_lease(file)
    file.under_construction = replace(
        file.under_construction, client_name=tree.intern(op.new_holder)
    )
    tree.add_lease(file)
