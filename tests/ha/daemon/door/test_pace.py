"""What is dear is done for each origin at its own pace."""

from hypothesis import given
from hypothesis import strategies as st

from ha.daemon.door.pace import MOST_ORIGINS, Pace


def test_some_at_once_then_at_the_pace_and_others_at_their_own() -> None:
    pace = Pace(10.0, burst_seconds=0.5)
    assert [pace.wait("a", 100.0) for _ in range(6)] == [0.0] * 6
    assert 0.09 < pace.wait("a", 100.0) < 0.11
    assert 0.09 < pace.wait("a", 100.0) < 0.11, "to ask costs nothing"
    assert pace.wait("b", 100.0) == 0.0
    assert pace.wait("a", 100.0 + 0.11) == 0.0
    assert pace.wait("a", 100.0 + 0.11) > 0.0
    assert pace.wait("a", 200.0) == 0.0


@given(st.lists(st.floats(0.0, 0.2), min_size=1, max_size=100))
def test_no_more_than_the_burst_and_the_pace(pauses: list[float]) -> None:
    pace, now, begun = Pace(10.0, burst_seconds=0.5), 100.0, 0
    for pause in pauses:
        now += pause
        begun += pace.wait("a", now) == 0.0
    assert begun <= (now - 100.0) * 10.0 + 6.01


def test_the_origin_that_came_last_is_remembered() -> None:
    pace = Pace(1.0, burst_seconds=0.0)
    assert pace.wait("a", 5.0) == 0.0
    for number in range(MOST_ORIGINS - 1):
        assert pace.wait(str(number), 5.0) == 0.0
    assert pace.wait("a", 5.0) > 0.0
    for number in range(MOST_ORIGINS):
        pace.wait(f"x{number}", 5.0)
    assert pace.wait("a", 5.0) == 0.0, "forgotten: memory has a limit"
