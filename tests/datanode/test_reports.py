"""What is reported to NameNodes: rows of full reports, and news that collapse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datanode import model
from datanode.namenodes import incremental_reports as incremental
from datanode.namenodes.incremental_reports import IncrementalQueue
from datanode.namenodes.report_rows import BUFFER_BYTES, encode_rows
from datanode.replicas.operations import News
from datanode.replicas.store import Announcement
from hadoop.blocks import Block, BlockId, GenerationStamp

DISK, OTHER = model.StorageId("DS-1"), model.StorageId("DS-2")


def whole(number: int, length: int, stamp: int) -> model.Finalized:
    return model.Finalized(Block(BlockId(number), GenerationStamp(stamp)), DISK, length)


def test_rows_are_those_of_a_java_data_node() -> None:
    replicas = [whole(1073741825, 300000, 1001), whole(1073741826, 70000, 1002)]
    count, buffers = encode_rows(replicas)
    assert count == 2
    assert b"".join(buffers).hex(" ") == (
        "82 80 80 80 08 e0 a7 12 e9 07 00 84 80 80 80 08 f0 a2 04 ea 07 00"
    )


def numbers(data: bytes) -> list[int]:
    found, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(number)
            number, shift = 0, 0
    assert shift == 0
    return found


KINDS = st.sampled_from([model.Finalized, model.BeingWritten, model.Temporary])
REPLICAS = st.lists(
    st.builds(
        lambda kind, number, stamp, length: kind(
            Block(BlockId(number), GenerationStamp(stamp)), DISK, length
        ),
        KINDS,
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.integers(0, 1 << 62),
        st.integers(0, 1 << 47),
    ),
    max_size=50,
)


@given(REPLICAS)
def test_rows_say_what_there_is_and_no_copies(replicas: list[model.Replica]) -> None:
    count, buffers = encode_rows(replicas)
    flat = numbers(b"".join(buffers))
    rows = [
        ((number >> 1) ^ -(number & 1), length, stamp, state)
        for number, length, stamp, state in zip(*[iter(flat)] * 4, strict=True)
    ]
    assert rows == [
        (one.block.block_id, one.length, one.block.stamp, model.reported_state(one))
        for one in replicas
        if not isinstance(one, model.Temporary)
    ]
    assert count == len(rows)


def test_buffers_have_a_limit() -> None:
    _, buffers = encode_rows(whole((1 << 30) + number, 1, 1001) for number in range(20_000))
    assert {len(one) for one in buffers[:-1]} == {BUFFER_BYTES}


def news(
    kind: News, number: int = 1, storage: model.StorageId = DISK, stamp: int = 1
) -> Announcement:
    return Announcement(kind, storage, Block(BlockId(number), GenerationStamp(stamp)), 0)


def test_the_newest_of_a_block_is_told_once() -> None:
    queue = IncrementalQueue()
    queue.add(news(News.RECEIVED))
    queue.add(news(News.DELETED, 2))
    assert queue.take() == {DISK: [news(News.RECEIVED), news(News.DELETED, 2)]}
    assert len(queue) == 0


@pytest.mark.parametrize("kind", News)
def test_only_a_whole_block_is_urgent(kind: News) -> None:
    queue = IncrementalQueue()
    queue.add(news(kind))
    assert queue.urgent is (kind is News.RECEIVED)
    queue.take()
    assert queue.urgent is False


def test_what_was_urgent_stays_urgent_until_it_is_told_or_forgotten() -> None:
    queue = IncrementalQueue()
    for kind in (News.RECEIVED, News.DELETED):
        queue.add(news(kind))
        assert queue.urgent
    queue.clear()
    assert not queue.urgent


def test_a_block_that_moved_is_told_of_one_storage() -> None:
    queue = IncrementalQueue()
    queue.add(news(News.DELETED))
    queue.add(news(News.RECEIVED, storage=OTHER))
    assert queue.take() == {OTHER: [news(News.RECEIVED, storage=OTHER)]}


def test_what_was_not_answered_is_told_again_unless_newer_news_came() -> None:
    queue = IncrementalQueue()
    queue.add(news(News.RECEIVED, 1))
    queue.add(news(News.RECEIVED, 2))
    taken = queue.take()
    queue.add(news(News.DELETED, 2))
    queue.put_back(taken)
    told = {one.block.block_id: one.news for one in queue.take()[DISK]}
    assert told == {1: News.RECEIVED, 2: News.DELETED}


def test_newer_news_of_a_block_on_any_storage_replaces_what_was_not_answered() -> None:
    queue = IncrementalQueue()
    queue.add(news(News.RECEIVED))
    taken = queue.take()
    queue.add(news(News.DELETED))
    queue.add(news(News.RECEIVED, 2, OTHER))
    queue.put_back(taken)
    assert queue.take() == {
        DISK: [news(News.DELETED)], OTHER: [news(News.RECEIVED, 2, OTHER)],
    }  # fmt: skip


@pytest.mark.parametrize("unanswered", [False, True])
def test_of_what_is_here_no_more_only_its_deletion_is_told(*, unanswered: bool) -> None:
    queue = IncrementalQueue()
    for number, kind in enumerate((News.RECEIVING, News.RECEIVED, News.DELETED, News.RECEIVED)):
        queue.add(news(kind, number))
    if unanswered:
        queue.put_back(queue.take())
    told = queue.take(lambda one: one.block.block_id == 3)
    assert told == {DISK: [news(News.DELETED, 2), news(News.RECEIVED, 3)]}
    assert (len(queue), queue.urgent) == (0, False)


def test_a_report_has_a_limit_for_all_storages_together() -> None:
    queue = IncrementalQueue()
    for number in range(incremental.MAX_BLOCKS + 1):
        queue.add(news(News.DELETED, number, (DISK, OTHER)[number % 2]))
    assert sum(map(len, queue.take().values())) == incremental.MAX_BLOCKS
    assert (len(queue), queue.urgent) == (1, True)


def test_a_report_has_a_limit_and_the_rest_follows() -> None:
    queue = IncrementalQueue()
    for number in range(incremental.MAX_BLOCKS + 5):
        queue.add(news(News.DELETED, number))
    assert len(queue.take()[DISK]) == incremental.MAX_BLOCKS
    assert queue.urgent
    assert len(queue.take()[DISK]) == 5
    queue.add(news(News.RECEIVED))
    queue.clear()
    assert queue.take() == {}
