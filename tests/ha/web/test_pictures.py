"""Bars of phases share one scale, and an hour of health is drawn as far as it is known."""

import re
from datetime import timedelta
from importlib.resources import files

from ha.cli.cluster.daemon_parts import HealthChange
from ha.notices.model import PhaseDuration, time_text
from ha.web.pictures import KNOWN_PHASES, WIDTH, last_hour, longest, named, phases
from tests.ha.web.situations import HISTORY, NOW


def change(minutes_ago: float, health: str) -> HealthChange:
    return HealthChange(time_text(NOW - timedelta(minutes=minutes_ago)), health, None)


def test_the_longest_failover_fills_the_line_and_the_others_their_share() -> None:
    whole = longest(HISTORY)
    widths = [
        sum(bar.width for bar in phases(one.record.phases, whole).bars)
        for one in HISTORY
        if one.record is not None
    ]
    assert max(widths) <= WIDTH + 10
    assert 180 < widths[0] < 230  # 0.124 s of 0.61 s
    assert named(HISTORY) == ("lock", "fenced", "promoting", "active", "failed")


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
    assert heights.keys() == {"healthy", "initializing", "ill"}
    assert heights["healthy"] < heights["initializing"] < heights["ill"]


def test_every_phase_is_told_in_words_and_an_unknown_one_is_drawn_too() -> None:
    found = phases((PhaseDuration("caught_up", 0.25), PhaseDuration("newer", 0.1)), 1.0)
    assert found.words == "caught up 0.25 s, newer 0.10 s"
    assert [bar.kind for bar in found.bars] == ["caught_up", "other"]
    assert phases((), 0.0).words == "no phases are recorded"


def test_the_last_hour_begins_where_it_is_known() -> None:
    found = last_hour((change(30, "healthy"), change(45, "unhealthy")), NOW)
    assert [(bar.x, bar.width, bar.kind) for bar in found.bars] == [
        (250, 250, "ill"), (500, 500, "healthy"),
    ]  # fmt: skip
    assert "unhealthy since" in found.words
    assert last_hour((), NOW).words == "its health in the last hour is not known"


def test_what_was_before_the_hour_holds_from_its_beginning() -> None:
    found = last_hour((change(90, "healthy"), change(200, "unhealthy")), NOW)
    assert [(bar.x, bar.width, bar.kind) for bar in found.bars] == [(0, WIDTH, "healthy")]
    assert found.words == "healthy in the last hour"


def test_odd_times_are_left_out() -> None:
    odd = (HealthChange("yesterday", "healthy", None), HealthChange("2026-01-01", "ill", None))
    assert last_hour(odd, NOW).bars == ()
