"""A limit ends in time, and not because our own loop stood still."""

import asyncio
import threading
import time

import pytest

from ha.daemon.awake_timeout import AwakeTimeout

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
