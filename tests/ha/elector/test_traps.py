"""kazoo's and ZooKeeper's traps, met on a real server; see docs/zookeeper.md."""

import asyncio
import contextlib
import itertools
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import SessionExpiredError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import ForceRetryError
from kazoo.retry import InterruptedError as Interrupted

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.model import Role
from ha.elector.zookeeper import client as door
from ha.elector.zookeeper import loop_handler
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.outcome import Done, Doubt, SessionState, Unknown
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected
from tests import ROOT
from tests.ha.elector.people import Person, people, seated
from tests.ha.zkfc.zkfc_world import until

SESSION_SECONDS = 5.0
WAIT_SECONDS = 40.0

_scopes = itertools.count(1)


def _settings(hosts: str, *, timeout: float = SESSION_SECONDS) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=hosts,
        session_timeout_seconds=timeout,
        scope=f"/hadoop-ha/traps{next(_scopes)}",
        acl=parse_acl("world:anyone:rwcda"),
    )


def test_every_trap_of_the_table_names_tests_that_exist() -> None:
    table = (ROOT / "docs" / "zookeeper.md").read_text()
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 30
    files = [
        path for part in ("elector", "zkfc") for path in (ROOT / "tests/ha" / part).glob("test_*")
    ]
    defined = set(re.findall(r"def (test_\w+)", "".join(map(Path.read_text, files))))
    assert set(re.findall(r"`(test_\w+)`", table)) - defined == set()


def test_traps_2_17_18_30_no_recipe_and_no_other_handler_is_used() -> None:
    source = Path(door.__file__).read_text() + Path(loop_handler.__file__).read_text()
    used = set(re.findall(r"^from (kazoo\S*) import|^import (kazoo\S*)", source, re.MULTILINE))
    modules = {name for pair in used for name in pair if name}
    assert not [name for name in modules if "recipe" in name or "gevent" in name]
    assert issubclass(loop_handler.Handler, SequentialThreadingHandler)
    for word in ("DataWatch", "ChildrenWatch", ".Election(", ".Lock("):
        assert word not in source


async def test_traps_6_7_8_retries_are_bounded_and_never_straddle_sessions() -> None:
    client = Session(_settings("127.0.0.1:1"), lambda _state, _reason: None)._client
    slept: list[float] = []
    attempts = 0

    def nobody() -> None:
        nonlocal attempts
        attempts += 1
        raise ForceRetryError

    retry = client._connection.retry_sleeper.copy()
    retry.sleep_func = slept.append
    retry.interrupt = lambda: len(slept) >= 200
    with pytest.raises(Interrupted):  # it would go on for ever: an outage may be long
        retry(nobody)
    # Slept in slices; between two attempts there is no more than a second.
    assert sum(slept) <= attempts * 1.1, "a server that is back is found within a second"
    assert client._retry.max_tries == 1
    assert SessionExpiredError not in client._retry.retry_exceptions


async def test_a_close_that_hangs_is_not_confirmed_and_leaves_no_request_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(KazooClient, "stop", lambda _: go_on.wait())
    monkeypatch.setattr(KazooClient, "exists_async", lambda one, *_: one.handler.async_result())
    session = Session(_settings("127.0.0.1:1"), lambda _state, _reason: None)
    asked = session.look("/")
    assert not await session.close(deadline_seconds=0.01)
    assert asked.result() == Unknown(Doubt.LOST)
    go_on.set()


@contextlib.contextmanager
def _black_hole() -> Iterator[int]:
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # its queue is full after one or two; the rest gets no answer
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.zookeeper
async def test_trap_9_two_dead_hosts_leave_time_for_the_third(zookeeper: ZooKeeper) -> None:
    for _ in range(3):  # a busy machine makes us later, never earlier
        if await _connected_behind_two_dead_hosts_after_seconds(zookeeper, 9.0) < 6.0:
            return
    pytest.fail("never connected within two thirds of a session")


async def _connected_behind_two_dead_hosts_after_seconds(
    zookeeper: ZooKeeper, session_seconds: float
) -> float:
    with _black_hole() as first, _black_hole() as second:
        hosts = f"127.0.0.1:{first},127.0.0.1:{second},{zookeeper.connect}"
        settings = _settings(hosts, timeout=session_seconds)
        session = Session(settings, lambda _state, _reason: None)
        session._client.randomize_hosts = False
        began = time.monotonic()
        session.open()
        await until(lambda: session.timeout_seconds, "connected", seconds=WAIT_SECONDS)
        took_seconds = time.monotonic() - began
        assert await session.close(deadline_seconds=5.0)
        return took_seconds


@pytest.mark.zookeeper
async def test_trap_10_a_silent_server_is_noticed_in_half_a_session(zookeeper: ZooKeeper) -> None:
    # kazoo alone pings at a third of 10 s and gives up a third later, less its jitter of 0.4 s
    # each.  A busy machine makes us later, never earlier.
    for _ in range(3):
        if await _noticed_silence_after_seconds(zookeeper) < 5.6:
            return
    pytest.fail("never noticed as early as our own timer notices it")


async def _noticed_silence_after_seconds(zookeeper: ZooKeeper) -> float:
    states: list[SessionState] = []
    session = Session(
        _settings(zookeeper.connect, timeout=10.0), lambda state, _reason: states.append(state)
    )
    session.open()
    await until(lambda: SessionState.CONNECTED in states, "connected", seconds=WAIT_SECONDS)
    try:
        await session.look("/")
        zookeeper.process.freeze()
        began = time.monotonic()
        await until(lambda: SessionState.SUSPENDED in states, "noticed", seconds=WAIT_SECONDS)
        noticed = time.monotonic()
        # Nothing answers, and the end is reached all the same.
        assert not await session.close(deadline_seconds=1.0)
        assert time.monotonic() - noticed < 5.0
        return noticed - began
    finally:
        zookeeper.process.thaw()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.zookeeper
async def test_trap_12_the_end_of_kazoos_thread_costs_one_session(zookeeper: ZooKeeper) -> None:
    async with people(_settings(zookeeper.connect), "a") as (a,):
        await seated(a)
        number, session = a.keeper.session_id, a.keeper._sessions[max(a.keeper._sessions)]

        def bug(*_: object) -> None:
            raise ZeroDivisionError

        session._client._connection._read_socket = bug
        await until(lambda: a.told.count("active") == 2, "active again", seconds=WAIT_SECONDS)
        assert a.keeper.session_id != number
        assert a.told[:2] == ["active", "neutral"]


@pytest.mark.zookeeper
async def test_trap_15_a_busy_loop_costs_no_session(zookeeper: ZooKeeper) -> None:
    async with people(_settings(zookeeper.connect, timeout=2.0), "a") as (a,):
        await seated(a)
        number = a.keeper.session_id
        time.sleep(3.0)  # the loop's only thread, for longer than the session
        await asyncio.sleep(0.5)
        assert (a.keeper.session_id, a.role, a.told) == (number, Role.ACTIVE, ["active"])


@pytest.mark.zookeeper
async def test_trap_19_a_look_at_a_missing_znode_leaves_a_watch(zookeeper: ZooKeeper) -> None:
    settings = _settings(zookeeper.connect)
    path = f"/trap19-{next(_scopes)}"
    changes: list[bool] = []
    session = Session(settings, lambda _state, _reason: None, changes.append)
    session.open()
    await until(lambda: session.timeout_seconds, "connected", seconds=WAIT_SECONDS)
    assert await session.look(path, watch=True) == Done(None)
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as other:
        assert await other.create(path, ephemeral=True) == Done(None)
        await until(lambda: changes == [False], "told of the creation")
        assert isinstance(await session.look(path, watch=True), Done)
    await until(lambda: changes == [False, True], "told of the deletion")
    assert await session.close(deadline_seconds=5.0)


@pytest.mark.zookeeper
async def test_trap_21_the_lock_of_our_own_dead_session_is_waited_for(zookeeper: ZooKeeper) -> None:
    # As after kill -9 of a controller: its lock lies there until its session expires.
    settings = _settings(zookeeper.connect, timeout=2.0)
    async with people(settings, "a") as (a,):
        await seated(a)
        client = a.keeper._sessions[max(a.keeper._sessions)]._client
        client._stopped.set()  # no reconnect, and no word of leaving
        client._connection._socket.shutdown(2)
        await asyncio.to_thread(client._safe_close)
        a.elector.quit(keep_breadcrumb=True)
        again = Person("a", settings)
        task = asyncio.create_task(again.elector.run())
        again.join()
        await again.is_(Role.STANDBY)
        await until(lambda: again.role is Role.ACTIVE, "active", seconds=WAIT_SECONDS)
        assert again.told == ["standby", "active"], "nobody fences himself"
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.zookeeper
async def test_the_lease_is_counted_from_when_the_question_was_sent(zookeeper: ZooKeeper) -> None:
    settings = replace(_settings(zookeeper.connect), session_timeout_seconds=9.0)
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        zookeeper.process.freeze()
        look = session.look("/")
        await asyncio.sleep(0.5)
        unanswered = asyncio.get_running_loop().time()
        zookeeper.process.thaw()
        assert isinstance(await look, Done)
        assert session.last_contact is not None
        assert session.last_contact < unanswered, "not from when the answer came"
