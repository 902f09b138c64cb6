"""How a page looks to people who see colours otherwise, or who have no pointer; and what is cut.

Each function returns what is wrong, in words, so that a test can also ask it about a page with a
planted bug.
"""

import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PIL import Image

DEFICIENCIES: Final = ("protanopia", "deuteranopia", "tritanopia", "achromatopsia")
"""Chromium's names of what it can emulate, of those that are about colours."""
PIXELS_FOR_A_POINT: Final = 2
"""So that the strokes of a letter have pixels without a trace of the ground."""
LEAST_CONTRAST: Final = 4.5
"""What WCAG asks of a text of normal size."""
LEAST_PIXELS: Final = 20
"""A colour of fewer pixels is no stroke of a word."""

_MARKED: Final = ".state, .verdict, .notices li"
_STATES: Final = """marked => [...document.querySelectorAll(marked)].map(one => {
      const words = document.createRange();
      const shape = one.querySelector('.shape');
      words.selectNodeContents(one);
      if (shape) words.setStartAfter(shape);
      const {x, y, width, height} = words.getBoundingClientRect();
      const seen = one.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
      return {
        place: one.closest('[data-label]')?.dataset.label ?? one.parentElement.className,
        words: seen ? words.toString().replace(/\\s+/g, ' ').trim() : '',
        kind: one.className, colour: getComputedStyle(one).color,
        box: [x + scrollX, y + scrollY, width, height],
      };
    })"""
_FOCUSABLE: Final = (
    "'a[href], area[href], button, summary, input, select, textarea, iframe, [onclick],"
    " [contenteditable], [tabindex]:not(main)'"
)
_FOCUSED: Final = f"""() => {{
    const one = document.activeElement;
    const {{left, top, right, bottom, width, height}} = one.getBoundingClientRect();
    const {{outlineStyle, outlineWidth}} = getComputedStyle(one);
    return {{
      number: [...document.querySelectorAll({_FOCUSABLE})].indexOf(one),
      outlined: outlineStyle === 'auto' || outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
      onScreen: width > 0 && height > 0 && left >= 0 && top >= 0
        && right <= innerWidth + 1 && bottom <= innerHeight + 1,
    }};
  }}"""
_CUT: Final = """() => {
    const found = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    const told = node => node.textContent.trim().slice(0, 60);
    for (let node; (node = texts.nextNode());) {
      const one = node.parentElement;
      if (!node.textContent.trim()) continue;
      if (one.closest('.hidden, .skip, svg, noscript, [hidden]')) continue;
      if (matchMedia('(max-width:48rem)').matches && one.closest('thead')) continue;
      range.selectNodeContents(node);
      for (const {left, right} of range.getClientRects())
        if (left < 0 || right > innerWidth + 1) found.push(`beside the screen: ${told(node)}`);
    }
    for (const one of document.querySelectorAll('body, main, main *')) {
      if (one.closest('.hidden, svg, thead')) continue;
      if (getComputedStyle(one).overflowX !== 'visible' && one.scrollWidth > one.clientWidth + 1)
        found.push(`cut off: ${told(one)}`);
    }
    const wide = document.documentElement.scrollWidth;
    if (wide > innerWidth) found.push(`the page is ${wide} px wide`);
    return [...new Set(found)];
  }"""


_BELOW: Final = """() => {
    const answers = [...document.querySelectorAll('.answers > div')];
    const found = answers.length === 3 ? [] : ['there are no answers'];
    for (const one of [document.querySelector('h1'), ...answers]) {
      const box = one?.getBoundingClientRect();
      if (!box || box.top < 0 || box.bottom > innerHeight || box.height < 10)
        found.push(`not in sight: ${one?.textContent.trim().slice(0, 60)}`);
    }
    return found;
  }"""


@dataclass(frozen=True, slots=True)
class SeenState:
    """One state on a page: its words without the shape, and where they stand, in CSS pixels.

    ``place`` is the column or the list; ``kind`` has the classes of the element.
    """

    place: str
    words: str
    kind: str
    colour: str
    box: tuple[float, float, float, float]


async def states_on(page: Any) -> Sequence[SeenState]:  # noqa: ANN401 - playwright's page
    return [
        SeenState(one["place"], one["words"], one["kind"], one["colour"], tuple(one["box"]))
        for one in await page.evaluate(_STATES, _MARKED)
    ]


async def gathered(page: Any, states: set[str]) -> None:  # noqa: ANN401 - playwright's page
    """Add the HTML of the page's states to these, and leave nothing else on the page than these.

    One small picture then has the states of many pages.
    """
    html = "marked => [...document.querySelectorAll(marked)].map(one => one.outerHTML)"
    states.update(await page.evaluate(html, _MARKED))
    items = "".join(sorted(one for one in states if one.startswith("<li")))
    others = "".join(f"<p>{one}</p>" for one in sorted(states) if not one.startswith("<li"))
    await page.evaluate(
        "html => { document.querySelector('main').innerHTML = html; }",
        f"<ul class='notices'>{items}</ul>{others}",
    )


def told_by_colour_alone(states: Iterable[SeenState]) -> list[str]:
    """States without words, and words that stand in one place in several colours."""
    colours: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in states:
        colours[one.place, one.words].add(one.colour)
    return [
        f"{place}: {words!r} in {sorted(found)}"
        for (place, words), found in colours.items()
        if len(found) > 1 or not words
    ]


async def faint(page: Any, deficiency: str) -> list[str]:  # noqa: ANN401 - playwright's page
    """Return states whose words are hard to read for such eyes, by the pixels on the screen.

    The page's context needs a ``device_scale_factor`` of ``PIXELS_FOR_A_POINT``.  axe cannot find
    them: it reads style sheets, which are the same for all eyes.
    """
    states = await states_on(page)
    session = await page.context.new_cdp_session(page)
    await session.send("Emulation.setEmulatedVisionDeficiency", {"type": deficiency})
    picture = Image.open(io.BytesIO(await page.screenshot(full_page=True))).convert("RGB")
    await session.detach()
    if deficiency == "achromatopsia" and not _is_grey(picture):
        return ["the picture has colours: nothing was emulated"]
    return [
        f"{deficiency}: {one.words!r} has a contrast of {contrast:.1f}"
        for one in states
        if (contrast := _contrast_in(picture, one.box)) < LEAST_CONTRAST
    ]


def _is_grey(picture: Image.Image) -> bool:
    red, green, blue = picture.split()
    return bool(red.tobytes() == green.tobytes() == blue.tobytes())


def _contrast_in(picture: Image.Image, box: tuple[float, float, float, float]) -> float:
    """Return the highest contrast with the ground of any frequent enough colour in that box."""
    x, y, width, height = (round(one * PIXELS_FOR_A_POINT) for one in box)
    piece = picture.crop((x, y, x + width, y + height))
    counted = piece.getcolors(max(1, width * height)) or []
    pixels = [(count, colour) for count, colour in counted if isinstance(colour, tuple)]
    if not pixels:
        return 1.0
    ground = _luminance(max(pixels)[1])
    strokes = [_luminance(colour) for count, colour in pixels if count >= LEAST_PIXELS]
    return max((max(one, ground) + 0.05) / (min(one, ground) + 0.05) for one in (*strokes, ground))


def _luminance(colour: Sequence[float]) -> float:
    """WCAG's relative luminance."""
    parts = [one / 255 for one in colour]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(share * one for share, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


async def out_of_reach(page: Any) -> list[str]:  # noqa: ANN401 - playwright's page
    """Return what Tab does not reach, in the order of the page, outlined, on the screen."""
    names = await page.evaluate(
        f"[...document.querySelectorAll({_FOCUSABLE})].map(one => one.outerHTML.slice(0, 80))"
    )
    found, reached = [], []
    for _ in range(len(names) + 1):
        await page.keyboard.press("Tab")
        focused = await page.evaluate(_FOCUSED)
        number = int(focused["number"])
        if number < 0:  # the browser's own bar, or the page itself: everything was visited
            break
        reached.append(number)
        if not focused["outlined"]:
            found.append(f"no sign of the focus: {names[number]}")
        if not focused["onScreen"]:
            found.append(f"not on the screen: {names[number]}")
    if reached != sorted(reached):
        found.append(f"not in the order of the page: {reached}")
    missed = sorted(set(range(len(names))) - set(reached))
    return found + [f"not reached: {names[number]}" for number in missed]


async def below_first_screen(page: Any) -> list[str]:  # noqa: ANN401 - playwright's page
    """Return what of the verdict and its three answers is not there, or only seen by scrolling."""
    found: list[str] = await page.evaluate(_BELOW)
    return found


async def cut(page: Any) -> list[str]:  # noqa: ANN401 - playwright's page
    """Texts that reach beyond the screen's sides or the box that holds them."""
    found: list[str] = await page.evaluate(_CUT)
    return found
