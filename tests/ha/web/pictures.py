"""Makes the pictures of docs/pictures: ``python -m tests.ha.web.pictures docs/pictures``."""

import asyncio
import io
import sys
from pathlib import Path

from PIL import Image
from playwright.async_api import FloatRect

from tests.ha.web.served_site import LIVE, Shown, browser, served, until
from tests.ha.web.situations import SITUATIONS

WIDTH, MOST_HEIGHT = 1100, 1150
COLOURS = 64


async def taken(folder: Path) -> None:
    async with browser() as running:
        for name, view in SITUATIONS.items():
            shown = Shown(view)
            scheme = "dark" if name == "failover-under-way" else "light"
            async with served(shown):
                context = await running.new_context(
                    viewport={"width": WIDTH, "height": 760}, color_scheme=scheme
                )
                page = await context.new_page()
                await page.goto(shown.url)
                await until(page, LIVE)
                height = await page.evaluate("document.documentElement.scrollHeight")
                clip = FloatRect(x=0, y=0, width=WIDTH, height=min(height, MOST_HEIGHT))
                small(await page.screenshot(full_page=True, clip=clip), folder / f"web-{name}.png")
                await context.close()


def small(png: bytes, path: Path) -> None:
    """Write it with so few colours that it is small."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    few = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    sys.stdout.write(f"{path} {path.stat().st_size}\n")


if __name__ == "__main__":
    asyncio.run(taken(Path(sys.argv[1])))
