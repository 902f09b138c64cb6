"""A day's edits on a generated image, of any length, every one of which succeeds there.

As a program (``python -m tests.worlds.large.edits FOLDER --inodes 1m --ops 100k``) it
writes segments into ``FOLDER`` that follow the image of that size.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import click

from journal.frame import file_header
from journal.model import TxId
from namenode_sim.edits import ops, values
from namenode_sim.edits.codec import encode
from namenode_sim.edits.ops import Op
from tests.worlds.large.images import LAST_TXID, LAYOUT, how_many, small_state
from tests.worlds.large.inodes import BLOCK_SIZE, GROUPS, NOW, USERS
from tests.worlds.large.shape import Shape
from tests.worlds.large.touched import File, Folder, Touched, large_tree

LARGE_TREE: Final = 0.03
"""Of all inodes, that one delete removes."""
_SMALL_TREE: Final = 50
"""Inodes that an ordinary delete of a directory removes at most."""
_MOVED_SHARE: Final = 0.01
_CLIENT: Final = "DFSClient_attempt_1700000000000_0001_m"
_FAR: Final = 4_000_000_000_000


class Day:
    """Writes edits, and knows what they have changed."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape, self.random = shape, Random(seed)
        self.touched = Touched(shape, seed)
        counters = small_state(shape, LAST_TXID).counters
        self.inode, self.block = counters.last_inode_id, counters.last_block_id
        self.stamp, self.now, self.made = counters.generation_stamp_v2, NOW, 0
        self.files: list[File] = []
        """Files that edits were about and that may still be there."""
        self.folders: list[Folder] = []
        self.left: list[tuple[Folder, str]] = []
        """Names that have become free."""

    def rpc(self) -> values.RpcIds:
        self.made += 1
        return values.RpcIds((self.made % 997).to_bytes(16, "big"), self.made)

    def who(self) -> values.Permission:
        owner = self.random.randrange(len(USERS))
        return values.Permission(USERS[owner], GROUPS[owner % len(GROUPS)], 0o644)

    def folder(self) -> Folder:
        """Return where something is to happen: mostly in a directory of the image."""
        if self.folders and self.random.random() < 0.2:
            folder = self.random.choice(self.folders[-200:])
            if folder.alive():
                return folder
        return self.touched.any_folder()

    def file(self) -> File:
        """Return a closed file: one from the image, or one that edits were about before."""
        if self.files and self.random.random() < 0.3:
            file = self.files.pop(self.random.randrange(len(self.files)))
            if file.folder.alive():
                return file
        first, *others = self.touched.fresh_files()
        self.files += others
        return first

    def new_name(self) -> tuple[Folder, str]:
        """Return a place where nothing is; perhaps something was."""
        if self.left and self.random.random() < 0.5:
            folder, name = self.left.pop()
            if folder.alive():
                return folder, name
        self.made += 1
        kind = self.random.choice(("part-", "résultat-", "_temporary-"))
        return self.folder(), f"{kind}{self.made}"


Deed = Callable[[Day], Iterator[Op]]


def write(day: Day) -> Iterator[Op]:
    """Write a file, with one block or two."""
    folder, name = day.new_name()
    yield from _written(day, folder, name, overwrite=False)


def overwrite(day: Day) -> Iterator[Op]:
    """Write a file in the place of another."""
    old = day.file()
    yield from _written(day, old.folder, old.name, overwrite=True)


def _written(day: Day, folder: Folder, name: str, *, overwrite: bool) -> Iterator[Op]:
    file = File(folder, name, (), day.who())
    path, now, client = file.path(), day.now, f"{_CLIENT}_{day.inode % 500}"
    day.inode += 1
    yield ops.Add(day.inode, path, 3, now, now, BLOCK_SIZE, (), file.permission, (), (), client,
                  "10.1.2.3", overwrite, 0, 0, day.rpc())  # fmt: skip
    last: values.Block | None = None
    for _ in range(day.random.choice((1, 1, 1, 2))):
        full = (
            None if last is None else values.Block(last.block_id, BLOCK_SIZE, last.generation_stamp)
        )
        yield from _allocated(day)
        last = values.Block(day.block, 0, day.stamp)
        file.blocks = (*file.blocks[:-1], *((full,) if full else ()), last)
        yield ops.AddBlock(path, full, last)
    yield from _closed(day, file)
    day.files.append(file)


def _allocated(day: Day) -> Iterator[Op]:
    day.block += 1
    day.stamp += 1
    yield ops.AllocateBlockId(day.block)
    yield ops.SetGenstampV2(day.stamp)


def _closed(day: Day, file: File) -> Iterator[Op]:
    if file.blocks:
        *before, last = file.blocks
        size = max(last.num_bytes, 1 + day.random.randrange(BLOCK_SIZE))
        file.blocks = (*before, values.Block(last.block_id, size, last.generation_stamp))
    yield ops.Close(0, file.path(), 3, day.now, day.now, BLOCK_SIZE, file.blocks, file.permission)


def append(day: Day) -> Iterator[Op]:
    file = day.file()
    yield ops.Append(file.path(), _CLIENT, "10.1.2.4", False, day.rpc())
    if file.blocks and day.random.random() < 0.5:
        *before, last = file.blocks
        yield ops.SetGenstampV2(day.stamp + 1)
        day.stamp += 1
        file.blocks = (*before, values.Block(last.block_id, last.num_bytes, day.stamp))
        yield ops.UpdateBlocks(file.path(), file.blocks, day.rpc())
    yield from _closed(day, file)
    day.files.append(file)


def truncate(day: Day) -> Iterator[Op]:
    """Cut a file between two blocks."""
    file = day.file()
    file.blocks = file.blocks[:-1]
    length = sum(block.num_bytes for block in file.blocks)
    yield ops.Truncate(file.path(), _CLIENT, "10.1.2.4", length, day.now)


def concat(day: Day) -> Iterator[Op]:
    target, *sources = day.touched.fresh_files()
    sources = [source for source in sources if source.blocks]
    if target.blocks and sources:
        yield ops.ConcatDelete(
            target.path(), tuple(source.path() for source in sources), day.now, day.rpc()
        )
        day.left += [(source.folder, source.name) for source in sources]


def move(day: Day) -> Iterator[Op]:
    """Move a file to another directory, or rename it, or let it take another's place."""
    file, options = day.file(), (values.RenameOption.NONE,)
    source = file.path()
    if day.random.random() < 0.15:
        other = day.file()
        folder, name = other.folder, other.name
        options = (values.RenameOption.OVERWRITE,)
    else:
        folder, name = day.new_name()
    day.left.append((file.folder, file.name))
    file.folder, file.name = folder, name
    if day.random.random() < 0.1 and options[0] is values.RenameOption.NONE:
        yield ops.RenameOld(source, file.path(), day.now, day.rpc())
    else:
        yield ops.Rename(source, file.path(), day.now, options, day.rpc())
    day.files.append(file)


def remove(day: Day) -> Iterator[Op]:
    """Delete a file; sometimes one that is not there."""
    if day.random.random() < 0.02:
        yield ops.Delete(f"{day.folder().path()}/never was", day.now, day.rpc())
        return
    file = day.file()
    yield ops.Delete(file.path(), day.now, day.rpc())
    day.left.append((file.folder, file.name))


def mkdir(day: Day) -> Iterator[Op]:
    """Make a directory, and use it from then on."""
    folder, name = day.new_name()
    made = Folder(folder, name)
    day.inode += 1
    who = day.who()
    yield ops.Mkdir(
        day.inode, made.path(), day.now, day.now, values.Permission(who.user, who.group, 0o755)
    )
    day.folders.append(made)


def move_tree(day: Day) -> Iterator[Op]:
    tree, target = day.folder(), day.folder()
    inodes = 0 if tree.base < 0 else int(day.shape.below[tree.base])
    too_large = inodes > day.shape.inodes * _MOVED_SHARE
    if tree.above is None or too_large or tree in target.upwards():
        return
    source, old = tree.path(), (tree.above, tree.name)
    day.made += 1
    tree.above, tree.name = target, f"moved-{day.made}"
    yield ops.Rename(source, tree.path(), day.now, (values.RenameOption.NONE,), day.rpc())
    day.folders.append(tree)
    day.left.append(old)


def remove_tree(day: Day) -> Iterator[Op]:
    """Delete a directory with what little is in it."""
    tree = day.folder()
    if tree.above is not None and (tree.base < 0 or day.shape.below[tree.base] <= _SMALL_TREE):
        yield from _removed(day, tree)


def _removed(day: Day, tree: Folder) -> Iterator[Op]:
    yield ops.Delete(tree.path(), day.now, day.rpc())
    tree.gone = True
    if tree.above is not None:
        day.left.append((tree.above, tree.name))


def attribute(day: Day) -> Iterator[Op]:
    is_file = day.random.random() < 0.7
    file = day.file() if is_file else None
    path = file.path() if file else day.folder().path() or "/"
    xattr = values.XAttr(values.XAttrNamespace.USER, f"checked-{day.made % 9}", b"yes")
    acl = tuple(
        values.AclEntry(values.AclScope.ACCESS, kind, name, 5)
        for kind, name in (
            (values.AclType.USER, None),
            (values.AclType.USER, USERS[day.made % len(USERS)]),
            (values.AclType.GROUP, None),
            (values.AclType.MASK, None),
            (values.AclType.OTHER, None),
        )
    )
    choices: tuple[Op, ...] = (
        ops.SetPermissions(path, 0o750),
        ops.SetOwner(path, USERS[day.made % len(USERS)], f"team{day.made % 50}"),
        ops.Times(path, day.now, day.now - 1000),
        ops.Times(path, -1, day.now),
        ops.SetAcl(path, acl),
        ops.SetXAttr(path, (xattr,), day.rpc()),
        ops.SetStoragePolicy(path, 7),
        ops.SetReplication(path, 2),
    )
    yield day.random.choice(choices)
    if file is not None:
        day.files.append(file)


def quota(day: Day) -> Iterator[Op]:
    path = day.folder().path()
    if path:
        yield ops.SetQuota(path, 10**8, day.random.choice((-1, 10**16)))


def token(day: Day) -> Iterator[Op]:
    """Add a key and a token of it, and cancel the token when it is not needed any more."""
    day.made += 1
    number = day.made
    yield ops.UpdateMasterKey(values.DelegationKey(number, _FAR, number.to_bytes(8, "big")))
    held = values.DelegationTokenIdentifier("zoë", "yarn", "", day.now, _FAR, number, number)
    yield ops.GetDelegationToken(held, _FAR)
    if day.random.random() < 0.8:
        yield ops.RenewDelegationToken(held, _FAR - 1)
        yield ops.CancelDelegationToken(held)


DEEDS: Final[dict[Deed, int]] = {
    write: 30, overwrite: 4, append: 4, truncate: 1, concat: 2, move: 20, remove: 12, mkdir: 6,
    move_tree: 2, remove_tree: 2, attribute: 14, quota: 1, token: 1,
}  # fmt: skip
"""How often each happens, in hundredths."""


def edits_on(shape: Shape, count: int, seed: int = 1) -> Iterator[Op]:
    """Yield ``count`` edits without segments' marks; midway a ``LARGE_TREE`` share is deleted."""
    return edits_of(Day(shape, seed), count)


def edits_of(day: Day, count: int) -> Iterator[Op]:
    """Yield a day's edits; it knows afterwards what they touched."""
    deeds, weights = list(DEEDS), list(DEEDS.values())
    written, large = 0, False
    while written < count:
        day.now += day.random.randrange(20)
        if not large and written >= count // 2:
            tree = day.touched.folder(large_tree(day.shape, LARGE_TREE, day.random))
            done, large = list(_removed(day, tree)) if tree.alive() else [], True
        else:
            [deed] = day.random.choices(deeds, weights)
            done = list(deed(day))
        yield from done[: count - written]
        written += len(done)


def write_segments(
    folder: Path, edits: Iterable[Op], *, first: TxId, segments: int = 1, count: int = 0
) -> TxId:
    """Write finalized segments with these edits; return the last transaction.

    Args:
        folder: where to.
        edits: what happens; each segment's own begin and end come on top.
        first: the first transaction.
        segments: how many of about the same size.
        count: how many edits there are; needed for more than one segment.
    """
    rest, txid = iter(edits), int(first)
    per_segment = -(-count // segments) if segments > 1 else None
    for _ in range(segments):
        path, begin = folder / "edits_being_written", txid
        with path.open("wb", buffering=1 << 20) as file:
            file.write(file_header(LAYOUT))
            file.write(encode(ops.StartLogSegment(), TxId(txid), LAYOUT))
            for number, op in enumerate(rest, start=1):
                txid += 1
                file.write(encode(op, TxId(txid), LAYOUT))
                if number == per_segment:
                    break
            txid += 1
            file.write(encode(ops.EndLogSegment(), TxId(txid), LAYOUT))
        path.rename(folder / f"edits_{begin:019d}-{txid:019d}")
        txid += 1
    return TxId(txid - 1)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--inodes", default="1m", show_default=True, help="Of the image; 20000, 100k, 5m.")
@click.option("--ops", "count", default="100k", show_default=True, help="How many edits.")
@click.option("--segments", default=1, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Of the image and of the edits.")
def main(*, folder: Path, inodes: str, count: str, segments: int, seed: int) -> None:
    """Write segments that follow a generated image into FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    many, shape = how_many(count), Shape(how_many(inodes), seed)
    edits = edits_on(shape, many, seed)
    first = TxId(LAST_TXID + 1)
    click.echo(write_segments(folder, edits, first=first, segments=segments, count=many))


if __name__ == "__main__":
    main()
