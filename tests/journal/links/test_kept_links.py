"""Links that are connected before a writer takes them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from ha.security.caller import Role
from ha.security.own_tls import acting_as
from journal.links.grpc_link import GrpcLink
from journal.links.kept_links import KeptLinks
from journal.model import TxId
from journal.proto import journal_pb2 as pb
from journal.writer.writer import QuorumWriter
from tests.ha.security.authority import Authority
from tests.journal.node.process import until
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE, Nodes, edit

HOST = "127.0.0.1"


@asynccontextmanager
async def kept_by(
    nodes: Nodes, wanted: Callable[[], bool] = lambda: True
) -> AsyncIterator[KeptLinks]:
    links = KeptLinks(nodes.addresses)
    links.start(wanted)
    try:
        yield links
    finally:
        await links.close()


async def connected(links: KeptLinks) -> None:
    await until(lambda: len(links.connected) == 3, "a connection to each node")


async def test_a_writer_takes_them_and_the_next_one_new_ones(nodes: Nodes) -> None:
    async with kept_by(nodes) as links:
        await connected(links)
        kept = links.connected
        writer = QuorumWriter(
            nodes.addresses, journal_id=JOURNAL, nameservice_id="ns1",
            namespace=NAMESPACE, link=links,
        )  # fmt: skip
        assert not links.connected, "each is handed out once"
        await writer.become_writer()
        await writer.start_segment(TxId(1))
        await writer.write(TxId(1), 1, edit(1))
        await writer.close()
        assert all(not link.connected for link in kept), "who has one closes it"
        await connected(links)
        assert not kept & links.connected


async def test_none_is_made_while_none_is_wanted(nodes: Nodes) -> None:
    asked = 0

    def wanted() -> bool:
        nonlocal asked
        asked += 1
        return False

    async with kept_by(nodes, wanted) as links:
        await until(lambda: asked == 2, "to be asked again")
        assert not links.connected
        link = links(*nodes.addresses[0])
        request = pb.JournalRequest(journal_id=JOURNAL)
        await link.call("GetJournalState", request, pb.GetJournalStateReply, 5)
        await link.close()


async def test_who_has_just_become_a_standby_lets_its_successor_go_first(nodes: Nodes) -> None:
    """Three handshakes while another NameNode recovers the journal would delay it."""
    kept: list[int] = []

    def wanted() -> bool:
        kept.append(len(links.connected))
        return len(kept) > 1

    links = KeptLinks(nodes.addresses)
    links.start(wanted)
    await connected(links)
    assert kept[:3] == [0, 0, 0]
    await links.close()


async def test_one_that_is_broken_is_not_handed_out(nodes: Nodes) -> None:
    async with kept_by(nodes) as links:
        await connected(links)
        (first,) = (link for link in links.connected if link.node == nodes.addresses[0])
        await nodes.stop(0)
        await until(lambda: not first.connected, "the end of the connection")
        link = links(*first.node)
        assert link is not first
        await link.close()
        await nodes.start(0)
        await connected(links)


async def test_nor_one_of_an_older_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    before, after = (authority.holder(Role.NAMENODE, name) for name in ("nn1", "nn2"))
    with acting_as(before):
        link = GrpcLink(HOST, 1)
        seen = [link.outdated]
    with acting_as(after):
        seen.append(link.outdated)
        assert not link.connected
    assert seen == [False, True]
    await asyncio.wait_for(link.close(), 10)
