"""One connection to each daemon for look after look: to make one costs more than to ask."""

from collections.abc import Awaitable, Callable, Hashable
from contextlib import AsyncExitStack
from typing import Any

from ha.cluster.connections import C, Opened, R
from ha.service.errors import ServiceUnreachable

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
                return await self._asked(server, *kept, question)
            except TimeoutError:
                raise
            except _GONE:
                pass  # a new connection shows whether it is there, and why not
        stack = AsyncExitStack()
        connection = await stack.enter_async_context(opened())
        return await self._asked(server, stack, connection, question)

    async def close(self) -> None:
        """Hang up on every daemon."""
        while self._idle:
            _, (stack, _) = self._idle.popitem()
            await stack.aclose()

    async def _asked(
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
