"""Makes, gives up and removes the lock, so that no other lock than the one meant is ever deleted.

ZooKeeper deletes a znode on the condition of its version, and a lock that was just made has the
same version as the one before it.  Therefore our controllers count their locks: the transaction
that makes a lock also writes a second znode, the count.  The count then has the transaction's
number, as the lock does, and its version stands still until the next lock is made.

See docs/reference/election.md#removing-anothers-lock.
"""

import asyncio
from collections.abc import Callable
from typing import Final, assert_never

from ha.elector.model import Removal
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.outcome import Done, Outcome, Refusal, Refused, Unknown, ZnodeFacts
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.transaction import CheckVersion, CreateEphemeral, Delete, SetData

PATIENCE_SECONDS: Final = 0.3
"""How long the looks before a removal may take."""


class LockKeeper:
    """The lock's znode and the count next to it, in whichever session."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._lock, self._count = settings.lock, settings.count

    def create(self, session: Session, data: bytes) -> asyncio.Future[Outcome[None]]:
        """Create the ephemeral lock, and count it; without a right to the count only the lock."""
        counted = session.transact(self._creation_ops(data))
        return asyncio.ensure_future(self._create_lock(session, data, counted))

    async def give_up(self, session: Session) -> Outcome[None]:
        """Delete the lock if it is still this session's; if that is unknown, its close will do.

        An operator may have deleted ours by hand, and another hold a lock by now of which we have
        not heard, or our server has not.
        """
        lock, count = await self._look(session)
        match lock:
            case Done(value=ZnodeFacts(ours=True) as facts):
                counted = count.value if isinstance(count, Done) else None
                if counted is None or counted.written_by != facts.written_by:
                    return await session.delete(self._lock)
                return await session.transact(self._exactly(facts, counted))
            case Done():
                return Refused(Refusal.NO_NODE, "the lock is not ours any more")
            case Refused() | Unknown():
                return lock
        assert_never(lock)

    async def remove(
        self, session: Session, made: int, still: Callable[[], bool] = lambda: True
    ) -> Removal:
        """Delete another's lock if it is the one that this ZooKeeper transaction has made.

        Not where ZooKeeper lets us wait, or we were stopped ourselves: what spoke against the owner
        would be old.  Nor if we may not ``still``, for instance after a pause seen in the meantime.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        lock, count = await self._look(session)
        if loop.time() - began > PATIENCE_SECONDS or not still():
            return Removal.TOO_LATE
        if not isinstance(lock, Done) or not isinstance(count, Done):
            return Removal.TOO_LATE
        if lock.value is None or lock.value.ours or lock.value.written_by != made:
            return Removal.NOT_THAT_LOCK
        if count.value is None or count.value.written_by != made:
            return Removal.UNCOUNTED
        removed = await session.transact(self._exactly(lock.value, count.value))
        match removed:
            case Done():
                return Removal.REMOVED
            case Refused(why=Refusal.NO_RIGHTS):
                return Removal.FORBIDDEN
            case Refused(why=Refusal.BAD_VERSION | Refusal.NO_NODE):
                return Removal.NOT_THAT_LOCK
            case Refused() | Unknown():
                return Removal.UNKNOWN
        assert_never(removed)

    async def _look(
        self, session: Session
    ) -> tuple[Outcome[ZnodeFacts | None], Outcome[ZnodeFacts | None]]:
        """Return the lock and the count.  The count is looked at first.

        The bad schedule for the other order: the next lock is made between the two looks.  The
        count then is that of the new one, and the lock that was seen would pass for one not
        counted.
        """
        seen_count, seen_lock = session.look(self._count), session.look(self._lock)
        count = await seen_count
        return await seen_lock, count

    async def _create_lock(
        self, session: Session, data: bytes, counted: asyncio.Future[Outcome[None]]
    ) -> Outcome[None]:
        outcome = await counted
        if isinstance(outcome, Refused) and outcome.why is Refusal.NO_NODE:
            count = await session.create(self._count)
            match count:
                case Done() | Refused(why=Refusal.NODE_EXISTS):
                    outcome = await session.transact(self._creation_ops(data))
                case Refused(why=Refusal.NO_RIGHTS):
                    outcome = count
                case Refused() | Unknown():
                    return count
        if isinstance(outcome, Refused) and outcome.why is Refusal.NO_RIGHTS:
            return await session.create(self._lock, data, ephemeral=True)
        return outcome

    def _exactly(self, lock: ZnodeFacts, count: ZnodeFacts) -> tuple[CheckVersion, Delete]:
        """Delete this lock, and none that a controller of ours makes from here on: each one changes
        the count's version."""
        return CheckVersion(self._count, count.version), Delete(self._lock, lock.version)

    def _creation_ops(self, data: bytes) -> tuple[CreateEphemeral, SetData]:
        return CreateEphemeral(self._lock, data), SetData(self._count, b"")
