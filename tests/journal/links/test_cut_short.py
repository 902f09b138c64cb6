"""Links and lanes to a JournalNode with a fault at each await: both ends give all back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from journal.errors import JournalError, Unavailable
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.link import Link
from journal.links.peer import Peers
from journal.links.probed_link import ProbedLink
from journal.model import JournalId
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2 as pb
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc.test_cut_short import holdings
from tests.journal.node.process import JID, NodeClient

HOST = "127.0.0.1"
TYPED = (JournalError, ConnectionError)
ASKED = pb.JournalRequest(journal_id=JID)


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[JournalNodeDaemon]:
    settings = NodeSettings(
        folder=tmp_path,
        rpc_port=0,
        http_port=0,
        hadoop_host=HOST,
        hadoop_port=0,
        stop_grace_seconds=0.0,
    )
    async with JournalNodeDaemon(settings) as daemon:
        client = NodeClient(daemon.rpc_port)
        await client.format()
        await client.close()
        yield daemon


LINKS: dict[str, Callable[[JournalNodeDaemon], Link]] = {
    "grpc": lambda node: GrpcLink(HOST, node.rpc_port),
    "hadoop": lambda node: HadoopLink(HOST, node.hadoop_port),
    "probed grpc": lambda node: ProbedLink(HOST, node.rpc_port),
    "probed hadoop": lambda node: ProbedLink(HOST, node.hadoop_port),
}


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL, Fault.STOP])
@pytest.mark.parametrize("kind", LINKS)
async def test_a_link_that_is_cut_short_leaves_nothing_open(
    kind: str, fault: Fault, node: JournalNodeDaemon
) -> None:
    link = LINKS[kind](node)

    async def ask() -> None:
        await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, 20)

    async def life() -> None:
        nonlocal link
        link = LINKS[kind](node)
        try:
            await asyncio.gather(ask(), ask())
        finally:
            await link.close()

    async def after(_: int) -> None:
        await link.close()
        with pytest.raises(Unavailable):
            await ask()

    kept = frozenset(
        {"socket:", "ha.daemon.door"} if "grpc" in kind else ()
    )  # it closes them when it likes
    cuts = Cuts(life, fault, stop=lambda: link.close(), typed=TYPED, kept=kept)
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) >= 2


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL])
@pytest.mark.parametrize("port", ["rpc_port", "hadoop_port"])
async def test_a_peer_that_is_asked_in_vain_is_closed(
    port: str, fault: Fault, node: JournalNodeDaemon
) -> None:
    """Its kind must be found first: ours over gRPC, ours over Hadoop's RPC, or Hadoop's."""

    async def life() -> None:
        peers = Peers(JournalId(JID), node.hadoop_port)
        for _ in range(2):  # it is known which kind it is the second time
            async with peers.reached(HOST, getattr(node, port), 20) as peer:
                assert await peer.http_port(20) == node.http_port
                assert await peer.promised(20) == 0

    async def after(_: int) -> None:
        pass

    cuts = Cuts(life, fault, typed=TYPED, kept=frozenset({"socket:", "ha.daemon.door"}))
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 4
