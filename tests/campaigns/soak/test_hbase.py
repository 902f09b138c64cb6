"""What HBase keeps is judged by its rows; the campaign itself runs HBase."""

import pytest

from tests.campaigns.soak.hbase import Played
from tests.campaigns.soak.hbase_rows import Found, Rows, key_of, parts, value_of

WHOLE = Found(300, (), ())


@pytest.mark.parametrize(
    ("found", "failed", "acknowledged", "well"),
    [
        ([WHOLE, WHOLE], [], 300, True),
        ([WHOLE, Found(299, (7,), ())], [], 300, False),
        ([Found(300, (), (8,)), WHOLE], [], 300, False),
        ([WHOLE, WHOLE], ["rows from 10: refused"], 290, False),
        ([Found(0, (), ())], [], 0, False),
    ],
    ids=["all there", "one lost", "one wrong", "a put failed", "nothing put"],
)
def test_all_is_well_only_if_each_row_is_there(
    found: list[Found], failed: list[str], acknowledged: int, *, well: bool
) -> None:
    played = Played(Rows(None, set(range(acknowledged)), failed), found, [0.25, 0.75], 1, 1)
    facts = played.facts()
    assert facts["well"] is well
    assert (facts["acknowledged"], facts["kills"], facts["failover_seconds_max"]) == (
        acknowledged,
        2,
        0.75,
    )


@pytest.mark.parametrize(("rows", "count"), [(50_000, 5), (100, 7), (101, 3)])
def test_parts_have_each_row_once(rows: int, count: int) -> None:
    ranges = parts(rows, count)
    assert len(ranges) == count
    assert [number for part in ranges for number in part] == list(range(rows))


def test_rows_are_spread_and_their_values_their_own() -> None:
    keys = {key_of(number) for number in range(2000)}
    assert len(keys) == 2000
    assert len({key[:1] for key in keys}) == 16
    assert value_of(7) == value_of(7) != value_of(8)
