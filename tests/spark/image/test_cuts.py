"""Cutting sections in the middle: guesses where messages begin, and the proof of each."""

import random
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from namenode_sim.edits.attributes import delimited
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from spark.engine.outcome import InlineEngine
from spark.image.messages import BadPrefix, chunks
from spark.image.proof import prove
from spark.image.ranges import ImageRange, cut, read_window
from spark.image.sync import next_directory, next_inode


def trap(number: int) -> bytes:
    """Make an inode whose file looks like a symlink by replication 3 and a time.

    They are its type and id.  The byte before the file is its length, so that it ends where an
    inode would, too.
    """
    message = pb.INode(type=pb.INode.FILE, id=number, name=b"f%d" % number)
    message.file.replication = 3
    message.file.modificationTime = 1_700_000_000_000 + number
    # Seen as a symlink's name: a length that fits too.
    message.file.accessTime = 1
    message.file.preferredBlockSize = 5
    return delimited(message.SerializeToString())


def ordinary(number: int, rng: random.Random) -> bytes:
    message = pb.INode(type=pb.INode.FILE, id=number, name=b"n" * rng.randrange(1, 200))
    message.file.replication = 3
    message.file.modificationTime = rng.randrange(2**41)
    for _ in range(rng.choice([0, 1, 1, 2, 40])):
        message.file.blocks.add(blockId=rng.randrange(2**50), genStamp=rng.randrange(2**20))
    return delimited(message.SerializeToString())


def directory(number: int, rng: random.Random) -> bytes:
    ids = [rng.randrange(2**30) for _ in range(rng.choice([1, 2, 8, 8, 300, 5000]))]
    references = [rng.randrange(300)] * rng.choice([0, 0, 3])
    entry = pb.DirEntry(parent=number, children=ids, refChildren=references)
    return delimited(entry.SerializeToString())


def boundaries(parts: list[bytes]) -> set[int]:
    found, at = {0}, 0
    for part in parts:
        at += len(part)
        found.add(at)
    return found


def test_no_inode_is_found_inside_another() -> None:
    parts = [trap(n) for n in range(16_385, 16_785)]
    data, true = b"".join(parts), boundaries(parts)
    for start in range(1, len(data) - 300, 7):
        found = next_inode(data[start:], at_end=True)
        assert found is not None
        assert start + found in true, f"from byte {start} on"
        assert found <= len(parts[-1]) + 2, "the very next one is found"


@pytest.mark.parametrize("seed", range(3))
def test_inodes_and_directories_are_found_where_they_begin(seed: int) -> None:
    rng = random.Random(seed)
    for make, search in ((ordinary, next_inode), (directory, next_directory)):
        parts = [make(rng.randrange(2**20, 2**22), rng) for _ in range(300)]
        data, true = b"".join(parts), boundaries(parts)
        for _ in range(150):
            start = rng.randrange(1, len(data) - 1)
            found = search(data[start:], at_end=True)
            assert found is None or start + found in true


def test_nothing_is_found_where_nothing_is() -> None:
    assert next_inode(b"\xff" * 10_000, at_end=True) is None
    assert next_inode(b"", at_end=True) is None
    assert next_directory(bytes(10_000), at_end=False) is None


@dataclass(frozen=True, slots=True)
class Counted:
    """How many messages a range holds, and where they end."""

    ended: int
    broken: str
    count: int


def count(item: ImageRange) -> Counted:
    window = read_window(item)
    ended = total = 0
    try:
        for chunk in chunks(window, 0, window.size):
            ended, total = int(chunk.ends[-1]), total + chunk.ends.size
    except BadPrefix as problem:
        return Counted(0, f"byte {item.offset + problem.position}: {problem}", 0)
    return Counted(item.offset + ended, "", total)


def written(tmp_path: Path, seed: int, messages: int) -> tuple[Path, set[int]]:
    rng = random.Random(seed)
    parts = [ordinary(16385 + n, rng) for n in range(messages)]
    path = tmp_path / "section"
    path.write_bytes(b"0123456789" + b"".join(parts))
    return path, {10 + at for at in boundaries(parts)}


def test_ranges_are_true_and_cover_all(tmp_path: Path) -> None:
    path, true = written(tmp_path, 1, 3000)
    ranges = list(cut(str(path), "INODE", 10, path.stat().st_size, 20_000, 0))
    assert len(ranges) > 5
    assert [item.number for item in ranges] == list(range(len(ranges)))
    assert {item.offset for item in ranges} <= true
    found = prove(InlineEngine(), "count", count, ranges, lambda item: item)
    assert [done.item for done in found] == ranges
    assert sum(done.result.count for done in found) == 3000


@pytest.mark.parametrize("shift", [1, 3, 57, 400])
def test_a_wrong_guess_is_put_right(tmp_path: Path, shift: int) -> None:
    path, true = written(tmp_path, 2, 2000)
    end = path.stat().st_size
    good = list(cut(str(path), "INODE", 10, end, 20_000, 0))
    edges = [
        good[0].offset,
        *(item.offset + shift * (n % 3) for n, item in enumerate(good[1:])),
        end,
    ]
    wrong = [
        ImageRange(n, "INODE", str(path), at, to - at, to == end)
        for n, (at, to) in enumerate(pairwise(edges))
    ]
    found = prove(InlineEngine(), "count", count, wrong, lambda item: item)
    assert {done.item.offset for done in found} <= true
    assert sum(done.result.count for done in found) == 2000
    assert sum(done.item.length for done in found) == end - 10


def test_guesses_inside_one_huge_message_vanish(tmp_path: Path) -> None:
    path = tmp_path / "section"
    huge = delimited(bytes(50_000))
    path.write_bytes(huge + delimited(b"x"))
    end = len(huge) + 2
    wrong = [
        ImageRange(n, "INODE", str(path), at, to - at, to == end)
        for n, (at, to) in enumerate([(0, 1000), (1000, 9000), (9000, 40_000), (40_000, end)])
    ]
    found = prove(InlineEngine(), "count", count, wrong, lambda item: item)
    assert [(done.item.offset, done.item.end) for done in found] == [
        (0, len(huge)),
        (len(huge), end),
    ]


def test_a_section_that_ends_inside_a_message_is_damaged(tmp_path: Path) -> None:
    path, _ = written(tmp_path, 3, 2000)
    ranges = list(cut(str(path), "INODE", 10, path.stat().st_size - 3, 20_000, 0))
    with pytest.raises(ImageError, match=r"section INODE, byte \d+ of the file: it ends inside"):
        prove(InlineEngine(), "count", count, ranges, lambda item: item)
