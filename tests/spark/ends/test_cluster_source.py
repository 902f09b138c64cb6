"""Image and edits from a running cluster: complete, from any undamaged copy, or not at all."""

import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from journal.frame import HEADER_BYTES
from journal.model import TxId
from namenode_sim.checkpoint.merge import merge
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import image_name
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from spark.ends.sources.directory import DirectorySource, staged_here
from spark.ends.sources.from_cluster import adopt
from spark.ends.sources.model import SourceError
from spark.ends.sources.segments import fetch_segment
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.startup.startup_world import ROLLED, in_use
from tests.spark.ends import source_world as worlds
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

IMAGE_0 = image_name(TxId(0))
ALL_FILES = sorted([IMAGE_0, f"{IMAGE_0}.md5", *map(worlds.segment_name, range(3))])


def assert_merges_to_everything(
    world: worlds.SourceWorld, image: Path, edits: Path, out: Path
) -> None:
    merged = merge(image, edits, out)
    assert differences(load_image(merged.image), worlds.whole()) == []
    assert world.files() == ALL_FILES


async def test_what_was_fetched_merges_and_is_not_fetched_twice(tmp_path: Path) -> None:
    async with worlds.source_world(tmp_path) as world:
        staged = await world.stage()
        assert (staged.base_txid, staged.last_txid) == (0, len(worlds.OPS))
        assert staged.epoch == 1
        assert staged.fetched_bytes > 0
        assert_merges_to_everything(world, staged.image, staged.edits, tmp_path / "out")
        again = await world.stage()
        assert (again.fetched_bytes, again.reused_files) == (0, 4)


async def test_damage_and_forgery_on_two_nodes_is_passed_over(tmp_path: Path) -> None:
    """Flip a bit, and forge a frame whose checksum is right and whose content is not."""
    async with worlds.source_world(tmp_path) as world:
        flipped, forged, _ = world.copies(worlds.segment_name(1))
        data = bytearray(flipped.read_bytes())
        data[HEADER_BYTES + 30] ^= 1
        flipped.write_bytes(data)
        forged.write_bytes(with_other_name(forged.read_bytes()))
        staged = await world.stage()
        assert_merges_to_everything(world, staged.image, staged.edits, tmp_path / "out")


def with_other_name(data: bytes) -> bytes:
    """Return the segment with ``/two`` renamed, and every checksum as it must be."""
    at = data.index(b"/two")
    start = data.rindex(b"\x03\x00\x00\x00", 0, at)
    size = 1 + int.from_bytes(data[start + 1 : start + 5])
    frame = data[start : start + size].replace(b"/two", b"/six")
    crc = zlib.crc32(frame).to_bytes(4)
    return data[:start] + frame + crc + data[start + size + 4 :]


async def test_a_file_that_was_spoilt_here_meanwhile_is_fetched_again(tmp_path: Path) -> None:
    async with worlds.source_world(tmp_path) as world:
        staged = await world.stage()
        for name in (worlds.segment_name(2), staged.image.name):
            path = staged.edits / name
            path.write_bytes(path.read_bytes()[:-3])
        for name in ("edits_0000000000000000001-0000000000000000009.part", "fsimage.ckpt_1"):
            (staged.edits / name).write_bytes(b"half")
        again = await world.stage()
        assert again.reused_files == 2
        assert_merges_to_everything(world, again.image, again.edits, tmp_path / "out")


async def test_a_gap_is_an_error_that_names_the_transactions(tmp_path: Path) -> None:
    async with worlds.source_world(tmp_path) as world:
        await world.servers.nodes.stop(0, 1, 2)
        for copy in world.copies(worlds.segment_name(1)):
            copy.unlink()
        await world.servers.nodes.start(0, 1, 2)
        first, last = int(worlds.segment_name(1)[6:25]), int(worlds.segment_name(1)[26:])
        with pytest.raises(SourceError, match=f"transactions {first}-{last} are missing"):
            await world.stage()
        assert [name for name in world.files() if name.startswith("edits")] == []


async def test_a_segment_that_is_sound_nowhere_is_named_with_each_node_s_reason(
    tmp_path: Path,
) -> None:
    async with worlds.source_world(tmp_path) as world:
        for copy in world.copies(worlds.segment_name(1)):
            copy.write_bytes(with_other_name(copy.read_bytes()))
        with pytest.raises(SourceError, match=worlds.segment_name(1)) as refusal:
            await world.stage()
        assert str(refusal.value).count("segmentTxId=25") == 3
        assert worlds.segment_name(1) not in world.files()
        assert not any(name.endswith(".part") for name in world.files())


async def test_sound_edits_that_are_not_those_of_the_list_are_refused(tmp_path: Path) -> None:
    """Refuse what our own nodes notice themselves; one of another make need not."""
    async with worlds.source_world(tmp_path) as world, world.cluster.open_journal(info()) as reader:
        part = (await reader.segments(TxId(1)))[1]
        other = replace(part, segment=replace(part.segment, digest=b"x" * 32))
        with pytest.raises(SourceError, match=part.segment.name()) as refusal:
            await fetch_segment(reader, other, tmp_path)
        assert str(refusal.value).count("has the digest") == 3
        assert list(tmp_path.glob("edits*")) == []


async def test_another_cluster_s_journal_is_not_read(tmp_path: Path) -> None:
    async with worlds.source_world(tmp_path, journal_of=info(namespace_id=8)) as world:
        with pytest.raises(SourceError, match="belongs to cluster CID-test"):
            await world.stage()


async def test_an_image_that_came_damaged_leaves_nothing(tmp_path: Path) -> None:
    async with worlds.source_world(tmp_path) as world:
        image = tmp_path / "name" / "current" / IMAGE_0
        image.write_bytes(image.read_bytes()[:-1] + b"x")
        with pytest.raises(SourceError, match=r"nn2.*it came damaged"):
            await world.stage()
        assert world.files() == []


@pytest.mark.parametrize("name", [IMAGE_0, worlds.segment_name(1)])
async def test_what_the_disk_cannot_read_any_more_is_fetched_again(
    tmp_path: Path, name: str
) -> None:
    """Reading this file of the kernel's gives the error of a bad sector."""
    async with worlds.source_world(tmp_path) as world:
        kept = (await world.stage()).edits / name
        kept.unlink()
        kept.symlink_to("/proc/self/mem")
        staged = await world.stage()
        assert staged.reused_files == 3
        assert_merges_to_everything(world, staged.image, staged.edits, tmp_path / "out")


async def test_without_a_namenode_the_reasons_are_told(tmp_path: Path) -> None:
    async with worlds.source_world(tmp_path) as world:
        stopped = worlds.SourceWorld(world.servers, world.cluster, world.work)
    with pytest.raises(SourceError, match=r"no NameNode of ns1 answers.*nn1.*nn2"):
        await stopped.stage()


async def test_a_merged_image_is_the_next_base_without_a_transfer(tmp_path: Path) -> None:
    async with worlds.source_world(tmp_path) as world:
        staged = await world.stage()
        merged = merge(staged.image, staged.edits, tmp_path / "out").image
        adopt(merged, staged)
        kept = staged_here(staged.edits / merged.name, staged.edits)
        assert (kept.base_txid, kept.last_txid) == (len(worlds.OPS), len(worlds.OPS))


def test_files_that_are_here_already_are_only_checked(tmp_path: Path) -> None:
    in_use(tmp_path / "name")
    current = tmp_path / "name" / "current"
    staged = DirectorySource(tmp_path / "name", tmp_path / "name").stage(tmp_path, print)
    assert (staged.image, staged.edits) == (current / IMAGE_0, current)
    assert (staged.base_txid, staged.last_txid) == (0, len(ROLLED))  # the open segment is left out
    assert not staged.digest_checked  # the merge does it, next to other work
    (current / IMAGE_0).write_bytes(b"x")
    with pytest.raises(ImageError, match="is corrupt"):
        staged_here(current / IMAGE_0, current)
    with pytest.raises(SourceError, match="holds no fsimage_N"):
        DirectorySource(tmp_path, current).stage(tmp_path, print)
    with pytest.raises(SourceError, match="is no directory"):
        DirectorySource(current, tmp_path / "nowhere").stage(tmp_path, print)


def test_a_folder_without_edits_is_taken_for_a_mistyped_one(tmp_path: Path) -> None:
    format_name_dirs([tmp_path / "new"], info(), Namespace.empty("hdfs"))
    (tmp_path / "other").mkdir()
    with pytest.raises(SourceError, match="other holds no edits_"):
        DirectorySource(tmp_path / "new", tmp_path / "other").stage(tmp_path, print)
    staged = DirectorySource(tmp_path / "new", tmp_path / "new").stage(tmp_path, print)
    assert staged.last_txid == 0  # nothing was written since the format
