"""What an edit changes about blocks, for a map of them that is kept next to the namespace.

A watched namespace compares, after each edit, what the files that the edit touched held before with
what they hold now.  The changes are the difference, so that no edit can forget one.

See docs/reference/blocks.md#changes-of-blocks.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ha.record import dataclass, field, record
from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.inode_map import InodeMap


@record
class BlockAdded:
    """A block came into being.  ``expected`` is how many replicas it is to have."""

    file_id: int
    block_id: int
    length: int
    stamp: int
    expected: int
    complete: bool


@record
class BlockSettled:
    """A block has another length or stamp than before, or was completed or reopened."""

    block_id: int
    length: int
    stamp: int
    complete: bool


@record
class BlockCut:
    """A block is to be cut to a length, and then has a stamp that no edit has shown in a block.

    It was reopened, or it is new and gets the beginning of another one, ``source_id``.
    """

    block_id: int
    length: int
    stamp: int
    source_id: int


@record
class BlocksGone:
    """No file and no snapshot holds these blocks any more."""

    block_ids: tuple[int, ...]


@record
class BlocksMoved:
    """Blocks belong to another file, which may want another number of replicas."""

    block_ids: tuple[int, ...]
    file_id: int
    expected: int


@record
class ReplicationSet:
    """Blocks are to have another number of replicas."""

    block_ids: tuple[int, ...]
    expected: int


@record
class StampGiven:
    """A generation stamp was given out; no block need have it yet."""

    stamp: int


@record
class BlockIdGiven:
    """A block id was given out; no file need have it yet."""

    block_id: int


BlockChange = (
    BlockAdded
    | BlockSettled
    | BlockCut
    | BlocksGone
    | BlocksMoved
    | ReplicationSet
    | StampGiven
    | BlockIdGiven
)


class Held(NamedTuple):
    """One block as a file holds it; ``growing`` is true of all blocks of an open file."""

    file_id: int
    length: int
    stamp: int
    complete: bool
    growing: bool


class _Holding(NamedTuple):
    """What a file and its snapshots held: packed lists, the current one first."""

    blocks: bytes = b""
    kept: tuple[bytes, ...] = ()
    is_open: bool = False
    expected: int = 0


_NOTHING = _Holding()


def expected_replication(file: INodeFile) -> int:
    """Return the largest replication of a file and its snapshots; if deleted, of the latter.

    0 for a striped file: its groups are not replicated.
    """
    if file.history is None:
        return file.replication
    copies = [diff.copy.replication for diff in file.history.diffs if diff.copy is not None]
    if file.history.deleted and copies:
        return max(copies)
    return max(file.replication, *copies) if copies else file.replication


def blocks_held(file: INodeFile) -> Iterator[tuple[int, Held]]:
    """Yield each block that a file or a snapshot of it holds, once.

    All are complete but the last one of an open file.
    """
    return _held_blocks(file.id, _holding(file), 0)


def _holding(file: INodeFile) -> _Holding:
    diffs = file.history.diffs if file.history is not None else ()
    kept = tuple(diff.packed_blocks for diff in diffs if diff.packed_blocks is not None)
    is_open = file.under_construction is not None
    return _Holding(file.packed_blocks, kept, is_open, expected_replication(file))


def _held_blocks(file_id: int, holding: _Holding, start: int) -> Iterator[tuple[int, Held]]:
    """Yield the blocks from an offset in the current list on, then those only snapshots have."""
    size = PACKED_BLOCK.size
    last = len(holding.blocks) - size
    offset = start
    for number, length, stamp in PACKED_BLOCK.iter_unpack(holding.blocks[start:]):
        complete = offset != last or not holding.is_open
        yield number, Held(file_id, length, stamp, complete, holding.is_open)
        offset += size
    if not holding.kept:
        return
    seen = {number for number, _, _ in PACKED_BLOCK.iter_unpack(holding.blocks)}
    for packed in holding.kept:
        for number, length, stamp in PACKED_BLOCK.iter_unpack(packed):
            if number not in seen:
                seen.add(number)
                yield number, Held(file_id, length, stamp, complete=True, growing=False)


def _same_front(before: _Holding, after: _Holding) -> int:
    """Return up to which offset current lists are alike: only their ends are compared.

    The last block of either may be incomplete, and is not in it.
    """
    front = max(0, min(len(before.blocks), len(after.blocks)) - PACKED_BLOCK.size)
    return front if before.blocks[:front] == after.blocks[:front] else 0


@dataclass(slots=True, eq=False)
class BlockWatch:
    """Notes what files held before an edit touched them.

    Whatever changes a file's blocks, its being open, its replication or its snapshots calls
    ``touch`` first; ``take`` gives the changes of the edit.
    """

    _before: dict[int, tuple[INodeFile, _Holding]] = field(default_factory=dict)
    _dropped: list[bytes] = field(default_factory=list)
    _told: list[BlockChange] = field(default_factory=list)

    def touch(self, file: INodeFile) -> None:
        """Note what a file holds, unless this edit has touched it before."""
        if file.id not in self._before:
            self._before[file.id] = (file, _holding(file))

    def create(self, file: INodeFile) -> None:
        self._before.setdefault(file.id, (file, _NOTHING))

    def drop(self, file: INodeFile) -> None:
        """Note that a file goes; a whole tree of files may."""
        if file.id not in self._before:
            if file.history is None:
                self._dropped.append(file.packed_blocks)
            else:
                self.touch(file)

    def tell(self, change: BlockChange) -> None:
        """Note a change that no file shows."""
        self._told.append(change)

    def take(self, inodes: InodeMap) -> tuple[BlockChange, ...]:
        """Return the changes since the last call; ``inodes`` are those that there are now."""
        if not (self._before or self._dropped or self._told):
            return ()
        changes = (*self._differences(inodes), *self._told)
        self._before.clear()
        self._dropped.clear()
        self._told.clear()
        return changes

    def _differences(self, inodes: InodeMap) -> Iterator[BlockChange]:
        before: dict[int, Held] = {}
        after: dict[int, Held] = {}
        wanted: dict[int, int] = {}
        replications: list[ReplicationSet] = []
        for number, (file, was) in self._before.items():
            now = _holding(file) if inodes.get(number) is file else _NOTHING
            front = _same_front(was, now)
            before.update(_held_blocks(number, was, front))
            after.update(_held_blocks(number, now, front))
            wanted[number] = now.expected
            if now.expected != was.expected:
                held_before = {block for block, _ in _held_blocks(number, was, 0)}
                held_now = _held_blocks(number, now, 0)
                ids = tuple(block for block, _ in held_now if block in held_before)
                replications += [ReplicationSet(ids, now.expected)] if ids else []
        gone = [number for number in before if number not in after]
        for packed in self._dropped:
            gone += [number for number, _, _ in PACKED_BLOCK.iter_unpack(packed)]
        if gone:
            yield BlocksGone(tuple(gone))
        yield from _moves(before, after, wanted)
        for number, held in after.items():
            was_held = before.get(number)
            if was_held is None:
                yield BlockAdded(
                    held.file_id,
                    number,
                    held.length,
                    held.stamp,
                    wanted[held.file_id],
                    held.complete,
                )
            else:
                # A block that becomes an open file's last again, as the one behind it was given
                # up, stays complete.
                complete = held.complete or (was_held.complete and was_held.growing)
                was_so = was_held.length, was_held.stamp, was_held.complete
                if (held.length, held.stamp, complete) != was_so:
                    yield BlockSettled(number, held.length, held.stamp, complete)
        yield from replications


def _moves(
    before: Mapping[int, Held], after: Mapping[int, Held], wanted: Mapping[int, int]
) -> Iterator[BlocksMoved]:
    moved: dict[int, list[int]] = {}
    for number, held in after.items():
        was = before.get(number)
        if was is not None and was.file_id != held.file_id:
            moved.setdefault(held.file_id, []).append(number)
    for file_id, numbers in moved.items():
        yield BlocksMoved(tuple(numbers), file_id, wanted[file_id])
