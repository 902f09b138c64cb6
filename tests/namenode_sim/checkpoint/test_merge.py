"""The offline merge: Hadoop's own checkpoint again, or a clear word and nothing published."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from namenode_sim.checkpoint.merge import Merged, Progress, merge
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import StartLogSegment
from namenode_sim.image.container import ImageWriter
from namenode_sim.image.errors import ImageError
from namenode_sim.image.facts import image_facts
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import load_image, read_namespace
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import real
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.startup.startup_world import OPEN, ROLLED, held_by, mkdir
from tests.worlds.files import info, write_segment
from tests.worlds.name_dirs import format_name_dirs

LAST = len(ROLLED) + len(OPEN)


def directory(folder: Path) -> Path:
    """Make a name directory with an image and two finalized segments; return its ``current``."""
    format_name_dirs([folder], info(), Namespace.empty("hdfs"))
    current = folder / "current"
    write_segment(current, 1, ROLLED)
    write_segment(current, len(ROLLED) + 1, OPEN)
    return current


def first_image(current: Path) -> Path:
    return current / f"fsimage_{0:019d}"


def merged(current: Path, out: Path) -> Merged:
    return merge(first_image(current), current, out)


def test_the_result_is_the_replayed_namespace(tmp_path: Path) -> None:
    current = directory(tmp_path / "name")
    told: list[Progress] = []
    result = merge(first_image(current), tmp_path / "name", tmp_path / "out", progress=told.append)
    assert (result.from_txid, result.to_txid, result.segments) == (0, LAST, 2)
    assert not result.already_there
    assert differences(load_image(result.image), held_by((*ROLLED, *OPEN))) == []
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"fsimage_{LAST:019d}", f"fsimage_{LAST:019d}.md5"]


def test_the_result_has_the_codec_and_the_parts_of_the_old_image(tmp_path: Path) -> None:
    current = directory(tmp_path / "name")
    old, codec = first_image(current), "org.apache.hadoop.io.compress.DefaultCodec"
    save_image(load_image(old), old, info(), codec=codec, sub_sections=3)
    before = image_facts(old)
    assert (before.codec, before.sub_sections) == (codec, 1)  # one inode, one part
    after = image_facts(merged(current, tmp_path / "out").image)
    assert after.codec == codec
    assert after.sub_sections > 0


def test_a_segment_in_progress_is_left_out(tmp_path: Path) -> None:
    current = directory(tmp_path / "name")
    write_segment(current, LAST + 1, (StartLogSegment(), mkdir("/new")), closed=False)
    assert merged(current, tmp_path / "out").to_txid == LAST


def _flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def _first(current: Path) -> Path:
    return current / f"edits_{1:019d}-{len(ROLLED):019d}"


DAMAGES: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "a damaged edit": (
        lambda c: _flip(_first(c), 40),
        EditsError,
        "edits_.*24, offset 25, transaction 2: the checksum is wrong",
    ),
    "a cut segment": (
        lambda c: _first(c).write_bytes(_first(c).read_bytes()[:-4]),
        EditsError,
        "edits_.*24, offset .*, transaction 24: ",
    ),
    "a missing segment": (
        lambda c: _first(c).unlink(),
        EditsError,
        "edits_.*25-.*27, transaction 1: transactions 1 to 24 are missing",
    ),
    "an edit that does not apply": (
        lambda c: write_segment(c, LAST + 1, (StartLogSegment(), mkdir("/no/parent"))),
        EditsError,
        "edits_.*28-.*29, offset 25, transaction 29: it cannot be applied",
    ),
    "overlapping segments": (
        lambda c: write_segment(c, len(ROLLED), (*OPEN, mkdir("/x"), mkdir("/y"), mkdir("/z"))),
        EditsError,
        "it overlaps edits_",
    ),
    "a damaged image": (
        lambda c: _flip(first_image(c), 60),
        ImageError,
        "fsimage_0000000000000000000 is corrupt",
    ),
    "an image without digest": (
        lambda c: first_image(c).with_name(first_image(c).name + ".md5").unlink(),
        ImageError,
        "has no digest",
    ),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_nothing_is_published_from_damage_and_it_is_told_where(tmp_path: Path, case: str) -> None:
    damage, error, message = DAMAGES[case]
    current, out = directory(tmp_path / "name"), tmp_path / "out"
    damage(current)
    with pytest.raises(error, match=message):
        merged(current, out)
    assert not out.exists() or list(out.iterdir()) == []


# ---- Hadoop's own checkpoint (2.6) ----


@pytest.fixture
def of_hadoop(tmp_path: Path) -> tuple[Path, Path]:
    """Return our merge of Hadoop's fsimage_0 and edits_1-26, and Hadoop's own fsimage_26."""
    source = real("name-dir/VERSION").parent
    result = merge(source / f"fsimage_{0:019d}", source, tmp_path)
    return result.image, source / f"fsimage_{26:019d}"


def test_hadoops_checkpoint_holds_the_same_namespace(of_hadoop: tuple[Path, Path]) -> None:
    ours, theirs = map(load_image, of_hadoop)
    assert ours.last_applied == 26
    assert len(ours.tree.inodes) > 2
    assert differences(ours, theirs) == []


def raw_sections(path: Path) -> dict[str, list[bytes]]:
    with path.open("rb") as file:
        sections = ImageSections(file)
        found = {}
        for section in sections.summary.sections:
            with sections.open(section.name) as messages:
                found[section.name] = list(messages)
    return found


def test_every_message_is_hadoops_but_for_the_differences_in_the_document(
    of_hadoop: tuple[Path, Path],
) -> None:
    """docs/checkpoint.md lists them with the reasons; a new one makes this test fail."""
    ours, theirs = map(raw_sections, of_hadoop)
    # 1. Hadoop writes an entry for the root's diffs although it has none; we write no section.
    (entry,) = map(pb.DiffEntry.FromString, theirs.pop("SNAPSHOT_DIFF"))
    assert (entry.inodeId, entry.numOfDiff) == (16385, 0)
    # 2. Hadoop saves the string table in the order of a hash map; the numbers are the same.
    assert ours["STRING_TABLE"] != theirs["STRING_TABLE"]
    assert sorted(ours.pop("STRING_TABLE")) == sorted(theirs.pop("STRING_TABLE"))
    # All else is the same, in the same order, byte for byte.
    assert ours == theirs
    assert list(ours) == list(theirs)


def test_the_differences_are_harmless(of_hadoop: tuple[Path, Path], tmp_path: Path) -> None:
    """Put Hadoop's form of both into our image: it loads as the same namespace."""
    mine, hadoops = of_hadoop
    theirs = raw_sections(hadoops)
    for name in ("SNAPSHOT_DIFF", "STRING_TABLE"):
        patched = tmp_path / f"fsimage_of_{name}"
        _with_section(mine, patched, name, theirs[name])
        with patched.open("rb") as file:
            assert differences(read_namespace(file), load_image(hadoops)) == []


def _with_section(source: Path, target: Path, name: str, messages: list[bytes]) -> None:
    sections = {**raw_sections(source), name: messages}
    with target.open("wb") as file:
        writer = ImageWriter(file, layout=-60)
        for each, raw in sections.items():
            with writer.section(each) as write:
                write(b"".join(map(delimited, raw)))
        writer.finish()


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    current = directory(tmp_path / "name")
    one = merged(current, tmp_path / "one")
    assert merged(current, tmp_path / "two").digest == one.digest


# ---- the command ----


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ha.cli.main", "checkpoint", "merge", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_tells_what_it_did_and_its_exit_codes(tmp_path: Path) -> None:
    current, out = directory(tmp_path / "name"), tmp_path / "out"
    given = ("--image", first_image(current), "--edits", current, "--out", out)
    done = run("--engine", "local", *given, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["to_txid"], facts["already_there"]) == (LAST, False)
    again = run(*given)
    assert (again.returncode, "was there already, the same" in again.stdout) == (0, True)
    Path(facts["image"]).write_bytes(b"something else")
    refused = run(*given)
    assert (refused.returncode, "is another image" in refused.stderr) == (3, True)
    _flip(_first(current), 40)
    failed = run(*given)
    assert failed.returncode == 4
    assert "offset 25, transaction 2" in failed.stderr
    assert "Nothing was published" in failed.stderr
    assert run("--image", tmp_path / "none", "--edits", current, "--out", out).returncode == 2
