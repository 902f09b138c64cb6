"""The page in a real Chromium: live without a reload, whole without JavaScript, readable by all."""

import asyncio
from typing import Any

from tests.ha.web.served_site import (
    LIVE,
    Shown,
    browser,
    each_page_holds,
    each_state_holds,
    served,
    until,
    violations,
)
from tests.ha.web.situations import DOWN_NN1, HEALTHY, SITUATIONS
from tests.needs import CHROMIUM

pytestmark = CHROMIUM.mark
SECONDS = 60.0


async def opened(context: Any, shown: Shown, path: str = "/") -> Any:  # noqa: ANN401 - playwright's
    page = await context.new_page()
    await page.goto(shown.url + path)
    return page


IN_LIGHT = ("healthy", "nobody-active")
IN_DARK = ("failover-under-way", "learner")
"""``./run soak deploy`` looks at all of them in both."""


async def test_bad_states_are_accessible_fit_a_phone_and_say_nothing_on_the_console() -> None:
    await each_state_holds("light", IN_LIGHT)
    await each_state_holds("dark", IN_DARK)


async def test_the_other_pages_are_accessible_too() -> None:
    await each_page_holds("dark")


async def test_axe_finds_what_is_planted() -> None:
    async with asyncio.timeout(SECONDS), browser() as chromium:
        context = await chromium.new_context(bypass_csp=True)
        page = await context.new_page()
        await page.set_content("<p style='color:#999;background:#fff'>faint</p><img src='x'>")
        found = " ".join(await violations(page))
        assert "color-contrast" in found
        assert "image-alt" in found


async def test_a_change_is_on_the_screen_without_a_reload_and_keeps_the_focus() -> None:
    shown = Shown(HEALTHY)
    async with asyncio.timeout(SECONDS), browser() as chromium, served(shown):
        context = await chromium.new_context()
        page = await opened(context, shown)
        await until(page, LIVE)
        await page.evaluate("window.kept = 1")
        await page.focus("#node-2")
        shown.view = SITUATIONS["nobody-active"]
        await until(page, "document.querySelector('h1').textContent.includes('NOT SERVING')")
        assert await page.evaluate("window.kept") == 1
        assert await page.evaluate("document.activeElement.id") == "node-2"


async def test_a_server_that_is_gone_is_said_and_a_new_one_is_found() -> None:
    shown = Shown(HEALTHY)
    async with asyncio.timeout(SECONDS), browser() as chromium:
        context = await chromium.new_context()
        async with served(shown):
            page = await opened(context, shown)
            await until(page, LIVE)
            loop = asyncio.get_running_loop()
            began = loop.time()
        await until(page, "!document.getElementById('stale').hidden")
        assert "what you see is old" in await page.text_content("#stale")
        said_after = loop.time() - began
        async with served(shown, port=shown.port):
            await until(page, "document.getElementById('stale').hidden")
        assert said_after < 15.0  # 4 s by the script's clock; a busy machine takes longer


async def test_without_javascript_the_page_is_whole_and_reloads_itself() -> None:
    shown = Shown(HEALTHY)
    async with asyncio.timeout(SECONDS), browser() as chromium, served(shown):
        context = await chromium.new_context(java_script_enabled=False)
        page = await opened(context, shown)
        text = await page.text_content("main")
        assert "SERVING, and a failover could follow" in text
        assert "31,402,118" in text
        assert "zk2.example:2181" in text
        assert await page.locator("meta[http-equiv=refresh]").get_attribute("content") == "5"


async def test_states_are_told_apart_by_text_alone() -> None:
    words = set()
    names = ("healthy", "learner", "nobody-active", "nobody-answers")
    async with asyncio.timeout(SECONDS), browser() as chromium:
        context = await chromium.new_context()
        for name in names:
            shown = Shown(SITUATIONS[name])
            async with served(shown):
                page = await opened(context, shown)
                found = await page.locator("main .state, h1").all_inner_texts()
                assert all(text.strip()[0] in "●○▲✖◆?" for text in found)
                assert all(len(text.split()) >= 2 for text in found)
                words.add(tuple(text.split(maxsplit=1)[1] for text in found))
                await page.close()
    assert len(words) == len(names)


async def test_everything_is_reached_by_keyboard() -> None:
    shown = Shown(HEALTHY)
    async with asyncio.timeout(SECONDS), browser() as chromium, served(shown):
        context = await chromium.new_context()
        page = await opened(context, shown)
        links = await page.evaluate("document.querySelectorAll('a[href]').length")
        reached = set()
        for _ in range(links + 2):
            await page.keyboard.press("Tab")
            reached.add(
                await page.evaluate(
                    "[...document.querySelectorAll('a[href]')].indexOf(document.activeElement)"
                )
            )
        assert set(range(links)) <= reached


async def test_the_page_is_small() -> None:
    shown = Shown(HEALTHY)
    async with asyncio.timeout(SECONDS), browser() as chromium, served(shown):
        context = await chromium.new_context()
        page = await context.new_page()
        sizes: list[int] = []

        async def weigh(response: Any) -> None:  # noqa: ANN401 - playwright's
            if not response.url.endswith("/events?page=%2F"):
                sizes.append(len(await response.body()))

        page.on("response", weigh)
        await page.goto(shown.url)
        await until(page, LIVE)
        assert len(sizes) == 3
        assert sum(sizes) <= 60_000
        assert DOWN_NN1.error
