"""Images of random namespaces, and merges of them in many small ranges."""

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.values import Permission
from namenode_sim.image.container import Summary, read_summary, section_messages
from namenode_sim.image.files import write_digest
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.tree import new_root
from spark.engine.model import Engine
from spark.engine.outcome import InlineEngine
from spark.image.opened import open_image
from spark.merge.model import Delta, Looked
from spark.merge.plan.lookup import ImageIndex, look_up
from spark.merge.trie import BaseTrie
from spark.merge.write.assemble import Written
from spark.merge.write.stages import apply_delta

RANGE_BYTES = 700
PERMISSION = Permission("alice", "users", 0o644)
POPULAR = ("_SUCCESS", "part-00000", "data", "é", "日本", "x" * 140)
NONE = np.empty(0, np.int64)


def grown(seed: int, inodes: int) -> Namespace:
    """Make directories (some empty) and files with popular and non-ASCII names."""
    rng = random.Random(seed)
    namespace = Namespace(new_root("hdfs", "super"))
    directories, taken, txid = ["/"], {"/"}, 0
    for number in range(16386, 16386 + inodes):
        # A few directories get most children.
        parent = directories[min(rng.randrange(len(directories)), rng.randrange(len(directories)))]
        name = rng.choice([*POPULAR, f"n{number}", f"ü{number}", f"part-{number:05d}.parquet"])
        path = f"{parent.rstrip('/')}/{name}"
        if path in taken:
            path += str(number)
        taken.add(path)
        txid += 1
        if rng.random() < 0.25:
            directories.append(path)
            op: ops.Op = ops.Mkdir(number, path, txid, txid, PERMISSION)
        else:
            op = ops.Add(number, path, 3, txid, txid, 128, (), PERMISSION, (), (), "c", "h")
        namespace.apply(TxId(txid), op)
        if isinstance(op, ops.Add) and rng.random() < 0.95:
            txid += 1
            close = ops.Close(0, path, 3, txid, txid, 128, (), PERMISSION)
            namespace.apply(TxId(txid), close)
    return namespace


def summary(path: Path) -> Summary:
    with path.open("rb") as file:
        return read_summary(file)


def sections(path: Path) -> dict[str, list[bytes]]:
    """Return the messages of each section, by the reader that knows nothing of ranges."""
    found = {}
    with path.open("rb") as file:
        seen = read_summary(file)
        for section in seen.sections:
            if not section.name.endswith("_SUB"):
                found[section.name] = [
                    raw
                    for part in seen.parts(section.name)
                    for raw in section_messages(file, part, seen.codec)
                ]
    return found


T = TypeVar("T")
R = TypeVar("R")


class UnrulyEngine:
    """Runs every task twice, keeps either result, and gives them in any order.

    Engines may do all that: tasks are tried again, or run twice at the same time.
    """

    name, parallelism = "unruly", 2

    def __init__(self, seed: int = 1) -> None:
        self._rng = random.Random(seed)

    def run(
        self, stage: str, function: Callable[[T], R], tasks: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """See `spark.engine.model.Engine`."""
        order = list(range(len(tasks)))
        self._rng.shuffle(order)
        for number in order:
            yield number, self._twice(stage, function, tasks[number])

    def _twice(self, stage: str, function: Callable[[T], R], task: T) -> R:
        """Run a task twice and return either result; cut off what the other attempt wrote."""
        work = Path(str(getattr(task, "work", "")))
        before = _seen(work)
        [(_, first)] = InlineEngine().run(stage, function, [task])
        between = _seen(work)
        if keep_second := self._rng.random() < 0.5:
            _cut_off(between.keys() - before.keys())
        [(_, second)] = InlineEngine().run(stage, function, [task])
        if not keep_second:
            _cut_off({path for path, seen in _seen(work).items() if between.get(path) != seen})
        return second if keep_second else first


def _seen(work: Path) -> dict[Path, tuple[int, int]]:
    """Return a work directory's files, and what shows when they are written."""
    found = {}
    for path in work.iterdir():
        with suppress(FileNotFoundError):  # a part is removed as soon as it is in the image
            found[path] = (path.stat().st_ino, path.stat().st_mtime_ns)
    return found


def _cut_off(paths: Iterable[Path]) -> None:
    for path in paths:
        path.write_bytes(b"")


ENGINE = UnrulyEngine()


@dataclass(frozen=True, slots=True)
class Opened:
    """An image that was looked into."""

    path: Path
    looked: Looked
    index: ImageIndex
    work: Path


def opened(
    path: Path, work: Path, trie: BaseTrie | None = None, *, size: int = RANGE_BYTES
) -> Opened:
    work.mkdir(parents=True, exist_ok=True)
    image = open_image(ENGINE, path, work, size=size)
    looked, index = look_up(ENGINE, image, trie or BaseTrie(), work)
    return Opened(path, looked, index, work)


def nothing_changes(found: Opened) -> Delta:
    last = found.index.image.section_header().lastInodeId
    root = np.array([found.index.root], np.int64)
    return Delta({}, [], NONE, NONE, NONE, root, {}, {}, {}, last, {})


def merged(
    found: Opened, delta: Delta, folder: Path, engine: Engine = ENGINE
) -> tuple[Path, Written]:
    """Write the new image, with the merge's digest next to it, checked against the file."""
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / found.path.name
    written = apply_delta(engine, found.index, delta, found.work, out)
    assert hashlib.md5(out.read_bytes()).hexdigest() == written.md5
    assert out.stat().st_size == written.bytes
    write_digest(out, written.md5)
    return out, written


def changed(delta: Delta, **fields: object) -> Delta:
    return replace(delta, **fields)  # type: ignore[arg-type]
