"""The hours of NameNodes are asked for rarely, never waited for long, and kept in silence."""

import asyncio
from collections.abc import Mapping

from ha.conf.topology import HostPort
from ha.web.hours import EVERY_SECONDS, Hours

NODES = {"nn1": HostPort("one", 1), "nn2": HostPort("two", 2)}
PAGE = {"samples": [{"age_seconds": 30, "role": "active"}], "started_seconds_ago": 100}


class Pages:
    """NameNodes that answer, fail or hang, by their host; and a clock that a test moves."""

    def __init__(self) -> None:
        self.said: dict[str, object] = {"one": PAGE, "two": ConnectionRefusedError()}
        self.asked: list[str] = []
        self.hanging = asyncio.Event()
        self.now = 1000.0

    def clock(self) -> float:
        return self.now

    async def fetch(self, address: HostPort, path: str) -> Mapping[str, object]:
        self.asked.append(f"{address.host}{path}")
        match self.said[address.host]:
            case "hangs":
                await self.hanging.wait()
                return PAGE
            case Exception() as failure:
                raise failure
            case dict() as page:
                return page
            case other:
                raise AssertionError(other)


async def test_a_first_page_has_the_hour_and_a_later_one_asks_rarely() -> None:
    pages = Pages()
    hours = Hours(NODES, pages.fetch, pages.clock)
    first = await hours.newest()
    assert {name: len(one.samples) for name, one in first.items()} == {"nn1": 1}
    assert pages.asked == ["one/last-hour", "two/last-hour"]
    pages.now += EVERY_SECONDS - 1
    assert await hours.newest() is first
    assert len(pages.asked) == 2


async def test_what_a_silent_namenode_said_last_grows_old() -> None:
    pages = Pages()
    hours = Hours(NODES, pages.fetch, pages.clock)
    await hours.newest()
    pages.said = {"one": ValueError("HTTP 404"), "two": PAGE}
    pages.now += 40
    await hours.newest()
    async with asyncio.timeout(10):
        while "nn2" not in (found := await hours.newest()):
            await asyncio.sleep(0)
    assert [one.samples[0].age_seconds for one in found.values()] == [70.0, 30.0]


async def test_what_was_known_when_somebody_looked_last_is_not_shown_as_now() -> None:
    pages = Pages()
    hours = Hours(NODES, pages.fetch, pages.clock)
    await hours.newest()
    pages.said = {"one": {"samples": []}, "two": PAGE}
    pages.now += 7200
    found = await hours.newest()
    assert {name: len(one.samples) for name, one in found.items()} == {"nn1": 0, "nn2": 1}
    pages.said = {"one": "hangs", "two": "hangs"}
    pages.now += 7200
    async with asyncio.timeout(5):
        assert await hours.newest() == {}


async def test_a_namenode_that_hangs_keeps_no_page_waiting_and_is_not_asked_twice() -> None:
    pages = Pages()
    pages.said = {"one": "hangs", "two": PAGE}
    hours = Hours(NODES, pages.fetch, pages.clock)
    async with asyncio.timeout(5):
        assert await hours.newest() == {}
        pages.now += EVERY_SECONDS + 1
        assert await hours.newest() == {}
    assert pages.asked == ["one/last-hour", "two/last-hour"]
    pages.hanging.set()
    async with asyncio.timeout(5):
        while len(await hours.newest()) < 2:
            await asyncio.sleep(0)
