"""The failover bench says what it measured, and holds it against the right bar."""

from tests.campaigns.bench.switches import Bars, Record, Switch, phases_of, rows_of

KIND = "kill -9, journal-epoch"
OURS = [Switch(0.1, 0.2, {"lock": 0.03, "active": 0.1}), Switch(0.3, None, {"lock": None})]
THEIRS = [Switch(2.0, 3.0, {}), Switch(4.0, 9.0, {})]


def record() -> Record:
    return Record(switches={KIND: OURS, "Hadoop, kill -9": THEIRS})


def test_median_worst_and_the_longest_call_have_bars_of_their_own() -> None:
    rows = rows_of(record(), KIND, "kill -9", Bars(0.2, worst=0.25, client=0.2))
    told = [(row.value, row.bar, row.holds) for row in rows]
    assert told == [
        (0.2, "<= 0.2", True),
        (0.3, "<= 0.25", False),
        (0.2, "<= 0.2", True),
        (0.2, "-", None),
    ]
    assert rows[0].peer == "Hadoop, same run: median 3.000 s (15 x)"
    assert rows[2].peer == "Hadoop, same run: longest 9.000 s (45 x)"


def test_hadoop_is_compared_with_nobody_and_nobody_with_a_hadoop_that_did_not_run() -> None:
    theirs = rows_of(record(), "Hadoop, kill -9", "kill -9", Bars(None))
    assert {row.peer for row in theirs} == {"-"}
    assert {row.holds for row in theirs} == {None}
    alone = Record(switches={KIND: OURS})
    assert alone.times_faster(KIND, "kill -9") is None
    assert {row.peer for row in rows_of(alone, KIND, KIND, Bars(1))} == {"-"}
    assert record().times_faster(KIND, "kill -9") == 15


def test_a_phase_that_was_not_told_is_not_counted_as_zero() -> None:
    assert phases_of(OURS) == [("lock", 0.03, 0.03), ("active", 0.1, 0.1)]
