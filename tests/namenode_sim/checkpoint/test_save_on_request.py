"""saveNamespace: what an image has, when none is saved, and what waits or ends until then."""

import asyncio
import os
import threading
from functools import partial
from pathlib import Path

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import RETRIABLE
from journal.writer.window import Ended
from namenode_sim.checkpoint.on_request import NotSaved, SaveOnRequest
from namenode_sim.checkpoint.standby import CheckpointAbandoned, to_its_end
from namenode_sim.image.files import check_digest, image_name
from namenode_sim.process.peer_service import forget_old
from namenode_sim.term.role import Role
from tests.namenode_sim.checkpoint.test_standby_checkpointer import Place, place, write
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.term.memory_journal import MemoryJournal
from tests.namenode_sim.term.test_namenode import NOBODY, until

DAY = 86_400


def saver(one: Place) -> SaveOnRequest:
    return SaveOnRequest(one.node, one.storage, partial(forget_old, one.storage, one.node))


async def test_the_active_and_a_standby_save_all_that_they_have(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one, place(tmp_path, "nn2", journal) as two:
        await one.node.become_active()
        write(one.node, "/a", "/b")
        assert await saver(one).save(0, 0)
        # The segment was ended, so that the standby has it and old edits can go.
        assert one.storage.newest_txid() == one.node.namespace.last_applied == 5
        assert journal.purged_below == 6
        await until(lambda: two.node.namespace.last_applied == 4)
        assert await saver(two).save(0, 0)
        assert two.storage.newest_txid() == 4
        for each in (one, two):
            check_digest(each.storage.newest_image())
            assert not differences(each.storage.load(), each.node.namespace)
        assert await saver(one).save(0, 0)  # once more, of the same edits
        assert one.storage.newest_txid() == 5


@pytest.mark.parametrize(
    ("window", "edits", "age", "saved"),
    [
        (0, 0, 0, True),
        (DAY, 2, 0, False),
        (DAY, 1, 0, True),
        (DAY, 2, DAY - 60, False),
        (DAY, 2, DAY + 60, True),
        (0, 2, 0, True),
        (DAY, 0, 0, True),
    ],
)
async def test_a_recent_image_will_do_where_the_caller_says_so(
    tmp_path: Path, window: int, edits: int, age: int, saved: bool
) -> None:
    """The newest image has no edit, and the journal two."""
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one:
        await one.node.become_active()
        write(one.node, "/a")
        image = one.storage.newest_image()
        written = image.stat().st_mtime - age - 0.5
        os.utime(image, (written, written))
        assert await saver(one).save(window, edits) is saved
        assert bool(one.storage.newest_txid()) is saved


async def test_a_disk_that_refuses_leaves_the_older_image(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one:
        await one.node.become_active()
        write(one.node, "/a")
        current = tmp_path / "nn1" / "current"
        (current / "fsimage.ckpt_0000000000000000004").mkdir()
        with pytest.raises(NotSaved, match="all other name directories failed"):
            await saver(one).save(0, 0)
        check_digest(current / image_name(one.storage.newest_txid()))
        assert journal.purged_below == 0
        one.node.namespace.apply(one.node.append(NOBODY), NOBODY)  # and it goes on
        assert one.node.state.role is Role.ACTIVE


def stuck_image(one: Place, txid: int) -> Path:
    """Have the next saving wait, until the file is opened for reading."""
    path = one.storage.directories[0] / "current" / f"fsimage.ckpt_{txid:019d}"
    os.mkfifo(path)
    return path


async def test_nothing_changes_while_an_image_is_saved(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one:
        await one.node.become_active()
        write(one.node, "/a")
        stuck = stuck_image(one, 4)
        saving = asyncio.create_task(saver(one).save(0, 0))
        await until(one.node.tailer.still.locked)
        with pytest.raises(RemoteFault) as refused:
            one.node.append(NOBODY)
        assert refused.value.java_class == RETRIABLE
        assert (one.node.roll_edits(), one.node.namespace.last_applied) == (4, 4)
        leaving = asyncio.create_task(one.node.become_standby())
        await until(lambda: one.node.state.role is Role.CLOSING)
        assert not leaving.done()
        reader = os.open(stuck, os.O_RDONLY | os.O_NONBLOCK)
        async with asyncio.timeout(30):
            with pytest.raises(NotSaved, match="nn1 is changing its role"):
                await saving
            await leaving
        os.close(reader)
        assert (one.storage.newest_txid(), one.node.namespace.last_applied) == (0, 5)
        assert not list(stuck.parent.glob("*ckpt*"))


async def test_an_edit_without_a_quorum_is_in_no_image(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one:
        await one.node.become_active()
        held: list[Ended] = []
        journal.held = held
        write(one.node, "/a")
        saving = asyncio.create_task(saver(one).save(0, 0))
        await until(lambda: bool(held))
        await until(one.node.tailer.still.locked)
        assert not saving.done()
        assert one.storage.newest_txid() == 0
        journal.held = None
        for ended in held:
            ended(None)
        async with asyncio.timeout(30):
            assert await saving
        assert one.storage.newest_txid() == 4


async def test_a_takeover_waits_for_no_disk(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one, place(tmp_path, "nn2", journal) as two:
        await one.node.become_active()
        write(one.node, "/a")
        await one.node.become_standby()
        await until(lambda: two.node.namespace.last_applied == journal.last_txid)
        stuck = stuck_image(two, journal.last_txid)
        saving = asyncio.create_task(saver(two).save(0, 0))
        await until(two.node.tailer.still.locked)
        taking = asyncio.create_task(two.node.become_active())
        await until(lambda: two.node.state.role is not Role.STANDBY)
        reader = os.open(stuck, os.O_RDONLY | os.O_NONBLOCK)
        async with asyncio.timeout(30):
            with pytest.raises(NotSaved, match="has saved no image"):
                await saving
            await taking
            assert await saver(two).save(0, 0)  # the next one is not abandoned
        os.close(reader)


async def test_none_is_saved_in_the_midst_of_a_takeover(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one:
        journal.answers.clear()
        taking = asyncio.create_task(one.node.become_active())
        await until(lambda: one.node.state.role is Role.RECOVERING)
        with pytest.raises(NotSaved, match="nn1 is changing its role"):
            await saver(one).save(0, 0)
        journal.answers.set()
        await taking


async def test_a_saving_whose_caller_is_cancelled_is_abandoned_and_waited_for() -> None:
    abandon, begun, ended = threading.Event(), threading.Event(), threading.Event()

    def save() -> Path:
        begun.set()
        assert abandon.wait(30)
        ended.set()
        raise CheckpointAbandoned

    saving = asyncio.create_task(to_its_end(save, abandon))
    await asyncio.to_thread(begun.wait)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert ended.is_set()
