"""What a simulated DataNode says to each NameNode, as the product's actor does."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from datanode.model import StorageId, Temporary
from datanode.namenodes.report_rows import encode_rows
from datanode.replicas.operations import News
from datanode.replicas.store import Announcement
from hadoop.blocks import BlockId
from hadoop.proto import datanode_protocol_pb2 as pb
from namenode_sim.blocks.errors import BlocksError
from namenode_sim.blocks.model import Deleted, ReplicaState, Reported
from namenode_sim.datanode_protocol.errors import BadMessage, Overtaken
from namenode_sim.datanode_protocol.intake import ReportContext
from namenode_sim.datanode_protocol.keeper import Answer, Keeper
from namenode_sim.datanode_protocol.messages import ListedStorage, StorageNews
from namenode_sim.datanodes.commands import Heartbeat, StorageReport
from namenode_sim.datanodes.errors import DatanodesError
from namenode_sim.datanodes.model import Room, StorageState, StorageType
from namenode_sim.datanodes.registry import NamespaceIds, Registration
from tests.simulation.blocks.datanode import Life
from tests.simulation.blocks.disks import ReplicaMap, Stored
from tests.simulation.blocks.wires import Broken

HEARTBEAT_SECONDS: Final = 3.0
CALL_SECONDS: Final = 6.0
PAUSE_SECONDS: Final = 1.0
CAPACITY: Final = 1 << 40
OURS: Final = "3.5.0-nnha"
JAVA: Final = "3.5.0"
IDS: Final = NamespaceIds(7, "CID-sim", 0)
REFUSALS: Final = (DatanodesError, BlocksError, BadMessage, Overtaken)

Lookup = Callable[[str], Keeper | None]
"""The DataNode side of a NameNode, while it runs."""


class Actor:
    """Speaks to one NameNode, for ever."""

    def __init__(self, life: Life, who: str, keepers: Lookup) -> None:
        self._life, self._who, self._keepers = life, who, keepers
        self._owner, self._queue, self._wake = life.owner, life.queues[who], life.wakes[who]
        self._report_due = self._due = 0.0
        self._registered = False

    async def run(self) -> None:
        """Register, heartbeat, report; after a failure again.

        One like Java's registers again only where it is asked to.
        """
        while True:
            try:
                if not (self._owner.java and self._registered):
                    await self._register()
                    self._due = self._owner.loop.time()
                await self._serve()
            except (Broken, TimeoutError, *REFUSALS):
                await asyncio.sleep(PAUSE_SECONDS * (0.5 + self._owner.random.random()))

    async def _serve(self) -> None:
        now = self._owner.loop.time
        while True:
            lease = 0
            if now() >= self._due:
                self._due = now() + HEARTBEAT_SECONDS
                lease = await self._heartbeat()
                await self._send_news()
            elif self._queue.urgent:
                await self._send_news()
            if lease:
                await self._report(lease)
            self._wake.clear()
            if self._queue.urgent:
                continue
            try:
                async with asyncio.timeout_at(self._due):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _call(self, what: str, handle: Callable[[Keeper], object]) -> object:
        keepers, who = self._keepers, self._who

        async def there() -> object:
            keeper = keepers(who)
            if keeper is None:
                raise Broken(f"{who} is starting")
            answer = handle(keeper)
            return await answer if asyncio.iscoroutine(answer) else answer

        async with asyncio.timeout(CALL_SECONDS):
            return await self._owner.wires.call(self._owner.name, who, what, there)

    async def _register(self) -> None:
        version = JAVA if self._owner.java else OURS
        registration = Registration(self._owner.id, IDS, version, self._owner.rack)

        def register(keeper: Keeper) -> bool:
            keeper.register(registration)
            return keeper.standing().active

        active = await self._call("register", register)
        self._life.forget_orders(self._who)
        if not active:
            self._queue.clear()  # the report that follows says all of it
        self._report_due, self._registered = 0.0, True

    async def _heartbeat(self) -> int:
        storages = tuple(
            StorageReport(storage, StorageType.DISK, StorageState.NORMAL, _room(held))
            for storage, held in self._owner.disks.volumes.items()
        )
        beat = Heartbeat(
            self._owner.id,
            storages,
            copies=self._life.copies,
            failed_volumes=self._owner.failed_volumes,
        )
        wants = self._owner.loop.time() >= self._report_due
        lost, given = False, list[Answer]()

        def drop_what_was_lost() -> None:
            while lost and given:
                for command in given.pop().commands:
                    self._owner.watcher.drops(self._owner.name, self._who, command)

        def hear(keeper: Keeper) -> Answer:
            answer = keeper.hear(beat, wants_lease=wants)
            self._owner.watcher.answers(self._who, self._owner.name, answer)
            given.append(answer)
            drop_what_was_lost()  # a stranded request is served when its sender has gone on
            return answer

        try:
            answer = await self._call("heartbeat", hear)
        except BaseException:
            lost = True
            drop_what_was_lost()
            raise
        assert isinstance(answer, Answer)
        if answer.must_register:
            await self._register()
        self._life.hear(self._who, answer)
        return answer.lease

    async def _send_news(self) -> None:
        while taken := self._queue.take(self._has):
            news = [_news(storage, announced) for storage, announced in taken.items()]
            try:
                await self._call("news", lambda keeper: keeper.intake.receive(self._owner.id, news))  # noqa: B023 - awaited here
            except BaseException:
                self._queue.put_back(taken)
                raise

    def _has(self, announced: Announcement) -> bool:
        stored = self._life.map.known.get(announced.block.block_id)
        if stored is None or isinstance(stored.replica, Temporary):
            return False
        return stored.replica.storage == announced.storage

    async def _report(self, lease: int) -> None:
        if not self._owner.java:  # Hadoop's queue is slow, and its NameNode waits for it
            await self._life.take_queued()
        await self._send_news()
        listed = [_listed(storage, self._life.map) for storage in self._owner.disks.volumes]
        self._report_due = self._owner.loop.time() + self._owner.report_seconds
        context = ReportContext(lease)
        try:
            known = await self._call(
                "report", lambda keeper: keeper.intake.report(self._owner.id, listed, context)
            )
        except BaseException as problem:
            self._report_due = 0.0
            if isinstance(problem, REFUSALS):
                return
            raise
        if not known:
            await self._register()


def _room(held: dict[BlockId, Stored]) -> Room:
    used = sum(len(stored.data) for stored in held.values())
    return Room(CAPACITY, used, CAPACITY - used, used)


def _news(storage: StorageId, announced: Sequence[Announcement]) -> StorageNews:
    items: list[tuple[int, Deleted | Reported]] = []
    for one in announced:
        stamp = int(one.block.stamp)
        match one.news:
            case News.DELETED:
                items.append((one.block.block_id, Deleted(stamp)))
            case News.RECEIVED:
                items.append(
                    (one.block.block_id, Reported(ReplicaState.FINALIZED, stamp, one.length))
                )
            case News.RECEIVING:
                items.append((one.block.block_id, Reported(ReplicaState.RBW, stamp, 0)))
    hints = tuple((int(one.block.block_id), one.hint) for one in announced if one.hint)
    return StorageNews(storage, StorageType.DISK, StorageState.NORMAL, tuple(items), hints)


def _listed(storage: StorageId, known: ReplicaMap) -> ListedStorage:
    held = [one.replica for one in known.known.values() if one.replica.storage == storage]
    count, buffers = encode_rows(held)
    message = pb.StorageBlockReportProto(numberOfBlocks=count, blocksBuffers=buffers)
    message.storage.storageUuid = storage
    return ListedStorage(storage, StorageType.DISK, StorageState.NORMAL, message)
