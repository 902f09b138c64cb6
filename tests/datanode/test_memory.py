"""Replicas in memory: what is locked, within which limit, and that nothing stays locked."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from datanode.errors import NoRoom, ReplicaMissing, ReplicaRefused
from datanode.model import StorageId
from datanode.process import settings as node_settings
from datanode.process.settings import refuse_unlockable
from datanode.replicas.caching import cache
from datanode.replicas.locked_pages import lock_file, most_lockable, unlock, whole_pages
from datanode.replicas.memory import Memory
from datanode.replicas.operations import Append
from datanode.replicas.store import Store
from ha.daemon.process import ExitWith
from hadoop.blocks import Block, BlockId
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.wire.errors import ChecksumMismatch, DataNodeError
from tests.datanode import name_nodes
from tests.datanode.block_client import until, write_whole
from tests.datanode.name_nodes import STANDBY, NameNode, invalidate, started
from tests.datanode.stores import POOL, block, finalized, store, volume

PAGE = os.sysconf("SC_PAGE_SIZE")
DATA = bytes(range(251)) * 30
"""Of two pages."""


def locked() -> int:
    """Return how many bytes this process has locked in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmLck:"))
    return int(line.split()[1]) * 1024


@pytest.fixture(autouse=True)
def nothing_stays_locked() -> Iterator[None]:
    before = locked()
    yield
    assert locked() == before


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Store]:
    made = await store(volume(tmp_path), locked_memory=4 * PAGE)
    await finalized(made, block(), DATA)
    yield made
    made.memory.close()


async def test_a_replica_in_memory_takes_whole_pages_until_it_is_let_go(kept: Store) -> None:
    before = locked()
    await cache(kept, block().block_id)
    assert (locked() - before, kept.memory.used) == (2 * PAGE, 2 * PAGE)
    assert kept.memory.blocks() == [block().block_id]
    await cache(kept, block().block_id)
    assert (locked() - before, kept.memory.used) == (2 * PAGE, 2 * PAGE)
    kept.memory.release(block().block_id)
    assert (locked() - before, kept.memory.used, kept.memory.blocks()) == (0, 0, [])


async def delete(kept: Store) -> None:
    await kept.delete(kept.forget(block()))


async def append(kept: Store) -> None:
    await kept.perform(Append(block(), block(stamp=1002).stamp, len(DATA)))


async def lose_the_volume(kept: Store) -> None:
    kept.volumes.give_up(StorageId("DS-1"), OSError("planted"))


async def close(kept: Store) -> None:
    kept.memory.close()


@pytest.mark.parametrize("change", [delete, append, lose_the_volume, close])
async def test_what_changes_or_goes_does_not_stay_in_memory(
    kept: Store, change: Callable[[Store], object]
) -> None:
    before = locked()
    await cache(kept, block().block_id)
    coming = change(kept)
    assert asyncio.iscoroutine(coming)
    await coming
    assert (locked(), kept.memory.used, kept.memory.blocks()) == (before, 0, [])


@pytest.mark.row("B28")
async def test_there_is_room_for_whole_pages_up_to_the_limit_and_no_more(kept: Store) -> None:
    for number, size in enumerate((PAGE, PAGE, 1), start=1):
        await finalized(kept, block(number), bytes(size))
    await cache(kept, block().block_id)
    await cache(kept, block(1).block_id)
    await cache(kept, block(2).block_id)
    assert kept.memory.used == kept.memory.capacity
    with pytest.raises(NoRoom):
        await cache(kept, block(3).block_id)
    kept.memory.release(block(1).block_id)
    await cache(kept, block(3).block_id)
    assert sorted(kept.memory.blocks()) == [block(n).block_id for n in (0, 2, 3)]


async def flip(kept: Store) -> None:
    path = kept.volumes[StorageId("DS-1")].paths(kept.find(block())).block
    path.write_bytes(b"x" + DATA[1:])


async def lengthen(kept: Store) -> None:
    path = kept.volumes[StorageId("DS-1")].paths(kept.find(block())).block
    path.write_bytes(DATA + b"x")


async def lose_the_files(kept: Store) -> None:
    paths = kept.volumes[StorageId("DS-1")].paths(kept.find(block()))
    paths.block.unlink()


REFUSALS: list[tuple[Callable[[Store], object], type[DataNodeError]]] = [
    (flip, ChecksumMismatch),
    (lengthen, ChecksumMismatch),
    (lose_the_files, ReplicaMissing),
    (delete, ReplicaMissing),
    (append, ReplicaRefused),
    (close, NoRoom),
]


@pytest.mark.parametrize(("change", "refusal"), REFUSALS)
async def test_what_is_damaged_or_not_whole_is_refused_and_takes_no_room(
    kept: Store, change: Callable[[Store], object], refusal: type[DataNodeError]
) -> None:
    before, coming = locked(), change(kept)
    assert asyncio.iscoroutine(coming)
    await coming
    with pytest.raises(refusal):
        await cache(kept, block().block_id)
    assert (locked(), kept.memory.used) == (before, 0)
    assert block().block_id not in kept.memory


async def test_an_empty_replica_is_refused(kept: Store) -> None:
    await finalized(kept, block(1), b"")
    with pytest.raises(ReplicaRefused):
        await cache(kept, block(1).block_id)


async def test_what_is_let_go_while_it_comes_does_not_stay(kept: Store) -> None:
    before = locked()
    coming = asyncio.create_task(cache(kept, block().block_id))
    await asyncio.sleep(0)
    assert block().block_id in kept.memory
    assert kept.memory.blocks() == []
    kept.memory.release(block().block_id)
    assert kept.memory.used == 2 * PAGE
    again = asyncio.create_task(cache(kept, block().block_id))
    await asyncio.gather(coming, again)
    assert (locked() - before, kept.memory.used) == (2 * PAGE, 2 * PAGE)


async def test_what_comes_after_the_caller_was_cancelled_and_the_end_does_not_stay(
    kept: Store,
) -> None:
    coming = asyncio.create_task(cache(kept, block().block_id))
    while locked_or_loading(kept) is None:
        await asyncio.sleep(0)
    coming.cancel()
    with suppress(asyncio.CancelledError):
        await coming
    kept.memory.close()
    await until(lambda: kept.memory.used == 0)


def locked_or_loading(kept: Store) -> bool | None:
    return True if block().block_id in kept.memory else None


def test_the_system_refuses_what_it_cannot_map_or_lock(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    writable = os.open(path, os.O_WRONLY)
    readable = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(PermissionError):
            lock_file(writable, len(DATA))
        with pytest.raises(OSError, match=r"memory|Bad address"):
            lock_file(readable, 10 * len(DATA))
        pages = lock_file(readable, len(DATA))
        unlock(pages)
    finally:
        os.close(writable)
        os.close(readable)


def test_a_memory_that_gives_one_up_keeps_the_place_of_the_next() -> None:
    memory, one = Memory(2 * PAGE), BlockId(1)
    first = memory.reserve(one, 1)
    memory.release(one)
    second = memory.reserve(one, 1)
    memory.give_up(first)
    assert (one in memory, memory.used) == (True, PAGE)
    memory.give_up(second)
    assert (one in memory, memory.used) == (False, 0)


def test_pages_are_whole() -> None:
    assert [whole_pages(n) for n in (1, PAGE, PAGE + 1)] == [PAGE, PAGE, 2 * PAGE]


def test_more_than_may_be_locked_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_settings, "most_lockable", lambda: PAGE)
    chosen = name_nodes.settings([tmp_path], [], locked_memory=PAGE)
    refuse_unlockable(chosen)
    with pytest.raises(ExitWith, match=f"LimitMEMLOCK={PAGE + 1} ") as refused:
        refuse_unlockable(replace(chosen, locked_memory=PAGE + 1))
    assert refused.value.code == 78
    assert 0 < most_lockable() <= sys.maxsize


# ---- a DataNode and its NameNode ----


def memory_command(action: int, *blocks: Block, pool: str = POOL.pool) -> pb.DatanodeCommandProto:
    return pb.DatanodeCommandProto(
        cmdType=pb.DatanodeCommandProto.BlockIdCommand,
        blkIdCmd=pb.BlockIdCommandProto(
            action=pb.BlockIdCommandProto.Action.ValueType(action),
            blockPoolId=pool,
            blockIds=[one.block_id for one in blocks],
        ),
    )


CACHE, UNCACHE = pb.BlockIdCommandProto.CACHE, pb.BlockIdCommandProto.UNCACHE


def used(namenode: NameNode) -> int:
    return namenode.heartbeats[-1].cacheUsed


def cached(namenode: NameNode) -> list[int]:
    """Return what the last cache report names."""
    return sorted(namenode.cached[-1]) if namenode.cached else []


async def test_a_datanode_caches_what_its_namenode_asks_for_and_reports_it(tmp_path: Path) -> None:
    async with name_nodes.name_node() as namenode:
        chosen = name_nodes.settings([tmp_path], [namenode], locked_memory=4 * PAGE)
        async with started(chosen, namenode) as node:
            for number in range(2):
                await write_whole([name_nodes.place(node)], block(number), DATA)
            assert namenode.heartbeats[-1].cacheCapacity == 4 * PAGE
            namenode.commands.append(memory_command(CACHE, block(7), block(0), block(1)))
            both = [block(0).block_id, block(1).block_id]
            await until(lambda: cached(namenode) == both)
            await until(lambda: used(namenode) == 4 * PAGE)
            namenode.commands.append(memory_command(UNCACHE, block(1), block(7)))
            await until(lambda: cached(namenode) == [block(0).block_id])
            namenode.commands.append(memory_command(UNCACHE, block(0), pool="BP-other"))
            namenode.commands.append(invalidate(block(0)))
            await until(lambda: cached(namenode) == [])
            await until(lambda: used(namenode) == 0)
            namenode.commands.append(memory_command(CACHE, block(1)))
            await until(lambda: used(namenode) == 2 * PAGE)


async def test_a_standby_is_not_obeyed_and_an_old_namenode_not_left(tmp_path: Path) -> None:
    async with name_nodes.name_node() as namenode, name_nodes.name_node(STANDBY) as standby:
        namenode.is_old = True
        chosen = name_nodes.settings([tmp_path], [namenode, standby], locked_memory=4 * PAGE)
        async with started(chosen, namenode, standby) as node:
            await write_whole([name_nodes.place(node)], block(), DATA)
            standby.commands.append(memory_command(CACHE, block()))
            await until(lambda: not standby.commands)
            count = len(namenode.cached)
            await until(lambda: len(namenode.cached) > count + 2)
            assert used(namenode) == 0
            assert cached(standby) == []
            assert len(namenode.registrations) == 1


async def test_a_replica_that_is_found_damaged_is_reported(tmp_path: Path) -> None:
    async with name_nodes.name_node() as namenode:
        chosen = name_nodes.settings([tmp_path], [namenode], locked_memory=4 * PAGE)
        async with started(chosen, namenode) as node:
            await write_whole([name_nodes.place(node)], block(), DATA)
            (path,) = tmp_path.rglob(f"finalized/**/blk_{block().block_id}")
            path.write_bytes(b"x" + DATA[1:])
            namenode.commands.append(memory_command(CACHE, block()))
            await until(lambda: namenode.damaged == [block().block_id])
            assert used(namenode) == 0


async def test_without_memory_there_are_no_cache_reports(tmp_path: Path) -> None:
    async with name_nodes.name_node() as namenode, name_nodes.data_node(tmp_path, namenode):
        await until(lambda: len(namenode.heartbeats) > 3)
        assert namenode.cached == []
        assert namenode.heartbeats[-1].cacheCapacity == 0
