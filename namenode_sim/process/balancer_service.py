"""What Hadoop's Balancer and Mover ask a NameNode, and ``dfsadmin -setBalancerBandwidth``."""

from dataclasses import dataclass
from typing import Final

import structlog
from google.protobuf.message import Message

from ha.rpc.protocol import Call, Method
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import namenode_protocol_pb2 as pb
from namenode_sim.client_protocol.reads.movable_blocks import get_blocks
from namenode_sim.client_protocol.words.permissions import check_superuser
from namenode_sim.process.admin_service import AdminService

log = structlog.get_logger()

NO_KEYS: Final = pb.ExportedBlockKeysProto(
    isBlockTokenEnabled=False,
    keyUpdateInterval=0,
    tokenLifeTime=0,
    currentKey=pb.BlockKeyProto(keyId=0, expiryDate=0),
)
"""ExportedBlockKeys.DUMMY_KEYS; without any a balancer ends with a NullPointerException."""


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
        """Return that there are no block tokens, with the key that Hadoop shows then."""
        await self.admin.admit(call, "getBlockKeys", writes=False)

        def compute() -> Message:
            check_superuser(self.admin.scene(call).caller)
            return pb.GetBlockKeysResponseProto(keys=NO_KEYS)

        return await self.admin.answers.answer(compute)
