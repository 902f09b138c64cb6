"""Writers, DataNodes with disks, and two NameNodes that take over from each other.

What the writers were answered is the truth here: which blocks a file has, and where.  A NameNode is
wrong that loses a block, answers another one to a writer that asks again, or has a replica deleted
that a file is made of.
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random

from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto, LocatedBlockProto
from journal.model import LAYOUT_VERSION
from namenode_sim.blocks.incremental_reports import activate, receive
from namenode_sim.blocks.model import Deleted, ReplicaState, Reported
from namenode_sim.blocks.postponed_reports import ReplicaReport
from namenode_sim.edits.codec import decode_all
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.client_protocol.datanodes_in_memory import joined, sized
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Fields, Served, serve
from tests.namenode_sim.namespace.dump import differences

DATANODES = ("d1", "d2", "d3", "d4")


@dataclass(slots=True)
class Writer:
    """A client that writes one file: the blocks that it has ended, and the one it is at."""

    path: str
    name: str
    done: list[ExtendedBlockProto] = field(default_factory=list)
    at: LocatedBlockProto | None = None
    synced: int = 0
    closed: bool = False


@dataclass(slots=True)
class NameNode:
    """A NameNode and the reports that are on their way to it, of each DataNode in order."""

    served: Served
    coming: dict[str, deque[tuple[int, ReplicaReport]]] = field(
        default_factory=lambda: {name: deque() for name in DATANODES}
    )

    def deliver(self, name: str, count: int) -> None:
        waiting = self.coming[name]
        news = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        (storage,) = self.served.cluster.nodes[name].storages.values()
        receive(self.served.cluster.blocks, storage.held, news, 0.0)

    def follow(self, frames: list[bytes]) -> None:
        namespace = self.served.namespace
        behind = frames[namespace.last_applied :]
        for txid, op in decode_all(b"".join(behind), LAYOUT_VERSION):
            namespace.apply(txid, op)


class World:
    """What happens is drawn; what must hold is checked as it happens."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.call_id = 0
        self.disks: dict[str, dict[int, Reported]] = {name: {} for name in DATANODES}
        self.writers: list[Writer] = []
        self.active = self._new_namenode(active=True)
        self.standby = self._new_namenode(active=False)
        self.repeats = self.failovers = self.deletions = 0

    def _new_namenode(self, *, active: bool) -> NameNode:
        """Start one now; DataNodes have reported to it what they have."""
        namespace = None if active else Namespace.empty(SUPERUSER)
        served = serve(namespace=namespace, active=active)
        new = NameNode(served)
        for name in DATANODES:
            joined(served.cluster, name)
            new.coming[name].extend(self.disks[name].items())
        return new

    # ---- calls ----

    async def call(self, method: str, **more: object) -> Message:
        self.call_id += 1
        fields: Fields = dict(more)
        answer = await self.active.served.call(method, call_id=self.call_id, **fields)
        while self.chance.random() < 0.2:
            self.repeats += 1
            if self.chance.random() < 0.5:
                self.fail_over()
            again = await self.active.served.call(method, call_id=self.call_id, **fields)
            assert _lasting(again) == _lasting(answer), (method, fields, answer, again)
            answer = again
        return answer

    def fail_over(self) -> None:
        self.failovers += 1
        frames = self.active.served.log.frames
        new, old = self.standby, self.active
        new.follow(frames)
        activate(new.served.cluster.blocks)
        assert differences(old.served.namespace, new.served.namespace) == []
        new.served.log.frames = list(frames)
        self.active, self.standby = new, self._new_namenode(active=False)
        new.served.cluster.blocks.map.check()

    # ---- DataNodes ----

    def store(self, name: str, block_id: int, told: Reported) -> None:
        self.disks[name][block_id] = told
        for node in (self.active, self.standby):
            node.coming[name].append((block_id, told))

    def reports_arrive(self, most: int = 3) -> None:
        node = self.chance.choice([self.active, self.standby])
        node.deliver(self.chance.choice(DATANODES), self.chance.randint(1, most))

    def standby_tails(self) -> None:
        frames = self.active.served.log.frames
        upto = self.chance.randint(self.standby.served.namespace.last_applied, len(frames))
        self.standby.follow(frames[:upto])

    def deletions_are_carried_out(self) -> None:
        """Let a DataNode delete what it is ordered to, by its stamp."""
        cluster = self.active.served.cluster
        name = self.chance.choice(DATANODES)
        (storage,) = cluster.nodes[name].storages.values()
        due = cluster.blocks.invalidations.take_due(
            storage.held.number, self.active.served.namespace.last_applied, 10
        )
        for block_id, stamp in due:
            held = self.disks[name].get(block_id)
            if held is None or held.stamp != stamp:
                continue
            assert (block_id, stamp) not in self.needed(name), f"{name} loses {block_id}"
            self.deletions += 1
            del self.disks[name][block_id]
            for node in (self.active, self.standby):
                node.coming[name].append((block_id, Deleted(stamp)))

    def needed(self, name: str) -> set[tuple[int, int]]:
        held = self.disks[name]
        ended = {
            (block.blockId, block.generationStamp)
            for writer in self.writers
            for block in writer.done
            if block.blockId in held and held[block.blockId].length == block.numBytes
        }
        current = {
            (writer.at.b.blockId, writer.at.b.generationStamp)
            for writer in self.writers
            if writer.at is not None and name in _names(writer.at)
        }
        return ended | current

    # ---- writers ----

    async def create(self) -> None:
        number = len(self.writers)
        writer = Writer(f"/f{number}", f"w{number}")
        fields: Fields = {
            "src": writer.path, "masked": {"perm": 0o644}, "clientName": writer.name,
            "createFlag": 1, "createParent": True, "replication": 3, "blockSize": 1 << 20,
        }  # fmt: skip
        await self.call("create", **fields)
        self.writers.append(writer)

    async def add_block(self, writer: Writer) -> None:
        fields: Fields = {"src": writer.path, "clientName": writer.name}
        if writer.done:
            fields["previous"] = writer.done[-1]
        try:
            answer = await self.call("addBlock", **fields)
        except RemoteFault as refusal:
            if not refusal.java_class.endswith("NotReplicatedYetException"):
                raise
            return
        assert isinstance(answer, calls.AddBlockResponseProto)
        assert answer.block.b.blockId not in {block.blockId for block in writer.done}
        writer.at, writer.synced = answer.block, 0
        for name in _names(answer.block):
            told = Reported(ReplicaState.RBW, answer.block.b.generationStamp, 0)
            self.store(name, answer.block.b.blockId, told)

    def end_block(self, writer: Writer, at: LocatedBlockProto) -> None:
        """Acknowledge all bytes; the DataNodes finalize the block on their own."""
        block = sized(at.b, max(writer.synced, self.chance.randint(1, 1 << 20)))
        for name in _names(at):
            told = Reported(ReplicaState.FINALIZED, block.generationStamp, block.numBytes)
            self.store(name, block.blockId, told)
        writer.done.append(block)
        writer.at = None

    async def sync(self, writer: Writer, at: LocatedBlockProto) -> None:
        length = writer.synced + self.chance.randint(1, 100)
        await self.call("fsync", src=writer.path, client=writer.name, lastBlockLength=length)
        writer.synced = length
        for name in _names(at):
            self.disks[name][at.b.blockId] = Reported(
                ReplicaState.RBW, at.b.generationStamp, length
            )

    async def abandon(self, writer: Writer, at: LocatedBlockProto) -> None:
        await self.call("abandonBlock", src=writer.path, holder=writer.name, b=at.b)
        writer.at = None

    async def recover_pipeline(self, writer: Writer, at: LocatedBlockProto) -> None:
        """Drop a DataNode; the others go on under a new stamp, or end the block with it."""
        self.call_id += 1
        answer = await self.active.served.call(
            "updateBlockForPipeline", call_id=self.call_id, block=at.b, clientName=writer.name
        )
        assert isinstance(answer, calls.UpdateBlockForPipelineResponseProto)
        ends = self.chance.random() < 0.4
        state = ReplicaState.FINALIZED if ends else ReplicaState.RBW
        new = sized(answer.block.b, writer.synced + ends)
        kept = self.chance.sample(range(len(at.locs)), max(1, len(at.locs) - 1))
        going = LocatedBlockProto()
        going.CopyFrom(at)
        going.b.CopyFrom(new)
        del going.locs[:], going.storageIDs[:]
        for index in kept:
            going.locs.append(at.locs[index])
            going.storageIDs.append(at.storageIDs[index])
            told = Reported(state, new.generationStamp, new.numBytes)
            self.store(at.locs[index].id.datanodeUuid, new.blockId, told)
        self.reports_arrive(10)
        await self.call(
            "updatePipeline",
            clientName=writer.name,
            oldBlock=at.b,
            newBlock=new,
            newNodes=[place.id for place in going.locs],
            storageIDs=list(going.storageIDs),
        )
        writer.at = None if ends else going
        writer.done += [new] if ends else []

    async def complete(self, writer: Writer) -> None:
        fields: Fields = {"src": writer.path, "clientName": writer.name}
        if writer.done:
            fields["last"] = writer.done[-1]
        answer = await self.call("complete", **fields)
        assert isinstance(answer, calls.CompleteResponseProto)
        writer.closed = answer.result

    # ---- what happens, and what must hold ----

    async def step(self) -> None:
        chance = self.chance
        going = [writer for writer in self.writers if not writer.closed]
        if not going or (len(self.writers) < 4 and chance.random() < 0.2):
            await self.create()
            return
        writer = chance.choice(going)
        if writer.at is None:
            await (self.complete if chance.random() < 0.3 else self.add_block)(writer)
        else:
            deed = chance.choice([self.sync, self.abandon, self.recover_pipeline, None, None, None])
            if deed is None:
                self.end_block(writer, writer.at)
            else:
                await deed(writer, writer.at)
        for _ in range(chance.randint(0, 8)):
            chance.choice(
                [self.reports_arrive, self.standby_tails, self.deletions_are_carried_out]
            )()
        self.check()

    def check(self) -> None:
        """Check that the map agrees with itself, and the namespace with the writers."""
        served = self.active.served
        served.cluster.blocks.map.check()
        for writer in self.writers:
            told = [block.blockId for block in writer.done]
            told += [writer.at.b.blockId] if writer.at is not None else []
            blocks = served.namespace.tree.file(writer.path).blocks
            assert [block.block_id for block in blocks] == told, writer

    async def finish(self) -> None:
        for writer in self.writers:
            if writer.at is not None:
                self.end_block(writer, writer.at)
            for _ in range(50):
                for name in DATANODES:
                    self.active.deliver(name, 1000)
                if not writer.closed:
                    await self.complete(writer)
            assert writer.closed, writer
        for name in DATANODES:
            self.active.deliver(name, 1000)
        self.check()
        for writer in self.writers:
            await self._read(writer)

    async def _read(self, writer: Writer) -> None:
        answer = await self.active.served.call(
            "getBlockLocations", src=writer.path, offset=0, length=1 << 40
        )
        assert isinstance(answer, calls.GetBlockLocationsResponseProto)
        found = answer.locations.blocks
        assert [block.b for block in found] == writer.done
        assert answer.locations.fileLength == sum(block.numBytes for block in writer.done)
        for block in found:
            assert block.locs
            assert not block.corrupt
            for name in _names(block):
                held = self.disks[name][block.b.blockId]
                told = (ReplicaState.FINALIZED, block.b.generationStamp, block.b.numBytes)
                assert (held.state, held.stamp, held.length) == told


def _names(block: LocatedBlockProto) -> list[str]:
    return [place.id.datanodeUuid for place in block.locs]


def _lasting(answer: Message) -> object:
    """Return what must be the same in the answer to a repeated call.

    The places of a block may be others.  ``complete`` may have been too early.
    """
    match answer:
        case calls.AddBlockResponseProto():
            return answer.block.b.SerializeToString(), answer.block.offset
        case calls.CompleteResponseProto():
            return None
        case calls.CreateResponseProto():
            return answer.fs.fileId
        case _:
            return answer
