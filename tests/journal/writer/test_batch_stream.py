"""Lanes and streams that end in every way, and whether the node may have been restarted since."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import grpc
import grpc.aio
import pytest

from ha.security.own_tls import OwnTls
from journal.errors import OutOfSync, Unavailable
from journal.lane import ANSWER, HEADER, HEADER_BYTES, SERIAL_BYTES, WELCOME, Offer
from journal.links.lane_client import Lane
from journal.links.link import WriterMessage, WriteStream
from journal.links.remote_node import RemoteNode
from journal.model import Epoch, NodeName, TxId
from journal.proto import journal_pb2 as pb
from journal.refusals import refusal
from journal.writer import batch_stream
from journal.writer.batch_stream import BatchSender
from tests.log_lines import captured

PORT = 8490
Reply = Callable[[pb.WriteRequest], object]


def echoed(request: pb.WriteRequest) -> object:
    return pb.WriteReply(serial=request.info.serial)


class Stream:
    """A stream whose node answers as the test wants; an exception ends it."""

    def __init__(self, node: "Node") -> None:
        self.node, self.ended, self.asked = node, False, list[pb.WriteRequest]()

    async def write(self, request: pb.WriteRequest) -> None:
        self.node.carried.append("stream")
        self.asked.append(request)

    async def read(self) -> object:
        if self.node.silent:
            await asyncio.get_running_loop().create_future()
        reply = self.node.reply(self.asked.pop(0))
        if isinstance(reply, Exception):
            self.ended = True
            raise reply
        return reply

    def done(self) -> bool:
        return self.ended

    def cancel(self) -> bool:
        self.ended = True
        return True

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    async def details(self) -> str | None:
        return "it went away"

    async def trailing_metadata(self) -> Any:  # noqa: ANN401 - as in WriteStream
        return None


class LaneSocket:
    """The socket of a lane; ``closed`` is when the loop says that it is."""

    def __init__(self, node: "Node", lane: Lane) -> None:
        self.node, self.lane, self.aborted = node, lane, False
        lane.connection_made(cast(asyncio.Transport, self))
        lane.data_received(WELCOME)

    def write(self, data: bytes) -> None:
        self.node.carried.append("lane")
        serial = HEADER.unpack(data[:HEADER_BYTES])[1]
        answer = ANSWER.pack(SERIAL_BYTES, serial)
        asyncio.get_running_loop().call_soon(self.lane.data_received, answer)

    def abort(self) -> None:
        self.aborted = True

    def closed(self) -> None:
        self.lane.connection_lost(None)


class Node:
    """A node in memory, as far as batches and heartbeats go there."""

    def __init__(self) -> None:
        self.name = NodeName("jn:8485")
        self.lanes: Offer | None = None
        self.carried: list[str] = []
        self.reply: Reply = echoed
        self.silent = False
        self.lane_fails = False
        self.tried = 0
        self.lane_may_open = asyncio.Event()
        self.lane_may_open.set()
        self.streams: list[Stream] = []
        self.sockets: list[LaneSocket] = []

    def offers(self) -> None:
        self.lanes = Offer(PORT, b"k" * 16)

    def request_info(self, epoch: Epoch, serial: int, committed: TxId | None) -> pb.RequestInfo:
        return pb.RequestInfo(epoch=epoch, serial=serial, committed_txid=committed)

    def open_write_stream(self) -> WriteStream:
        self.streams.append(Stream(self))
        return self.streams[-1]

    async def open_lane(self, offer: Offer, deadline_seconds: float) -> Lane:
        assert offer is self.lanes
        self.tried += 1
        await self.lane_may_open.wait()
        if self.lane_fails:
            raise Unavailable("nobody there")
        self.sockets.append(LaneSocket(self, Lane(deadline_seconds)))
        return self.sockets[-1].lane


class Line:
    """A line to a node, and serials for what goes over it."""

    def __init__(self, node: Node, deadline_seconds: float = 30.0) -> None:
        self.line = BatchSender(cast(RemoteNode, node), deadline_seconds)
        self.begin, self.drop, self.prepare = self.line.begin, self.line.drop, self.line.prepare
        self.serial = 0

    @property
    def ready(self) -> bool:
        return self.line.ready

    @property
    def via(self) -> str:
        return self.line.via

    @property
    def unbroken(self) -> bool:
        return self.line.unbroken

    def seen(self) -> tuple[str, bool]:
        """Return what carries messages, and whether the node still has the segment open."""
        return self.via, self.unbroken

    async def send(self, count: int = 0) -> None:
        self.serial += 1
        edits = (TxId(1), TxId(1), count, b"e" * count) if count else ()
        await self.line.exchange(WriterMessage(self.serial, Epoch(1), None, 0, *edits))


@pytest.fixture
async def node() -> Node:
    return Node()


@pytest.fixture
def certified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open lanes next to a stream, as with certificates."""
    monkeypatch.setattr(batch_stream, "own_tls", lambda: OwnTls)


async def over_a_lane(node: Node) -> Line:
    line = Line(node)
    node.offers()
    line.begin()
    await line.send(1)
    assert (*line.seen(), line.ready) == ("lane", True, True)
    return line


async def over_a_stream(node: Node) -> Line:
    line = Line(node)
    line.begin()
    await line.send(1)
    assert (*line.seen(), line.ready) == ("stream", True, False)
    return line


async def test_a_lane_that_has_ended_is_a_break_until_the_node_has_the_segment_open_again(
    node: Node,
) -> None:
    """Refuse edits there: a node that was restarted in between has closed the segment."""
    line = await over_a_lane(node)
    node.sockets[0].closed()
    assert (*line.seen(), line.ready) == ("none", False, False)
    await line.send()
    assert (*line.seen(), line.ready) == ("stream", False, False)
    await line.send()
    assert line.seen() == ("stream", False), "an answer does not tell that it is open"
    node.offers()
    line.begin()
    assert line.seen() == ("none", True)
    await line.send(1)
    assert node.carried == ["lane", "stream", "stream", "lane"]
    assert line.seen() == ("lane", True)
    assert node.streams[0].ended, "either a lane or a stream"


async def test_a_lane_that_ends_between_two_segments_is_made_again_by_the_same_offer(
    node: Node,
) -> None:
    line = await over_a_lane(node)
    node.sockets[0].closed()
    line.begin()
    await line.send(1)
    assert line.seen() == ("lane", True)
    assert node.carried == ["lane", "lane"]


async def test_a_stream_that_has_ended_idle_is_a_break_too(node: Node) -> None:
    line = await over_a_stream(node)
    node.streams[0].ended = True
    assert line.seen() == ("none", False)
    await line.send()
    assert line.seen() == ("stream", False), "whoever answers may be a new process"
    node.streams[-1].ended = True
    line.begin()
    assert line.unbroken
    await line.send(1)
    assert line.seen() == ("stream", True)
    assert len(node.streams) == 3


async def test_a_stream_waits_until_the_socket_of_the_lane_before_is_closed(node: Node) -> None:
    """Send over the stream only when what was sent over the lane cannot come later."""
    line = await over_a_lane(node)
    node.sockets[0].lane.drop()
    assert node.sockets[0].aborted
    sending = asyncio.create_task(line.send())
    for _ in range(5):
        await asyncio.sleep(0)
    assert node.carried == ["lane"]
    node.sockets[0].closed()
    await sending
    assert node.carried == ["lane", "stream"]


async def test_what_is_dropped_is_ended_and_nothing_of_it_is_used_again(node: Node) -> None:
    for make in (over_a_lane, over_a_stream):
        node.lanes = None
        line = await make(node)
        line.drop()
        assert (*line.seen(), line.ready) == ("none", False, False)
    assert node.sockets[0].aborted
    assert node.streams[-1].ended


async def test_no_lane_is_opened_to_a_node_that_may_have_restarted(node: Node) -> None:
    line = await over_a_stream(node)
    node.offers()
    line.drop()
    await line.send()
    assert (line.via, node.sockets) == ("stream", [])


REFUSAL = refusal(OutOfSync("not now"))
ENDED = grpc.aio.AioRpcError(
    grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), details="cut"
)
ANSWERS: dict[str, tuple[Reply, type[Exception], str, bool]] = {
    "a refusal": (
        lambda r: pb.WriteReply(serial=r.info.serial, refusal=REFUSAL), OutOfSync, "not now", True,
    ),
    "another message's": (
        lambda r: pb.WriteReply(serial=r.info.serial - 1), Unavailable, "do not match", False,
    ),
    "the end": (lambda _: grpc.aio.EOF, Unavailable, "ended", False),
    "cut": (lambda _: ENDED, Unavailable, "cut", False),
    "finished": (lambda _: asyncio.InvalidStateError(), Unavailable, "it went away", False),
}  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "raised", "words", "goes_on"), ANSWERS.values(), ids=ANSWERS.keys()
)
async def test_after_anything_but_a_yes_or_a_no_the_stream_is_over(
    node: Node, reply: Reply, raised: type[Exception], words: str, goes_on: bool
) -> None:
    line = await over_a_stream(node)
    node.reply = reply
    with pytest.raises(raised, match=words):
        await line.send(1)
    assert line.seen() == (("stream", True) if goes_on else ("none", False))
    node.reply = echoed
    await line.send()
    assert (line.unbroken, len(node.streams)) == (goes_on, 1 if goes_on else 2)


async def test_a_node_that_says_nothing_is_not_waited_for(node: Node) -> None:
    line = Line(node, 0.01)
    node.silent = True
    line.begin()
    with pytest.raises(Unavailable, match=r"no answer within 0\.01 s"):
        await line.send(1)
    assert line.seen() == ("none", False)
    assert node.streams[0].ended, "its late answer would be taken for the next one's"


async def test_a_lane_that_cannot_be_made_is_tried_once_an_offer_and_told_once(node: Node) -> None:
    line = Line(node)
    tried: list[tuple[str, int]] = []
    with captured("journal.") as logs:
        for fails in (True, True, False, True):
            node.lane_fails = fails
            node.offers()
            for _ in range(2):
                line.begin()
                await line.send(1)
            tried.append((line.via, node.tried))
            for socket in node.sockets:
                socket.closed()
    assert tried == [("stream", 1), ("stream", 2), ("lane", 3), ("stream", 4)]
    assert [log["event"] for log in logs] == ["journal.lane_unavailable"] * 2, "before and after"


@pytest.mark.usefixtures("certified")
async def test_with_certificates_a_lane_opens_beside_and_the_stream_stays_until_then(
    node: Node,
) -> None:
    line = Line(node)
    node.offers()
    node.lane_may_open.clear()
    line.prepare()
    line.prepare()
    assert len(node.streams) == 1
    line.begin()
    await line.send()
    await line.send(1)
    await asyncio.sleep(0)
    assert node.tried == 0, "none before the first edits are there"
    await line.send(1)
    await line.send(1)
    node.lane_may_open.set()
    while not node.sockets:
        await asyncio.sleep(0)
    node.sockets[0].closed()
    await line.send(1)
    assert line.seen() == ("stream", True), "it has ended before it was used"
    node.offers()
    await line.send(1)
    while len(node.sockets) < 2:
        await asyncio.sleep(0)
    assert node.carried == ["stream"] * 6
    await line.send(1)
    assert (node.carried[-1], line.via, line.unbroken) == ("lane", "lane", True)
    assert node.streams[0].ended
    line.prepare()
    assert (len(node.streams), len(node.sockets)) == (1, 2)


@pytest.mark.usefixtures("certified")
@pytest.mark.parametrize("ready", [False, True], ids=["still opening", "open, and not yet used"])
async def test_a_lane_that_was_to_be_used_is_dropped_with_the_rest(node: Node, ready: bool) -> None:
    line = Line(node)
    node.offers()
    node.lane_may_open.clear()
    line.begin()
    for _ in range(2):
        await line.send(1)
    if ready:
        node.lane_may_open.set()
    for _ in range(5):
        await asyncio.sleep(0)
    line.drop()
    node.lane_may_open.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert all(socket.aborted for socket in node.sockets)
    assert len(node.sockets) == ready
    line.begin()
    for _ in range(3):
        await line.send(1)
        for _ in range(5):
            await asyncio.sleep(0)
    assert (line.via, len(node.sockets)) == ("lane", ready + 1), "the same offer is tried again"
