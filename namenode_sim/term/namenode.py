"""The owner of one NameNode's role: one inbox in, one step at a time, long work in other tasks.

The role core (``term.role``) decides; this task carries out what it asks for.  Everything else --
transition requests, the journal's refusal, the end of a takeover's step -- posts events.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final, assert_never

import structlog

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import RETRIABLE, STANDBY_EXCEPTION
from journal.errors import JournalError
from journal.model import Epoch, TxId
from namenode_sim.edits.ops import EndLogSegment, Op, StartLogSegment
from namenode_sim.metrics import READS_WITHOUT_LEASE, ROLE_CHANGES, enter_state
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.local_edits import NO_EDIT, uninitialized
from namenode_sim.supervised import supervise
from namenode_sim.term import role
from namenode_sim.term.edit_log import EditLog, LogFailed
from namenode_sim.term.gate import Gate
from namenode_sim.term.journal_access import JournalAccess, TermWriter
from namenode_sim.term.role import step
from namenode_sim.term.tailer import CatchUpFailed, Tailer

log = structlog.get_logger()

LEASE_PATIENCE: Final = 2
"""The durations of the read lease for which an answer waits for its renewal."""


class TransitionRefused(Exception):
    """The NameNode did not become what it was asked to become; the message says why."""


class NameNode:
    """The running parts of one NameNode, and the task that owns its role."""

    def __init__(
        self,
        *,
        name: str,
        namespace: Namespace,
        journal: JournalAccess,
        gate: Gate,
        tail_period_seconds: float,
        must_reach: TxId = NO_EDIT,
    ) -> None:
        """Put together a NameNode that is standby.

        ``must_reach``: the last edit next to its image, which a journal that ends earlier lacks.
        """
        self.name = name
        self._must_reach = must_reach
        self.namespace = namespace
        self.state = role.RoleState()
        self.edit_log: EditLog | None = None
        self.writer: TermWriter | None = None
        self.stopped_because: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._journal = journal
        self._role_listeners: list[Callable[[role.Role], None]] = [gate.role_changed]
        self._inbox: asyncio.Queue[role.Event] = asyncio.Queue()
        self._tickets = count(1)
        self._callers: dict[role.Ticket, asyncio.Future[None]] = {}
        self._takeover: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._owner: asyncio.Task[None] | None = None
        self._attempt_began = asyncio.get_running_loop().time()
        self._loaded_txid = namespace.last_applied
        self._unchanged = False
        self.tailer = Tailer(
            journal.reader,
            namespace,
            period_seconds=tail_period_seconds,
            tails_open_segment=journal.tails_open_segment,
            on_damage=self.end_because,
        )

    def start(self) -> None:
        """Begin as standby: follow the journal and listen for requests."""
        self._owner = supervise(self._run(), "role-owner", self._end_now)
        enter_state("standby")
        self.tailer.start()
        self._journal.start(lambda: self.state.role is role.Role.STANDBY)

    async def stop(self) -> None:
        """Stop every task.  An open segment is left for the next writer to recover."""
        for task in (self._owner, self._takeover, self._closing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self.tailer.stop()
        await self._drop_writer()
        await self._journal.close()

    async def become_active(self, *, predecessor_gone_until: float = 0.0) -> None:
        """Become active, or raise TransitionRefused.  Return once the first edit is durable.

        Not before the former active's read lease has run out, unless an epoch is won while
        ``predecessor_gone_until`` lies ahead on the loop's clock.
        """
        ticket, done = self._new_ticket()
        self._inbox.put_nowait(role.ActiveRequested(ticket, predecessor_gone_until))
        await done

    async def become_standby(self) -> None:
        """Become standby, or raise TransitionRefused.  Return once the segment is finalized."""
        ticket, done = self._new_ticket()
        self._inbox.put_nowait(role.StandbyRequested(ticket))
        await done

    def append(self, op: Op) -> TxId:
        """Buffer an edit of the active under a new number; see ``EditLog.append``.

        Raises:
            RemoteFault: StandbyException, when nothing can be logged here any more;
                RetriableException while the namespace is kept as it is.
        """
        if self.edit_log is None:
            raise RemoteFault(STANDBY_EXCEPTION, f"{self.name} is not active")
        if self._unchanged:
            raise RemoteFault(RETRIABLE, f"{self.name} saves its namespace")
        try:
            return self.edit_log.append(op)
        except LogFailed as failure:
            raise RemoteFault(STANDBY_EXCEPTION, f"{self.name}: {failure}") from failure

    async def durable(self, txid: TxId) -> None:
        """Wait until a quorum has ``txid``; on a standby everything applied is durable.

        When that can no longer be known this never returns, and its caller gives no answer: the
        connection ends with the process, and the client asks the next NameNode, whose retry cache
        knows what became of the edit.  Any answer of ours could be wrong.
        """
        done = asyncio.Event()
        self.when_durable(txid, done.set)
        await done.wait()

    def when_durable(self, txid: TxId, done: Callable[[], None]) -> None:
        """Call ``done`` where ``durable`` would return: perhaps at once, perhaps never."""
        if self.edit_log is None:
            done()
        else:
            self.edit_log.when_durable(txid, done, self._not_answered)

    def is_durable(self, txid: TxId) -> bool:
        """Return whether ``durable`` has nothing to wait for."""
        return self.edit_log is None or txid <= self.edit_log.committed_txid

    def _not_answered(self, why: str) -> None:
        log.warning("namenode.call_not_answered", why=why)

    def is_confirmed(self) -> bool:
        """Return whether ``confirmed`` has nothing to wait for but the edits."""
        return self.writer is not None and self.writer.read_lease.valid()

    async def confirmed(self, txid: TxId) -> None:
        """Wait until an answer that has seen edits up to ``txid`` may be given.

        Those edits must be durable, and no successor may have acknowledged others before.  The
        lease is looked at after the answer was computed: at that instant it was the truth.

        Raises:
            RemoteFault: StandbyException, when it is uncertain whether we are the active.
        """
        await self.durable(txid)
        if self.writer is not None:
            lease = self.writer.read_lease
            if await lease.wait_until_valid(LEASE_PATIENCE * lease.duration_seconds):
                return
        READS_WITHOUT_LEASE.inc()
        raise RemoteFault(STANDBY_EXCEPTION, f"{self.name} cannot tell whether it is the active")

    def roll_edits(self) -> TxId:
        """End the segment and begin the next, if the open one holds more than its mark.

        Gives the first transaction of the segment that is open then; 0 if none is.
        """
        edit_log = self.edit_log
        if self.state.role is not role.Role.ACTIVE or edit_log is None:
            return NO_EDIT
        if edit_log.edits_in_segment > 1 and not self._unchanged:
            end, mark = edit_log.roll()
            self.namespace.apply(end, EndLogSegment())
            self.namespace.apply(mark, StartLogSegment())
        return edit_log.segment_first

    @asynccontextmanager
    async def unchanged(self) -> AsyncGenerator[None]:
        """Keep the namespace as it is, and all of it durable, until the block ends.

        Edits are refused, the tailer and the end of a term wait.
        """
        async with self.tailer.still:
            self._unchanged = True
            try:
                await self.durable(self.namespace.last_applied)
                yield
            finally:
                self._unchanged = False

    def lacking(self) -> str | None:
        """Return what the journal has not given us although it exists; None if it has given all."""
        applied = self.namespace.last_applied
        return uninitialized(applied, self._must_reach) if applied < self._must_reach else None

    @property
    def epoch(self) -> Epoch | None:
        """The epoch that this NameNode writes under, if it does."""
        return self.state.epoch

    def _new_ticket(self) -> tuple[role.Ticket, asyncio.Future[None]]:
        ticket = role.Ticket(next(self._tickets))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._callers[ticket] = done
        return ticket, done

    def end_because(self, reason: str) -> None:
        """End the process: the journal refused us, memory is not what it says, or we are broken."""
        self._inbox.put_nowait(role.JournalRefused(reason))

    def listen_for_roles(self, listener: Callable[[role.Role], None]) -> None:
        """Call ``listener`` with each new role, before anything else happens in it."""
        self._role_listeners.append(listener)

    async def _run(self) -> None:
        while True:
            event = await self._inbox.get()
            result = step(self.state, event)
            log.info(
                "namenode.step",
                namenode=self.name,
                saw=type(event).__name__,
                before=self.state.role.value,
                after=result.state.role.value,
                actions=[type(action).__name__ for action in result.actions],
            )
            self._enter(result.state)
            for action in result.actions:
                await self._carry_out(action)

    def _enter(self, state: role.RoleState) -> None:
        before, self.state = self.state.role, state
        if state.role is before:
            return
        for listener in self._role_listeners:
            listener(state.role)
        name = role.state_name(state.role)
        enter_state(name, state.epoch or 0)
        ROLE_CHANGES.labels(name).inc()
        if state.role is role.Role.ACTIVE:
            self._log_phase("active")
        elif state.role is role.Role.STANDBY and before is role.Role.CLOSING:
            self._log_phase("standby")

    async def _carry_out(self, action: role.Action) -> None:
        match action:
            case role.RecoverJournal():
                self._attempt_began = asyncio.get_running_loop().time()
                self._log_phase("recovering")
                self._takeover = self._beside(self._recover(action))
            case role.CatchUp():
                self._log_phase("recovered")
                self._takeover = self._beside(self._catch_up(action))
            case role.OpenLog():
                self._log_phase("caught_up")
                self._takeover = self._beside(self._open_log(action))
            case role.AbandonTakeover():
                await self._abandon_takeover()
            case role.CloseLog():
                self.tailer.note_caught_up(asyncio.get_running_loop().time())
                self._closing = self._beside(self._close_log())
            case role.FollowJournal():
                self.tailer.start()
            case role.Grant():
                self._answer(action.ticket, None)
            case role.Refuse():
                self._answer(action.ticket, action.reason)
            case role.StopProcess():
                self._end_now(action.reason)
            case _:
                assert_never(action)

    def _beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return supervise(work, f"a step as {self.state.role.value}", self.end_because)

    def _end_now(self, reason: str) -> None:
        if not self.stopped_because.done():
            self.stopped_because.set_result(reason)

    def _answer(self, ticket: role.Ticket, refusal: str | None) -> None:
        done = self._callers.pop(ticket)
        if done.done():
            return
        if refusal is None:
            done.set_result(None)
        else:
            done.set_exception(TransitionRefused(refusal))

    async def _recover(self, action: role.RecoverJournal) -> None:
        attempt = action.attempt
        await self.tailer.stop()
        self.writer = self._journal.new_writer()
        self.writer.read_lease.on_superseded = self.end_because
        try:
            recovered = await self.writer.become_writer(
                predecessor_gone_until=action.predecessor_gone_until
            )
        except JournalError as failure:
            self._takeover_failed(attempt, f"the journal could not be recovered: {failure}")
            return
        last_txid = recovered.last_txid
        applied = self.namespace.last_applied
        if last_txid < self._must_reach:
            self._takeover_failed(attempt, uninitialized(last_txid, self._must_reach))
            return
        if last_txid == 0 and applied == self._loaded_txid:
            last_txid = applied  # a journal that begins behind a checkpoint
        if last_txid < applied:
            self._takeover_failed(
                attempt,
                f"the journal ends at transaction {last_txid}, but this namespace holds edits up "
                f"to {applied}: the journal has lost edits or belongs to another namespace",
            )
            return
        self._inbox.put_nowait(role.JournalRecovered(attempt, recovered.epoch, last_txid))

    async def _catch_up(self, action: role.CatchUp) -> None:
        try:
            await self.tailer.catch_up(action.last_txid)
        except CatchUpFailed as failure:
            self._takeover_failed(action.attempt, str(failure))
            return
        self._inbox.put_nowait(role.CaughtUp(action.attempt))

    async def _open_log(self, action: role.OpenLog) -> None:
        writer = self.writer
        assert writer is not None  # an attempt that drops it is cancelled before
        edit_log = EditLog(writer, on_failure=self.end_because, layout_version=self._journal.layout)
        try:
            mark = await edit_log.open(action.first_txid)
        except asyncio.CancelledError:
            await edit_log.abort()  # what becomes of its mark ends no process any more
            raise
        except (JournalError, LogFailed) as failure:
            self._takeover_failed(action.attempt, f"the edit log could not be opened: {failure}")
            return
        self.namespace.apply(mark, StartLogSegment())
        self.edit_log = edit_log
        self._inbox.put_nowait(role.LogOpened(action.attempt))

    def _takeover_failed(self, attempt: int, reason: str) -> None:
        log.warning("namenode.takeover_failed", namenode=self.name, attempt=attempt, why=reason)
        self._inbox.put_nowait(role.TakeoverFailed(attempt, reason))

    async def _abandon_takeover(self) -> None:
        if self._takeover is not None:
            self._takeover.cancel()
            await asyncio.gather(self._takeover, return_exceptions=True)
            self._takeover = None
        await self._drop_writer()

    async def _close_log(self) -> None:
        edit_log = self.edit_log
        if edit_log is None:
            self.end_because("the edit log is gone while it is being closed")
            return
        try:
            async with self.tailer.still:  # an image may be in the making, until it notices
                end = await edit_log.close()
                self.namespace.apply(end, EndLogSegment())
        except LogFailed as failure:
            self.end_because(str(failure))
            return
        await self._drop_writer()
        self._inbox.put_nowait(role.LogClosed())

    async def _drop_writer(self) -> None:
        edit_log, self.edit_log = self.edit_log, None
        if edit_log is not None:
            await edit_log.abort()
        writer, self.writer = self.writer, None
        if writer is not None:
            await writer.close()

    def _log_phase(self, phase: str) -> None:
        log.info(
            "failover.phase",
            phase=phase,
            namenode=self.name,
            attempt=self.state.attempt,
            epoch=self.state.epoch,
            seconds_in_attempt=round(asyncio.get_running_loop().time() - self._attempt_began, 4),
        )
