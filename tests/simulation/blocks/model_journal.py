"""A journal as NameNodes meet it: one log in order, epochs, a read lease.

It stands for a quorum: what arrives under the newest epoch is durable, all else is refused.  How a
real quorum keeps that promise is simulated in tests/simulation/journal.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from journal.errors import JournalError, Unavailable
from journal.model import LAYOUT_VERSION, Epoch, NodeName, TxId
from journal.proto import journal_pb2 as pb
from journal.reader.reader import Chunk
from journal.writer.channel_status import ChannelStatus
from journal.writer.heartbeats import BEATS_PER_LEASE, ReadLease
from journal.writer.window import Ended
from journal.writer.writer import Recovered
from namenode_sim.edits.codec import decode_all
from namenode_sim.edits.ops import Op
from namenode_sim.term.journal_access import JournalAccess
from tests.simulation.blocks.wires import Broken, Wires

LEASE_SECONDS: Final = 2.0
WRITE_SECONDS: Final = 8.0
"""How long a writer waits for the quorum before it gives up."""
JOURNAL: Final = "jn"
_NODE: Final = NodeName(JOURNAL)

T = TypeVar("T")


class Superseded(JournalError):
    """A newer writer was promised."""


def frames_of(records: bytes) -> list[tuple[TxId, Op]]:
    return list(decode_all(records, LAYOUT_VERSION))


@dataclass(slots=True)
class Journal:
    """What the quorum has: batches by their first transaction, in order.

    ``on_durable`` hears of each edit at the instant at which it becomes durable.
    """

    batches: list[tuple[TxId, TxId, bytes]] = field(default_factory=list)
    epoch: int = 0
    heard_at: float | None = None
    on_durable: Callable[[TxId, Op], None] = lambda _txid, _op: None

    @property
    def last(self) -> TxId:
        """The last durable transaction."""
        return self.batches[-1][1] if self.batches else TxId(0)

    def extend(self, epoch: int, first: TxId, count: int, records: bytes, now: float) -> None:
        """Take a batch in.

        Raises:
            Superseded: if a newer writer was promised.
        """
        self.hear(epoch, now)
        assert first == self.last + 1, f"batch begins at {first}, the journal ends at {self.last}"
        self.batches.append((first, TxId(first + count - 1), records))
        for txid, op in frames_of(records):
            self.on_durable(txid, op)

    def hear(self, epoch: int, now: float) -> None:
        """Refuse a writer of an older epoch."""
        if epoch != self.epoch:
            raise Superseded(f"epoch {epoch} is not {self.epoch}, which was promised")
        self.heard_at = now

    def promise(self) -> int:
        """Return a new epoch; every older writer is refused from now on."""
        self.epoch += 1
        return self.epoch


class Writer:
    """One term's writer."""

    def __init__(self, journal: Journal, wires: Wires, machine: str) -> None:
        self._journal, self._wires, self._machine = journal, wires, machine
        self._epoch = 0
        self._beats: asyncio.Task[None] | None = None
        self._writing: set[asyncio.Task[None]] = set()
        self._lease = ReadLease([_NODE], LEASE_SECONDS, clock=asyncio.get_running_loop().time)

    @property
    def read_lease(self) -> ReadLease:
        """The lease of this writer, on the world's clock."""
        return self._lease

    async def become_writer(self, *, predecessor_gone_until: float = 0.0) -> Recovered:
        """Win an epoch; the journal ends where it ends, and older writers are refused."""
        self._epoch = await self._ask("NewEpoch", self._journal.promise)
        loop = asyncio.get_running_loop()
        heard = self._journal.heard_at
        if loop.time() >= predecessor_gone_until and heard is not None:
            ago = int((loop.time() - heard) * 1e6)
            told = pb.NewEpochReply(
                previous_writer_heard_micros_ago=ago,
                previous_read_lease_micros=int(LEASE_SECONDS * 1e6),
            )
            self._lease.older_heard([told])
        return Recovered(Epoch(self._epoch), self._journal.last)

    async def start_segment(self, first: TxId) -> None:
        """Segments do not show here; a term's first waits for the older writer's lease."""
        await self._lease.outlast_older()
        if self._beats is None:
            self._beats = asyncio.create_task(self._beat())

    def begin(self, first: TxId, count: int, records: bytes, ended: Ended) -> None:
        """Write a batch; call ``ended`` when it is durable, unless this writer is closed before."""
        task = asyncio.create_task(self._write(first, count, records, ended))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, first: TxId, count: int, records: bytes, ended: Ended) -> None:
        now = asyncio.get_running_loop().time
        sent_at, journal = now(), self._journal
        try:
            await self._ask(
                "Write", lambda: journal.extend(self._epoch, first, count, records, now())
            )
        except JournalError as refusal:
            ended(refusal)
            return
        self._lease.accepted([_NODE], sent_at)
        ended(None)

    async def finalize_segment(self, last: TxId) -> None:
        """Do nothing."""

    def purge_logs(self, minimum: TxId) -> None:
        """Everything is kept."""

    def node_statuses(self) -> Sequence[ChannelStatus]:
        return ()

    async def close(self) -> None:
        """Stop the heartbeats, and give up the lease."""
        self._lease.end()
        for task in (self._beats, *self._writing):
            if task is not None:
                task.cancel()

    async def _beat(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            sent_at = now()
            try:
                await self._ask("Beat", lambda: self._journal.hear(self._epoch, now()))
                self._lease.accepted([_NODE], sent_at)
            except Superseded as refusal:
                self._lease.refused(_NODE, str(refusal))
                return
            except JournalError:
                pass
            await asyncio.sleep(max(0.0, sent_at + LEASE_SECONDS / BEATS_PER_LEASE - now()))

    async def _ask(self, what: str, there: Callable[[], T]) -> T:
        async def answer() -> T:
            return there()

        try:
            async with asyncio.timeout(WRITE_SECONDS):
                return await self._wires.call(self._machine, JOURNAL, what, answer)
        except (Broken, TimeoutError) as silence:
            raise Unavailable(f"{what}: {silence!r}") from silence


@dataclass(slots=True)
class Reader:
    """What is durable, as one NameNode reads it."""

    journal: Journal
    wires: Wires
    machine: str

    async def edits(self, first: TxId, *, through: TxId | None = None) -> AsyncGenerator[Chunk]:
        """Yield all that is durable from ``first`` on."""
        for chunk in await self._read(first):
            if through is None or chunk.first <= through:
                yield chunk

    async def durable_edits(self, first: TxId) -> AsyncGenerator[Chunk]:
        """Yield all that is durable, also of the open segment."""
        for chunk in await self._read(first):
            yield chunk

    async def close(self) -> None:
        """Do nothing."""

    async def _read(self, first: TxId) -> list[Chunk]:
        async def answer() -> list[Chunk]:
            found = []
            for start, end, records in reversed(self.journal.batches):
                if end < first:
                    break
                found.append(Chunk(start, end, LAYOUT_VERSION, records))
            found.reverse()
            if found and found[0].first < first:
                _, rest = found[0].cut(TxId(first - 1))
                assert rest is not None
                found[0] = rest
            return found

        try:
            async with asyncio.timeout(WRITE_SECONDS):
                return await self.wires.call(self.machine, JOURNAL, "Read", answer)
        except (Broken, TimeoutError) as silence:
            raise Unavailable(f"reading: {silence!r}") from silence


def access(journal: Journal, wires: Wires, machine: str) -> JournalAccess:
    """Return how one NameNode reaches the journal; its standby reads the open segment."""
    return JournalAccess(
        new_writer=lambda: Writer(journal, wires, machine),
        reader=Reader(journal, wires, machine),
        tails_open_segment=True,
    )
