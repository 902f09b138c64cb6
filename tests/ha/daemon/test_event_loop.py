"""Which loop a daemon runs on, and what each of them must do alike.

The tests that run on both of them are those that tests/conftest.py names.

A limit ends in time, and not because our own loop stood still.
"""

import asyncio
import os
import threading
import time

import pytest

from ha.daemon.awake_timeout import AwakeTimeout
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


SECONDS = 0.4


@pytest.mark.parametrize("awake_before_seconds", [0.0, 0.25, 0.35])
async def test_what_came_while_we_stood_still_counts(awake_before_seconds: float) -> None:
    """Wherever in the limit the standstill begins, in its last part, too."""
    loop = asyncio.get_running_loop()
    answer = loop.create_future()

    def stand_still() -> None:
        threading.Timer(SECONDS, loop.call_soon_threadsafe, (answer.set_result, "here")).start()
        time.sleep(3 * SECONDS)

    loop.call_later(awake_before_seconds, stand_still)
    async with AwakeTimeout(SECONDS):
        assert await answer == "here"


async def test_it_ends_where_nothing_comes() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(TimeoutError):
        async with AwakeTimeout(SECONDS):
            await loop.create_future()
    assert loop.time() - began >= SECONDS - 0.01


async def test_it_ends_though_we_stand_still_again_and_again() -> None:
    loop = asyncio.get_running_loop()
    ended = False

    def stand_still() -> None:
        if not ended:
            time.sleep(0.6 * SECONDS)
            loop.call_soon(stand_still)

    loop.call_soon(stand_still)
    with pytest.raises(TimeoutError):
        async with AwakeTimeout(SECONDS):
            await loop.create_future()
    ended = True


async def test_an_answer_in_time_and_an_error_go_through() -> None:
    async with AwakeTimeout(SECONDS):
        await asyncio.sleep(0)
    with pytest.raises(ValueError, match="of its own"):
        async with AwakeTimeout(SECONDS):
            raise ValueError("of its own")
