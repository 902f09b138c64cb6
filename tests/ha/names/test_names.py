"""Names: one thread for each lookup, what is known while the resolver is silent, and sentences."""

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from ha.daemon import event_loop
from ha.daemon.event_loop import PlainLoop, fast_loop
from ha.names import BRIEFLY_SECONDS, MOST_LOOKUPS, Names, Unresolved, waited_for
from tests import PACKAGES, ROOT

NO_SERVER = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
NO_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
LONG = "h" * 64


@dataclass
class Resolver:
    """In place of the system's: answers from a table, or not before it is let go."""

    table: dict[str, str | Exception] = field(default_factory=dict)
    silent: bool = False
    asked: list[str] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)

    def look(self, host: str, port: int, family: int, kind: int, *_: int) -> list[object]:
        assert threading.current_thread().daemon, "no end of the process waits for it"
        self.asked.append(host)
        if self.silent:
            assert self.let_go.wait(60)
        found = self.table.get(host, NO_NAME)
        if isinstance(found, Exception):
            raise found
        return [(socket.AF_INET, kind or 1, 6, "", (found, port))]


@pytest.fixture
def resolver() -> Iterator[Resolver]:
    one = Resolver({"jn": "10.0.0.1"})
    yield one
    one.let_go.set()


async def found(names: Names, host: str, port: int = 8485) -> list[str]:
    answers = await names.getaddrinfo(host, port, kind=socket.SOCK_STREAM)
    assert all(answer[4][1] == port for answer in answers)
    return [answer[4][0] for answer in answers]


async def test_numbers_are_asked_of_no_resolver(resolver: Resolver) -> None:
    names = Names(resolver.look)
    assert await found(names, "127.0.0.1") == ["127.0.0.1"]
    assert await found(names, "::1") == ["::1"]
    assert names.known("::1", 7)[0][4][:2] == ("::1", 7)
    assert names.addresses("127.0.0.1", 7, 0)[0][4] == ("127.0.0.1", 7)
    assert not resolver.asked


async def test_a_lookup_under_way_is_joined_and_outlives_who_gave_it_up(resolver: Resolver) -> None:
    names = Names(resolver.look)
    resolver.silent = True
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(found(names, "jn"), 0.01)
    second = asyncio.create_task(found(names, "jn"))
    await asyncio.sleep(0)
    resolver.let_go.set()
    assert await second == ["10.0.0.1"]
    assert resolver.asked == ["jn"]


SILENCE: dict[str, Callable[[Resolver], None]] = {
    "silent": lambda resolver: setattr(resolver, "silent", True),
    "without a server": lambda resolver: resolver.table.update(jn=NO_SERVER),
    "of a name that has gone": lambda resolver: resolver.table.update(jn=NO_NAME),
    "of nothing": lambda resolver: resolver.table.update(jn=OSError(5, "I/O error")),
}


@pytest.mark.parametrize("fault", SILENCE.values(), ids=SILENCE)
@pytest.mark.parametrize("by_thread", [False, True])
async def test_the_last_addresses_are_used_at_once_where_the_resolver_is(
    resolver: Resolver, fault: Callable[[Resolver], None], by_thread: bool
) -> None:
    async def ask() -> list[str]:
        if not by_thread:
            return await found(names, "jn")
        answers = await asyncio.to_thread(names.addresses, "jn", 8485, 30)
        return [answer[4][0] for answer in answers]

    names = Names(resolver.look)
    assert await ask() == ["10.0.0.1"]
    fault(resolver)
    begun = time.monotonic()
    for _ in range(20):
        assert await ask() == ["10.0.0.1"]
    assert time.monotonic() - begun < BRIEFLY_SECONDS + 1, "only the first may wait, and briefly"
    assert [one[4][0] for one in names.known("jn", 1)] == ["10.0.0.1"]
    resolver.silent, resolver.table["jn"] = False, "10.0.0.2"
    resolver.let_go.set()
    async with asyncio.timeout(30):
        while await ask() != ["10.0.0.2"]:
            await asyncio.sleep(0.001)
    assert not names.trouble("jn"), "it resolves again"


@pytest.mark.parametrize(
    ("host", "fault", "sentence"),
    [
        ("gone", NO_NAME, "the name gone does not resolve: Name or service not known"),
        ("gone", NO_SERVER, f"the name gone does not resolve: {NO_SERVER.strerror}"),
        ("a\x1b[1m", NO_NAME, r"the name 'a\x1b[1m' does not resolve: Name or service not known"),
    ],
)
async def test_a_name_without_an_address_is_said_so(
    resolver: Resolver, host: str, fault: Exception, sentence: str
) -> None:
    names = Names(resolver.look)
    resolver.table[host] = fault
    with pytest.raises(Unresolved) as by_loop:
        await found(names, host)
    with pytest.raises(Unresolved) as by_thread:
        await asyncio.to_thread(names.addresses, host, 1, 30)
    for failure in (by_loop, by_thread):
        assert str(failure.value) == failure.value.strerror == sentence
    assert names.trouble(host) == sentence
    assert not names.trouble("jn")


@pytest.mark.parametrize("host", [LONG, "a..b", "a\0b"])
async def test_what_no_name_can_be_is_an_unresolved_name(host: str) -> None:
    names = Names()
    with pytest.raises(Unresolved, match="does not resolve"):
        await found(names, host)
    with pytest.raises(Unresolved, match="does not resolve"):
        names.addresses(host, 1, 30)


async def test_a_time_out_says_for_which_name_it_has_waited(resolver: Resolver) -> None:
    names = Names(resolver.look)
    resolver.silent = True
    with pytest.raises(TimeoutError) as late:
        async with asyncio.timeout(2 * BRIEFLY_SECONDS):
            await found(names, "jn")
    assert "name jn does not resolve: the resolver has not answered" in waited_for(late.value)
    assert "has not answered" in names.trouble("jn")
    with pytest.raises(Unresolved, match="has not answered within"):
        names.addresses("jn", 1, 0.01)
    with pytest.raises(TimeoutError) as other:
        async with asyncio.timeout(0):
            await asyncio.sleep(1)
    assert not waited_for(other.value)


async def test_lookups_under_way_are_bounded(resolver: Resolver) -> None:
    names = Names(resolver.look)
    await found(names, "jn")
    resolver.silent = True
    waiting = [asyncio.create_task(found(names, f"h{i}")) for i in range(MOST_LOOKUPS)]
    await asyncio.sleep(0)
    with pytest.raises(Unresolved, match=f"{MOST_LOOKUPS} other names wait"):
        await found(names, "one more")
    assert await found(names, "jn") == ["10.0.0.1"], "what is known needs no resolver"
    resolver.let_go.set()
    assert all(
        isinstance(one, Unresolved)
        for one in await asyncio.gather(*waiting, return_exceptions=True)
    )
    with pytest.raises(Unresolved, match="not known"):
        await found(names, "one more")


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
async def test_a_lookup_that_breaks_off_keeps_no_place_and_nobody_waiting(
    resolver: Resolver, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lookup without an end would be joined by each later one of that name."""

    def start(_thread: threading.Thread) -> None:
        raise error

    names = Names(resolver.look)
    if isinstance(error, RuntimeError):
        monkeypatch.setattr(threading.Thread, "start", start)
    else:
        resolver.table["h"] = error
        monkeypatch.setattr(threading, "excepthook", lambda _: None)
    for _ in range(MOST_LOOKUPS + 1):
        async with asyncio.timeout(20):
            with pytest.raises(Unresolved, match=r"start new thread|no address"):
                await found(names, "h")
    monkeypatch.undo()
    resolver.table["h"] = "10.0.0.2"
    assert await found(names, "h") == ["10.0.0.2"]


@pytest.mark.parametrize("factory", [PlainLoop, fast_loop], ids=["asyncio", "uvloop"])
def test_addresses_that_fail_in_several_ways_are_judged_by_each(
    factory: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port that refuses, and an address that no TCP connection has."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]

        def look(*_: object) -> list[object]:
            hosts = ("127.0.0.1", "255.255.255.255")
            return [(socket.AF_INET, 1, 6, "", (host, port)) for host in hosts]

        monkeypatch.setattr(event_loop, "NAMES", Names(look))
        with asyncio.Runner(loop_factory=factory) as runner:
            connecting = runner.get_loop().create_connection(asyncio.Protocol, "h", port)
            with pytest.raises(OSError, match=r"\[Errno 111\].*; \[Errno \d+\]") as failure:
                runner.run(connecting)
    assert failure.value.errno is None


def test_a_loop_of_ours_runs_each_command_and_only_one_module_asks_the_resolver() -> None:
    """A loop of asyncio's, or a lookup of its own, is ended only by the resolver."""
    asks = re.compile(
        r"socket\.(getaddrinfo|gethostbyname|getfqdn)|asyncio\.(run|new_event_loop)\("
    )
    allowed = {
        "ha/names.py",
        # Addresses of this machine to listen on, before anything is served.
        "ha/conf/listening.py",
        "ha/conf/topology.py",
        "ha/zkfc/process/open_znodes.py",
        "journal/node/lanes/lane.py",
        # This machine's name in its own principal, before anything is served.
        "ha/security/kerberos/settings.py",
        # Where listening there has failed already, to say why.
        "journal/node/process/daemon.py",
        # Only addresses of this moment may be fenced, in threads that have a limit.
        "fencing/local_kill.py",
        "fencing/ssh.py",
    }
    found = {
        f"{path.relative_to(ROOT)}: {hit.group()}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for hit in asks.finditer(path.read_text())
        if str(path.relative_to(ROOT)) not in allowed
    }
    assert found == set()
