"""Whether two images hold the same, found out in little memory and without the merge's own code.

Two programs number strings differently and write in another order.  So each inode's message is
hashed with its string numbers replaced by the strings themselves, and the hashes are added up: no
order counts, and nothing else is left out.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from namenode_sim.image.container import Section, read_summary
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.strings import Strings, read_strings
from tests.worlds.large.rows import Numbers, mixed

CHUNK_BYTES: Final = 2 * 1024 * 1024
"""What numpy makes of them stays in the cache: larger ones take twice the time."""
_SEEDS: Final = (11, 12)
"""Two sums of 64 bits each."""
_FILE, _DIRECTORY = 1, 2
_SMALL: Final = ("NS_INFO", "ERASURE_CODING", "SNAPSHOT", "SECRET_MANAGER", "CACHE_MANAGER")

Positions = NDArray[np.int64]
Octets = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Content:
    """What an image holds, order and numbering left out."""

    inodes: int
    last_inode_id: int
    inode_sums: tuple[int, ...]
    entries: int
    entry_sums: tuple[int, ...]
    open_files: frozenset[tuple[int, str]]
    small: tuple[bytes, ...]

    def differences(self, other: "Content") -> list[str]:
        return [name for name in self.__slots__ if getattr(self, name) != getattr(other, name)]


def content_of(path: Path) -> Content:
    """Read an image through; it must be plain, and have no snapshots."""
    with path.open("rb") as file:
        sections = ImageSections(file)
        with sections.open("STRING_TABLE") as messages:
            strings = read_strings(messages, {})
        small = []
        for name in _SMALL:
            with sections.open(name) as messages:
                small.append(b"".join(messages))
        with sections.open("FILES_UNDERCONSTRUCTION") as messages:
            parsed = [pb.FileUnderConstructionEntry.FromString(raw) for raw in messages]
        file.seek(0)
        summary = read_summary(file)
        inode_sums, inodes = np.zeros(len(_SEEDS), np.uint64), 0
        header = pb.INodeSection()
        for data, starts, ends in _chunks(path, summary.find("INODE")):
            if not inodes and not header.numInodes:
                header = pb.INodeSection.FromString(data[starts[0] : ends[0]].tobytes())
                starts, ends = starts[1:], ends[1:]
            inode_sums += _inode_sums(data, starts, ends, strings)
            inodes += len(starts)
        entry_sums, entries = np.zeros(len(_SEEDS), np.uint64), 0
        for data, starts, ends in _chunks(path, summary.find("INODE_DIR")):
            entry_sums += _sums(data, starts, ends, np.zeros(len(starts), np.uint64))
            entries += len(starts)
    if header.numInodes != inodes:
        raise ValueError(f"{path} announces {header.numInodes} inodes and has {inodes}")
    return Content(
        inodes=inodes,
        last_inode_id=header.lastInodeId,
        inode_sums=tuple(inode_sums.tolist()),
        entries=entries,
        entry_sums=tuple(entry_sums.tolist()),
        open_files=frozenset((each.inodeId, each.fullPath) for each in parsed),
        small=tuple(small),
    )


def spelled(path: Path, wanted: Container[int] | None = None) -> dict[int, str]:
    """Return what an image says of these inodes, or of all, without numbers of strings."""
    found = dict[int, str]()
    with path.open("rb") as file, ImageSections(file).open("STRING_TABLE") as messages:
        strings = read_strings(messages, {})
    for raw, number in _with_numbers(path, "INODE", at=2, wanted=wanted, headers=1):
        found[number] = _spelled(pb.INode.FromString(raw), strings)
    return found


def children(path: Path, wanted: Container[int] | None = None) -> dict[int, set[int]]:
    """Return the ids of what is in these directories of an image, or in all."""
    entry = pb.DirEntry
    return {
        number: set(entry.FromString(raw).children)
        for raw, number in _with_numbers(path, "INODE_DIR", at=0, wanted=wanted)
    }


def _with_numbers(
    path: Path, name: str, *, at: int, wanted: Container[int] | None, headers: int = 0
) -> Iterator[tuple[bytes, int]]:
    """Yield the messages behind a section's headers, by the number whose field begins at ``at``."""
    with path.open("rb") as file:
        section = read_summary(file).find(name)
    for data, starts, ends in _chunks(path, section):
        starts, ends, headers = starts[headers:], ends[headers:], 0
        numbers = _varint(data, starts + at + 1)
        for number, begin, end in zip(
            numbers.tolist(), starts.tolist(), ends.tolist(), strict=True
        ):
            if wanted is None or number in wanted:
                yield data[begin:end].tobytes(), number


def _varint(data: Octets, at: Positions) -> Positions:
    """Return the numbers of at most five bytes that begin at each place."""
    found, more = np.zeros(len(at), np.int64), np.ones(len(at), np.bool_)
    for index in range(5):
        octets = data[np.minimum(at + index, len(data) - 1)].astype(np.int64)
        found |= np.where(more, (octets & 0x7F) << 7 * index, 0)
        more &= octets >= 0x80
    return found


def _chunks(path: Path, section: Section | None) -> Iterator[tuple[Octets, Positions, Positions]]:
    """Yield whole messages: a buffer, where each begins and where it ends."""
    if section is None:
        return
    at, end = section.offset, section.offset + section.length
    size = CHUNK_BYTES
    with path.open("rb") as file:
        while at < end:
            file.seek(at)
            data = file.read(min(size, end - at))
            starts, ends = _whole(data)
            if not starts:
                size *= 2  # one message is larger than all that
                continue
            size = CHUNK_BYTES
            at += ends[-1]
            padded = np.frombuffer(data + bytes(16), np.uint8)
            yield padded, np.array(starts, np.int64), np.array(ends, np.int64)


def _whole(data: bytes) -> tuple[list[int], list[int]]:
    starts, ends, at, size = list[int](), list[int](), 0, len(data)
    while at < size:
        length, begin, shift = data[at], at + 1, 7
        if length > 0x7F:
            length &= 0x7F
            while begin < size:
                byte = data[begin]
                length |= (byte & 0x7F) << shift
                begin, shift = begin + 1, shift + 7
                if byte < 0x80:
                    break
            else:
                break
        if begin + length > size:
            break
        at = begin + length
        starts.append(begin)
        ends.append(at)
    return starts, ends


def _sums(data: Octets, starts: Positions, ends: Positions, extra: Numbers) -> Numbers:
    """Add up the hash of each message, and of something more that belongs to it."""
    lengths = ends - starts
    there = lengths > 0
    begins = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    within = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(begins, lengths)
    octets = data[within + np.repeat(starts, lengths)].astype(np.uint64) + np.uint64(1)
    found = []
    for seed in _SEEDS:
        factors = mixed(np.arange(int(lengths.max(initial=0))), seed) | np.uint64(1)
        sums = np.zeros(len(starts), np.uint64)
        sums[there] = np.add.reduceat(octets * factors[within], begins[there])
        sums += lengths.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + extra
        found.append(np.add.reduce(mixed(sums.view(np.int64), seed)))
    return np.array(found, np.uint64)


def _inode_sums(data: Octets, starts: Positions, ends: Positions, strings: Strings) -> Numbers:
    """Count the permission's string numbers by their strings; rare messages are parsed."""
    data = data.copy()
    place, plain = _permissions(data, starts, ends)
    found = np.zeros(len(_SEEDS), np.uint64)
    at = place[plain]
    rows = at[:, None] + np.arange(8)
    permissions = data[rows].view("<u8").reshape(-1)
    names = {value: hash_of(str(strings.owner(value))) for value in np.unique(permissions).tolist()}
    table = np.array(sorted(names), np.uint64)
    hashes = np.array([names[value] for value in table.tolist()], np.uint64)
    data[rows] = 0
    extra = hashes[np.searchsorted(table, permissions)] if len(at) else np.zeros(0, np.uint64)
    found += _sums(data, starts[plain], ends[plain], extra)
    for begin, end in zip(starts[~plain].tolist(), ends[~plain].tolist(), strict=True):
        text = _spelled(pb.INode.FromString(data[begin:end].tobytes()), strings)
        found += np.array([hash_of(f"{seed} {text}") for seed in _SEEDS], np.uint64)
    return found


def hash_of(text: str) -> int:
    """Hash a text to 64 bits, the same in every process."""
    from hashlib import blake2b

    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _spelled(node: pb.INode, strings: Strings) -> str:
    kind = node.file if node.HasField("file") else node.directory
    permission, told = strings.owner(kind.permission), []
    kind.permission = 0
    for entry in kind.acl.entries:
        told.append(str(strings.acl_entry(entry)))
    for xattr in kind.xAttrs.xAttrs:
        told.append(str(strings.xattr(xattr.name, xattr.value)))
    kind.ClearField("acl")
    kind.ClearField("xAttrs")
    return f"{permission} {told} {node.SerializeToString()!r}"


def _permissions(
    data: Octets, starts: Positions, ends: Positions
) -> tuple[Positions, NDArray[np.bool_]]:
    """Find the permission in each message, and whether it has no other number of a string.

    Steps over fields of all messages at once, in the order of their numbers.
    """
    at, last = starts.copy(), ends - 1
    at = _behind_varint(data, at + 1)  # the type
    at = _behind_varint(data, at + 1)  # the id
    size, at = _size(data, at + 1, last)  # the name
    at = at + size
    is_file = data[np.minimum(at, last)] == 0x22
    _, at = _size(data, at + 1, last)
    for _ in range(5):
        tag = data[np.minimum(at, last)]
        number = (tag & 7 == 0) & (at < ends)
        at = np.where(number, _behind_varint(data, np.minimum(at + 1, last)), at)
    tag = data[np.minimum(at, last)]
    plain = (at + 9 <= ends) & (tag == np.where(is_file, 0x29, 0x21))
    place = at + 1
    at = at + 9
    for _ in range(6):  # blocks, then who writes it
        more = plain & (at < ends)
        tag = data[np.minimum(at, last)]
        step = more & is_file & ((tag == 0x32) | (tag == 0x3A))
        size, behind = _size(data, np.minimum(at + 1, last), last)
        at = np.where(step, behind + size, at)
    tag = data[np.minimum(at, last)]
    # What follows is the storage policy, or nothing; all else may have numbers of strings.
    plain &= np.where(is_file, tag == 0x50, at == ends)
    return place, plain


def _behind_varint(data: Octets, at: Positions) -> Positions:
    for _ in range(10):
        more = data[at] >= 0x80
        if not more.any():
            break
        at = np.minimum(at + more, len(data) - 2)
    return at + 1


def _size(data: Octets, at: Positions, last: Positions) -> tuple[Positions, Positions]:
    """Read a length of one byte or two, and where it ends."""
    first = data[at].astype(np.int64)
    second = data[np.minimum(at + 1, last)].astype(np.int64)
    long = first >= 0x80
    return np.where(long, (first & 0x7F) | second << 7, first), at + 1 + long
