"""Deeds on a random namespace apart from single calls: trees that change places, and snapshots.

Each of these has once been a trap for a merge that does not hold the whole namespace.
"""

from typing import Final

from namenode_sim.edits import ops
from namenode_sim.edits.values import Block, RenameOption
from namenode_sim.namespace.inode import INode, INodeDirectory, full_path, subtree
from tests.worlds.author import BLOCK_SIZE, Author, Deed

PAST: Final = b"past"
"""The directory at the top that has snapshots."""
_NAMES: Final = ("a", "b", "part-", "é", "日報-", "\x7f", "Z", "zz", "😀", "été ")


def fill(author: Author, count: int) -> None:
    """Make a tree to begin with: directories at random below each other, files, some open."""
    random = author.random
    paths, counters = [""], author.namespace.counters
    for number in range(count):
        above = random.choice(paths[-random.choice((3, 50, len(paths))) :])
        path = f"{above}/{random.choice(_NAMES)}{number}"
        who, _ = author.creation(path, directory=False)
        author.now += 3
        if random.random() < 0.25 and path.count("/") < 12:
            author.write(ops.Mkdir(counters.last_inode_id + 1, path, author.now, author.now, who))
            paths.append(path)
            continue
        _written(author, path, author.block(striped=False), keep_open=random.random() < 0.05)


def _written(author: Author, path: str, block: Block, *, keep_open: bool) -> None:
    who, acl = author.creation(path, directory=False)
    number, now = author.namespace.counters.last_inode_id + 1, author.now
    author.write(ops.Add(number, path, 3, now, now, BLOCK_SIZE, (), who, acl, (), "w1", "host"))
    author.write(ops.AddBlock(path, None, block))
    if not keep_open:
        whole = (Block(block.block_id, 1 + now % BLOCK_SIZE, block.generation_stamp),)
        author.write(ops.Close(0, path, 3, now, now, BLOCK_SIZE, whole, who))


def plain_file(author: Author) -> None:
    path = author.new_path()
    if path is not None:
        block = author.block(striped=False)
        _written(author, path, block, keep_open=author.random.random() < 0.3)


def _directories(author: Author) -> list[INodeDirectory]:
    found = [node for node in author.nodes() if isinstance(node, INodeDirectory)]
    return [node for node in found if node.parent is not None]


def _is_above(one: INode, other: INode | None) -> bool:
    while other is not None and other is not one:
        other = other.parent
    return other is one


def _free(author: Author, parent: INodeDirectory) -> str:
    author.now += 1
    stem = author.random.choice(_NAMES)
    number = next(n for n in range(10_000) if f"{stem}{n}".encode() not in parent.children)
    return f"{full_path(parent).rstrip('/')}/{stem}{number}"


def _moved(author: Author, node: INode, path: str) -> None:
    author.write(ops.Rename(full_path(node), path, author.now, (RenameOption.NONE,)))


def into_each_other(author: Author) -> None:
    """Move one tree into another, which then takes the first one's old place."""
    directories = _directories(author)
    if len(directories) < 2:
        return
    one, other = author.random.sample(directories, 2)
    if _is_above(one, other) or _is_above(other, one):
        return
    old = full_path(one)
    _moved(author, one, _free(author, other))
    _moved(author, other, old)
    touch_below(author, other)


def touch_below(author: Author, top: INodeDirectory) -> None:
    """Change something in a tree, under the path that it has now."""
    node = author.random.choice(list(subtree(top)))
    author.write(ops.Times(full_path(node), author.now, -1))
    if isinstance(node, INodeDirectory):
        path = _free(author, node)
        who, acl = author.creation(path, directory=True)
        number = author.namespace.counters.last_inode_id + 1
        author.write(ops.Mkdir(number, path, author.now, author.now, who, acl))


def replaced(author: Author) -> None:
    """Delete a tree, but for what was moved out of it before, and make it again in its place."""
    small = [node for node in _directories(author) if len(node.children) < 30]
    if not small:
        return
    top = author.random.choice(small)
    if _is_above(top, author.namespace.tree.root) or len(list(subtree(top))) > 200:
        return
    below = list(subtree(top))[1:]
    for node in author.random.sample(below, min(len(below), author.random.randrange(3))):
        target = author.directory()
        if not _is_above(top, target) and not _is_above(node, target):
            _moved(author, node, _free(author, target))
    path = full_path(top)
    author.write(ops.Delete(path, author.now))
    for _ in range(author.random.randrange(3)):
        who, acl = author.creation(path, directory=True)
        number = author.namespace.counters.last_inode_id + 1
        author.write(ops.Mkdir(number, path, author.now, author.now, who, acl))
        _written(author, f"{path}/a", author.block(striped=False), keep_open=False)
        if author.random.random() < 0.5:
            author.write(ops.Delete(path, author.now))


def there_and_back(author: Author) -> None:
    """Move a tree away, change it, and move it back under its old path."""
    directories = _directories(author)
    if not directories:
        return
    top, target = author.random.choice(directories), author.directory()
    if _is_above(top, target):
        return
    old = full_path(top)
    _moved(author, top, _free(author, target))
    touch_below(author, top)
    _moved(author, top, old)
    touch_below(author, top)


MOVING_DEEDS: Final[tuple[Deed, ...]] = (into_each_other, replaced, there_and_back) * 2


def past(author: Author) -> None:
    """Make a directory with snapshots, with changes and moves since they were taken."""
    top = f"/{PAST.decode()}"
    if author.namespace.tree.find(top) is not None:
        author.write(ops.Delete(top, author.now))
    for path in (top, f"{top}/kept", f"{top}/gone"):
        who, _ = author.creation(path, directory=True)
        number = author.namespace.counters.last_inode_id + 1
        author.write(ops.Mkdir(number, path, author.now, author.now, who))
    for path in (f"{top}/file", f"{top}/kept/é", f"{top}/gone/below", f"{top}/moved"):
        _written(author, path, author.block(striped=False), keep_open=False)
    author.write(ops.AllowSnapshot(top))
    author.write(ops.CreateSnapshot(top, "s1", author.now))
    author.write(ops.SetPermissions(f"{top}/file", 0o600))
    author.write(ops.Delete(f"{top}/gone", author.now))
    if author.random.random() < 0.5:
        author.write(ops.Rename(f"{top}/moved", f"{top}/kept/moved", author.now))
    author.write(ops.CreateSnapshot(top, "s2", author.now))
    _written(author, f"{top}/kept/later", author.block(striped=False), keep_open=False)


def touch_past(author: Author, *, new: bool) -> None:
    """Edit what snapshots hold; or first of all snapshots."""
    if new:
        past(author)
        return
    top = f"/{PAST.decode()}"
    if author.namespace.tree.find(f"{top}/file") is None:
        return
    author.write(ops.SetOwner(f"{top}/file", "bob", ""))
    if author.random.random() < 0.5:
        author.write(ops.CreateSnapshot(top, f"s{author.now}", author.now))
    author.write(ops.Delete(f"{top}/file", author.now))
