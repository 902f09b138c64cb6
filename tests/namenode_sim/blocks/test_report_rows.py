"""Rows of full reports, from the bytes that DataNodes send."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from namenode_sim.blocks.errors import MalformedReport
from namenode_sim.blocks.report_rows import from_buffers, from_longs
from namenode_sim.blocks.reports import Rows
from tests.namenode_sim.blocks.report_bytes import Row, encoded, varint

FROM_JAVA = bytes.fromhex(
    "828080800 8e0a712e90700 8480808008f0a204ea0700 8680808008f0a204eb0700 8880808008f0a204ec0700"
    .replace(" ", "")
)  # fmt: skip
"""What a DataNode of Hadoop 3.5.0 sent for four finalized replicas."""

ROWS_FROM_JAVA = [
    (1073741825, 300000, 1001, 0),
    (1073741826, 70000, 1002, 0),
    (1073741827, 70000, 1003, 0),
    (1073741828, 70000, 1004, 0),
]

rows = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.integers(0, 2**48 - 1),
        st.integers(0, 2**63 - 1),
        st.integers(0, 4),
    ),
    max_size=40,
)


def listed(found: Rows) -> list[Row]:
    return list(
        zip(
            found.ids.tolist(),
            found.lengths.tolist(),
            found.stamps.tolist(),
            found.states.tolist(),
            strict=True,
        )
    )


def test_a_report_of_hadoop() -> None:
    assert listed(from_buffers([FROM_JAVA], 4)) == ROWS_FROM_JAVA
    assert encoded(ROWS_FROM_JAVA) == FROM_JAVA


@given(rows, st.integers(1, 20))
def test_rows_come_back_however_the_buffers_are_cut(given_rows: list[Row], size: int) -> None:
    data = encoded(given_rows)
    buffers = [data[start : start + size] for start in range(0, len(data), size)]
    found = from_buffers(buffers, len(given_rows))
    assert listed(found) == given_rows
    assert (found.ids.dtype.name, found.states.dtype.name) == ("int64", "uint8")


@given(st.binary(max_size=60), st.integers(0, 6))
def test_any_bytes_are_rows_or_refused(data: bytes, count: int) -> None:
    with suppress(MalformedReport):
        assert len(from_buffers([data], count)) == count


REFUSED = {
    "a row too many": (FROM_JAVA, 3, "announces 3 rows and has 16 numbers"),
    "a row too few": (FROM_JAVA, 5, "announces 5 rows"),
    "a trailing byte": (FROM_JAVA + b"\x00", 4, "has 17 numbers"),
    "a number that is cut": (FROM_JAVA[:-1] + b"\x80", 4, "ends nowhere"),
    "a number that is too long": (b"\x80" * 10 + b"\x01" + b"\x00" * 3, 1, "takes 11 bytes"),
    "an unknown state": (varint(2) + varint(5) + varint(3) + varint(5), 1, "state 5"),
    "more rows than a DataNode has": (b"", 10_000_001, "at most 10000000"),
    "as many rows as a DataNode may have": (b"", 10_000_000, "rows and has 0 numbers"),
    "fewer than none": (b"", -1, "announces -1 rows, at most"),
    "one byte that ends nowhere": (b"\x80", 0, "ends nowhere"),
}


@pytest.mark.parametrize(("data", "count", "found"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(data: bytes, count: int, found: str) -> None:
    with pytest.raises(MalformedReport, match=found):
        from_buffers([data], count)


KEPT = {
    "no row": (b"", []),
    "the lowest id": (encoded([(-(2**63), 5, 3, 0)]), [(-(2**63), 5, 3, 0)]),
    "the highest numbers": (
        encoded([(2**63 - 1, 2**48 - 1, 2**63 - 1, 4)]),
        [(2**63 - 1, 2**48 - 1, 2**63 - 1, 4)],
    ),
    "bits above those of a length": (encoded([(7, 2**48 + 5, 3, 1)]), [(7, 5, 3, 1)]),
    "bits above those of a state": (encoded([(7, 5, 3, 2**4 + 1)]), [(7, 5, 3, 1)]),
}
"""The bytes of a report and its rows."""


@pytest.mark.parametrize(("data", "found"), KEPT.values(), ids=KEPT.keys())
def test_what_is_read_of_rows_at_the_edge(data: bytes, found: list[Row]) -> None:
    assert listed(from_buffers([data], len(found))) == found


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_a_row_goes_on_in_the_next_buffer(size: int) -> None:
    buffers = [FROM_JAVA[start : start + size] for start in range(0, len(FROM_JAVA), size)]
    assert listed(from_buffers(buffers, 4)) == ROWS_FROM_JAVA


@given(rows)
def test_rows_of_old_datanodes(given_rows: list[Row]) -> None:
    finalized = [row for row in given_rows if row[3] == 0]
    others = [row for row in given_rows if row[3] != 0]
    longs = [len(finalized), len(others)]
    longs += [number % 2**64 for row in finalized for number in row[:3]]
    longs += [2**64 - 1] * 3 + [number % 2**64 for row in others for number in row]
    assert listed(from_longs(longs)) == finalized + others


OLD_KEPT = {
    "no row": ([0, 0, -1, -1, -1], []),
    "finalized ones": ([2, 0, 7, 5, 3, 8, 6, 4, -1, -1, -1], [(7, 5, 3, 0), (8, 6, 4, 0)]),
    "others": (
        [0, 3, -1, -1, -1, 7, 5, 3, 0, 8, 6, 4, 1, 9, 7, 5, 4],
        [(7, 5, 3, 0), (8, 6, 4, 1), (9, 7, 5, 4)],
    ),
    "both": ([1, 1, 7, 5, 3, -1, -1, -1, 8, 6, 4, 2], [(7, 5, 3, 0), (8, 6, 4, 2)]),
    "unsigned numbers": (
        [1, 1, 2**64 - 7, 5, 3, *[2**64 - 1] * 3, 2**64 - 8, 6, 4, 2],
        [(-7, 5, 3, 0), (-8, 6, 4, 2)],
    ),
}
"""The longs of a report and its rows."""


@pytest.mark.parametrize(("longs", "found"), OLD_KEPT.values(), ids=OLD_KEPT.keys())
def test_what_old_datanodes_list(longs: list[int], found: list[Row]) -> None:
    kept = from_longs(longs)
    assert listed(kept) == found
    assert (kept.ids.dtype.name, kept.states.dtype.name) == ("int64", "uint8")


OLD_REFUSED = {
    "no counts": ([1], "it has 1 numbers, and no counts"),
    "counts alone": ([0, 0], "announces 0 and 0 rows and has 2 numbers"),
    "a row too few": ([1, 0, 5, 5, 5], "announces 1 and 0 rows and has 5 numbers"),
    "no end of the finalized ones": ([1, 0, 5, 5, 5, -1, -1, 0], "no row of -1"),
    "a row too many": ([0, 0, -1, -1, -1, 5], "announces 0 and 0 rows and has 6 numbers"),
    "one -1 of three": ([0, 0, -1, 0, 0], "no row of -1"),
    "a negative count": ([-1, 0, -1, -1, -1], "announces -1 and 0 rows, at most"),
    "another negative count": ([0, -1, -1, -1, -1], "announces 0 and -1 rows, at most"),
    "a negative count and numbers for the other": (
        [-1, 1, -1, -1, -1, -1],
        "announces -1 and 1 rows, at most",
    ),
    "more rows than a DataNode has": (
        [5_000_001, 5_000_000],
        "announces 5000001 and 5000000 rows, at most 10000000",
    ),
    "as many rows as a DataNode may have": (
        [5_000_000, 5_000_000],
        "announces 5000000 and 5000000 rows and has 2 numbers",
    ),
    "an unknown state": ([0, 1, -1, -1, -1, 5, 5, 5, 5], "state 5"),
    "the first state of five bits": ([0, 1, -1, -1, -1, 5, 5, 5, 16], "state 15"),
    "a negative state": ([0, 1, -1, -1, -1, 5, 5, 5, -1], "state 15"),
    "a state of more than a byte": ([0, 1, -1, -1, -1, 5, 5, 5, 256], "state 15"),
}


@pytest.mark.parametrize(("longs", "found"), OLD_REFUSED.values(), ids=OLD_REFUSED.keys())
def test_what_is_refused_of_old_datanodes(longs: list[int], found: str) -> None:
    with pytest.raises(MalformedReport, match=found):
        from_longs(longs)
