"""A window over a file: what it holds, what it reads, and files that change under it."""

import pytest

from namenode_sim.edits.window import FileWindow
from tests.namenode_sim.edits.counted import Counted

DATA = bytes(range(40))


def held(window: FileWindow, offset: int, count: int) -> bytes:
    at = window.hold(offset, count)
    return window.data[at : at + count]


def test_a_window_begins_empty_and_knows_the_file_s_size() -> None:
    window = FileWindow(Counted(DATA).file)
    assert (window.base, window.end, window.size) == (0, 0, len(DATA))


@pytest.mark.parametrize(
    "places",
    [(0, 8, 16), (30, 20, 0), (0, 7, 1), (9, 2, 35)],
    ids=["forwards", "backwards", "within what is held", "to and fro"],
)
def test_every_place_shows_its_own_bytes(places: tuple[int, ...]) -> None:
    window = FileWindow(Counted(DATA).file, 8)
    for place in places:
        assert held(window, place, 5) == DATA[place : place + 5]


CALLS = {"the whole window": (0, 8), "its end": (5, 3), "its last byte": (7, 1)}


@pytest.mark.parametrize(("offset", "count"), CALLS.values(), ids=CALLS)
def test_what_is_held_is_not_read_again(offset: int, count: int) -> None:
    counted = Counted(DATA)
    window = FileWindow(counted.file, 8)
    window.hold(0)
    window.hold(offset, count)
    assert counted.reads == [8]


def test_the_end_of_the_file_is_not_read_again_for_want_of_more() -> None:
    counted = Counted(DATA)
    window = FileWindow(counted.file, 8)
    for _ in range(3):
        assert held(window, 35, 1000) == DATA[35:]
    assert counted.reads == [5]


@pytest.mark.parametrize("count", [1, 1000], ids=["within the size", "beyond it"])
def test_what_a_writer_appends_is_not_seen(count: int) -> None:
    counted = Counted(DATA)
    window = FileWindow(counted.file, 100)
    counted.append(b"more")
    window.hold(30, count)
    assert window.data == DATA[30:]
    assert (window.base, window.end, window.size) == (30, len(DATA), len(DATA))


def test_a_file_that_is_cut_ends_where_it_was_cut() -> None:
    counted = Counted(DATA)
    window = FileWindow(counted.file, 8)
    counted.cut(20)
    assert held(window, 15, 10) == DATA[15:20]
    assert window.size == 20


PADDED = {
    "no padding": (b"abc", 0, 3),
    "less than a window": (b"abcde---", 0, 5),
    "a window": (b"abcdefgh" + b"-" * 8, 0, 8),
    "many windows": (b"abc" + b"-" * 50, 0, 3),
    "also before other bytes": (b"a" + b"-" * 30 + b"b" + b"-" * 3, 0, 32),
    "before the start": (b"----" + b"-" * 30, 4, 4),
    "other bytes before the start": (b"abc---" + b"-" * 30, 4, 4),
}


@pytest.mark.parametrize(("data", "start", "end"), PADDED.values(), ids=PADDED)
def test_the_last_byte_that_is_no_padding_is_found(data: bytes, start: int, end: int) -> None:
    assert FileWindow(Counted(data).file, 8).last_not_in(b"-", start) == end


def test_the_search_behind_padding_reads_a_window_at_a_time() -> None:
    counted = Counted(b"abc" + b"-" * 80)
    assert FileWindow(counted.file, 8).last_not_in(b"-", 0) == 3
    assert max(counted.reads) == 8
    assert sum(counted.reads) == 88  # each window once, and a whole one for the rest
