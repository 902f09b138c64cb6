"""Every bit of a small image flipped: refused with file and place, or provably harmless."""

import hashlib
import io
import tracemalloc
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from namenode_sim.edits.attributes import delimited
from namenode_sim.image.codecs import BZIP2_CODEC, GZIP_CODEC, ZLIB_CODEC, compressor
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import digest_path, write_digest
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import load_image, read_namespace
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import rich_namespace, saved
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.files import info

PLACES = ("section ", "summary", "trailer", "HDFSIMG1", "ends after", "layout version", "codec",
          "root", "on-disk version", "announces", "no section", "compressed")  # fmt: skip


def test_with_its_digest_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fsimage_0000000000000000023"
    save_image(rich_namespace(), path, info())
    sound = path.read_bytes()
    expected = digest_path(path).read_text()[:32]
    for position in range(len(sound)):
        for bit in range(8):
            damaged = bytearray(sound)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(ImageError) as refusal:
                load_image(path)
            assert str(path) in str(refusal.value)
            assert expected in str(refusal.value)


def test_every_flipped_bit_of_the_digest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fsimage_0000000000000000023"
    save_image(rich_namespace(), path, info())
    digest = digest_path(path)
    sound = digest.read_bytes()
    for position in range(len(sound)):
        for bit in range(8):
            damaged = bytearray(sound)
            damaged[position] ^= 1 << bit
            digest.write_bytes(damaged)
            _, refusal = _loaded(path)
            if refusal:
                assert str(path) in refusal
            else:
                # The star says how the digest was made, the line's end says nothing.
                assert position in (33, len(sound) - 1)


def test_with_a_digest_of_the_damage_it_is_refused_with_its_place_or_changes_only_what_it_hit(
    tmp_path: Path,
) -> None:
    """Find what can be found; the rest is another namespace, as such an image was made so.

    It must be one that saves and loads again: nothing half understood may stay in it.
    """
    path = tmp_path / "fsimage_0000000000000000023"
    sound = saved(rich_namespace())
    refused = harmless = other = 0
    for position in range(len(sound)):
        damaged = bytearray(sound)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        write_digest(path, _md5(bytes(damaged)))
        found, refusal = _loaded(path)
        if found is None:
            refused += 1
            assert str(path) in refusal
            assert any(place in refusal for place in PLACES), refusal
            continue
        if differences(found, rich_namespace()):
            other += 1
        else:
            harmless += 1
        _saves_and_loads(found)
    assert refused > len(sound) // 3
    assert refused + harmless + other == len(sound)


def _loaded(path: Path) -> tuple[Namespace | None, str]:
    try:
        return load_image(path), ""
    except ImageError as problem:
        return None, str(problem)


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _saves_and_loads(found: Namespace) -> None:
    with suppress(ImageError):  # a number that the layout cannot hold is refused on saving
        assert differences(found, read_namespace(io.BytesIO(saved(found)))) == []


@pytest.mark.parametrize("codec", [ZLIB_CODEC, GZIP_CODEC, BZIP2_CODEC])
def test_a_section_that_inflates_beyond_measure_is_refused_in_bounded_memory(codec: str) -> None:
    """Put a message of a gigabyte of zeros in a megabyte of an image."""
    stream = compressor(codec)
    head = (
        delimited(pb.StringTableSection(numEntry=1).SerializeToString()) + b"\x80\x80\x80\x80\x04"
    )
    packed = bytearray(stream.compress(head))
    for _ in range(200):
        packed += stream.compress(bytes(1024 * 1024))
    packed += stream.flush()
    image = _image_of({"STRING_TABLE": bytes(packed)}, codec)
    tracemalloc.start()
    try:
        with pytest.raises(ImageError, match="section STRING_TABLE"):
            read_namespace(io.BytesIO(image))
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
    finally:
        tracemalloc.stop()


def _image_of(sections: dict[str, bytes], codec: str) -> bytes:
    """Return an image of sections as they are, and empty ones of the names that must be there."""
    out = bytearray(b"HDFSIMG1")
    summary = pb.FileSummary(ondiskVersion=1, layoutVersion=2**32 - 65, codec=codec)
    for name in ("NS_INFO", "INODE", "STRING_TABLE"):
        data = sections.get(name, zlib.compress(b""))
        summary.sections.add(name=name, offset=len(out), length=len(data))
        out += data
    end = delimited(summary.SerializeToString())
    return bytes(out + end + len(end).to_bytes(4, "big"))


@settings(max_examples=150)
@given(st.data())
def test_no_damage_takes_more_than_64_mb(data: st.DataObject) -> None:
    codec = data.draw(st.sampled_from(["", ZLIB_CODEC, GZIP_CODEC]))
    image = bytearray(saved(rich_namespace(), codec=codec))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(image)))
        size = data.draw(st.integers(0, 6))
        image[start : start + size] = data.draw(st.binary(max_size=6))
    tracemalloc.start()
    try:
        with suppress(ImageError):
            read_namespace(io.BytesIO(bytes(image)))
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
    finally:
        tracemalloc.stop()


def _changed(image: bytes, old: bytes, new: bytes) -> bytes:
    assert image.count(old) == 1
    assert len(old) == len(new)
    return image.replace(old, new)


def test_a_directory_below_itself_is_refused_and_not_followed_for_ever() -> None:
    image = saved(rich_namespace())
    entry = delimited(pb.DirEntry(parent=16386, children=[16387, 16389, 16388]).SerializeToString())
    loop = delimited(pb.DirEntry(parent=16387, children=[16387, 16389, 16388]).SerializeToString())
    with pytest.raises(ImageError, match=r"section INODE_DIR.*directory 16387 is below itself"):
        read_namespace(io.BytesIO(_changed(image, entry, loop)))


def test_text_that_is_not_utf_8_is_refused_at_loading_and_not_at_the_next_checkpoint() -> None:
    image = saved(rich_namespace())
    with pytest.raises(ImageError, match=r"section CACHE_MANAGER.*poolName"):
        read_namespace(io.BytesIO(_changed(image, b"\x0a\x04pool\x12", b"\x0a\x04p\xffol\x12")))
    with pytest.raises(ImageError, match=r"section INODE,.*clientName"):
        read_namespace(io.BytesIO(_changed(image, b"\x0a\x06client", b"\x0a\x06cl\xfeent")))
