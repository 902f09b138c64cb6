"""The last hour as it is drawn: gaps, dots, marks, figures; and as daemons' pages give it."""

from dataclasses import replace

import pytest

from ha.cluster.last_hour import HourSample, LastHour, last_hour_of
from ha.web.charts import HEIGHT, WIDTH, Chart, charts, events
from tests.ha.web.situations import HEALTHY


def sample(age: float, role: str = "active", edits: float | None = 10.0) -> HourSample:
    return HourSample(age, role, edits_per_second=edits)


def edits(*samples: HourSample, **others: LastHour) -> Chart:
    return charts({"nn1": LastHour(None, 30.0, samples), **others})[0]


PATHS: dict[str, tuple[list[HourSample], str]] = {
    "joined": ([sample(3600), sample(3570, edits=5.0)], "M0 0L2 20"),
    "a late one is joined": ([sample(3600), sample(3525)], "M0 0L5 0"),
    "too far apart": ([sample(3600), sample(3524)], "M0 0h.1M5.1 0h.1"),
    "one alone is a dot": ([sample(1800)], "M120 0h.1"),
    "unknown is a gap": ([sample(3600), sample(3570, edits=None), sample(3540)], "M0 0h.1M4 0h.1"),
    "another role is a gap": (
        [sample(3600), sample(3570, "becoming standby"), sample(3540)],
        "M0 0h.1M4 0h.1",
    ),
    "zero is drawn": ([sample(60, edits=0.0), sample(30, edits=0.0)], "M236 40L238 40"),
    "nothing": ([], ""),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_line_goes_where_the_figure_is_known(name: str) -> None:
    samples, path = PATHS[name]
    assert edits(*samples).lines == (path,)


def test_figures_are_those_of_the_newest_samples_alone() -> None:
    found = edits(sample(90, edits=1234.0), sample(60, edits=9.94))
    assert (found.now, found.most, found.known) == ("9.9/s", "1,234/s", "known for 1 min of it")
    old = edits(sample(90, edits=1234.0))
    assert (old.now, old.most) == ("not known", "1,234/s")
    assert old.words == (
        "Edits in the last hour: now not known; most 1,234/s; known for 30 s of it"
    )
    none = edits()
    assert (none.now, none.most, none.known) == ("not known", "not known", "")
    assert edits(sample(10, edits=0.0)).now == "0/s"
    both = edits(sample(2000), nn2=LastHour(None, 30.0, (sample(20, edits=70.0),)))
    assert both.now == "70/s"


def test_each_chart_has_its_unit_and_a_whole_hour_says_nothing_of_gaps() -> None:
    found = {one.title: one for one in charts(HEALTHY.hours)}
    assert [one.now for one in found.values()] == [
        "672/s",
        "3.0 ms / 12 ms",
        "5,515/s",
        "502 ms",
        "0",
    ]
    assert [one.most for one in found.values()] == ["1,260/s", "18 ms", "6,100/s", "1.5 s", "40"]
    assert found["The standby's lag"].known == ""
    assert found["Edits"].known == "known for 55 min of it"
    assert (
        "99 % in the last hour: now 3.0 ms / 12 ms; most 18 ms"
        in found["Commits, median / 99 %"].words
    )
    for one in found.values():
        for path in one.lines:
            places = [piece.split() for piece in path.replace("M", "L").split("L") if " " in piece]
            assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in places)


def test_a_start_and_a_takeover_are_marks() -> None:
    took_over = LastHour(
        5000.0, 30.0, (sample(900, "standby"), sample(870, "becoming active"), sample(840))
    )
    fresh = LastHour(1200.0, 30.0, (sample(600), sample(30)))
    found = events({"nn1": fresh, "nn2": took_over})
    assert found == (
        (184.0, "active", "nn2 became active 14 min ago"),
        (160.0, "start", "nn1 was started 20 min ago"),
    )
    assert events({"nn1": replace(fresh, started_seconds_ago=None)}) == ()
    flapping = [sample(3000 - 30 * n, "active" if n % 2 else "standby") for n in range(60)]
    assert len(events({"nn1": LastHour(None, 30.0, tuple(flapping))})) == 12


PAGES: dict[str, tuple[object, list[float]]] = {
    "as it is": (
        [{"age_seconds": 60, "role": "active"}, {"age_seconds": 30, "role": "active"}],
        [60, 30],
    ),
    "in another order": (
        [{"age_seconds": 30, "role": "a"}, {"age_seconds": 60, "role": "a"}],
        [60, 30],
    ),
    "older than an hour, and of the future": (
        [{"age_seconds": 3601, "role": "a"}, {"age_seconds": -1, "role": "a"}],
        [],
    ),
    "no samples": ([7, None, [], {"age_seconds": "soon", "role": "a"}, {"role": "a"}], []),
    "no list": ({"age_seconds": 30}, []),
    "nothing": (None, []),
    "too many": (
        [{"age_seconds": n, "role": "a"} for n in range(3000)],
        list(range(2999, 2759, -1)),
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_as_far_as_it_is_one(name: str) -> None:
    listed, ages = PAGES[name]
    found = last_hour_of({"samples": listed, "started_seconds_ago": 9, "every_seconds": "x"})
    assert [one.age_seconds for one in found.samples] == ages
    assert (found.started_seconds_ago, found.every_seconds) == (9.0, 30.0)


def test_what_does_not_fit_is_not_known() -> None:
    odd = {"age_seconds": 1, "role": "active", "edits_per_second": "many", "lag_seconds": None}
    page = {"samples": [odd], "started_seconds_ago": None, "every_seconds": 0.001}
    assert last_hour_of(page) == LastHour(None, 1.0, (HourSample(1.0, "active"),))


def test_what_was_said_before_grows_old() -> None:
    found = LastHour(10.0, 30.0, (sample(3580), sample(100))).older(30.0)
    assert found == LastHour(40.0, 30.0, (sample(130),))
