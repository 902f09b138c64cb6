"""Coming back into a segment, by itself: each answer of the node, and the watch for it."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from journal.errors import Fenced, JournalError, OutOfSync, QuorumLost, StorageFailed, Unavailable
from journal.links.settings import WriterSettings
from journal.model import Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.writer.rejoin import Reconnection, rejoin, reopen, serving
from journal.writer.window import SegmentEnd

LAST = TxId(9)
MARK = SegmentEnd(TxId(1), LAST, b"d" * 32, -65)
SECONDS = 30.0


class Window:
    """One whose open segment begins at 1, and that keeps the edits from 5 on."""

    segment_first: TxId | None = TxId(1)
    layout_version = -65
    next = TxId(LAST + 1)

    def covers(self, txid: TxId) -> bool:
        return 5 <= txid <= self.next

    lost: Exception | None = None

    async def committed_mark(self) -> SegmentEnd:
        if self.lost is not None:
            raise self.lost
        return MARK


class Node:
    """Says how far it has come, or an error, and fetches what it is given the place of."""

    learner: str | None = None

    def __init__(self, *says: int | Exception) -> None:
        self._says = list(says)
        self.reconnects: Exception | None = None
        self.fetched: list[tuple[int, Sequence[str]]] = []

    async def resume_segment(self, *_: object) -> TxId:
        said = self._says.pop(0)
        if isinstance(said, Exception):
            raise said
        return TxId(said)

    async def wait_until_reconnected(self) -> None:
        if self.reconnects is not None:
            raise self.reconnects

    async def catch_up(
        self,
        _info: object,
        segment: Segment,
        _layout: int,
        urls: Sequence[str],
        _seconds: float,
    ) -> TxId:
        self.fetched.append((segment.last, urls))
        return TxId(segment.last + 1)


async def came_back(node: Node, window: Window | None = None) -> TxId:
    async def sources(mark: SegmentEnd) -> Sequence[str]:
        assert mark is MARK
        return ["http://there"]

    there = cast(Any, node), cast(Any, window or Window())
    return await rejoin(*there, pb.RequestInfo, sources, WriterSettings())


@pytest.mark.parametrize("said", [3, StorageFailed("its copy is damaged")])
async def test_what_a_node_lacks_or_has_damaged_it_fetches(said: int | Exception) -> None:
    node = Node(said)
    assert await came_back(node) == LAST + 1
    assert node.fetched == [(LAST, ["http://there"])]


async def test_a_node_that_lacks_what_the_window_has_fetches_nothing() -> None:
    node = Node(7)
    assert await came_back(node) == 7
    assert node.fetched == []


@pytest.mark.parametrize(
    "said", [Unavailable("down"), Fenced("newer", promised=cast(Any, 7)), KeyError("a fault")]
)
async def test_any_other_answer_is_no_damage(said: Exception) -> None:
    node = Node(said)
    with pytest.raises(type(said)):
        await came_back(node)
    assert node.fetched == []


async def test_without_a_quorum_there_is_nothing_to_catch_up_with() -> None:
    """A lost quorum is the writer's end, and no word of the node; any other error is a fault."""
    for lost, shown in (
        (QuorumLost("too few", failures={}), "nothing to catch up with: too few"),
        (KeyError("a fault"), "a fault"),
    ):
        window = Window()
        window.lost = lost
        with pytest.raises((Unavailable, KeyError), match=shown):
            await came_back(Node(3), window)


DOWN = Unavailable("down")


@pytest.mark.parametrize(
    ("says", "reconnects", "raised", "text"),
    [
        ([7], None, None, ""),
        ([DOWN, 7], None, None, ""),
        ([DOWN, DOWN], None, Unavailable, "down"),
        ([DOWN], TimeoutError(), Unavailable, "down"),
        ([DOWN], KeyError("a fault"), KeyError, "a fault"),
        ([KeyError("a fault"), 7], None, KeyError, "a fault"),
        ([6], None, OutOfSync, "it came back, and goes on at 6; 7 comes next"),
    ],
    ids=["here", "back", "down again", "away", "a fault in the wait", "a fault", "behind"],
)
async def test_a_node_that_may_have_restarted_opens_the_segment_again(
    says: list[int | Exception],
    reconnects: Exception | None,
    raised: type[Exception] | None,
    text: str,
) -> None:
    async def again(learner: str | None = None) -> None:
        node = Node(*says)
        node.reconnects = reconnects
        await reopen(
            cast(Any, node), TxId(1), TxId(7), -65, pb.RequestInfo, WriterSettings(),
            learner=learner,
        )  # fmt: skip

    if raised is None:
        await again()
        with pytest.raises(OutOfSync, match="it came back as another one"):
            await again("which was a learner")
    else:
        with pytest.raises(raised, match=text):
            await again()


async def test_only_those_that_answer_serve_a_segment() -> None:
    class Holder:
        def __init__(self, says: int | Exception) -> None:
            self._says = says

        async def journal_state(self, _seconds: float) -> pb.GetJournalStateReply:
            if isinstance(self._says, Exception):
                raise self._says
            return pb.GetJournalStateReply(http_port=self._says)

        def segment_url(self, port: int, first: TxId, _: object, *, in_progress: bool) -> str:
            return f"{port}/{first}/{in_progress}"

    async def found(*says: int | Exception) -> list[str]:
        holders = cast(Any, [Holder(one) for one in says])
        return await serving(holders, TxId(1), cast(Any, None), SECONDS)

    assert await found(1, Unavailable("down"), 3) == ["1/1/True", "3/1/True"]
    with pytest.raises(KeyError):
        await found(1, KeyError("a fault"))


async def test_a_node_ahead_of_the_writer_and_a_closed_segment_are_refused() -> None:
    with pytest.raises(OutOfSync, match="it expects 11, but 10 was not written yet"):
        await came_back(Node(11))
    closed = Window()
    closed.segment_first = None
    with pytest.raises(OutOfSync, match="no segment is open"):
        await came_back(Node(7), closed)


class Away:
    """A node whose connection is made again when that is said."""

    def __init__(self) -> None:
        self.back = asyncio.Event()
        self.failure: JournalError | None = None
        self.asked = 0

    async def wait_until_reconnected(self) -> None:
        self.asked += 1
        await self.back.wait()
        if self.failure is not None:
            raise self.failure


async def test_a_node_that_is_back_is_reported_once_and_not_if_that_is_forgotten() -> None:
    away, reported = Away(), list[int]()
    watch = Reconnection(cast(Any, away), lambda: reported.append(1))
    watch.forget()  # nothing is watched
    watch.watch()
    watch.watch()
    await asyncio.sleep(0)
    assert away.asked == 1
    before = asyncio.all_tasks()
    watch.forget()
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == len(before) - 1
    assert reported == []
    for failure, times in ((Unavailable("gone"), 0), (None, 1)):
        away.back, away.failure = asyncio.Event(), failure
        watch.watch()
        away.back.set()
        for _ in range(3):
            await asyncio.sleep(0)
        assert reported == [1] * times
