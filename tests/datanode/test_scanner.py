"""The scanner: damaged replicas are reported, lost ones forgotten, whole ones left alone."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from datanode.errors import ReplicaMissing
from datanode.model import Replica
from datanode.replicas.operations import Append, News
from datanode.replicas.scanner import Scanner, ScanRhythm, in_order
from datanode.replicas.store import Store
from hadoop.blocks import GenerationStamp
from hadoop.wire.errors import ChecksumMismatch
from tests.datanode import name_nodes
from tests.datanode.block_client import ReadRefused, read, until, write_whole
from tests.datanode.name_nodes import invalidate
from tests.datanode.stores import begun, block, finalized, store, volume

DATA = bytes(range(251)) * 4000
FAST = ScanRhythm(bytes_per_second=1 << 40)
UNASKED_NEVER = ScanRhythm(bytes_per_second=1 << 40, period_seconds=-1)


@asynccontextmanager
async def scanning(kept: Store, rhythm: ScanRhythm) -> AsyncIterator[tuple[Scanner, list[Replica]]]:
    damaged: list[Replica] = []
    scanner = Scanner(kept, rhythm, on_damage=damaged.append)
    task = asyncio.create_task(scanner.run())
    try:
        yield scanner, damaged
    finally:
        task.cancel()
        await asyncio.wait([task])


def flip(kept: Store, replica: Replica, at: int) -> None:
    path = kept.volumes[replica.storage].paths(replica).block
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


DAMAGE = ["a flipped bit", "the last bit", "cut", "longer", "a bad header"]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_is_found_and_only_that(tmp_path: Path, damage: str) -> None:
    kept = await store(volume(tmp_path))
    for number in range(3):
        await finalized(kept, block(number), DATA)
    await begun(kept, block(3), DATA)
    bad = kept.find(block(1))
    paths = kept.volumes[bad.storage].paths(bad)
    match damage:
        case "a flipped bit":
            flip(kept, bad, 500_000)
        case "the last bit":
            flip(kept, bad, len(DATA) - 1)
        case "cut":
            paths.block.write_bytes(DATA[:-1])
        case "longer":
            paths.block.write_bytes(DATA + b"x")
        case _:
            paths.meta.write_bytes(b"\xff" + paths.meta.read_bytes()[1:])
    async with scanning(kept, FAST) as (_, damaged):
        await until(lambda: damaged != [])
    assert damaged == [bad]
    assert len(kept) == 4
    await kept.volumes.close()


async def test_a_lost_replica_is_forgotten(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    gone = await finalized(kept, block(), DATA)
    told: list[News] = []
    kept.listeners.append(lambda announcement: told.append(announcement.news))
    kept.volumes[gone.storage].paths(gone).block.unlink()
    async with scanning(kept, FAST):
        await until(lambda: told == [News.DELETED])
    assert len(kept) == 0
    await kept.volumes.close()


async def test_a_lost_replica_that_is_changing_does_not_end_the_scanner(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    gone, other = [await finalized(kept, block(number), DATA) for number in range(2)]
    kept.volumes[gone.storage].paths(gone).block.unlink()
    flip(kept, other, 0)
    release = threading.Event()
    async with scanning(kept, UNASKED_NEVER) as (scanner, damaged):
        scanner.suspect(gone.block)
        scanner.suspect(other.block)
        holding = asyncio.create_task(kept.volumes.run(gone.storage, release.wait))
        changing = asyncio.create_task(
            kept.perform(Append(gone.block, GenerationStamp(2000), gone.length))
        )
        await asyncio.sleep(0)
        release.set()
        await until(lambda: damaged == [other])
        await holding
        with pytest.raises(ReplicaMissing):
            await changing
    await kept.volumes.close()


async def test_a_suspected_block_is_read_though_none_is_unasked(tmp_path: Path) -> None:
    kept = await store(volume(tmp_path))
    for number in range(2):
        flip(kept, await finalized(kept, block(number), DATA), 7)
    async with scanning(kept, UNASKED_NEVER) as (scanner, damaged):
        scanner.suspect(block(1))
        scanner.suspect(block(9))
        await until(lambda: damaged != [])
    assert [one.block for one in damaged] == [block(1)]
    assert list(in_order(kept)) == [block(0), block(1)]
    await kept.volumes.close()


@pytest.mark.row("B29")
async def test_name_nodes_hear_of_damage_even_later(tmp_path: Path) -> None:
    async with name_nodes.name_node() as active, name_nodes.data_node(tmp_path, active) as node:
        await write_whole([name_nodes.place(node)], block(), DATA)
        (path,) = tmp_path.rglob(f"blk_{block().block_id}")
        path.write_bytes(DATA[:-1])
        active.deaf = 2
        with pytest.raises(ReadRefused):
            await read(name_nodes.place(node), block(stamp=2000), 0, 1)
        with pytest.raises(ReadRefused):
            await read(name_nodes.place(node), block(), 0, len(DATA) + 1)
        await name_nodes.seen(lambda: active.damaged != [])
        assert active.damaged == [block().block_id]


@pytest.mark.parametrize("copied_anew", [False, True])
async def test_a_standby_hears_of_damage_in_its_term_if_it_is_there_still(
    tmp_path: Path, copied_anew: bool
) -> None:
    async with (
        name_nodes.name_node() as active,
        name_nodes.name_node(name_nodes.STANDBY, txid=90) as standby,
        name_nodes.data_node(tmp_path, active, standby) as node,
    ):
        await name_nodes.seen(lambda: node.status()["obeyed"] == "nn1")
        await write_whole([name_nodes.place(node)], block(), DATA)
        (path,) = tmp_path.rglob(f"blk_{block().block_id}")
        path.write_bytes(DATA[:-1])
        with pytest.raises(ReadRefused):
            await read(name_nodes.place(node), block(), 0, len(DATA) + 1)
        await name_nodes.seen(lambda: active.damaged != [] and standby.damage_calls > 1)
        if copied_anew:
            active.commands = [invalidate(block())]
            await name_nodes.seen(lambda: node.status()["replicas"] == 0)
            await write_whole([name_nodes.place(node)], block(), DATA)
        standby.state = name_nodes.ACTIVE
        await name_nodes.rounds(standby)
        assert standby.damaged == ([] if copied_anew else [block().block_id])


async def test_a_complaint_of_a_reader_is_looked_into(tmp_path: Path) -> None:
    async with name_nodes.name_node() as active, name_nodes.data_node(tmp_path, active) as node:
        for number in range(2):
            await write_whole([name_nodes.place(node)], block(number), DATA)
        (path,) = tmp_path.rglob(f"blk_{block().block_id}")
        damaged = bytearray(path.read_bytes())
        damaged[len(DATA) // 2] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ChecksumMismatch):
            await read(name_nodes.place(node), block(0), 0, len(DATA), complain=True)
        await name_nodes.seen(lambda: active.damaged != [])
        assert active.damaged == [block().block_id]
        assert node.status()["replicas"] == 2, "until the NameNode has it deleted"
