"""A failing or filling disk is seen before and when it stops a journal, and only that one."""

import errno
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from prometheus_client import REGISTRY

from journal.model import LAYOUT_VERSION, NamespaceInfo
from journal.node import node as node_module
from journal.node.process.daemon import JournalNodeDaemon
from journal.storage.files import Files, OpenFile, RealFiles
from tests.journal.core.requests_of import Writer, digest, records
from tests.journal.node.process import (
    NodeClient,
    Refused,
    node_and_client,
    running,
    segment_url,
    until,
)  # fmt: skip
from tests.log_lines import captured

OTHER = "other"


class FullDisk:
    """Takes no new file."""

    def __init__(self, error: int) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any operation of real files
        return getattr(RealFiles(), name)

    def create(self, path: Path) -> OpenFile:
        raise OSError(self._error, "the disk is at its end", str(path))


async def get(daemon: JournalNodeDaemon, path: str) -> tuple[int, Any]:
    url = f"http://127.0.0.1:{daemon.http_port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.json()


def sample(name: str, journal: str) -> float:
    return REGISTRY.get_sample_value(name, {"journal": journal}) or 0.0


@pytest.mark.row("X10")
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
async def test_x10_a_failed_disk_is_visible_and_stops_one_journal_only(
    tmp_path: Path, error: int
) -> None:
    async with node_and_client(tmp_path) as (daemon, sick):
        well = NodeClient(daemon.rpc_port, OTHER)
        for client in (sick, well):
            await client.format()
            await client.new_epoch(1)
        assert (await get(daemon, "/health"))[0] == 200
        owner = daemon.node.find(sick.journal_id)
        assert owner is not None
        owner.disk._files = cast(Files, FullDisk(error))
        with pytest.raises(Refused, match="at its end"):
            await sick.start(Writer(1), 1)
        told = await sick.status()
        assert "at its end" in told.failed_because
        status, body = await get(daemon, "/health")
        assert (status, sick.journal_id in body["reason"]) == (503, True)
        shown = (await get(daemon, "/status"))[1]["journals"]
        assert "at its end" in shown[sick.journal_id]["failed_because"]
        assert shown[OTHER]["failed_because"] is None
        assert sample("nnha_jn_failed", sick.journal_id) == 1
        assert sample("nnha_jn_failed", OTHER) == 0
        with pytest.raises(Refused, match="has stopped"):
            await sick.new_epoch(2)
        await well.written(Writer(1), 1, 3)
        await well.close()


async def test_little_space_is_told_before_it_is_gone(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, disk_warn_free_bytes=1 << 60) as (daemon, client):
        await client.format()
        told = await client.status()
        assert "bytes are left" in told.disk_warning
        assert not told.HasField("failed_because")
        shown = (await get(daemon, "/status"))[1]["journals"][client.journal_id]
        assert shown["disk_warning"] == told.disk_warning
        assert sample("nnha_jn_disk_low", client.journal_id) == 1
        assert (await get(daemon, "/health"))[0] == 200, "it still serves"
    async with node_and_client(tmp_path, disk_warn_free_bytes=1) as (_, client):
        assert not (await client.status()).HasField("disk_warning")
        assert sample("nnha_jn_disk_low", client.journal_id) == 0


async def test_scarce_room_and_its_end_are_logged_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "DISK_SAMPLE_SECONDS", 0.01)
    with captured("disk.") as lines:

        def usage(_: Path) -> SimpleNamespace:
            """Show another room after each line, however often it is asked."""
            if len(lines) >= 2:
                raise OSError("no such disk")
            return SimpleNamespace(free=(3, 7)[len(lines)], total=9)

        monkeypatch.setattr(shutil, "disk_usage", usage)
        async with node_and_client(tmp_path, disk_warn_free_bytes=5) as (_, client):
            await client.format()
            await until(lambda: len(lines) >= 3, "all looks are done")
    assert [(line["event"], line["log_level"]) for line in lines[:3]] == [
        ("disk.low", "warning"), ("disk.enough_space", "info"), ("disk.space_unknown", "warning")
    ]  # fmt: skip
    assert sample("nnha_jn_disk_free_bytes", client.journal_id) == 7
    assert sample("nnha_jn_disk_total_bytes", client.journal_id) == 9


@pytest.mark.row("8.2 TestJournalNodeMXBean")
async def test_journal_node_mx_bean(tmp_path: Path) -> None:
    """TestJournalNodeMXBean: before, after format and after a restart."""
    info = "/jmx?qry=Hadoop:service=JournalNode,name=JournalNodeInfo"
    async with node_and_client(tmp_path, "ns") as (daemon, client):
        (bean,) = (await get(daemon, info))[1]["beans"]
        assert bean["JournalsStatus"] == "{}"
        await client.format(NamespaceInfo(LAYOUT_VERSION, 12345, "mycluster", 0, "my-bp"))
        (bean,) = (await get(daemon, info))[1]["beans"]
        assert bean["JournalsStatus"] == '{"ns": {"Formatted": "true"}}'
    async with running(tmp_path) as daemon:
        (bean,) = (await get(daemon, info))[1]["beans"]
        assert bean["JournalsStatus"] == '{"ns": {"Formatted": "true"}}'
        assert bean["ClusterIds"] == ["mycluster"]
        assert bean["StorageInfos"] == [f"lv={LAYOUT_VERSION};cid=mycluster;nsid=12345;c=0"]
        assert bean["HostAndPort"] == f"127.0.0.1:{daemon.rpc_port}"
        assert bean["JNStartedTimeInMillis"] > 0


WRITTEN = {
    "nnha_jn_batches_written_total": 1,
    "nnha_jn_transactions_written_total": 3,
    "nnha_jn_bytes_written_total": len(records(1, 3, 7)),
    "nnha_jn_commit_groups_total": 1,
}
SHOWN = {
    "nnha_jn_last_txid": 3, "nnha_jn_committed_txid": 0, "nnha_jn_lag_transactions": 0,
    "nnha_jn_open_segment_first_txid": 1, "nnha_jn_promised_epoch": 7, "nnha_jn_segments": 1,
    "nnha_jn_learner": 0, "nnha_jn_damaged_segments": 0, "nnha_jn_failed": 0,
}  # fmt: skip


@pytest.mark.row("8.2 testJournalMetricTags")
async def test_journal_metric_tags(tmp_path: Path) -> None:
    """testJournalMetricTags, testJournal: each journal has its record, tagged with its id."""
    async with node_and_client(tmp_path, "one") as (daemon, one):
        two = NodeClient(daemon.rpc_port, "two")
        before = {jid: sample("nnha_jn_batches_written_total", jid) for jid in ("one", "two")}
        written = {name: sample(name, "one") for name in WRITTEN}
        for client in (one, two):
            await client.format()
            await client.new_epoch(7)
        await one.written(Writer(7), 1, 3)
        beans = {bean["name"]: bean for bean in (await get(daemon, "/jmx"))[1]["beans"]}
        assert len(beans) == 3
        for jid, batches, last, writer in (("one", 1, 3, 7), ("two", 0, 0, 0)):
            bean = beans[f"Hadoop:service=JournalNode,name=Journal-{jid}"]
            assert bean["tag.JournalId"] == jid
            assert bean["BatchesWritten"] == before[jid] + batches
            assert (bean["LastWrittenTxId"], bean["LastWriterEpoch"]) == (last, writer)
            assert bean["LastPromisedEpoch"] == 7
            assert sample("nnha_jn_writer_epoch", jid) == writer
        for name, grown in WRITTEN.items():
            assert sample(name, "one") - written[name] == grown, name
        for name, value in SHOWN.items():
            assert sample(name, "one") == value, name
        await two.close()


async def test_serving_is_throttled_and_says_the_digest(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, serve_bytes_per_second=100_000) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.written(writer, 1, 3000)
        await client.finalize(writer, 1, 3000)
        async with aiohttp.ClientSession() as session:
            began = time.monotonic()
            async with session.get(segment_url(daemon, 1)) as response:
                body = await response.read()
            took = time.monotonic() - began
        assert response.headers["X-Journal-Digest"] == digest(1, 3000).hex()
        # Half a second's bytes are free at the start.
        assert took >= 0.9 * (len(body) - 50_000) / 100_000
