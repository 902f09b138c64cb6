"""What a test leaves behind: what it opened, began or scheduled, and was not there before it.

Python itself warns of a socket or a file object that is collected while it is open.  It does not
warn of a number that ``os.open`` gave, of a thread, or of a process that is still waited for; nor
does gRPC of a channel, or asyncio of a task that is cancelled with its loop.  These are pytest's
hooks.
"""

import asyncio
import contextlib
import functools
import gc
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final, cast

import grpc.aio
import pytest

from deploy.local.cluster import ports

WATCHED: Final = (
    "tests/datanode/",
    "tests/fencing/",
    "tests/ha/elector/",
    "tests/ha/health/",
    "tests/ha/rpc/",
    "tests/ha/web/test_kept_session",
    "tests/journal/core/",
    "tests/journal/links/",
    "tests/journal/reader/",
    "tests/journal/storage/",
    "tests/namenode_sim/startup/",
    "tests/namenode_sim/term/",
    "tests/spark/backup/",
)
"""Parts that read and write themselves."""
SETTLED_SECONDS: Final = 10.0
"""What a test has ended may take a moment to be gone: a thread's last steps, a process's end."""
_KEPT_OPEN: Final = ("anon_inode:[eventpoll]", "anon_inode:[eventfd]", str(ports.CLAIMS))
"""gRPC keeps some for the whole life of a process, as we keep the file of all ports."""
_OF_PROCESS: Final = ("audit file", "kerberos_", "later", "sasl_")
"""Threads that are kept for the life of a process: two pools, audits, what is said in a minute."""
_LINGERS: Final = "RequestHandler.start"
"""A task of aiohttp's, which reads the rest of a refused body for ten seconds."""
_LOOP: Final = "_function_scoped_runner"
"""The fixture that holds the loop of a test and of its other fixtures."""
_SELF: Final = Path("/proc/self")
_kept: Final = set[str]()
_channels: Final = list[Any]()
_BEFORE: Final = pytest.StashKey[set[str]]()


def _noted(make: Callable[..., Any]) -> Callable[..., Any]:
    def make_and_note(*given: object, **named: object) -> Any:  # noqa: ANN401 - grpc has no types
        _channels.append(make(*given, **named))
        return _channels[-1]

    return make_and_note


for kind in ("insecure_channel", "secure_channel"):
    setattr(grpc.aio, kind, _noted(getattr(grpc.aio, kind)))


def _open_channels() -> set[str]:
    """Forget the channels that are closed, for a process has a poller until then; name others."""
    shut = grpc.ChannelConnectivity.SHUTDOWN
    _channels[:] = [one for one in _channels if one.get_state() is not shut]
    return {f"channel of gRPC {id(one)}" for one in _channels}


def descriptors() -> dict[int, str]:
    """Return what this process has open, by number."""
    found = dict[int, str]()
    for number in (_SELF / "fd").iterdir():
        with contextlib.suppress(OSError):  # closed since it was listed
            found[int(number.name)] = str(number.readlink())
    return found


def held() -> set[str]:
    """Return what this process holds now, each with a name that is its own."""
    opened = {
        f"descriptor {number} of {of}"
        for number, of in descriptors().items()
        if of not in _KEPT_OPEN
    }
    threads = {
        f"thread {one.name} ({one.ident})"
        for one in threading.enumerate()
        if not one.name.startswith(_OF_PROCESS)
    }
    children = list[str]()
    for task in (_SELF / "task").iterdir():  # a process is listed under the thread that began it
        with contextlib.suppress(OSError):  # the thread has ended
            children += (task / "children").read_text().split()
    processes = {f"process {number}" for number in children}
    return opened | threads | processes | _open_channels()


def left(before: set[str]) -> set[str]:
    """Return what is held and was not before, once it has had time to end.

    What only a cycle of objects holds is collected first: gRPC's poller lives as long as the last
    object of a channel that was closed.
    """
    if not held() - before:
        return set()
    gc.collect()
    until = time.monotonic() + SETTLED_SECONDS
    while (more := held() - before) and time.monotonic() < until:
        time.sleep(0.005)
    return more


def _is_watched(item: pytest.Item) -> bool:
    shares_a_jvm = item.get_closest_marker("interop")
    return item.nodeid.startswith(WATCHED) and not shares_a_jvm


@contextlib.contextmanager
def kept() -> Generator[None]:
    """Let stay what is begun here: it belongs to a fixture of several tests."""
    before = held()
    try:
        yield
    finally:
        _kept.update(held() - before)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    with contextlib.nullcontext() if fixturedef.scope == "function" else kept():
        made = yield
    if fixturedef.argname == _LOOP and _is_watched(request.node):
        # Called when all that uses the loop has ended, and before its tasks are cancelled with it.
        fixturedef.addfinalizer(functools.partial(_fail_with_tasks, cast(asyncio.Runner, made)))
    return made


def _fail_with_tasks(runner: asyncio.Runner) -> None:
    more = runner.run(_tasks_left())
    assert not more, f"left behind: {', '.join(sorted(more))}"


async def _tasks_left() -> list[str]:
    """Return the tasks that go on, once they have had time to end."""

    def going_on() -> list[str]:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        named = [f"task {one.get_name()} of {one.get_coro()}" for one in others]
        return [name for name in named if _LINGERS not in name]

    until = time.monotonic() + SETTLED_SECONDS
    while going_on() and time.monotonic() < until:
        await asyncio.sleep(0.005)
    return going_on()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    _channels.clear()
    item.stash[_BEFORE] = held()
    _kept.clear()  # what fixtures of several tests hold by now is in it
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail a test behind which something stays; the tests after it are not blamed for it."""
    result = yield
    if _is_watched(item):
        cast(pytest.Function, item).funcargs.clear()  # closed channels are objects of these
        more = left(item.stash[_BEFORE] | _kept)
        assert not more, f"left behind: {', '.join(sorted(more))}"
    return result
