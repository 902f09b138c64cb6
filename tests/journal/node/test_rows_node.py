"""Rows by name: one node as a process, and nodes that sync."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import aiohttp
import pytest
from prometheus_client import REGISTRY, Metric

from ha.conf.configuration import load_configuration
from journal.errors import StorageFailed
from journal.node.process.command import read_settings
from journal.node.process.daemon import JournalNodeDaemon, PortTaken
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import Writer, segment, segment_bytes
from tests.journal.node import test_sync
from tests.journal.node.process import JID, NodeClient, Refused, node_and_client, running, until
from tests.journal.node.test_transfer import get
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE, QUICK, write_segment

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

EDITS_DIR = "dfs.journalnode.edits.dir"
R = pb.Refusal


def settings(folder: Path, keys: Mapping[str, object]) -> NodeSettings:
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text("<configuration></configuration>")
    local = {"dfs.journalnode.rpc-address": "127.0.0.1:0",
             "dfs.journalnode.http-address": "127.0.0.1:0"}  # fmt: skip
    overrides = [f"{key}={value}" for key, value in {**local, **keys}.items()]
    return read_settings(load_configuration(folder, overrides))


@pytest.mark.row("8.2 testJournalDirPerNameSpace")
@pytest.mark.parametrize(
    ("keys", "roots"),
    [
        ({"dfs.nameservices": "n1,n2", f"{EDITS_DIR}.n1": "one", f"{EDITS_DIR}.n2": "two"},
         {"n1": "one", "n2": "two"}),
        ({"dfs.nameservices": "n1,n2", EDITS_DIR: "all"}, {"n1": "all", "n2": "all"}),
        ({"dfs.nameservices": "n1,n2", f"{EDITS_DIR}.n1": "one", EDITS_DIR: "all"},
         {"n1": "one", "n2": "all"}),
    ],
    ids=["PerNameSpace", "CommonDirAcrossNameSpace", "DefaultDirForOneNameSpace"],
)  # fmt: skip
async def test_journal_dir_per_name_space(
    tmp_path: Path, keys: dict[str, str], roots: dict[str, str]
) -> None:
    placed = {
        key: str(tmp_path / value) if key.startswith(EDITS_DIR) else value
        for key, value in keys.items()
    }
    async with JournalNodeDaemon(settings(tmp_path, placed)) as daemon:
        client = NodeClient(daemon.rpc_port)
        for nameservice in roots:
            info = pb.NamespaceInfo(layout_version=-65, namespace_id=1, cluster_id="c")
            request = pb.FormatRequest(
                journal_id=f"j-{nameservice}", nameservice_id=nameservice, namespace_info=info
            )
            await client.call("Format", request)
        await client.close()
    for nameservice, root in roots.items():
        assert (tmp_path / root / f"j-{nameservice}" / "current" / "VERSION").is_file()


@pytest.mark.row("8.2 testJournal")
async def test_journal(tmp_path: Path) -> None:
    """TestJournalNode.testJournal: batches counted, and how far behind the quorum this node is."""
    async with node_and_client(tmp_path, "counted") as (daemon, client):

        async def bean() -> tuple[int, int]:
            url = f"http://127.0.0.1:{daemon.http_port}/jmx"
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                beans = {bean["name"]: bean for bean in (await response.json())["beans"]}
            found = beans["Hadoop:service=JournalNode,name=Journal-counted"]
            return found["BatchesWritten"] - before, found["CurrentLagTxns"]

        before = 0
        await client.format()
        await client.new_epoch(1)
        before = (await bean())[0]
        writer = Writer(1)
        await client.start(writer, 1)
        assert await bean() == (0, 0)
        await client.write([client.batch(writer, 1, 1, 1)])
        assert await bean() == (1, 0)
        writer.committed = 100
        await client.write([client.batch(writer, 1, 2, 2)])
        assert await bean() == (2, 98)


async def test_the_jmx_page_reads_only_what_it_shows(tmp_path: Path) -> None:
    """Collect only what is shown: by name, every metric was collected for each number.

    That took seconds in a big process.
    """
    collected: list[object] = []

    class Elsewhere:
        def collect(self) -> list[Metric]:
            collected.append(self)
            return []

    other = cast("Collector", Elsewhere())
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        REGISTRY.register(other)
        try:
            collected.clear()
            await get(f"http://127.0.0.1:{daemon.http_port}/jmx")
            assert collected == []
            await get(f"http://127.0.0.1:{daemon.http_port}/metrics")
            assert collected == [other]
        finally:
            REGISTRY.unregister(other)


@pytest.mark.row("8.2 testHttpServer")
async def test_http_server(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.written(writer, 1, 3)
        await client.finalize(writer, 1, 3)
        base = f"http://127.0.0.1:{daemon.http_port}"
        status, page, _ = await get(f"{base}/jmx")
        assert (status, b"JournalNodeInfo" in page) == (200, True)
        storage = f"storageInfo={NAMESPACE.storage_info()}"
        status, body, _ = await get(f"{base}/getJournal?jid={JID}&segmentTxId=1&{storage}")
        assert (status, body) == (200, segment_bytes(1, 3))
        assert body[:8] == (-65).to_bytes(4, "big", signed=True) + bytes(4)
        assert (await get(f"{base}/getJournal?jid={JID}&segmentTxId=12345&{storage}"))[0] == 404


@pytest.mark.row("8.2 testAcceptRecoveryBehavior")
async def test_accept_recovery_behavior(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        await client.new_epoch(1)
        first = Writer(1)
        none = await client.prepare(first, 1)
        assert not none.HasField("segment")
        assert not none.HasField("accepted_in_epoch")
        await client.written(first, 1, 1)
        held = await client.prepare(first, 1)
        assert (held.segment.last_txid, held.HasField("accepted_in_epoch")) == (1, False)
        await client.accept(first, segment(1, 1), [])
        await client.new_epoch(2)
        decided = await client.prepare(Writer(2), 1)
        assert (decided.accepted_in_epoch, decided.segment.last_txid) == (1, 1)
        for late in (client.prepare(first, 1), client.accept(first, segment(1, 1), [])):
            with pytest.raises(Refused, match="less than the last promised epoch 2") as caught:
                await late
            assert caught.value.refusal is not None
            assert caught.value.refusal.kind == R.FENCED


@pytest.mark.row("8.2 testFailToStartWithBadConfig")
async def test_fail_to_start_with_bad_config(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for value, what in (
        ("relative", "should be an absolute path"),
        (tmp_path / "file", "Not a directory"),
        (tmp_path / "file" / "below", "Cannot create directory"),
    ):
        with pytest.raises(StorageFailed, match=what):
            await JournalNodeDaemon(settings(tmp_path, {EDITS_DIR: value})).start()
    assert not Path("relative").exists()


@pytest.mark.row("8.2 testJournalNodeStartupFailsCleanly")
async def test_journal_node_startup_fails_cleanly(tmp_path: Path) -> None:
    """Name the port that is taken; no thread, task, port or lock is left."""
    async with node_and_client(tmp_path / "b") as (_, client):
        await client.format()
    async with running(tmp_path / "a") as first:
        before = len(journal_threads()), len(asyncio.all_tasks())
        for rpc, http in ((first.rpc_port, 0), (0, first.http_port)):
            taken = NodeSettings(folder=tmp_path / "b", rpc_port=rpc, http_port=http)
            with pytest.raises(PortTaken, match=str(rpc or http)):
                await JournalNodeDaemon(taken).start()
        await until(
            lambda: len(journal_threads()) <= before[0] and len(asyncio.all_tasks()) <= before[1],
            "all gone",
        )
        async with running(tmp_path / "b"):
            pass


def journal_threads() -> list[threading.Thread]:
    """Return the threads of journals; the event loop keeps some of its own for good."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("journal ")]


@pytest.mark.row("8.2 TestJournalNodeRespectsBindHostKeys")
@pytest.mark.parametrize("which", ["rpc", "http"])
async def test_journal_node_respects_bind_host_keys(tmp_path: Path, which: str) -> None:
    """TestJournalNodeRespectsBindHostKeys; there is no https here."""
    bound = {f"dfs.journalnode.{which}-bind-host": "0.0.0.0"}
    for keys, address in (({}, "127.0.0.1"), (bound, "0.0.0.0")):
        told = settings(tmp_path, {EDITS_DIR: tmp_path / "jn", **keys})
        async with JournalNodeDaemon(told) as daemon:
            port = daemon.rpc_port if which == "rpc" else daemon.http_port
            assert listening_addresses(port) == {address}


def listening_addresses(port: int) -> set[str]:
    """Return where this machine listens on a port, by the kernel; IPv6 by its IPv4 part."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            address, _, number = local.rpartition(":")
            if state == "0A" and int(number, 16) == port:
                found.add(".".join(str(byte) for byte in bytes.fromhex(address[-8:])[::-1]))
    return found


@pytest.mark.row("8.3 WithoutQJournalQueue")
async def test_sync_after_jn_downtime_without_qjournal_queue(tmp_path: Path) -> None:
    """...WithoutQJournalQueue: nothing is kept for a node that is away; eight are brought."""
    no_queue = replace(QUICK, queued_edits_limit_bytes=0)
    async with test_sync.syncing_nodes(tmp_path) as nodes:
        writer = nodes.writer(no_queue)
        await writer.become_writer()
        await test_sync.until_heard(nodes)
        before = synced()
        await nodes.stop(0)
        for first in range(1, 25, 3):
            await write_segment(writer, first, first + 2)
        await nodes.start(0)
        await test_sync.until_equal(nodes, 8)
        await until(lambda: synced() - before >= 8, "all eight are counted")
        await writer.close()


def synced() -> float:
    return REGISTRY.get_sample_value("nnha_jn_sync_segments_total", {"journal": JOURNAL}) or 0


@pytest.mark.row("8.3 SyncDuringRollingUpgrade")
async def test_sync_during_rolling_upgrade(tmp_path: Path) -> None:
    """Deletions before and after a failover, in an upgrade; all is there after its end as well."""
    async with test_sync.syncing_nodes(tmp_path) as nodes:

        async def lose(*which: tuple[int, int]) -> None:
            for i, first in which:
                (nodes.current(i) / f"edits_{first:019d}-{first + 2:019d}").unlink()

        async with test_sync.writing(nodes) as writer:
            await test_sync.write_segments(writer, 1, 4, 7)
            await test_sync.until_equal(nodes, 3)
            await writer.upgrades.pre_upgrade()
            await writer.upgrades.upgrade(replace(NAMESPACE, ctime=99))
            await lose((0, 1), (1, 4))
            await test_sync.until_equal(nodes, 3)
        async with test_sync.writing(nodes) as successor:
            await test_sync.write_segments(successor, 10, 13)
            await test_sync.until_equal(nodes, 5)
            await lose((2, 7), (0, 10))
            await test_sync.until_equal(nodes, 5)
            await successor.upgrades.finalize()
        await test_sync.until_equal(nodes, 5)
        assert not any((nodes.current(i).parent / "previous").exists() for i in range(3))


@pytest.mark.row("8.3 testFormatWithSyncer")
async def test_format_with_syncer(tmp_path: Path) -> None:
    """Leave one node with nothing at all, not even a format.

    Hadoop's formats itself from a peer (3.5), and votes then; ours waits for the operator's word,
    because a node that forgot what it has promised must not vote, and catches up behind it.
    """
    async with test_sync.syncing_nodes(tmp_path) as nodes, test_sync.writing(nodes) as writer:
        await test_sync.write_segments(writer, 1, 4)
        await test_sync.until_equal(nodes, 2)
        await nodes.stop(0)
        for path in sorted(nodes.current(0).parent.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        nodes.current(0).parent.rmdir()
        await nodes.start(0)
        await test_sync.write_segments(writer, 7)
        assert not nodes.current(0).exists()
        alone = nodes.writer(addresses=nodes.addresses[:1])
        await alone.format()
        await alone.close()
        await test_sync.write_segments(writer, 10)
        await test_sync.until_equal(nodes, 4)
