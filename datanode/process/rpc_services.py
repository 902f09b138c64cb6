"""What this DataNode serves over Hadoop RPC: to other DataNodes, and to clients.

See docs/reference/datanode.md#hadoop-rpc-of-a-datanode.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from datanode import errors, model
from datanode.namenodes.recovery import begin_recovery, end_recovery
from datanode.replicas.store import Store
from ha.record import dataclass, field
from ha.rpc import java_names
from ha.rpc.errors import RemoteFault
from ha.rpc.protocol import Call, Method, RpcProtocol
from hadoop.blocks import Block, GenerationStamp, PoolId
from hadoop.proto import client_datanode_pb2 as client
from hadoop.proto import datanode_types_pb2 as types
from hadoop.proto import inter_datanode_pb2 as inter
from hadoop.wire.block_messages import block_id_of, checked_block, checked_stamp, plain
from hadoop.wire.errors import DataNodeError


@dataclass(frozen=True, slots=True)
class DataNodeRpcServices:
    """Answers calls about the replicas of one pool."""

    store: Store
    pool: PoolId
    of_operators: Mapping[str, Method] = field(default_factory=dict)
    """What ClientDatanodeProtocol has for operators."""

    def protocols(self) -> list[RpcProtocol]:
        return [
            RpcProtocol(
                java_names.INTER_DATANODE_PROTOCOL,
                {
                    "initReplicaRecovery": Method(
                        inter.InitReplicaRecoveryRequestProto, self._begin
                    ),
                    "updateReplicaUnderRecovery": Method(
                        inter.UpdateReplicaUnderRecoveryRequestProto, self._end
                    ),
                },
            ),
            RpcProtocol(
                java_names.CLIENT_DATANODE_PROTOCOL,
                {
                    "getReplicaVisibleLength": Method(
                        client.GetReplicaVisibleLengthRequestProto, self._visible
                    ),
                    **self.of_operators,
                },
            ),
        ]

    async def _begin(
        self, _: Call, request: inter.InitReplicaRecoveryRequestProto
    ) -> inter.InitReplicaRecoveryResponseProto:
        asked = request.block
        with _answering():
            block = checked_block(asked.block.b, self.pool)
            begun = await begin_recovery(self.store, block, checked_stamp(asked.newGenStamp))
        if begun is None:
            return inter.InitReplicaRecoveryResponseProto(replicaFound=False)
        return inter.InitReplicaRecoveryResponseProto(
            replicaFound=True,
            state=types.ReplicaStateProto.ValueType(begun.state),
            block=plain(begun.block, begun.length),
        )

    async def _end(
        self, _: Call, request: inter.UpdateReplicaUnderRecoveryRequestProto
    ) -> inter.UpdateReplicaUnderRecoveryResponseProto:
        with _answering():
            block = checked_block(request.block, self.pool)
            storage = await end_recovery(
                self.store,
                block,
                GenerationStamp(request.recoveryId),
                request.newLength,
                block_id_of(request.newBlockId) if request.newBlockId else block.block_id,
            )
        return inter.UpdateReplicaUnderRecoveryResponseProto(storageUuid=storage)

    async def _visible(
        self, _: Call, request: client.GetReplicaVisibleLengthRequestProto
    ) -> client.GetReplicaVisibleLengthResponseProto:
        with _answering():
            block = checked_block(request.block, self.pool)
            replica = self.store.find(Block(block.block_id, GenerationStamp(0)))
            if replica.block.stamp < block.stamp or isinstance(replica, model.Temporary):
                # Not missing: a client takes a block that is missing everywhere for an empty one.
                raise errors.ReplicaRefused(
                    f"{replica.block}, which is here, says nothing of {block}"
                )
        return client.GetReplicaVisibleLengthResponseProto(length=model.readable_length(replica))


_JAVA_NAMES: Final[Mapping[type[DataNodeError], str]] = {
    errors.RecoveryInProgress: java_names.RECOVERY_IN_PROGRESS,
    errors.ReplicaMissing: java_names.REPLICA_NOT_FOUND,
}


@contextmanager
def _answering() -> Iterator[None]:
    """Translate what a call raises into what travels."""
    try:
        yield
    except DataNodeError as problem:
        name = _JAVA_NAMES.get(type(problem), java_names.IO_EXCEPTION)
        raise RemoteFault(name, str(problem)) from problem
