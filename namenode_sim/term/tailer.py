"""Follow the journal: read what is durable there and apply it to the namespace."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Final, Protocol

import structlog

from journal.errors import InvariantBroken, JournalError, QuorumLost, WrongNamespace
from journal.model import TxId
from journal.reader.reader import Chunk
from namenode_sim.edits.codec import decode_all
from namenode_sim.edits.errors import EditsError
from namenode_sim.metrics import LAST_APPLIED_TXID, TAIL_APPLIED, TAIL_FAILURES
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.supervised import supervise

log = structlog.get_logger()

EDITS_PER_TURN: Final = 500
"""How many edits are applied before other tasks get the loop: some ten milliseconds."""


class EditsSource(Protocol):
    """Where edits are read from: the quorum of JournalNodes, or memory in a test."""

    def edits(self, first: TxId, *, through: TxId | None = None) -> AsyncGenerator[Chunk]: ...

    def durable_edits(self, first: TxId) -> AsyncGenerator[Chunk]: ...


class CatchUpFailed(Exception):
    """The journal could not be read or applied up to where it must be."""


class Tailer:
    """Applies the journal to one namespace, either round by round or up to a given edit.

    Round by round it reads the open segment too, if so configured.  Up to a given edit, in a
    takeover, it reads finalized segments only: that is what the recovery before it has made of the
    journal (HDFS-16689: Hadoop took what single nodes had in memory for the journal's end).
    """

    def __init__(
        self,
        source: EditsSource,
        namespace: Namespace,
        *,
        period_seconds: float,
        on_damage: Callable[[str], None],
        tails_open_segment: bool = False,
    ) -> None:
        self._source = source
        self._namespace = namespace
        self._period_seconds = period_seconds
        self._on_damage = on_damage
        self._follow_edits = source.durable_edits if tails_open_segment else source.edits
        self._task: asyncio.Task[None] | None = None
        self.still = asyncio.Lock()
        """While it is held the namespace does not change."""
        self.journal_of_others = False
        """Whether we ended because the journal belongs to another file system."""
        self.trouble: str | None = "the journal has not been read yet"
        self._level_at = 0.0
        self._clock: Callable[[], float] | None = None
        self._seen = namespace.last_applied
        self._moved_at: float | None = None

    @property
    def silent_seconds(self) -> float:
        """For how long a round that reads or applies has not moved; 0 between two rounds.

        To wait until a checkpoint lets the namespace go is no silence: a slow disk is no fault.
        """
        if self._moved_at is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._moved_at

    @property
    def lag_seconds(self) -> float | None:
        """How long ago all there was had been applied, or a round began that did it; None before
        the first.
        """
        if self._clock is None:
            return None
        return max(0.0, self._clock() - self._level_at)

    @property
    def lag_transactions(self) -> int:
        return max(0, self._seen - self._namespace.last_applied)

    def note_caught_up(self, at: float) -> None:
        """Note that all that there was then, by the loop's clock, has been applied."""
        self._level_at, self._clock = at, asyncio.get_running_loop().time

    def start(self) -> None:
        """Follow the journal until ``stop``."""
        if self._task is None:
            self._task = supervise(self._follow(), "tail-edits", self._on_damage)

    async def stop(self) -> None:
        """Stop following; what was applied stays."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def catch_up(self, last_txid: TxId) -> None:
        """Apply everything up to ``last_txid``, where the recovered journal ends.

        Raises:
            CatchUpFailed: if the journal cannot be read, or ends elsewhere.
        """
        try:
            await self._apply_available(partial(self._source.edits, through=last_txid))
        except (JournalError, EditsError, ApplyError) as trouble:
            raise CatchUpFailed(f"edits up to {last_txid} cannot be read: {trouble}") from trouble
        applied = self._namespace.last_applied
        if applied != last_txid:
            raise CatchUpFailed(
                f"the journal was recovered up to transaction {last_txid}, but the namespace "
                f"stands at {applied} after reading it"
            )
        self.trouble = None

    async def _follow(self) -> None:
        while True:
            began = asyncio.get_running_loop().time()
            try:
                applied = await self._apply_available(self._follow_edits)
                if applied:
                    log.info("tailer.applied", edits=applied, up_to=self._namespace.last_applied)
                self._note_trouble(None)
                self.note_caught_up(began)
            except InvariantBroken as broken:
                self._on_damage(f"the journal contradicts itself: {broken}")
                return
            except (EditsError, ApplyError) as damage:
                # To go on would serve a namespace that is not the journal's.
                self._on_damage(f"an edit cannot be applied: {damage}")
                return
            except JournalError as trouble:
                if _belongs_to_others(trouble):
                    self.journal_of_others = True
                    self._on_damage(
                        f"{trouble}. Correct dfs.namenode.shared.edits.dir, or use the name "
                        "directory that belongs to this journal"
                    )
                    return
                TAIL_FAILURES.inc()
                self._note_trouble(str(trouble))
            await asyncio.sleep(self._period_seconds)

    def _note_trouble(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            if trouble is None:
                log.info("tailer.following", from_txid=self._namespace.last_applied + 1)
            else:
                log.warning("tailer.cannot_follow", why=trouble)
        self.trouble = trouble

    async def _apply_available(self, read: Callable[[TxId], AsyncGenerator[Chunk]]) -> int:
        async with self.still:
            before = self._namespace.last_applied
            try:
                self._moved()
                async with aclosing(read(TxId(before + 1))) as chunks:
                    async for chunk in chunks:
                        self._moved()
                        await self._apply(chunk)
            finally:
                self._moved_at = None
            return self._namespace.last_applied - before

    def _moved(self) -> None:
        self._moved_at = asyncio.get_running_loop().time()

    async def _apply(self, chunk: Chunk) -> None:
        self._seen = max(self._seen, chunk.last)
        for count, (txid, op) in enumerate(decode_all(chunk.records, chunk.layout_version), 1):
            self._namespace.apply(txid, op)
            if count % EDITS_PER_TURN == 0:
                self._moved()
                await asyncio.sleep(0)
        TAIL_APPLIED.inc(chunk.last - chunk.first + 1)
        LAST_APPLIED_TXID.set(self._namespace.last_applied)


def _belongs_to_others(trouble: JournalError) -> bool:
    """Return whether too many nodes are another journal's for a quorum of our own.

    Where all have answered, and no two of them have the same edits, none has failed.
    """
    if not isinstance(trouble, QuorumLost) or not trouble.failures:
        return False
    return all(isinstance(failure, WrongNamespace) for failure in trouble.failures.values())
