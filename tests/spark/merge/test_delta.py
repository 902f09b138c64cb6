"""Differences applied to images in ranges, against a model that knows nothing of ranges."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import load_image
from spark.merge.errors import EditsDoNotBelong, NeedsWholeNamespace
from spark.merge.model import Delta, Ids
from tests.spark.merge import image_world
from tests.spark.merge.image_world import Opened, changed, merged, nothing_changes, opened, sections
from tests.worlds.files import save

ROOT = 16385


def order(name: bytes) -> list[int]:
    return [byte - 256 if byte > 127 else byte for byte in name]


@dataclass(slots=True)
class Model:
    inodes: dict[int, pb.INode]
    parents: dict[int, int]
    fresh: list[int] = field(default_factory=list)

    def copy(self) -> "Model":
        inodes = {}
        for number, message in self.inodes.items():
            inodes[number] = pb.INode()
            inodes[number].CopyFrom(message)
        return Model(inodes, dict(self.parents))

    def directories(self) -> list[int]:
        return [n for n, message in self.inodes.items() if message.type == pb.INode.DIRECTORY]

    def children(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for child, parent in self.parents.items():
            found.setdefault(parent, []).append(child)
        for ids in found.values():
            ids.sort(key=lambda number: order(self.inodes[number].name))
        return found

    def below(self, top: int) -> Iterator[int]:
        children = self.children()
        waiting = [top]
        while waiting:
            yield (number := waiting.pop())
            waiting += children.get(number, [])

    def free_name(self, parent: int, rng: random.Random) -> bytes:
        taken = {self.inodes[n].name for n in self.children().get(parent, [])}
        names = [*image_world.POPULAR, *(f"{p}{rng.randrange(10**6)}" for p in ("new", "ñ", "~"))]
        rng.shuffle(names)
        return next(name.encode() for name in names if name.encode() not in taken)


def read(path: Path) -> tuple[Model, pb.INodeSection, dict[int, list[int]]]:
    found = sections(path)
    header, *raws = found["INODE"]
    inodes = {message.id: message for message in map(pb.INode.FromString, raws)}
    assert len(inodes) == len(raws)
    listed = {e.parent: list(e.children) for e in map(pb.DirEntry.FromString, found["INODE_DIR"])}
    assert len(listed) == len(found["INODE_DIR"])
    parents = {child: parent for parent, ids in listed.items() for child in ids}
    return Model(inodes, parents), pb.INodeSection.FromString(header), listed


def edit(model: Model, rng: random.Random, last: int) -> int:
    directories = model.directories()
    victim = rng.choice([n for n in model.inodes if n != ROOT])
    match rng.choice(["touch", "create", "create", "move", "move", "rename", "delete"]):
        case "touch":
            _body(model.inodes[victim]).modificationTime += 1
        case "create":
            parent, last = rng.choice(directories), last + 1
            name = model.free_name(parent, rng)
            kind = rng.choice([pb.INode.FILE, pb.INode.DIRECTORY])
            message = model.inodes[last] = pb.INode(type=kind, id=last, name=name)
            _body(message).modificationTime = 5
            _body(message).permission = 1
            model.parents[last] = parent
        case "move":
            parent = rng.choice(directories)
            if parent not in set(model.below(victim)):
                model.inodes[victim].name = model.free_name(parent, rng)
                model.parents[victim] = parent
        case "rename":
            model.inodes[victim].name = model.free_name(model.parents[victim], rng)
        case "delete" if len(model.inodes) > 50:
            for number in list(model.below(victim)):
                del model.inodes[number], model.parents[number]
    return last


def _body(message: pb.INode) -> pb.INodeFile | pb.INodeDirectory:
    return message.directory if message.type == pb.INode.DIRECTORY else message.file


def ids(numbers: set[int]) -> Ids:
    return np.array(sorted(numbers), np.int64)


def difference(old: Model, new: Model, last: int, rng: random.Random) -> Delta:
    """Return what a replay would: only the tops of what goes, and now and then more."""
    dead = old.inodes.keys() - new.inodes.keys()
    gone = {n for n in dead if old.parents[n] not in dead or rng.random() < 0.2}
    kept = old.inodes.keys() & new.inodes.keys()
    updated = {n: new.inodes[n].SerializeToString() for n in kept if new.inodes[n] != old.inodes[n]}
    moved = {n for n in kept - {ROOT} if old.parents[n] != new.parents[n]}
    spare = {n for n in kept if rng.random() < 0.05}
    before, after = old.children(), new.children()
    removed: dict[int, list[int]] = {}
    added: dict[int, list[tuple[bytes, int]]] = {}
    for directory in sorted(kept):
        then = {old.inodes[n].name: n for n in before.get(directory, [])}
        now = {new.inodes[n].name: n for n in after.get(directory, [])}
        left = [n for name, n in then.items() if now.get(name) != n]
        came = [(name, n) for name, n in now.items() if then.get(name) != n]
        rng.shuffle(came)
        removed.update({directory: left} if left else {})
        added.update({directory: came} if came else {})
    born = sorted(new.inodes.keys() - old.inodes.keys())
    return Delta(
        updated=updated,
        created=[(n, new.inodes[n].SerializeToString()) for n in born],
        gone=ids(gone),
        tombstones=ids(gone & set(old.directories())),
        must_be_empty=ids(set()),
        materialised=ids(gone | updated.keys() | moved | spare | {ROOT}),
        removed=removed,
        added=added,
        new_entries={n: after[n] for n in born if n in after},
        last_inode_id=last,
        sections={},
    )


@pytest.mark.parametrize("seed", range(7))
def test_random_changes_come_out_as_the_model_has_them(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    codec, parts = rng.choice(["", "", ZLIB_CODEC]), rng.choice([0, 4])
    path = save(image_world.grown(seed, 220), tmp_path / "old", codec=codec, parts=parts)
    old, header, _ = read(path)
    new, last = old.copy(), header.lastInodeId
    for _ in range(rng.choice([3, 40, 150])):
        last = edit(new, rng, last)
    found = opened(path, tmp_path / "work")
    out, written = merged(found, difference(old, new, last, rng), tmp_path / "new")
    model, header, listed = read(out)
    assert {n: m.SerializeToString() for n, m in model.inodes.items()} == {
        n: m.SerializeToString() for n, m in new.inodes.items()
    }
    assert listed == new.children()
    assert (header.numInodes, header.lastInodeId) == (len(new.inodes), last)
    assert written.inodes == len(new.inodes)
    assert len(load_image(out).tree.inodes) == len(new.inodes)
    same = [name for name in sections(path) if name not in {"INODE", "INODE_DIR"}]
    assert all(sections(out)[name] == sections(path)[name] for name in same)


@pytest.fixture
def found(tmp_path: Path) -> Opened:
    return opened(save(image_world.grown(77, 300), tmp_path / "old"), tmp_path / "work")


def full_directory(found: Opened, *, but: int = -1) -> tuple[int, list[int]]:
    _, _, listed = read(found.path)
    return next(
        (d, kids) for d, kids in listed.items()
        if d not in {ROOT, but} and any(kid in listed for kid in kids)
    )  # fmt: skip


def test_sections_written_anew_replace_the_old(tmp_path: Path, found: Opened) -> None:
    _, _, listed = read(found.path)
    texts = b"\x02\x08\x01"
    delta = changed(nothing_changes(found), sections={"NS_INFO": texts, "SNAPSHOT_DIFF": texts})
    out, _ = merged(found, delta, tmp_path / "new")
    assert sections(out)["NS_INFO"] == sections(out)["SNAPSHOT_DIFF"] == [b"\x08\x01"]
    assert read(out)[2] == listed


def test_a_name_that_is_taken_is_told(tmp_path: Path, found: Opened) -> None:
    model, header, _ = read(found.path)
    directory, kids = full_directory(found)
    name = model.inodes[kids[0]].name
    number = header.lastInodeId + 1
    created = pb.INode(type=pb.INode.FILE, id=number, name=name).SerializeToString()
    delta = changed(
        nothing_changes(found), created=[(number, created)], added={directory: [(name, number)]}
    )
    with pytest.raises(EditsDoNotBelong, match=rf"directory {directory} .*two children"):
        merged(found, delta, tmp_path / "new")
    taken = changed(delta, removed={directory: [kids[0]]}, gone=ids({kids[0]}))
    if kids[0] not in model.directories():
        merged(found, taken, tmp_path / "new")


def test_a_replaced_directory_that_is_not_empty_is_told(tmp_path: Path, found: Opened) -> None:
    _, _, listed = read(found.path)
    directory, kids = full_directory(found)
    dead = changed(
        nothing_changes(found),
        gone=ids({directory}), tombstones=ids({directory}), must_be_empty=ids({directory}),
        materialised=ids({directory, ROOT}),
        removed={next(p for p, c in listed.items() if directory in c): [directory]},
    )  # fmt: skip
    with pytest.raises(EditsDoNotBelong, match=rf"over directory {directory}, which holds"):
        merged(found, dead, tmp_path / "new")
    assert kids
    merged(found, changed(dead, must_be_empty=ids(set())), tmp_path / "new")


def test_a_child_that_is_not_there_cannot_leave(tmp_path: Path, found: Opened) -> None:
    directory, _ = full_directory(found)
    delta = changed(nothing_changes(found), removed={directory: [5]})
    with pytest.raises(EditsDoNotBelong, match=rf"takes inode \[5\] out of directory {directory}"):
        merged(found, delta, tmp_path / "new")
    nowhere = changed(nothing_changes(found), removed={5: [6]})
    with pytest.raises(
        EditsDoNotBelong, match="children of 1 directories, of which the image has 0"
    ):
        merged(found, nowhere, tmp_path / "new")


def test_an_inode_that_is_not_there_cannot_change(tmp_path: Path, found: Opened) -> None:
    delta = changed(nothing_changes(found), updated={5: b"\x08\x01\x10\x05\x1a\x00"})
    with pytest.raises(ImageError, match="of 1 inodes to be changed, 0 are in section INODE"):
        merged(found, delta, tmp_path / "new")
    gone = changed(nothing_changes(found), gone=ids({5}))
    with pytest.raises(ImageError, match="of 1 inodes to be deleted, 0 are"):
        merged(found, gone, tmp_path / "new")


def test_a_snapshottable_directory_that_goes_needs_the_whole_namespace(tmp_path: Path) -> None:
    path = save(image_world.grown(5, 100), tmp_path / "old")
    top = opened(path, tmp_path / "one")
    directory, kids = full_directory(top)
    model, _, listed = read(path)
    inner = next(kid for kid in kids if kid in listed)
    header = pb.SnapshotSection(snapshotCounter=0, snapshottableDir=[inner], numSnapshots=0)
    raw = header.SerializeToString()
    allowed, _ = merged(
        top, changed(nothing_changes(top), sections={"SNAPSHOT": bytes([len(raw)]) + raw}),
        tmp_path / "allowed",
    )  # fmt: skip
    found = opened(allowed, tmp_path / "two")
    delta = changed(
        nothing_changes(found), gone=ids({directory}), tombstones=ids({directory}),
        materialised=ids({directory, ROOT}), removed={model.parents[directory]: [directory]},
    )  # fmt: skip
    with pytest.raises(NeedsWholeNamespace, match=f"directory {inner}, which allows snapshots"):
        merged(found, delta, tmp_path / "new")
