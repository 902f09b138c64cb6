"""An unexpected error in a task of the NameNode ends the process, with the reason."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ha.conf.topology import HostPort
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role
from tests.namenode_sim.checkpoint.test_standby_checkpointer import RULES, place, write
from tests.namenode_sim.term.memory_journal import Bug, MemoryJournal
from tests.namenode_sim.term.test_namenode import namenode, until


async def take_over(node: NameNode) -> None:
    await node.become_active()


async def hand_over(node: NameNode) -> None:
    await node.become_active()
    await node.become_standby()


async def see_the_owner_break(node: NameNode) -> None:
    def listen(role: Role) -> None:
        raise Bug(role.value)

    node.listen_for_roles(listen)
    await node.become_active()


async def nothing(_node: NameNode) -> None:
    return


DEEDS: dict[str, tuple[str, Callable[[NameNode], Awaitable[None]], str]] = {
    "the journal cannot be followed": ("edits", nothing, "tail-edits"),
    "an epoch is not won": ("become_writer", take_over, "recovering the journal"),
    "a batch is not written": ("write", take_over, "edit-log"),
    "the log is not closed": ("finalize_segment", hand_over, "closing the edit log"),
    "the owner of the role fails": ("", see_the_owner_break, "role-owner"),
}


@pytest.mark.parametrize("case", DEEDS)
async def test_the_process_ends_with_the_reason(case: str) -> None:
    """Before, each of these tasks ended without a word, and its callers waited without end."""
    bug_in, deed, task = DEEDS[case]
    async with namenode(MemoryJournal(bug_in=bug_in)) as node:
        doing = asyncio.ensure_future(deed(node))
        try:
            async with asyncio.timeout(30):
                reason = await asyncio.shield(node.stopped_because)
        finally:
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)
    assert task in reason
    assert "failed unexpectedly: Bug: " in reason


async def test_a_look_that_breaks_does_not_end_those_that_follow(tmp_path: Path) -> None:
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one, place(tmp_path, "nn2", journal) as two:
        await one.node.become_active()
        write(one.node, "/a", "/b", "/c")
        one.node.roll_edits()
        await until(lambda: two.node.namespace.last_applied == 5)
        checkpoints = two.checkpointer({"nn1": one.http}, replace(RULES, check_seconds=0.01))
        inodes = two.node.namespace.tree.inodes
        inodes[99] = None  # type: ignore[assignment] # nothing of ours does that
        running = asyncio.create_task(checkpoints.run())
        try:
            await until(lambda: "NoneType" in str(checkpoints.status()["problem"]))
            inodes.discard(99)
            await until(lambda: one.storage.newest_txid() == 5)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_an_image_that_cannot_be_listed_for_a_moment_is_offered_later(tmp_path: Path) -> None:
    """Save it, with no answer of the active; then let the disk go away, and come back."""
    journal = MemoryJournal()
    async with place(tmp_path, "nn1", journal) as one, place(tmp_path, "nn2", journal) as two:
        await one.node.become_active()
        write(one.node, "/a", "/b", "/c")
        one.node.roll_edits()
        await until(lambda: two.node.namespace.last_applied == 5)
        others = {"nn1": HostPort("127.0.0.1", 1)}
        checkpoints = two.checkpointer(others)
        await checkpoints.look()
        others["nn1"] = one.http
        current, away = tmp_path / "nn2" / "current", tmp_path / "away"
        current.rename(away)
        await checkpoints.look()
        assert "holds no fsimage" in str(checkpoints.status()["problem"])
        away.rename(current)
        await checkpoints.look()
        assert one.storage.newest_txid() == 5
