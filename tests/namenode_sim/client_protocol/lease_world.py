"""Writers die, DataNodes come and go, NameNodes fail over: one file through all of it, by chance.

Every message may be lost, late or repeated.  Nothing that a writer was acknowledged may be gone,
and once all is well again the file is closed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import recovering_datanodes
from tests.namenode_sim.client_protocol.datanodes_in_memory import add_block, sized, with_datanodes
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

SETTINGS = Settings(block_recovery_seconds=10.0, hard_lease_seconds=100.0)
BLOCK_SIZE = 1 << 27


@dataclass(slots=True)
class World:
    """``acknowledged`` are the bytes of the whole file that no fault may cost.

    ``writing`` is the block that a live client writes; further fields hold orders and results,
    messages on their way; a result may be delivered more than once.
    """

    served: Served
    disks: recovering_datanodes.Disks
    chance: Random
    acknowledged: int = 0
    whole: int = 0
    writing: ExtendedBlockProto | None = None
    pipeline: list[str] = field(default_factory=list)
    told: list[recovering_datanodes.Told] = field(default_factory=list)
    results: list[recovering_datanodes.Request] = field(default_factory=list)
    has_lost: bool = False

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.served.namespace.tree.file("/f").blocks

    @property
    def is_open(self) -> bool:
        return self.served.namespace.tree.file("/f").under_construction is not None

    # ---- clients ----

    async def write(self) -> None:
        if self.writing is None or self._recovers():
            return
        known = [self.disks.replicas[name, self.writing.blockId] for name in self.pipeline]
        if any(
            one.state is not recovering_datanodes.RBW or one.stamp != self.writing.generationStamp
            for one in known
        ):
            self.writing = None
            return
        longest = max(one.length for one in known)
        lengths = [longest + self.chance.randrange(500) for _ in self.pipeline]
        for name, length in zip(self.pipeline, lengths, strict=True):
            old = self.disks.replicas[name, self.writing.blockId]
            self.disks.replicas[name, self.writing.blockId] = replace(old, length=length)
        self.acknowledged = self.whole + min(lengths)

    def _recovers(self) -> bool:
        """Return whether a recovery has a replica of the writer's block: then it is stopped."""
        assert self.writing is not None
        return any(
            self.disks.replicas[name, self.writing.blockId].recovery for name in self.pipeline
        )

    async def reopen(self) -> None:
        if self.is_open:
            return
        request = {"src": "/f", "clientName": f"client{self.chance.randrange(9)}"}
        try:
            answer = await self.served.call("append", **request)  # type: ignore[arg-type]
        except RemoteFault:
            return
        assert isinstance(answer, calls.AppendResponseProto)
        self.whole = sum(block.num_bytes for block in self.blocks)
        self.acknowledged = self.whole
        if answer.HasField("block"):
            return  # and dies before it sets up a pipeline
        await self._next_block(str(request["clientName"]))

    async def _next_block(self, client: str) -> None:
        try:
            added = await add_block(self.served, "/f", clientName=client)
        except RemoteFault:
            return
        self.writing = added.b
        self.pipeline = [place.id.datanodeUuid for place in added.locs]
        if self.chance.random() < 0.8:
            lengths = dict.fromkeys(self.pipeline, 0)
            self.disks.write(added.b, recovering_datanodes.RBW, **lengths)
        else:
            self.writing = None

    async def close(self) -> None:
        if self.writing is None or self._recovers():
            return
        known = [self.disks.replicas[name, self.writing.blockId] for name in self.pipeline]
        length = max(one.length for one in known)
        last = sized(self.writing, length)
        self.disks.write(
            last, recovering_datanodes.FINALIZED, **dict.fromkeys(self.pipeline, length)
        )
        file = self.served.namespace.tree.file("/f").under_construction
        client = file.client_name if file is not None else "nobody"
        self.writing = None
        self.acknowledged = self.whole + length
        if self.chance.random() < 0.5:
            await self._try("complete", src="/f", clientName=client, last=last)

    async def dies(self) -> None:
        self.writing = None

    async def take(self) -> None:
        await self._try("recoverLease", src="/f", clientName=f"taker{self.chance.randrange(3)}")

    async def truncate(self) -> None:
        if self.is_open or not self.blocks:
            return
        length = self.chance.randrange(sum(block.num_bytes for block in self.blocks) + 1)
        await self._try("truncate", src="/f", clientName="cutter", newLength=length)
        self.acknowledged = min(self.acknowledged, length)

    async def _try(self, method: str, **fields: object) -> None:
        try:
            await self.served.call(method, **fields)  # type: ignore[arg-type]
        except RemoteFault:
            return

    # ---- the NameNode and its DataNodes ----

    async def look(self) -> None:
        await self.served.face.release_expired_leases()

    async def wait(self) -> None:
        seconds = self.chance.choice([1.0, 11.0, 120.0])
        recovering_datanodes.at(self.served, seconds)
        for holder in self.served.namespace.tree.leases:
            idle = self.served.face.leases.idle_seconds(holder, time.monotonic())
            self.served.face.leases.renew(holder, time.monotonic() - idle - seconds)

    async def heartbeat(self) -> None:
        for name, node in self.served.cluster.nodes.items():
            if node.recovery_orders and node.alive and self.chance.random() < 0.7:
                told = self.disks.heartbeat(name)
                if told is not None:
                    assert told.order.cause <= len(self.served.log.frames)
                    self.told.append(told)

    async def recover(self) -> None:
        if self.told:
            told = self.told.pop(self.chance.randrange(len(self.told)))
            result = self.disks.carry_out(told)
            if result is not None:
                self.results.append(result)

    async def deliver(self) -> None:
        if self.results:
            try:
                await recovering_datanodes.commit(self.served, self.chance.choice(self.results))
            except RemoteFault:
                return

    async def forget(self) -> None:
        self.told.clear()
        self.results.clear()

    async def part(self) -> None:
        self.disks.unreachable ^= {self.chance.choice(["d1", "d2", "d3"])}

    async def restart(self) -> None:
        """Restart a DataNode: what it was writing waits for a recovery."""
        name = self.chance.choice(["d1", "d2", "d3"])
        for (node, number), replica in self.disks.replicas.items():
            if node == name and replica.state is recovering_datanodes.RBW:
                self.disks.replicas[node, number] = replace(replica, state=recovering_datanodes.RWR)

    async def lose(self) -> None:
        """Let a DataNode lose what it was writing, once in a life, and its writer with it."""
        lost = [
            key
            for key, replica in self.disks.replicas.items()
            if replica.state is not recovering_datanodes.FINALIZED
        ]
        if lost and not self.has_lost and self.is_open:
            del self.disks.replicas[self.chance.choice(lost)]
            self.has_lost, self.writing = True, None

    async def report(self) -> None:
        for number in {number for _, number in self.disks.replicas}:
            self.disks.tell_all(number)

    async def fail_over(self) -> None:
        """Another NameNode takes over, which knows the log and what DataNodes report.

        These carry out no order of the former one any more; results may still be on their way.
        """
        self.told.clear()
        log = self.served.log
        served = with_datanodes(serve(settings=SETTINGS, namespace=log.replayed()))
        served.log.frames = list(log.frames)
        self.served = self.disks.served = served
        await self.report()

    # ---- what must hold ----

    def ensure(self) -> None:
        """Check that nothing acknowledged is gone; closed blocks are on disks as the map says."""
        self.served.cluster.blocks.map.check()
        length = sum(block.num_bytes for block in self.blocks)
        if not self.is_open:
            assert length >= self.acknowledged, (length, self.acknowledged)
        for block in self.blocks[:-1] if self.is_open else self.blocks:
            for name in recovering_datanodes.holders(self.served, block.block_id):
                replica = self.disks.replicas[name, block.block_id]
                said = block.generation_stamp, block.num_bytes
                assert (replica.stamp, replica.length) == said, (name, replica, block)

    async def calm(self) -> None:
        """Let every DataNode answer, the writer be gone, and time pass."""
        self.writing = None
        self.disks.unreachable.clear()
        for _ in range(12):
            await self.report()
            recovering_datanodes.at(self.served, 11.0)
            await self.take()
            await self.look()
            for name, node in self.served.cluster.nodes.items():
                while node.recovery_orders:
                    told = self.disks.heartbeat(name)
                    result = self.disks.carry_out(told) if told is not None else None
                    if result is not None:
                        await recovering_datanodes.commit(self.served, result)
            self.ensure()
            if not self.is_open:
                return
        raise AssertionError("the file stays open")


STEPS: tuple[Callable[[World], object], ...] = (
    *(World.write, World.write, World.reopen, World.close, World.dies),
    *(World.take, World.truncate, World.look, World.wait),
    *(World.heartbeat, World.recover, World.deliver) * 3,
    *(World.forget, World.part, World.restart, World.lose, World.report, World.fail_over),
)


async def run(seed: int, steps: int) -> None:
    """Play one life of a file; the seed is in the failure."""
    served = with_datanodes(serve(settings=SETTINGS))
    await served.create("/f")
    world = World(served, recovering_datanodes.Disks(served, careful=True), Random(seed))
    await world._next_block("writer")
    done: list[str] = []
    try:
        for _ in range(steps):
            step = world.chance.choice(STEPS)
            done.append(step.__name__)
            await step(world)  # type: ignore[misc]
            world.ensure()
        await world.calm()
    except BaseException as failure:
        failure.add_note(f"seed {seed}, steps: {' '.join(done)}")
        raise
