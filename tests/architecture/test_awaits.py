"""The driver that cuts lives misses nothing that they leave: each kind of leak, planted."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from functools import partial

import pytest

from ha.conf.topology import HostPort
from tests import awaits
from tests.awaits import Cuts, Fault


class Leaks:
    """What lives leave behind when they are cancelled, and how it is ended after the test."""

    def __init__(self) -> None:
        self.amount = 0
        self.objects: list[HostPort] = []
        self.ends: list[Callable[[], object]] = []

    def task(self) -> None:
        self.ends.append(asyncio.create_task(asyncio.Event().wait()).cancel)

    def timer(self) -> None:
        self.ends.append(asyncio.get_running_loop().call_later(3600, self.task).cancel)

    def thread(self) -> None:
        ended = threading.Event()
        self.ends.append(ended.set)
        threading.Thread(target=ended.wait, name="left").start()

    def descriptor(self) -> None:
        ends = os.pipe()
        self.ends += [partial(os.close, one) for one in ends]

    def unit(self) -> None:
        self.amount += 1

    def keep(self) -> None:
        self.objects.append(HostPort("host", len(self.objects)))


@pytest.mark.parametrize(
    ("leak", "message"),
    [
        (Leaks.task, "left over from a cut at await 1: .*task Event.wait"),
        (Leaks.timer, "left over from a cut at await 1: .*timers"),
        (Leaks.thread, "left over from a cut at await 1: .*thread left"),
        (Leaks.descriptor, "left over from a cut at await 1: .*pipe:"),
        (Leaks.unit, "left over from a cut at await 1: .*units"),
        (Leaks.keep, "left of 6 lives: .*HostPort"),
    ],
)
async def test_what_a_cancelled_life_leaves_is_found(
    leak: Callable[[Leaks], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaits, "SETTLE_SECONDS", 0.5)
    leaks = Leaks()

    async def life() -> None:
        try:
            for _ in range(5):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            leak(leaks)
            raise

    try:
        with pytest.raises(AssertionError, match=message):
            await awaits.cut_at_each_await(life, _nothing, holdings=lambda: {"units": leaks.amount})
    finally:
        for end in leaks.ends:
            end()
        await asyncio.sleep(0)


async def test_an_error_of_another_type_than_was_named_is_found() -> None:
    async def life() -> None:
        try:
            await asyncio.sleep(0)
        except ConnectionResetError as failure:
            raise KeyError("a riddle") from failure

    cuts = Cuts(life, Fault.FAIL, typed=(ConnectionError,))
    with pytest.raises(AssertionError, match="at await 1 of 1: KeyError"):
        await awaits.cut_at_each_await(cuts, _nothing)


@pytest.mark.parametrize("taken", [OSError, Exception])
async def test_an_error_that_no_code_expects_and_that_is_taken_for_another_is_found(
    taken: type[Exception],
) -> None:
    async def life() -> None:
        with contextlib.suppress(taken):
            await asyncio.sleep(0)

    cuts = Cuts(life, Fault.BREAK)
    if taken is OSError:
        assert await awaits.cut_at_each_await(cuts, _nothing) == 1
        return
    with pytest.raises(AssertionError, match="at await 1 of 1 it came out as None"):
        await awaits.cut_at_each_await(cuts, _nothing)


async def test_each_await_of_the_tasks_that_a_life_begins_counts() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def life() -> None:
        await asyncio.create_task(work())
        await asyncio.sleep(0)

    assert await awaits.cut_at_each_await(life, _nothing) == 4


async def _nothing(_: int) -> None:
    return
