"""The bytes that connections share: taken, waited for in order, given back."""

import asyncio

import pytest

from hadoop.wire.byte_budget import ByteBudget


async def test_what_is_there_is_taken_at_once_and_half_of_it_kept_for_those_in_need() -> None:
    budget = ByteBudget(10)
    assert budget.try_take(5)
    assert not budget.try_take(1)
    await budget.take(5)
    assert budget.held == 10
    budget.give(10)
    assert budget.held == 0


async def test_who_waits_is_served_in_order_and_nobody_overtakes() -> None:
    budget = ByteBudget(10)
    served: list[str] = []

    async def want(name: str, count: int) -> None:
        await budget.take(count)
        served.append(name)

    await budget.take(8)
    tasks = [asyncio.create_task(want(name, count)) for name, count in (("big", 9), ("small", 1))]
    await asyncio.sleep(0)
    assert not budget.try_take(1)
    budget.give(8)
    await asyncio.wait(tasks)
    assert served == ["big", "small"]
    assert budget.held == 10


async def test_who_stops_waiting_holds_nothing_and_nobody_up() -> None:
    budget = ByteBudget(10)
    await budget.take(8)
    first, second = (asyncio.create_task(budget.take(count)) for count in (9, 2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert budget.held == 10
    # Given and cancelled in the same turn.
    third = asyncio.create_task(budget.take(5))
    await asyncio.sleep(0)
    budget.give(10)
    third.cancel()
    await asyncio.wait([third])
    assert third.cancelled()
    assert budget.held == 0


async def test_who_is_cancelled_before_bytes_are_given_in_the_same_turn_takes_none() -> None:
    budget = ByteBudget(10)
    await budget.take(10)
    waiting = asyncio.create_task(budget.take(5))
    await asyncio.sleep(0)
    waiting.cancel()
    budget.give(10)
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert budget.held == 0


async def test_too_little_that_is_given_back_serves_nobody() -> None:
    budget = ByteBudget(10)
    await budget.take(10)
    waiting = asyncio.create_task(budget.take(5))
    await asyncio.sleep(0)
    budget.give(4)
    assert budget.held == 6
    budget.give(1)
    await waiting
    assert budget.held == 10


async def test_more_than_all_is_refused() -> None:
    with pytest.raises(ValueError, match="11 bytes are more than the 10"):
        await ByteBudget(10).take(11)
