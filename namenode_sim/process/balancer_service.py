"""What Hadoop's Balancer and Mover ask a NameNode, and ``dfsadmin -setBalancerBandwidth``."""

import structlog
from google.protobuf.message import Message

from ha.record import dataclass
from ha.rpc.protocol import Call, Method
from hadoop.block_tokens import NO_KEYS
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import namenode_protocol_pb2 as pb
from namenode_sim.client_protocol.reads.movable_blocks import get_blocks
from namenode_sim.client_protocol.words.permissions import check_superuser
from namenode_sim.process.admin_service import AdminService

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class BalancerService:
    """The calls of one NameNode, which the active alone answers; ``admin`` has what they need."""

    admin: AdminService

    def methods(self) -> dict[str, Method]:
        """Return those of NamenodeProtocol."""
        return {
            "getBlocks": Method(pb.GetBlocksRequestProto, self._blocks),
            "getBlockKeys": Method(pb.GetBlockKeysRequestProto, self._keys),
        }

    async def set_bandwidth(
        self, call: Call, request: calls.SetBalancerBandwidthRequestProto
    ) -> Message:
        """Order all DataNodes, with their next heartbeats, to move blocks at this speed at most.

        A bandwidth of 0 or less orders nothing, as in Hadoop.
        """
        await self.admin.admit(call, "setBalancerBandwidth", writes=True)

        def compute() -> Message:
            scene = self.admin.scene(call)
            check_superuser(scene.caller)
            for node in scene.cluster.nodes.values():
                node.bandwidth_order = max(0, request.bandwidth)
            log.info("balancer.bandwidth", user=call.user, a_second=request.bandwidth)
            return calls.SetBalancerBandwidthResponseProto()

        return await self.admin.answers.answer(compute)

    async def _blocks(self, call: Call, request: pb.GetBlocksRequestProto) -> Message:
        await self.admin.admit(call, "getBlocks", writes=False)

        def compute() -> Message:
            scene = self.admin.scene(call)
            check_superuser(scene.caller)
            self.admin.safe_mode().check("Cannot execute getBlocks")
            return get_blocks(scene, request)

        return await self.admin.answers.answer(compute)

    async def _keys(self, call: Call, _: pb.GetBlockKeysRequestProto) -> Message:
        """Return the keys of block tokens: a balancer orders moves under tokens of its own."""
        await self.admin.admit(call, "getBlockKeys", writes=False)

        def compute() -> Message:
            check_superuser(self.admin.scene(call).caller)
            cluster = self.admin.scene(call).cluster
            ring = cluster.block_keys if cluster.tokens_asked else None
            return pb.GetBlockKeysResponseProto(keys=NO_KEYS if ring is None else ring.message())

        return await self.admin.answers.answer(compute)
