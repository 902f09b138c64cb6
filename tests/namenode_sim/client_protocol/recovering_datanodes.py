"""DataNodes in memory that recover blocks: replicas are a state, a stamp and a length.

What replicas become is decided by the DataNode's own core; messages between DataNodes arrive.
"""

from dataclasses import dataclass, field, replace

from datanode.model import ReplicaState as OnDisk
from datanode.replicas.agreement import Agreed, Disagreement, Empty, Found, agree
from ha.rpc.java_names import DATANODE_PROTOCOL
from ha.rpc.protocol import Call
from hadoop.blocks import Block, BlockId, GenerationStamp
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto.hdfs_types_pb2 import DatanodeIDProto, ExtendedBlockProto
from namenode_sim.blocks.model import ReplicaState, Slot, Stage
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.datanodes.model import RecoveryOrder
from namenode_sim.datanodes.recovery import participants
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.datanodes_in_memory import report
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

RBW, RWR, FINALIZED = ReplicaState.RBW, ReplicaState.RWR, ReplicaState.FINALIZED
Request = pb.CommitBlockSynchronizationRequestProto


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica on a disk; ``recovery`` is the stamp of the newest recovery it takes part in."""

    state: ReplicaState
    stamp: int
    length: int
    recovery: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """A recovery as its leader is ordered it; ``length`` is that which a truncation asks for."""

    order: RecoveryOrder
    block: Block
    length: int | None
    names: list[str]


@dataclass(slots=True)
class Disks:
    """What each DataNode has, by its name and block.

    ``careful``: a leader gives up where others do not answer, which one of Hadoop's does not.
    """

    served: Served
    replicas: dict[tuple[str, int], Replica] = field(default_factory=dict)
    unreachable: set[str] = field(default_factory=set)
    careful: bool = False

    def write(self, block: ExtendedBlockProto, state: ReplicaState, **lengths: int) -> None:
        """Put that number of bytes of a block on each of these DataNodes, which report it."""
        for name, length in lengths.items():
            self.replicas[name, block.blockId] = Replica(state, block.generationStamp, length)
            report(self.served, block, name, length=length, state=state)

    def take_order(self, name: str) -> RecoveryOrder:
        return self.served.cluster.nodes[name].recovery_orders.popleft()

    def leader(self) -> str:
        (name,) = (n for n, node in self.served.cluster.nodes.items() if node.recovery_orders)
        return name

    def heartbeat(self, name: str) -> Told | None:
        """Return the recovery that a DataNode is ordered; None if the order has become obsolete."""
        order, state = self.take_order(name), self.served.cluster.blocks
        slot = state.map.find(order.block_id)
        construction = None if slot is None else state.map.find_construction(slot)
        if slot is None or construction is None:
            return None
        if construction.recovery_stamp != order.recovery_stamp:
            return None
        source_id, cut = order.block_id, construction.cut
        if cut is not None:
            source_id = cut.source_id
        source = state.map.find(source_id)
        assert source is not None
        block = Block(BlockId(source_id), GenerationStamp(state.map.block(source).stamp))
        nodes = participants(self.served.cluster, slot)
        return Told(
            order, block, None if cut is None else cut.length, [n.id.uuid for n, _ in nodes]
        )

    def lead(self, name: str) -> Request:
        told = self.heartbeat(name)
        assert told is not None
        result = self.carry_out(told)
        assert result is not None
        return result

    def carry_out(self, told: Told) -> Request | None:
        """Recover a block; None if the DataNodes cannot agree, or none answers."""
        order, block = told.order, told.block
        if self.unreachable.issuperset(told.names):
            return None
        answers = [self._begin(name, block, order) for name in told.names]
        found = [one for one in answers if one is not None]
        silent = len(self.unreachable & set(told.names)) if self.careful else 0
        agreement = agree(block, found, told.length, silent=silent)
        if isinstance(agreement, Disagreement):
            return None
        request = Request(
            block=ExtendedBlockProto(
                poolId=datanodes_in_memory.POOL, blockId=block.block_id, generationStamp=block.stamp
            ),
            newGenStamp=order.recovery_stamp,
            newLength=0,
            closeFile=True,
            deleteBlock=isinstance(agreement, Empty),
        )
        if isinstance(agreement, Agreed):
            request.newLength = agreement.length
            for one in agreement.replicas:
                self.replicas[one.node, order.block_id] = Replica(
                    FINALIZED, order.recovery_stamp, agreement.length, order.recovery_stamp
                )
                request.newTaragets.append(datanode_id(one.node))
                request.newTargetStorages.append(f"DS-{one.node}-0")
        return request

    def _begin(self, name: str, block: Block, order: RecoveryOrder) -> Found[str] | None:
        replica = self.replicas.get((name, block.block_id))
        if replica is None or name in self.unreachable:
            return None
        if max(replica.recovery, replica.stamp) >= order.recovery_stamp:
            return None
        self.replicas[name, block.block_id] = replace(replica, recovery=order.recovery_stamp)
        found = Block(block.block_id, GenerationStamp(replica.stamp))
        return Found(name, OnDisk(int(replica.state)), found, replica.length)

    def tell_all(self, block_id: int) -> None:
        for (name, number), replica in self.replicas.items():
            if number == block_id:
                block = ExtendedBlockProto(
                    poolId=datanodes_in_memory.POOL, blockId=number, generationStamp=replica.stamp
                )
                report(self.served, block, name, length=replica.length, state=replica.state)


def datanode_id(name: str) -> DatanodeIDProto:
    return DatanodeIDProto(
        ipAddr="10.0.0.1", hostName=name, datanodeUuid=name, xferPort=1, infoPort=2, ipcPort=3
    )


async def commit(served: Served, request: Request) -> None:
    call = Call(DATANODE_PROTOCOL, "commitBlockSynchronization", b"", -2, -1, "", None, "")
    await served.face.commit_block_synchronization(call, request)


def changed(request: Request, **fields: int) -> Request:
    copy = Request()
    copy.CopyFrom(request)
    for name, value in fields.items():
        setattr(copy, name, value)
    return copy


async def half_written(
    settings: Settings | None = None, *, minimum: int = 1, **lengths: int
) -> tuple[Served, Disks, ExtendedBlockProto]:
    """Open ``/f`` with one block, of which the DataNodes have that number of bytes each."""
    served = datanodes_in_memory.with_datanodes(serve(settings=settings, minimum=minimum))
    await served.create("/f")
    block = (await datanodes_in_memory.add_block(served, "/f")).b
    disks = Disks(served)
    disks.write(block, RBW, **(lengths or {"d1": 700, "d2": 600, "d3": 500}))
    return served, disks, block


async def recover_lease(served: Served, client: str = "other") -> bool:
    answer = await served.call("recoverLease", src="/f", clientName=client)
    assert isinstance(answer, calls.RecoverLeaseResponseProto)
    return answer.result


def slot_of(served: Served, block_id: int) -> Slot:
    slot = served.cluster.blocks.map.find(block_id)
    assert slot is not None
    return slot


def without_replicas(served: Served, block: ExtendedBlockProto, *names: str) -> None:
    state = served.cluster.blocks
    for name in names:
        for storage in served.cluster.nodes[name].storages.values():
            state.drop(slot_of(served, block.blockId), storage.held)


def stage(served: Served, block_id: int) -> Stage:
    return served.cluster.blocks.map.block(slot_of(served, block_id)).stage


def holders(served: Served, block_id: int) -> list[str]:
    state, slot = served.cluster.blocks, slot_of(served, block_id)
    state.map.check()
    return sorted(
        state.map.storages.at(number).node
        for number in state.map.storages_of(slot)
        if state.map.is_good(slot, number)
    )


def at(served: Served, seconds: float) -> None:
    state = served.cluster.blocks
    for slot in state.map.unfinished():
        construction = state.map.construction(slot)
        if construction.recovery_began is not None and construction.recovery_stamp is not None:
            began = construction.recovery_began - seconds
            state.note_recovery(slot, construction.recovery_stamp, began, construction.tried)
