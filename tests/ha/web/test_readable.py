"""The page for other eyes, other hands and other screens, in a real Chromium."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.ha.web import other_eyes, served_site
from tests.ha.web.situations import HEALTHY
from tests.needs import CHROMIUM

pytestmark = CHROMIUM.mark

EVERY_KIND = ("nobody-active", "learner", "loading", "nobody-answers")
"""All shapes and colours together; ``./run soak deploy`` looks at all situations in both."""


@asynccontextmanager
async def planted(html: str) -> AsyncIterator[Any]:
    """Show a page of that body, without a site."""
    async with asyncio.timeout(served_site.SECONDS), served_site.browser() as chromium:
        context = await chromium.new_context(
            bypass_csp=True, device_scale_factor=other_eyes.PIXELS_FOR_A_POINT
        )
        page = await context.new_page()
        await page.set_viewport_size(
            {"width": served_site.PHONE[0], "height": served_site.PHONE[1]}
        )
        await page.set_content(f"<html lang=en><title>planted</title><main>{html}</main></html>")
        yield page


async def test_states_are_told_apart_and_read_without_colours() -> None:
    kinds = await served_site.each_state_is_read_by_all_eyes("dark", EVERY_KIND)
    kinds |= await served_site.each_state_is_read_by_all_eyes("light", EVERY_KIND[:2])
    assert kinds >= {"good", "idle", "warning", "bad", "learner", "unknown"}


async def test_states_that_differ_in_colour_alone_are_found() -> None:
    state = "<b class='state' style='color:{}'><i class='shape'>{}</i>{}</b> "
    html = state.format("#00684a", "●", "nn1") + state.format("#b3261e", "✖", "nn1")
    html += state.format("#b3261e", "✖", "down") + state.format("#b3261e", "✖", "")
    html += state.format("#b3261e", "✖", "<span style='visibility:hidden'>hidden</span>")
    async with planted(html) as page:
        found = other_eyes.told_by_colour_alone(await other_eyes.states_on(page))
        assert len(found) == 2, found
        assert "'nn1'" in found[0]
        assert "''" in found[1]
        assert any("'hidden'" in one for one in await other_eyes.faint(page, "tritanopia"))


async def test_a_contrast_that_some_eyes_do_not_see_is_found() -> None:
    """Red on black is plain to most, and to axe."""
    html = "<h1 class='state' style='color:#f00;background:#000'>not responding</h1>"
    async with planted(html) as page:
        assert "color-contrast" not in " ".join(await served_site.violations(page))
        assert await other_eyes.faint(page, "tritanopia") == []
        assert "not responding" in " ".join(await other_eyes.faint(page, "protanopia"))


async def test_everything_is_reached_by_keyboard() -> None:
    await served_site.each_page_is_in_reach()


async def test_what_the_keyboard_does_not_reach_or_show_is_found() -> None:
    html = (
        "<style>.bare:focus{outline:0}.far{position:absolute;left:-99rem}</style>"
        "<a href='#1'>good</a> <a href='#2' tabindex='-1'>skipped</a> <a href='#3' class='bare'>"
        "bare</a> <button class='far'>far</button> <i onclick='f()'>by hand</i>"
        "<details><summary>more</summary>less</details> <a href='#4' tabindex='1'>too soon</a>"
    )
    async with planted(html) as page:
        found = await other_eyes.out_of_reach(page)
    told = "\n".join(found)
    assert len(found) == 5, told
    for wrong, which in {
        "no sign of the focus": "bare", "not on the screen": "far", "not in the order": "[",
        "not reached": "skipped",
    }.items():  # fmt: skip
        assert any(one.startswith(wrong) and which in one for one in found), told
    assert "by hand" in told


async def test_the_skip_link_leads_past_the_header() -> None:
    shown = served_site.Shown(HEALTHY)
    async with (
        asyncio.timeout(served_site.SECONDS),
        served_site.browser() as chromium,
        served_site.served(shown),
    ):
        page = await (await chromium.new_context()).new_page()
        await page.goto(shown.url)
        for key in ("Tab", "Enter", "Tab"):
            await page.keyboard.press(key)
        assert await page.evaluate("document.activeElement.closest('main') !== null")
        ids = await page.evaluate("[...document.querySelectorAll('.section a')].map(a => a.id)")
        assert "" not in ids, "the focus is lost when this link's section is replaced"


async def test_what_is_cut_on_a_phone_is_found() -> None:
    html = (
        "<p style='white-space:nowrap'>" + "far " * 100 + "</p>"
        "<p style='overflow:hidden;white-space:nowrap;width:5rem'>cut in the middle of a word</p>"
        "<p style='position:absolute;left:-3rem'>left of it all</p><p>whole</p>"
        "<h1>the verdict</h1><div class='answers'><div>one</div><div style='display:none'>hidden"
        "</div><div style='margin-top:40rem'>deep</div></div>"
    )
    async with planted(html) as page:
        assert await other_eyes.below_first_screen(page) == [
            "not in sight: hidden", "not in sight: deep",
        ]  # fmt: skip
        found = "\n".join(await other_eyes.cut(page))
    assert "beside the screen: far" in found
    assert "beside the screen: left of it all" in found
    assert "cut off: cut in the middle" in found
    assert "px wide" in found
    assert "whole" not in found
