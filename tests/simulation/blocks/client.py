"""A simulated client: it writes, reads and changes files, and goes from NameNode to NameNode."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from random import Random
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from datanode.model import StorageId
from datanode.replicas.operations import (
    Append,
    Create,
    Operation,
    RecoverAppend,
    RecoverClose,
    RecoverPipeline,
)
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import NOT_REPLICATED_YET, RETRIABLE, STANDBY_EXCEPTION
from hadoop.blocks import Block
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import (
    DatanodeInfoProto,
    ExtendedBlockProto,
    FsPermissionProto,
    LocatedBlockProto,
)
from tests.simulation.blocks.datanode import Datanode, block
from tests.simulation.blocks.disks import NotDone
from tests.simulation.blocks.namenode import BLOCK_SIZE, SUPERUSER, Serving, served
from tests.simulation.blocks.names import POOL, id_of
from tests.simulation.blocks.pipeline import BadLink, Place, finish, read, send, set_up
from tests.simulation.blocks.wires import Broken, Wires
from tests.simulation.engine.clock import VirtualLoop

CALL_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 25.0
PACKET: Final = 10
TRIES: Final = 5
M = TypeVar("M", bound=Message)
_GO_ON: Final = (STANDBY_EXCEPTION, RETRIABLE)
ABANDON: Final = "abandonBlock"


class GaveUp(Exception):
    """A client has tried for long enough."""


class Ledger(Protocol):
    """Notes what clients were answered."""

    def given(self, block: Block, places: int) -> None:
        """Note a new block id with its stamp, and how many DataNodes it is to be written to."""

    def restamped(self, block_id: int, stamp: int) -> None:
        """Note the new stamp that a block was given."""

    def sends(self, block: Block, start: int, payload: bytes, pipeline: Iterable[str]) -> None:
        """Note the bytes of a block that a writer sends."""

    def acked(self, block: Block, length: int, pipeline: Iterable[str]) -> None:
        """Note how many bytes all DataNodes have acknowledged."""

    def finished(self, block: Block, length: int, pipeline: Iterable[str]) -> None:
        """Note that all DataNodes have acknowledged the end of a block."""

    def completed(self, path: str) -> None:
        """Note that a file was closed."""

    def reads(self, block: Block, data: bytes) -> None:
        """Note the bytes of a block that a reader got."""


class Client:
    """``life_of`` finds the process of a NameNode, if one runs."""

    def __init__(
        self,
        name: str,
        loop: VirtualLoop,
        wires: Wires,
        datanodes: Mapping[str, Datanode],
        lives: Mapping[str, Serving],
        ledger: Ledger,
        random: Random,
        *,
        namenodes: Sequence[str] = ("nn1", "nn2"),
        user: str = SUPERUSER,
    ) -> None:
        self.name, self.loop, self.wires = name, loop, wires
        self.datanodes, self.lives, self.ledger, self.random = datanodes, lives, ledger, random
        self.id = name.encode().ljust(16, b"-")
        self.numbers = count(1)
        self.names, self.user = list(namenodes), user
        self.done = 0

    # ---- NameNodes ----

    async def ask(self, method: str, request: Message, kind: type[M]) -> M:
        """Call the active, wherever it is; repeat the call until a NameNode answers.

        Raises:
            GaveUp: if none does.
            RemoteFault: if it is refused.
        """
        number, ends = next(self.numbers), self.loop.time() + PATIENCE_SECONDS
        while True:
            who = self.names[0]

            async def there(who: str = who) -> Message:
                life = self.lives.get(who)
                if life is None:
                    raise Broken(f"{who} is starting")
                return await served(life, method, self.id, number, request, user=self.user)

            try:
                async with asyncio.timeout(CALL_SECONDS):
                    answer = await self.wires.call(self.name, who, method, there)
            except RemoteFault as fault:
                if fault.java_class not in _GO_ON:
                    raise
            except (Broken, TimeoutError):
                pass
            else:
                assert isinstance(answer, kind)
                return answer
            self.names.append(self.names.pop(0))
            if self.loop.time() >= ends:
                raise GaveUp(method)
            await asyncio.sleep(0.2 + 0.8 * self.random.random())

    async def insist(self, method: str, request: Message, kind: type[M]) -> M:
        """Ask as ``ask`` does; while a block is not replicated, again."""
        for attempt in range(TRIES):
            try:
                return await self.ask(method, request, kind)
            except RemoteFault as fault:
                if fault.java_class != NOT_REPLICATED_YET:
                    raise
            await asyncio.sleep(0.4 * 2**attempt)
        raise GaveUp(method)

    # ---- files ----

    async def write(self, path: str, length: int, replication: int) -> None:
        """Create a file of ``length`` bytes, and close it."""
        status = await self.ask(
            "create",
            calls.CreateRequestProto(
                src=path, masked=FsPermissionProto(perm=0o644), clientName=self.name, createFlag=3,
                createParent=True, replication=replication, blockSize=BLOCK_SIZE,
            ),
            calls.CreateResponseProto,
        )  # fmt: skip
        await _Writer(self, path, status.fs.fileId).write(length)

    async def append(self, path: str, length: int) -> None:
        """Append ``length`` bytes."""
        answer = await self.ask(
            "append",
            calls.AppendRequestProto(src=path, clientName=self.name, flag=4),
            calls.AppendResponseProto,
        )
        writer = _Writer(self, path, answer.stat.fileId)
        if answer.HasField("block"):
            await writer.go_on(answer.block, length)
        else:
            await writer.write(length)

    async def read(self, path: str) -> None:
        """Read all of a file that somebody can read."""
        answer = await self.ask(
            "getBlockLocations",
            calls.GetBlockLocationsRequestProto(src=path, offset=0, length=1000),
            calls.GetBlockLocationsResponseProto,
        )
        located = answer.locations
        last = located.lastBlock.b.blockId
        for one in located.blocks:
            what = block(one.b.blockId, one.b.generationStamp)
            is_open = one.b.blockId == last and not located.isLastBlockComplete
            for place in one.locs:
                owner = self.datanodes[place.id.hostName]
                wanted = None if is_open else one.b.numBytes
                try:
                    data = await read(self.name, owner, what, wanted)
                except (Broken, TimeoutError, NotDone):
                    continue
                self.ledger.reads(what, data)
                break


class _Writer:
    """The open file of a client, block after block."""

    def __init__(self, client: Client, path: str, file_id: int) -> None:
        self.client, self.path, self.file_id = client, path, file_id
        self.previous: ExtendedBlockProto | None = None
        self.excluded: list[DatanodeInfoProto] = []

    async def write(self, length: int) -> None:
        """Blocks, then the end of the file."""
        while length > 0:
            size = min(length, BLOCK_SIZE)
            located = await self._add_block()
            await _BlockWriter(self, located).write(0, size)
            length -= size
        await self._complete()

    async def go_on(self, located: LocatedBlockProto, length: int) -> None:
        begins = located.b.numBytes
        size = min(length, BLOCK_SIZE - begins)
        writer = _BlockWriter(self, located)
        await writer.reopen(begins)
        await writer.write(begins, begins + size)
        await self.write(length - size)

    async def _add_block(self) -> LocatedBlockProto:
        request = calls.AddBlockRequestProto(
            src=self.path, clientName=self.client.name, fileId=self.file_id,
            excludeNodes=self.excluded,
        )  # fmt: skip
        if self.previous is not None:
            request.previous.CopyFrom(self.previous)
        answer = await self.client.insist("addBlock", request, calls.AddBlockResponseProto)
        located: LocatedBlockProto = answer.block
        made = block(located.b.blockId, located.b.generationStamp)
        self.client.ledger.given(made, len(located.locs))
        if not located.locs:
            raise GaveUp(f"{made} has no DataNode")
        return located

    async def _complete(self) -> None:
        request = calls.CompleteRequestProto(
            src=self.path, clientName=self.client.name, fileId=self.file_id
        )
        if self.previous is not None:
            request.last.CopyFrom(self.previous)
        for attempt in range(TRIES + 1):
            answer = await self.client.ask("complete", request, calls.CompleteResponseProto)
            if answer.result:
                self.client.ledger.completed(self.path)
                self.client.done += 1
                return
            await asyncio.sleep(0.4 * 2**attempt)
        raise GaveUp("complete")


class _BlockWriter:
    """One block that is being written, through as many pipelines as it takes."""

    def __init__(self, writer: _Writer, located: LocatedBlockProto) -> None:
        self.writer, self.client = writer, writer.client
        self.block = block(located.b.blockId, located.b.generationStamp)
        self.places = [
            Place(self.client.datanodes[info.id.hostName], StorageId(storage))
            for info, storage in zip(located.locs, located.storageIDs, strict=True)
        ]
        self.acked = self.sent = 0
        self.is_open = self.is_closing = False

    async def reopen(self, length: int) -> None:
        if not self.places:
            # A pipeline without DataNodes would give the block a stamp that no replica has;
            # Hadoop's client fails here too (DataStreamer.setPipelineInConstruction).
            raise GaveUp(f"{self.block} has no DataNode")
        self.acked = self.sent = length
        stamp = await self._new_stamp()
        old = self.block
        await self._set_up(lambda _: Append(old, stamp.stamp, length), stamp, again=True)

    async def write(self, start: int, end: int) -> None:
        """Send all packets and the end; after a failure to the DataNodes that are left."""
        if not self.is_open:
            made = self.block
            await self._set_up(lambda storage: Create(made, storage, 0), made, again=False)
        payload = self.client.random.randbytes(end - start)
        self.client.ledger.sends(self.block, start, payload, self._names())
        while True:
            try:
                while self.acked < end:
                    await self._packet(payload[self.acked - start :][:PACKET])
                self.is_closing = True
                await finish(self.client.name, self.places, self.block, end)
                self.client.ledger.finished(self.block, end, self._names())
                break
            except BadLink as bad:
                await self._recover(bad)
                if self.is_closing:
                    break
        self.writer.previous = self._extended(self.block, end)

    async def _packet(self, part: bytes) -> None:
        await asyncio.sleep(self.client.random.random() * 0.5)
        self.sent = max(self.sent, self.acked + len(part))
        await send(self.client.name, self.places, self.block, self.acked, part)
        self.acked += len(part)
        self.client.ledger.acked(self.block, self.acked, self._names())

    def _names(self) -> list[str]:
        return [place.owner.name for place in self.places]

    async def _set_up(
        self, operation: Callable[[StorageId], Operation], made: Block, *, again: bool
    ) -> None:
        """Open the pipeline; the first time a failure leads to another block."""
        try:
            await set_up(self.client.name, self.places, operation)
        except BadLink as bad:
            if not again:
                raise GaveUp(str(bad)) from bad
            await self._recover(bad)
        else:
            if made != self.block:
                await self._tell(made)
        self.is_open = True

    async def _recover(self, bad: BadLink) -> None:
        """Go on without a DataNode, under a new stamp."""
        while True:
            self.places = [place for place in self.places if place.owner.name != bad.node]
            if not self.places:
                raise GaveUp(str(bad)) from bad
            await asyncio.sleep(0.2)
            stamp = await self._new_stamp()
            try:
                await set_up(self.client.name, self.places, self._recovery(stamp))
            except BadLink as worse:
                bad = worse
                continue
            await self._tell(stamp)
            self.sent = self.acked
            return

    def _recovery(self, made: Block) -> Callable[[StorageId], Operation]:
        old, acked, sent = self.block, self.acked, self.sent

        def operation(_: StorageId) -> Operation:
            if not self.is_open:
                return RecoverAppend(old, made.stamp, acked)
            if self.is_closing:
                return RecoverClose(old, made.stamp, acked)
            return RecoverPipeline(old, made.stamp, acked, sent)

        return operation

    async def _new_stamp(self) -> Block:
        answer = await self.client.ask(
            "updateBlockForPipeline",
            calls.UpdateBlockForPipelineRequestProto(
                block=self._extended(self.block, self.acked), clientName=self.client.name
            ),
            calls.UpdateBlockForPipelineResponseProto,
        )
        made = block(self.block.block_id, answer.block.b.generationStamp)
        self.client.ledger.restamped(made.block_id, made.stamp)
        return made

    async def _tell(self, made: Block) -> None:
        await self.client.ask(
            "updatePipeline",
            calls.UpdatePipelineRequestProto(
                clientName=self.client.name,
                oldBlock=self._extended(self.block, self.acked),
                newBlock=self._extended(made, self.acked),
                newNodes=[id_of(place.owner) for place in self.places],
                storageIDs=[place.storage for place in self.places],
            ),
            calls.UpdatePipelineResponseProto,
        )
        self.block = made

    @staticmethod
    def _extended(what: Block, length: int) -> ExtendedBlockProto:
        return ExtendedBlockProto(
            poolId=POOL, blockId=what.block_id, generationStamp=what.stamp, numBytes=length
        )
