"""What nnha web counts: looks, who watches, and who was sent away."""

import asyncio
from http import HTTPStatus

import aiohttp
import pytest
from prometheus_client import REGISTRY

from ha.web.poller import ClusterPoller
from tests.ha.web.served_site import SECONDS, Shown, served
from tests.ha.web.situations import HEALTHY


def value(name: str, **labels: str) -> float:
    found = REGISTRY.get_sample_value(name, labels)
    assert found is not None, f"{name} is not shown"
    return found


def looks(result: str) -> float:
    return value("nnha_web_looks_total", result=result)


def refused(reason: str) -> float:
    return value("nnha_web_refused_total", reason=reason)


async def test_looks_are_counted_and_timed() -> None:
    shown = Shown(HEALTHY)
    before = looks("finished"), value("nnha_web_look_seconds_count")
    looker = ClusterPoller(shown.look)
    await looker.fresh()
    await looker.fresh()
    assert (looks("finished"), value("nnha_web_look_seconds_count")) == (
        before[0] + 1, before[1] + 1,
    )  # fmt: skip


async def test_a_look_that_fails_is_counted_as_failed() -> None:
    async def fail() -> None:
        raise RuntimeError("nobody foresaw this")

    before = looks("failed"), looks("finished")
    with pytest.raises(RuntimeError):
        await ClusterPoller(fail).fresh()  # type: ignore[arg-type]
    assert (looks("failed"), looks("finished")) == (before[0] + 1, before[1])


async def test_who_watches_and_who_is_sent_away_is_counted() -> None:
    shown = Shown(HEALTHY)
    full, name = refused("full"), refused("name")
    async with (
        asyncio.timeout(SECONDS),
        served(shown, most_viewers=1),
        aiohttp.ClientSession(shown.url) as session,
    ):
        assert value("nnha_web_viewers") == 0.0
        async with session.get("/events") as stream:
            await stream.content.readuntil(b"event: look\ndata: ")
            async with session.get("/metrics") as page:
                assert "\nnnha_web_viewers 1.0\n" in await page.text()
            for path in ("/events", "/api/v1/events"):
                async with session.get(path) as answer:
                    assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
            async with session.get("/", headers={"Host": "evil.example"}) as answer:
                assert answer.status == HTTPStatus.MISDIRECTED_REQUEST
            stream.close()
        while value("nnha_web_viewers") != 0.0:
            await asyncio.sleep(0.01)
    assert (refused("full"), refused("name")) == (full + 2, name + 1)
