"""Creates, releases and removes the lock, and never deletes another lock than the one meant.

ZooKeeper can delete a znode only if it has a given version, and each new lock has the same version.
So the transaction that creates a lock also writes a second znode, the count.  The count then has
the lock's transaction number, and its version does not change until the next lock is created.

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
"""The limit for the reads before a removal."""


class LockKeeper:
    """Creates and deletes the lock and its count in a given session."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._lock, self._count = settings.lock, settings.count

    def create(self, session: Session, data: bytes) -> asyncio.Future[Outcome[None]]:
        """Create the ephemeral lock and write the count, or only the lock without that right."""
        counted = session.transact(self._creation_ops(data))
        return asyncio.ensure_future(self._create_lock(session, data, counted))

    async def release(self, session: Session) -> Outcome[None]:
        """Delete the lock if this session owns it.

        It may not: an operator deleted our lock by hand, another controller created one, and we or
        our server have not seen that yet.  If the owner is unknown, the session's close deletes it.
        """
        lock, count = await self._look(session)
        match lock:
            case Done(value=ZnodeFacts(ours=True) as facts):
                counted = count.value if isinstance(count, Done) else None
                if counted is None or counted.written_by != facts.written_by:
                    return await session.delete(self._lock)
                return await session.transact(self._deletion_of(facts, counted))
            case Done():
                return Refused(Refusal.NO_NODE, "the lock is not ours any more")
            case Refused() | Unknown():
                return lock
        assert_never(lock)

    async def remove(
        self, session: Session, made: int, still: Callable[[], bool] = lambda: True
    ) -> Removal:
        """Delete a peer's lock if it is the one that transaction ``made`` created.

        It is kept if the reads took too long, as the evidence against its owner is old then, or if
        ``still`` returns False, for instance because of a new pause.
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
        removed = await session.transact(self._deletion_of(lock.value, count.value))
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
        """Return the facts of the lock and of the count, which is read first.

        The bad schedule of the other order: the next lock is created between the two reads.  Then
        the count is that of the new lock, and the old lock seems to have none.
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

    def _deletion_of(self, lock: ZnodeFacts, count: ZnodeFacts) -> tuple[CheckVersion, Delete]:
        """Return the operations that delete exactly this lock: a newer one has a newer count."""
        return CheckVersion(self._count, count.version), Delete(self._lock, lock.version)

    def _creation_ops(self, data: bytes) -> tuple[CreateEphemeral, SetData]:
        return CreateEphemeral(self._lock, data), SetData(self._count, b"")
