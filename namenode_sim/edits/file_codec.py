"""Bytes of the ops about what files hold.

A reader takes a frame, the position of its body and the layout version; a writer gives the body.
Fields that a layout does not have yet are read as their defaults.  Writing refuses to drop
one that says something: a peer of that layout would get another namespace.

See docs/reference/formats.md#ops.
"""

from collections.abc import Mapping
from struct import Struct
from typing import Final

from namenode_sim.edits import fields, ops, primitives
from namenode_sim.edits.attributes import acl, read_acl, read_xattrs, xattrs
from namenode_sim.edits.values import AclEntry, Block, XAttr

ACL_LAYOUT: Final = -53
XATTR_LAYOUT: Final = -57
OVERWRITE_LAYOUT: Final = -58
STORAGE_POLICY_LAYOUT: Final = -60
NEW_BLOCK_LAYOUT: Final = -62
ERASURE_CODING_LAYOUT: Final = -64
MAX_CONCAT_SOURCES: Final = 1024 * 1024

_I8 = Struct(">b")
_FILE = Struct(">hqqq")  # replication, mtime, atime, block size
_ADD_TAIL = Struct(">?bb")  # overwrite, storage policy, erasure coding policy
_NO_BLOCKS: Final = bytes(4)


def refuse_loss(layout: int, **fields: object) -> None:
    """Refuse to write an op whose named fields say something that the layout cannot hold.

    Raises:
        ValueError: naming the first such field.
    """
    for name, content in fields.items():
        if content:
            raise ValueError(f"layout {layout} has no field for {name} (here {content!r})")


def read_add(data: bytes, pos: int, layout: int) -> fields.Read:
    (inode_id,) = primitives.I64.unpack_from(data, pos)
    path, pos = primitives.read_string(data, pos + 8)
    replication, mtime, atime, block_size = _FILE.unpack_from(data, pos)
    pos += 26
    if data.startswith(_NO_BLOCKS, pos):
        found: tuple[Block, ...] = ()
        pos += 4
    else:
        found, pos = primitives.read_blocks(data, pos)
    owner, pos = primitives.read_permission(data, pos)
    entries, pos = read_acl(data, pos) if layout <= ACL_LAYOUT else ((), pos)
    _, attributes, pos = read_xattrs(data, pos) if layout <= XATTR_LAYOUT else ("", (), pos)
    client, pos = primitives.read_string(data, pos)
    machine, pos = primitives.read_string(data, pos)
    if layout <= ERASURE_CODING_LAYOUT:
        overwrite, policy, ec_policy = _ADD_TAIL.unpack_from(data, pos)
        pos += 3
    else:
        overwrite, policy, ec_policy, pos = _old_add_tail(data, pos, layout)
    ids, pos = primitives.read_rpc_ids(data, pos)
    op = ops.Add(
        inode_id, path, replication, mtime, atime, block_size, found, owner, entries, attributes,
        client, machine, overwrite, policy, ec_policy, ids,
    )  # fmt: skip
    return op, pos


def _old_add_tail(data: bytes, pos: int, layout: int) -> tuple[bool, int, int, int]:
    overwrite, policy = False, 0
    if layout <= OVERWRITE_LAYOUT:
        overwrite = data[pos] != 0
        pos += 1
    if layout <= STORAGE_POLICY_LAYOUT:
        (policy,) = _I8.unpack_from(data, pos)
        pos += 1
    return overwrite, policy, 0, pos


def write_add(op: ops.Add, layout: int) -> bytes:
    if layout > ERASURE_CODING_LAYOUT:
        return _write_old_add(op, layout)
    return b"".join((
        primitives.I64.pack(op.inode_id),
        primitives.string(op.path),
        _FILE.pack(op.replication, op.mtime, op.atime, op.block_size),
        primitives.blocks(op.blocks) if op.blocks else _NO_BLOCKS,
        primitives.permission(op.permission),
        acl(op.acl),
        xattrs(None, op.xattrs),
        primitives.string(op.client_name),
        primitives.string(op.client_machine),
        _ADD_TAIL.pack(op.overwrite, op.storage_policy_id, op.ec_policy_id),
        primitives.rpc_ids(op.rpc),
    ))  # fmt: skip


def _write_old_add(op: ops.Add, layout: int) -> bytes:
    parts = [
        primitives.I64.pack(op.inode_id),
        primitives.string(op.path),
        _FILE.pack(op.replication, op.mtime, op.atime, op.block_size),
        primitives.blocks(op.blocks),
        primitives.permission(op.permission),
        *inherited(op.acl, op.xattrs, layout),
        primitives.string(op.client_name),
        primitives.string(op.client_machine),
    ]
    if layout <= OVERWRITE_LAYOUT:
        parts.append(b"\x01" if op.overwrite else b"\x00")
    else:
        refuse_loss(layout, overwrite=op.overwrite)
    if layout <= STORAGE_POLICY_LAYOUT:
        parts.append(_I8.pack(op.storage_policy_id))
    else:
        refuse_loss(layout, storage_policy_id=op.storage_policy_id)
    refuse_loss(layout, ec_policy_id=op.ec_policy_id)
    parts.append(primitives.rpc_ids(op.rpc))
    return b"".join(parts)


def inherited(
    entries: tuple[AclEntry, ...], attributes: tuple[XAttr, ...], layout: int
) -> list[bytes]:
    """Return the ACL and extended attributes of a new inode, as far as the layout has them."""
    parts = []
    if layout <= ACL_LAYOUT:
        parts.append(acl(entries))
    else:
        refuse_loss(layout, acl=entries)
    if layout <= XATTR_LAYOUT:
        parts.append(xattrs(None, attributes))
    else:
        refuse_loss(layout, xattrs=attributes)
    return parts


def read_close(data: bytes, pos: int, _layout: int) -> fields.Read:
    (inode_id,) = primitives.I64.unpack_from(data, pos)
    path, pos = primitives.read_string(data, pos + 8)
    replication, mtime, atime, block_size = _FILE.unpack_from(data, pos)
    found, pos = primitives.read_blocks(data, pos + 26)
    owner, pos = primitives.read_permission(data, pos)
    return ops.Close(inode_id, path, replication, mtime, atime, block_size, found, owner), pos


def write_close(op: ops.Close, _layout: int) -> bytes:
    return b"".join((
        primitives.I64.pack(op.inode_id),
        primitives.string(op.path),
        _FILE.pack(op.replication, op.mtime, op.atime, op.block_size),
        primitives.blocks(op.blocks),
        primitives.permission(op.permission),
    ))  # fmt: skip


def read_append(data: bytes, pos: int, layout: int) -> fields.Read:
    path, pos = primitives.read_string(data, pos)
    client, pos = primitives.read_string(data, pos)
    machine, pos = primitives.read_string(data, pos)
    new_block = False
    if layout <= NEW_BLOCK_LAYOUT:
        new_block = data[pos] != 0
        pos += 1
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.Append(path, client, machine, new_block, ids), pos


def write_append(op: ops.Append, layout: int) -> bytes:
    if layout <= NEW_BLOCK_LAYOUT:
        flag = b"\x01" if op.new_block else b"\x00"
    else:
        refuse_loss(layout, new_block=op.new_block)
        flag = b""
    head = (
        primitives.string(op.path)
        + primitives.string(op.client_name)
        + primitives.string(op.client_machine)
    )
    return head + flag + primitives.rpc_ids(op.rpc)


def read_add_block(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, pos = primitives.read_string(data, pos)
    found, pos = primitives.read_compact_blocks(data, pos)
    if len(found) not in (1, 2):
        raise ValueError(f"a block is added with {len(found)} blocks; one or two belong here")
    ids, pos = primitives.read_rpc_ids(data, pos)
    penultimate = found[0] if len(found) == 2 else None
    return ops.AddBlock(path, penultimate, found[-1], ids), pos


def write_add_block(op: ops.AddBlock, _layout: int) -> bytes:
    found = (op.last,) if op.penultimate is None else (op.penultimate, op.last)
    return (
        primitives.string(op.path) + primitives.compact_blocks(found) + primitives.rpc_ids(op.rpc)
    )


def read_update_blocks(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, pos = primitives.read_string(data, pos)
    found, pos = primitives.read_compact_blocks(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.UpdateBlocks(path, found, ids), pos


def write_update_blocks(op: ops.UpdateBlocks, _layout: int) -> bytes:
    return (
        primitives.string(op.path)
        + primitives.compact_blocks(op.blocks)
        + primitives.rpc_ids(op.rpc)
    )


def read_set_genstamp_v2(data: bytes, pos: int, _layout: int) -> fields.Read:
    return ops.SetGenstampV2(primitives.I64.unpack_from(data, pos)[0]), pos + 8


def write_set_genstamp_v2(op: ops.SetGenstampV2, _layout: int) -> bytes:
    return primitives.I64.pack(op.generation_stamp)


def read_allocate_block_id(data: bytes, pos: int, _layout: int) -> fields.Read:
    return ops.AllocateBlockId(primitives.I64.unpack_from(data, pos)[0]), pos + 8


def write_allocate_block_id(op: ops.AllocateBlockId, _layout: int) -> bytes:
    return primitives.I64.pack(op.block_id)


_SOURCES: Final = fields.list_of(fields.STRING, 2, MAX_CONCAT_SOURCES, "sources")

FILE_CODECS: Final[Mapping[type[ops.Op], tuple[fields.Reader, fields.Writer]]] = {
    ops.Add: (read_add, write_add),
    ops.Close: (read_close, write_close),
    ops.Append: (read_append, write_append),
    ops.AddBlock: (read_add_block, write_add_block),
    ops.UpdateBlocks: (read_update_blocks, write_update_blocks),
    ops.Truncate: fields.codec_of(
        ops.Truncate, *(fields.STRING,) * 3, fields.I64, fields.I64, fields.ONE_BLOCK
    ),
    ops.ConcatDelete: fields.codec_of(
        ops.ConcatDelete, fields.STRING, _SOURCES, fields.I64, fields.RPC_IDS
    ),
    ops.SetReplication: fields.codec_of(ops.SetReplication, fields.STRING, fields.I16),
    ops.ReassignLease: fields.codec_of(ops.ReassignLease, *(fields.STRING,) * 3),
    ops.SetGenstampV1: fields.codec_of(ops.SetGenstampV1, fields.I64),
    ops.SetGenstampV2: (read_set_genstamp_v2, write_set_genstamp_v2),
    ops.AllocateBlockId: (read_allocate_block_id, write_allocate_block_id),
}
