"""Servers that tests make up, and newcomers to servers that stop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from ha.daemon.listening import stop_listening

HOST = "127.0.0.1"
TURNS_OF_AN_ACCEPT = 6
"""Of the loop, from a connection in the backlog to one that its protocol knows, and some more."""
_SECONDS = 30.0

Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[object]]


@asynccontextmanager
async def stand_in(speak: Speak, port: int = 0) -> AsyncIterator[int]:
    """Serve ``speak`` on each connection to a port; at the end cancel it and close all.

    ``asyncio.start_server`` leaves open what it has accepted, which the garbage collector then
    reports in whatever test it comes in.
    """
    writers: list[asyncio.StreamWriter] = []
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await speak(reader, writer)

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.add(asyncio.create_task(one(reader, writer)))

    server = await asyncio.start_server(connected, HOST, port)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        await stop_listening(server)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # an aborted transport closes in the next turn


async def say_nothing(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Accept and never answer, as the kernel of a stopped process."""
    await asyncio.Event().wait()


async def hung_up_on_at_the_stop(
    port: int, stop: Callable[[], Awaitable[None]], turns: int
) -> None:
    """Connect, stop the server after ``turns`` turns of the loop, and expect to be hung up on."""
    with socket.socket() as newcomer:
        newcomer.setblocking(False)
        loop = asyncio.get_running_loop()
        with suppress(BlockingIOError):
            newcomer.connect((HOST, port))
        for _ in range(turns):
            await asyncio.sleep(0)
        await stop()
        with suppress(ConnectionError):
            assert await asyncio.wait_for(loop.sock_recv(newcomer, 1), _SECONDS) == b""
