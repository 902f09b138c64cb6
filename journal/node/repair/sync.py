"""Downloads the segments that peers have finalized and this node lacks, in the background.

Unlike Hadoop's JournalNodeSyncer it asks all peers in each round, compares digests and not only
names, needs no committed txid and so no further log roll, and repeats soon while there is a gap.
It also gets a learner's vote back if the voters' answers are enough for that (``admission``).

See docs/reference/journal-node.md#background-sync.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import structlog

from ha.daemon.lazy_import import load_late
from ha.record import dataclass, replace
from journal.core import sync
from journal.core.replies import FetchFinalized
from journal.core.requests import AdoptFinalized
from journal.core.state import OpenSegment
from journal.errors import JournalError, NotAdmitted, NotFormatted, Unavailable
from journal.links import peer
from journal.links.link import segment_url
from journal.model import Segment, TxId
from journal.node import metrics
from journal.node.owner.owner import JournalOwner
from journal.node.peers import Own, Peer
from journal.node.repair.admission import Admission
from journal.node.repair.scrub import report_missing
from journal.node.settings import NodeSettings

log = structlog.get_logger()

T = TypeVar("T")

_DIGESTS_PER_ROUND: Final = 8
"""Limit of the segments without a digest, from Hadoop's nodes, that are read in one round."""


@dataclass(frozen=True, slots=True)
class _Source:
    """One peer's list of segments, and the address to download them from."""

    host: str
    http_port: int
    segments: tuple[Segment, ...]


class JournalSync:
    """Syncs one journal until its task is cancelled."""

    def __init__(
        self, owner: JournalOwner, nodes: Sequence[Peer], own: Own, settings: NodeSettings
    ) -> None:
        self._owner = owner
        self._nodes = tuple(nodes)
        self._own = own
        self._settings = settings
        self._peers = peer.Peers(owner.journal_id, settings.hadoop_port_of_peers)
        self.admission = Admission(
            owner,
            len(self._nodes),
            wait_seconds=settings.claim_seconds,
            call_seconds=settings.sync_call_seconds,
        )
        self._pause = settings.sync_quick_seconds
        self._reported: set[TxId] = set()
        self._open_before: OpenSegment | None = None

    async def run(self) -> None:
        """Run rounds until the task is cancelled or the journal has failed."""
        while self._owner.failed_because is None:
            brought = 0
            try:
                brought = await self.round()
                await self.admission.attempt(self._ask_each)
            except JournalError as failure:
                log.warning(
                    "sync.round_failed", journal=self._owner.journal_id, because=str(failure)
                )
            except Exception:
                # A bug in one round must not end the repair of this journal for good.
                log.exception("sync.unexpected", journal=self._owner.journal_id)
            await self._rest(self._until_next(brought))

    async def _rest(self, seconds: float) -> None:
        """Wait, but return early for a new gap or a new step of the admission."""
        had_hole, had_step = sync.has_hole(self._owner.state), self.admission.under_way
        while seconds > 0:
            await asyncio.sleep(min(seconds, self._settings.sync_quick_seconds))
            seconds -= self._settings.sync_quick_seconds
            if not had_hole and sync.has_hole(self._owner.state):
                return
            if not had_step and self.admission.under_way:
                return

    def _until_next(self, brought: int) -> float:
        """Return the seconds to the next round.

        For a gap they begin at ``sync_quick_seconds``, and double while no peer can fill it.
        """
        interval = self._settings.sync_interval_seconds
        if self.admission.under_way:
            interval = min(interval, self._settings.admission_seconds)
        if not sync.has_hole(self._owner.state):
            self._pause = self._settings.sync_quick_seconds
            return min(interval, self._pause) if brought else interval
        now = self._settings.sync_quick_seconds if brought else self._pause
        self._pause = min(interval, 2 * now)
        return min(interval, now)

    async def round(self) -> int:
        """Ask all peers, download what is missing, and return the number of new segments."""
        if self._owner.state.namespace is None:
            return 0
        await report_missing(self._owner)
        sources = await self._with_digests(await self._ask_each(self._list))
        reported = [one for source in sources for one in source.segments]
        stalled_at = self._stalled_at()
        found = sync.find_missing(self._owner.state, reported, stalled_at)
        self._report(found.forked)
        brought = 0
        for segment in found.segments:
            try:
                brought += await self._bring(segment, sources, stalled_at)
            except JournalError as failure:
                metrics.SYNC_FAILURES.labels(self._owner.journal_id).inc()
                log.warning(
                    "sync.segment_failed",
                    journal=self._owner.journal_id,
                    segment=segment.name(),
                    because=str(failure),
                )
        return brought

    def _stalled_at(self) -> TxId | None:
        """Return the next txid of an open segment without new edits since the last round."""
        now = self._owner.state.open
        before, self._open_before = self._open_before, now
        if now is None or before is None:
            return None
        same = (now.first, now.next_txid) == (before.first, before.next_txid)
        return now.next_txid if same else None

    async def _ask_each(self, question: Callable[[peer.Peer], Awaitable[T]]) -> list[T]:
        """Ask all other nodes, and return the answers of those that did not fail."""
        # Names are resolved in each round: a peer may have had no address when this node started.
        others = await asyncio.to_thread(self._own.others, self._nodes)
        answers = await asyncio.gather(*(self._ask(one, question) for one in others))
        return [answer for answer in answers if answer is not None]

    async def _ask(self, node: Peer, question: Callable[[peer.Peer], Awaitable[T]]) -> T | None:
        host, port = node
        try:
            async with self._peers.reached(host, port, self._settings.sync_call_seconds) as other:
                return await question(other)
        except (Unavailable, NotFormatted, NotAdmitted) as silent:
            log.debug("sync.peer_silent", peer=f"{host}:{port}", because=str(silent))
        except JournalError as failure:
            log.warning("sync.peer_refused", peer=f"{host}:{port}", because=str(failure))
        return None

    async def _list(self, other: peer.Peer) -> _Source:
        since = sync.first_txid_to_ask(self._owner.state)
        listed = await other.listed(since, self._settings.sync_call_seconds)
        return _Source(other.host, listed.http_port, listed.segments)

    async def _with_digests(self, sources: Sequence[_Source]) -> list[_Source]:
        """Read the missing segments that only Hadoop's nodes list, and add their digests.

        Hadoop's JournalNodes report no digests, but each download is checked with one.
        """
        told = {one.first: one for source in sources for one in source.segments if one.digest}
        unread = sync.find_without_digest(
            self._owner.state, [one for source in sources for one in source.segments]
        )
        for lacking in [one for one in unread if one.first not in told][:_DIGESTS_PER_ROUND]:
            for url in self._urls(lacking, sources):
                try:
                    told[lacking.first] = await self._read(lacking, url)
                except JournalError as failure:
                    log.warning(
                        "sync.source_failed", segment=lacking.name(), url=url, because=str(failure)
                    )
                    continue
                break
        return [
            replace(source, segments=tuple(_with_digest(one, told) for one in source.segments))
            for source in sources
        ]

    async def _read(self, lacking: Segment, url: str) -> Segment:
        await load_late("aiohttp")
        from journal.node.repair.segment_fetch import digest_of_source

        digest = await digest_of_source(url, lacking.first, lacking.last, self._settings)
        return replace(lacking, digest=digest)

    async def _bring(
        self, segment: Segment, sources: Sequence[_Source], stalled_at: TxId | None
    ) -> int:
        owner = self._owner
        answer = await owner.ask(AdoptFinalized(segment, stalled_at=stalled_at))
        fetched = isinstance(answer, FetchFinalized)
        if fetched:
            # Loaded here: only a node that lacks edits needs an HTTP client.
            await load_late("aiohttp")
            from journal.node.repair.segment_fetch import fetch_finalized

            await fetch_finalized(owner, segment, self._urls(segment, sources), self._settings)
            try:
                await owner.ask(AdoptFinalized(segment, fetched=True, stalled_at=stalled_at))
            finally:
                # If a writer finalized the segment first, the download is left: delete it.
                with suppress(JournalError):
                    await owner.in_thread(owner.disk.drop_fetched, segment)
        metrics.SYNC_SEGMENTS.labels(owner.journal_id).inc()
        log.info(
            "sync.segment_brought",
            journal=owner.journal_id,
            segment=segment.name(),
            fetched=fetched,
            digest=segment.digest.hex()[:16],
        )
        return 1

    def _urls(self, segment: Segment, sources: Sequence[_Source]) -> list[str]:
        return [
            segment_url(
                source.host,
                source.http_port,
                journal_id=self._owner.journal_id,
                first=segment.first,
                namespace=self._owner.state.namespace,
                in_progress=False,
            )
            for source in sources
            if any(
                (one.first, one.last, one.digest) == (segment.first, segment.last, segment.digest)
                for one in source.segments
            )
        ]

    def _report(self, forked: Sequence[TxId]) -> None:
        """Log the segments of which a peer has finalized other edits; an operator must decide."""
        for first in set(forked) - self._reported:
            log.error("sync.forked", journal=self._owner.journal_id, segment=first)
        self._reported = set(forked)
        metrics.FORKED.labels(self._owner.journal_id).set(len(forked))


def _with_digest(one: Segment, known: Mapping[TxId, Segment]) -> Segment:
    """Return the segment with the digest in ``known`` if its node reports none."""
    found = known.get(one.first)
    if one.digest or found is None or found.last != one.last:
        return one
    return replace(one, digest=found.digest)
