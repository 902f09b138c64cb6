"""What a test leaves behind: descriptors, threads and processes that were not there before it.

Python itself warns of a socket or a file object that is collected while it is open.  It does not
warn of a number that ``os.open`` gave, of a thread, or of a process that is still waited for.
These are pytest's hooks.
"""

import contextlib
import gc
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from deploy.local.cluster import ports

WATCHED: Final = (
    "tests/datanode/",
    "tests/fencing/",
    "tests/ha/elector/",
    "tests/ha/health/",
    "tests/ha/rpc/",
    "tests/journal/core/",
    "tests/journal/links/",
    "tests/journal/storage/",
    "tests/namenode_sim/term/",
)
"""Parts that read and write themselves."""
SETTLED_SECONDS: Final = 10.0
"""What a test has ended may take a moment to be gone: a thread's last steps, a process's end."""
_KEPT_OPEN: Final = ("anon_inode:[eventpoll]", "anon_inode:[eventfd]", str(ports.CLAIMS))
"""gRPC keeps some for the whole life of a process, as we keep the file of all ports."""
_OF_PROCESS: Final = ("audit file", "kerberos_", "later", "sasl_")
"""Threads that are kept for the life of a process: two pools, audits, what is said in a minute."""
_SELF: Final = Path("/proc/self")
_kept: Final = set[str]()
_BEFORE: Final = pytest.StashKey[set[str]]()


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
    return opened | threads | {f"process {number}" for number in children}


def left(before: set[str], seconds: float = SETTLED_SECONDS) -> set[str]:
    """Return what is held and was not before, once it has had time to end.

    What only a cycle of objects holds is collected first: gRPC's poller lives as long as the last
    object of a channel that was closed.
    """
    if not held() - before:
        return set()
    gc.collect()
    until = time.monotonic() + seconds
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
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    with contextlib.nullcontext() if fixturedef.scope == "function" else kept():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    item.stash[_BEFORE] = held()
    _kept.clear()  # what fixtures of several tests hold by now is in it
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail a test behind which something stays; the tests after it are not blamed for it."""
    result = yield
    if _is_watched(item):
        more = left(item.stash[_BEFORE] | _kept)
        assert not more, f"left behind: {', '.join(sorted(more))}"
    return result
