"""What several sheets of a report say in the same words: ranges, and rows that are left out."""

import pytest

from spark.reports.model import Bucket
from spark.reports.sheets.rows import left_out, range_of
from spark.reports.units import brief, size

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("at_least", "below", "as_size", "as_count"),
    [
        (0, 1, "empty", "empty"),
        (1, MIB, "1 B to 1 MiB", "1 to 1.05 M"),
        (1000, 10_000, "1000 B to 9.77 KiB", "1 k to 10 k"),
        (128 * MIB, None, "128 MiB or more", "134 M or more"),
    ],
)
def test_a_bucket_is_told_by_its_borders(
    at_least: int, below: int | None, as_size: str, as_count: str
) -> None:
    bucket = Bucket(at_least, below, 0, 0)
    assert (range_of(bucket, size), range_of(bucket, brief)) == (as_size, as_count)


def test_rows_that_are_left_out_are_counted_and_only_they_are_told_of() -> None:
    assert left_out(1250, 20) == "1,230 more are in the JSON."
    assert left_out(20, 20) == left_out(3, 20) == ""
