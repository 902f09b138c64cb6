"""Rows about real DataNodes at NameNodes of ours: places, failed disks, damaged replicas."""

import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from datanode.process.node import DataNode
from datanode.replicas.scanner import ScanRhythm
from hadoop.blocks import Block
from hadoop.wire.errors import ChecksumMismatch
from namenode_sim.edits import ops
from tests.datanode.block_client import ReadRefused, read, write_whole
from tests.datanode.stores import block
from tests.log_lines import captured
from tests.namenode_sim.datanode_protocol import served as datanode_protocol_served
from tests.namenode_sim.datanode_protocol.served import NameNode, data_node, seen
from tests.namenode_sim.datanode_protocol.test_upkeep import place

DATA = bytes(range(251)) * 400
BAD_AT = 50_000
AT_ONCE = ScanRhythm(bytes_per_second=1 << 40)


async def file_on(nodes: list[DataNode], of: Block, *served: NameNode) -> None:
    """Write a closed file of one block, with a replica on each of these DataNodes."""
    edits = datanode_protocol_served.given(of.block_id, of.stamp, len(DATA), f"/{of.block_id}")
    replication = ops.SetReplication(f"/{of.block_id}", len(nodes))
    for one in served:
        one.apply(*edits[:-1])
    await write_whole([place(one) for one in nodes], of, DATA)
    for one in served:
        one.apply(edits[-1], replication)
    await seen(lambda: all(len(one.holders(of.block_id)) == len(nodes) for one in served))


def on_disks(folder: Path, of: Block) -> list[Path]:
    return sorted(folder.rglob(f"finalized/**/blk_{of.block_id}"))


def all_right(folder: Path, of: Block, count: int) -> bool:
    found = on_disks(folder, of)
    try:
        return len(found) == count and all(path.read_bytes() == DATA for path in found)
    except FileNotFoundError:
        return False  # the damaged one went after the folders were listed


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[BAD_AT] ^= 4
    path.write_bytes(content)


# ---- TestStandbyIsHot ----


@pytest.mark.row("B6")
async def test_b6_a_standby_follows_copies_and_deletions(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    both = (active, standby)
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(data_node(tmp_path / n, *both)) for n in "abc"]
        await seen(lambda: {one.status()["obeyed"] for one in nodes} == {"nn1"})
        await file_on(nodes, block(), *both)

        def known_alike(count: int) -> bool:
            found = [sorted(one.holders(block().block_id)) for one in both]
            return found[0] == found[1] and len(found[0]) == count == len(
                on_disks(tmp_path, block())
            )

        for count in (1, 3):
            for served in both:
                served.apply(ops.SetReplication(f"/{block().block_id}", count))
            await seen(lambda count=count: known_alike(count))
        assert all_right(tmp_path, block(), 3)


@pytest.mark.row("B6")
async def test_b6_a_standby_knows_at_once_what_a_restarted_datanode_has(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    both, blocks = (active, standby), [block(number, 1001 + number) for number in range(5)]
    async with data_node(tmp_path, *both) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
        for one in blocks:
            await file_on([node], one, *both)
    for served in both:
        (known,) = served.cluster.nodes.values()
        known.alive = False
        served.keeper.gone.add_all(known)
    await seen(lambda: not any(one.holders(of.block_id) for one in both for of in blocks))
    await seen(lambda: len(active.cluster.blocks.needed) == len(blocks))
    assert len(standby.cluster.blocks.needed) == 0
    async with data_node(tmp_path, *both):
        await seen(lambda: all(one.holders(of.block_id) for one in both for of in blocks))
        await seen(lambda: len(active.cluster.blocks.needed) == 0)


# ---- TestDataNodeVolumeFailure ----


@pytest.mark.row("B22")
async def test_b22_what_a_failed_volume_held_is_copied_from_the_others(
    tmp_path: Path, active: NameNode
) -> None:
    blocks = [block(number, 1001 + number) for number in range(4)]
    failing, other = tmp_path / "a", tmp_path / "a2"
    async with AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(data_node(failing, active, more=[other])),
            await stack.enter_async_context(data_node(tmp_path / "b", active)),
        ]
        await seen(lambda: {one.status()["obeyed"] for one in nodes} == {"nn1"})
        for one in blocks:
            await file_on(nodes, one, active)
        lost = [one for one in blocks if on_disks(failing, one)]
        assert 0 < len(lost) < len(blocks)
        shutil.rmtree(failing / "current")
        with pytest.raises(ReadRefused, match=f"{failing} failed: "):
            await read(place(nodes[0]), lost[0], 0, 10)
        await seen(lambda: nodes[0].status()["failed_volumes"] == [str(failing)])
        for one in blocks:
            await seen(lambda one=one: all_right(other, one, 1))
            await seen(lambda one=one: len(active.holders(one.block_id)) == 2)
            for node in nodes:
                assert await read(place(node), one, 0, len(DATA)) == DATA
        assert len(active.cluster.blocks.needed) == 0


# ---- TestProcessCorruptBlocks, TestCorruptReplicaInfo ----


@pytest.mark.row("B17")
@pytest.mark.parametrize("finder", ["a reader", "the scanner"])
async def test_b17_a_flipped_bit_is_found_told_and_replaced(
    tmp_path: Path, active: NameNode, finder: str
) -> None:
    """Where each DataNode has a replica, the damaged one makes room first: good ones stay."""
    async with AsyncExitStack() as stack:
        kept = [await stack.enter_async_context(data_node(tmp_path / n, active)) for n in "ab"]
        async with data_node(tmp_path / "c", active) as victim:
            await seen(lambda: {one.status()["obeyed"] for one in (*kept, victim)} == {"nn1"})
            await file_on([*kept, victim], block(), active)
            (damaged,) = on_disks(tmp_path / "c", block())
            with captured("datanode.damaged_replica", "datanodes.damaged_replica") as lines:
                flip(damaged)
                if finder == "a reader":
                    with pytest.raises(ChecksumMismatch, match=f"blk_{block().block_id}") as found:
                        await read(place(victim), block(), 0, len(DATA), complain=True)
                    assert found.value.offset == BAD_AT // 512 * 512
                    await replaced(tmp_path, active)
        if finder == "the scanner":
            with captured("datanode.damaged_replica", "datanodes.damaged_replica") as lines:
                async with data_node(tmp_path / "c", active, scan=AT_ONCE):
                    await replaced(tmp_path, active)
    (line,) = [line for line in lines if line["event"] == "datanode.damaged_replica"]
    assert line["block"] == str(block())
    assert f"{BAD_AT // 512 * 512}" in line["why"]
    (told,) = [line for line in lines if line["event"] == "datanodes.damaged_replica"]
    assert (told["block"], told["stamp"]) == (block().block_id, block().stamp)
    assert told["datanode"] == victim.status()["uuid"]


async def replaced(folder: Path, active: NameNode) -> None:
    await seen(lambda: all_right(folder, block(), 3))
    await seen(lambda: len(active.holders(block().block_id)) == 3)
    assert active.cluster.blocks.map.corrupt_count() == 0
