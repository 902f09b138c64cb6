"""What the bench of formats measures on: a namespace of ordinary files, and a day's edits on it."""

from collections.abc import Iterator
from pathlib import Path

from journal.model import NamespaceInfo, TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block, Permission, RpcIds
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.file_numbers import pack_blocks, pack_numbers
from namenode_sim.namespace.inode import FileTraits, INodeDirectory, INodeFile, shared
from namenode_sim.namespace.namespace import Namespace

INFO = NamespaceInfo(-67, 4711, "CID-bench", 0, "BP-bench")
FILES_PER_DIRECTORY = 500
FIRST_BLOCK = 2**30
NOW = 1_700_000_000_000
PERMISSION = Permission("alice", "analysts", 0o644)
CLIENT = "DFSClient_NONMAPREDUCE_-1523678_1"


def big_namespace(inodes: int, blocks: int | None = None) -> Namespace:
    """Make directories of files with one block each, as a warehouse has them.

    Where ``blocks`` is given, only that number of files have one.
    """
    most = None if blocks is None else FIRST_BLOCK + blocks
    namespace = Namespace.empty("hdfs")
    tree, number, block = namespace.tree, 16386, FIRST_BLOCK
    traits = shared(FileTraits("alice", "analysts", 0o644, 3, 134_217_728))
    while number < 16386 + inodes:
        name = b"day=%06d" % (number // FILES_PER_DIRECTORY)
        day = INodeDirectory(number, name, "alice", "analysts", 0o755, NOW + number)
        tree.link(tree.root, day)
        number += 1
        for part in range(FILES_PER_DIRECTORY):
            its: tuple[Block, ...] = ()
            if most is None or block < most:
                block += 1
                its = (Block(block, 7_654_321 + number, 1000 + number),)
            name = b"part-%05d-of-00500.parquet" % part
            numbers = pack_numbers(number, NOW + number, NOW + number + 9, pack_blocks(its))
            file = INodeFile(name, numbers, traits)
            tree.link(day, file)
            number += 1
    namespace.counters.last_inode_id = number
    namespace.counters.last_block_id = block
    namespace.counters.generation_stamp_v2 = 1000 + number
    return namespace


def save(namespace: Namespace, folder: Path) -> Path:
    path = folder / f"fsimage_{namespace.last_applied:019d}"
    save_image(namespace, path, INFO)
    return path


def edits(namespace: Namespace, count: int) -> Iterator[tuple[TxId, Op]]:
    """Yield what follows on ``big_namespace``: mostly files being written, and other things."""
    counters = namespace.counters
    inode, block = counters.last_inode_id, counters.last_block_id
    stamp, txid = counters.generation_stamp_v2, int(namespace.last_applied)
    days = [name.decode() for name in namespace.tree.root.children]
    made = 0
    while made < count:
        inode, block, stamp = inode + 1, block + 1, stamp + 1
        now = NOW + inode
        folder = f"/{days[inode % len(days)]}"
        path = f"{folder}/_temporary-{inode}"
        rpc = RpcIds(inode.to_bytes(16, "big"), inode & 0xFFFF)
        empty, full = Block(block, 0, stamp), Block(block, 5_000_000, stamp)
        batch: tuple[Op, ...] = (
            ops.Add(inode, path, 3, now, now, 134_217_728, (), PERMISSION, (), (), CLIENT,
                    "10.1.2.3", overwrite=False, rpc=rpc),
            ops.AllocateBlockId(block),
            ops.SetGenstampV2(stamp),
            ops.AddBlock(path, None, empty),
            ops.Close(0, path, 3, now, now, 134_217_728, (full,), PERMISSION),
            ops.Rename(path, f"{folder}/part-{inode}", now, rpc=rpc),
            ops.Times(f"{folder}/part-{inode}", now, now),
            ops.SetPermissions(f"{folder}/part-{inode}", 0o640),
        )  # fmt: skip
        if inode % 4 == 0:
            batch += (ops.Delete(f"{folder}/part-{inode}", now, rpc),)
        for op in batch:
            made += 1
            txid += 1
            yield TxId(txid), op
