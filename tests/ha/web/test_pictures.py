"""Bars of phases share one scale, and an hour of health is drawn as far as it is known."""

import re
from datetime import timedelta
from importlib.resources import files

import pytest

from ha.cluster.daemon_fields import HealthChange
from ha.notices.model import HistoryEntry, PhaseDuration, time_text
from ha.web.pictures import KNOWN_PHASES, WIDTH, Bar, last_hour, longest, named, phases, swatch
from tests.ha.web.situations import HISTORY, NOW


def change(minutes_ago: float, health: str, reason: str | None = None) -> HealthChange:
    return HealthChange(time_text(NOW - timedelta(minutes=minutes_ago)), health, reason)


def test_the_longest_failover_fills_the_line_and_the_others_their_share() -> None:
    entries = (HistoryEntry(13, None, "it is no record"), *HISTORY)
    drawn = [
        [(bar.x, bar.width) for bar in phases(one.record.phases, longest(entries)).bars]
        for one in HISTORY
        if one.record is not None
    ]
    assert drawn[0] == [(0, 4), (4, 51), (55, 85), (140, 67)]  # 0.124 s of 0.61 s
    assert drawn[2] == [(0, 4), (4, WIDTH)]
    assert named(entries) == ("lock", "fenced", "promoting", "active", "failed")
    assert longest(()) == 0.0
    assert [bar.width for bar in phases((PhaseDuration("lock", 0.5),), 0.0).bars] == [4]


def test_a_legend_shows_a_phase_at_its_full_width() -> None:
    assert swatch("fenced").bars == (Bar(0, WIDTH, "fenced", "fenced 1.00 s", "rising"),)


def test_no_two_phases_differ_in_colour_alone() -> None:
    bars = [phases((PhaseDuration(name, 1.0),), 1.0).bars[0] for name in (*KNOWN_PHASES, "newer")]
    assert len({bar.hatch for bar in bars}) == len(bars)
    drawn = (files("ha.web") / "templates" / "macros.html").read_text()
    assert {bar.hatch for bar in bars} - {""} == set(re.findall(r'<pattern id="(\w+)"', drawn))


def test_no_two_healths_differ_in_colour_alone() -> None:
    found = last_hour(
        (change(10, "unhealthy"), change(20, "initializing"), change(30, "healthy")), NOW
    )
    heights = {bar.kind: bar.height for bar in found.bars}
    assert heights == {"healthy": 8, "initializing": 14, "ill": 20}


def test_every_phase_is_told_in_words_and_an_unknown_one_is_drawn_too() -> None:
    found = phases((PhaseDuration("caught_up", 0.25), PhaseDuration("newer", 0.1)), 1.0)
    assert found.words == "caught up 0.25 s, newer 0.10 s"
    assert [bar.kind for bar in found.bars] == ["caught_up", "other"]
    assert phases((), 0.0).words == "no phases are recorded"


def test_the_last_hour_begins_where_it_is_known() -> None:
    late = change(45, "not_responding", "it is late")
    found = last_hour((change(30, "initializing"), late), NOW)
    assert [(bar.x, bar.width, bar.kind) for bar in found.bars] == [
        (250, 250, "ill"), (500, 500, "initializing"),
    ]  # fmt: skip
    assert found.words == (
        "initializing since 14:00:00 UTC; not responding since 13:45:00 UTC (it is late)"
    )
    assert last_hour((), NOW).words == "its health in the last hour is not known"


def test_what_was_before_the_hour_holds_from_its_beginning() -> None:
    found = last_hour((change(90, "healthy"), change(200, "unhealthy")), NOW)
    assert [(bar.x, bar.width, bar.kind) for bar in found.bars] == [(0, WIDTH, "healthy")]
    assert found.words == "healthy in the last hour"


def test_a_judgement_that_held_for_a_moment_is_seen() -> None:
    moment = (change(39.98, "healthy"), change(40, "unhealthy"), change(60, "healthy"))
    assert [(bar.x, bar.width, bar.kind) for bar in last_hour(moment, NOW).bars] == [
        (0, 333, "healthy"), (333, 4, "ill"), (334, 666, "healthy"),
    ]  # fmt: skip


@pytest.mark.parametrize("minutes_ago", [0.01, -5], ids=["just now", "by a clock that is ahead"])
def test_the_newest_judgement_is_within_the_drawing(minutes_ago: float) -> None:
    found = last_hour((change(minutes_ago, "unhealthy"), change(30, "healthy")), NOW)
    assert [(bar.x, bar.width, bar.kind) for bar in found.bars] == [
        (500, 500, "healthy"), (WIDTH - 4, 4, "ill"),
    ]  # fmt: skip


def test_odd_times_are_left_out() -> None:
    odd = (HealthChange("yesterday", "healthy", None), HealthChange("2026-01-01", "ill", None))
    assert last_hour(odd, NOW).bars == ()
