"""Whose turn it is: the loop's users in order, threads in between, and nobody twice."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from journal.node.turn import Turn
from tests.journal.node.process import until

A_MOMENT_SECONDS = 0.05


@asynccontextmanager
async def a_turn() -> AsyncIterator[Turn]:
    with ThreadPoolExecutor(1) as thread:
        yield Turn(thread)


class Holder:
    """A thread that has the turn until it is told to give it back."""

    def __init__(self, turn: Turn) -> None:
        self.has_it, self.let_go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._hold, args=(turn,), daemon=True)
        self.thread.start()

    def _hold(self, turn: Turn) -> None:
        with turn.of_a_thread():
            self.has_it.set()
            self.let_go.wait()


async def test_who_only_tries_gets_it_when_nobody_has_it() -> None:
    async with a_turn() as turn:
        assert turn.try_now()
        assert not turn.try_now()
        turn.give_back()
        assert turn.try_now()
        turn.give_back()
        assert not turn.held_by_loop


async def test_a_thread_waits_while_the_loop_has_it() -> None:
    async with a_turn() as turn:
        assert turn.try_now()
        holder = Holder(turn)
        assert not holder.has_it.wait(A_MOMENT_SECONDS)
        turn.give_back()
        await until(holder.has_it.is_set, "the thread's turn")
        holder.let_go.set()


async def test_the_loop_goes_on_while_it_waits_for_a_thread() -> None:
    async with a_turn() as turn:
        holder = Holder(turn)
        await until(holder.has_it.is_set, "the thread's turn")
        assert not turn.try_now()
        coming = asyncio.create_task(turn.take())
        await until(lambda: turn.held_by_loop, "somebody who waits")
        assert not coming.done()
        holder.let_go.set()
        await coming
        turn.give_back()


async def test_the_loops_own_come_in_order_and_nobody_gets_in_between() -> None:
    async with a_turn() as turn:
        order: list[int] = []

        async def one(number: int) -> None:
            await turn.take()
            order.append(number)
            assert not turn.try_now()
            await asyncio.sleep(0)
            turn.give_back()

        assert turn.try_now()
        waiting = [asyncio.create_task(one(number)) for number in range(5)]
        await asyncio.sleep(0)
        turn.give_back()
        assert not turn.try_now(), "somebody has waited longer"
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2, 3, 4]
        assert turn.try_now()


@pytest.mark.parametrize("when", ["in the queue", "as its turn comes", "behind a thread"])
async def test_who_gives_up_keeps_nobody_from_it(when: str) -> None:
    async with a_turn() as turn:
        holder = None
        if when == "behind a thread":
            holder = Holder(turn)
            await until(holder.has_it.is_set, "the thread's turn")
        else:
            assert turn.try_now()
        gone = asyncio.create_task(turn.take())
        patient = asyncio.create_task(turn.take())
        await asyncio.sleep(0)
        if when == "as its turn comes":
            turn.give_back()
        gone.cancel()
        await asyncio.wait([gone])
        assert gone.cancelled()
        if when == "in the queue":
            turn.give_back()
        if holder is not None:
            holder.let_go.set()
        await patient
        turn.give_back()
        assert turn.try_now()
