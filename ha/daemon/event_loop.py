"""Which event loop a process runs on: uvloop's where it is installed, or asyncio's; names by ours.

See docs/operations.md#the-event-loop.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from enum import Enum
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from ha.names import NAMES, Found

T = TypeVar("T")

LOOP_VARIABLE: Final = "NNHA_LOOP"
"""Says which one, in place of what is installed."""

MOST_PORT: Final = 65535


class EventLoop(Enum):
    """The loops, by the names that people give them."""

    ASYNCIO = "asyncio"
    UVLOOP = "uvloop"


class NoSuchLoop(Exception):
    """The environment asks for a loop that is not there."""


def uvloop_installed() -> bool:
    """Return whether uvloop is installed, without loading it."""
    return find_spec(EventLoop.UVLOOP.value) is not None


def chosen_loop(asked: str | None, *, installed: bool) -> EventLoop:
    """Return the loop that the environment asks for, else uvloop's if it is installed.

    Raises:
        NoSuchLoop: the one asked for is unknown or not installed.
    """
    if not asked:
        return EventLoop.UVLOOP if installed else EventLoop.ASYNCIO
    try:
        loop = EventLoop(asked)
    except ValueError:
        known = " or ".join(one.value for one in EventLoop)
        raise NoSuchLoop(f"{LOOP_VARIABLE} is {asked!r}; it must be {known}") from None
    if loop is EventLoop.UVLOOP and not installed:
        raise NoSuchLoop(f"{LOOP_VARIABLE} is {asked}, which is not installed: nnha[fast] has it")
    return loop


def loop_factory(loop: EventLoop) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of such loops for ``asyncio.Runner``."""
    return fast_loop if loop is EventLoop.UVLOOP else PlainLoop


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine as ``asyncio.run`` does, and end without waiting for a resolver."""
    with asyncio.Runner(loop_factory=PlainLoop) as runner:
        return runner.run(work)


async def _look_up(
    _loop: asyncio.AbstractEventLoop,
    host: str | None,
    port: int | None,
    *,
    family: int = 0,
    type: int = 0,  # noqa: A002 - asyncio's word
    proto: int = 0,
    flags: int = 0,
) -> list[Found]:
    return await NAMES.getaddrinfo(
        host, port, family=family, kind=type, protocol=proto, flags=flags
    )


class PlainLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, whose lookups of names no end of a loop waits for.

    The traceback of a connection that failed holds a frame of asyncio's that holds the failure, and
    with it 256 KiB for TLS, until cycles are sought, which a daemon does rarely: it is cut off.
    """

    getaddrinfo = _look_up  # type: ignore[assignment] # a port is a number here

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        **options: Any,  # noqa: ANN401 - they are handed on
    ) -> tuple[Any, Any]:
        """Connect as asyncio does, over a socket of ``_connect`` where there is a host."""
        options = await _with_socket(self, host, port, options)
        try:
            return await super().create_connection(protocol_factory, **options)
        except OSError as failure:
            failure.__traceback__ = None
            raise

    async def connect_accepted_socket(
        self,
        protocol_factory: Callable[[], Any],
        sock: socket.socket,
        **options: Any,  # noqa: ANN401 - they are handed on
    ) -> tuple[Any, Any]:
        """Serve a connection as asyncio does."""
        try:
            return await super().connect_accepted_socket(protocol_factory, sock, **options)
        except OSError as failure:
            failure.__traceback__ = None
            raise


def fast_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop's; its clock, its ports and its names are as good as asyncio's."""
    import uvloop  # 4 ms, for those who run it

    class FastLoop(uvloop.Loop):
        # Its own clock is read once in a turn, in milliseconds.  What takes long within a turn
        # would take no time, and a process that was stopped in the middle of one would not know
        # it.  Timers count from their start, so that they are none the wiser.
        time = staticmethod(time.monotonic)
        # It would look a name up on one of libuv's few threads, and end after them.
        getaddrinfo = _look_up  # type: ignore[assignment] # as above

        async def create_connection(
            self,
            protocol_factory: Callable[[], Any],
            host: str | None = None,
            port: int | None = None,
            **options: Any,  # noqa: ANN401 - they are handed on
        ) -> tuple[Any, Any]:
            options = await _with_socket(self, host, port, options)
            return await super().create_connection(protocol_factory, **options)

    return FastLoop()


async def _with_socket(
    loop: asyncio.AbstractEventLoop, host: str | None, port: int | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of a connection with a connected socket, if a host is meant."""
    if host is None:
        return options
    # The system cuts the number to 16 bits, and so reaches somebody else.
    if port is not None and not 0 <= port <= MOST_PORT:
        raise OverflowError(f"a port is at most {MOST_PORT}, and not {port}")
    if options.get("ssl"):
        options = {"server_hostname": host} | options
    return options | {"sock": await _connect(loop, host, port)}


async def _connect(loop: asyncio.AbstractEventLoop, host: str, port: int | None) -> socket.socket:
    """Connect to the first address of a host that accepts.

    Raises OSError; where all addresses fail in one way it is of that kind, so that a refusal of
    two addresses is as sure as one (asyncio raises an error of no kind for several).
    """
    failures: list[OSError] = []
    for family, kind, protocol, _, address in await NAMES.getaddrinfo(
        host, port, kind=socket.SOCK_STREAM
    ):
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)  # noqa: FBT003 - socket's own
            await loop.sock_connect(made, address)
        except OSError as failure:
            made.close()
            failures.append(failure)
        except BaseException:
            made.close()
            raise
        else:
            return made
    if len(failures) == 1:
        raise failures[0]
    if len({failure.errno for failure in failures}) == 1:
        texts = dict.fromkeys(str(one.strerror or one) for one in failures)
        raise OSError(failures[0].errno, "; ".join(texts))
    # With their numbers: ``ha.service.no_answer`` judges by them.
    raise OSError("; ".join(map(str, failures)))
