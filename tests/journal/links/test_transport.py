"""The key that chooses the transport of a NameNode's writer."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from journal.cli.probe import journal_probe
from journal.links.configuration import writer_link
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.model import TxId
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from namenode_sim.startup.identity import NameNodeIdentity, journal_writer
from tests.ha.cli.stand_ins import frozen_process
from tests.journal.writer.journal_cluster import NAMESPACE, edits
from tests.namenode_sim.startup.startup_world import KEYS, write_site
from tests.stand_in import stand_in

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
