"""DataNodes at NameNodes on real sockets: reports reach the maps of active and standby."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from datanode.model import StorageId
from datanode.namenodes.identity import Identity, Namespace
from datanode.namenodes.namenode_client import Condition, NameNodeCalls
from datanode.process.node import DataNode
from datanode.replicas.operations import News
from datanode.replicas.store import Announcement
from datanode.replicas.volumes import StorageUse
from ha.rpc import java_names
from ha.rpc.errors import RemoteFault
from hadoop import block_tokens
from hadoop.proto import data_transfer_pb2 as pb_data
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import namenode_protocol_pb2 as nn
from hadoop.wire.block_messages import extended
from hadoop.wire.packets import Op
from namenode_sim.edits import ops
from namenode_sim.term.role import Role
from tests.datanode.block_client import Place, ask, write_whole
from tests.datanode.stores import POOL, block
from tests.namenode_sim.datanode_protocol.scripted import whole
from tests.namenode_sim.datanode_protocol.served import (
    IDS,
    RULES,
    NameNode,
    calls,
    data_node,
    given,
    hold_alike,
    name_node,
    seen,
)

SPLIT_BLOCKS = 1000
RECEIVED = Announcement(News.RECEIVED, StorageId("DS-1"), block(), 10)
DATA = bytes(range(251)) * 40


def place(node: DataNode) -> Place:
    port = node.status()["data_port"]
    assert isinstance(port, int)
    return Place(port)


async def test_a_datanode_asks_for_tokens_of_all_its_namenodes(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    now_ms = time.time_ns() // 1_000_000
    rings = [block_tokens.first_ring(n, now_ms, 10**7, 10**7, bytes) for n in (5, 5000)]
    for one, ring in zip((active, standby), rings, strict=True):
        one.cluster.block_keys = ring
    async with data_node(tmp_path, active, standby) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
        for ring in rings:
            assert await tokens_work(node, ring)
        assert node.status()["block_tokens"] is True
        # An interval later each signs with its next key, which is sent with a heartbeat.
        for number, ring in enumerate(rings):
            old = replace(ring, rolled_ms=now_ms - 2 * 10**7)
            (active, standby)[number].cluster.block_keys = old
        await seen(lambda: all(known(one) == n for one, n in ((active, 6), (standby, 5001))))
        for one in (active, standby):
            fresh = one.cluster.block_keys
            assert fresh is not None
            assert await tokens_work(node, fresh)
            later = replace(fresh, current=fresh.following)
            assert await tokens_work(node, later)
        assert not await tokens_work(node, block_tokens.first_ring(77, now_ms, 1, 10**7, bytes))


def known(of: NameNode) -> int:
    """Return the newest key that the only DataNode was sent."""
    (node,) = of.cluster.nodes.values()
    return node.block_key


async def tokens_work(node: DataNode, ring: block_tokens.KeyRing) -> bool:
    """Return whether a DataNode believes a token; it has no block, so that the answer is no."""
    grant = block_tokens.Grant(
        "alice", POOL.pool, block().block_id, frozenset({block_tokens.Mode.READ})
    )
    shown = ring.token(grant, time.time_ns() // 1_000_000)
    header = pb_data.BaseHeaderProto(block=extended(block(), POOL.pool), token=shown)
    request = pb_data.OpBlockChecksumProto(header=header)
    answer = await ask(place(node), Op.BLOCK_CHECKSUM, request)
    return answer.status == pb_data.Status.ERROR


@pytest.mark.row("B6")
async def test_what_a_datanode_tells_reaches_active_and_standby(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    both = (active, standby)
    one, two = block(0, 1001), block(1, 1002)
    async with data_node(tmp_path, *both) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
        active.apply(*given(one.block_id, 1001, len(DATA), "/one")[:-1])
        await write_whole([place(node)], one, DATA)
        # The standby has no edit that shows the block: what it heard waits for one.
        await seen(lambda: active.cluster.blocks.ids.seen_id == one.block_id)
        await seen(lambda: len(standby.cluster.blocks.postponed_reports) == 1)
        active.apply(given(one.block_id, 1001, len(DATA), "/one")[-1])
        standby.apply(*given(one.block_id, 1001, len(DATA), "/one"))
        await seen(lambda: hold_alike(both, one.block_id))
        assert len(standby.cluster.blocks.postponed_reports) == 0
        for name_node in both:
            name_node.apply(*given(two.block_id, 1002, len(DATA), "/two"))
        await write_whole([place(node)], two, DATA)
        await seen(lambda: hold_alike(both, two.block_id))
    async with data_node(tmp_path, *both):
        # Nothing is forgotten when it registers anew; its full report says the same.
        for name_node in both:
            (known,) = name_node.cluster.nodes.values()
            (storage,) = known.storages.values()
            await seen(lambda storage=storage: storage.held.reports == 1)
            assert hold_alike(both, one.block_id)
            assert hold_alike(both, two.block_id)
            assert storage.room.capacity > 0


async def test_a_first_report_fills_a_map_that_knew_nothing(
    tmp_path: Path, active: NameNode
) -> None:
    async with data_node(tmp_path, active) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
        active.apply(*given(block().block_id, 1001, len(DATA), "/f")[:-1])
        await write_whole([place(node)], block(), DATA)
    async with name_node() as late:
        late.apply(*given(block().block_id, 1001, len(DATA), "/f"))
        late.become(Role.STANDBY)
        async with data_node(tmp_path, late):
            await seen(lambda: len(late.holders(block().block_id)) == 1)


async def test_what_a_client_deletes_a_datanode_deletes_after_a_failover_too(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    both, blocks = (active, standby), [block(number, 1001 + number) for number in range(3)]
    async with data_node(tmp_path, *both) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
        for number, one in enumerate(blocks):
            for name_node in both:
                name_node.apply(*given(one.block_id, one.stamp, len(DATA), f"/{number}"))
            await write_whole([place(node)], one, DATA)
            await seen(lambda one=one: hold_alike(both, one.block_id))
        active.held_back = 1
        active.apply(ops.Delete("/0", 30))
        await seen(lambda: len(active.cluster.blocks.invalidations) == 1)
        assert node.status()["replicas"] == 3
        active.held_back = 0
        await seen(lambda: node.status()["replicas"] == 2)
        standby.apply(ops.Delete("/0", 30))
        # Now the other one is the active: it asks for a report that it was not asked to take.
        active.become(Role.CLOSING, Role.STANDBY)
        standby.apply(ops.StartLogSegment())
        standby.become_active()
        await seen(lambda: node.status()["obeyed"] == "nn2")
        (known,) = standby.cluster.nodes.values()
        (storage,) = known.storages.values()
        await seen(lambda: storage.held.confirmed)
        standby.apply(ops.Delete("/1", 30))
        await seen(lambda: node.status()["replicas"] == 1)
        assert len(standby.holders(blocks[2].block_id)) == 1


def identity(uuid: str = "uuid-1", port: int = 9866, **more: object) -> Identity:
    namespace = Namespace(IDS.namespace_id, IDS.cluster_id, IDS.ctime, POOL.pool)
    return Identity(uuid, "127.0.0.1", port, 1, 2, replace(namespace, **more))  # type: ignore[arg-type]


WELL = Condition((StorageUse(StorageId("DS-1"), "DISK", 100, 1, 99),), (), 0, 0)


async def joined(calls_: NameNodeCalls, who: Identity) -> int:
    await calls_.register(who)
    return (await calls_.heartbeat(who, WELL, wants_lease=True)).fullBlockReportLeaseId


@pytest.mark.parametrize(
    "stranger",
    [identity(namespace_id=1), identity(cluster_id="CID-2"), identity(ctime=1)],
    ids=["namespace", "cluster", "time"],
)
async def test_strangers_are_refused_in_every_call(active: NameNode, stranger: Identity) -> None:
    async with calls(active) as asked:
        tries = {
            "register": asked.register(stranger),
            "heartbeat": asked.heartbeat(stranger, WELL, wants_lease=False),
            "report": asked.full_report(stranger, [], {}, lease=0, split_blocks=SPLIT_BLOCKS),
            "news": asked.incremental(stranger, {}, {}),
            "error": asked.error(stranger, 1, "x"),
        }
        for call in tries.values():
            with pytest.raises(RemoteFault, match="Unregistered server") as refused:
                await call
            assert refused.value.java_class == java_names.UNREGISTERED_NODE
    assert active.cluster.nodes == {}


async def test_refusals_have_the_classes_that_hadoops_datanodes_act_upon() -> None:
    who, replica = identity(), replace(whole(), storage=StorageId("DS-1"))
    rules = replace(RULES, registry=replace(RULES.registry, elsewhere_seconds=3600.0))
    async with name_node(active=True, rules=rules) as active, calls(active) as asked:
        old = pb.RegisterDatanodeRequestProto(registration=who.registration)
        old.registration.softwareVersion = "2.0.0"
        with pytest.raises(RemoteFault) as refused:
            await asked.connection.call(
                "registerDatanode", old, pb.RegisterDatanodeResponseProto, deadline_seconds=10
            )
        assert refused.value.java_class == java_names.INCORRECT_VERSION
        lease = await joined(asked, who)
        with pytest.raises(RemoteFault) as refused:
            await asked.full_report(who, [replica], {}, lease=lease + 1, split_blocks=SPLIT_BLOCKS)
        assert refused.value.java_class == java_names.INVALID_REPORT_LEASE
        with pytest.raises(RemoteFault, match="directories were copied") as refused:
            await asked.register(identity(port=1))
        assert refused.value.java_class == java_names.IO_EXCEPTION
        answer = await asked.heartbeat(identity(port=1), WELL, wants_lease=True)
        assert [one.cmdType for one in answer.cmds] == [pb.DatanodeCommandProto.RegisterCommand]
        assert answer.fullBlockReportLeaseId == 0


LIMITS = {
    "a name that no terminal shows": identity("u\x07"),
    "no name": identity(""),
    "a name without end": identity("u" * 257),
    "a port that is none": identity(port=70_000),
}


@pytest.mark.parametrize("case", LIMITS)
async def test_names_and_ports_have_limits(active: NameNode, case: str) -> None:
    async with calls(active) as asked:
        with pytest.raises(RemoteFault, match="registration: ") as refused:
            await asked.register(LIMITS[case])
        assert refused.value.java_class == java_names.IO_EXCEPTION
    assert active.cluster.nodes == {}


async def test_another_pool_and_too_many_storages(active: NameNode) -> None:
    who = identity()
    async with calls(active) as asked:
        lease = await joined(asked, who)
        other = replace(who, namespace=replace(who.namespace, pool="BP-other"))  # type: ignore[arg-type]
        with pytest.raises(RemoteFault, match="block pool 'BP-other'"):
            await asked.full_report(other, [], {}, lease=lease, split_blocks=SPLIT_BLOCKS)
        many = [StorageUse(StorageId(f"DS-{n}"), "DISK", 1, 1, 1) for n in range(65)]
        with pytest.raises(RemoteFault, match="65 storages"):
            await asked.heartbeat(who, replace(WELL, storages=many), wants_lease=False)
    (node,) = active.cluster.nodes.values()
    assert list(node.storages) == ["DS-1"]


async def test_the_version_says_who_is_active_and_that_reports_may_be_bytes(
    active: NameNode, standby: NameNode
) -> None:
    for served, state in ((active, nn.NNHAStatusHeartbeatProto.ACTIVE),
                          (standby, nn.NNHAStatusHeartbeatProto.STANDBY)):  # fmt: skip
        async with calls(served) as asked:
            info = await asked.version()
        assert (info.state, info.capabilities) == (state, 1)
        assert (info.blockPoolID, info.storageInfo.clusterID) == (POOL.pool, "CID-1")


async def test_news_of_a_datanode_that_is_not_registered_are_dropped_and_not_refused(
    active: NameNode,
) -> None:
    """Hadoop's would end a thread over the refusal; a registration is followed by a full report."""
    who, told = identity(), {StorageId("DS-1"): [RECEIVED]}
    async with calls(active) as asked:
        await asked.incremental(who, told, {})
        assert active.cluster.nodes == {}
        answer = await asked.heartbeat(who, WELL, wants_lease=True)
        assert [one.cmdType for one in answer.cmds] == [pb.DatanodeCommandProto.RegisterCommand]


@pytest.mark.row("B20")
async def test_b20_a_lifeline_keeps_a_datanode_alive(active: NameNode) -> None:
    async with calls(active) as asked:
        await joined(asked, identity())
    (node,) = active.cluster.nodes.values()
    node.last_heard -= 100.0
    before = node.last_heard
    request = pb.HeartbeatRequestProto(registration=identity().registration)
    async with calls(active, java_names.DATANODE_LIFELINE_PROTOCOL) as asked:
        await asked.connection.call(
            "sendLifeline", request, pb.LifelineResponseProto, deadline_seconds=10
        )
    assert node.last_heard > before


async def beat(asked: NameNodeCalls, software_version: str) -> pb.HeartbeatResponseProto:
    registration = identity().registration
    registration.softwareVersion = software_version
    request = pb.HeartbeatRequestProto(registration=registration)
    return await asked.connection.call(
        "sendHeartbeat", request, pb.HeartbeatResponseProto, deadline_seconds=10
    )


async def test_an_active_without_its_lease_takes_no_hadoop_datanode_from_itself(
    active: NameNode,
) -> None:
    """Ours obeys it again with the same transaction; Hadoop's would not, once it saw a standby."""
    async with calls(active) as asked:
        await joined(asked, identity())
        (node,) = active.cluster.nodes.values()
        active.leased, before = False, node.last_heard
        with pytest.raises(RemoteFault, match="without its read lease") as refused:
            await beat(asked, "3.5.0")
        assert refused.value.java_class == java_names.IO_EXCEPTION
        assert node.last_heard > before
        told = await beat(asked, "3.5.0-nnha")
        assert told.haStatus.state == nn.NNHAStatusHeartbeatProto.STANDBY
        active.leased = True
        told = await beat(asked, "3.5.0")
        assert told.haStatus.state == nn.NNHAStatusHeartbeatProto.ACTIVE


async def test_damage_is_marked_by_the_active_only(active: NameNode, standby: NameNode) -> None:
    who, one = identity("uuid-1"), whole()
    for served in (active, standby):
        served.apply(*given(one.block.block_id, 1001, one.length, "/f"))
        async with calls(served) as asked:
            lease = await joined(asked, who)
            await asked.full_report(
                who,
                [replace(one, storage=StorageId("DS-1"))],
                {},
                lease=lease,
                split_blocks=SPLIT_BLOCKS,
            )
            assert served.holders(one.block.block_id) == ["DS-1"]
            if served is standby:
                with pytest.raises(RemoteFault) as refused:
                    await asked.bad_replica(who, one, "DISK")
                assert refused.value.java_class == java_names.STANDBY_EXCEPTION
            else:
                await asked.bad_replica(who, one, "DISK")
    assert active.cluster.blocks.map.corrupt_count() == 1
    assert standby.cluster.blocks.map.corrupt_count() == 0
