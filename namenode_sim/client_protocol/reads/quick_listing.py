"""The usual page of a directory, written a column at a time and without a message for each file.

It is what ``reads.get_listing`` answers, byte for byte; where it is not sure of that it is None.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ha.rpc.frames import varint
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.reads import quick
from namenode_sim.client_protocol.reads.reads import page_of
from namenode_sim.client_protocol.words import permissions
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.status import status_of
from namenode_sim.namespace.file_numbers import HEAD_SIZE
from namenode_sim.namespace.inode import FileTraits, INode, INodeDirectory, INodeFile

Numbers = npt.NDArray[np.uint64]
Octets = npt.NDArray[np.uint8]
Sizes = npt.NDArray[np.int64]
Column = tuple[Octets, Sizes]
"""A piece of every row: of each line its first bytes, by the sizes."""

_ENTRY: Final = b"\x0a"
_FILE, _LENGTH = b"\x08\x02\x12", b"\x18"
_REMAINING, _LISTING = b"\x10", b"\x0a"
_TRAITS, _NUMBERS, _NAME = attrgetter("traits"), attrgetter("numbers"), attrgetter("name")
_SHIFTS: Final = np.arange(0, 70, 7, dtype=np.uint64)


def listing(scene: Scene, request: calls.GetListingRequestProto) -> bytes | None:
    """Return the answer to a request; None where it goes the usual way."""
    if request.needLocation or request.startAfter[:1] == b"/":
        return None
    namespace, caller = scene.namespace, scene.caller
    directory = quick.find(namespace, caller, request.src)
    if type(directory) is not INodeDirectory or directory.xattrs:  # of its files' policy, perhaps
        return None
    wanted = permissions.READ | permissions.EXECUTE
    if not caller.exempt and not permissions.allows(caller, directory, wanted):
        return None
    names, remaining = page_of(scene, directory.ordered_names(), request.startAfter)
    parts, nodes = list[bytes](), [directory.children[name] for name in names]
    key = _TRAITS if set(map(type, nodes)) == {INodeFile} else _traits_of
    for traits, alike in groupby(nodes, key):
        if traits is not None and quick.is_plain(traits):
            parts.append(_entries(list(alike), traits))
            continue
        for node in alike:
            status = status_of(namespace, node, node.name).SerializeToString()
            parts.append(_ENTRY + varint(len(status)) + status)
    page = b"".join((*parts, _REMAINING, varint(remaining)))
    return _LISTING + varint(len(page)) + page


def _traits_of(node: INode) -> FileTraits | None:
    return node.traits if isinstance(node, INodeFile) else None


def _entries(files: Sequence[Any], traits: FileTraits) -> bytes:
    """Return the entries of files with these traits, which differ in name and numbers alone."""
    packed, names = list(map(_NUMBERS, files)), list(map(_NAME, files))
    if len(set(map(len, packed))) == 1:
        numbers = np.frombuffer(b"".join(packed), ">u8").reshape(len(files), -1)
        lengths = numbers[:, 4::3].sum(axis=1, dtype=np.uint64)  # of each of their blocks
    else:
        heads = b"".join([one[:HEAD_SIZE] for one in packed])
        numbers = np.frombuffer(heads, ">u8").reshape(len(files), -1)
        lengths = np.array([file.length() for file in files], np.uint64)
    head, tail, policy = quick.parts_of(traits)
    sizes = np.fromiter(map(len, names), np.int64)
    text = np.array(names, f"S{sizes.max()}")
    columns: list[Column | bytes] = [
        _FILE, _varints(sizes.astype(np.uint64)),
        (text.view(np.uint8).reshape(len(names), -1), sizes),
        _LENGTH, _varints(lengths), head, _varints(numbers[:, 1]), quick.ATIME,
        _varints(numbers[:, 2]), tail, _varints(numbers[:, 0]),
        quick.NO_CHILDREN_AND_POLICY + policy,
    ]  # fmt: skip
    status = sum(len(one) if isinstance(one, bytes) else one[1] for one in columns)
    return _rows([_ENTRY, _varints(np.asarray(status, np.uint64)), *columns], len(files))


def _varints(numbers: Numbers) -> Column:
    """Return numbers as protobuf writes them: seven bits in each byte, the lowest first."""
    width = max(1, -(-int(numbers.max()).bit_length() // 7))
    shifted = numbers.astype(np.uint64)[:, None] >> _SHIFTS[:width]
    more = shifted >= 0x80
    data = shifted & 0x7F | more.astype(np.uint64) << np.uint64(7)
    return data.astype(np.uint8), more.sum(axis=1) + 1


def _rows(columns: Sequence[Column | bytes], count: int) -> bytes:
    """Return all rows behind each other; a column of bytes is the same in each row."""
    data, kept = list[Octets](), list[npt.NDArray[np.bool_]]()
    for column in columns:
        if isinstance(column, bytes):
            data.append(np.broadcast_to(np.frombuffer(column, np.uint8), (count, len(column))))
            kept.append(np.ones((count, len(column)), np.bool_))
        else:
            octets, sizes = column
            data.append(octets)
            kept.append(np.arange(octets.shape[1]) < sizes[:, None])
    return np.concatenate(data, axis=1)[np.concatenate(kept, axis=1)].tobytes()
