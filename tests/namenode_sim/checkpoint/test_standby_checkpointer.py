"""Checkpoints of a running standby: saved, shipped, abandoned for a takeover, old edits let go."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from ha.conf.topology import HostPort
from ha.daemon.http.endpoint import Endpoint
from journal.model import TxId
from namenode_sim.checkpoint.image_receive import ImageReceiver, Recipient
from namenode_sim.checkpoint.schedule import CheckpointRules
from namenode_sim.checkpoint.standby import StandbyCheckpointer, UploadSettings
from namenode_sim.image.files import check_digest
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.peer_service import forget_old
from namenode_sim.storage.retention import Retention
from namenode_sim.storage.storage import NameStorage, StorageSettings, open_name_dirs
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.startup.startup_world import mkdir
from tests.namenode_sim.term.memory_journal import MemoryJournal
from tests.namenode_sim.term.test_namenode import NOBODY, namenode, until
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

RULES = CheckpointRules(period_seconds=3600.0, edits=4)
NO_EXTRA = StorageSettings(retention=Retention(images=1, extra_edits=0))


@dataclass
class Place:
    """One NameNode with a name directory and an HTTP server."""

    node: NameNode
    storage: NameStorage
    http: HostPort

    def checkpointer(
        self, others: Mapping[str, HostPort], rules: CheckpointRules = RULES
    ) -> StandbyCheckpointer:
        return StandbyCheckpointer(
            self.node, self.storage, others, rules=rules, upload=UploadSettings(stall_seconds=20)
        )


@asynccontextmanager
async def place(folder: Path, name: str, journal: MemoryJournal) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        format_name_dirs([folder / name], info(), Namespace.empty("root"))
        storage = open_name_dirs([folder / name], NO_EXTRA)
        stack.callback(storage.close)
        node = await stack.enter_async_context(namenode(journal, name))
        recipient = Recipient(
            active=lambda: node.state.role is Role.ACTIVE,
            epoch=lambda: node.epoch,
            written_to=lambda: node.namespace.last_applied,
            received=partial(forget_old, storage, node),
        )
        routes: list[web.RouteDef] = [ImageReceiver(storage, recipient, edits=4).route()]
        http = Endpoint(status=dict, healthy=lambda: None, routes=lambda: routes)
        port = await http.start("127.0.0.1", 0)
        stack.push_async_callback(http.stop)
        yield Place(node, storage, HostPort("127.0.0.1", port))


def write(node: NameNode, *paths: str) -> None:
    for path in paths:
        op = mkdir(path)
        node.namespace.apply(node.append(op), op)


async def test_a_standby_saves_ships_and_the_active_lets_old_edits_go(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one, place(tmp_path, "nn2", journal) as two:
        await one.node.become_active()
        checkpoints = two.checkpointer({"nn1": one.http})
        write(one.node, "/a")
        one.node.roll_edits()
        await until(lambda: two.node.namespace.last_applied == 3)
        await checkpoints.look()
        assert two.storage.newest_txid() == 0  # three edits are fewer than four
        write(one.node, "/b", "/c")
        one.node.roll_edits()
        await until(lambda: two.node.namespace.last_applied == 7)
        await checkpoints.look()
        for each in (one, two):
            assert each.storage.newest_txid() == 7
            check_digest(each.storage.newest_image())
            assert not differences(each.storage.load(), two.node.namespace)
        assert journal.purged_below == 8  # one image is kept, and no edit behind it
        assert checkpoints.status()["txid"] == 7


async def test_an_image_that_could_not_be_shipped_is_offered_again(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one, place(tmp_path, "nn2", journal) as two:
        await one.node.become_active()
        write(one.node, "/a", "/b", "/c")
        one.node.roll_edits()
        await until(lambda: two.node.namespace.last_applied == 5)
        others = {"nn1": HostPort("127.0.0.1", 1)}
        checkpoints = two.checkpointer(others)
        await checkpoints.look()
        assert (two.storage.newest_txid(), one.storage.newest_txid()) == (5, 0)
        assert "127.0.0.1:1" in str(checkpoints.status()["problem"])
        others["nn1"] = one.http
        await checkpoints.look()
        assert one.storage.newest_txid() == 5


async def test_a_takeover_does_not_wait_for_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop the save in the middle; the transition ends it and nothing of it is left."""
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one, place(tmp_path, "nn2", journal) as two:
        await one.node.become_active()
        write(one.node, "/a", "/b", "/c")
        await one.node.become_standby()
        await until(lambda: two.node.namespace.last_applied == journal.last_txid)
        checkpoints = two.checkpointer({})
        saving, stuck = threading.Event(), threading.Event()
        check = checkpoints._check

        def slow() -> None:
            saving.set()
            while not stuck.wait(0.001):
                check()

        monkeypatch.setattr(checkpoints, "_check", slow)
        look = asyncio.create_task(checkpoints.look())
        await until(saving.is_set)
        async with asyncio.timeout(30):
            await two.node.become_active()
            await look
        assert two.storage.newest_txid() == 0
        assert not list((tmp_path / "nn2" / "current").glob("*ckpt*"))


async def test_an_active_saves_nothing(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one:
        await one.node.become_active()
        for _ in range(9):
            one.node.namespace.apply(one.node.append(NOBODY), NOBODY)
        await one.checkpointer({}).look()
        assert one.storage.newest_txid() == TxId(0)


async def test_what_became_active_while_a_checkpoint_waited_saves_nothing(tmp_path: Path) -> None:
    """Bad schedule: the namespace of an active changes while a thread reads it."""
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one, place(tmp_path, "nn2", journal) as two:
        await one.node.become_active()
        write(one.node, "/a", "/b", "/c")
        await one.node.become_standby()
        await until(lambda: two.node.namespace.last_applied == journal.last_txid)
        async with two.node.tailer.still:
            look = asyncio.create_task(two.checkpointer({}).look())
            await asyncio.sleep(0)  # it waits
            taking = asyncio.create_task(two.node.become_active())
            await until(lambda: two.node.state.role is not Role.STANDBY)
        await asyncio.gather(look, taking)
        assert two.storage.newest_txid() == 0
