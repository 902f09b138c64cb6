"""Writes a log line and a record in ZooKeeper for every failover, in the background.

A failover does not wait for its record.  A failed write is tried again while the controller runs,
and never ends the controller.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar

import structlog

from ha.elector.model import AttemptNumber
from ha.elector.zookeeper.breadcrumb import decode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import value_of
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected
from ha.notices import model
from ha.notices.store import append_history, read_history, read_members
from ha.record import dataclass, replace
from ha.zkfc.record.cause import cause_of, kind_of, newest_active, predecessor_of
from ha.zkfc.record.takeover_record import AttemptRecord
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.positions import Position
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings

log = structlog.get_logger()

MAX_WAITING: Final = 50
"""The number of records that wait for ZooKeeper; the oldest are dropped."""
CONNECT_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 5.0
POSITION_SECONDS: Final = 2.0
FIRST_RETRY_SECONDS: Final = 0.5
MAX_RETRY_SECONDS: Final = 30.0
NEWEST: Final = 10
"""After a write without an answer, our record is looked for among this number of records."""

T = TypeVar("T")
Append = Callable[[Session, ZooKeeperSettings, model.FailoverRecord], Awaitable[int]]
Count = Callable[[model.FailoverKind], None]
"""Called with the kind of each successful takeover."""
ActiveBy = Callable[[AttemptNumber], bool]
"""Returns whether this takeover, and no later one, made us active."""

_Trouble = (ZooKeeperRefused, ZooKeeperUnavailable, model.BadNotice, TimeoutError)


@dataclass(frozen=True, slots=True)
class _Election:
    """What ZooKeeper shows after a takeover; None for unknown values."""

    member: model.Member | None = None
    """The member of the former active's controller."""
    active_before: str | None = None
    """The NameNode that became active last by the history; empty: none ever did."""
    session: str | None = None
    """The session that owns our lock."""
    lock_czxid: int | None = None


class History:
    """Completes and writes the records of one controller's takeovers."""

    def __init__(
        self,
        settings: ZkfcSettings,
        *,
        append: Append = append_history,
        count: Count = lambda _kind: None,
        around: Surroundings = REAL_WORLD,
    ) -> None:
        self._settings = settings
        self.active_by: ActiveBy = lambda _attempt: True
        self._around = around
        self._append = append
        self._count = count
        self._waiting: asyncio.Queue[AttemptRecord] = asyncio.Queue(MAX_WAITING)
        self._failures_in_a_row = 0
        self._last_failure = ""

    def add(self, attempt: AttemptRecord) -> None:
        """Queue a record for writing, unless it only repeats a failure."""
        if self._is_repetition(attempt):
            return
        if self._waiting.full():
            lost = self._waiting.get_nowait()
            log.error("history.record.lost", attempt=lost.number, reason="too many are waiting")
        self._waiting.put_nowait(attempt)

    async def run(self) -> None:
        """Write the queued records until cancelled."""
        while True:
            attempt = await self._waiting.get()
            try:
                record = await self._complete(attempt)
                if attempt.succeeded:
                    self._count(record.kind)
                log.info("failover.recorded", attempt=attempt.number, **model.record_json(record))
                await self._persist(record)
            except Exception:
                # A bug in the history must cost this record only, never the controller.
                log.exception("history.record.crashed", attempt=attempt.number)

    def _is_repetition(self, attempt: AttemptRecord) -> bool:
        """Return whether a failure repeats the last one, except the 1st, 2nd, 4th, 8th... time.

        While a NameNode cannot be fenced, a takeover fails every few seconds, and its records would
        soon fill the bounded history.
        """
        if attempt.succeeded or attempt.text != self._last_failure:
            self._failures_in_a_row = 0
        self._last_failure = attempt.text
        self._failures_in_a_row += 1
        number = self._failures_in_a_row
        return number & (number - 1) != 0

    # -- facts from the NameNode and ZooKeeper -------------------------------------------------

    async def _complete(self, attempt: AttemptRecord) -> model.FailoverRecord:
        position, found = await asyncio.gather(self._position(attempt), self._election(attempt))
        own = self._settings.own.namenode
        attempt = replace(attempt, previous=predecessor_of(attempt, own, found.active_before))
        return model.FailoverRecord(
            at=datetime.fromisoformat(attempt.finished_at),
            namenode=own,
            cause=cause_of(attempt, own, found.member),
            actor=attempt.actor,
            kind=kind_of(attempt, own, found.active_before),
            result=model.FailoverResult.SUCCEEDED
            if attempt.succeeded
            else model.FailoverResult.FAILED,
            failure=attempt.text or None,
            phases=attempt.phases,
            epoch=position.epoch,
            last_txid=position.last_txid,
            previous=attempt.previous or None,
            fencing=attempt.fencing,
            session=found.session,
            lock_czxid=found.lock_czxid,
        )

    async def _position(self, attempt: AttemptRecord) -> Position:
        if not attempt.succeeded:
            return Position()
        try:
            http = self._settings.own.http
            return await self._around.position_of(http, deadline_seconds=POSITION_SECONDS)
        except (OSError, TimeoutError, EOFError, ValueError) as failure:
            log.info("history.position.unknown", reason=repr(failure))
            return Position()

    async def _election(self, attempt: AttemptRecord) -> "_Election":
        zookeeper = self._settings.zookeeper

        async def look(session: Session) -> _Election:
            members = await read_members(session, zookeeper)
            own, before = self._settings.own.namenode, None
            if attempt.succeeded or attempt.previous == own:
                before = newest_active(await read_history(session, zookeeper))
            found = members.get(predecessor_of(attempt, own, before))
            member = found if isinstance(found, model.Member) else None
            if not attempt.succeeded:
                return _Election(member, before)
            data, facts = value_of(await session.read(zookeeper.lock), "read the lock")
            # Bad schedule: the session expired, and we won a later lock before this read.
            ours = decode(data).namenode == own
            if not ours or not self.active_by(attempt.number):
                return _Election(member, before)
            owner = f"{facts.owner & (1 << 64) - 1:#x}"
            return _Election(member, before, owner, facts.written_by)

        try:
            return await self._run_in_session(look, deadline_seconds=LOOK_SECONDS)
        except (*_Trouble, BadBreadcrumb) as failure:
            log.info("history.election.unknown", reason=repr(failure))
            return _Election()

    # -- into ZooKeeper ------------------------------------------------------------------------

    async def _persist(self, record: model.FailoverRecord) -> None:
        pause = FIRST_RETRY_SECONDS
        zookeeper = self._settings.zookeeper
        tried = False

        async def write(session: Session) -> None:
            if tried:
                # An earlier write without an answer may have succeeded.
                newest = await read_history(session, zookeeper, NEWEST)
                if _is_written(record, newest):
                    return
            await self._append(session, zookeeper, record)

        while True:
            try:
                await self._run_in_session(write, deadline_seconds=WRITE_SECONDS)
            except _Trouble as failure:
                log.warning("history.write.failed", reason=str(failure), again_in_seconds=pause)
            else:
                return
            tried = True
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_RETRY_SECONDS)

    async def _run_in_session(
        self, work: Callable[[Session], Awaitable[T]], *, deadline_seconds: float
    ) -> T:
        async with (
            asyncio.timeout(deadline_seconds),
            connected(
                self._settings.zookeeper,
                deadline_seconds=CONNECT_SECONDS,
                open_session=self._around.session,
            ) as session,
        ):
            return await work(session)


def _is_written(record: model.FailoverRecord, entries: Sequence[model.HistoryEntry]) -> bool:
    """Return whether the history has the record; compared as bytes, since they are truncated."""
    ours = model.encode_record(record)
    return any(
        one.record is not None and model.encode_record(one.record) == ours for one in entries
    )
