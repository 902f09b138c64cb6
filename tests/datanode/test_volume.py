"""Data directories: what a start makes of what it finds, and who may use them."""

import shutil
from pathlib import Path

import pytest

from datanode import model
from datanode.errors import UnusableVolume
from datanode.model import Finalized, ReplicaState, StorageId, WaitingForRecovery
from datanode.replicas import layout
from datanode.replicas.meta_file import BadMetaFile, decode_header, encode_header, meta_bytes
from datanode.replicas.volume import DataDirectory, Volume
from hadoop.blocks import BlockId, Checksum, ChecksumType, GenerationStamp, PoolId
from hadoop.wire.checksums import checksums_of
from tests.datanode.stores import CHECKSUM, POOL, block, volume

DATA = bytes(range(256)) * 5
"""Two whole chunks and a short one."""


def write_replica(folder: Path, *, length: int = len(DATA), sums: bytes | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"blk_{block().block_id}").write_bytes(DATA[:length])
    body = checksums_of(DATA, CHECKSUM) if sums is None else sums
    (folder / f"{block()}.meta").write_bytes(encode_header(CHECKSUM) + body)


@pytest.fixture
def current(tmp_path: Path) -> Path:
    volume(tmp_path).close()
    return tmp_path / "current" / POOL.pool / "current"


def test_version_files_are_those_of_hadoop(current: Path, tmp_path: Path) -> None:
    node = (tmp_path / "current/VERSION").read_bytes()
    assert layout.parse_node_version(node) == layout.NodeVersion(
        StorageId("DS-1"), "uuid-1", "CID-1"
    )
    assert node.decode().splitlines()[1:] == [
        "storageID=DS-1", "clusterID=CID-1", "cTime=0", "datanodeUuid=uuid-1",
        "storageType=DATA_NODE", "layoutVersion=-57",
    ]  # fmt: skip
    assert layout.parse_pool_version((current / "VERSION").read_bytes()) == POOL


def test_a_block_lies_where_hadoop_looks_for_it() -> None:
    assert layout.subdirectory(BlockId(1073741825)) == Path("subdir0/subdir0")
    assert layout.subdirectory(BlockId(0x40000000 + (37 << 16) + (33 << 8))) == Path(
        "subdir5/subdir1"
    )
    assert layout.parse_meta_name("blk_1_2.meta") is not None
    assert layout.parse_meta_name("blk_1.meta") is None


def test_the_meta_file_is_that_of_hadoop() -> None:
    assert encode_header(Checksum(ChecksumType.CRC32C)).hex() == "00010200000200"
    assert meta_bytes(Checksum(), 300_000) == 2351
    assert meta_bytes(Checksum(ChecksumType.NULL), 300_000) == 7


STORAGE = StorageId("DS-1")
DEEP = "current/finalized/subdir0/subdir0"
OPEN = model.BeingWritten(block(), STORAGE, length=9, acked=5)
STATES: dict[str, tuple[model.Replica, str, ReplicaState | None, int]] = {
    "whole": (Finalized(block(), STORAGE, 9), DEEP, ReplicaState.FINALIZED, 9),
    "open": (OPEN, "current/rbw", ReplicaState.RBW, 5),
    "left open": (WaitingForRecovery(block(), STORAGE, 9), "current/rbw", ReplicaState.RWR, 9),
    "coming in": (model.Temporary(block(), STORAGE, 9), "tmp", None, 0),
    "whole, in recovery": (
        model.UnderRecovery(Finalized(block(), STORAGE, 9), GenerationStamp(1005)),
        DEEP, ReplicaState.FINALIZED, 9,
    ),
    "open, in recovery": (
        model.UnderRecovery(OPEN, GenerationStamp(1005)), "current/rbw", ReplicaState.RBW, 5
    ),
}  # fmt: skip


@pytest.mark.parametrize(("replica", "folder", "state", "readable"), STATES.values(), ids=STATES)
def test_where_replicas_lie_and_what_is_told_of_them(
    replica: model.Replica, folder: str, state: ReplicaState | None, readable: int
) -> None:
    assert layout.folder_of(Path("BP-1"), replica) == Path("BP-1") / folder
    assert model.reported_state(replica) is state
    assert model.readable_length(replica) == readable


@pytest.mark.parametrize(
    "header",
    ["", "0001020000", "00020200000200", "00010300000200", "00010200000000", "000102ffffffff"],
)
def test_a_header_that_makes_no_sense_is_refused(header: str) -> None:
    with pytest.raises(BadMetaFile):
        decode_header(bytes.fromhex(header))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = volume(tmp_path)
    with pytest.raises(UnusableVolume, match=r"is locked by .*dfs\.datanode\.data\.dir"):
        Volume(DataDirectory(tmp_path))
    first.close()
    Volume(DataDirectory(tmp_path)).close()


def test_a_copy_is_refused_until_somebody_says_that_the_original_is_gone(tmp_path: Path) -> None:
    volume(tmp_path / "a").close()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(UnusableVolume, match=r"was copied from .* delete .*/b/nnha/incarnation"):
        Volume(DataDirectory(tmp_path / "b"))
    (tmp_path / "a").rename(tmp_path / "moved")
    volume(tmp_path / "moved").close()
    (tmp_path / "b/nnha/incarnation").unlink()
    volume(tmp_path / "b").close()
    volume(tmp_path / "b").close()


def test_directories_of_others_are_refused(current: Path, tmp_path: Path) -> None:
    opened = Volume(DataDirectory(tmp_path))
    with pytest.raises(UnusableVolume, match="is of namespace 77, the NameNode is of 78"):
        opened.join(layout.PoolVersion(POOL.pool, 78, 1234))
    opened.join(layout.PoolVersion(PoolId("BP-other"), 78, 1))
    opened.close()
    version = tmp_path / "current/VERSION"
    version.write_text(version.read_text().replace("DATA_NODE", "NAME_NODE"))
    with pytest.raises(UnusableVolume, match="belongs to a NAME_NODE"):
        Volume(DataDirectory(tmp_path))
    version.write_text(version.read_text().replace("NAME_NODE", "DATA_NODE").replace("57", "56"))
    ours = version.read_text()
    upgrade = (
        r"has layout -56; only -57 is known\. Start Hadoop 3's DataNode on it once, .*HDFS-8791"
    )
    with pytest.raises(UnusableVolume, match=upgrade):
        Volume(DataDirectory(tmp_path))
    version.write_text(ours.replace("-56", "-58"))
    with pytest.raises(UnusableVolume, match=r"has layout -58; .* A newer Hadoop wrote it"):
        Volume(DataDirectory(tmp_path))
    version.write_text(ours.replace("-56", "-57"))
    pool = tmp_path / "current" / POOL.pool / "current/VERSION"
    pool.write_text(pool.read_text().replace("-57", "-56"))
    opened = Volume(DataDirectory(tmp_path))
    with pytest.raises(UnusableVolume, match=upgrade):
        opened.join(POOL)
    opened.close()
    version.write_text("layoutVersion=-57\n")
    with pytest.raises(UnusableVolume, match="lacks storageID, clusterID"):
        Volume(DataDirectory(tmp_path))


def scanned(folder: Path) -> list[object]:
    opened = volume(folder)
    try:
        return list(opened.scan())
    finally:
        opened.close()


def test_a_whole_replica_is_found(current: Path, tmp_path: Path) -> None:
    write_replica(current / "finalized" / layout.subdirectory(block().block_id))
    assert scanned(tmp_path) == [Finalized(block(), StorageId("DS-1"), len(DATA))]


def test_an_open_replica_waits_for_recovery(current: Path, tmp_path: Path) -> None:
    write_replica(current / "rbw")
    assert scanned(tmp_path) == [WaitingForRecovery(block(), StorageId("DS-1"), len(DATA))]


@pytest.mark.parametrize(
    ("damage", "length"),
    [
        ("the last chunk is torn", 1024),
        ("a checksum is missing", 1024),
        ("bytes are missing", 512),
        ("the checksum is that of a shorter chunk", 1100),
        ("no checksums", 0),
        ("no header", 0),
    ],
)
def test_an_open_replica_is_cut_to_what_its_checksums_cover(
    current: Path, tmp_path: Path, damage: str, length: int
) -> None:
    sums = checksums_of(DATA, CHECKSUM)
    match damage:
        case "the last chunk is torn":
            write_replica(current / "rbw", sums=sums[:8] + bytes(4))
        case "a checksum is missing":
            write_replica(current / "rbw", sums=sums[:8])
        case "bytes are missing":
            write_replica(current / "rbw", length=700)
        case "the checksum is that of a shorter chunk":
            write_replica(current / "rbw", sums=checksums_of(DATA[:1100], CHECKSUM))
        case "no checksums":
            write_replica(current / "rbw", sums=b"")
        case _:
            write_replica(current / "rbw")
            (current / "rbw" / f"{block()}.meta").write_bytes(b"\0")
    assert scanned(tmp_path) == [WaitingForRecovery(block(), StorageId("DS-1"), length)]
    if damage != "no header":
        assert (current / "rbw" / f"blk_{block().block_id}").stat().st_size == length
        assert scanned(tmp_path) == [WaitingForRecovery(block(), StorageId("DS-1"), length)]


def test_of_two_meta_files_the_newer_counts(current: Path, tmp_path: Path) -> None:
    folder = current / "finalized" / layout.subdirectory(block().block_id)
    write_replica(folder)
    newer = folder / f"{block(stamp=1002)}.meta"
    newer.write_bytes((folder / f"{block()}.meta").read_bytes())
    assert scanned(tmp_path) == [Finalized(block(stamp=1002), StorageId("DS-1"), len(DATA))]
    assert not (folder / f"{block()}.meta").exists()


def test_files_that_make_no_replica_stay(current: Path, tmp_path: Path) -> None:
    folder = current / "finalized" / layout.subdirectory(block().block_id)
    write_replica(folder)
    (folder / f"{block()}.meta").unlink()
    (folder / "lost+found").write_bytes(b"")
    assert scanned(tmp_path) == []
    assert (folder / f"blk_{block().block_id}").exists()


@pytest.mark.parametrize("meta_first_to", ["rbw", "finalized"])
def test_a_crash_between_two_renames_is_mended(
    current: Path, tmp_path: Path, meta_first_to: str
) -> None:
    deep = current / "finalized" / layout.subdirectory(block().block_id)
    old, new = (deep, current / "rbw") if meta_first_to == "rbw" else (current / "rbw", deep)
    write_replica(old)
    new.mkdir(parents=True, exist_ok=True)
    (old / f"{block()}.meta").rename(new / f"{block(stamp=1005)}.meta")
    expected = [WaitingForRecovery(block(stamp=1005), StorageId("DS-1"), len(DATA))]
    assert scanned(tmp_path) == expected
    assert scanned(tmp_path) == expected


def test_copies_of_a_former_process_are_deleted(current: Path, tmp_path: Path) -> None:
    write_replica(current.parent / "tmp")
    (current / "replicas").write_text("what Java believed")
    assert scanned(tmp_path) == []
    assert list((current.parent / "tmp").iterdir()) == []
    assert not (current / "replicas").exists()
