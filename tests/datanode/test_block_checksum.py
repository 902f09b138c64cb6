"""The checksum of a block is that of the checksums of its chunks, as they are kept."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from datanode.errors import ReplicaRefused
from datanode.model import StorageId
from datanode.replicas.operations import Complete, Create
from datanode.replicas.store import Store
from datanode.transfers import block_checksum
from hadoop.blocks import Checksum, ChecksumType
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.checksums import checksums_of
from tests.datanode.stores import CHECKSUM, begun, block, finalized, store, volume

DATA = bytes(range(251)) * 7
"""Three whole chunks and a short one."""


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Store]:
    made = await store(volume(tmp_path))
    yield made
    await made.volumes.close()


async def summed(kept: Store, length: int) -> tuple[bytes, int]:
    """Return the checksum, and how many chunks it says that the block has."""
    before = open_files()
    answer = await block_checksum.block_checksum(
        kept, block(), length, pb.BlockChecksumOptionsProto()
    )
    assert open_files() <= before
    return answer.blockChecksum, answer.crcPerBlock


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def md5(sums: bytes) -> bytes:
    return hashlib.md5(sums, usedforsecurity=False).digest()


LENGTHS = {
    "all": (0, len(DATA)),
    "whole chunks": (1024, 1024),
    "within a chunk": (1000, 1000),
    "more than there is": (9999, len(DATA)),
}


@pytest.mark.parametrize(("asked", "counted"), LENGTHS.values(), ids=LENGTHS)
async def test_the_first_bytes_count(kept: Store, asked: int, counted: int) -> None:
    await finalized(kept, block(), DATA)
    sums = checksums_of(DATA[:counted], CHECKSUM)
    assert await summed(kept, asked) == (md5(sums), len(sums) // 4)


async def test_a_block_without_bytes(kept: Store) -> None:
    await finalized(kept, block(), b"")
    assert await summed(kept, 0) == (md5(b""), 0)


@pytest.mark.parametrize("length", [0, 1000])
async def test_a_block_without_checksums(kept: Store, length: int) -> None:
    without = Checksum(ChecksumType.NULL)
    replica = await kept.perform(Create(block(), StorageId("DS-1"), 4096), without)
    files = await kept.open(replica, writable=True)
    files.write(0, [memoryview(DATA)], [])
    files.close()
    kept.received(block(), len(DATA))
    await kept.perform(Complete(block()))
    assert await summed(kept, length) == (md5(b""), 0)


async def test_damage_is_not_hidden(kept: Store) -> None:
    replica = await finalized(kept, block(), DATA)
    kept.volumes[replica.storage].paths(replica).block.write_bytes(DATA[:-1] + b"?")
    assert await summed(kept, 0) == (md5(checksums_of(DATA, CHECKSUM)), 4)


async def test_an_open_block_up_to_what_all_have(kept: Store) -> None:
    await begun(kept, block(), DATA, acked=512)
    kept.acknowledged(block(), 700, checksums_of(DATA[512:700], CHECKSUM))
    assert await summed(kept, 0) == (md5(checksums_of(DATA[:700], CHECKSUM)), 2)


@pytest.mark.parametrize(("limit", "allowed"), [(16, True), (15, False)])
async def test_as_many_checksums_as_are_held_at_once(
    kept: Store, monkeypatch: pytest.MonkeyPatch, limit: int, *, allowed: bool
) -> None:
    await finalized(kept, block(), DATA)
    monkeypatch.setattr(block_checksum, "MAX_SUMS_BYTES", limit)
    if allowed:
        await summed(kept, 0)
        return
    with pytest.raises(ReplicaRefused, match="has 16 bytes of checksums; at most 15 are summed"):
        await summed(kept, 0)
