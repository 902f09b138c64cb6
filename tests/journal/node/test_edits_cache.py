"""Hadoop's TestJournaledEditsCache, row by row, and what else the cache must hold to."""

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import journal as keys
from ha.conf.keys.namenode import TAIL_IN_PROGRESS
from journal.errors import CacheMiss
from journal.model import LAYOUT_VERSION, Epoch, Segment, TxId
from journal.node.owner.edits_cache import Batch, EditsCache, NotCached, Retrieved
from journal.node.process.command import edits_cache_bytes, memory_limit
from tests.journal.core.requests_of import record, records

EDIT_BYTES = len(record(1))
CAPACITY = 100 * EDIT_BYTES


def batch(first: int, last: int, writer: int = 1, layout: int = LAYOUT_VERSION) -> Batch:
    data = records(first, last, writer)
    return Batch(TxId(first), TxId(last), Epoch(writer), layout, data)


def cache_of(*ranges: tuple[int, int]) -> EditsCache:
    cache = EditsCache(CAPACITY)
    for first, last in ranges:
        assert cache.store(batch(first, last))
    return cache


def ask(cache: EditsCache, since: int, count: int, max_bytes: int = 1 << 30) -> Retrieved:
    return cache.retrieve(TxId(since), max_txns=count, max_bytes=max_bytes)


SINGLE = {
    "head": (1, 3, 3),
    "all": (1, 20, 20),
    "past": (1, 40, 20),
    "tail": (11, 10, 10),
    "past the tail": (11, 50, 10),
    "middle": (5, 7, 7),
}


@pytest.mark.row("8.5 TestJournaledEditsCache", because="each of its cases is a test of this file")
@pytest.mark.parametrize(("since", "count", "expected"), SINGLE.values(), ids=SINGLE)
def test_cache_single_segment(since: int, count: int, expected: int) -> None:
    found = ask(cache_of((1, 20)), since, count)
    assert (found.count, found.records) == (expected, records(since, since + expected - 1))
    assert found.layout_version == LAYOUT_VERSION
    assert found.writers == ((since + expected - 1, 1),)


THREE = [(1, 5), (1, 13), (1, 7), (6, 7), (7, 9), (11, 5), (1, 50), (15, 1)]


@pytest.mark.row("8.5 TestJournaledEditsCache")
@pytest.mark.parametrize(("since", "count"), THREE)
def test_cache_batches_on_and_off_their_boundaries(since: int, count: int) -> None:
    found = ask(cache_of((1, 5), (6, 10), (11, 15)), since, count)
    last = min(15, since + count - 1)
    assert (found.count, found.records) == (last - since + 1, records(since, last))


@pytest.mark.row("8.5 TestJournaledEditsCache")
def test_cache_above_capacity_serves_the_tail_only() -> None:
    third = 33
    cache = cache_of(*((i * third + 1, (i + 1) * third) for i in range(5)))
    assert cache.range == (67, 165)
    assert cache.size_bytes <= CAPACITY
    with pytest.raises(NotCached) as miss:
        ask(cache, 1, 10)
    assert miss.value.missed == 66
    assert ask(cache, 67, 500).records == records(67, 165)


@pytest.mark.row("8.5 TestJournaledEditsCache")
def test_cache_single_add_over_capacity_empties_it() -> None:
    cache = cache_of((1, 10))
    assert not cache.store(batch(11, 210))
    assert (cache.range, cache.size_bytes) == (None, 0)
    assert cache.store(batch(211, 215))
    assert ask(cache, 211, 5).records == records(211, 215)


@pytest.mark.row("8.5 TestJournaledEditsCache")
def test_cache_with_a_future_layout_scans_it() -> None:
    cache = EditsCache(CAPACITY)
    cache.store(batch(1, 10, layout=-9999))
    found = ask(cache, 3, 4)
    assert (found.layout_version, found.records) == (-9999, records(3, 6))


@pytest.mark.row("8.5 TestJournaledEditsCache")
def test_cache_layout_change_ends_an_answer() -> None:
    """Hadoop drops the old part; we serve it, and the new layout with the next question."""
    cache = cache_of((1, 5))
    cache.store(batch(6, 10, layout=-99))
    old, new = ask(cache, 1, 50), ask(cache, 6, 50)
    assert (old.count, old.layout_version) == (5, LAYOUT_VERSION)
    assert (new.count, new.layout_version) == (5, -99)


@pytest.mark.row("8.5 TestJournaledEditsCache")
def test_cache_edits_with_a_gap_begins_anew() -> None:
    cache = cache_of((1, 5), (10, 15))
    with pytest.raises(NotCached) as miss:
        ask(cache, 1, 20)
    assert miss.value.missed == 9
    assert ask(cache, 10, 20).records == records(10, 15)


@pytest.mark.row("8.5 TestJournaledEditsCache")
def test_cache_uninitialized_is_a_miss() -> None:
    with pytest.raises(CacheMiss, match="nothing is kept"):
        ask(cache_of(), 1, 10)


@pytest.mark.row("8.5 TestJournaledEditsCache")
def test_cache_malformed_input_start_before_everything_is_a_miss() -> None:
    with pytest.raises(CacheMiss):
        ask(cache_of((1, 5)), -1, 10)


@pytest.mark.row("8.5 TestJournaledEditsCache")
def test_cache_capacity_from_bytes_or_fraction(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")

    def configured(*pairs: str) -> Configuration:
        return load_configuration(tmp_path, [f"{TAIL_IN_PROGRESS.name}=true", *pairs])

    assert edits_cache_bytes(load_configuration(tmp_path, [])) == 0
    assert edits_cache_bytes(configured()) == 16 * 1024 * 1024
    half = configured(f"{keys.CACHE_FRACTION.name}=0.5")
    assert edits_cache_bytes(half) == memory_limit() // 2
    both = configured(f"{keys.CACHE_FRACTION.name}=0.5", f"{keys.CACHE_SIZE.name}=1000")
    assert edits_cache_bytes(both) == 1000
    for bad in (f"{keys.CACHE_FRACTION.name}=1.0", f"{keys.CACHE_SIZE.name}=0"):
        with pytest.raises(ConfigurationError):
            edits_cache_bytes(configured(bad))


def test_an_answer_is_bounded_in_bytes_but_never_empty() -> None:
    cache = cache_of((1, 5), (6, 10))
    assert ask(cache, 1, 10, max_bytes=EDIT_BYTES * 7 + 3).records == records(1, 7)
    assert ask(cache, 4, 10, max_bytes=1).records == records(4, 4)


def test_an_answer_names_the_writer_of_each_run() -> None:
    cache = cache_of((1, 4), (5, 6))
    cache.store(batch(7, 9, writer=3))
    assert ask(cache, 2, 7).writers == ((6, 1), (8, 3))


def by_edits(batches: list[Batch], since: int, most: int, most_bytes: int) -> Retrieved:
    edits = [
        (txid, one.writer, one.layout_version, records(txid, txid, one.writer))
        for one in batches
        for txid in range(one.first, one.last + 1)
        if txid >= since
    ]
    taken: list[tuple[int, Epoch, int, bytes]] = []
    for edit in edits[: max(1, most)]:
        size = sum(len(each[3]) for each in (*taken, edit))
        if taken and (edit[2] != taken[0][2] or size > most_bytes):
            break
        taken.append(edit)
    ends = [one for one, then in pairwise(taken) if then[1] != one[1]] + taken[-1:]
    writers = tuple((TxId(one[0]), one[1]) for one in ends)
    return Retrieved(len(taken), edits[0][2], b"".join(one[3] for one in taken), writers)


@pytest.mark.parametrize("seed", range(20))
def test_an_answer_is_what_it_would_be_edit_by_edit(seed: int) -> None:
    rng = Random(seed)
    for _ in range(100):
        cache, batches, first = EditsCache(CAPACITY), [], 1
        for _ in range(rng.randint(1, 5)):
            last = first + rng.randint(0, 3)
            layout = rng.choice((LAYOUT_VERSION, LAYOUT_VERSION, LAYOUT_VERSION, -99))
            batches.append(batch(first, last, rng.choice((1, 1, 2)), layout))
            assert cache.store(batches[-1])
            first = last + 1
        since, most = rng.randrange(1, first), rng.randint(0, first + 1)
        most_bytes = max(0, EDIT_BYTES * rng.randint(0, first + 1) + rng.choice((-1, 0, 0, 1)))
        expected = by_edits(batches, since, most, most_bytes)
        assert ask(cache, since, most, most_bytes) == expected


BEGUN_LATE = ((101, 150), (151, 200), (201, 230))
"""The first of these does not fit next to the last."""
MISSED = {
    "let go for want of room": (BEGUN_LATE, 120, 31),
    "the first of all, let go": (BEGUN_LATE, 101, 50),
    "from before the first edit ever kept": (BEGUN_LATE, 90, 11),
    "from before what was kept ahead of a gap": (((5, 8), (20, 25)), 3, 17),
    "behind the newest": (BEGUN_LATE, 231, 0),
    "of nothing": ((), 1, 0),
}


@pytest.mark.parametrize(("ranges", "since", "missed"), MISSED.values(), ids=MISSED)
def test_a_miss_tells_how_many_edits_more_memory_would_have_kept(
    ranges: tuple[tuple[int, int], ...], since: int, missed: int
) -> None:
    with pytest.raises(NotCached) as miss:
        ask(cache_of(*ranges), since, 10)
    assert miss.value.missed == missed


def test_a_cache_has_room() -> None:
    assert EditsCache(1).size_bytes == 0
    with pytest.raises(ValueError, match="needs room"):
        EditsCache(0)


def test_a_cache_that_is_full_to_the_byte_keeps_everything() -> None:
    cache = cache_of((1, 50), (51, 100))
    assert (cache.range, cache.size_bytes) == ((1, 100), CAPACITY)
    assert cache.store(batch(101, 101))
    assert (cache.range, cache.size_bytes) == ((51, 101), 51 * EDIT_BYTES)
    assert cache.store(batch(102, 201))
    assert (cache.range, cache.size_bytes) == ((102, 201), CAPACITY)


def test_nothing_is_copied_until_it_is_sent() -> None:
    one = batch(1, 5)
    cache = EditsCache(CAPACITY)
    cache.store(one)
    assert ask(cache, 1, 5).records is one.records


@pytest.mark.parametrize("kept", [((1, 7),), ((1, 5), (7, 8))])
def test_a_batch_that_is_replaced_in_part_is_taken_back(kept: tuple[tuple[int, int], ...]) -> None:
    cache = cache_of((1, 5), (6, 8))
    cache.keep_only([Segment(TxId(first), TxId(last), finalized=True) for first, last in kept])
    assert cache.range == (1, 5)


def test_edits_that_may_be_replaced_are_taken_back() -> None:
    cache = cache_of((1, 5), (6, 8), (9, 10))
    cache.keep_only([Segment(TxId(1), TxId(5), finalized=True)])
    assert (cache.range, cache.size_bytes) == ((1, 5), 5 * EDIT_BYTES)
    cache.keep_only([])
    assert (cache.range, cache.size_bytes) == (None, 0)
