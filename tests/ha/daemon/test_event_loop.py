"""Which loop a daemon runs on, and what each of them must do alike.

The tests that run on both of them are those that tests/conftest.py names.
"""

import asyncio
import os
import time

import pytest

from ha.daemon.event_loop import MOST_PORT, EventLoop, NoSuchLoop, chosen_loop

CHOICES = {
    "uvloop's where it is installed": (None, True, EventLoop.UVLOOP),
    "asyncio's where it is not": (None, False, EventLoop.ASYNCIO),
    "a variable without a value says nothing": ("", True, EventLoop.UVLOOP),
    "asyncio's on request": ("asyncio", True, EventLoop.ASYNCIO),
    "uvloop's on request": ("uvloop", True, EventLoop.UVLOOP),
}


@pytest.mark.parametrize(("asked", "installed", "chosen"), CHOICES.values(), ids=CHOICES)
def test_the_loop_is(asked: str | None, installed: bool, chosen: EventLoop) -> None:
    assert chosen_loop(asked, installed=installed) is chosen


@pytest.mark.parametrize(
    ("asked", "installed", "told"), [("trio", True, "asyncio or uvloop"), ("uvloop", False, "fast")]
)
def test_a_loop_that_is_not_there_is_refused(asked: str, installed: bool, told: str) -> None:
    with pytest.raises(NoSuchLoop, match=told):
        chosen_loop(asked, installed=installed)


async def test_the_clock_is_read_when_it_is_asked() -> None:
    """Read it not once per turn: a process may be stopped in the middle of one."""
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    while (now := time.monotonic()) < began + 0.02:
        assert now <= loop.time() <= time.monotonic()


async def test_a_port_that_cannot_be_is_not_another_one() -> None:
    async with await asyncio.start_server(
        lambda _reader, writer: writer.close(), "127.0.0.1"
    ) as one:
        port = one.sockets[0].getsockname()[1]
        with pytest.raises(OverflowError):
            await asyncio.open_connection("127.0.0.1", MOST_PORT + 1 + port)


async def test_the_end_of_a_process_is_seen_by_its_descriptor() -> None:
    """Wait for a process as a NameNode does; add_reader takes more than sockets."""
    loop = asyncio.get_running_loop()
    process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
    descriptor, ended = os.pidfd_open(process.pid), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        process.kill()
        await asyncio.wait_for(ended.wait(), 30)
        assert await process.wait() == -9
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
