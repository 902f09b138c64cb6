"""Serves one journal: decides, makes the effects durable, adopts the state, then answers."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

import structlog

from ha.record import dataclass, replace
from journal.core import requests
from journal.core.effects import AppendEdits, Effect, RememberCommitted, RestorePrevious
from journal.core.limits import require_short_lease
from journal.core.machine import step
from journal.core.replies import Reply
from journal.core.state import JournalState
from journal.errors import Fenced, JournalError, StorageFailed
from journal.model import JournalId, TxId
from journal.node import metrics
from journal.node.owner.contents import with_contents
from journal.node.owner.decision_log import narrate
from journal.node.owner.disk_wait import Patience
from journal.node.owner.edits_cache import EditsCache, Retrieved
from journal.node.owner.inbox import Inbox, Waiting, refuse, tell
from journal.node.owner.recent_edits import RecentEdits
from journal.node.owner.request_group import Decided, decide
from journal.node.owner.turn import FairLock
from journal.storage.disk import Disk

log = structlog.get_logger()
P = ParamSpec("P")
T = TypeVar("T")

SLOW_SYNC_SECONDS: Final = 1.0

_CHEAP: Final = (AppendEdits, RememberCommitted)
"""Effects that share one sync."""


class JournalOwner:
    """Serves one journal; only this class changes the journal's state and disk.

    A task serves requests that the event loop receives, and the thread of a write lane or of a
    Java writer serves its batches, each under the lock ``turn``.  The task's disk calls run in the
    journal's own thread: a slow disk delays neither the loop nor another journal.  A request is
    carried out completely even if its caller is cancelled.
    """

    def __init__(
        self,
        journal_id: JournalId,
        disk: Disk,
        state: JournalState,
        cache: EditsCache | None = None,
        patience: Patience | None = None,
        max_read_lease_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Threads call ``clock``, too; an event loop may cache its own time in each iteration."""
        self.journal_id = journal_id
        self.recent = RecentEdits(journal_id, cache)
        self.disk = disk
        self.state = state
        self._max_lease_micros = int(max_read_lease_seconds * 1e6)
        self._inbox = Inbox()
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._busy = False
        self._stopping = False
        self.failed_because: str | None = None
        """The reason why the journal has stopped, or None."""
        self._clock = clock
        self._heard: tuple[float, requests.Stamp | None] = (clock(), None)
        self._late: _Late | None = None
        self._patience = patience if patience is not None else Patience()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"journal {journal_id}")
        self.turn = FairLock()
        """The lock of the state and the disk."""
        self._counts = metrics.WriteCounters(journal_id)
        self._task = asyncio.create_task(self._work(), name=f"journal {journal_id}")
        metrics.watch(journal_id, self)

    @property
    def waiting(self) -> int:
        """The number of requests in the inbox."""
        return len(self._inbox)

    @property
    def recent_syncs(self) -> Mapping[str, int]:
        """The latencies of the last syncs, for /jmx."""
        return self._counts.recent_syncs()

    def writer_heard_seconds_ago(self) -> float:
        """Return the time since a writer's last request that was not fenced, or since the start.

        It must not be too long: the next writer subtracts it from its predecessor's read lease.
        """
        return self._clock() - self._heard[0]

    @property
    def heard(self) -> requests.Stamp | None:
        """The stamp of that request; None if there was none since the start."""
        return self._heard[1]

    async def ask(self, request: requests.Request) -> Reply:
        """Submit a request and await its answer; it is carried out even if the caller is cancelled.

        Raises:
            Rejected, InvariantBroken: the request is refused.
            StorageFailed: the journal has stopped, or the segment in question is damaged.
        """
        return await asyncio.shield(self.submit(request))

    def submit(self, request: requests.Request) -> asyncio.Future[Reply]:
        """Put a request into the inbox and return its answer's future; the order is kept.

        Raises:
            StorageFailed, OutOfSync, BadRequest: the journal has stopped; the inbox is full; the
                request's read lease is too long.
        """
        self._require_running()
        require_short_lease(request, self._max_lease_micros)
        self._inbox.require_room(request)
        waiting = Waiting(request)
        if not self._served_at_once(waiting):
            self._inbox.put(waiting)
            self._wake.set()
        return waiting.answer

    def serve_here(self, request: requests.Journal | requests.Heartbeat) -> None:
        """Decide about a batch or a heartbeat and carry it out in the calling thread, and block.

        Raises:
            Rejected, InvariantBroken: the request is refused.
            StorageFailed: the journal has stopped, or stops because this request failed.
        """
        self.turn.take_in_thread()
        try:
            self._require_running()
            require_short_lease(request, self._max_lease_micros)
            try:
                decided = decide(self.state, (request,))
                self._hear(decided)
                if decided.effects:
                    began = time.perf_counter()
                    self.disk.run(decided.effects)
                    self._count(decided.effects, time.perf_counter() - began)
                self._remember(decided)
            except Exception as failure:
                self._fail_with(failure, ())
                # The task must refuse the requests in the inbox.
                self._loop.call_soon_threadsafe(self._wake.set)
                raise StorageFailed(f"{failure}") from failure
        finally:
            self.turn.give_back()
        ((_, answer),) = decided.answers
        if isinstance(answer, JournalError):
            raise answer

    def read(self, request: requests.GetJournalState | requests.GetEditLogManifest) -> Reply:
        """Answer from the durable state, without waiting for the requests in the inbox."""
        self._require_running()
        reply = step(self.state, request).reply
        if isinstance(reply, JournalError):
            raise reply
        return reply

    def journaled_edits(self, since: TxId, max_txns: int) -> Retrieved:
        """Return at most ``max_txns`` edits from ``since`` on, from memory.

        Raises:
            CacheMiss, NotAdmitted, AheadOfNode: see ``RecentEdits.answer``.
        """
        self._require_running()
        return self.recent.answer(self.state, since, max_txns)

    async def in_thread(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking work on this journal's thread, under the lock until the work has ended."""
        self._require_running()
        if not self.turn.try_now():
            await self.turn.take()
            try:
                self._require_running()
            except StorageFailed:
                self.turn.give_back()
                raise
        working = self._loop.run_in_executor(self._thread, partial(work, *args, **kwargs))
        working.add_done_callback(self._worked)
        return await asyncio.shield(working)

    def _worked(self, work: "asyncio.Future[T]") -> None:
        self.turn.give_back()
        if not work.cancelled() and isinstance(work.exception(), StorageFailed):
            self._fail_with_disk()

    def fail(self, why: str) -> None:
        """Stop this journal until the node is restarted; later calls are refused with ``why``."""
        if self.failed_because is None:
            self.failed_because = why
            log.error("journal.failed", journal=self.journal_id, because=why)

    async def stop(self) -> None:
        """Finish the current request, refuse those in the inbox, and close the files."""
        self._stopping = True
        self._wake.set()
        await self._task
        await self.turn.take()
        try:
            await self._loop.run_in_executor(self._thread, self.disk.close)
        except OSError as failure:  # acknowledged edits are synced; other journals must be closed
            log.warning("journal.not_closed", journal=self.journal_id, because=str(failure))
        finally:
            self.turn.give_back()
            self._counts.fold()
        self._thread.shutdown()

    def _require_running(self) -> None:
        if self.failed_because is not None:
            raise StorageFailed(
                f"journal {self.journal_id} has stopped: {self.failed_because}. It serves nothing "
                "until the fault is mended and the node is restarted."
            )
        if self._stopping:
            raise StorageFailed(f"journal {self.journal_id} is being closed")

    async def _work(self) -> None:
        while self._late is not None or not self._ended:
            if self._late is not None:
                late, self._late = self._late, None
                await self._finish(late)
            elif self._inbox:
                self._busy = True
                await self.turn.take()
                try:
                    await self._serve_next()
                finally:
                    self.turn.give_back()
            else:
                self._busy = False
                self._wake.clear()
                await self._wake.wait()
        why = self.failed_because or f"journal {self.journal_id} is closed"
        self._inbox.refuse_all(StorageFailed(why))

    @property
    def _ended(self) -> bool:
        return self._stopping or self.failed_because is not None

    async def _serve_next(self) -> None:
        if self.failed_because is not None:
            return  # another holder of the lock stopped the journal in the meantime
        group = self._inbox.next_group()
        try:
            await self._serve(group)
        except Exception as failure:  # noqa: BLE001 - it is logged and ends the journal
            self._fail_with(failure, group)

    def _fail_with(self, failure: Exception, group: Sequence[Waiting]) -> None:
        """Stop the journal: its state and its disk may differ now, until it is loaded again."""
        self.fail(str(failure) or repr(failure))
        if not isinstance(failure, StorageFailed):
            log.error("journal.unexpected", journal=self.journal_id, exc_info=failure)
        refuse(group, StorageFailed(f"{failure}"))

    def _served_at_once(self, waiting: Waiting) -> bool:
        """Serve a batch or a heartbeat without the task; return False if the task must serve it."""
        if self._busy or self._inbox or not self._patience.worth_it:
            return False
        if (
            not isinstance(waiting.request, requests.Journal | requests.Heartbeat)
            or not self.turn.try_now()
        ):
            return False
        late: _Late | None = None
        try:
            decided = decide(self.state, (waiting.request,))
            if not all(isinstance(effect, _CHEAP) for effect in decided.effects):
                return False
            self._hear(decided)
            if not decided.effects:
                self._remember(decided)
                tell((waiting,), decided.answers)
                return True
            began = time.perf_counter()
            run = partial(self.disk.run, decided.effects)
            late = _Late(waiting, decided, self._patience.run(self._thread, run), began)
            if late.under_way.done():
                self._conclude(late)
                late = None
            else:
                self._busy, self._late = True, late
                self._wake.set()
            return True
        finally:
            if late is None:
                self.turn.give_back()

    async def _finish(self, late: "_Late") -> None:
        try:
            await asyncio.wait([asyncio.wrap_future(late.under_way)])
            self._conclude(late)
        finally:
            self.turn.give_back()

    def _conclude(self, late: "_Late") -> None:
        try:
            late.under_way.result()
            self._count(late.decided.effects, time.perf_counter() - late.began)
            self._remember(late.decided)
        except Exception as failure:  # noqa: BLE001 - it is logged and ends the journal
            self._fail_with(failure, (late.waiting,))
            return
        tell((late.waiting,), late.decided.answers)

    async def _serve(self, group: Sequence[Waiting]) -> None:
        # Requests that depend on a segment's contents are always alone in their group.
        asked = group[0].request
        state = await with_contents(self.journal_id, self.state, asked, self.disk, self._blocking)
        decided = decide(state, [waiting.request for waiting in group])
        self._hear(decided)
        if decided.effects:
            await self._carry_out(decided.effects)
        if any(isinstance(effect, RestorePrevious) for effect in decided.effects):
            loaded = await self._blocking(self.disk.load)
            decided = replace(decided, state=replace(loaded, serial=decided.state.serial))
        self._remember(decided)
        tell(group, decided.answers)

    def _remember(self, decided: Decided) -> None:
        """Adopt the decided state, which must be durable; the callers may be answered then."""
        self.recent.follow(self.state, decided.state, decided.answers)
        self.state = decided.state
        for request, answer in decided.answers:
            narrate(self.journal_id, request, answer, decided.state)

    def _hear(self, decided: Decided) -> None:
        """Note the time and stamp of a writer's request; a fenced writer has no read lease."""
        for request, answer in decided.answers:
            if isinstance(request, requests.Stamped) and not isinstance(answer, Fenced):
                self._heard = (self._clock(), request.stamp)

    async def _carry_out(self, effects: Sequence[Effect]) -> None:
        began = time.perf_counter()
        await self._blocking(lambda: self.disk.run(effects))
        took = time.perf_counter() - began
        self._patience.took(took)
        self._count(effects, took)

    def _count(self, effects: Sequence[Effect], took: float) -> None:
        appends = [effect for effect in effects if isinstance(effect, AppendEdits)]
        if not appends:
            return
        self._counts.synced(took, appends)
        if took > SLOW_SYNC_SECONDS:
            log.warning("journal.slow_sync", journal=self.journal_id, seconds=round(took, 3))

    async def _blocking(self, work: Callable[[], T]) -> T:
        try:
            return await self._loop.run_in_executor(self._thread, work)
        except StorageFailed:
            self._fail_with_disk()
            raise

    def _fail_with_disk(self) -> None:
        if self.disk.failed_because is not None:
            self.fail(self.disk.failed_because)


@dataclass(frozen=True, slots=True)
class _Late:
    """A sync of ``_served_at_once`` that is not done yet; the lock is held until it is."""

    waiting: Waiting
    decided: Decided
    under_way: Future[None]
    began: float
