"""Serves DatanodeProtocol, and DatanodeLifelineProtocol, in every role.

See docs/reference/datanodes.md#calls.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import structlog
from google.protobuf.message import Message

from ha.record import dataclass
from ha.rpc import java_names
from ha.rpc.errors import RemoteFault
from ha.rpc.protocol import Call, Method, RpcProtocol
from hadoop.block_tokens import NO_KEYS
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import namenode_protocol_pb2 as nn
from journal.model import NamespaceInfo
from namenode_sim.blocks.errors import BlocksError
from namenode_sim.datanode_protocol import messages
from namenode_sim.datanode_protocol.block_keys import new_keys, wall_ms
from namenode_sim.datanode_protocol.errors import BadMessage, LeaseLapsed, Overtaken
from namenode_sim.datanode_protocol.intake import ReportContext
from namenode_sim.datanode_protocol.keeper import Answer, Keeper
from namenode_sim.datanode_protocol.metrics import REFUSED
from namenode_sim.datanodes import errors
from namenode_sim.datanodes.model import is_hadoops
from namenode_sim.datanodes.registry import Registration, check_namespace
from namenode_sim.transfer.namenode_protocol import info_to_wire

log = structlog.get_logger()

STORAGE_BLOCK_REPORT_BUFFERS: Final = 1
"""The capability that has DataNodes send rows of reports as bytes."""

JAVA_CLASSES: Final = (
    (errors.StrangeNamespace, java_names.UNREGISTERED_NODE),
    (errors.VersionTooOld, java_names.INCORRECT_VERSION),
    (errors.LeaseNotHeld, java_names.INVALID_REPORT_LEASE),
    (errors.NotIncluded, java_names.DISALLOWED_DATANODE),
    (errors.UnevenRacks, java_names.INVALID_TOPOLOGY),
    (errors.UnresolvedRack, java_names.UNRESOLVED_TOPOLOGY),
)
"""What Hadoop's DataNodes act upon; after an IOException, which all else is, they go on."""


Commit: TypeAlias = Callable[[Call, pb.CommitBlockSynchronizationRequestProto], Awaitable[Message]]


@dataclass(frozen=True, slots=True)
class DatanodeService:
    """The calls of DataNodes to one NameNode.

    ``commit`` ends the recovery of a block, which takes edits.
    """

    keeper: Keeper
    namespace: NamespaceInfo
    commit: Commit

    def protocol(self) -> RpcProtocol:
        return RpcProtocol(
            java_names.DATANODE_PROTOCOL,
            {
                "versionRequest": _method(nn.VersionRequestProto, self._version),
                "registerDatanode": _method(pb.RegisterDatanodeRequestProto, self._register),
                "sendHeartbeat": _method(pb.HeartbeatRequestProto, self._heartbeat),
                "blockReport": _method(pb.BlockReportRequestProto, self._report),
                "blockReceivedAndDeleted": _method(
                    pb.BlockReceivedAndDeletedRequestProto, self._receive
                ),
                "cacheReport": _method(pb.CacheReportRequestProto, self._note_cached),
                "errorReport": _method(pb.ErrorReportRequestProto, self._error),
                "reportBadBlocks": _method(pb.ReportBadBlocksRequestProto, self._bad_blocks),
                "commitBlockSynchronization": Method(
                    pb.CommitBlockSynchronizationRequestProto, self.commit
                ),
            },
        )

    def lifeline(self) -> RpcProtocol:
        return RpcProtocol(
            java_names.DATANODE_LIFELINE_PROTOCOL,
            {"sendLifeline": _method(pb.HeartbeatRequestProto, self._lifeline)},
        )

    async def _version(self, _: Call, __: nn.VersionRequestProto) -> Message:
        info = info_to_wire(self.namespace)
        info.capabilities = STORAGE_BLOCK_REPORT_BUFFERS
        standing = self.keeper.standing()
        info.state = messages.claim_message(active=standing.active, txid=standing.durable).state
        return nn.VersionResponseProto(info=info)

    async def _register(self, call: Call, request: pb.RegisterDatanodeRequestProto) -> Message:
        registration = messages.registration_of(request.registration, call.host)
        node = self.keeper.register(await self.keeper.find_rack(registration))
        answer = pb.RegisterDatanodeResponseProto(registration=request.registration)
        answer.registration.keys.CopyFrom(
            new_keys(self.keeper.cluster, node, wall_ms(), anew=True) or NO_KEYS
        )
        answer.registration.datanodeID.ipAddr = registration.id.ip
        return answer

    def _speaker(self, call: Call, message: pb.DatanodeRegistrationProto) -> Registration:
        registration = messages.registration_of(message, call.host)
        check_namespace(registration, self.keeper.rules.registry)
        return registration

    async def _heartbeat(self, call: Call, request: pb.HeartbeatRequestProto) -> Message:
        who = self._speaker(call, request.registration)
        heartbeat = messages.heartbeat_of(request, who.id)
        answer = self.keeper.hear(heartbeat, wants_lease=request.requestFullBlockReportLease)
        if answer.standing.lapsed and is_hadoops(who.software_version):
            raise LeaseLapsed
        return self._answer(answer, who)

    def _answer(self, answer: Answer, who: Registration) -> Message:
        pool = self.namespace.block_pool_id
        commands = [messages.command_message(one, pool) for one in answer.commands]
        node = self.keeper.cluster.nodes.get(who.id.uuid)
        if node is not None and (keys := new_keys(self.keeper.cluster, node, wall_ms())):
            commands.append(messages.key_update(keys))
        standing = answer.standing
        return pb.HeartbeatResponseProto(
            cmds=[messages.REGISTER] if answer.must_register else commands,
            haStatus=messages.claim_message(active=standing.active, txid=standing.durable),
            fullBlockReportLeaseId=answer.lease,
        )

    async def _lifeline(self, call: Call, request: pb.HeartbeatRequestProto) -> Message:
        who = self._speaker(call, request.registration)
        self.keeper.lifeline(messages.heartbeat_of(request, who.id))
        return pb.LifelineResponseProto()

    async def _report(self, call: Call, request: pb.BlockReportRequestProto) -> Message:
        who = self._speaker(call, request.registration)
        self._check_pool(call, request.blockPoolId)
        told = request.context
        context = ReportContext(told.leaseId, told.curRpc + 1 >= told.totalRpcs)
        if not await self.keeper.intake.report(who.id, messages.listed_storages(request), context):
            return pb.BlockReportResponseProto(cmd=messages.REGISTER)
        return pb.BlockReportResponseProto()

    async def _receive(
        self, call: Call, request: pb.BlockReceivedAndDeletedRequestProto
    ) -> Message:
        who = self._speaker(call, request.registration)
        self._check_pool(call, request.blockPoolId)
        try:
            await self.keeper.intake.receive(who.id, messages.news_of(request))
        except errors.NotRegistered as unknown:
            # The full report that follows its registration says all of it.  A refusal that comes
            # while it registers ends the thread of Hadoop's DataNode, which begins again after
            # five silent seconds (IncrementalBlockReportManager.putMissing).
            log.info("datanodes.news_dropped", datanode=who.id.uuid, why=str(unknown))
        return pb.BlockReceivedAndDeletedResponseProto()

    async def _note_cached(self, call: Call, request: pb.CacheReportRequestProto) -> Message:
        who = self._speaker(call, request.registration)
        self._check_pool(call, request.blockPoolId)
        self.keeper.intake.cached(who.id, messages.cached_of(request))
        return pb.CacheReportResponseProto()

    async def _error(self, call: Call, request: pb.ErrorReportRequestProto) -> Message:
        who = self._speaker(call, request.registartion)
        log.warning(
            "datanodes.error",
            datanode=who.id.uuid,
            address=who.id.transfer_address,
            code=request.errorCode,
            message=request.msg[: messages.MAX_ERROR_CHARS],
        )
        return pb.ErrorReportResponseProto()

    async def _bad_blocks(self, call: Call, request: pb.ReportBadBlocksRequestProto) -> Message:
        if not self.keeper.cluster.is_active():
            raise RemoteFault(
                java_names.STANDBY_EXCEPTION,
                f"{call.method} is the active's: this NameNode has marked nothing. Tell the active",
            )
        for located in request.blocks:
            self._check_pool(call, located.b.poolId)
        self.keeper.damaged(messages.damaged_of(request))
        return pb.ReportBadBlocksResponseProto()

    def _check_pool(self, call: Call, pool: str) -> None:
        ours = self.namespace.block_pool_id
        if pool != ours:
            raise BadMessage(call.method, f"block pool {pool[:256]!r}, and ours is {ours}")


def _method(request: type[Message], handle: Callable[[Call, Any], Awaitable[Message]]) -> Method:
    """Return a method whose refusals travel as Java's exceptions."""

    async def served(call: Call, message: Any) -> Message:  # noqa: ANN401 - what its type says
        try:
            return await handle(call, message)
        except (errors.DatanodesError, BlocksError, BadMessage, Overtaken, LeaseLapsed) as refusal:
            REFUSED.labels(call.method).inc()
            log.warning("datanodes.refused", method=call.method, host=call.host, why=str(refusal))
            java = next(
                (name for kind, name in JAVA_CLASSES if isinstance(refusal, kind)),
                java_names.IO_EXCEPTION,
            )
            raise RemoteFault(java, str(refusal)) from refusal

    return Method(request, served)
