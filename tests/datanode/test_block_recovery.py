"""Block recovery among two DataNodes: how it is led, and what it leaves on each."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from datanode.errors import RecoveryInProgress, ReplicaRefused
from datanode.model import Finalized, StorageId
from datanode.namenodes.commands import Recover, Truncate
from datanode.namenodes.identity import Identity, Namespace
from datanode.namenodes.namenode_client import NameNodeCalls, recovery_request
from datanode.namenodes.recovery import MAX_NODES, Leader, RecoveryFailed, end_recovery
from datanode.process.rpc_services import DataNodeRpcServices
from datanode.replicas.operations import BeginRecovery
from datanode.replicas.store import Store
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.server import RpcServer
from hadoop.blocks import Block, BlockId, GenerationStamp
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.wire.errors import DataNodeError
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.datanode.block_client import until
from tests.datanode.recorded import Recorded
from tests.datanode.stores import POOL, begun, block, finalized, store, volume
from tests.ha.rpc.test_cut_short import holdings

DATA = bytes(range(251)) * 7
OLD, NEW = GenerationStamp(1001), GenerationStamp(1005)
STORAGES = [StorageId("DS-a"), StorageId("DS-b")]
SPACE = Namespace(POOL.namespace_id, "CID-1", POOL.ctime, POOL.pool)


@dataclass(slots=True)
class Partner:
    store: Store
    identity: Identity


@asynccontextmanager
async def partner(folder: Path) -> AsyncIterator[Partner]:
    kept = await store(volume(folder, f"DS-{folder.name}"))
    server = RpcServer(DataNodeRpcServices(kept, POOL.pool).protocols())
    port = await server.start("127.0.0.1", 0)
    uuid = f"uuid-{folder.name}"
    try:
        yield Partner(kept, Identity(uuid, "127.0.0.1", port + 1, port + 2, port, SPACE))
        await until(lambda: server.connection_count == 0)
    finally:
        await server.stop()
        await kept.volumes.close()


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Partner, Partner]]:
    """Run two: the first leads; others do not reach it."""
    async with partner(tmp_path / "a") as first, partner(tmp_path / "b") as second:
        yield replace(first, identity=replace(first.identity, rpc_port=1)), second


@pytest.fixture
def wire() -> Recorded:
    return Recorded()


async def led(by: Partner, command: Recover, told: Recorded) -> None:
    await Leader(by.store, by.identity).lead(command, NameNodeCalls(told))


def order(of: Block, partners: tuple[Partner, ...], truncate: Truncate | None = None) -> Recover:
    return Recover(of, NEW, tuple(one.identity.node_id for one in partners), truncate)


IDS = {"an old id": -5, "a new id": 1 << 30}


@pytest.mark.parametrize("number", IDS.values(), ids=IDS)
async def test_replicas_become_equally_long(
    two: tuple[Partner, Partner], wire: Recorded, number: int
) -> None:
    old = Block(BlockId(number), OLD)
    for one, length in zip(two, (1000, 1500), strict=True):
        await begun(one.store, old, DATA[:length])
    await led(two[0], order(old, two), wire)
    for one, storage in zip(two, STORAGES, strict=True):
        assert list(one.store) == [Finalized(Block(old.block_id, NEW), storage, 1000)]
    assert wire.one("commitBlockSynchronization") == recovery_request(
        old, POOL.pool, new_stamp=NEW, length=1000,
        nodes=[one.identity.node_id for one in two], storages=STORAGES,
    )  # fmt: skip


@pytest.mark.parametrize("number", IDS.values(), ids=IDS)
async def test_a_truncate_may_make_a_copy(
    two: tuple[Partner, Partner], wire: Recorded, number: int
) -> None:
    old, copy = Block(BlockId(number), OLD), BlockId(7)
    for one in two:
        await finalized(one.store, old, DATA)
    await led(two[0], order(old, two, Truncate(copy, 600)), wire)
    for one, storage in zip(two, STORAGES, strict=True):
        assert set(one.store) == {
            Finalized(old, storage, len(DATA)), Finalized(Block(copy, NEW), storage, 600),
        }  # fmt: skip


async def test_a_copy_of_which_nobody_was_told_is_made_again(
    two: tuple[Partner, Partner], wire: Recorded
) -> None:
    cut = Truncate(block(7).block_id, 600)
    for one in two:
        await finalized(one.store, block(), DATA)
    await led(two[0], order(block(), two, cut), Recorded())
    again = replace(order(block(), two, cut), recovery_id=GenerationStamp(NEW + 1))
    await led(two[0], again, wire)
    for one, storage in zip(two, STORAGES, strict=True):
        assert set(one.store) == {
            Finalized(block(), storage, len(DATA)),
            Finalized(block(7, stamp=NEW + 1), storage, 600),
        }


async def test_a_copy_is_no_longer_than_its_original(two: tuple[Partner, Partner]) -> None:
    kept = two[0].store
    await finalized(kept, block(), DATA[:1000])
    for length, allowed in ((1001, False), (1000, True)):
        await kept.perform(BeginRecovery(block(), NEW))
        ended = end_recovery(kept, block(), NEW, length, block(7).block_id)
        if allowed:
            assert await ended == "DS-a"
            continue
        with pytest.raises(ReplicaRefused, match="has 1000 bytes, and 1001 are to be kept"):
            await ended


async def test_a_block_of_which_nobody_has_bytes_goes(
    two: tuple[Partner, Partner], wire: Recorded
) -> None:
    await led(two[0], order(block(), two), wire)
    assert wire.one("commitBlockSynchronization") == recovery_request(
        block(), POOL.pool, new_stamp=NEW, length=0
    )


async def test_one_that_does_not_answer_is_left_out(
    two: tuple[Partner, Partner], wire: Recorded
) -> None:
    for one in two:
        await finalized(one.store, block(), DATA)
    await led(two[0], order(block(), (*two, away(two[1]))), wire)
    request = wire.one("commitBlockSynchronization")
    assert isinstance(request, pb.CommitBlockSynchronizationRequestProto)
    assert list(request.newTargetStorages) == STORAGES


def away(one: Partner) -> Partner:
    """Return a partner as it is where no connection to it comes about."""
    return replace(one, identity=replace(one.identity, uuid="uuid-c", rpc_port=1))


async def test_one_whose_replica_is_too_old_is_left_out(
    two: tuple[Partner, Partner], wire: Recorded
) -> None:
    await finalized(two[0].store, block(), DATA)
    await finalized(two[1].store, block(stamp=1000), DATA)
    await led(two[0], order(block(), two), wire)
    request = wire.one("commitBlockSynchronization")
    assert isinstance(request, pb.CommitBlockSynchronizationRequestProto)
    assert list(request.newTargetStorages) == STORAGES[:1]


async def test_nobody_answers(two: tuple[Partner, Partner], wire: Recorded) -> None:
    with pytest.raises(RecoveryFailed, match=f"^no DataNode of {block()} answers: 127.0.0.1:1: "):
        await led(two[0], order(block(), (away(two[1]),)), wire)
    assert wire.calls == []


async def test_replicas_that_do_not_fit_stay(two: tuple[Partner, Partner], wire: Recorded) -> None:
    for one, length in zip(two, (1000, 1500), strict=True):
        await finalized(one.store, block(), DATA[:length])
    with pytest.raises(RecoveryFailed, match=r"have lengths \[1000, 1500\]"):
        await led(two[0], order(block(), two), wire)
    assert wire.calls == []


@pytest.mark.parametrize("where", [0, 1], ids=["our own", "another's"])
async def test_a_newer_recovery_ends_this_one(
    two: tuple[Partner, Partner], wire: Recorded, where: int
) -> None:
    for one in two:
        await finalized(one.store, block(), DATA)
    await two[where].store.perform(BeginRecovery(block(), GenerationStamp(NEW + 1)))
    with pytest.raises(RecoveryInProgress, match="recovery 1006"):
        await led(two[0], order(block(), two), wire)
    assert wire.calls == []


@pytest.mark.parametrize("damaged", [1, 2], ids=["one", "both"])
async def test_whoever_cannot_cut_its_replica_is_left_out(
    two: tuple[Partner, Partner], wire: Recorded, damaged: int
) -> None:
    for one in two:
        replica = await finalized(one.store, block(), DATA)
    for one in two[:damaged]:
        (replica,) = one.store
        one.store.volumes[replica.storage].paths(replica).block.write_bytes(bytes(len(DATA)))
    leading = led(two[0], order(block(), two, Truncate(block().block_id, 600)), wire)
    if damaged == 2:
        with pytest.raises(RecoveryFailed, match=f"^no replica of {block()} was cut: 127"):
            await leading
        return
    await leading
    request = wire.one("commitBlockSynchronization")
    assert isinstance(request, pb.CommitBlockSynchronizationRequestProto)
    assert list(request.newTargetStorages) == STORAGES[1:]


@pytest.mark.parametrize(("place", "stamp"), [(MAX_NODES, NEW), (MAX_NODES + 1, OLD)])
async def test_a_long_list_of_data_nodes_is_cut(
    two: tuple[Partner, Partner], wire: Recorded, place: int, stamp: GenerationStamp
) -> None:
    for one in two:
        await finalized(one.store, block(), DATA)
    silent = [away(two[1])] * (place - 2)
    await led(two[0], order(block(), (two[0], *silent, two[1])), wire)
    assert [one.block.stamp for one in two[1].store] == [stamp]


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL])
async def test_a_recovery_that_is_cut_short_can_be_led_again(
    two: tuple[Partner, Partner], wire: Recorded, fault: Fault
) -> None:
    numbers = count(1 << 31)

    async def written() -> Block:
        new = Block(BlockId(next(numbers)), OLD)
        for one, length in zip(two, (1000, 1500), strict=True):
            await begun(one.store, new, DATA[:length])
        return new

    old = await written()

    async def life() -> None:
        await led(two[0], order(old, two), wire)

    async def after(_: int) -> None:
        nonlocal old
        wire.calls.clear()
        later = GenerationStamp(NEW + 1)
        await led(two[0], replace(order(old, two), recovery_id=later), wire)
        ours = (r for one in two for r in one.store if r.block.block_id == old.block_id)
        whole = [replica for replica in ours if isinstance(replica, Finalized)]
        assert {replica.block.stamp for replica in whole} == {later}
        (length,) = {replica.length for replica in whole}
        reported = wire.one("commitBlockSynchronization")
        assert isinstance(reported, pb.CommitBlockSynchronizationRequestProto)
        assert reported.newLength == length
        assert list(reported.newTargetStorages) == [replica.storage for replica in whole]
        old = await written()

    typed = (DataNodeError, RpcError, RemoteFault, ConnectionError)
    cuts = Cuts(life, fault, typed=typed, kept=frozenset({"datanode.model", "hadoop.blocks"}))
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 8
