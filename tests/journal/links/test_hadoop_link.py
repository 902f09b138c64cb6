"""A link over Hadoop RPC whose connection breaks: it is noticed, reported, and made again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest

from ha.rpc.errors import ConnectionLost
from ha.rpc.server import Call, Method, RpcProtocol, RpcServer
from journal.errors import Fenced, Unavailable
from journal.links import hadoop_link
from journal.links.hadoop_link import PROTOCOL, HadoopLink
from journal.model import Epoch
from journal.proto import journal_pb2 as pb
from journal.refusals import own_fault
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc.wire import eventually

HOST = "127.0.0.1"
SECONDS = 30.0
ASKED = pb.JournalRequest(journal_id="ns1")


class Node:
    """Answers a write when it may, and is asked for a state."""

    def __init__(self) -> None:
        self.port = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.written: list[int] = []
        self.server: RpcServer | None = None

    async def write(self, _call: Call, request: pb.WriteRequest) -> pb.WriteReply:
        self.written.append(request.info.serial)
        await self.may_answer.wait()
        if request.info.epoch < 7:
            raise own_fault(Fenced("too old", promised=Epoch(7)))
        return pb.WriteReply(serial=request.info.serial)

    async def state(self, _call: Call, _request: pb.JournalRequest) -> pb.GetJournalStateReply:
        return pb.GetJournalStateReply(last_promised_epoch=7)

    @property
    def connections(self) -> int:
        return 0 if self.server is None else self.server.connection_count

    async def start(self) -> None:
        methods = {
            "Write": Method(pb.WriteRequest, self.write),
            "GetJournalState": Method(pb.JournalRequest, self.state),
        }
        self.server = RpcServer([RpcProtocol(PROTOCOL, methods)])
        self.port = await self.server.start(HOST, self.port)

    async def stop(self) -> None:
        if self.server is not None:
            self.may_answer.set()
            await self.server.stop()
            self.server = None


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Node, HadoopLink]]:
    node = Node()
    await node.start()
    link = HadoopLink(HOST, node.port)
    try:
        yield node, link
    finally:
        await link.close()
        await node.stop()


def batch(serial: int, epoch: int = 7) -> pb.WriteRequest:
    return pb.WriteRequest(info=pb.RequestInfo(epoch=epoch, serial=serial))


async def promised(link: HadoopLink) -> int:
    reply = await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, SECONDS)
    return reply.last_promised_epoch


async def test_a_stream_is_over_with_its_connection_and_not_with_a_refusal() -> None:
    async with linked() as (node, link):
        stream = link.open_write_stream()
        assert not stream.done(), "nothing was sent yet"
        await stream.write(batch(1))
        assert cast(pb.WriteReply, await stream.read()).serial == 1
        await stream.write(batch(2, epoch=6))
        with pytest.raises(Fenced, match="too old") as refused:
            await stream.read()
        assert refused.value.promised == 7
        assert not stream.done()
        await node.stop()
        await eventually(stream.done)
        await node.start()
        assert await promised(link) == 7
        with pytest.raises(Unavailable):
            await stream.write(batch(3))
        assert stream.done(), "a new connection is none of it: the node may have restarted"
        assert node.written == [1, 2]


async def test_replies_come_in_the_order_of_the_requests() -> None:
    async with linked() as (_, link):
        stream = link.open_write_stream()
        for serial in (1, 2, 3):
            await stream.write(batch(serial))
        assert [cast(pb.WriteReply, await stream.read()).serial for _ in range(3)] == [1, 2, 3]
        with pytest.raises(Unavailable, match="nothing is under way"):
            await stream.read()


async def test_a_stream_that_is_cancelled_waits_for_nothing_and_leaves_the_link() -> None:
    async with linked() as (node, link):
        stream = link.open_write_stream()
        node.may_answer.clear()
        await stream.write(batch(1))
        await stream.write(batch(2))
        await eventually(lambda: node.written == [1, 2])
        assert stream.cancel()
        assert stream.done()
        with pytest.raises(Unavailable, match="nothing is under way"):
            await stream.read()
        assert await promised(link) == 7


async def test_what_is_no_request_is_no_silence_of_the_node() -> None:
    async with linked() as (_, link):
        stream = link.open_write_stream()
        with pytest.raises(AttributeError):
            await stream.write(cast(pb.WriteRequest, "no message"))
        await stream.write(batch(1))
        assert cast(pb.WriteReply, await stream.read()).serial == 1


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.BREAK])
async def test_an_answer_that_breaks_is_a_silence_only_as_an_error_of_rpc(fault: Fault) -> None:
    async with linked() as (_, link):

        async def life() -> None:
            stream = link.open_write_stream()
            try:
                await stream.write(batch(1))
                assert isinstance(await stream.read(), pb.WriteReply)
            finally:
                stream.cancel()

        async def after(_: int) -> None:
            assert await promised(link) == 7

        cuts = Cuts(life, fault, lambda: ConnectionLost("planted"), typed=(Unavailable,))
        assert await awaits.cut_at_each_await(cuts, after) >= 1


async def test_a_connection_that_is_not_there_in_time_is_a_silence() -> None:
    async with linked() as (_, link):
        with pytest.raises(Unavailable, match="no connection in time"):
            await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, 0)


async def test_who_waits_for_a_node_that_is_down_does_not_ask_all_the_time() -> None:
    """In half a second it asks once, and an error of ours ends the wait."""
    async with linked() as (node, link):
        await node.stop()

        async def waiting() -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await link.wait_until_reconnected()

        async def connecting() -> None:
            fresh = HadoopLink(HOST, node.port)
            try:
                await fresh.wait_until_reconnected()
            finally:
                await fresh.close()

        async def after(_: int) -> None:
            pass

        assert await awaits.cut_at_each_await(waiting, after) < 10
        await node.start()
        assert await awaits.cut_at_each_await(Cuts(connecting, Fault.BREAK), after) >= 1


async def test_a_connection_is_made_once_for_all_who_ask_and_again_when_it_has_broken() -> None:
    async with linked() as (node, link):
        assert await asyncio.gather(*(promised(link) for _ in range(5))) == [7] * 5
        assert node.connections == 1
        await node.stop()
        with pytest.raises(Unavailable):
            await promised(link)
        await node.start()
        assert await promised(link) == 7


async def test_a_closed_link_makes_no_connection_any_more() -> None:
    async with linked() as (node, link):
        assert await promised(link) == 7
        await link.close()
        await eventually(lambda: node.connections == 0)
        with pytest.raises(Unavailable, match="the connection is closed"):
            await promised(link)


async def test_who_waits_for_a_connection_hears_of_the_next_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hadoop_link, "RECONNECT_SECONDS", 0.001)
    async with linked() as (node, link):
        assert await promised(link) == 7
        not_broken = asyncio.create_task(link.wait_until_reconnected())
        await asyncio.wait({not_broken}, timeout=0.01)
        assert not not_broken.done()
        await node.stop()
        with pytest.raises(Unavailable):
            await promised(link)
        waiting = asyncio.create_task(link.wait_until_reconnected())
        await asyncio.wait({waiting}, timeout=0.01)
        assert not waiting.done()
        await node.start()
        await asyncio.wait_for(waiting, SECONDS)
        assert await promised(link) == 7
        assert not not_broken.cancelled()
        assert not_broken.cancel()
