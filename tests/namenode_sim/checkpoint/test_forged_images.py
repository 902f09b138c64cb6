"""An image that somebody made up is not taken, and nothing is deleted behind it."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from journal.model import TxId
from namenode_sim.checkpoint.image_upload import UploadFailed, upload_image
from namenode_sim.checkpoint.schedule import UploadAnswer
from namenode_sim.edits.attributes import delimited
from namenode_sim.image.container import ImageWriter
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import image_name, write_digest
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.structure import announced_inodes, checked_inodes
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.inode import ROOT_ID
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.checkpoint.image_receiving import IMAGE, TXID, receiving
from tests.namenode_sim.image.image_world import saved
from tests.worlds.files import info

Change = Callable[[str, list[bytes]], list[bytes]]


def rewritten(change: Change) -> bytes:
    """Return the image with other messages in its sections; everything around them fits."""
    sections = ImageSections(io.BytesIO(saved(IMAGE)))
    out = io.BytesIO()
    writer = ImageWriter(out, layout=sections.summary.layout)
    for section in sections.summary.sections:
        with sections.open(section.name) as messages:
            changed = change(section.name, list(messages))
        with writer.section(section.name) as put:
            for message in changed:
                put(delimited(message))
    writer.finish()
    return out.getvalue()


def another_namespace(name: str, messages: list[bytes]) -> list[bytes]:
    if name != "NS_INFO":
        return messages
    facts = pb.NameSystemSection.FromString(messages[0])
    facts.namespaceId += 1
    return [facts.SerializeToString(), *messages[1:]]


def without_the_root(name: str, messages: list[bytes]) -> list[bytes]:
    if name != "INODE":
        return messages
    header = pb.INodeSection.FromString(messages[0])
    header.numInodes -= 1
    others = [one for one in messages[1:] if pb.INode.FromString(one).id != ROOT_ID]
    return [header.SerializeToString(), *others]


def one_inode_less(name: str, messages: list[bytes]) -> list[bytes]:
    return messages[:-1] if name == "INODE" else messages


FORGED: dict[str, tuple[Change, str]] = {
    "another file system's, under our name": (another_namespace, "is of namespace"),
    "one without a root": (without_the_root, "it has no root directory"),
    "one that lacks an inode": (one_inode_less, r"announces \d+ inodes and holds \d+"),
}


def sent_from(folder: Path, data: bytes) -> Path:
    folder.mkdir()
    path = folder / image_name(TXID)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("case", FORGED)
async def test_a_forged_image_is_refused_and_nothing_is_purged(tmp_path: Path, case: str) -> None:
    change, said = FORGED[case]
    image = sent_from(tmp_path / "from", rewritten(change))
    write_digest(image, hashlib.md5(image.read_bytes(), usedforsecurity=False).hexdigest())
    async with receiving(tmp_path) as (active, at):
        before = active.storage.newest_images()
        with pytest.raises(UploadFailed, match=said):
            await upload_image(at, image, TXID, info(), stall_seconds=20)
        assert active.files() == []
        assert active.got == [], "nobody is told, so nothing is purged"
        assert active.storage.newest_images() == before


def nearly_empty(folder: Path) -> Path:
    """Save an image of a file system in which nothing but the root is left."""
    folder.mkdir()
    namespace = Namespace.empty("hdfs")
    namespace.last_applied = TXID
    path = folder / image_name(TXID)
    save_image(namespace, path, info())
    return path


async def test_an_image_that_lacks_most_inodes_is_refused_unless_they_were_deleted(
    tmp_path: Path,
) -> None:
    image = nearly_empty(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        for directory in active.storage.directories:
            save_image(IMAGE, directory / "current" / image_name(TxId(TXID - 1)), info())
        there = announced_inodes(active.storage.newest_image())
        active.fewest_inodes = there // 2
        with pytest.raises(UploadFailed, match=rf"has 1 inodes, the newest has {there}: .*shrink"):
            await upload_image(at, image, TXID, info(), stall_seconds=20)
        assert active.files() == []
        # The namespace itself has become as small since, or an operator has said so.
        active.fewest_inodes = 0
        answer = await upload_image(at, image, TXID, info(), stall_seconds=20)
        assert answer is UploadAnswer.ACCEPTED


@pytest.mark.parametrize("codec", ["", "org.apache.hadoop.io.compress.GzipCodec"])
def test_a_whole_image_has_as_many_inodes_as_it_says(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "image"
    path.write_bytes(saved(IMAGE, codec=codec))
    assert checked_inodes(path) == announced_inodes(path) == len(IMAGE.tree.inodes)


def test_sections_that_overlap_are_found(tmp_path: Path) -> None:
    """Prevent that one section's bytes are shown as another's, whatever their digests."""
    data = saved(IMAGE)
    size = int.from_bytes(data[-4:], "big")
    summary = pb.FileSummary.FromString(data[-4 - size : -4][_varint_size(size) :])
    for section in summary.sections:
        if section.name == "INODE_DIR":
            section.offset -= 1
            section.length += 1
    raw = delimited(summary.SerializeToString())
    path = tmp_path / "image"
    path.write_bytes(data[: -4 - size] + raw + len(raw).to_bytes(4, "big"))
    with pytest.raises(ImageError, match="overlap"):
        checked_inodes(path)


def _varint_size(size: int) -> int:
    return 1 if size <= 128 else 2
