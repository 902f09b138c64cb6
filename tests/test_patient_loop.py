"""A limit is not met by a standstill of the machine, and is met where nothing comes."""

import asyncio
import time
from itertools import pairwise

import pytest

from tests.patient_loop import TURN_SECONDS

LIMIT_SECONDS = 0.6


async def answer_late(answers: "asyncio.Future[str]") -> None:
    """Answer after a few turns, in each of which the machine may stand still."""
    for _ in range(3):
        time.sleep(LIMIT_SECONDS + TURN_SECONDS)
        await asyncio.sleep(0)
    answers.set_result("here")


async def test_a_limit_waits_out_a_machine_that_stands_still() -> None:
    answers = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(LIMIT_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(answer_late(answers))
        assert await answers == "here"


async def test_a_limit_is_met_where_nothing_comes() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(LIMIT_SECONDS):
            await loop.create_future()
    assert loop.time() - began >= LIMIT_SECONDS - 0.01


async def test_timers_keep_their_order_and_the_times_between_them() -> None:
    loop, fired = asyncio.get_running_loop(), list[tuple[str, float]]()

    def fire(name: str) -> None:
        fired.append((name, loop.time()))

    for name, seconds in (("second", 0.4), ("first", 0.3), ("third", 0.5)):
        loop.call_later(seconds, fire, name)
    last = asyncio.create_task(asyncio.sleep(0.6))
    await asyncio.sleep(0)
    time.sleep(1.0)
    await last
    assert [name for name, _ in fired] == ["first", "second", "third"]
    assert all(later[1] - sooner[1] > 0.05 for sooner, later in pairwise(fired))
