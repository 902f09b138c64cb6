"""The page in a real Chromium: live without a reload, whole without JavaScript, readable by all."""

import asyncio
from dataclasses import replace
from typing import Any

from tests.ha.web import served_site
from tests.ha.web.hostile import HOSTILE_PAGES, hostile_view
from tests.ha.web.other_eyes import cut
from tests.ha.web.served_site import LIVE, Shown, browser, served, until
from tests.ha.web.situations import HEALTHY, SITUATIONS, namenode, zkfc
from tests.needs import CHROMIUM

pytestmark = CHROMIUM.mark
SECONDS = 60.0
SAID_WITHIN_MS = 5_000


async def opened(context: Any, shown: Shown, path: str = "/") -> Any:  # noqa: ANN401 - playwright's
    page = await context.new_page()
    await page.goto(shown.url + path)
    return page


IN_LIGHT = ("nobody-active",)
IN_DARK = ("failover-under-way",)
"""``./run soak deploy`` looks at all of them in both."""


async def test_bad_states_are_accessible_fit_a_phone_and_say_nothing_on_the_console() -> None:
    await served_site.each_state_holds("light", IN_LIGHT)
    await served_site.each_state_holds("dark", IN_DARK)


async def test_the_first_screen_answers_in_every_state() -> None:
    await served_site.each_first_screen_answers(tuple(SITUATIONS))


async def test_the_other_pages_are_accessible_too() -> None:
    await served_site.each_page_holds("dark")


async def test_axe_finds_what_is_planted() -> None:
    async with asyncio.timeout(SECONDS), browser() as chromium:
        context = await chromium.new_context(bypass_csp=True)
        page = await context.new_page()
        await page.set_content("<p style='color:#999;background:#fff'>faint</p><img src='x'>")
        found = " ".join(await served_site.violations(page))
        assert "color-contrast" in found
        assert "image-alt" in found


async def test_a_change_is_on_the_screen_without_a_reload_and_keeps_the_focus() -> None:
    shown = Shown(HEALTHY)
    async with asyncio.timeout(SECONDS), browser() as chromium, served(shown):
        page = await opened(await chromium.new_context(), shown)
        await until(page, LIVE)
        await page.evaluate("window.kept = 1")
        await page.focus("#node-2")
        shown.view = SITUATIONS["nobody-active"]
        await until(page, "document.querySelector('h1').textContent.includes('NOT SERVING')")
        assert await page.evaluate("window.kept") == 1
        assert await page.evaluate("document.activeElement.id") == "node-2"


async def test_a_server_that_is_gone_is_said_and_a_new_one_is_found() -> None:
    """Within 5 s by the page's own clock, which the test moves."""
    shown = Shown(HEALTHY)
    async with asyncio.timeout(SECONDS), browser() as chromium:
        page = await (await chromium.new_context()).new_page()
        await page.clock.install()
        async with served(shown):
            await page.goto(shown.url)
            await until(page, LIVE)
        await page.clock.run_for(SAID_WITHIN_MS)
        assert "what you see is old" in await page.inner_text("#stale")
        async with served(shown, port=shown.port):
            await until(page, "document.getElementById('stale').hidden")


async def test_without_javascript_the_page_is_whole_and_reloads_itself() -> None:
    shown = Shown(HEALTHY)
    async with asyncio.timeout(SECONDS), browser() as chromium, served(shown):
        with_it = await opened(await chromium.new_context(), shown)
        page = await opened(await chromium.new_context(java_script_enabled=False), shown)
        text = await page.inner_text("main")
        assert text == await with_it.inner_text("main")
        assert "SERVING, and a failover could follow" in text
        assert "31,402,118" in text
        assert "zk2.example:2181" in text
        shown.view = SITUATIONS["nobody-active"]
        while "NOT SERVING" not in await page.inner_text("h1"):
            await asyncio.sleep(0.05)


async def test_hostile_texts_do_no_harm_in_a_browser() -> None:
    shown = Shown(hostile_view())
    said: list[str] = []
    asked: list[str] = []
    async with asyncio.timeout(SECONDS), browser() as chromium, served(shown):
        page = await (await chromium.new_context()).new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        for path in HOSTILE_PAGES:
            for screen in (served_site.DESK, served_site.PHONE):
                await served_site.resized(page, screen)
                await page.goto(shown.url + path)
                assert "<script>alert(1)</script>\"'&" in await page.inner_text("body")
                assert await cut(page) == [], (path, screen)
        await page.close()  # before the site, whose end the browser would report
    assert said == []
    assert all(url.startswith((shown.url, "data:")) for url in asked)


async def test_the_page_is_small() -> None:
    """Weigh it with three NameNodes and five JournalNodes."""
    view = replace(
        HEALTHY,
        namenodes=(*HEALTHY.namenodes, namenode("nn3", "standby")),
        zkfcs=(*HEALTHY.zkfcs, zkfc("nn3", "standby")),
        journalnodes=(
            *HEALTHY.journalnodes,
            *(replace(HEALTHY.journalnodes[0], node=f"jn{one}.example:8485") for one in (4, 5)),
        ),
    )
    shown = Shown(view)
    async with asyncio.timeout(SECONDS), browser() as chromium, served(shown):
        context = await chromium.new_context()
        page = await context.new_page()
        sizes: list[int] = []

        async def weigh(response: Any) -> None:  # noqa: ANN401 - playwright's
            if "/events?" not in response.url:
                sizes.append(len(await response.body()))

        page.on("response", weigh)
        await page.goto(shown.url)
        await until(page, LIVE)
        assert len(sizes) == 3
        assert sum(sizes) <= 60_000
