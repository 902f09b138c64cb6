"""The groups of users are asked for outside the event loop, and kept within limits."""

import asyncio
import grp
import os
import threading

import pytest

from namenode_sim.process.user_groups import SystemGroups

SECONDS = 30.0


class Directory:
    """What the machine asks, slow as long as the test wants."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = threading.Event()
        self.answers.set()
        self.groups = frozenset({"staff"})

    def __call__(self, user: str) -> frozenset[str]:
        self.asked.append(user)
        assert self.answers.wait(SECONDS)
        return self.groups


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_directory_service_that_does_not_list_all_groups_is_asked_for_a_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SSSD lists none by default (``enumerate = false``)."""
    daemon = grp.getgrnam("daemon").gr_gid
    monkeypatch.setattr(grp, "getgrall", list)
    monkeypatch.setattr(os, "getgrouplist", lambda _user, own: [own, daemon, 4_000_000_000])
    groups = SystemGroups()
    await groups.learn("root")
    assert groups.known("root") == {grp.getgrgid(0).gr_name, "daemon"}
    await groups.learn("no-such-user")
    assert groups.known("no-such-user") == frozenset()


async def test_the_loop_turns_while_a_directory_service_takes_its_time() -> None:
    directory = Directory()
    directory.answers.clear()
    groups = SystemGroups(ask=directory)
    waiting = [asyncio.create_task(groups.learn(user)) for user in ("ann", "bob", "cid", "ann")]
    async with asyncio.timeout(SECONDS):
        while len(directory.asked) < 2:
            await asyncio.sleep(0)  # this loop turns: nothing blocks it
    assert groups.known("ann") == frozenset()
    directory.answers.set()
    await asyncio.gather(*waiting)
    assert groups.known("ann") == {"staff"}
    assert sorted(directory.asked) == ["ann", "bob", "cid"], "one question for two callers"


async def test_an_answer_that_is_old_is_asked_for_again_and_not_waited_for() -> None:
    directory, clock = Directory(), Clock()
    groups = SystemGroups(ask=directory, lifetime_seconds=300, clock=clock)
    await groups.learn("ann")
    clock.now = 299
    await groups.learn("ann")
    assert directory.asked == ["ann"]
    clock.now, directory.groups = 301, frozenset({"admins"})
    directory.answers.clear()
    await groups.learn("ann")
    assert groups.known("ann") == {"staff"}
    directory.answers.set()
    async with asyncio.timeout(SECONDS):
        while groups.known("ann") != {"admins"}:
            await asyncio.sleep(0.001)


async def test_strangers_names_do_not_fill_the_memory() -> None:
    groups = SystemGroups(ask=Directory(), max_remembered=10)
    for number in range(50):
        await groups.learn(f"stranger-{number}")
    known = [number for number in range(50) if groups.known(f"stranger-{number}")]
    assert known == list(range(40, 50))


async def test_a_refresh_asks_again_and_does_not_keep_an_answer_from_before() -> None:
    """A call that was let in before goes on with the old groups, and not without any."""
    directory = Directory()
    groups = SystemGroups(ask=directory)
    await groups.learn("ann")
    directory.answers.clear()
    late = asyncio.create_task(groups.learn("bob"))
    async with asyncio.timeout(SECONDS):
        while directory.asked != ["ann", "bob"]:
            await asyncio.sleep(0)
    groups.forget()
    assert not groups.has_learnt("ann")
    assert groups.known("ann") == {"staff"}
    waiting = asyncio.create_task(groups.learn("ann"))
    await asyncio.sleep(0)
    assert not waiting.done()
    directory.answers.set()
    async with asyncio.timeout(SECONDS):
        await asyncio.gather(late, waiting)
    assert sorted(directory.asked) == ["ann", "ann", "bob", "bob"]
