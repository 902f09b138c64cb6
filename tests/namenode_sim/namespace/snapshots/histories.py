"""Histories below snapshots: edits in a word or two each, and all that is there after them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block, RenameOption
from namenode_sim.namespace import inode
from namenode_sim.namespace.changes import BlockChange, BlocksGone, ReplicationSet
from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.diffs import CURRENT, is_current
from namenode_sim.namespace.snapshots.view import SnapshotView, view_root
from tests.namenode_sim.namespace.given_edits import WHO, add, close, names_seen

FIRST_ID = 16385
"""The root's; ids are shown as the distance from it."""


@dataclass
class History:
    """A namespace that edits in words are done to; each takes its time from the one before.

    ``edits`` are all that were done; the other field is what the last did to existing blocks.
    """

    namespace: Namespace = field(default_factory=lambda: Namespace.empty("hdfs"))
    time: int = 0
    block: int = 0
    edits: list[Op] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.namespace.watch_blocks()

    def do(self, words: str) -> None:
        self.time += 1
        verb, *names = words.split()
        self.told = []
        for op in self._edits(verb, *names):
            self.edits.append(op)
            for change in self.namespace.apply(TxId(self.namespace.last_applied + 1), op):
                self._learn(change)

    def _learn(self, change: BlockChange) -> None:
        if isinstance(change, BlocksGone):
            self.told += [f"without b{number}" for number in sorted(change.block_ids)]
        elif isinstance(change, ReplicationSet):
            self.told += [f"b{number} in {change.expected}" for number in change.block_ids]

    def _next_block(self, length: int) -> Block:
        self.block += 1
        return Block(self.block, length, 1)

    def _edits(self, verb: str, name: str, other: str = "") -> Iterator[Op]:
        path, time = f"/{name}", self.time
        number = self.namespace.counters.last_inode_id + 1
        match verb:
            case "mkdir":
                yield ops.Mkdir(number, path, time, time, WHO)
            case "link":
                yield ops.Symlink(number, path, "/t", time, time, WHO)
            case "mode":
                yield ops.SetPermissions(path, 0o700 + time % 64)
            case "copies":
                yield ops.SetReplication(path, int(other))
            case "delete":
                yield ops.Delete(path, time)
            case "move":
                yield ops.Rename(path, f"/{other}", time, (RenameOption.OVERWRITE,))
            case "allow":
                yield ops.AllowSnapshot(path)
            case "take":
                yield ops.CreateSnapshot(path, f"s{self.namespace.snapshots.counter}", time)
            case "drop":
                yield ops.DeleteSnapshot(path, other, time)
            case _:
                yield from self._edits_of_a_file(verb, path)

    def _edits_of_a_file(self, verb: str, path: str) -> Iterator[Op]:
        time, tree = self.time, self.namespace.tree
        number = self.namespace.counters.last_inode_id + 1
        match verb:
            case "file" | "open":
                there = tree.find(path) is not None
                yield replace(add(path, time), inode_id=number, overwrite=there)
                one = self._next_block(0 if verb == "open" else 100)
                yield ops.AddBlock(path, None, one)
                if verb == "file":
                    two = self._next_block(50)
                    yield ops.AddBlock(path, one, two)
                    yield close(path, one, two, time=time)
            case "append":
                blocks = (*tree.file(path).blocks, self._next_block(70))
                yield ops.Append(path, "writer", "here", new_block=True)
                yield ops.AddBlock(path, blocks[-2] if len(blocks) > 1 else None, blocks[-1])
                yield close(path, *blocks, time=time)
            case "sync":
                *before, last = tree.file(path).blocks
                yield ops.UpdateBlocks(path, (*before, replace(last, num_bytes=40)))
            case "cut":
                file = tree.file(path)
                rest = file.length() - file.blocks[-1].num_bytes
                yield ops.Truncate(path, "writer", "here", rest, time)
            case _:
                raise ValueError(verb)


def one_after_another(histories: Sequence[str]) -> list[Op]:
    """Return the edits of many histories in one namespace, each in a directory of its own."""
    history = History()
    for index, words in enumerate(histories):
        first = history.namespace.snapshots.counter
        history.do(f"mkdir h{index}")
        for edit in words.split(", "):
            verb, name, *others = edit.split()
            if verb == "drop":
                history.do(f"drop h{index}/{name} s{first + int(others[0][1:])}")
            elif verb == "move":
                history.do(f"move h{index}/{name} h{index}/{others[0]}")
            else:
                history.do(" ".join([verb, f"h{index}/{name}", *others]))
    return history.edits


def told(words: str) -> Iterator[str]:
    """Yield a history, edit by edit; after each dropped snapshot and at the end, what is there."""
    history = History()
    edits = words.split(", ")
    for index, edit in enumerate(edits, start=1):
        history.do(edit)
        if history.told:
            yield f"{edit}: {', '.join(history.told)}"
        if index == len(edits) or edit.startswith("drop"):
            yield f"after {edit}:"
            yield from (f"  {line}" for line in shown(history.namespace))


def shown(namespace: Namespace) -> Iterator[str]:
    tree = namespace.tree
    yield f"now: {' '.join(_below('', tree.root))}"
    for number, taken in namespace.snapshots.snapshottable.items():
        directory = tree.inodes[number]
        assert isinstance(directory, inode.INodeDirectory)
        for snapshot in taken:
            sight = view_root(directory, snapshot)
            yield f"{snapshot.name}: {' '.join(_seen('', sight))}"
    writers = {name: [_id(one) for one in sorted(ids)] for name, ids in tree.leases.items()}
    if writers:
        yield f"open: {writers}"
    for node in sorted(tree.inodes.values(), key=lambda node: node.id):
        past = " ".join(filter(None, _past(node)))
        if past:
            yield f"{_id(node.id)}: {past}"


def _id(number: int) -> str:
    return f"#{number - FIRST_ID}"


def _about(name: str, node: inode.INode) -> str:
    text = f"{name}{_id(node.id)}:{node.mode:o}@{node.mtime}"
    return f"{text}[{_blocks(node.packed_blocks)}]" if isinstance(node, inode.INodeFile) else text


def _blocks(packed: bytes | None) -> str:
    if packed is None:
        return "-"
    return " ".join(f"b{number}={size}" for number, size, _ in PACKED_BLOCK.iter_unpack(packed))


def _below(path: str, node: inode.INode) -> Iterator[str]:
    if isinstance(node, inode.INodeDirectory):
        for child in node.ordered_children():
            name = f"{path}{child.name.decode()}"
            yield _about(name, child)
            yield from _below(f"{name}/", child)


def _seen(path: str, sight: SnapshotView) -> Iterator[str]:
    for name in names_seen(sight):
        child = sight.child(name)
        assert child is not None
        yield _about(f"{path}{name.decode()}", child.node)
        yield from _seen(f"{path}{name.decode()}/", child)


def _since(snapshot_id: int) -> str:
    return "" if snapshot_id == CURRENT else f"s{snapshot_id}"


def _entry(entry: inode.Entry) -> str:
    match entry:
        case inode.OldName():
            return f"old{_id(entry.reference.inode.id)}{_since(entry.last_snapshot_id)}"
        case inode.NewPlace():
            return f"new{_id(entry.reference.inode.id)}{_since(entry.snapshot_id)}"
        case _:
            return _id(entry.id)


def _diff(diff: inode.FileDiff | inode.DirectoryDiff) -> str:
    was = "" if diff.copy is None else _about(diff.copy.name.decode(), diff.copy)
    if isinstance(diff, inode.FileDiff):
        return f"s{diff.snapshot_id}({was} {diff.size} {_blocks(diff.packed_blocks)})"
    came = [f"+{name.decode()}{_entry(entry)}" for name, entry in sorted(diff.created.items())]
    went = [f"-{name.decode()}{_entry(entry)}" for name, entry in sorted(diff.deleted.items())]
    root = "root " if diff.is_root else ""
    return f"s{diff.snapshot_id}({root}{was} {diff.children_size} {' '.join(came + went)})"


def _past(node: inode.INode) -> Iterator[str]:
    if not is_current(node):
        yield f"only snapshots have {_about(inode.full_path(node), node)}"
        if isinstance(node, inode.INodeDirectory):
            yield f"of {sorted(name.decode() for name in node.children)}"
    if isinstance(node, inode.INodeFile | inode.INodeDirectory) and node.history is not None:
        yield " ".join(_diff(diff) for diff in node.history.diffs)
        if isinstance(node.history, inode.FileHistory) and node.history.deleted:
            yield "deleted"
    if node.reference is not None:
        yield " ".join(_entry(name) for name in node.reference.old_names)
        if node.reference.place is not None:
            yield _entry(node.reference.place)
