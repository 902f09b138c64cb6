"""Coming back into a segment: each answer of a node over a link in memory, and the watch for it."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

import pytest
from google.protobuf.message import Message

from journal.errors import Fenced, JournalError, OutOfSync, StorageFailed, Unavailable
from journal.links.link import WriteStream
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.links.settings import WriterSettings
from journal.model import LAYOUT_VERSION, Epoch, JournalId, TxId
from journal.proto import journal_pb2 as pb
from journal.writer.rejoin import Reconnection, rejoin, reopen, serving
from journal.writer.window import SegmentEnd, Window
from tests.journal.core.requests_of import NAMESPACE
from tests.journal.writer.test_window import A, B, C, ack, opened, write

M = TypeVar("M", bound=Message)
LAST = TxId(9)
"""Of the window; a node that is up to date asks for the next one."""
KEPT_FROM = TxId(5)
DOWN = Unavailable("down")
SECONDS = 30.0


class Answers:
    """A link whose node gives these answers in turn; an error among them is raised."""

    def __init__(self, *answers: Message | Exception) -> None:
        self.left = list(answers)
        self.asked: list[tuple[str, Message]] = []
        self.reconnects: Exception | None = None
        self.back = asyncio.Event()
        """The connection is made again."""
        self.back.set()
        self.waited_for = 0

    async def call(
        self, method: str, request: Message, reply: type[M], timeout_seconds: float
    ) -> M:
        self.asked.append((method, request))
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, reply)
        return answer

    def open_write_stream(self) -> WriteStream:
        raise NotImplementedError

    async def wait_until_reconnected(self) -> None:
        self.waited_for += 1
        await self.back.wait()
        if self.reconnects is not None:
            raise self.reconnects

    async def close(self) -> None:
        """There is nothing to close."""

    @property
    def fetched(self) -> list[tuple[int, list[str]]]:
        """The last edits that the node was to fetch, and from where."""
        found = (request for _, request in self.asked if isinstance(request, pb.CatchUpRequest))
        return [(one.segment.last_txid, list(one.source_urls)) for one in found]


def goes_on_at(txid: int, learner: str = "") -> pb.ResumeSegmentReply:
    return pb.ResumeSegmentReply(next_txid=txid, is_learner=bool(learner), incarnation=learner)


def node(link: Answers, host: str = "there") -> RemoteNode:
    return RemoteNode(host, 1, JournalAddress(JournalId("ns1"), "ns1", link=lambda *_: link))


def window() -> Window:
    """Return one whose segment begins at 1, and that keeps the edits from 5 on."""
    made = opened(limit_bytes=120)
    for count in (4, 3, 2):
        write(made, count)
        for one in (A, B, C):
            ack(made, one, made.next - 1)
    assert [made.covers(TxId(txid)) for txid in (KEPT_FROM - 1, KEPT_FROM)] == [False, True]
    assert made.next == LAST + 1
    return made


async def came_back(link: Answers, of: Window | None = None) -> TxId:
    async def sources(mark: SegmentEnd) -> Sequence[str]:
        return [f"http://there/{mark.last}"]

    return await rejoin(node(link), of or window(), pb.RequestInfo, sources, WriterSettings())


@pytest.mark.parametrize("said", [goes_on_at(3), StorageFailed("its copy is damaged")])
async def test_what_a_node_lacks_or_has_damaged_it_fetches(said: Message | Exception) -> None:
    link = Answers(said, goes_on_at(LAST + 1))
    assert await came_back(link) == LAST + 1
    assert link.fetched == [(LAST, [f"http://there/{LAST}"])]


async def test_a_node_that_lacks_what_the_window_has_fetches_nothing() -> None:
    link = Answers(goes_on_at(7))
    assert await came_back(link) == 7
    assert link.fetched == []


@pytest.mark.parametrize("said", [DOWN, Fenced("newer", promised=Epoch(7)), KeyError("a fault")])
async def test_any_other_answer_is_no_damage(said: Exception) -> None:
    link = Answers(said)
    with pytest.raises(type(said)):
        await came_back(link)
    assert link.fetched == []


async def test_without_a_quorum_there_is_nothing_to_catch_up_with() -> None:
    """A lost quorum is the writer's end, and no word of the node."""
    lost = window()
    written = write(lost)
    back = asyncio.create_task(came_back(Answers(goes_on_at(3)), lost))
    await asyncio.sleep(0)
    for one in (A, B):
        lost.failed(one, DOWN)
    with pytest.raises(Unavailable, match="nothing to catch up with: "):
        await back
    assert isinstance(written.exception(), JournalError)


@pytest.mark.parametrize(
    ("answers", "reconnects", "raised", "text"),
    [
        ([goes_on_at(7)], None, None, ""),
        ([DOWN, goes_on_at(7)], None, None, ""),
        ([DOWN, DOWN], None, Unavailable, "down"),
        ([DOWN], TimeoutError(), Unavailable, "down"),
        ([DOWN], KeyError("a fault"), KeyError, "a fault"),
        ([KeyError("a fault"), goes_on_at(7)], None, KeyError, "a fault"),
        ([goes_on_at(6)], None, OutOfSync, "it came back, and goes on at 6; 7 comes next"),
        ([goes_on_at(7, "z")], None, OutOfSync, "it came back as another one"),
    ],
    ids=["here", "back", "down again", "away", "a fault in the wait", "a fault", "behind", "wiped"],
)
async def test_a_node_that_may_have_restarted_opens_the_segment_again(
    answers: list[Message | Exception],
    reconnects: Exception | None,
    raised: type[Exception] | None,
    text: str,
) -> None:
    link = Answers(*answers)
    link.reconnects = reconnects
    again = reopen(
        node(link), TxId(1), TxId(7), LAYOUT_VERSION, pb.RequestInfo, WriterSettings(),
        learner=None,
    )  # fmt: skip
    if raised is None:
        await again
        assert link.left == []
    else:
        with pytest.raises(raised, match=text):
            await again


async def test_only_those_that_answer_serve_a_segment() -> None:
    def state(port: int) -> pb.GetJournalStateReply:
        return pb.GetJournalStateReply(http_port=port)

    async def found(*answers: Message | Exception) -> list[str]:
        nodes = [node(Answers(one), f"h{at}") for at, one in enumerate(answers)]
        urls = await serving(nodes, TxId(1), NAMESPACE, SECONDS)
        return [url.partition("/getJournal")[0] for url in urls]

    assert await found(state(1), DOWN, state(3)) == ["http://h0:1", "http://h2:3"]
    with pytest.raises(KeyError):
        await found(state(1), KeyError("a fault"))


async def test_a_node_ahead_of_the_writer_and_a_closed_segment_are_refused() -> None:
    for answers in ((11,), (3, 11)):  # at once, and behind what it was to fetch
        with pytest.raises(OutOfSync, match="it expects 11, but 10 was not written yet"):
            await came_back(Answers(*map(goes_on_at, answers)))
    closed = window()
    closed.finish()
    with pytest.raises(OutOfSync, match="no segment is open"):
        await came_back(Answers(), closed)


async def test_a_node_that_is_back_is_reported_once_and_not_if_that_is_forgotten() -> None:
    link, reported = Answers(), list[int]()
    link.back.clear()
    watch = Reconnection(node(link), lambda: reported.append(1))
    watch.forget()  # nothing is watched
    watch.watch()
    watch.watch()
    await turns()
    assert link.waited_for == 1
    before = asyncio.all_tasks()
    watch.forget()
    await turns()
    assert len(asyncio.all_tasks()) == len(before) - 1
    assert reported == []
    for failure, times in ((DOWN, 0), (None, 1)):
        link.reconnects = failure
        link.back.clear()
        watch.watch()
        await turns()
        link.back.set()
        await turns()
        assert reported == [1] * times


async def turns() -> None:
    """Let what is due run."""
    for _ in range(3):
        await asyncio.sleep(0)
