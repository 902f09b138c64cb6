"""Links that are connected before a writer takes them.

The key that chooses the transport of a NameNode's writer.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.security.caller import Role
from journal.cli.probe import journal_probe
from journal.links.configuration import writer_link
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.kept_links import KeptLinks
from journal.model import TxId
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2 as pb
from journal.writer.writer import QuorumWriter
from namenode_sim.startup.identity import NameNodeIdentity, journal_writer
from tests.ha.cli.stand_ins import frozen_process
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.journal.node.process import until
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE, Nodes, edit, edits
from tests.namenode_sim.startup.startup_world import KEYS, write_site
from tests.stand_in import stand_in

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


HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
NOBODY = 1
"""A port where no gRPC is spoken."""


def configured(folder: Path, **keys: str) -> Configuration:
    uri = ";".join(f"{host}:{NOBODY}" for host in HOSTS)
    site = {**KEYS, "dfs.namenode.shared.edits.dir": f"qjournal://{uri}/ns1", **keys}
    write_site(folder / "conf", site)
    return load_configuration(folder / "conf", (), environment={})


@asynccontextmanager
async def nodes_on_one_port(folder: Path) -> AsyncIterator[int]:
    """Run a JournalNode on each host, all with the same port for Hadoop RPC."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    async with AsyncExitStack() as stack:
        for host in HOSTS:
            settings = NodeSettings(
                folder=folder / host,
                rpc_host=host,
                rpc_port=0,
                http_host=host,
                http_port=0,
                hadoop_host=host,
                hadoop_port=port,
                stop_grace_seconds=0.0,
            )
            await stack.enter_async_context(JournalNodeDaemon(settings))
        yield port


async def test_a_namenode_writes_over_hadoop_rpc_where_it_is_told_to(tmp_path: Path) -> None:
    async with nodes_on_one_port(tmp_path) as port:
        conf = configured(
            tmp_path,
            **{
                "nnha.journal.transport": "hadoop-rpc",
                "nnha.journalnode.hadoop-rpc-address": f"0.0.0.0:{port}",
            },
        )
        writer = journal_writer(conf, NameNodeIdentity.from_configuration(conf), NAMESPACE)
        await writer.format()
        await writer.become_writer()
        await writer.start_segment(TxId(1))
        await writer.write(TxId(1), 3, edits(1, 3))
        await writer.finalize_segment(TxId(3))
        await writer.settle(timeout_seconds=30)
        names = [(status.node, status.in_sync) for status in writer.node_statuses()]
        assert names == [(f"{host}:{NOBODY}", True) for host in HOSTS]
        await writer.close()


def test_grpc_is_the_default(tmp_path: Path) -> None:
    assert writer_link(configured(tmp_path), []) is GrpcLink


def test_what_cannot_work_is_refused_with_the_key(tmp_path: Path) -> None:
    wish = {"nnha.journal.transport": "hadoop-rpc"}
    with pytest.raises(ConfigurationError, match=r"hadoop-rpc-address is not set"):
        writer_link(configured(tmp_path, **wish), [("a", 1)])
    both = {**wish, "nnha.journalnode.hadoop-rpc-address": "0.0.0.0:8486"}
    with pytest.raises(ConfigurationError, match="share a host"):
        writer_link(configured(tmp_path, **both), [("a", 1), ("a", 2)])
    link = writer_link(configured(tmp_path, **both), [("a", 1), ("b", 1)])("a", 1)
    assert isinstance(link, HadoopLink)
    with pytest.raises(ConfigurationError, match="must be grpc or hadoop-rpc"):
        writer_link(configured(tmp_path, **{"nnha.journal.transport": "http"}), [])


async def status_of(host: str, port: int, seconds: float) -> Mapping[str, object]:
    async with journal_probe(host, port, journal_id="ns1", nameservice_id="ns1") as probe:
        return await probe.status(timeout_seconds=seconds)


async def test_a_tool_takes_either_port_of_a_journalnode(tmp_path: Path) -> None:
    """Use one hdfs-site.xml: a Java NameNode needs Hadoop's port in it, and a tool either."""
    settings = NodeSettings(
        folder=tmp_path, rpc_port=0, http_port=0, hadoop_host=HOSTS[0], hadoop_port=0,
        stop_grace_seconds=0.0,
    )  # fmt: skip
    async with JournalNodeDaemon(settings) as daemon:
        for host, port in (("127.0.0.1", daemon.rpc_port), (HOSTS[0], daemon.hadoop_port)):
            with pytest.raises(ValueError, match="it is not formatted"):
                await status_of(host, port, 30.0)


async def test_what_is_no_journalnode_and_what_says_nothing_are_told_apart() -> None:
    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def ask(port: int, seconds: float) -> None:
        await status_of("127.0.0.1", port, seconds)

    async with stand_in(hang_up) as port, frozen_process() as silent:
        with pytest.raises(OSError, match=r".") as told:
            await ask(port, 30.0)
        assert not isinstance(told.value, TimeoutError)
        with pytest.raises(OSError, match=r"\A(no answer in 0\.3 s)?\Z"):
            await ask(silent, 0.3)
