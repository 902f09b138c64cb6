"""A JournalNode's start and a format, cancelled at each await: nothing is left over."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from journal.core.requests import Format
from journal.errors import StorageFailed
from journal.model import Epoch, JournalId
from journal.node.node import JournalNode
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.storage.disk import Disk
from journal.storage.lock import StorageLock
from tests import awaits
from tests.awaits import Cuts
from tests.journal.core.requests_of import LIFE, NAMESPACE

HOST = "127.0.0.1"
FORMAT = Format(NAMESPACE, incarnation=LIFE)
AGAIN = replace(
    FORMAT, force=True, seen_promised=Epoch(0), seen_namespace_id=NAMESPACE.namespace_id
)


def new_node(folder: Path) -> JournalNode:
    return JournalNode(NodeSettings(folder=folder, edits_cache_bytes=0))


def settings_of(folder: Path) -> NodeSettings:
    return NodeSettings(
        folder=folder, rpc_port=0, http_port=0, hadoop_host=HOST, hadoop_port=0, lane_host=HOST,
        edits_cache_bytes=0, stop_grace_seconds=0.0,
    )  # fmt: skip


async def formatted(folder: Path, *names: str) -> None:
    node = new_node(folder)
    await node.load()
    for name in names:
        await node.format(name, "", FORMAT)
    await node.stop()


async def test_a_start_that_is_cut_short_leaves_no_journal_open(tmp_path: Path) -> None:
    await formatted(tmp_path, "ns1", "ns2")
    node = new_node(tmp_path)

    async def start() -> None:
        nonlocal node
        node = new_node(tmp_path)
        await node.load()

    async def after(number: int) -> None:
        await node.stop()
        assert awaits.files_open_below(tmp_path) == [], number
        assert awaits.tasks_left() == set(), number

    assert await awaits.cut_at_each_await(start, after) > 6
    await formatted(tmp_path, "ns3")


@pytest.mark.parametrize("turns", range(0, 60, 4))
async def test_a_node_that_stops_in_a_format_leaves_nothing_open(
    tmp_path: Path, turns: int
) -> None:
    """A format goes on though its caller goes, until the node stops; another node can repeat it."""
    node = new_node(tmp_path)
    await node.load()
    formatting = asyncio.create_task(node.format("ns1", "", FORMAT))
    for _ in range(turns):
        await asyncio.sleep(0)
    formatting.cancel()
    await node.stop()
    await asyncio.gather(formatting, return_exceptions=True)
    assert awaits.files_open_below(tmp_path) == []
    assert awaits.tasks_left() == set()
    again = new_node(tmp_path)
    await again.load()
    await again.format("ns1", "", AGAIN)
    await again.stop()


async def test_a_journal_that_cannot_be_loaded_leaves_the_others_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await formatted(tmp_path, "ns1", "ns2")
    load, loaded = Disk.load, 0

    def fail_the_second_time(disk: Disk) -> object:
        nonlocal loaded
        loaded += 1
        if loaded == 2:
            raise OSError("the disk is gone")
        return load(disk)

    monkeypatch.setattr(Disk, "load", fail_the_second_time)
    node = new_node(tmp_path)
    with pytest.raises(OSError, match="the disk is gone"):
        await node.load()
    assert awaits.files_open_below(tmp_path) == []
    monkeypatch.undo()
    await formatted(tmp_path, "ns3")


async def test_a_lock_is_given_back_by_the_thread_that_took_it_too_late(tmp_path: Path) -> None:
    await formatted(tmp_path, "ns1")
    other = StorageLock(tmp_path / "ns1")
    with pytest.raises(StorageFailed, match="in use"):
        await new_node(tmp_path).load()
    other.release()
    node = new_node(tmp_path)
    starting = asyncio.create_task(node.load())
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    StorageLock(tmp_path / "ns1").release()
    assert node.find(JournalId("ns1")) is None


async def test_a_daemon_that_is_cut_short_leaves_no_listener(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    await formatted(tmp_path, "ns1")
    daemon = JournalNodeDaemon(settings)

    async def life() -> None:
        nonlocal daemon
        daemon = JournalNodeDaemon(settings)
        async with daemon:
            await asyncio.sleep(0)

    async def after(_: int) -> None:
        await daemon.stop()

    cuts = Cuts(life, kept=frozenset({"_asyncio.Future", "socket:"}))  # those are gRPC's
    assert await awaits.cut_at_each_await(cuts, after) > 12


async def test_a_disk_that_fails_at_the_end_keeps_no_other_journal_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await formatted(tmp_path, "ns1", "ns2")
    node = new_node(tmp_path)
    await node.load()
    before = threading.active_count()

    def fail(_: Disk) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(Disk, "close", fail)
    await node.stop()
    monkeypatch.undo()
    assert awaits.files_open_below(tmp_path) == []
    assert threading.active_count() <= before
    await formatted(tmp_path, "ns3")
