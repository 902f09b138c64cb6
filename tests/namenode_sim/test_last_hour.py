"""A NameNode's last hour: rates between two looks, quantiles from buckets, a ring that ends."""

import asyncio
from dataclasses import replace
from math import inf

import pytest

from namenode_sim.last_hour import (
    EVERY_SECONDS,
    MOST_SAMPLES,
    HourRecorder,
    Totals,
    quantile,
    sample,
)

COMMITS = ((0.001, 10.0), (0.01, 90.0), (inf, 100.0))
BEFORE = Totals(100.0, "active", 1000, 500, ((0.001, 0.0), (0.01, 0.0), (inf, 0.0)), None, 3)
NOW = Totals(130.0, "active", 1300, 560, COMMITS, None, 4)


def test_rates_are_those_between_two_looks() -> None:
    assert sample(BEFORE, NOW) == {
        "role": "active",
        "edits_per_second": 10.0,
        "calls_per_second": 2.0,
        "commit_median_seconds": 0.0055,
        "commit_p99_seconds": 0.01,
        "lag_seconds": None,
        "under_replicated": 4,
    }


def test_what_a_standby_caught_up_with_is_no_rate_of_the_active() -> None:
    found = sample(replace(BEFORE, role="becoming active", lag_seconds=2.0), NOW)
    assert [name for name, value in found.items() if value is None] == [
        "edits_per_second", "commit_median_seconds", "commit_p99_seconds", "lag_seconds",
    ]  # fmt: skip
    assert found["calls_per_second"] == 2.0


def test_no_commit_and_no_time_give_nothing_and_not_zero() -> None:
    quiet = sample(BEFORE, replace(NOW, commits=BEFORE.commits))
    assert (quiet["commit_median_seconds"], quiet["commit_p99_seconds"]) == (None, None)
    at_once = sample(BEFORE, replace(NOW, at=BEFORE.at))
    assert (at_once["edits_per_second"], at_once["calls_per_second"]) == (None, None)


QUANTILES = {
    "in the first bucket": (0.05, COMMITS, 0.0005),
    "at a bound": (0.1, COMMITS, 0.001),
    "in a later bucket": (0.5, COMMITS, 0.0055),
    "above the last finite bound": (0.95, COMMITS, 0.01),
    "in a bucket after an empty one": (0.5, ((1.0, 0.0), (2.0, 4.0), (inf, 4.0)), 1.5),
    "of nothing": (0.5, ((1.0, 0.0), (inf, 0.0)), None),
    "without buckets": (0.5, (), None),
}


@pytest.mark.parametrize("name", QUANTILES)
def test_a_quantile_lies_in_its_bucket(name: str) -> None:
    share, counts, wanted = QUANTILES[name]
    assert quantile(share, counts) == wanted


async def test_a_figure_that_cannot_be_read_ends_nothing() -> None:
    asked = asyncio.Event()

    def broken() -> Totals:
        asked.set()
        raise RuntimeError("no figures")

    running = asyncio.create_task(HourRecorder(broken).run())
    async with asyncio.timeout(5):
        await asked.wait()
        await asyncio.sleep(0)
    assert not running.done()
    running.cancel()


def test_the_ring_keeps_an_hour_with_ages_by_its_own_clock() -> None:
    now = 0.0
    hour = HourRecorder(lambda: replace(BEFORE, at=now, edits=int(now)), lambda: now)
    hour.take()
    assert hour.as_json()["samples"] == []
    for number in range(1, MOST_SAMPLES + 3):
        now = number * EVERY_SECONDS
        hour.take()
    now += 5.0
    shown = hour.as_json()
    samples = shown["samples"]
    assert isinstance(samples, list)
    assert len(samples) == MOST_SAMPLES
    assert MOST_SAMPLES * EVERY_SECONDS == 3600.0
    assert (samples[0]["age_seconds"], samples[-1]["age_seconds"]) == (3575.0, 5.0)
    assert samples[-1]["edits_per_second"] == 1.0
    assert shown["started_seconds_ago"] == 3665.0
