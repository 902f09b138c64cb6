"""What a DataNode answers to clients and to other DataNodes by Hadoop RPC."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from datanode.model import StorageId
from datanode.process.rpc_services import DataNodeRpcServices
from datanode.replicas.operations import BeginRecovery, CreateCopy
from datanode.replicas.store import Store
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import IO_EXCEPTION, RECOVERY_IN_PROGRESS, REPLICA_NOT_FOUND
from ha.rpc.protocol import Call
from hadoop.blocks import GenerationStamp, PoolId
from hadoop.proto import client_datanode_pb2 as client
from hadoop.proto import datanode_types_pb2 as types
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto import inter_datanode_pb2 as inter
from hadoop.wire.block_messages import extended, plain
from tests.datanode.stores import POOL, begun, block, finalized, store, volume

DATA = bytes(range(251)) * 7
NEW = GenerationStamp(1005)
CALL = Call("protocol", "method", b"client", 1, 0, "alice", None, "127.0.0.1")


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Store]:
    made = await store(volume(tmp_path))
    yield made
    await made.volumes.close()


async def asked(kept: Store, method: str, request: Message) -> Any:  # noqa: ANN401
    faces = DataNodeRpcServices(kept, POOL.pool)
    (found,) = [one.methods[method] for one in faces.protocols() if method in one.methods]
    assert isinstance(request, found.request)
    return await found.handle(CALL, request)


def begin(pool: PoolId = POOL.pool, new: int = NEW) -> inter.InitReplicaRecoveryRequestProto:
    located = hdfs.LocatedBlockProto(b=extended(block(), pool), offset=0, corrupt=False)
    return inter.InitReplicaRecoveryRequestProto(
        block=types.RecoveringBlockProto(newGenStamp=new, block=located)
    )


def end(length: int, new_id: int | None = None) -> inter.UpdateReplicaUnderRecoveryRequestProto:
    return inter.UpdateReplicaUnderRecoveryRequestProto(
        block=extended(block(), POOL.pool), recoveryId=NEW, newLength=length, newBlockId=new_id
    )


async def test_a_recovery_is_begun_and_ended(kept: Store) -> None:
    nothing = await asked(kept, "initReplicaRecovery", begin())
    assert nothing == inter.InitReplicaRecoveryResponseProto(replicaFound=False)
    await begun(kept, block(), DATA)
    found = await asked(kept, "initReplicaRecovery", begin())
    assert found == inter.InitReplicaRecoveryResponseProto(
        replicaFound=True, state=types.ReplicaStateProto.RBW, block=plain(block(), len(DATA))
    )
    ended = await asked(kept, "updateReplicaUnderRecovery", end(1000))
    assert ended == inter.UpdateReplicaUnderRecoveryResponseProto(storageUuid="DS-1")
    assert [(one.block, one.length) for one in kept] == [(block(stamp=NEW), 1000)]


@pytest.mark.parametrize("copied", [False, True], ids=["in place", "to a copy"])
async def test_the_block_that_a_recovery_makes(kept: Store, *, copied: bool) -> None:
    new_id = block(7).block_id if copied else block().block_id
    await finalized(kept, block(), DATA)
    await asked(kept, "initReplicaRecovery", begin())
    await asked(kept, "updateReplicaUnderRecovery", end(1000, new_id))
    made = {(block(new_id - block().block_id, NEW), 1000)}
    left = {(block(), len(DATA))} if copied else set()
    assert {(one.block, one.length) for one in kept} == made | left


def length_of(pool: PoolId = POOL.pool) -> client.GetReplicaVisibleLengthRequestProto:
    return client.GetReplicaVisibleLengthRequestProto(block=extended(block(), pool))


REFUSED = {
    "a recovery in another pool": ("initReplicaRecovery", begin(PoolId("BP-2")), IO_EXCEPTION),
    "a recovery with an id that cannot be": (
        "initReplicaRecovery", begin(new=1 << 63), IO_EXCEPTION
    ),
    "a second recovery": ("initReplicaRecovery", begin(), RECOVERY_IN_PROGRESS),
    "more bytes than there are": ("updateReplicaUnderRecovery", end(9999), IO_EXCEPTION),
    "a length in another pool": (
        "getReplicaVisibleLength", length_of(PoolId("BP-2")), IO_EXCEPTION
    ),
}  # fmt: skip


@pytest.mark.parametrize(("method", "request_", "java_class"), REFUSED.values(), ids=REFUSED)
async def test_what_is_refused(
    kept: Store, method: str, request_: Message, java_class: str
) -> None:
    await finalized(kept, block(), DATA)
    await kept.perform(BeginRecovery(block(), NEW))
    with pytest.raises(RemoteFault) as refusal:
        await asked(kept, method, request_)
    assert refusal.value.java_class == java_class
    assert refusal.value.reason == str(refusal.value.__cause__)


@pytest.mark.parametrize("coming_in", [False, True], ids=["an older replica", "a copy"])
async def test_what_cannot_tell_a_length_is_not_taken_for_nothing(
    kept: Store, *, coming_in: bool
) -> None:
    """Refuse: a Java client takes a block that none of its DataNodes finds for an empty one."""
    if coming_in:
        await kept.perform(CreateCopy(block(), StorageId("DS-1"), 0))
    else:
        await finalized(kept, block(stamp=0), DATA)
    with pytest.raises(RemoteFault) as refusal:
        await asked(kept, "getReplicaVisibleLength", length_of())
    assert refusal.value.java_class == IO_EXCEPTION


async def test_how_much_readers_see(kept: Store) -> None:
    with pytest.raises(RemoteFault) as refusal:
        await asked(kept, "getReplicaVisibleLength", length_of())
    assert refusal.value.java_class == REPLICA_NOT_FOUND
    await begun(kept, block(), DATA, acked=700)
    seen = await asked(kept, "getReplicaVisibleLength", length_of())
    assert seen == client.GetReplicaVisibleLengthResponseProto(length=700)
