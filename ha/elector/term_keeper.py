"""Writes and reads the term record next to the breadcrumb.

A failure does not stop an election; it makes the successor wait for the read lease.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

import structlog

from ha.elector.model import SessionNumber, Term
from ha.elector.term import TermRecord, decode_term, encode_term
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.lock_check import untrusted_znodes
from ha.elector.zookeeper.outcome import Done, Outcome, Refusal, Refused, ZnodeFacts
from ha.elector.zookeeper.settings import ZooKeeperSettings

log = structlog.get_logger()

_ANY_VERSION = -1


class TermKeeper:
    """Keeps the term records of our sessions; only the session that owns the lock writes."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._settings = settings
        self._settled: dict[SessionNumber, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def record_settled(self, number: SessionNumber, session: Session, content: bytes) -> None:
        """Record that our NameNode became active under the breadcrumb with this content."""
        task = asyncio.create_task(self._settle(number, session, content))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def record_ended(self, number: SessionNumber, session: Session, told: str) -> None:
        """Record the end of the active process; call it before the lock is released."""
        breadcrumb = self._settled.get(number)
        if breadcrumb is None:
            return
        record = encode_term(TermRecord(breadcrumb, Term.ENDED, told))
        request = session.write(self._settings.term, record, version=_ANY_VERSION)
        request.add_done_callback(partial(_log_record, Term.ENDED))

    async def read(self, session: Session) -> tuple[Outcome[tuple[bytes, ZnodeFacts]], Term]:
        """Read the breadcrumb and its term.

        Call it while the session holds the lock, whose ACL shows which identities are ours.
        """
        breadcrumb, record, doubted = await asyncio.gather(
            session.read(self._settings.breadcrumb),
            session.read(self._settings.term),
            self._find_untrusted(session),
        )
        if not isinstance(breadcrumb, Done):
            return breadcrumb, Term.UNKNOWN
        scope, crumb, term = self._settings.scope, self._settings.breadcrumb, self._settings.term
        if scope in doubted or crumb in doubted:
            log.warning("elector.breadcrumb.doubted", because=list(doubted.values()))
            return breadcrumb, Term.DOUBTED
        if term in doubted:
            log.warning("elector.term.doubted", because=doubted[term])
            return breadcrumb, Term.UNKNOWN
        data = record.value[0] if isinstance(record, Done) else None
        return breadcrumb, decode_term(breadcrumb.value[1].written_by, data)

    async def _find_untrusted(self, session: Session) -> Mapping[str, str]:
        settings = self._settings
        paths = (settings.scope, settings.breadcrumb, settings.term)
        try:
            return await untrusted_znodes(session, settings, *paths, own=settings.lock)
        except (ZooKeeperUnavailable, ZooKeeperRefused) as failure:
            return {settings.scope: str(failure)}  # untrusted if unknown

    async def _settle(self, number: SessionNumber, session: Session, content: bytes) -> None:
        found = await session.read(self._settings.breadcrumb)
        if not isinstance(found, Done) or found.value[0] != content:
            log.warning("elector.term.unrecorded", outcome=repr(found))
            return
        breadcrumb = found.value[1].written_by
        record = encode_term(TermRecord(breadcrumb, Term.SETTLED))
        written: Outcome[object] = await session.write(
            self._settings.term, record, version=_ANY_VERSION
        )
        if isinstance(written, Refused) and written.why is Refusal.NO_NODE:
            written = await session.create(self._settings.term, record)
        if isinstance(written, Done):
            self._settled[number] = breadcrumb
        else:
            log.warning("elector.term.unrecorded", outcome=repr(written))


def _log_record(term: Term, request: asyncio.Future[Outcome[int]]) -> None:
    log.info("elector.term", term=term.value, outcome=repr(request.result()))
