"""The search for a sound op behind damage: where it looks, what it believes, what it may cost."""

from collections.abc import Sequence
from itertools import count as count_from
from struct import Struct

import pytest

from journal.frame import MAX_OP_BYTES
from namenode_sim.edits import ops
from namenode_sim.edits.recovery import Skipped, salvage_ops
from tests.namenode_sim.edits import segments
from tests.namenode_sim.edits.counted import Counted, opened
from tests.namenode_sim.edits.segments import FRAMED, LAYOUTS, PERMISSION, frames, segment_bytes

JUNK = b"\x80"
"""Neither an opcode, nor the begin of a transaction's number, nor padding."""
SMALLEST = {FRAMED: 17, segments.OLD: 13}
HEAD = {FRAMED: 13, segments.OLD: 9}
CHUNK = 1 << 20
"""This number of bytes is searched at a time."""

Around = tuple[int, int, int | None, int | None]
"""Of a damage: its offset and length, and the transactions before and behind it."""


def small(txid: int, layout: int = FRAMED) -> bytes:
    return frames([ops.StartLogSegment()], first=txid, layout=layout)[0]


def claiming(size: int, txid: int = 2) -> bytes:
    """Return the head of a frame that claims ``size`` bytes; its checksum will be wrong."""
    return Struct(">Biq").pack(1, size - 5, txid)


def salvaged(
    data: bytes | Counted, *, first: int | None = 1, numbered: bool = True
) -> list[int | Around]:
    return [
        (found.offset, found.length, found.after, found.before)
        if isinstance(found, Skipped)
        else found[0]
        for found in salvage_ops(opened(data, first=first), numbered=numbered)
    ]


# ---- where it looks ------------------------------------------------------------------------


@LAYOUTS
@pytest.mark.parametrize("length", [1, 2, 40])
def test_the_next_sound_op_is_found_at_any_distance(layout: int, length: int) -> None:
    begin = segment_bytes([ops.StartLogSegment()], layout=layout)
    data = begin + JUNK * length + small(3, layout)
    assert salvaged(data) == [1, (len(begin), length, 1, 3), 3]


def test_no_op_is_found_that_begins_inside_a_sound_one() -> None:
    inner = small(2)
    made = (frames([ops.Mkdir(inode, "/d", 1, 1, PERMISSION)])[0] for inode in count_from(1))
    outer = next(frame for frame in made if frame[-1] == inner[0])
    begin = segment_bytes([]) + outer
    behind = inner[1:] + JUNK
    assert salvaged(begin + behind) == [1, (len(begin), len(behind), 1, None)]


@pytest.mark.parametrize("all_held", [False, True], ids=["read piece by piece", "all is held"])
@pytest.mark.parametrize("before_edge", [0, 1, 9, 13, 17])
@LAYOUTS
def test_a_head_may_lie_across_the_edge_of_what_is_searched_at_a_time(
    layout: int, before_edge: int, all_held: bool
) -> None:
    begin = segment_bytes([], layout=layout)
    behind = JUNK * (CHUNK - before_edge) + small(9, layout)
    # To check the first frame it must be read as a whole, and so is all that follows.
    size = 30 + SMALLEST[layout] + 1 + len(behind)
    first = (claiming(size) if all_held else b"").ljust(30, JUNK)
    place = len(begin) + len(first) + SMALLEST[layout]
    data = begin + first + small(3, layout) + JUNK + behind
    assert salvaged(data) == [
        (len(begin), len(first), 0, 3),
        3,
        (place, 1 + CHUNK - before_edge, 3, 9),
        9,
    ]


# ---- what it believes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "found"), [(10, True), (11, True), (12, False)], ids=["lost", "room", "too far"]
)
@LAYOUTS
def test_only_as_many_transactions_can_be_lost_as_the_bytes_have_room_for(
    layout: int, ahead: int, found: bool
) -> None:
    begin = segment_bytes([ops.StartLogSegment()] * 20, layout=layout)
    lost = JUNK * (10 * SMALLEST[layout])
    end = small(21 + ahead, layout)
    expected: list[int | Around] = [(len(begin), len(lost), 20, 21 + ahead), 21 + ahead]
    if not found:
        expected = [(len(begin), len(lost) + len(end), 20, None)]
    assert salvaged(begin + lost + end)[20:] == expected


@LAYOUTS
@pytest.mark.parametrize("behind", [0, 3, 10, 1 << 60, (1 << 63) - 1])
def test_where_numbers_mean_nothing_an_op_with_any_number_is_found(
    layout: int, behind: int
) -> None:
    begin = segment_bytes([ops.StartLogSegment()], first=10, layout=layout)
    data = begin + JUNK * 3 + small(behind, layout)
    assert salvaged(data, numbered=False) == [10, (len(begin), 3, 10, behind), behind]


@LAYOUTS
def test_where_nothing_tells_which_is_due_the_first_sound_op_tells(layout: int) -> None:
    begin = segment_bytes([], layout=layout)
    data = begin + JUNK * 3 + small(7, layout) + JUNK + small(7, layout) + small(8, layout)
    place = len(begin) + 3 + SMALLEST[layout]
    skipped = 1 + SMALLEST[layout]
    assert salvaged(data, first=None) == [(len(begin), 3, None, 7), 7, (place, skipped, 7, 8), 8]


@pytest.mark.parametrize("first", [(1 << 63) - 1, 1 << 63, 10**30])
def test_no_op_follows_the_highest_number_that_there_is(first: int) -> None:
    begin = segment_bytes([])
    assert salvaged(begin + JUNK * 30 + small(5), first=first) == [
        (len(begin), 30 + SMALLEST[FRAMED], first - 1, None)
    ]


def test_the_op_with_the_highest_number_is_found() -> None:
    begin, highest = segment_bytes([]), (1 << 63) - 1
    assert salvaged(begin + JUNK + small(highest), first=highest) == [
        (len(begin), 1, highest - 1, highest),
        highest,
    ]


# ---- where the damage ends -----------------------------------------------------------------

#   what stands behind the damage, and how much of it is padding
TAILS = {
    "nothing": (b"", 0),
    "terminators": (b"\xff" * 50, 50),
    "zeros": (b"\0" * 50, 0),
    "zeros, then terminators": (b"\0" * 30 + b"\xff" * 20, 20),
    "a terminator, then zeros": (b"\xff" + b"\0" * 30, 31),
    "more zeros than are read at a time": (b"\0" * 50_000 + b"\xff" * 7, 7),
}


@pytest.mark.parametrize(("tail", "padding"), TAILS.values(), ids=TAILS)
@LAYOUTS
def test_the_damage_ends_at_the_terminator_behind_which_only_padding_stands(
    layout: int, tail: bytes, padding: int
) -> None:
    begin = segment_bytes([ops.StartLogSegment()], layout=layout)
    data = begin + JUNK * 20 + tail
    skipped = (len(begin), len(data) - len(begin) - padding, 1, None)
    assert salvaged(data) == [1, skipped]


def test_the_damage_may_end_where_what_is_read_at_a_time_ends() -> None:
    begin = segment_bytes([ops.StartLogSegment()])
    damage = JUNK * (CHUNK + 30)
    skipped = (len(begin), len(damage), 1, None)
    assert salvaged(begin + damage + b"\xff" * CHUNK) == [1, skipped]


def test_the_last_byte_of_a_sound_op_is_no_padding() -> None:
    made = (frames([ops.Mkdir(inode, "/d", 1, 1, PERMISSION)], first=3)[0] for inode in
            count_from(1))  # fmt: skip
    ending = next(frame for frame in made if frame[-1] == 0xFF)
    begin = segment_bytes([ops.StartLogSegment()])
    data = begin + JUNK * 3 + ending + b"\0" * 4
    end = len(data) - 4
    assert salvaged(data) == [1, (len(begin), 3, 1, 3), 3, (end, 4, 3, None)]


# ---- what it may cost ----------------------------------------------------------------------


def _costly(short_of_budget: int) -> bytes:
    """Return an op behind heads whose false claims leave it that many bytes of the budget."""
    size, end = 3 * CHUNK, small(3)
    left_for_claims = 8 * size + MAX_OP_BYTES - short_of_budget
    data = bytearray(JUNK * size)
    begin = segment_bytes([ops.StartLogSegment()])
    data[: len(begin)], data[-len(end) :] = begin, end
    # The first is the damage itself; to check it, all the rest is read.
    claims = [size - len(begin)]
    whole, rest = divmod(left_for_claims - claims[0], CHUNK)
    claims += [CHUNK] * (whole - 1) + [CHUNK // 2, CHUNK // 2 + rest]
    step = (size - CHUNK - len(begin)) // len(claims)
    for number, claim in enumerate(claims):
        _put(data, len(begin) + number * step, claim)
    # What the file cannot hold is not checked, and costs nothing.
    for place in range(len(begin) + step // 2, CHUNK, 10 * step):
        _put(data, place, size - place + 1)
    return bytes(data)


def _put(data: bytearray, place: int, claim: int) -> None:
    head = claiming(claim)
    data[place : place + len(head)] = head


@pytest.mark.parametrize(
    ("left", "found"),
    [(SMALLEST[FRAMED], [3]), (SMALLEST[FRAMED] - 1, [])],
    ids=["enough is left", "one byte too few is left"],
)
def test_false_claims_are_checked_up_to_the_budget(left: int, found: Sequence[int]) -> None:
    assert [item for item in salvaged(_costly(left)) if isinstance(item, int)] == [1, *found]


def test_a_claim_of_more_than_any_op_has_is_not_read() -> None:
    huge = MAX_OP_BYTES + CHUNK
    begin = segment_bytes([ops.StartLogSegment()])
    head = claiming(huge)
    counted = Counted(begin + head + b"\xff" * huge)
    assert salvaged(counted) == [1, (len(begin), len(head), 1, None)]
    assert max(counted.reads) <= 2 * CHUNK


def test_many_damages_do_not_make_it_read_the_file_for_each() -> None:
    written = [ops.Mkdir(1, "/" + "x" * 10_350, 1, 1, PERMISSION)] * 100
    begin = segment_bytes([ops.StartLogSegment()])
    data = begin + b"".join(JUNK + frame for frame in frames(written, first=2))
    assert 0.98 * CHUNK < len(data) < CHUNK
    counted = Counted(data + b"\xff" * (4 * CHUNK))
    assert [item for item in salvaged(counted) if isinstance(item, int)] == list(range(1, 102))
    assert sum(counted.reads) < 3 * counted.size


def test_a_long_damage_is_searched_piece_by_piece() -> None:
    begin = segment_bytes([ops.StartLogSegment()])
    junk = JUNK * (3 * CHUNK)
    counted = Counted(begin + junk + small(3))
    assert salvaged(counted) == [1, (len(begin), len(junk), 1, 3), 3]
    assert max(counted.reads) < 2 * CHUNK
