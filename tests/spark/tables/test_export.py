"""An export says of each inode and each directory what the loaded namespace says."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.values import Permission
from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import read_namespace
from namenode_sim.image.sections import ImageSections
from namenode_sim.namespace.inode import INodeDirectory, subtree
from namenode_sim.namespace.namespace import Namespace
from spark.engine.outcome import InlineEngine
from spark.engine.pool import PoolEngine
from spark.tables import export as export_module
from spark.tables import images
from spark.tables.command import namespace as namespace_command
from spark.tables.cursors import Ints
from spark.tables.export import ExportProgress, export
from spark.tables.export_output import ExportRefused
from spark.tables.images import ImageTables
from spark.tables.tree import TreeError, parents_of
from tests.needs import FILES_OF_HADOOP
from tests.spark.tables import tables_world
from tests.worlds.files import save

AT = "2026-11-21T00:00:00+00:00"
PERMISSION = Permission("alice", "users", 0o755)


def rows_of(folder: Path) -> list[tables_world.Row]:
    rows: list[tables_world.Row] = pq.read_table(folder).to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def check(image: Path, out: Path) -> None:
    with image.open("rb") as file:
        loaded = read_namespace(file)
    tree = sorted(subtree(loaded.tree.root), key=lambda node: node.id)
    assert rows_of(out / "inodes") == [tables_world.exported_row(node) for node in tree]
    directories = [node for node in tree if isinstance(node, INodeDirectory)]
    assert rows_of(out / "directories") == [
        tables_world.directory_row(node) for node in directories
    ]
    facts = json.loads((out / "export.json").read_text())
    assert facts == {
        "image": image.name, "txid": loaded.last_applied, "inodes": len(tree),
        "directories": len(directories), "not_in_tree": len(loaded.tree.inodes) - len(tree),
        "at": AT, "format": 1,
    }  # fmt: skip
    assert sorted(path.name for path in out.iterdir()) == ["directories", "export.json", "inodes"]
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("seed", "layout", "codec", "parts"),
    [(1, -67, "", 0), (2, -65, "", 3), (3, -64, ZLIB_CODEC, 0), (4, -64, ZLIB_CODEC, 3)],
)
def test_random_namespaces(tmp_path: Path, seed: int, layout: int, codec: str, parts: int) -> None:
    namespace, _ = tables_world.random_namespace(seed)
    image = save(namespace, tmp_path, layout=layout, codec=codec, parts=parts)
    export(image, tmp_path / "out", InlineEngine(), at=AT)
    check(image, tmp_path / "out")


def test_real_images(tmp_path: Path) -> None:
    images = tables_world.real_images()
    if not images:
        FILES_OF_HADOOP.skip()
    for number, image in enumerate(images):
        out = tmp_path / str(number)
        export(image, out, InlineEngine(), at=AT)
        check(image, out)


def test_pieces_by_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace, _ = tables_world.random_namespace(7)
    image = save(namespace, tmp_path)
    monkeypatch.setattr(images, "SMALLEST_RANGE_BYTES", 1000)
    with PoolEngine(2) as pool:
        told: list[ExportProgress] = []
        export(image, tmp_path / "out", pool, at=AT, tell=told.append)
        check(image, tmp_path / "out")
        assert max(progress.total for progress in told) > 2
        # A boundary that is none: the image is read as a whole then.
        wrong = export_module._cut
        monkeypatch.setattr(export_module, "_cut", lambda i, e: torn_apart(wrong(i, e)))
        export(image, tmp_path / "again", pool, at=AT)
    check(image, tmp_path / "again")


def torn_apart(image: ImageTables) -> ImageTables:
    """Return the image with a second piece that begins a byte too late."""
    first, second, *others = image.inode_pieces
    late = replace(second, offset=second.offset + 1, length=second.length - 1)
    return replace(image, inode_pieces=(replace(first, length=first.length + 1), late, *others))


def test_an_empty_namespace(tmp_path: Path) -> None:
    image = save(Namespace.empty("hdfs"), tmp_path)
    export(image, tmp_path / "out", InlineEngine(), at=AT)
    check(image, tmp_path / "out")


def with_snapshots() -> Namespace:
    """Make a namespace with snapshots of parts that were deleted or moved out."""
    namespace = Namespace.empty("hdfs")
    log: list[ops.Op] = [
        *(ops.Mkdir(16386 + at, path, 5, 5, PERMISSION)
          for at, path in enumerate(("/d", "/d/old", "/d/old/in", "/e", "/d/kept", "/d/moved"))),
        ops.AllowSnapshot("/d"),
        ops.CreateSnapshot("/d", "s0", 6),
        ops.Delete("/d/old", 7),
        ops.Rename("/d/moved", "/e/moved", 8),
        ops.Mkdir(16400, "/e/moved/new", 9, 9, PERMISSION),
    ]  # fmt: skip
    for op in log:
        namespace.apply(TxId(namespace.last_applied + 1), op)
    return namespace


def test_what_only_snapshots_have_is_left_out(tmp_path: Path) -> None:
    image = save(with_snapshots(), tmp_path)
    assert export(image, tmp_path / "out", InlineEngine(), at=AT).not_in_tree == 2
    check(image, tmp_path / "out")
    paths = {row["path"] for row in rows_of(tmp_path / "out" / "directories")}
    assert paths == {"/", "/d", "/d/kept", "/e", "/e/moved", "/e/moved/new"}


def test_an_export_that_is_there_is_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    image, out = save(Namespace.empty("hdfs"), tmp_path), tmp_path / "out"
    export(image, out, InlineEngine(), at=AT)
    before = (out / "export.json").stat().st_ino
    with pytest.raises(ExportRefused, match="or --overwrite"):
        export(image, out, InlineEngine(), at=AT)
    assert (out / "export.json").stat().st_ino == before
    export(image, out, InlineEngine(), at=AT, overwrite=True)
    assert (out / "export.json").stat().st_ino != before
    check(image, out)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_export_is_never_replaced(tmp_path: Path, *, overwrite: bool) -> None:
    """Keep a user's folder, though the command line has a word too many."""
    image, folder, file = save(Namespace.empty("hdfs"), tmp_path), tmp_path / "his", tmp_path / "f"
    folder.mkdir()
    (folder / "mine").touch()
    file.write_text("mine")
    for out in (folder, file):
        with pytest.raises(ExportRefused, match="give another name"):
            export(image, out, InlineEngine(), at=AT, overwrite=overwrite)
    assert [path.name for path in folder.iterdir()] == ["mine"]
    assert file.read_text() == "mine"


def fails(_: ExportProgress) -> None:
    raise ZeroDivisionError


def exporting(image: Path, out: Path, *, at: str) -> subprocess.Popen[str]:
    """Start a process that stops for good in an export: as it writes, or as it renames."""
    script = f"""
import time
from pathlib import Path
from spark.engine.outcome import InlineEngine
from spark.tables import export
def stop(*_):
    print("here", flush=True)
    time.sleep(120)
def second_rename(path, to, rename=Path.rename):
    return stop() if path.name == "new" else rename(path, to)
if {at!r} == "rename":
    Path.rename = second_rename
tell = stop if {at!r} == "write" else lambda _: None
paths = Path({str(image)!r}), Path({str(out)!r})
export.export(*paths, InlineEngine(), at="", overwrite=True, tell=tell)
"""
    running = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "here\n"
    return running


@pytest.mark.parametrize("at", ["write", "rename"])
def test_what_a_killed_export_leaves_is_taken_over_by_the_next(tmp_path: Path, at: str) -> None:
    image, out = save(tables_world.random_namespace(3, 50)[0], tmp_path), tmp_path / "out"
    export(image, out, InlineEngine(), at=AT)
    running = exporting(image, out, at=at)
    try:
        with pytest.raises(ExportRefused, match="another export writes there"):
            export(image, out, InlineEngine(), at=AT, overwrite=True)
    finally:
        running.kill()
        running.communicate()
    assert list(tmp_path.glob(".out.*"))
    if at == "rename":
        # The older export has no name any more; a next one that fails gives it back.
        assert not out.exists()
        with pytest.raises(ZeroDivisionError):
            export(image, out, InlineEngine(), at=AT, tell=fails)
        check(image, out)
    export(image, out, InlineEngine(), at=AT, overwrite=True)
    check(image, out)
    assert not list(tmp_path.glob(".out.*"))


def test_a_torn_image_leaves_nothing(tmp_path: Path) -> None:
    namespace, _ = tables_world.random_namespace(5, 100)
    image = save(namespace, tmp_path)
    whole = image.read_bytes()
    (tmp_path / f"{image.name}.md5").unlink()
    random = np.random.default_rng(1)
    for _ in range(40):
        torn = bytearray(whole)
        torn[int(random.integers(8, len(whole)))] ^= 0xFF
        image.write_bytes(torn)
        # A changed byte of a name or a time is only seen by the digest.
        with suppress(ImageError):
            export(image, tmp_path / "out", InlineEngine(), at=AT, overwrite=True)
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    image.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImageError, match=image.name):
        export(image, tmp_path / "new", InlineEngine(), at=AT)
    assert not (tmp_path / "new").exists()


def with_section(image: Path, name: str, change: Callable[[list[bytes]], None]) -> None:
    """Change the messages of a section in place, without changing its length."""
    image.with_name(f"{image.name}.md5").unlink()
    with image.open("rb") as file:
        section = ImageSections(file).summary.find(name)
        file.seek(0)
        with ImageSections(file).open(name) as messages:
            found = list(messages)
    assert section is not None
    change(found)
    changed = b"".join(map(delimited, found))
    assert len(changed) == section.length
    raw = bytearray(image.read_bytes())
    raw[section.offset : section.offset + section.length] = changed
    image.write_bytes(raw)


def another_count(messages: list[bytes]) -> None:
    header = pb.INodeSection.FromString(messages[0])
    header.numInodes -= 1
    messages[0] = header.SerializeToString()


def a_stranger(messages: list[bytes]) -> None:
    entry = pb.DirEntry.FromString(messages[0])
    entry.children[0] = 99_999
    messages[0] = entry.SerializeToString()


def one_twice(messages: list[bytes]) -> None:
    inodes = [pb.INode.FromString(raw) for raw in messages[1:]]
    inodes[-1].id = next(inode.id for inode in inodes[:-1] if inode.type != pb.INode.DIRECTORY)
    messages[-1] = inodes[-1].SerializeToString()


ODD_IMAGES: dict[str, tuple[str, Callable[[list[bytes]], None], str]] = {
    "another count of inodes": ("INODE", another_count, r"announces \d+ inodes and holds"),
    "a child without an inode": ("INODE_DIR", a_stranger, "some are missing or there twice"),
    "an inode twice": ("INODE", one_twice, "some are missing or there twice|no directory"),
}


@pytest.mark.parametrize("case", ODD_IMAGES)
def test_an_image_that_does_not_add_up(tmp_path: Path, case: str) -> None:
    section, change, said = ODD_IMAGES[case]
    image = save(tables_world.random_namespace(8)[0], tmp_path)
    with_section(image, section, change)
    with pytest.raises(ImageError, match=said):
        export(image, tmp_path / "out", InlineEngine(), at=AT)
    assert not (tmp_path / "out").exists()


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(namespace_command, ["export", *map(str, arguments)])
    return done.exit_code, done.output


def test_the_command_and_its_exit_codes(tmp_path: Path) -> None:
    namespace, _ = tables_world.random_namespace(6, 100)
    image, out = save(namespace, tmp_path), tmp_path / "out"
    code, text = run(image, "--parquet", out, "--json")
    facts: dict[str, Any] = json.loads(text)
    assert (code, facts["txid"]) == (0, namespace.last_applied)
    assert len(rows_of(out / "inodes")) == facts["inodes"]
    code, text = run(image, "--parquet", out)
    assert (code, "is there already" in text) == (3, True)
    image.write_bytes(image.read_bytes()[:-1] + b"\x00")
    code, text = run(image, "--parquet", tmp_path / "new")
    assert (code, "MD5" in text, "Nothing was written" in text) == (4, True, True)
    assert not (tmp_path / "new").exists()
    assert run(tmp_path / "absent", "--parquet", out)[0] == 2


def ids(*numbers: int) -> Ints:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("far", [0, 10**12])
def test_children_that_make_no_tree(far: int) -> None:
    good = parents_of([(ids(1, 1, 2), ids(2, 3, far + 4))], 1)
    assert good.slots_of(ids(1, 2, 3, far + 4, far + 9)).tolist() == [-1, 0, 0, 1, -1]
    assert good.reachable.all()
    with pytest.raises(TreeError, match="inode 3 is a child of two"):
        parents_of([(ids(1, 1), ids(2, 3)), (ids(2, 2), ids(far + 7, 3))], 1)
    with pytest.raises(TreeError, match=r"directory [56] is below itself"):
        parents_of([(ids(1, 5, 6), ids(far + 7, 6, 5))], 1)
    lost = parents_of([(ids(1, 9, 8), ids(2, 8, far + 5))], 1)
    assert lost.directories[lost.reachable].tolist() == [1]
