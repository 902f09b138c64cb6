"""Images: Hadoop's own load and agree with what Hadoop says of them; ours load back equal."""

import io
import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.values import Block, CachePool
from namenode_sim.image.codecs import BZIP2_CODEC, GZIP_CODEC, ZLIB_CODEC
from namenode_sim.image.container import read_summary
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import digest_path
from namenode_sim.image.reader import load_image, read_namespace
from namenode_sim.image.writer import save_image, write_namespace
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import real, replay, rich_namespace, saved
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.files import info

NAME_DIR = "name-dir/fsimage_00000000000000000"
DYNAMOMETER = "fsimage/fsimage_0000000000000061740"

REAL_IMAGES = {
    # file: layout, inodes
    f"{NAME_DIR}00": (-60, 1),
    f"{NAME_DIR}26": (-60, 5),
    DYNAMOMETER: (-63, 216),
    "fsimage/fsi_small_h3_2.img": (-65, 30),
}


CHANGED_AFTER_PRINTING = {16388}
"""The image was saved again at txid 61967, after it was printed: /user has a newer mtime."""


def _read(path: Path) -> Namespace:
    with path.open("rb") as file:
        return read_namespace(file)


@pytest.mark.parametrize("name", REAL_IMAGES)
def test_an_image_of_hadoop_loads_and_saves_and_loads_equal(name: str) -> None:
    path = real(name)
    layout, inodes = REAL_IMAGES[name]
    with path.open("rb") as file:
        assert read_summary(file).layout == layout
    namespace = _read(path)
    assert len(namespace.tree.inodes) == inodes
    for target in (layout, -67):
        again = read_namespace(io.BytesIO(saved(namespace, target)))
        assert differences(namespace, again) == []


@pytest.mark.parametrize("name", [f"{NAME_DIR}00", f"{NAME_DIR}26", DYNAMOMETER])
def test_an_image_with_its_digest_loads(name: str) -> None:
    load_image(real(name))


def test_an_image_of_hadoop_2_8_is_written_back_byte_for_byte() -> None:
    path = real(DYNAMOMETER)
    file = io.BytesIO()
    write_namespace(_read(path), file, info(-63, namespace_id=1157798435))
    assert file.getvalue() == path.read_bytes()


def test_edits_replayed_on_an_image_give_the_image_that_hadoop_saved() -> None:
    namespace = load_image(real(f"{NAME_DIR}00"))
    replay(namespace, real("name-dir/edits_0000000000000000001-0000000000000000026"))
    assert differences(namespace, load_image(real(f"{NAME_DIR}26"))) == []


def test_an_image_of_hadoop_agrees_with_what_its_viewer_prints() -> None:
    namespace = _read(real(DYNAMOMETER))
    printed = ET.parse(real(f"{DYNAMOMETER}.xml")).getroot()
    inodes = {int(_text(node, "id")): node for node in printed.findall("INodeSection/inode")}
    assert inodes.keys() == set(namespace.tree.inodes)
    assert namespace.counters.last_inode_id == int(_text(printed, "INodeSection/lastInodeId"))
    for name, found in {
        "genstampV1": namespace.counters.generation_stamp_v1,
        "genstampV2": namespace.counters.generation_stamp_v2,
        "lastAllocatedBlockId": namespace.counters.last_block_id,
    }.items():
        assert int(_text(printed, f"NameSection/{name}")) == found
    differing = {n for n, node in inodes.items() if _printed(node) != _loaded(namespace, n)}
    assert differing == CHANGED_AFTER_PRINTING
    parents = {
        int(child.text or ""): int(_text(directory, "parent"))
        for directory in printed.findall("INodeDirectorySection/directory")
        for child in directory
        if child.tag in ("child", "inode")
    }
    assert parents == {
        inode.id: inode.parent.id for inode in namespace.tree.inodes.values() if inode.parent
    }


def _text(node: ET.Element, path: str) -> str:
    return node.findtext(path) or ""


def _printed(node: ET.Element) -> tuple[object, ...]:
    blocks = tuple(
        Block(int(_text(b, "id")), int(_text(b, "numBytes")), int(_text(b, "genstamp")))
        for b in node.findall("blocks/block")
    )
    numbers = ("mtime", "atime", "replication", "perferredBlockSize", "nsquota", "dsquota")
    return (
        _text(node, "type"),
        _text(node, "name"),
        _text(node, "permission"),
        *(int(_text(node, name) or 0) for name in numbers),
        blocks,
    )


def _loaded(namespace: Namespace, number: int) -> tuple[object, ...]:
    inode = namespace.tree.inodes[number]
    bits = "".join(c if inode.mode >> 8 - i & 1 else "-" for i, c in enumerate("rwxrwxrwx"))
    head = (inode.name.decode(), f"{inode.user}:{inode.group}:{bits}", inode.mtime)
    if isinstance(inode, INodeDirectory):
        return "DIRECTORY", *head, 0, 0, 0, inode.quotas.namespace, inode.quotas.space, ()
    assert isinstance(inode, INodeFile)
    size = inode.preferred_block_size
    return "FILE", *head, inode.atime, inode.replication, size, 0, 0, inode.blocks


@pytest.mark.parametrize("layout", [-57, -63, -64, -65, -66, -67])
@pytest.mark.parametrize("codec", ["", ZLIB_CODEC, GZIP_CODEC])
def test_a_namespace_with_everything_loads_back_equal(layout: int, codec: str) -> None:
    namespace = rich_namespace()
    data = saved(namespace, layout, codec)
    assert differences(namespace, read_namespace(io.BytesIO(data))) == []


def test_a_loaded_namespace_goes_on_where_the_saved_one_was() -> None:
    stopped, going_on = read_namespace(io.BytesIO(saved(rich_namespace()))), rich_namespace()
    more: tuple[ops.Op, ...] = (
        ops.Rename("/d/closed", "/d/é/f", 20),
        ops.Delete("/d/open", 21),
        ops.ModifyCachePool(CachePool("pool", limit=9)),
    )
    for namespace in (stopped, going_on):
        for txid, op in enumerate(more, start=namespace.last_applied + 1):
            namespace.apply(TxId(txid), op)
    assert differences(stopped, going_on) == []


def test_editslog_of_every_op_replayed_loads_back_equal() -> None:
    namespace = replay(Namespace.empty("hdfs"), real("edits/editsStored"))
    assert differences(namespace, read_namespace(io.BytesIO(saved(namespace, -64)))) == []


def test_a_striped_file_does_not_go_into_an_old_layout() -> None:
    namespace = rich_namespace()
    file = namespace.tree.file("/d/closed")
    file.block_type, file.ec_policy_id, file.blocks = 1, 1, (Block(-(2**63) + 16, 5, 6),)
    again = read_namespace(io.BytesIO(saved(namespace, -64)))
    assert again.tree.file("/d/closed").blocks == file.blocks
    with pytest.raises(ImageError, match="/d/closed is erasure coded"):
        saved(namespace, -63)


def test_a_child_that_is_no_inode_is_found_before_the_image_has_its_name(tmp_path: Path) -> None:
    namespace = rich_namespace()
    namespace.tree.inodes.discard(16389)
    with pytest.raises(ImageError, match="child 16389"):
        save_image(namespace, tmp_path / "fsimage_0000000000000000024", info())
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_image_alone(tmp_path: Path) -> None:
    path = tmp_path / "fsimage_0000000000000000023"
    save_image(rich_namespace(), path, info())
    before = path.read_bytes()
    namespace = rich_namespace()
    namespace.tree.node("/d").mtime = -1
    with pytest.raises(ImageError, match="cannot be saved"):
        save_image(namespace, path, info())
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, digest_path(path).name]


def test_a_digest_that_differs_is_reported_with_both(tmp_path: Path) -> None:
    path = tmp_path / "fsimage_0000000000000000023"
    save_image(rich_namespace(), path, info())
    data = bytearray(path.read_bytes())
    expected = digest_path(path).read_text()[:32]
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(ImageError) as refusal:
        load_image(path)
    assert expected in str(refusal.value)
    assert str(path) in str(refusal.value)
    digest_path(path).unlink()
    with pytest.raises(ImageError, match="has no digest"):
        load_image(path)


def test_a_codec_that_we_lack_is_named() -> None:
    with pytest.raises(ImageError, match="LzoCodec"):
        saved(rich_namespace(), codec="org.apache.hadoop.io.compress.LzoCodec")
    plain = saved(rich_namespace(), codec=GZIP_CODEC)
    with pytest.raises(ImageError):
        read_namespace(io.BytesIO(plain.replace(b"GzipCodec", b"Lz4XCodec")))
    with pytest.raises(ImageError):
        read_namespace(io.BytesIO(plain.replace(GZIP_CODEC.encode(), BZIP2_CODEC.encode() + b" ")))


@pytest.mark.parametrize("codec", ["", ZLIB_CODEC])
def test_any_flipped_bit_is_a_typed_error_or_a_namespace(codec: str) -> None:
    """Make the digest afterwards, which would catch every flip."""
    data = saved(rich_namespace(), codec=codec)
    refused = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        try:
            read_namespace(io.BytesIO(bytes(damaged)))
        except ImageError:
            refused += 1
    assert refused > len(data) // 4


@pytest.mark.parametrize("codec", ["", ZLIB_CODEC])
def test_an_image_cut_anywhere_is_refused(codec: str) -> None:
    data = saved(rich_namespace(), codec=codec)
    for size in range(len(data)):
        with pytest.raises(ImageError):
            read_namespace(io.BytesIO(data[:size]))


@settings(max_examples=300)
@given(st.data())
def test_no_damage_makes_anything_but_a_typed_error(data: st.DataObject) -> None:
    image = bytearray(saved(rich_namespace()))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(image)))
        size = data.draw(st.integers(0, 8))
        image[start : start + size] = data.draw(st.binary(max_size=8))
    with suppress(ImageError):
        read_namespace(io.BytesIO(bytes(image)))
