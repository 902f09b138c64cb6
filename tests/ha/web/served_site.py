"""A site on loopback that shows given looks, and a real Chromium to look at it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from ha.cluster.view import ClusterView
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.hosts import allowed_hosts
from ha.notices.model import HistoryEntry, time_text
from ha.web.poller import ClusterPoller
from ha.web.site import MOST_VIEWERS, Site
from tests.ha.web import other_eyes
from tests.ha.web.recorded import FOLDER, LACKING
from tests.ha.web.situations import SITUATIONS
from tests.needs import CHROMIUM_FLAGS, chromium

if TYPE_CHECKING:
    from playwright.async_api import Browser

HOST = "127.0.0.1"
SECONDS = 60.0
LIVE = "document.getElementById('age').textContent.startsWith('live')"
PAGES = (
    "/", "/datanodes", "/files/user/alice", "/blocks", "/history", "/failover/10", "/node/nn1",
    "/failover/99",
)  # fmt: skip
"""One of each kind, the one that says that there is no such thing among them."""
FIRST_SCREENS = ((1400, 900), (390, 844))
PHONE, NARROW, DESK = (320, 640), (640, 200), (1280, 800)
"""Widths and heights: a small phone's, a small window's and a desk's."""
Scheme = Literal["light", "dark"]
EVERY_SECONDS = 0.05
"""Between looks, so that no test waits for one."""


@dataclass
class Shown:
    """What the looks show; a test may change it."""

    view: ClusterView
    records: tuple[HistoryEntry, ...] = ()
    blocks: tuple[int, Mapping[str, Any]] = (503, {"error": "nothing is known"})
    """What the active says of blocks."""
    folder: tuple[int, Mapping[str, Any]] = (200, FOLDER)
    """What it says of a folder."""
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    """Pages of the active, and what they were asked."""
    looks: int = 0
    blocked: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def look(self) -> ClusterView:
        self.looks += 1
        return replace(
            self.view, taken_at=time_text(self.view.moment + timedelta(milliseconds=self.looks))
        )

    async def history(self) -> tuple[HistoryEntry, ...]:
        return self.records or self.view.notices.history

    async def ask(
        self, _: ClusterView, page: str, asked: Mapping[str, str]
    ) -> tuple[int, Mapping[str, Any]]:
        self.asked.append((page, asked))
        return self.blocks if page == "/fsck" else self.folder

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


@asynccontextmanager
async def served(
    shown: Shown, *, port: int = 0, most_viewers: int = MOST_VIEWERS
) -> AsyncIterator[ClusterPoller]:
    looker = ClusterPoller(shown.look, every_seconds=EVERY_SECONDS)
    hosts = allowed_hosts(HOST, "", ())
    site = Site(
        shown.view.nameservice, looker, shown.history, hosts,
        ask=shown.ask, most_viewers=most_viewers,
    )  # fmt: skip
    endpoint = Endpoint(status=dict, healthy=lambda: None, routes=site.routes, front=False)
    shown.port = await endpoint.start(HOST, port)
    try:
        yield looker
    finally:
        await looker.stop()
        await endpoint.stop()


@asynccontextmanager
async def browser() -> AsyncIterator["Browser"]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=chromium(), args=list(CHROMIUM_FLAGS)
        )
        try:
            yield running
        finally:
            await running.close()


async def until(page: Any, condition: str, *, seconds: float = SECONDS) -> None:  # noqa: ANN401 - playwright's page
    """Wait until a JavaScript expression is true; playwright's own way needs ``unsafe-eval``."""
    async with asyncio.timeout(seconds):
        while not await page.evaluate(condition):
            await asyncio.sleep(0.01)


async def each_state_holds(scheme: Scheme, names: Sequence[str]) -> None:
    """Check for violations, cuts on a phone, messages, and requests to any but the site itself."""
    said: list[str] = []
    asked: list[str] = []
    async with asyncio.timeout(2 * SECONDS), browser() as chromium:
        context = await chromium.new_context(color_scheme=scheme, bypass_csp=True)
        for name in names:
            shown = Shown(SITUATIONS[name])
            async with served(shown):
                page = await context.new_page()
                await resized(page, PHONE)
                page.on("console", lambda message: said.append(message.text))
                page.on("request", lambda request: asked.append(request.url))
                await page.goto(shown.url)
                assert await other_eyes.cut(page) == [], name
                await resized(page, DESK)
                assert await violations(page) == [], (name, scheme)
                await page.close()
    assert said == []
    assert all(url.startswith(f"http://{HOST}:") for url in asked)
    assert len(asked) >= 3 * len(names)


async def each_first_screen_answers(names: Sequence[str]) -> None:
    """Check that the verdict and its three answers are in sight without scrolling."""
    async with asyncio.timeout(2 * SECONDS), browser() as chromium:
        page = await (await chromium.new_context()).new_page()
        for name in names:
            shown = Shown(SITUATIONS[name])
            async with served(shown):
                for screen in FIRST_SCREENS:
                    await resized(page, screen)
                    await page.goto(shown.url)
                    found = await other_eyes.below_first_screen(page)
                    silent = ["there are no answers"] if name == "nobody-answers" else []
                    assert found == silent, (name, screen)
            await page.goto("about:blank")


async def each_page_holds(scheme: Scheme) -> None:
    """Check the pages other than the first for violations, and for cuts on a phone."""
    async with asyncio.timeout(2 * SECONDS), browser() as chromium:
        context = await chromium.new_context(color_scheme=scheme, bypass_csp=True)
        shown = Shown(SITUATIONS["healthy"], blocks=(200, LACKING))
        async with served(shown):
            for path in PAGES[1:]:
                page = await context.new_page()
                await resized(page, PHONE)
                await page.goto(shown.url + path)
                assert await other_eyes.cut(page) == [], path
                await resized(page, DESK)
                assert await violations(page) == [], (path, scheme)
                await page.close()


async def each_state_is_read_by_all_eyes(scheme: Scheme, names: Sequence[str]) -> set[str]:
    """States differ in words, which have contrast for all eyes; the kinds that were seen."""
    found: list[other_eyes.SeenState] = []
    drawn: set[str] = set()
    async with asyncio.timeout(2 * SECONDS), browser() as chromium:
        context = await chromium.new_context(
            color_scheme=scheme, device_scale_factor=other_eyes.PIXELS_FOR_A_POINT
        )
        page = await context.new_page()
        # The script says after seconds without news that the page is old, and greys it.
        await page.route("**/web.js*", lambda route: route.abort())
        for name in names:
            shown = Shown(SITUATIONS[name])
            async with served(shown):
                await resized(page, DESK)
                await page.goto(shown.url)
                found += await other_eyes.states_on(page)
                await other_eyes.gathered(page, drawn)
        await resized(page, NARROW)
        found_faint = [
            one for each in other_eyes.DEFICIENCIES for one in await other_eyes.faint(page, each)
        ]
        await page.evaluate("document.documentElement.classList.add('old')")
        found_faint += await other_eyes.faint(page, "achromatopsia")
        assert found_faint == [], found_faint
    assert other_eyes.told_by_colour_alone(found) == []
    return {one.kind.split()[-1] for one in found}


async def each_page_is_in_reach() -> None:
    """Everything is reached by the Tab key, in order, and one sees where one is."""
    async with asyncio.timeout(2 * SECONDS), browser() as chromium:
        context = await chromium.new_context()
        shown = Shown(SITUATIONS["healthy"])
        async with served(shown):
            for path, screen in (("/", DESK), *((path, PHONE) for path in PAGES)):
                page = await context.new_page()
                await resized(page, screen)
                await page.goto(shown.url + path)
                assert await other_eyes.out_of_reach(page) == [], (path, screen)
                await page.close()


async def resized(page: Any, width_and_height: tuple[int, int]) -> None:  # noqa: ANN401 - playwright's page
    width, height = width_and_height
    await page.set_viewport_size({"width": width, "height": height})


async def violations(page: Any) -> list[str]:  # noqa: ANN401 - playwright's page
    """Return axe's findings against WCAG 2.2 AA and its best practices, but for one rule of 2.2."""
    from axe_playwright_python.base import AXE_FILE_PATH

    await page.evaluate(AXE_FILE_PATH.read_text())
    found = await page.evaluate("axe.run({rules: {'target-size': {enabled: true}}})")
    return [
        f"{one['id']}: {node['html'][:120]}" for one in found["violations"] for node in one["nodes"]
    ]
