"""How a look reaches the daemons: over a connection for each question, or over kept ones."""

from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, TypeVar

C = TypeVar("C")
R = TypeVar("R")

Opened = Callable[[], AbstractAsyncContextManager[C]]


class Connections(Protocol):
    """Asks a question over a connection."""

    async def ask(
        self, server: Hashable, opened: Opened[C], question: Callable[[C], Awaitable[R]]
    ) -> R:
        """Return the answer of ``server``, which ``opened`` connects to; raise as both do."""
        ...


class OneEach:
    """A new connection for each question, as a command has it that looks once."""

    async def ask(
        self, server: Hashable, opened: Opened[C], question: Callable[[C], Awaitable[R]]
    ) -> R:
        """Return the answer, after closing the connection."""
        async with opened() as connection:
            return await question(connection)


ONE_EACH: Final = OneEach()
