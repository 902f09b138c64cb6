"""The store: map and files change together, space is kept, bad volumes go."""

import asyncio
import errno
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from datanode import errors, model
from datanode.replicas import operations
from datanode.replicas.operations import BeginRecovery, Complete, CreateCopy, News
from datanode.replicas.store import Announcement, Store
from hadoop.blocks import GenerationStamp
from hadoop.wire.checksums import checksums_of
from hadoop.wire.errors import ChecksumMismatch
from tests.datanode import stores
from tests.datanode.block_client import until
from tests.datanode.stores import CHECKSUM, begun, block, finalized, store, volume

DATA = bytes(range(251)) * 7


async def contents(kept: Store, replica: model.Finalized) -> bytes:
    files = await kept.open(replica)
    try:
        return files.checked(0, replica.length + 1, "test")
    finally:
        files.close()


async def test_a_block_s_whole_life(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    heard: list[Announcement] = []
    kept.listeners.append(heard.append)
    await finalized(kept, block(), DATA)
    opened = await kept.perform(operations.Append(block(), GenerationStamp(1002), len(DATA)))
    assert kept.volumes[opened.storage].paths(opened).block.parent.name == "rbw"
    whole = await kept.perform(Complete(block(stamp=1002)))
    assert isinstance(whole, model.Finalized)
    assert await contents(kept, whole) == DATA
    with pytest.raises(errors.ReplicaRefused):
        kept.forget(block(stamp=1001))
    await kept.delete(kept.forget(block(stamp=1002)))
    assert len(kept) == 0
    assert not list(tmp_path.rglob("blk_*"))
    assert [one.news for one in heard] == [
        News.RECEIVING, News.RECEIVED, News.RECEIVING, News.RECEIVED, News.DELETED,
    ]  # fmt: skip
    await kept.volumes.close()


async def test_a_restart_finds_what_was_there(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    whole = await finalized(kept, block(), DATA)
    await begun(kept, block(1), DATA, acked=10)
    await kept.perform(CreateCopy(block(2), whole.storage, 0), CHECKSUM)
    await kept.volumes.close()
    again = await store(volume(tmp_path))
    assert set(again) == {whole, model.WaitingForRecovery(block(1), whole.storage, len(DATA))}
    await again.volumes.close()


async def test_a_pipeline_goes_on_with_a_new_stamp(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    await begun(kept, block(), DATA, acked=700)
    stamp = GenerationStamp(1002)
    replica = await kept.perform(operations.RecoverPipeline(block(), stamp, 700, len(DATA)))
    assert replica.length == 700
    whole = await kept.perform(Complete(block(stamp=1002)))
    assert isinstance(whole, model.Finalized)
    assert await contents(kept, whole) == DATA[:700]
    await kept.volumes.close()


async def test_a_recovery_cuts_inside_a_chunk(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    await begun(kept, block(), DATA)
    await kept.perform(BeginRecovery(block(), GenerationStamp(1005)))
    whole = await kept.perform(operations.EndRecovery(block(), GenerationStamp(1005), 1000))
    assert isinstance(whole, model.Finalized)
    assert await contents(kept, whole) == DATA[:1000]
    await kept.volumes.close()


@pytest.mark.parametrize("length", [0, 512, 1000, len(DATA)])
async def test_a_copy_keeps_the_original(tmp_path: Path, length: int) -> None:
    kept = await store(volume(tmp_path))
    original = await finalized(kept, block(), DATA)
    made = await kept.copy(original, block(7, stamp=1009), length)
    assert isinstance(made, model.Finalized)
    assert isinstance(original, model.Finalized)
    assert await contents(kept, made) == DATA[:length]
    assert await contents(kept, original) == DATA
    await kept.volumes.close()


async def test_a_damaged_replica_is_not_copied(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    original = await finalized(kept, block(), DATA)
    paths = kept.volumes[original.storage].paths(original)
    paths.block.write_bytes(DATA[:600] + b"?" + DATA[601:])
    with pytest.raises(ChecksumMismatch):
        await kept.copy(original, block(7), 1000)
    assert list(kept) == [original]
    await kept.volumes.close()


async def test_a_cut_does_not_bless_a_damaged_chunk(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    replica = await begun(kept, block(), DATA)
    path = kept.volumes[replica.storage].paths(replica).block
    damaged = bytearray(path.read_bytes())
    damaged[600] ^= 1
    path.write_bytes(damaged)
    await kept.perform(BeginRecovery(block(), GenerationStamp(1005)))
    with pytest.raises(ChecksumMismatch):
        await kept.perform(operations.EndRecovery(block(), GenerationStamp(1005), 1000))
    await kept.volumes.close()


async def test_a_cut_that_was_broken_off_is_done_again(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    replica = await finalized(kept, block(), DATA[:1500])
    files = await kept.open(replica, writable=True)
    # As a crash leaves it: the checksum is that of the shorter chunk, the block is still long.
    files.write(1024, [], [memoryview(checksums_of(DATA[1024:1300], CHECKSUM))])
    files.cut(1300, "block")
    assert files.size() == 1300
    assert files.checked(0, 1300, "block") == DATA[:1300]
    files.close()
    await kept.volumes.close()


async def test_open_blocks_reserve_their_space(tmp_path: Path) -> None:
    made = volume(tmp_path)
    kept = await store(made, kept_free=made.usage().free - 1000 * 1000 * 1000)
    storage = kept.volumes.choose(600_000_000, "DISK")
    await kept.perform(operations.Create(block(), storage, 600_000_000), CHECKSUM)
    with pytest.raises(errors.NoRoom, match="none of 1 volumes has 600000000 bytes left"):
        kept.volumes.choose(600_000_000, "DISK")
    await kept.perform(Complete(block()))
    kept.volumes.choose(600_000_000, "DISK")
    await kept.volumes.close()


async def test_space_is_counted_along_a_block_s_life(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    (empty,) = kept.volumes.usage()
    await begun(kept, block(), DATA, acked=700)
    kept.received(block(), 5000)  # more than was reserved
    (open_one,) = kept.volumes.usage()
    assert open_one.used == 5000 + 7 + 4 * 10
    assert open_one.remaining == empty.remaining
    await kept.perform(operations.RecoverPipeline(block(), GenerationStamp(1002), 700, 5000))
    (cut,) = kept.volumes.usage()
    assert cut.used == 700 + 7 + 4 * 2
    assert cut.remaining == empty.remaining - (4096 - 700)
    await kept.delete(kept.forget(block(stamp=1002)))
    assert kept.volumes.usage() == [empty]
    await kept.volumes.close()


async def test_volumes_take_turns_and_wishes_count(tmp_path: Path) -> None:
    kept = await store(
        volume(tmp_path / "a", "DS-a"), volume(tmp_path / "b", "DS-b", storage_type="SSD")
    )
    choose = kept.volumes.choose
    assert {choose(1, "DISK") for _ in range(4)} == {"DS-a"}
    assert choose(1, "DISK", wish="DS-b") == "DS-b"
    assert {choose(1, "ARCHIVE") for _ in range(4)} == {"DS-a", "DS-b"}
    await kept.volumes.close()


async def test_the_better_of_two_replicas_stays(tmp_path: Path) -> None:
    for name, stamp in (("a", 1001), ("b", 1002)):
        kept = await store(volume(tmp_path / name, f"DS-{name}"))
        await finalized(kept, block(stamp=stamp), DATA)
        await kept.volumes.close()
    both = await store(volume(tmp_path / "a"), volume(tmp_path / "b"))
    assert [(one.block, one.storage) for one in both] == [(block(stamp=1002), "DS-b")]
    assert not list((tmp_path / "a").rglob("blk_*"))
    await both.volumes.close()


async def test_a_lost_volume_goes_with_its_replicas(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path / "a", "DS-a"), volume(tmp_path / "b", "DS-b"))
    for number in range(4):
        await finalized(kept, block(number), DATA)
    shutil.rmtree(tmp_path / "a" / "current")
    gone = [one for one in kept if one.storage == "DS-a"]
    assert gone
    with pytest.raises(errors.VolumeFailed):
        await kept.open(gone[0])
    assert {one.storage for one in kept} == {"DS-b"}
    assert [one.volume.path.name for one in kept.volumes.failed] == ["a"]
    with pytest.raises(errors.ReplicaMissing):
        kept.find(gone[0].block)
    await kept.volumes.close()


@pytest.mark.parametrize("others", [0, 1])
async def test_a_volume_that_cannot_be_listed_fails(tmp_path: Path, others: int) -> None:
    first, second = volume(tmp_path / "a", "DS-a"), volume(tmp_path / "b", "DS-b")
    kept = await store(first, second)
    for number in range(4):
        await finalized(kept, block(number), DATA)
    await kept.volumes.close()
    again = [volume(tmp_path / "a", "DS-a"), *[volume(tmp_path / "b", "DS-b")][:others]]
    shutil.rmtree(tmp_path / "a" / "current" / stores.POOL.pool / "current" / "finalized")
    kept = await store(*again)
    assert [one.volume.path.name for one in kept.volumes.failed] == ["a"]
    assert [one.storage for one in kept] == ["DS-b"] * 2 * others
    await kept.volumes.close()


@pytest.mark.parametrize("of", ["a whole one", "an open one"])
async def test_one_replica_that_cannot_be_read_keeps_no_other_away(tmp_path: Path, of: str) -> None:
    kept = await store(volume(tmp_path))
    good = await finalized(kept, block(), DATA)
    bad = await (finalized if of == "a whole one" else begun)(kept, block(1), DATA)
    path = kept.volumes[bad.storage].paths(bad).block
    await kept.volumes.close()
    path.unlink()
    path.symlink_to(path.name)
    again = await store(volume(tmp_path))
    empty = model.WaitingForRecovery(bad.block, bad.storage, 0, readable=False)
    assert set(again) == ({good} if of == "a whole one" else {good, empty})
    assert again.volumes.failed == []
    await again.volumes.close()


async def test_a_lost_file_does_not_fail_the_volume(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    replica = await finalized(kept, block(), DATA)
    kept.volumes[replica.storage].paths(replica).block.unlink()
    with pytest.raises(errors.ReplicaMissing, match="the files of"):
        await kept.open(replica)
    assert kept.volumes.failed == []
    await kept.volumes.close()


@dataclass
class Failing:
    """Work that meets an error of the disk."""

    number: int

    def __call__(self) -> None:
        raise OSError(self.number, "planted")


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EMFILE])
async def test_an_error_alone_does_not_fail_a_volume_that_can_be_written(
    tmp_path: Path, number: int
) -> None:
    kept = await store(volume(tmp_path))
    (storage,) = kept.volumes.types
    with pytest.raises(errors.VolumeFailed, match="planted"):
        await kept.volumes.run(storage, Failing(number))
    assert list(kept.volumes.types) == [storage]
    await kept.volumes.close()


async def test_who_is_cancelled_leaves_files_and_map_together(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    await begun(kept, block(), DATA)
    closing = asyncio.create_task(kept.perform(Complete(block())))
    await asyncio.sleep(0)
    closing.cancel()
    await until(lambda: isinstance(kept.find(block()), model.Finalized))
    whole = kept.find(block())
    assert isinstance(whole, model.Finalized)
    assert await contents(kept, whole) == DATA
    await kept.volumes.close()


async def test_nothing_begins_on_a_volume_that_has_failed_meanwhile(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    (storage,) = kept.volumes.types
    release = threading.Event()
    holding = asyncio.create_task(kept.volumes.run(storage, release.wait))
    creating = asyncio.create_task(kept.perform(CreateCopy(block(), storage, 0), CHECKSUM))
    for _ in range(5):
        await asyncio.sleep(0)
    kept.volumes.give_up(storage, OSError(errno.EIO, "planted"))
    release.set()
    with pytest.raises(errors.ReplicaMissing, match="has failed"):
        await creating
    assert (await holding, len(kept)) == (True, 0)
    await kept.volumes.close()


async def test_a_recovery_that_waits_for_a_set_up_stops_its_writer(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    await finalized(kept, block(), DATA)
    newer = block(stamp=1002)

    async def write() -> None:
        await kept.perform(operations.Append(block(), newer.stamp, len(DATA)), to_write=True)
        await asyncio.Event().wait()

    writer = asyncio.create_task(write())
    await asyncio.sleep(0)
    await kept.perform(BeginRecovery(newer, GenerationStamp(1003)))
    assert writer.cancelled(), "what it would acknowledge from now on would be cut"
    await kept.volumes.close()


async def test_a_copy_that_comes_while_its_block_is_deleted_goes_on(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    whole = await finalized(kept, block(), DATA)
    forgotten = kept.forget(block())

    async def receive() -> None:
        await kept.perform(CreateCopy(block(), whole.storage, 0), CHECKSUM, to_write=True)
        await asyncio.Event().wait()

    copying = asyncio.create_task(receive())
    await asyncio.sleep(0)
    await kept.delete(forgotten)
    assert not copying.done()
    assert kept.find(block()) == model.Temporary(block(), whole.storage)
    assert [path.parent.name for path in tmp_path.rglob("blk_*")] == ["tmp", "tmp"]
    copying.cancel()
    await kept.volumes.close()


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_who_is_cancelled_while_files_are_opened_leaves_none_open(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    replica = await finalized(kept, block(), DATA)
    path = kept.volumes[replica.storage].paths(replica).block
    path.unlink()
    os.mkfifo(path)  # a reader that opens it waits for a writer
    open_before = open_files()
    opening = asyncio.create_task(kept.open(replica))
    for _ in range(1000):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    other_end = os.open(path, os.O_RDWR)
    await kept.volumes.run(replica.storage, lambda: None)
    os.close(other_end)
    await until(lambda: open_files() == open_before)
    await kept.volumes.close()


async def test_a_writer_is_stopped_before_its_block_is_deleted(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    (storage,) = kept.volumes.types
    waiting = asyncio.Event()

    async def write() -> None:
        await kept.perform(operations.Create(block(), storage, 0), CHECKSUM, to_write=True)
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            kept.end_writing(block().block_id)

    writer = asyncio.create_task(write())
    await waiting.wait()
    await kept.delete(kept.forget(block()))
    assert writer.cancelled()
    with pytest.raises(errors.ReplicaMissing):
        kept.received(block(), 5)
    await kept.volumes.close()
