"""A journal in memory: one history, epochs, and switches that make it fail."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from journal.errors import Fenced, JournalError
from journal.frame import scan
from journal.model import LAYOUT_VERSION, Epoch, TxId
from journal.reader.reader import Chunk
from journal.writer.channel_status import ChannelStatus
from journal.writer.heartbeats import ReadLease
from journal.writer.window import Ended
from journal.writer.writer import Recovered
from namenode_sim.term.journal_access import JournalAccess


class Bug(Exception):
    """Something that no code of ours raises."""


@dataclass
class MemoryJournal:
    """What all writers and readers of a test share."""

    promised: Epoch = Epoch(0)
    finalized: list[Chunk] = field(default_factory=list)
    open_first: TxId | None = None
    open_records: bytes = b""
    told_gone: list[bool] = field(default_factory=list)
    purged_below: TxId = TxId(0)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    bug_in: str = ""
    """The call that ends in an error which is not foreseen."""
    refuses: dict[str, JournalError] = field(default_factory=dict)
    """The calls that end in an error of the journal's."""
    held: list[Ended] | None = None
    """Where batches wait for their end, if they do."""
    closed: list[str] = field(default_factory=list)
    """The writers and readers that were closed."""

    def __post_init__(self) -> None:
        self.answers.set()

    def meet_trouble(self, call: str) -> None:
        if call == self.bug_in:
            raise Bug(call)
        if call in self.refuses:
            raise self.refuses[call]

    def access(self) -> JournalAccess:
        return JournalAccess(lambda: MemoryWriter(self), MemoryReader(self))

    def seal(self) -> None:
        whole = scan(self.open_records)
        if self.open_first is not None and whole.last is not None:
            chunk = Chunk(self.open_first, whole.last, LAYOUT_VERSION, self.open_records)
            self.finalized.append(chunk)
        self.open_first, self.open_records = None, b""

    @property
    def last_txid(self) -> TxId:
        return self.finalized[-1].last if self.finalized else TxId(0)


@dataclass
class MemoryWriter:
    """One term's writer."""

    journal: MemoryJournal
    epoch: Epoch = Epoch(0)
    read_lease: ReadLease = field(default_factory=lambda: ReadLease((), 0.0))

    async def become_writer(self, *, predecessor_gone_until: float = 0.0) -> Recovered:
        self.journal.meet_trouble("become_writer")
        self.journal.told_gone.append(predecessor_gone_until > 0)
        await self.journal.answers.wait()
        self.epoch = self.journal.promised = Epoch(self.journal.promised + 1)
        self.journal.seal()
        return Recovered(self.epoch, self.journal.last_txid)

    def _check(self) -> None:
        promised = self.journal.promised
        if self.epoch != promised:
            raise Fenced(f"epoch {self.epoch} is older than {promised}", promised=promised)

    async def start_segment(self, first: TxId) -> None:
        self.journal.meet_trouble("start_segment")
        self._check()
        self.journal.open_first = first

    def begin(self, first: TxId, count: int, records: bytes, ended: Ended) -> None:
        self.journal.meet_trouble("write")
        self._check()
        self.journal.open_records += records
        if self.journal.held is None:
            ended(None)
        else:
            self.journal.held.append(ended)

    async def finalize_segment(self, last: TxId) -> None:
        self.journal.meet_trouble("finalize_segment")
        await self.journal.answers.wait()
        self._check()
        self.journal.seal()

    def purge_logs(self, minimum: TxId) -> None:
        self._check()
        self.journal.purged_below = minimum

    def node_statuses(self) -> Sequence[ChannelStatus]:
        return ()

    async def close(self) -> None:
        """Close as the real one: its batches get no answer any more, but until then may fail."""
        while self.journal.held:
            self.journal.held.pop()(JournalError("no node is left"))
        self.journal.closed.append(f"writer {self.epoch}")


@dataclass
class MemoryReader:
    """Reads the finalized part."""

    journal: MemoryJournal

    async def edits(self, first: TxId, *, through: TxId | None = None) -> AsyncGenerator[Chunk]:
        self.journal.meet_trouble("edits")
        for chunk in list(self.journal.finalized):
            if chunk.first >= first:
                yield chunk

    async def durable_edits(self, first: TxId) -> AsyncGenerator[Chunk]:
        async for chunk in self.edits(first):
            yield chunk

    async def close(self) -> None:
        self.journal.closed.append("reader")
