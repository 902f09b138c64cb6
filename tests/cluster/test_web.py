"""``nnha web`` next to a real cluster: a kill is on the screen at once, silence is no answer.

The bounds allow for a busy machine; ``./run soak deploy`` measures.
"""

import asyncio
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import open_cluster
from tests.ha.web.served_site import browser, until
from tests.ha.web.watched_cluster import asked, freeze_all, kill_seen, thaw_all, watch
from tests.needs import CHROMIUM

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300), CHROMIUM.mark]
SOON_SECONDS = 5.0


async def test_a_kill_is_on_the_screen_and_hanging_daemons_are_unknown(tmp_path: Path) -> None:
    with open_cluster(tmp_path, web=True) as cluster:
        await asyncio.to_thread(cluster.up)
        async with browser() as chromium:
            page = await watch(await chromium.new_context(), cluster)
            seen = await kill_seen(page, cluster)
            assert seen.down_seconds < SOON_SECONDS

            assert "was started" in await page.inner_text("#s-hour"), "no NameNode gave its hour"
            _, text = await asyncio.to_thread(asked, f"{cluster.layout.url('web')}/blocks")
            assert "There are none." in text, "the active was not asked"
            _, text = await asyncio.to_thread(asked, f"{cluster.layout.url('web')}/files/")
            assert "The active NameNode was asked as" in text, text

            freeze_all(cluster)
            try:
                await until(page, "document.querySelector('h1').textContent.includes('UNKNOWN')")
                await page.close()
                seconds, text = await asyncio.to_thread(asked, cluster.layout.url("web"))
            finally:
                thaw_all(cluster)
            assert "UNKNOWN: no NameNode says that it is active" in text
            assert "no answer in 1 s" in text
            assert seconds < SOON_SECONDS
