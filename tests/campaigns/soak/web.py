"""The page of the cluster for ``./run soak deploy``: every state, what it costs, and how soon.

All recorded states and pages are held against axe in light and dark, looked at with eyes that see
colours otherwise, and walked through by keyboard.  A real cluster's active is
killed again and again under a browser's eyes; every daemon is stopped while the page is asked; and
ten viewers watch while the processes' CPU is counted.
"""

import asyncio
import json
import os
import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from deploy.local.cluster.certificates import WEB
from deploy.local.cluster.cluster import Cluster, open_cluster, zkfc_of
from deploy.local.cluster.places import fresh_directory
from tests.ha.web import served_site
from tests.ha.web.served_site import until
from tests.ha.web.situations import SITUATIONS
from tests.ha.web.watched_cluster import asked, freeze_all, kill_seen, thaw_all, watch

VIEWERS: Final = 10
PAINTS: Final = 7
"""Pages that are opened one after the other while the viewers watch."""
MOST_UNWATCHED_SECONDS: Final = 120.0
MOST: Final[Mapping[str, float]] = {
    "cluster_core_share": 0.02,
    "web_core_share": 0.03,
    "web_resident_megabytes": 75.0,
    "looks_unwatched": 0.0,
    "first_paint_seconds": 0.3,
    "kill_seen_longest_seconds": 1.0,
    "frozen_page_seconds": 2.0,
}
"""What each figure may be at most, on a machine that does nothing else."""
LOOK_AGAIN_SECONDS: Final = 2.0
"""After this time without a viewer the next page needs a look of its own."""


async def figures(rounds: int, seconds: float, *, states: bool) -> Mapping[str, object]:
    """Measure all of it; ``seconds``: how long ten viewers watch."""
    if states:
        await served_site.each_state_holds("light", tuple(SITUATIONS))
        await served_site.each_state_holds("dark", tuple(SITUATIONS))
        await served_site.each_page_holds("light")
        await served_site.each_page_holds("dark")
        await served_site.each_state_is_read_by_all_eyes("light", tuple(SITUATIONS))
        await served_site.each_state_is_read_by_all_eyes("dark", tuple(SITUATIONS))
        await served_site.each_page_is_in_reach()
    with open_cluster(fresh_directory("web"), web=True) as cluster:
        await asyncio.to_thread(cluster.up)
        async with served_site.browser() as chromium:
            costs = await _costs(chromium, cluster, seconds)
            kills = await _kills(await chromium.new_context(), cluster, rounds)
        frozen = await _frozen(cluster)
    return {**costs, **kills, **frozen}


def bars_not_held(found: Mapping[str, object]) -> list[str]:
    """Return them in words; a figure that is not there was not measured."""
    over = [
        f"{name} is {value}, more than {most}"
        for name, most in MOST.items()
        if isinstance(value := found.get(name, 0.0), int | float) and value > most
    ]
    silent = found.get("frozen_page_says") is False
    unheard = found.get("looks_of_each") == 0
    return [
        *over,
        *(["the page of a frozen cluster does not say that nothing is known"] * silent),
        *(["a viewer was told nothing"] * unheard),
    ]


async def _kills(context: Any, cluster: Cluster, rounds: int) -> Mapping[str, object]:  # noqa: ANN401 - playwright's
    page = await watch(context, cluster)
    downs, successors = [], []
    for _ in range(rounds):
        (active,) = await asyncio.to_thread(cluster.active_namenodes)
        seen = await kill_seen(page, cluster)
        downs.append(seen.down_seconds)
        successors.append(seen.successor_seconds)
        await asyncio.to_thread(cluster.start, active)
        await asyncio.to_thread(cluster.wait_for_ready_standby, active)
        await asyncio.to_thread(cluster.wait_for_candidate, active)
    await page.close()
    return {
        "kill_seen_seconds": _spread(downs),
        "kill_seen_longest_seconds": round(max(downs), 3),
        "successor_seen_seconds": _spread(successors),
    }


async def _frozen(cluster: Cluster) -> Mapping[str, object]:
    freeze_all(cluster)
    try:
        await asyncio.sleep(LOOK_AGAIN_SECONDS)  # what was seen before that is old now
        took, text = await asyncio.to_thread(asked, cluster.layout.url("web"))
    finally:
        thaw_all(cluster)
    return {"frozen_page_seconds": round(took, 3), "frozen_page_says": "NOTHING IS KNOWN" in text}


async def _costs(chromium: Any, cluster: Cluster, seconds: float) -> Mapping[str, object]:  # noqa: ANN401 - playwright's
    daemons = (*cluster.layout.journalnodes, *cluster.layout.namenodes)
    zkfcs = tuple(map(zkfc_of, cluster.layout.namenodes))
    parts = {name: cluster.process(name).pid for name in (*daemons, *zkfcs)}
    own = cluster.process(WEB).pid
    pids = [*parts.values(), own]
    before = await _looks(cluster)
    idle = await _core_shares(pids, min(seconds, MOST_UNWATCHED_SECONDS))
    unwatched = await _looks(cluster) - before
    async with _watching(cluster.layout.url("web")) as viewers:
        watched = await _core_shares(pids, seconds)
        memory = _resident_bytes(own)
        told = min(viewer.looks for viewer in viewers)
        paints = [await _first_paint(chromium, cluster) for _ in range(PAINTS)]
    later = await _core_shares(pids, min(seconds, MOST_UNWATCHED_SECONDS))
    idle = {pid: min(idle[pid], later[pid]) for pid in pids}  # at first they still warm up
    return {
        "viewers": VIEWERS,
        "looks_of_each": told,
        "cluster_core_share": round(sum(watched[pid] - idle[pid] for pid in parts.values()), 4),
        "web_core_share": round(watched[own], 4),
        "web_core_share_unwatched": round(idle[own], 4),
        "web_resident_megabytes": round(memory / 1e6, 1),
        "looks_unwatched": unwatched,
        "first_paint_seconds": round(statistics.median(paints), 3),
    }


_FIRST_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


async def _looks(cluster: Cluster) -> int:
    _, text = await asyncio.to_thread(asked, f"{cluster.layout.url('web')}/status")
    return int(json.loads(text)["looks"])


@dataclass(slots=True)
class Viewer:
    """Follows the page as a browser on another machine does, and draws nothing on this one."""

    looks: int = 0

    async def follow(self, url: str) -> None:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
            session.get(f"{url}/events", params={"page": "/"}) as stream,
        ):
            stream.raise_for_status()
            async for line in stream.content:
                self.looks += line.startswith(b"id:")


@asynccontextmanager
async def _watching(url: str) -> AsyncIterator[Sequence[Viewer]]:
    viewers = [Viewer() for _ in range(VIEWERS)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(viewer.follow(url)) for viewer in viewers]
        yield viewers
        for task in tasks:
            task.cancel()


async def _first_paint(chromium: Any, cluster: Cluster) -> float:  # noqa: ANN401 - playwright's
    """Return seconds until one more viewer sees something."""
    context = await chromium.new_context()
    page = await watch(context, cluster)
    await until(page, f"{_FIRST_PAINT} !== undefined")
    seconds = await page.evaluate(_FIRST_PAINT) / 1e3
    await context.close()
    return float(seconds)


async def _core_shares(pids: list[int], seconds: float) -> Mapping[int, float]:
    before = {pid: _cpu_seconds(pid) for pid in pids}
    await asyncio.sleep(seconds)
    return {pid: (_cpu_seconds(pid) - before[pid]) / seconds for pid in pids}


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _spread(values: list[float]) -> Mapping[str, float]:
    return {
        "median": round(statistics.median(values), 3),
        "longest": round(max(values), 3),
        "count": len(values),
    }
