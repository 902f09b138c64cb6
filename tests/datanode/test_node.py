"""A DataNode among NameNodes: registration, reports, whom it obeys, what it does on command."""

import asyncio
import json
import shutil
from itertools import permutations
from pathlib import Path

import pytest

from datanode.namenodes.claim import NameNodeId, Said
from datanode.namenodes.claim_file import read_claims
from datanode.process.node import DataNode
from ha.daemon.process import ExitWith
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import datanode_types_pb2 as types
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import extended
from tests.datanode import name_nodes
from tests.datanode.block_client import STAGE, begin, read, write_whole
from tests.datanode.name_nodes import NameNode, data_node, invalidate, place, rounds, seen, told
from tests.datanode.stores import POOL, block
from tests.log_lines import captured

DATA = bytes(range(251)) * 40


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
async def test_of_those_that_claim_at_once_the_newest_is_obeyed(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    """Hear each while the claims of the others are being written down."""
    node = DataNode(name_nodes.settings([tmp_path], [NameNode() for _ in order]))
    await asyncio.gather(
        *(node.heard(NameNodeId(f"nn{number}"), Said.ACTIVE, number) for number in order)
    )
    assert (node.status()["obeyed"], node.status()["highest_claim"]) == ("nn3", 3)


@pytest.mark.row("B29")
async def test_it_registers_and_says_what_it_has(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    async with data_node(tmp_path, active, standby) as node:
        for model in (active, standby):
            (registered,) = model.registrations
            assert registered.softwareVersion == "3.5.0-nnha"
            assert registered.storageInfo.clusterID == "CID-1"
            assert registered.storageInfo.layoutVersion == (1 << 32) - 57
            (report,) = model.heartbeats[0].reports
            assert report.storage.storageType == hdfs.StorageTypeProto.DISK
            assert model.heartbeats[0].requestFullBlockReportLease
        await seen(lambda: node.status()["obeyed"] == "nn1")
        assert node.trouble() is None
        await write_whole([place(node)], block(), DATA)
        await seen(lambda: told(active) != [] and told(standby) != [])
        for model in (active, standby):
            assert told(model)[-1] == (block().block_id, name_nodes.RECEIVED)


async def test_a_lease_brings_a_report_asked_for_or_not(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path, active) as node:
        await write_whole([place(node)], block(), DATA)
        active.lease = 7
        await seen(lambda: len(active.reports) == 1)
        active.lease = 8
        await seen(lambda: len(active.reports) == 2)
        assert [report.context.leaseId for report in active.reports] == [7, 8]
        assert [report.reports[0].numberOfBlocks for report in active.reports] == [1, 1]
        await rounds(active)
        assert not active.heartbeats[-1].requestFullBlockReportLease
        assert active.reports[0].context.id != active.reports[1].context.id


@pytest.mark.parametrize(("blocks", "calls"), [(3, [[2, 1]]), (4, [[2], [2]])])
async def test_a_long_report_has_a_call_for_each_volume(
    tmp_path: Path, active: NameNode, blocks: int, calls: list[list[int]]
) -> None:
    chosen = name_nodes.settings([tmp_path / "a", tmp_path / "b"], [active], split_blocks=4)
    async with name_nodes.started(chosen, active) as node:
        for number in range(blocks):
            await write_whole([place(node)], block(number), DATA)
        active.lease = 7
        await seen(lambda: len(active.reports) == len(calls))
        active.lease = 0
        await rounds(active)
        told_of = [[one.numberOfBlocks for one in call.reports] for call in active.reports]
        assert sorted(map(sorted, told_of)) == sorted(map(sorted, calls))
        contexts = [call.context for call in active.reports]
        assert [(one.curRpc, one.totalRpcs) for one in contexts] == [
            (number, len(calls)) for number in range(len(calls))
        ]
        assert {(one.id, one.leaseId) for one in contexts} == {(contexts[0].id, 7)}


@pytest.mark.row("B29")
async def test_news_are_kept_until_they_are_answered(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path, active) as node:
        active.failures = 2
        await write_whole([place(node)], block(), DATA)
        await seen(lambda: told(active) == [(block().block_id, name_nodes.RECEIVED)])
        assert len(active.registrations) >= 2


async def test_deletions_on_command(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path, active) as node:
        for number in range(3):
            await write_whole([place(node)], block(number), DATA)
        active.commands = [
            invalidate(block(0)),
            invalidate(block(1), quietly=True),
            invalidate(block(2, stamp=999)),
            invalidate(block(9)),
        ]
        await seen(lambda: (block().block_id, name_nodes.DELETED) in told(active))
        await seen(lambda: node.status()["replicas"] == 1)
        await rounds(active)
        assert (block(1).block_id, name_nodes.DELETED) not in told(active)
        assert await read(place(node), block(2), 0, len(DATA)) == DATA


async def test_a_replica_that_is_deleted_before_it_is_told_is_not_told(
    tmp_path: Path, active: NameNode
) -> None:
    async with data_node(tmp_path, active) as node:
        active.failures = 1_000_000
        await write_whole([place(node)], block(), DATA)
        active.commands = [invalidate(block(), quietly=True)]
        await seen(lambda: node.status()["replicas"] == 0)
        await rounds(active)  # a report that was on its way before the deletion is refused, too
        active.failures = 0
        await write_whole([place(node)], block(1), DATA)
        await seen(lambda: (block(1).block_id, name_nodes.RECEIVED) in told(active))
        assert block().block_id not in dict(told(active))


@pytest.mark.row("B29")
async def test_who_is_not_obeyed_commands_nothing(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    async with data_node(tmp_path, active, standby) as node:
        await write_whole([place(node)], block(), DATA)
        await seen(lambda: node.status()["obeyed"] == "nn1")
        standby.commands = [invalidate(block())]
        await rounds(standby)
        # A cut-off active that thinks it is still the one: its claim is not newer.
        with captured("datanode.") as logs:
            standby.state = active.state
            standby.commands = [invalidate(block())]
            await rounds(standby)
            await rounds(standby)
        assert node.status()["replicas"] == 1
        assert node.status()["stale_claims"] == {"nn2": 90}
        (line,) = [one for one in logs if one["event"] == "datanode.claim"]
        assert (line["log_level"], line["highest"]) == ("warning", 100)
        standby.txid = 101
        await seen(lambda: node.status()["obeyed"] == "nn2")
        assert node.status()["stale_claims"] in ({}, {"nn1": 100})
        active.commands = [invalidate(block())]
        await rounds(active)
        assert node.status()["replicas"] == 1
        standby.commands = [invalidate(block())]
        await seen(lambda: node.status()["replicas"] == 0)


@pytest.mark.row("B29")
async def test_the_highest_claim_outlives_a_restart(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path, active) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
    claims = read_claims([tmp_path])
    assert (claims.highest, claims.remembered) == (100, NameNodeId("nn1"))
    async with name_nodes.name_node(txid=100) as other, data_node(tmp_path, other, active) as node:
        # nn1 is another process now, and nn2 is new: the obeyed one is known by its name.
        await seen(lambda: node.status()["obeyed"] == "nn1")
        await rounds(active)
        assert node.status()["obeyed"] == "nn1"


async def test_what_comes_with_the_command_to_register_is_not_obeyed(
    tmp_path: Path, active: NameNode
) -> None:
    async with data_node(tmp_path, active) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
        await write_whole([place(node)], block(), DATA)
        active.commands = [invalidate(block()), name_nodes.register()]
        await seen(lambda: len(active.registrations) == 2)
        await rounds(active)
        assert node.status()["replicas"] == 1


@pytest.mark.row("B29")
async def test_register_is_done_again_on_command(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path, active):
        await rounds(active)
        active.lease = 5
        await seen(lambda: len(active.reports) == 1)
        active.commands = [name_nodes.register()]
        await seen(lambda: len(active.registrations) == 2)
        await rounds(active)
        assert active.heartbeats[-1].requestFullBlockReportLease


@pytest.mark.row("B25")
async def test_a_recovery_makes_replicas_equal(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path / "a", active) as one, data_node(tmp_path / "b", active) as other:
        nodes = [place(one), place(other)]
        writing = await begin(nodes, block())
        await writing.write(DATA[:3000])
        ahead = await begin(
            nodes[:1], block(), stage=STAGE.PIPELINE_SETUP_STREAMING_RECOVERY,
            stamp=1001, length=3000,
        )  # fmt: skip
        await ahead.send(DATA[2560:5000], at=2560)
        await ahead.ack()
        ids = [model.datanodeID for model in active.registrations]
        active.commands = [recover(1010, ids)]
        await seen(lambda: len(active.recoveries) == 1)
        told_of = active.recoveries[0]
        assert (told_of.newGenStamp, told_of.newLength, told_of.deleteBlock) == (1010, 3000, False)
        assert len(told_of.newTaragets) == len(told_of.newTargetStorages) == 2
        for node in nodes:
            assert await read(node, block(stamp=1010), 0, 3000) == DATA[:3000]
        active.commands = [recover(1011, ids, number=77)]
        await seen(lambda: len(active.recoveries) == 2)
        assert active.recoveries[1].deleteBlock
        writing.peer.abort()


def recover(
    recovery_id: int, ids: list[hdfs.DatanodeIDProto], *, number: int = 0
) -> pb.DatanodeCommandProto:
    located = hdfs.LocatedBlockProto(
        b=extended(block(number), POOL.pool),
        offset=0,
        locs=[hdfs.DatanodeInfoProto(id=one) for one in ids],
        corrupt=False,
        blockToken=hdfs.TokenProto(identifier=b"", password=b"", kind="", service=""),
    )
    return pb.DatanodeCommandProto(
        cmdType=pb.DatanodeCommandProto.BlockRecoveryCommand,
        recoveryCmd=pb.BlockRecoveryCommandProto(
            blocks=[types.RecoveringBlockProto(newGenStamp=recovery_id, block=located)]
        ),
    )


async def refused(folders: list[Path], model: NameNode) -> str:
    with pytest.raises(ExitWith) as ended:
        await asyncio.wait_for(
            DataNode(name_nodes.settings(folders, [model])).run(asyncio.Event()), 20
        )
    assert ended.value.code == 78
    return ended.value.message


async def test_directories_of_another_cluster_end_it(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path, active) as node:
        await write_whole([place(node)], block(), DATA)
    before = (tmp_path / "current/VERSION").read_bytes()
    active.cluster_id = "CID-2"
    message = await refused([tmp_path], active)
    assert "belongs to cluster CID-1, the NameNode to CID-2" in message
    assert (tmp_path / "current/VERSION").read_bytes() == before
    assert len(active.registrations) == 1
    active.cluster_id = "CID-1"
    async with data_node(tmp_path, active) as node:
        assert await read(place(node), block(), 0, len(DATA)) == DATA


async def test_a_copied_directory_ends_it(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path / "a", active):
        pass
    version = (tmp_path / "a/current/VERSION").read_bytes()
    (tmp_path / "b/current").mkdir(parents=True)
    (tmp_path / "b/current/VERSION").write_bytes(version)
    assert "may be a copy" in await refused([tmp_path / "a", tmp_path / "b"], active)


async def test_a_copy_of_a_whole_data_node_ends_before_it_registers(
    tmp_path: Path, active: NameNode
) -> None:
    async with data_node(tmp_path / "a", active) as node:
        await write_whole([place(node)], block(), DATA)
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        assert "was copied from another data directory" in await refused([tmp_path / "b"], active)
        await rounds(active)
        assert await read(place(node), block(), 0, len(DATA)) == DATA
    assert len(active.registrations) == 1
    assert [path.read_bytes() for path in (tmp_path / "b").rglob(f"blk_{block().block_id}")] == [
        DATA
    ]


@pytest.mark.row("B29")
async def test_a_name_node_of_another_cluster_does_not_end_it(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    async with data_node(tmp_path, active):
        pass
    standby.cluster_id = "CID-2"
    node = DataNode(name_nodes.settings([tmp_path], [active, standby]))
    stop = asyncio.Event()
    task = asyncio.create_task(node.run(stop))
    await rounds(active)
    # Which reason is given depends on who has answered first.
    await seen(lambda: "luster" in str(node.status()["namenodes"]))
    await rounds(active)
    stop.set()
    await task


@pytest.mark.row("B22")
async def test_no_usable_directory_ends_it(tmp_path: Path, active: NameNode) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "cannot be used" in await refused([tmp_path / "file"], active)
    both = name_nodes.settings([tmp_path / "file", tmp_path / "good"], [active], tolerated=1)
    stop = asyncio.Event()
    task = asyncio.create_task(DataNode(both).run(stop))
    await seen(lambda: len(active.heartbeats) > 0)
    assert active.heartbeats[0].failedVolumes == 1
    summary = active.heartbeats[0].volumeFailureSummary
    assert list(summary.failedStorageLocations) == [str(tmp_path / "file")]
    stop.set()
    await task


@pytest.mark.row("B29")
async def test_it_waits_for_name_nodes_that_come_later(tmp_path: Path) -> None:
    async with name_nodes.name_node() as gone:
        port = gone.port
    away = NameNode(port=port)
    stop = asyncio.Event()
    node = DataNode(name_nodes.settings([tmp_path], [away]))
    task = asyncio.create_task(node.run(stop))
    await seen(lambda: "no connection to" in (node.trouble() or ""))
    assert json.dumps(node.status())
    stop.set()
    await task
