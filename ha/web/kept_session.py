"""One ZooKeeper session for look after look: to open and close one costs ZooKeeper two writes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from ha.elector.zookeeper.client import OnState, Session
from ha.elector.zookeeper.outcome import SessionState
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected


class KeptSession:
    """Opens a session when a look needs one, and again when the old one has lost its connection.

    ``changed`` is called when the lock was made or deleted since the last look.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._stack = AsyncExitStack()
        self._session: Session | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def opened(
        self, settings: ZooKeeperSettings, *, deadline_seconds: float
    ) -> AsyncIterator[Session]:
        """Yield the connected session; it stays open afterwards.  Raises as ``connected`` does."""
        async with self._opening:
            session = self._session or await self._open(settings, deadline_seconds)
        await session.look(settings.lock, watch=True)
        yield session

    async def close(self) -> None:
        """End the session, if there is one."""
        self._let_go()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _let_go(self) -> None:
        """Close it in the background: a server that is gone is waited for a second."""
        stack, self._stack = self._stack, AsyncExitStack()
        self._session = None
        task = asyncio.create_task(stack.aclose(), name="close a ZooKeeper session")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _open(self, settings: ZooKeeperSettings, deadline_seconds: float) -> Session:
        self._let_go()
        stack = AsyncExitStack()
        session = await stack.enter_async_context(
            connected(settings, deadline_seconds=deadline_seconds, open_session=self._made)
        )
        self._stack, self._session = stack, session
        return session

    def _made(
        self,
        settings: ZooKeeperSettings,
        on_state: OnState,
        on_change: Callable[[bool], None] = lambda _: None,
        *,
        ticket: SessionTicket | None = None,
    ) -> Session:
        def heard(state: SessionState, reason: str) -> None:
            if state is not SessionState.CONNECTED:
                self._session = None
            on_state(state, reason)

        return Session(settings, heard, lambda _: self._changed(), ticket=ticket)
