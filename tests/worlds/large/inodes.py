"""What each inode of a generated namespace is like, and its message in an image."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from namenode_sim.edits.values import AclEntry, AclScope, AclType, Permission, XAttr, XAttrNamespace
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import StringNumbers
from namenode_sim.namespace.inode import QUOTA_DONT_SET, ROOT_ID
from tests.worlds.large.rows import (
    Bytes,
    Column,
    Numbers,
    Table,
    constant,
    delimited,
    fixed64,
    joined,
    mixed,
    total,
    varints,
)
from tests.worlds.large.shape import Places, Shape

BLOCK_SIZE: Final = 134_217_728
NOW: Final = 1_700_000_000_000
FIRST_BLOCK: Final = 2**30 + 1
FIRST_STAMP: Final = 1001
MOST_BLOCKS: Final = 3
OPEN_ONE_IN: Final = 5000
FEATURE_ONE_IN: Final = 100
"""One file or directory in this number has an ACL, and another one extended attributes."""
QUOTA_ONE_IN: Final = 500
NS_QUOTA: Final = 10**7
DS_QUOTA: Final = 10**15
USERS: Final = (*(f"user{number:02d}" for number in range(38)), "zoë", "hdfs")
GROUPS: Final = ("staff", "analysts", "etl", "отдел", "supergroup")
_DIRECTORY_MODES: Final = (0o755, 0o775, 0o700, 0o1777)
_FILE_MODES: Final = (0o644, 0o640, 0o600, 0o444)
_MASK_64: Final = 2**64 - 1
_OPEN_CLIENTS: Final = tuple(f"DFSClient_NONMAPREDUCE_{number}_1" for number in range(20))

Flags = NDArray[np.bool_]


def _acls() -> tuple[tuple[AclEntry, ...], ...]:
    """Return the features, without what the mode says; none is inherited, or creations log it."""
    named = AclEntry(AclScope.ACCESS, AclType.USER, USERS[3], 5)
    group = AclEntry(AclScope.ACCESS, AclType.GROUP, None, 5)
    other = AclEntry(AclScope.ACCESS, AclType.GROUP, GROUPS[3], 4)
    return (), (named, group), (group, other)


_XATTRS: Final = (
    (),
    (XAttr(XAttrNamespace.USER, "origin", b"ingest-7"),),
    (XAttr(XAttrNamespace.TRUSTED, "größe", None), XAttr(XAttrNamespace.USER, "checked", b"1")),
)


class Strings:
    """The users, groups and attribute names of an image, and what is packed with their numbers."""

    def __init__(self, layout: int) -> None:
        self.numbers = StringNumbers(layout)
        permissions = [
            self.numbers.permission((user, GROUPS[index % len(GROUPS)], mode))
            for modes in (_FILE_MODES, _DIRECTORY_MODES)
            for index, user in enumerate(USERS)
            for mode in modes
        ]
        self.permissions = np.array(permissions, np.uint64)
        self.acls = Table([self._acl(entries) for entries in _acls()])
        self.xattrs = Table([self._xattrs(xattrs) for xattrs in _XATTRS])

    def _acl(self, entries: tuple[AclEntry, ...]) -> bytes:
        return pb.AclFeatureProto(
            entries=[self.numbers.acl_entry(entry) for entry in entries]
        ).SerializeToString()

    def _xattrs(self, xattrs: tuple[XAttr, ...]) -> bytes:
        feature = pb.XAttrFeatureProto()
        for xattr in xattrs:
            feature.xAttrs.add(name=self.numbers.xattr(xattr), value=xattr.value)
        return feature.SerializeToString()


_OPEN: Final = Table([
    pb.FileUnderConstructionFeature(
        clientName=client, clientMachine="10.1.2.3"
    ).SerializeToString()
    for client in _OPEN_CLIENTS
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traits:
    """What some inodes are like, one element each."""

    ids: Places
    is_file: Flags
    names: Column
    hashed: Numbers
    owner: Places
    mode: Places
    mtime: Numbers
    blocks: Places
    block: Places
    """The first block's id; the others follow."""
    stamp: Places
    length: Numbers
    """Bytes in the last block; those before it are full."""
    is_open: Flags
    client: Places
    acl: Places
    xattrs: Places
    quota: Flags


def traits(shape: Shape, position: Places) -> Traits:
    directory, number = shape.owner(position)
    is_file = number >= 0
    hashed = mixed(position, shape.seed)
    kind = (hashed & np.uint64(0x3F)).astype(np.int64)
    # Of 64 files 6 are empty, 48 have one block, 7 two and 3 three.
    blocks = np.select([kind < 6, kind < 54, kind < 61], [0, 1, 2], MOST_BLOCKS) * is_file
    rare = (hashed >> np.uint64(8) & np.uint64(0xFFFFFF)).astype(np.int64)
    one_in = rare % FEATURE_ONE_IN
    is_open = is_file & (rare % OPEN_ONE_IN == 77) & (blocks > 0)
    acl = np.where(one_in == 1, 1 + rare // FEATURE_ONE_IN % 2, 0)
    return Traits(
        ids=shape.id_of(position),
        is_file=is_file,
        names=shape.names(directory, number),
        hashed=hashed,
        owner=(mixed(directory, 7) % np.uint64(len(USERS))).astype(np.int64),
        mode=(hashed >> np.uint64(32) & np.uint64(3)).astype(np.int64),
        mtime=np.uint64(NOW - 2**37) + (hashed >> np.uint64(27)),
        blocks=blocks,
        block=FIRST_BLOCK + position * MOST_BLOCKS,
        stamp=FIRST_STAMP + position,
        length=np.uint64(1) + hashed % np.uint64(BLOCK_SIZE),
        is_open=is_open,
        client=rare // OPEN_ONE_IN % len(_OPEN_CLIENTS),
        acl=acl,
        xattrs=np.where(one_in == 2, 1 + rare // FEATURE_ONE_IN % 2, 0),
        quota=~is_file & ((rare % QUOTA_ONE_IN == 5) | (position == 0)),
    )


def permission_of(found: Traits, row: int) -> Permission:
    owner, mode = int(found.owner[row]), int(found.mode[row])
    modes = _FILE_MODES if found.is_file[row] else _DIRECTORY_MODES
    return Permission(USERS[owner], GROUPS[owner % len(GROUPS)], modes[mode])


def inode_messages(shape: Shape, strings: Strings, position: Places) -> Bytes:
    found = traits(shape, position)
    rows, is_file = len(position), found.is_file
    kind = np.where(is_file, pb.INode.FILE, pb.INode.DIRECTORY).astype(np.uint64)
    body = list(_attributes(strings, found))
    head = [
        constant(b"\x08", rows), varints(kind, 1),
        constant(b"\x10", rows), varints(found.ids.astype(np.uint64), 5),
        constant(b"\x1a", rows), varints(found.names.sizes.astype(np.uint64), 1), found.names,
        varints(np.where(is_file, 0x22, 0x2A).astype(np.uint64), 1),
    ]  # fmt: skip
    return joined(delimited([*head, *delimited(body, width=2)], width=2))


def _attributes(strings: Strings, found: Traits) -> Iterator[Column]:
    """Yield the fields of INodeFile or INodeDirectory, each at its place in both."""
    is_file, is_directory, rows = found.is_file, ~found.is_file, len(found.ids)
    index = np.where(is_file, 0, len(USERS)) + found.owner
    permissions = strings.permissions[index * len(_FILE_MODES) + found.mode]
    yield constant(b"\x08\x03\x10", rows, is_file)
    yield constant(b"\x08", rows, is_directory)
    yield varints(found.mtime, 6)
    yield constant(b"\x18", rows, is_file)
    yield varints(found.mtime + np.uint64(9), 6, is_file)
    yield constant(b"\x20", rows, is_file)
    yield varints(np.full(rows, BLOCK_SIZE, np.uint64), 4, is_file)
    yield from _quotas(found, is_directory)
    yield varints(np.where(is_file, 0x29, 0x21).astype(np.uint64), 1)
    yield fixed64(permissions)
    for number in range(MOST_BLOCKS):
        yield from _block(found, number)
    yield from _feature(b"\x3a", _OPEN.column(found.client), found.is_open)
    yield from _either(b"\x42", b"\x2a", strings.acls.column(found.acl), is_file, found.acl > 0)
    yield from _either(
        b"\x4a", b"\x32", strings.xattrs.column(found.xattrs), is_file, found.xattrs > 0
    )
    yield constant(b"\x50\x00\x58\x00", rows, is_file)


def _quotas(found: Traits, is_directory: Flags) -> Iterator[Column]:
    rows, is_root = len(found.ids), found.ids == ROOT_ID
    names = np.where(is_root, QUOTA_DONT_SET, NS_QUOTA).astype(np.uint64)
    space = np.where(is_root, np.uint64(_MASK_64), np.uint64(DS_QUOTA))
    for tag, quota in ((b"\x10", names), (b"\x18", space)):
        yield constant(tag, rows, is_directory)
        yield varints(np.where(found.quota, quota, np.uint64(_MASK_64)), 10, is_directory)


def _block(found: Traits, number: int) -> list[Column]:
    there = found.blocks > number
    size = np.where(found.blocks - 1 == number, found.length, np.uint64(BLOCK_SIZE))
    fields = [
        constant(b"\x08", len(there), there),
        varints((found.block + number).astype(np.uint64), 5, there),
        constant(b"\x10", len(there), there),
        varints(found.stamp.astype(np.uint64), 4, there),
        constant(b"\x18", len(there), there),
        varints(size, 4, there),
    ]
    sizes = total(fields).astype(np.uint64)
    return [constant(b"\x32", len(there), there), varints(sizes, 1, there), *fields]


def _either(
    file_tag: bytes, directory_tag: bytes, column: Column, is_file: Flags, there: Flags
) -> Iterator[Column]:
    """Yield a field that both kinds have, under different numbers."""
    yield constant(file_tag, len(there), there & is_file)
    yield constant(directory_tag, len(there), there & ~is_file)
    yield from _feature(b"", column, there)


def _feature(tag: bytes, column: Column, there: Flags) -> list[Column]:
    sizes = np.where(there, column.sizes, 0)
    size = varints(sizes.astype(np.uint64), 1, there)
    return [constant(tag, len(there), there), size, Column(column.data, sizes)]


def directory_entries(shape: Shape, begin: int, end: int) -> Bytes:
    """Return delimited DirEntry messages of the directories from ``begin`` to before ``end``."""
    return entries(shape, *_children(shape, begin, end))


def entries(shape: Shape, parents: Places, positions: Places) -> Bytes:
    """Return delimited DirEntry messages of these directories with these children."""
    directory, number = shape.owner(positions)
    names = shape.names(directory, number).data
    # Zeros behind a name sort before all else, as no name continues another with a byte 0x80.
    keys = (names ^ np.uint8(0x80)) * (names != 0)
    words = np.ascontiguousarray(keys).view(">u8")
    order = np.lexsort((*reversed(words.T), parents))
    parents, ids = parents[order], shape.id_of(positions[order])
    first = np.flatnonzero(np.diff(parents, prepend=-1))
    child = varints(ids.astype(np.uint64), 5)
    packed = np.add.reduceat(child.sizes, first).astype(np.uint64) if len(first) else first
    above = shape.id_of(shape.place[parents[first]])
    rows = len(first)
    head = [constant(b"\x08", rows), varints(above.astype(np.uint64), 5),
            constant(b"\x12", rows), varints(packed.astype(np.uint64), 5)]  # fmt: skip
    size = (total(head) + packed.astype(np.int64)).astype(np.uint64)
    head = [varints(size, 5), *head]
    return _interleaved(joined(head), total(head), child, first)


def _children(shape: Shape, begin: int, end: int) -> tuple[Places, Places]:
    files = shape.files[begin:end]
    of_files = np.repeat(np.arange(begin, end), files)
    starts = np.repeat(shape.place[begin:end] + 1 - np.cumsum(files) + files, files)
    first, last = shape.first_child[begin], shape.first_child[end]
    below = shape.by_parent[first:last]
    parents = np.concatenate((of_files, shape.parent[below]))
    return parents, np.concatenate((starts + np.arange(len(of_files)), shape.place[below]))


def _interleaved(heads: Bytes, sizes: Places, child: Column, first: Places) -> Bytes:
    """Put each head before the children that begin at its ``first``."""
    rows = len(child.sizes) + len(first)
    width = max(int(sizes.max(initial=1)), child.data.shape[1])
    data = np.zeros((rows, width), np.uint8)
    lengths = np.empty(rows, np.int64)
    is_head = np.zeros(rows, np.bool_)
    is_head[first + np.arange(len(first))] = True
    line = np.zeros((len(first), width), np.uint8)
    line[np.arange(width) < sizes[:, None]] = heads
    data[is_head] = line
    data[~is_head, : child.data.shape[1]] = child.data
    lengths[is_head], lengths[~is_head] = sizes, child.sizes
    return joined([Column(data, lengths)])
