"""One task owns one journal: effects durable, then state remembered, then the answer given."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, ParamSpec, TypeVar

import structlog

from journal.core.effects import AppendEdits, Effect, RememberCommitted, RestorePrevious
from journal.core.limits import require_short_lease
from journal.core.machine import step
from journal.core.replies import Reply
from journal.core.requests import (
    GetEditLogManifest,
    GetJournalState,
    Heartbeat,
    Journal,
    Request,
    Stamped,
)
from journal.core.state import JournalState, digest_unknown, learn_digest
from journal.errors import Fenced, JournalError, OutOfSync, StorageFailed
from journal.model import JournalId, TxId
from journal.node import metrics
from journal.node.decision_log import narrate
from journal.node.disk_wait import Patience
from journal.node.edits_cache import EditsCache, Retrieved
from journal.node.percentiles import RecentSyncs
from journal.node.recent_edits import RecentEdits
from journal.node.request_group import (
    Decided,
    Waiting,
    batch_bytes,
    compared_segment,
    decide,
    reopened_segment,
)
from journal.storage.disk import Disk

log = structlog.get_logger()
P = ParamSpec("P")
T = TypeVar("T")

MAX_WAITING: Final = 1024
"""Requests that may wait for one journal; writers keep at most a few under way."""
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024
"""Batches that may wait for one journal, together; a slow disk must not fill the memory."""
MAX_GROUP_BYTES: Final = 8 * 1024 * 1024
"""Batches that share one sync are at most this large together, or one batch."""
SLOW_SYNC_SECONDS: Final = 1.0


_CHEAP: Final = (AppendEdits, RememberCommitted)
"""Effects that share one sync."""


class JournalOwner:
    """Serves one journal.  Nobody else touches its state or its disk.

    Blocking calls run in one thread of the journal's own, so that a slow disk delays neither
    the event loop nor another journal.  A caller that gives up changes nothing: what it asked
    for is carried out whole or not at all.
    """

    def __init__(
        self,
        journal_id: JournalId,
        disk: Disk,
        state: JournalState,
        cache: EditsCache | None = None,
        patience: Patience | None = None,
        max_read_lease_seconds: float = 60.0,
    ) -> None:
        self.journal_id = journal_id
        self.recent = RecentEdits(journal_id, cache)
        self._disk = disk
        self._state = state
        self._max_lease_micros = int(max_read_lease_seconds * 1e6)
        self._waiting: deque[Waiting] = deque()
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._busy = False
        self._stopping = False
        self._failed_because: str | None = None
        self._writer_heard = asyncio.get_running_loop().time()
        self._late: _Late | None = None
        self._patience = patience if patience is not None else Patience()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"journal {journal_id}")
        self._counts = metrics.Counts(journal_id)
        self._task = asyncio.create_task(self._work(), name=f"journal {journal_id}")
        metrics.watch(journal_id, self)

    @property
    def state(self) -> JournalState:
        """What is durable here."""
        return self._state

    @property
    def recent_syncs(self) -> RecentSyncs:
        """How long the last ones took."""
        return self._counts.recent

    @property
    def failed_because(self) -> str | None:
        """Why the journal has stopped, or None."""
        return self._failed_because

    def writer_heard_seconds_ago(self) -> float:
        """How long ago a writer was last admitted here, or this process opened the journal.

        A process before ours heard nobody later than that.  Never more than the truth: the next
        writer lets that much of its predecessor's read lease pass as over.
        """
        return asyncio.get_running_loop().time() - self._writer_heard

    async def ask(self, request: Request) -> Reply:
        """Have a request decided and carried out, even if the caller gives up waiting.

        Raises:
            Rejected, InvariantBroken: the answer is no.
            StorageFailed: the journal has stopped, or a file that was asked about is damaged.
        """
        return await asyncio.shield(self.submit(request))

    def submit(self, request: Request) -> asyncio.Future[Reply]:
        """Put a request into the inbox; requests are served in the order of these calls.

        Raises:
            StorageFailed, OutOfSync, BadRequest: the journal has stopped; too many requests are
                waiting; its read lease is too long.
        """
        self._require_running()
        require_short_lease(request, self._max_lease_micros)
        size = batch_bytes(request)
        if len(self._waiting) >= MAX_WAITING or self._waiting_bytes + size > MAX_WAITING_BYTES:
            raise OutOfSync(
                f"{len(self._waiting)} requests, {self._waiting_bytes} bytes, are waiting already"
            )
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        # The caller may be gone when an error arrives; asyncio need not complain about that.
        answer.add_done_callback(_seen)
        waiting = Waiting(request, answer)
        if self._served_at_once(waiting):
            return answer
        self._waiting.append(waiting)
        self._waiting_bytes += size
        self._wake.set()
        return answer

    def read(self, request: GetJournalState | GetEditLogManifest) -> Reply:
        """Answer from what is durable, without waiting behind writers."""
        self._require_running()
        reply = step(self._state, request).reply
        if isinstance(reply, JournalError):
            raise reply
        return reply

    def journaled_edits(self, since: TxId, max_txns: int) -> Retrieved:
        """The newest edits from memory.

        Raises:
            CacheMiss: they are not in memory, or not any more.
            AheadOfNode: this node does not have them yet.
        """
        self._require_running()
        return self.recent.answer(self._state, since, max_txns)

    async def in_thread(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking work on this journal's thread."""
        self._require_running()
        return await self._blocking(lambda: work(*args, **kwargs))

    @property
    def disk(self) -> Disk:
        """For work that ``in_thread`` runs."""
        return self._disk

    def fail(self, why: str) -> None:
        """Stop this journal for good; every later call is refused with the reason."""
        if self._failed_because is None:
            self._failed_because = why
            log.error("journal.failed", journal=self.journal_id, because=why)

    async def stop(self) -> None:
        """Finish what is under way, refuse the rest, close the files."""
        self._stopping = True
        self._wake.set()
        await self._task
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disk.close)
        self._thread.shutdown()

    def _require_running(self) -> None:
        if self._failed_because is not None:
            raise StorageFailed(
                f"journal {self.journal_id} has stopped: {self._failed_because}. It serves nothing "
                "until the fault is mended and the node is restarted."
            )
        if self._stopping:
            raise StorageFailed(f"journal {self.journal_id} is being closed")

    async def _work(self) -> None:
        while self._late is not None or not self._stopping:
            late, self._late = self._late, None
            if late is None and not self._waiting:
                self._busy = False
                self._wake.clear()
                await self._wake.wait()
                continue
            self._busy = True
            group = self._next_group() if late is None else late.group
            try:
                await (self._serve(group) if late is None else self._finish(late))
            except Exception as failure:  # noqa: BLE001 - it is logged and ends the journal
                self._fail_with(failure, group)
            if self._failed_because is not None:
                break
        closing = StorageFailed(self._failed_because or f"journal {self.journal_id} is closed")
        _refuse(self._waiting, closing)
        self._waiting.clear()

    def _fail_with(self, failure: Exception, group: Sequence[Waiting]) -> None:
        """Memory and disk may differ now.  Only a reload can tell what is there."""
        self.fail(str(failure) or repr(failure))
        if not isinstance(failure, StorageFailed):
            log.error("journal.unexpected", journal=self.journal_id, exc_info=failure)
        _refuse(group, StorageFailed(f"{failure}"))

    def _served_at_once(self, waiting: Waiting) -> bool:
        """Serve a batch or a heartbeat on the spot: nothing is before it, and the disk is quick.

        False leaves it to the task; what was decided here is forgotten then.
        """
        if self._busy or self._waiting or not self._patience.worth_it:
            return False
        if not isinstance(waiting.request, Journal | Heartbeat):
            return False
        decided = decide(self._state, (waiting,))
        if not all(isinstance(effect, _CHEAP) for effect in decided.effects):
            return False
        self._hear(decided)
        if not decided.effects:
            self._remember(decided)
            return True
        began = time.perf_counter()
        under_way = self._patience.run(self._thread, partial(self._disk.run, decided.effects))
        late = _Late(decided, under_way, began)
        if under_way.done():
            self._conclude(late)
        else:
            self._busy, self._late = True, late
            self._wake.set()
        return True

    async def _finish(self, late: "_Late") -> None:
        await asyncio.wait([asyncio.wrap_future(late.under_way)])
        self._conclude(late)

    def _conclude(self, late: "_Late") -> None:
        failure = late.under_way.exception()
        if isinstance(failure, Exception):
            self._fail_with(failure, late.group)
            return
        late.under_way.result()
        self._count(late.decided.effects, time.perf_counter() - late.began)
        self._remember(late.decided)

    def _next_group(self) -> Sequence[Waiting]:
        """The next request, or all batches and heartbeats that stand at the head together.

        One sync makes a whole group durable, whichever streams its batches came from.
        """
        group = [self._waiting.popleft()]
        size = batch_bytes(group[0].request)
        while (
            self._waiting
            and isinstance(group[0].request, Journal | Heartbeat)
            and isinstance(self._waiting[0].request, Journal | Heartbeat)
            and size + batch_bytes(self._waiting[0].request) <= MAX_GROUP_BYTES
        ):
            size += batch_bytes(self._waiting[0].request)
            group.append(self._waiting.popleft())
        self._waiting_bytes -= size
        return group

    async def _serve(self, group: Sequence[Waiting]) -> None:
        # Only a request that stands alone is judged by contents.
        state = await self._with_digest(self._state, group[0].request)
        decided = decide(state, group)
        self._hear(decided)
        if decided.effects:
            await self._carry_out(decided.effects)
        if any(isinstance(effect, RestorePrevious) for effect in decided.effects):
            loaded = await self._blocking(self._disk.load)
            decided = replace(decided, state=replace(loaded, serial=decided.state.serial))
        self._remember(decided)

    def _remember(self, decided: Decided) -> None:
        """Everything decided is durable: keep it in mind, then answer."""
        asked = ((waiting.request, answer) for waiting, answer in decided.answers)
        self.recent.follow(self._state, decided.state, asked)
        self._state = decided.state
        for waiting, answer in decided.answers:
            narrate(self.journal_id, waiting.request, answer, decided.state)
            if waiting.answer.done():
                continue
            if isinstance(answer, JournalError):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)

    def _hear(self, decided: Decided) -> None:
        """Note that a writer spoke.  One that is fenced has no lease any more."""
        for waiting, answer in decided.answers:
            if isinstance(waiting.request, Stamped) and not isinstance(answer, Fenced):
                self._writer_heard = asyncio.get_running_loop().time()

    async def _with_digest(self, state: JournalState, request: Request) -> JournalState:
        """Rules that compare contents need the digest of what we hold."""
        look = self._disk.reread
        first = reopened_segment(state, request)
        if first is None:
            look, first = self._disk.digest, compared_segment(state, request)
            if first is None or not digest_unknown(state, first):
                return state
        segment = (
            state.open.as_segment()
            if state.open is not None and state.open.first == first
            else state.segments[first]
        )
        try:
            learned = await self._blocking(partial(look, segment))
        except StorageFailed as damage:
            if self._disk.failed_because is not None:
                raise
            return self._with_damage(state, first, str(damage))
        return learn_digest(state, learned)

    def _with_damage(self, state: JournalState, first: TxId, why: str) -> JournalState:
        metrics.CORRUPT.labels(self.journal_id).inc()
        log.error("segment.damaged", journal=self.journal_id, segment=first, because=why)
        return state.with_damage(first, why)

    async def _carry_out(self, effects: Sequence[Effect]) -> None:
        began = time.perf_counter()
        await self._blocking(lambda: self._disk.run(effects))
        took = time.perf_counter() - began
        self._patience.took(took)
        self._count(effects, took)

    def _count(self, effects: Sequence[Effect], took: float) -> None:
        appends = [effect for effect in effects if isinstance(effect, AppendEdits)]
        if not appends:
            return
        self._counts.synced(
            took,
            batches=len(appends),
            transactions=sum(append.count for append in appends),
            size=sum(len(append.records) for append in appends),
        )
        if took > SLOW_SYNC_SECONDS:
            log.warning("journal.slow_sync", journal=self.journal_id, seconds=round(took, 3))

    async def _blocking(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except StorageFailed:
            if self._disk.failed_because is not None:
                self.fail(self._disk.failed_because)
            raise


@dataclass(frozen=True, slots=True)
class _Late:
    """A sync that was started on the spot."""

    decided: Decided
    under_way: Future[None]
    began: float

    @property
    def group(self) -> Sequence[Waiting]:
        return [waiting for waiting, _ in self.decided.answers]


def _seen(done: asyncio.Future[Reply]) -> None:
    if not done.cancelled():
        done.exception()


def _refuse(group: Sequence[Waiting] | deque[Waiting], why: StorageFailed) -> None:
    for waiting in group:
        if not waiting.answer.done():
            waiting.answer.set_exception(why)
