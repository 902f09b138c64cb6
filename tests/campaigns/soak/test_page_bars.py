"""The bars of the page's campaign: what breaks one is reported, what was not measured is not."""

import pytest

from tests.campaigns.soak.web import MOST, bars_not_held

WELL = {**MOST, "frozen_page_says": True, "kill_seen_seconds": {"median": 9.0}}


def test_figures_at_their_bars_hold() -> None:
    assert bars_not_held(WELL) == []
    assert bars_not_held({}) == []


@pytest.mark.parametrize("name", MOST)
def test_a_figure_over_its_bar_is_told(name: str) -> None:
    (told,) = bars_not_held({**WELL, name: MOST[name] + 0.001})
    assert told.startswith(name)


def test_a_page_that_says_nothing_is_told() -> None:
    assert len(bars_not_held({**WELL, "frozen_page_says": False})) == 1


def test_viewers_who_are_told_nothing_measure_nothing() -> None:
    assert bars_not_held({**WELL, "looks_of_each": 0}) == ["a viewer was told nothing"]
