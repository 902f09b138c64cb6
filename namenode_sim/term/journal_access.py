"""What a NameNode needs of its journal: a new writer for each term, one reader for good."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from journal.model import TxId
from journal.reader.reader import Chunk
from journal.writer.channel_status import ChannelStatus
from journal.writer.heartbeats import ReadLease
from journal.writer.writer import Recovered


class TermWriter(Protocol):
    """A writer for one term; once it fails it has failed for good."""

    @property
    def read_lease(self) -> ReadLease: ...

    async def become_writer(self, *, predecessor_gone_until: float = 0.0) -> Recovered: ...

    async def start_segment(self, first: TxId) -> None: ...

    async def write(self, first: TxId, count: int, records: bytes) -> None: ...

    async def finalize_segment(self, last: TxId) -> None: ...

    def purge_logs(self, minimum: TxId) -> None: ...

    def node_statuses(self) -> Sequence[ChannelStatus]: ...

    async def close(self) -> None: ...


class EditsReader(Protocol):
    """Reads what is finalized, or all that is durable, from any node that has it."""

    def edits(self, first: TxId, *, through: TxId | None = None) -> AsyncGenerator[Chunk]: ...

    def durable_edits(self, first: TxId) -> AsyncGenerator[Chunk]: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class JournalAccess:
    """How to reach the journal.

    With ``tails_open_segment`` a standby reads edits before their segment is finalized
    (``dfs.ha.tail-edits.in-progress``).
    """

    new_writer: Callable[[], TermWriter]
    reader: EditsReader
    tails_open_segment: bool = False
