"""A daemon is connected to once, and again where the connection has gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.cluster.ports import HOST, free_ports
from ha.web.kept_session import KeptConnections
from journal.cli.probe import JournalProbe, journal_probe
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from tests.journal.node.process import JID, NodeClient


class Daemon:
    """Counts its connections, answers with their numbers, and may break them or refuse."""

    def __init__(self) -> None:
        self.made = 0
        self.open: set[int] = set()
        self.broken: set[int] = set()
        self.refuses: Exception | None = None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[int]:
        self.made += 1
        number = self.made
        self.open.add(number)
        try:
            yield number
        finally:
            self.open.discard(number)

    async def question(self, number: int) -> int:
        if number in self.broken:
            raise ConnectionResetError(f"connection {number} is gone")
        if self.refuses is not None:
            raise self.refuses
        return number


async def test_each_daemon_has_one_connection_until_all_are_closed() -> None:
    one, other, kept = Daemon(), Daemon(), KeptConnections()
    for _ in range(3):
        assert await kept.ask("one", one.connected, one.question) == 1
        assert await kept.ask("other", other.connected, other.question) == 1
    assert (one.made, other.made, one.open, other.open) == (1, 1, {1}, {1})
    await kept.close()
    assert (one.open, other.open) == (set(), set())


async def test_a_connection_that_has_gone_is_made_again_at_once() -> None:
    daemon, kept = Daemon(), KeptConnections()
    await kept.ask("it", daemon.connected, daemon.question)
    daemon.broken = {1}
    assert await kept.ask("it", daemon.connected, daemon.question) == 2
    assert daemon.open == {2}
    daemon.broken = {2, 3}
    with pytest.raises(ConnectionResetError, match="3"):
        await kept.ask("it", daemon.connected, daemon.question)
    assert (daemon.open, daemon.made) == (set(), 3)


@pytest.mark.parametrize("refusal", [TimeoutError("late"), ValueError("no")])
async def test_who_is_late_or_refuses_is_not_asked_twice(refusal: Exception) -> None:
    """Ask once: a frozen daemon would take the rest of the look a second time."""
    daemon, kept = Daemon(), KeptConnections()
    await kept.ask("it", daemon.connected, daemon.question)
    daemon.refuses = refusal
    with pytest.raises(type(refusal), match=str(refusal)):
        await kept.ask("it", daemon.connected, daemon.question)
    assert (daemon.open, daemon.made) == (set(), 1)


async def test_a_question_that_is_given_up_closes_its_connection() -> None:
    """Close it, or its answer would come to the next question."""
    daemon, kept = Daemon(), KeptConnections()
    await kept.ask("it", daemon.connected, daemon.question)
    begun = asyncio.Event()

    async def never(_: int) -> None:
        begun.set()
        await asyncio.get_running_loop().create_future()

    asking = asyncio.create_task(kept.ask("it", daemon.connected, never))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert daemon.open == set()
    assert await kept.ask("it", daemon.connected, daemon.question) == 2


async def test_a_journalnode_is_asked_over_one_connection_and_found_again(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = NodeSettings(folder=tmp_path, rpc_port=port, http_port=0, stop_grace_seconds=0.0)
    kept, made = KeptConnections(), 0

    def opened() -> AbstractAsyncContextManager[JournalProbe]:
        nonlocal made
        made += 1
        return journal_probe(HOST, port, journal_id=JID, nameservice_id="ns1")

    async def ask() -> object:
        status = await kept.ask(port, opened, lambda node: node.status(timeout_seconds=30.0))
        return status["formatted"]

    try:
        async with JournalNodeDaemon(settings):
            client = NodeClient(port)
            await client.format()
            await client.close()
            assert [await ask() for _ in range(3)] == [True] * 3
            assert made == 1
        with pytest.raises(OSError, match="refused"):
            await ask()
        async with JournalNodeDaemon(settings):
            assert await ask()
    finally:
        await kept.close()
