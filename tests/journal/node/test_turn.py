"""The turn of a journal: first come, first served, on the loop and in threads, and never twice."""

import asyncio
import random
import sys
import threading
from collections.abc import Iterator

import pytest

from journal.node.owner.turn import FairLock
from tests.journal.node.process import until

A_MOMENT_SECONDS = 0.05


class Holder:
    """A thread that has the turn until the test has it give it back."""

    def __init__(self, turn: FairLock) -> None:
        self.has_it, self.let_go = threading.Event(), threading.Event()
        self._turn = turn
        self.thread = threading.Thread(target=self._hold, daemon=True)
        self.thread.start()

    def _hold(self) -> None:
        self._turn.take_in_thread()
        self.has_it.set()
        self.let_go.wait()
        self._turn.give_back()


async def a_holder(turn: FairLock) -> Holder:
    holder = Holder(turn)
    await until(holder.has_it.is_set, "the thread's turn")
    return holder


async def one_who_waits(turn: FairLock) -> Holder:
    waiting = turn.waiting
    holder = Holder(turn)
    await until(lambda: turn.waiting == waiting + 1, "a thread that waits")
    return holder


async def test_who_only_tries_gets_it_when_nobody_has_it() -> None:
    turn = FairLock()
    assert turn.try_now()
    assert not turn.try_now()
    turn.give_back()
    assert not turn.taken
    assert turn.try_now()


async def test_a_thread_waits_while_the_loop_has_it() -> None:
    turn = FairLock()
    assert turn.try_now()
    holder = Holder(turn)
    assert not holder.has_it.wait(A_MOMENT_SECONDS)
    turn.give_back()
    await until(holder.has_it.is_set, "the thread's turn")
    holder.let_go.set()


async def test_who_gives_it_back_has_it_again_only_behind_a_thread_that_waits() -> None:
    turn = FairLock()
    assert turn.try_now()
    holder = await one_who_waits(turn)
    turn.give_back()
    assert not turn.try_now(), "the thread has waited longer"
    again = asyncio.create_task(turn.take())
    await until(holder.has_it.is_set, "the thread's turn")
    assert not again.done()
    holder.let_go.set()
    await again


async def test_users_of_the_loop_that_take_it_on_and_on_hold_no_thread_up() -> None:
    turn, over, turns = FairLock(), asyncio.Event(), 0

    async def on_and_on() -> None:
        nonlocal turns
        while not over.is_set():
            await turn.take()
            turns += 1
            await asyncio.sleep(0)
            turn.give_back()

    def once() -> int:
        turn.take_in_thread()
        seen = turns
        turn.give_back()
        return seen

    users = [asyncio.create_task(on_and_on()) for _ in range(3)]
    for _ in range(100):
        thread = asyncio.create_task(asyncio.to_thread(once))
        # One of the users has it, and the others wait.
        while turn.waiting < len(users) and not thread.done():
            await asyncio.sleep(0)
        before = turns
        assert await thread - before <= len(users)
    over.set()
    await asyncio.gather(*users)
    assert turns > len(users), "they had it, too"


async def test_the_loop_goes_on_while_it_waits_for_a_thread() -> None:
    turn = FairLock()
    holder = await a_holder(turn)
    assert not turn.try_now()
    coming = asyncio.create_task(turn.take())
    await until(lambda: turn.waiting == 1, "somebody who waits")
    assert not coming.done()
    holder.let_go.set()
    await coming
    turn.give_back()
    assert not turn.taken


async def test_all_come_in_the_order_in_which_they_asked() -> None:
    turn = FairLock()
    order: list[int] = []

    async def one(number: int) -> None:
        await turn.take()
        order.append(number)
        assert not turn.try_now()
        await asyncio.sleep(0)
        turn.give_back()

    def one_in_a_thread(number: int) -> None:
        turn.take_in_thread()
        order.append(number)
        turn.give_back()

    assert turn.try_now()
    asking: list[asyncio.Future[None]] = []
    for number in range(6):
        if number % 3 == 1:
            asking.append(asyncio.ensure_future(asyncio.to_thread(one_in_a_thread, number)))
        else:
            asking.append(asyncio.create_task(one(number)))
        await until(lambda: turn.waiting == len(asking), "one more who waits")
    turn.give_back()
    assert not turn.try_now(), "somebody has waited longer"
    await asyncio.gather(*asking)
    assert order == list(range(6))
    assert not turn.taken


@pytest.mark.parametrize("when", ["in the queue", "as its turn comes", "behind a thread"])
async def test_who_gives_up_keeps_nobody_from_it(when: str) -> None:
    turn = FairLock()
    holder = None
    if when == "behind a thread":
        holder = await a_holder(turn)
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
    assert not turn.taken


async def test_who_gives_up_as_a_thread_hands_it_on_keeps_nobody_from_it() -> None:
    turn = FairLock()
    holder = await a_holder(turn)
    gone = asyncio.create_task(turn.take())
    await asyncio.sleep(0)
    holder.let_go.set()
    holder.thread.join()
    assert turn.taken, "handed on, and the loop does not know it yet"
    gone.cancel()
    await asyncio.wait([gone])
    assert gone.cancelled()
    assert not turn.taken


@pytest.fixture
def switching_on_and_on() -> Iterator[None]:
    """Threads change places at almost every step."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("switching_on_and_on")
@pytest.mark.parametrize("seed", range(5))
async def test_there_is_one_holder_whatever_happens(seed: int) -> None:
    turn, inside, had = FairLock(), [0], [0]

    def alone() -> None:
        inside[0] += 1
        assert inside == [1]
        had[0] += 1
        inside[0] -= 1

    def thread() -> None:
        for _ in range(200):
            turn.take_in_thread()
            alone()
            turn.give_back()

    async def impatient(rng: random.Random) -> int:
        got = 0
        for _ in range(200):
            taking = asyncio.create_task(turn.take())
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            if rng.random() < 0.5:
                taking.cancel()
            try:
                await taking
            except asyncio.CancelledError:
                continue
            alone()
            turn.give_back()
            got += 1
        return got

    async with asyncio.timeout(30):
        threads = [asyncio.create_task(asyncio.to_thread(thread)) for _ in range(3)]
        tasks = [impatient(random.Random(f"{seed} {number}")) for number in range(4)]
        got = await asyncio.gather(*tasks)
        await asyncio.gather(*threads)
    assert had == [3 * 200 + sum(got)]
    assert not turn.taken
    assert not turn.waiting
