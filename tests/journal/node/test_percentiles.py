"""The percentiles of a JournalNode's syncs, as Hadoop names them at /jmx."""

import math
from pathlib import Path

import aiohttp
from hypothesis import given
from hypothesis import strategies as st

from journal.node.percentiles import MOST_SAMPLES, PERCENTILES, WINDOWS_SECONDS, RecentSyncs
from tests.journal.core.requests_of import Writer
from tests.journal.node.process import node_and_client


def test_each_window_counts_its_own_syncs() -> None:
    recent = RecentSyncs()
    for at, seconds in ((0.0, 0.9), (3500.0, 0.5), (3900.0, 0.1), (3990.0, 0.002)):
        recent.add(at, seconds)
    shown = recent.attributes(4000.0)
    assert [shown[f"Syncs{window}sNumOps"] for window in WINDOWS_SECONDS] == [1, 2, 3]
    assert shown["Syncs60s99thPercentileLatencyMicros"] == 2000
    assert shown["Syncs300s99thPercentileLatencyMicros"] == 100_000
    assert shown["Syncs3600s50thPercentileLatencyMicros"] == 100_000
    assert RecentSyncs().attributes(0.0)["Syncs60s50thPercentileLatencyMicros"] == 0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200))
def test_so_many_per_cent_are_no_slower(durations: list[float]) -> None:
    recent = RecentSyncs()
    for seconds in durations:
        recent.add(0.0, seconds)
    shown = recent.attributes(0.0)
    for percentile in PERCENTILES:
        micros = shown[f"Syncs60s{percentile}thPercentileLatencyMicros"]
        faster = sum(round(seconds * 1e6) <= micros for seconds in durations)
        assert faster >= math.ceil(len(durations) * percentile / 100)
        assert micros in {round(seconds * 1e6) for seconds in durations}


def test_memory_is_bounded() -> None:
    recent = RecentSyncs()
    for number in range(MOST_SAMPLES + 10):
        recent.add(float(number) / 1000, 0.001)
    assert recent.attributes(20.0)["Syncs60sNumOps"] == MOST_SAMPLES


async def test_the_page_has_them_for_each_journal(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, "timed") as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(Writer(1), 1, 3)
        url = f"http://127.0.0.1:{daemon.http_port}/jmx?qry=*Journal-timed"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            (bean,) = (await response.json())["beans"]
        assert bean["Syncs60sNumOps"] >= 1
        assert bean["Syncs60sNumOps"] == bean["Syncs3600sNumOps"]
        assert 0 < bean["Syncs60s50thPercentileLatencyMicros"] < 60_000_000
