"""The longest lag of the last minute: a stall is still seen by the next scrape."""

from ha.daemon.process import LONGEST_LAG_SECONDS, Lags


def test_a_stall_is_shown_until_it_is_a_minute_old() -> None:
    lags = Lags()
    lags.add(0.0, 0.1)
    lags.add(10.0, 2.5)
    for second in range(11, 60):
        lags.add(float(second), 0.001)
    assert lags.longest(60.0) == 2.5
    assert lags.longest(10.0 + LONGEST_LAG_SECONDS) == 0.001


def test_without_a_lag_there_is_none() -> None:
    assert Lags().longest(5.0) == 0.0
