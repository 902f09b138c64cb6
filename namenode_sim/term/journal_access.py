"""What a NameNode needs of its journal: a new writer for each term, one reader for good."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol

from ha.record import dataclass
from journal.errors import Unavailable
from journal.links.kept_links import KeptLinks
from journal.model import LAYOUT_VERSION, TxId
from journal.reader.reader import Chunk
from journal.silence import Silence
from journal.writer.channel_status import ChannelStatus
from journal.writer.heartbeats import ReadLease
from journal.writer.window import Ended
from journal.writer.writer import Recovered
from namenode_sim.storage.local_copies import Append, Finalize, LocalCopies, Purge, Start


class TermWriter(Protocol):
    """A writer for one term; once it fails it has failed for good."""

    @property
    def read_lease(self) -> ReadLease: ...

    async def become_writer(self, *, predecessor_gone_until: float = 0.0) -> Recovered: ...

    async def start_segment(self, first: TxId) -> None: ...

    def begin(self, first: TxId, count: int, records: bytes, ended: Ended) -> None: ...

    async def finalize_segment(self, last: TxId) -> None: ...

    def purge_logs(self, minimum: TxId) -> None: ...

    def node_statuses(self) -> Sequence[ChannelStatus]: ...

    async def close(self) -> None: ...


class EditsReader(Protocol):
    """Reads what is finalized, or all that is durable, from any node that has it."""

    def edits(self, first: TxId, *, through: TxId | None = None) -> AsyncGenerator[Chunk]: ...

    def durable_edits(self, first: TxId) -> AsyncGenerator[Chunk]: ...

    async def close(self) -> None: ...


async def _refuse_silence(_within_seconds: float) -> Silence:
    raise Unavailable("this journal's nodes do not tell when they heard a writer")


@dataclass(frozen=True, slots=True)
class JournalAccess:
    """How to reach the journal.

    With ``tails_open_segment`` a standby reads edits before their segment is finalized
    (``dfs.ha.tail-edits.in-progress``).
    """

    new_writer: Callable[[], TermWriter]
    reader: EditsReader
    layout: int = LAYOUT_VERSION
    """That of the edits which its writers take."""
    tails_open_segment: bool = False
    silence: Callable[[float], Awaitable[Silence]] = _refuse_silence
    """Return for how long a majority has not heard the newest writer.

    Raise JournalError if it has not answered within the given seconds.
    """
    kept: KeptLinks | None = None
    """What ``new_writer`` takes its connections from, if they are made before."""

    def start(self, is_standby: Callable[[], bool]) -> None:
        """Have connections ready for the next writer while we are standby."""
        if self.kept is not None:
            self.kept.start(is_standby)

    async def close(self) -> None:
        """Drop every connection that is not a writer's."""
        if self.kept is not None:
            await self.kept.close()
        await self.reader.close()


class JournalSet:
    """One term's writer, with local copies of what it writes."""

    def __init__(
        self, quorum: TermWriter, copies: LocalCopies, *, layout: int = LAYOUT_VERSION
    ) -> None:
        self._quorum = quorum
        self._copies = copies
        self._layout = layout

    @property
    def read_lease(self) -> ReadLease:
        return self._quorum.read_lease

    async def become_writer(self, *, predecessor_gone_until: float = 0.0) -> Recovered:
        """See ``QuorumWriter``; local directories have no say in who writes."""
        return await self._quorum.become_writer(predecessor_gone_until=predecessor_gone_until)

    async def start_segment(self, first: TxId) -> None:
        """Begin a segment on the quorum, then in every directory, those that failed included."""
        await self._quorum.start_segment(first)
        self._copies.hand(Start(first, self._layout))

    def begin(self, first: TxId, count: int, records: bytes, ended: Ended) -> None:
        """Send edits to quorum and directories; call ``ended`` when the quorum has them."""
        self._copies.hand(Append(records))
        self._quorum.begin(first, count, records, ended)

    async def finalize_segment(self, last: TxId) -> None:
        """Finalize the quorum's segment, and only then the local one: its end is true then."""
        await self._quorum.finalize_segment(last)
        self._copies.hand(Finalize(last))

    def purge_logs(self, minimum: TxId) -> None:
        """Let nodes and directories remove what ends before ``minimum``; do not wait for it."""
        self._quorum.purge_logs(minimum)
        self._copies.hand(Purge(minimum))

    def node_statuses(self) -> Sequence[ChannelStatus]:
        return self._quorum.node_statuses()

    async def close(self) -> None:
        """Drop the quorum's connections; the directories stay for the next term."""
        await self._quorum.close()
