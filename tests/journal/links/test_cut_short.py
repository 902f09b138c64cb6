"""Links and lanes to a JournalNode with a fault at each await: both ends give all back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from ha.conf.keys.security import Mode
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from ha.security.tls_files import TlsFiles
from journal.errors import JournalError, Unavailable
from journal.lane import Hello, Offer
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.lane_client import Lane
from journal.links.link import Link, WriterMessage
from journal.links.peer import Peers
from journal.links.probed_link import ProbedLink
from journal.links.quorum_call import QuorumCall
from journal.model import Epoch, JournalId, NodeName
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2 as pb
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc.test_cut_short import holdings
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.ha.security.test_unproven import Lines
from tests.journal.core.requests_of import NAMESPACE
from tests.journal.node.process import JID, NodeClient

HOST = "127.0.0.1"
TYPED = (JournalError, ConnectionError)
LONG_SECONDS = 1000.0
"""A countdown that is left over is seen while it lasts."""
ASKED = pb.JournalRequest(journal_id=JID)


def settings_of(folder: Path) -> NodeSettings:
    return NodeSettings(
        folder=folder, rpc_port=0, http_port=0, hadoop_host=HOST, hadoop_port=0, lane_host=HOST,
        stop_grace_seconds=0.0,
    )  # fmt: skip


async def formatted(folder: Path) -> Offer:
    """Give a node's folder a journal, and return where the node took lanes."""
    async with JournalNodeDaemon(settings_of(folder)) as daemon:
        return await begun(daemon)


async def begun(daemon: JournalNodeDaemon) -> Offer:
    client = NodeClient(daemon.rpc_port)
    await client.format()
    won = await client.new_epoch(1)
    await client.close()
    return Offer(won.lane_port, won.lane_key)


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[JournalNodeDaemon]:
    async with JournalNodeDaemon(settings_of(tmp_path)) as daemon:
        await begun(daemon)
        yield daemon


@pytest_asyncio.fixture
async def proven(tmp_path: Path) -> AsyncIterator[tuple[JournalNodeDaemon, Path]]:
    """Yield a node that takes callers with a certificate alone, and the folder of one."""
    await formatted(tmp_path)
    authority = Authority(tmp_path / "certificates")
    files = authority.holder(Role.JOURNALNODE, "jn1")
    access = AccessControl(Mode.AUTO, target="t", audit=Lines(), tls=files)
    async with JournalNodeDaemon(settings_of(tmp_path), access) as daemon:
        yield daemon, authority.issue(Role.NAMENODE, "nn1")
    files.stop()


LINKS: dict[str, Callable[[JournalNodeDaemon], Link]] = {
    "grpc": lambda node: GrpcLink(HOST, node.rpc_port),
    "hadoop": lambda node: HadoopLink(HOST, node.hadoop_port),
    "probed grpc": lambda node: ProbedLink(HOST, node.rpc_port),
    "probed hadoop": lambda node: ProbedLink(HOST, node.hadoop_port),
}


FAULTS = [Fault.CANCEL, Fault.FAIL, Fault.BREAK]


@pytest.mark.parametrize("fault", [*FAULTS, Fault.STOP])
@pytest.mark.parametrize("kind", LINKS)
async def test_a_link_that_is_cut_short_leaves_nothing_open(
    kind: str, fault: Fault, node: JournalNodeDaemon
) -> None:
    link: Link
    stopped = False

    async def ask() -> None:
        await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, 20)

    async def life() -> None:
        nonlocal link, stopped
        link, stopped = LINKS[kind](node), False
        try:
            await asyncio.gather(ask(), ask())
        finally:
            if fault is not Fault.STOP:  # that one close has to be enough
                await link.close()

    async def stop() -> None:
        nonlocal stopped
        stopped = True
        await link.close()

    async def after(_: int) -> None:
        if not stopped:
            await link.close()
        with pytest.raises(Unavailable):
            await ask()

    kept = frozenset(
        {"socket:", "ha.daemon.door"} if "grpc" in kind else ()
    )  # it closes them when it likes
    cuts = Cuts(life, fault, stop=stop, typed=TYPED, kept=kept)
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) >= 2


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["grpc", "probed grpc"])
async def test_a_link_that_proves_itself_and_is_cut_short_leaves_nothing_open(
    kind: str, fault: Fault, proven: tuple[JournalNodeDaemon, Path]
) -> None:
    """Each life has read its certificate anew, so that the node's is looked at once more."""
    node, certificate = proven

    async def life() -> None:
        with acting_as(TlsFiles(certificate, 60)):
            link = LINKS[kind](node)
            try:
                await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, 20)
            finally:
                await link.close()

    async def after(_: int) -> None:
        pass

    kept = frozenset({"socket:", "ha.daemon.door", "_asyncio."})
    cuts = Cuts(life, fault, typed=TYPED, kept=kept)
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) >= 2


async def test_a_server_that_is_no_journalnode_is_not_asked(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    files = authority.holder(Role.ZKFC, "z1")
    access = AccessControl(Mode.AUTO, target="t", audit=Lines(), tls=files)
    async with JournalNodeDaemon(settings_of(tmp_path), access) as node:
        with acting_as(authority.holder(Role.NAMENODE, "nn1")):
            link = GrpcLink(HOST, node.rpc_port)
            with pytest.raises(Unavailable, match="its certificate is that of zkfc z1"):
                await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, 20)
            await link.close()
    files.stop()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_lane_that_is_cut_short_is_closed_at_both_ends(
    fault: Fault, node: JournalNodeDaemon
) -> None:
    client = NodeClient(node.rpc_port)
    won = await client.new_epoch(2)
    await client.close()
    hello = Hello(won.lane_key, JID, NAMESPACE.namespace_id)
    serials, lanes = count(1), list[Lane]()

    async def life() -> None:
        lanes.append(await Lane.open(HOST, won.lane_port, hello, LONG_SECONDS))
        try:
            await lanes[-1].exchange(WriterMessage(next(serials), Epoch(2), None, 0))
        finally:
            lanes[-1].drop()
            await lanes[-1].wait_closed()

    async def after(_: int) -> None:
        assert all(lane.closed for lane in lanes)
        lanes.clear()

    def open_lanes() -> Mapping[str, float]:
        return {"lanes": node.node.lanes.open_to(JID) if node.node.lanes else 0}

    cuts = Cuts(life, fault, typed=TYPED)
    assert await awaits.cut_at_each_await(cuts, after, holdings=open_lanes) >= 2


@pytest.mark.parametrize("fault", FAULTS)
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
                assert await peer.promised(20) == 1

    async def after(_: int) -> None:
        pass

    cuts = Cuts(life, fault, typed=TYPED, kept=frozenset({"socket:", "ha.daemon.door"}))
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 4


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_question_that_is_cut_short_leaves_no_timer(fault: Fault) -> None:
    nodes = NodeName("a:1"), NodeName("b:1")

    async def life() -> None:
        call = QuorumCall[int]("counting", nodes, timeout_seconds=LONG_SECONDS)
        for node in nodes:
            asyncio.get_running_loop().call_soon(call.succeed, node, 1)
        assert await call.outcome() == dict.fromkeys(nodes, 1)

    async def after(_: int) -> None:
        pass

    assert await awaits.cut_at_each_await(Cuts(life, fault, typed=TYPED), after) >= 1
