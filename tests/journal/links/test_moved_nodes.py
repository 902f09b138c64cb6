"""Links to a node by its name: an address that is late, missing, or another one by now."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from ha.names import Names
from journal.errors import NotFormatted, Rejected, Unavailable
from journal.links import grpc_link
from journal.links.grpc_link import GrpcLink
from journal.links.kept_links import KeptLinks
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2 as pb
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.journal.node.process import JID, until
from tests.stand_in import say_nothing, stand_in

FIRST, SECOND = "127.0.0.2", "127.0.0.3"
SECONDS = 20.0
"""Less than an old channel has for what is under way."""
LEAVING = "leave a gRPC channel"
ASKED = pb.JournalRequest(journal_id=JID)


class Resolver:
    """What the name "jn" means now; ``held`` keeps the answer back until it is set."""

    def __init__(self, address: str = FIRST) -> None:
        self.address = address
        self.asked = 0
        self.held: threading.Event | None = None
        self.names = Names(self.look)

    def look(self, *_: object) -> list[object]:
        self.asked += 1
        if self.held is not None:
            self.held.wait(SECONDS)
        if not self.address:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.address, 0))]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    resolver = Resolver()
    monkeypatch.setattr(grpc_link, "NAMES", resolver.names)
    return resolver


async def ask(link: GrpcLink, seconds: float = SECONDS) -> None:
    await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, seconds)


@asynccontextmanager
async def node_at(folder: Path, host: str, port: int = 0) -> AsyncIterator[int]:
    """Run a node on that address, with a journal; yield its port."""
    settings = NodeSettings(
        folder=folder / host, rpc_host=host, rpc_port=port, http_port=0, stop_grace_seconds=0.0
    )
    async with JournalNodeDaemon(settings) as daemon:
        yield daemon.rpc_port


async def test_a_name_without_an_address_is_a_silence_with_its_reason(resolver: Resolver) -> None:
    resolver.address = ""
    link = GrpcLink("jn", 1)
    with pytest.raises(Unavailable, match="the name jn does not resolve: no such name"):
        await ask(link)
    with pytest.raises(Unavailable, match="the name jn does not resolve: no such name"):
        link.open_write_stream()
    await link.close()


async def test_a_name_that_is_looked_up_for_too_long_is_a_silence(resolver: Resolver) -> None:
    resolver.held = threading.Event()
    link = GrpcLink("jn", 1)
    with pytest.raises(Unavailable, match=r"no answer in time|the resolver has not answered"):
        await ask(link, 0.01)
    resolver.held.set()
    await link.close()


async def test_a_lookup_that_breaks_is_no_silence(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each life is one of a link that knows no address yet."""
    resolver.address = ""

    async def life() -> None:
        monkeypatch.setattr(grpc_link, "NAMES", Names(resolver.look))
        link = GrpcLink("jn", 1)
        with suppress(Unavailable):
            await ask(link)

    async def after(_: int) -> None:
        pass

    assert await awaits.cut_at_each_await(Cuts(life, Fault.BREAK), after) == 1


async def test_two_calls_that_wait_for_one_lookup_share_a_connection(resolver: Resolver) -> None:
    accepted = 0

    async def count(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.read(-1)

    resolver.address, resolver.held = "127.0.0.1", threading.Event()
    async with stand_in(count) as port:
        link = GrpcLink("jn", port)
        calls = [asyncio.create_task(ask(link, 0.5)) for _ in range(2)]
        await asyncio.sleep(0)
        resolver.held.set()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in answers] == [Unavailable] * 2
        assert accepted == 1
        await link.close()


async def test_a_node_that_has_moved_is_found_after_a_call_in_vain(
    resolver: Resolver, tmp_path: Path
) -> None:
    async with node_at(tmp_path, SECOND) as port:
        link = GrpcLink("jn", port)
        with pytest.raises(Unavailable):
            await ask(link)  # where it was
        await until(lambda: resolver.asked > 1, "another lookup")
        resolver.address = SECOND
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    await ask(link)
                except NotFormatted:
                    break  # there it is
                except Unavailable:
                    continue
        asked = resolver.asked
        with pytest.raises(NotFormatted):
            await ask(link)
        assert resolver.asked == asked, "a refusal says that it is there"
        await link.close()


async def test_what_is_answered_by_other_than_was_asked_for_is_a_silence(tmp_path: Path) -> None:
    async with node_at(tmp_path, FIRST) as port:
        link = GrpcLink(FIRST, port)
        with pytest.raises(Unavailable, match="IsFormatted was answered by IsFormattedReply"):
            await link.call("IsFormatted", ASKED, pb.Done, SECONDS)
        await link.close()


async def test_what_is_under_way_where_a_node_was_may_end_while_its_link_is_open(
    resolver: Resolver, tmp_path: Path
) -> None:
    heartbeat = pb.WriteRequest(info=pb.RequestInfo(journal_id=JID), heartbeat=pb.Heartbeat())
    async with node_at(tmp_path, FIRST) as port, node_at(tmp_path, SECOND, port):
        link = GrpcLink("jn", port)
        with pytest.raises(NotFormatted):
            await ask(link)
        stream = link.open_write_stream()
        await stream.write(heartbeat)
        assert isinstance(await stream.read(), pb.WriteReply)
        resolver.address = SECOND
        resolver.names.look_again("jn")
        await until(lambda: link.outdated, "the new address")
        with pytest.raises(NotFormatted):
            await ask(link)
        assert link.outdated, "a writer goes on where its stream is, until a segment starts"
        with pytest.raises(Rejected):
            await link.call("StartLogSegment", pb.StartLogSegmentRequest(), pb.Done, SECONDS)
        assert link.connected
        await stream.write(heartbeat)
        assert isinstance(await stream.read(), pb.WriteReply)
        assert LEAVING in awaits.tasks_left()
        await link.close()
        async with asyncio.timeout(SECONDS):
            await until(lambda: LEAVING not in awaits.tasks_left(), "the end of what was under way")
        stream.cancel()


async def test_an_error_of_ours_ends_the_wait_for_a_node_that_is_down() -> None:
    async with stand_in(say_nothing) as port:
        pass

    async def life() -> None:
        link = GrpcLink("127.0.0.1", port)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await link.wait_until_reconnected()
        finally:
            await link.close()

    async def after(_: int) -> None:
        pass

    cuts = Cuts(life, Fault.BREAK, kept=frozenset({"socket:", "_asyncio."}))
    assert await awaits.cut_at_each_await(cuts, after) >= 1


async def test_kept_links_follow_a_node_that_moves(resolver: Resolver, tmp_path: Path) -> None:
    async with node_at(tmp_path, FIRST) as port, node_at(tmp_path, SECOND, port):
        links = KeptLinks([("jn", port)])
        try:
            await connected(links)
            (before,) = links.connected
            resolver.address = SECOND
            resolver.names.look_again("jn")
            await until(lambda: not links.connected, "it to be out of date")
            await connected(links)
            (after,) = links.connected
            assert after is not before
        finally:
            await links.close()


async def connected(links: KeptLinks) -> None:
    def look() -> bool:
        links.refresh()
        return bool(links.connected)

    await until(look, "a connection")
