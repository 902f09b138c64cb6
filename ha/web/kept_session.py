"""One ZooKeeper session for look after look: to open and close one costs ZooKeeper two writes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from ha.cluster.connections import C, Opened, R
from ha.elector.zookeeper.client import OnState, Session
from ha.elector.zookeeper.outcome import SessionState
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected
from ha.service.errors import ServiceUnreachable


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
            connected(settings, deadline_seconds=deadline_seconds, open_session=self._make_session)
        )
        self._stack, self._session = stack, session
        return session

    def _make_session(
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


_GONE = (OSError, EOFError, ServiceUnreachable)


class KeptConnections:
    """Keeps a connection while its answers come; see ``Connections``.

    Looks follow one another, so that a connection that is in use carries no other question.
    """

    def __init__(self) -> None:
        self._idle: dict[Hashable, tuple[AsyncExitStack, Any]] = {}

    async def ask(
        self, server: Hashable, opened: Opened[C], question: Callable[[C], Awaitable[R]]
    ) -> R:
        """Return the answer; connect again to a server that has gone since the last one."""
        if (kept := self._idle.pop(server, None)) is not None:
            try:
                return await self._ask(server, *kept, question)
            except TimeoutError:
                raise
            except _GONE:
                pass  # a new connection shows whether it is there, and why not
        stack = AsyncExitStack()
        connection = await stack.enter_async_context(opened())
        return await self._ask(server, stack, connection, question)

    async def close(self) -> None:
        """Hang up on every daemon."""
        while self._idle:
            _, (stack, _) = self._idle.popitem()
            await stack.aclose()

    async def _ask(
        self,
        server: Hashable,
        stack: AsyncExitStack,
        connection: C,
        question: Callable[[C], Awaitable[R]],
    ) -> R:
        try:
            answer = await question(connection)
        except BaseException:
            await stack.aclose()
            raise
        self._idle[server] = stack, connection
        return answer
