"""One look for all who watch: when it is made, when sooner, and when not at all."""

import asyncio
from dataclasses import replace

from ha.cluster.view import ClusterView
from ha.web.poller import ClusterPoller
from tests.ha.web.situations import DOWN_NN1, HEALTHY

NEVER_SECONDS = 3600.0


class Looks:
    def __init__(self) -> None:
        self.count = 0
        self.view = HEALTHY
        self.fail = False
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self) -> ClusterView:
        self.count += 1
        await self.may_end.wait()
        if self.fail:
            raise RuntimeError("nobody foresaw this")
        return self.view


async def test_without_watchers_there_are_no_looks_but_those_asked_for() -> None:
    looks = Looks()
    looker = ClusterPoller(looks, every_seconds=0.0)
    assert looks.count == 0
    first, second = await asyncio.gather(looker.fresh(), looker.fresh())
    assert first is second
    assert looks.count == 1


async def test_a_change_that_is_told_brings_the_next_look_at_once() -> None:
    looks = Looks()
    looker = ClusterPoller(looks, every_seconds=NEVER_SECONDS)
    async with asyncio.timeout(60):
        with looker.watching():
            seen = await looker.newer_than(0)
            while looks.count < 7:  # the first active was a change, too: some looks come quickly
                seen = await looker.newer_than(seen.number)
            looks.view = replace(HEALTHY, namenodes=(DOWN_NN1, HEALTHY.namenodes[1]))
            looker.poll_soon()
            seen = await looker.newer_than(seen.number)
            assert seen.view.active is None
        await looker.stop()


async def test_a_look_that_fails_costs_one_look() -> None:
    looks = Looks()
    looker = ClusterPoller(looks, every_seconds=0.01)
    async with asyncio.timeout(60):
        with looker.watching():
            seen = await looker.newer_than(0)
            looks.fail = True
            failed = looks.count
            while looks.count < failed + 2:
                await asyncio.sleep(0.01)
            looks.fail = False
            assert (await looker.newer_than(seen.number)).number > seen.number
        await looker.stop()


async def test_the_looks_end_with_the_last_watcher() -> None:
    looks = Looks()
    looker = ClusterPoller(looks, every_seconds=0.0)
    async with asyncio.timeout(60):
        with looker.watching(), looker.watching():
            await looker.newer_than(3)
        assert looker.watchers == 0
        await looker.stop()
        count = looks.count
        for _ in range(50):
            await asyncio.sleep(0)
        assert looks.count == count


async def test_after_a_look_that_failed_it_rests_and_a_stop_ends_one_that_hangs() -> None:
    looks = Looks()
    looks.fail = True
    looker = ClusterPoller(looks, every_seconds=NEVER_SECONDS)
    with looker.watching():
        for _ in range(50):
            await asyncio.sleep(0)
        assert looks.count == 1
    looks.may_end.clear()
    asking = asyncio.create_task(looker.fresh())
    while looks.count < 2:
        await asyncio.sleep(0)
    await looker.stop()
    await asyncio.gather(asking, return_exceptions=True)
    assert asking.cancelled()
    assert len(asyncio.all_tasks()) == 1
