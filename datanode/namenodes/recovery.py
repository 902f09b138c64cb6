"""Block recovery: this DataNode as one that takes part, and as the one that leads.

See docs/reference/datanode.md#block-recovery.
"""

import asyncio
from typing import Final, TypeVar

import structlog
from google.protobuf.message import Message

from datanode import errors, model
from datanode.namenodes.commands import Recover
from datanode.namenodes.identity import Identity
from datanode.namenodes.namenode_client import NameNodeCalls, located, recovery_request
from datanode.replicas.agreement import Agreed, Disagreement, Empty, Found, agree
from datanode.replicas.operations import BeginRecovery, EndRecovery, LeaveRecovery
from datanode.replicas.store import Store
from ha.conf.topology import HostPort
from ha.record import dataclass
from ha.rpc.client import call_once
from ha.rpc.errors import ConnectFailed, RemoteFault
from ha.rpc.java_names import INTER_DATANODE_PROTOCOL, RECOVERY_IN_PROGRESS
from hadoop.blocks import Block, BlockId, GenerationStamp
from hadoop.proto import datanode_types_pb2 as types
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto import inter_datanode_pb2 as inter
from hadoop.wire.block_messages import block_of, extended, unsigned
from hadoop.wire.errors import DataNodeError

log = structlog.get_logger()
M = TypeVar("M", bound=Message)

_CALL_SECONDS: Final = 60.0
MAX_NODES: Final = 64


@dataclass(frozen=True, slots=True)
class Begun:
    """A replica whose recovery has begun: what it was before."""

    state: model.ReplicaState
    block: Block
    length: int


async def begin_recovery(store: Store, block: Block, recovery_id: GenerationStamp) -> Begun | None:
    """Stop who writes the replica, and keep it as it is; None: there is none to recover.

    Raises:
        RecoveryInProgress: if a newer recovery runs.
        ReplicaRefused: if the replica is older than the block, or newer than the recovery.
    """
    try:
        replica = await store.perform(BeginRecovery(block, recovery_id))
    except errors.ReplicaMissing:
        return None
    assert isinstance(replica, model.UnderRecovery)
    return Begun(model.state_of(replica.original), replica.block, replica.length)


async def end_recovery(
    store: Store,
    block: Block,
    recovery_id: GenerationStamp,
    length: int,
    new_id: BlockId,
) -> model.StorageId:
    """Make the replica whole with this length; returns where it is.

    With another ``new_id`` a copy becomes whole, and the replica stays: a snapshot has it.

    Raises:
        ReplicaRefused, ReplicaMissing: if it is not under this recovery.
        ChecksumMismatch: if it is damaged where it is cut.
        VolumeFailed: if the disk refuses.
    """
    if new_id == block.block_id:
        return (await store.perform(EndRecovery(block, recovery_id, length))).storage
    replica = store.find(block)
    original = await store.perform(LeaveRecovery(block, recovery_id))
    if original.length < length:
        raise errors.ReplicaRefused(
            f"{block} has {replica.length} bytes, and {length} are to be kept"
        )
    return (await store.copy(original, Block(new_id, recovery_id), length)).storage


@dataclass(slots=True)
class Leader:
    """Leads recoveries for the NameNode; ``own`` takes part in memory."""

    store: Store
    own: Identity

    async def lead(self, command: Recover, calls: NameNodeCalls) -> None:
        """Recover one block, and report the result to the NameNode.

        Raises:
            RecoveryInProgress: if a newer recovery runs; nothing is reported then.
            RecoveryFailed: if too few DataNodes answer, or if their replicas do not fit.
            RpcError, RemoteFault: if the NameNode does not take the result.
        """
        block, pool = command.block, self.own.namespace.pool
        found, silent = await self._ask_all(command)
        truncate_to = command.truncate.length if command.truncate else None
        match agree(block, found, truncate_to, silent=silent):
            case Disagreement(why=why):
                raise RecoveryFailed(why)
            case Empty():
                request = recovery_request(block, pool, new_stamp=command.recovery_id, length=0)
                await calls.commit_recovery(request)
            case Agreed(replicas=replicas, length=length):
                ended = await self._end_all(command, replicas, length)
                request = recovery_request(
                    block,
                    pool,
                    new_stamp=command.recovery_id,
                    length=length,
                    nodes=[node for node, _ in ended],
                    storages=[storage for _, storage in ended],
                )
                await calls.commit_recovery(request)
        log.info("datanode.recovered", block=str(block), recovery_id=command.recovery_id)

    async def _ask_all(self, command: Recover) -> tuple[list[Found[hdfs.DatanodeIDProto]], int]:
        """Return the replicas that there are, and how many DataNodes did not answer."""
        nodes = command.nodes[:MAX_NODES]
        answers = await asyncio.gather(
            *(self._ask(node, command) for node in nodes), return_exceptions=True
        )
        found, failed = [], []
        for node, answer in zip(nodes, answers, strict=True):
            match answer:
                case errors.RecoveryInProgress():
                    raise answer
                case Begun():
                    found.append(Found(node, answer.state, answer.block, answer.length))
                case BaseException():
                    failed.append(f"{node.ipAddr}:{node.ipcPort}: {answer}")
                    log.warning("datanode.recovery_without", why=failed[-1])
                case None:
                    continue
        if len(failed) == len(nodes):
            raise RecoveryFailed(f"no DataNode of {command.block} answers: {'; '.join(failed)}")
        return found, len(failed)

    async def _ask(self, node: hdfs.DatanodeIDProto, command: Recover) -> Begun | None:
        if node.datanodeUuid == self.own.uuid:
            return await begin_recovery(self.store, command.block, command.recovery_id)
        pool = self.own.namespace.pool
        request = inter.InitReplicaRecoveryRequestProto(
            block=types.RecoveringBlockProto(
                newGenStamp=command.recovery_id,
                block=located(extended(command.block, pool), command.nodes),
            )
        )
        response = inter.InitReplicaRecoveryResponseProto
        try:
            answer = await _call(node, "initReplicaRecovery", request, response)
        except RemoteFault as fault:
            if fault.java_class == RECOVERY_IN_PROGRESS:
                raise errors.RecoveryInProgress(fault.reason) from fault
            raise
        if not answer.replicaFound:
            return None
        return Begun(
            model.ReplicaState(answer.state), block_of(answer.block), answer.block.numBytes
        )

    async def _end_all(
        self,
        command: Recover,
        replicas: tuple[Found[hdfs.DatanodeIDProto], ...],
        length: int,
    ) -> list[tuple[hdfs.DatanodeIDProto, model.StorageId]]:
        answers = await asyncio.gather(
            *(self._end(one, command, length) for one in replicas), return_exceptions=True
        )
        ended, failed = [], []
        for one, answer in zip(replicas, answers, strict=True):
            if isinstance(answer, BaseException):
                failed.append(f"{one.node.ipAddr}:{one.node.ipcPort}: {answer}")
                log.warning("datanode.recovery_without", why=failed[-1])
            else:
                ended.append((one.node, answer))
        if not ended:
            raise RecoveryFailed(f"no replica of {command.block} was cut: {'; '.join(failed)}")
        return ended

    async def _end(
        self, one: Found[hdfs.DatanodeIDProto], command: Recover, length: int
    ) -> model.StorageId:
        new_id = command.truncate.block_id if command.truncate else command.block.block_id
        if one.node.datanodeUuid == self.own.uuid:
            return await end_recovery(self.store, one.block, command.recovery_id, length, new_id)
        request = inter.UpdateReplicaUnderRecoveryRequestProto(
            block=extended(one.block, self.own.namespace.pool, one.length),
            recoveryId=command.recovery_id,
            newLength=length,
            newBlockId=unsigned(new_id),
        )
        response = inter.UpdateReplicaUnderRecoveryResponseProto
        answer = await _call(one.node, "updateReplicaUnderRecovery", request, response)
        return model.StorageId(answer.storageUuid)


class RecoveryFailed(DataNodeError):
    """The block stays as it is; the NameNode asks again."""


async def _call(node: hdfs.DatanodeIDProto, method: str, request: Message, response: type[M]) -> M:
    address, seconds = HostPort(node.ipAddr, node.ipcPort), _CALL_SECONDS
    try:
        return await call_once(
            address, INTER_DATANODE_PROTOCOL, method, request, response, deadline_seconds=seconds
        )
    except ConnectFailed:
        log.warning("datanode.partner_unreachable", node=str(address))
        raise
