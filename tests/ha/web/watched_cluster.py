"""A real cluster under a real browser's eyes: how soon what happens to it is on the screen."""

import asyncio
import time
import urllib.request
from dataclasses import dataclass
from typing import Any

from deploy.local.cluster.certificates import WEB
from deploy.local.cluster.cluster import ZOOKEEPER, Cluster
from tests.ha.web.served_site import LIVE, until

SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Seen:
    """Seconds from just before the kill until the screen shows it, and until it shows the next."""

    down_seconds: float
    successor_seconds: float


async def watch(context: Any, cluster: Cluster) -> Any:  # noqa: ANN401 - playwright's
    page = await context.new_page()
    await page.goto(cluster.layout.url("web"))
    await until(page, LIVE)
    await page.evaluate("window.kept = 1")
    return page


async def kill_seen(page: Any, cluster: Cluster) -> Seen:  # noqa: ANN401 - playwright's
    """Kill the active, and see it in the same page, without a reload."""
    (active,) = await asyncio.to_thread(cluster.active_namenodes)
    other = next(name for name in cluster.layout.namenodes if name != active)
    await until(page, f"{_state(active)}.endsWith('active')")
    began = time.monotonic()
    await asyncio.to_thread(cluster.kill, active)
    await until(page, f"{_state(active)}.endsWith('down')", seconds=SECONDS)
    down = time.monotonic() - began
    await until(page, f"{_state(other)}.endsWith('active')", seconds=SECONDS)
    successor = time.monotonic() - began
    assert await page.evaluate("window.kept") == 1, "the page was loaded anew"
    return Seen(down, successor)


def _state(namenode: str) -> str:
    row = (
        "[...document.querySelectorAll('tr')]"
        f".find(one => one.querySelector('th a')?.textContent == '{namenode}')"
    )
    return f"({row}?.querySelector('.state')?.textContent ?? '').trim()"


def freeze_all(cluster: Cluster) -> None:
    for name in (*cluster.layout.journalnodes, *cluster.layout.namenodes, ZOOKEEPER):
        cluster.process(name).freeze()
    for name in cluster.layout.namenodes:
        cluster.process(f"zkfc-{name}").freeze()


def thaw_all(cluster: Cluster) -> None:
    for name, process in cluster.supervisor.processes.items():
        if name != WEB:
            process.thaw()


def asked(url: str) -> tuple[float, str]:
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        text = answer.read().decode()
    return time.monotonic() - began, text
