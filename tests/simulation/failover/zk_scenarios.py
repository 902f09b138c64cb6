"""Scripts for the ZooKeeper client: the model must answer as a real server does.

A transcript holds what a client can rely on: outcomes, versions, whose an ephemeral is, watches,
and whether two writes share a transaction.  Numbers that a server chooses are named in order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ha.elector.zookeeper.credentials import AclEntry
from ha.elector.zookeeper.outcome import Done, Outcome, Refused, SessionState, Unknown, ZnodeFacts
from ha.elector.zookeeper.transaction import (
    CheckVersion,
    CreateEphemeral,
    Delete,
    Part,
    SetData,
)

DEADLINE_SECONDS: Final = 30.0


class Client(Protocol):
    """The door's session, real or modelled."""

    def open(self) -> None: ...

    async def close(self, *, deadline_seconds: float) -> bool: ...

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False
    ) -> asyncio.Future[Outcome[None]]: ...

    def create_numbered(self, prefix: str, data: bytes) -> asyncio.Future[Outcome[str]]: ...

    def look(
        self, path: str, *, watch: bool = False
    ) -> asyncio.Future[Outcome[ZnodeFacts | None]]: ...

    def read(self, path: str) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]]: ...

    def write(self, path: str, data: bytes, *, version: int) -> asyncio.Future[Outcome[int]]: ...

    def delete(self, path: str, *, version: int = -1) -> asyncio.Future[Outcome[None]]: ...

    def transact(self, parts: Sequence[Part]) -> asyncio.Future[Outcome[None]]: ...

    def children(
        self, path: str, *, watch: bool = False
    ) -> asyncio.Future[Outcome[tuple[str, ...]]]: ...

    def acl(self, path: str) -> asyncio.Future[Outcome[tuple[frozenset[AclEntry], int]]]: ...

    def set_acl(self, path: str, *, acl_version: int) -> asyncio.Future[Outcome[None]]: ...

    @property
    def session_id(self) -> int | None: ...


Connect = Callable[[Callable[[SessionState, str], None], Callable[[bool], None]], Client]
Expire = Callable[[Client], Awaitable[None]]


@dataclass
class Script:
    """One run: opens clients, and writes down what they see."""

    connect: Connect
    expire: Expire
    """Ends a client's session at the server."""
    scope: str
    lines: list[str] = field(default_factory=list)
    _writes: dict[int, int] = field(default_factory=dict)
    _clients: dict[str, Client] = field(default_factory=dict)
    _states: dict[str, list[SessionState]] = field(default_factory=dict)
    _fired: dict[str, list[bool]] = field(default_factory=dict)

    async def client(self, name: str) -> Client:
        states = self._states[name] = []
        fired = self._fired[name] = []
        made = self.connect(lambda state, _: states.append(state), fired.append)
        self._clients[name] = made
        made.open()
        await self.until(lambda: SessionState.CONNECTED in states)
        return made

    def note(self, what: str, outcome: Outcome[object]) -> None:
        self.lines.append(f"{what}: {self._told(outcome)}")

    async def fires(self, name: str, what: str, count: int = 1) -> None:
        """Wait until ``count`` watches of this client have fired since the last time."""
        fired = self._fired[name]
        await self.until(lambda: len(fired) >= count)
        told = ", ".join("deleted" if one else "changed" for one in fired)
        self.lines.append(f"{what}: {name} hears {told}")
        fired.clear()

    def silent(self, name: str, what: str) -> None:
        """Note that no watch has fired."""
        self.lines.append(f"{what}: {name} hears {self._fired[name] or 'nothing'}")

    async def ends(self, name: str) -> None:
        await self.until(lambda: SessionState.EXPIRED in self._states[name])
        self.lines.append(f"{name} knows that its session is over")

    async def finish(self) -> None:
        for one in self._clients.values():
            await one.close(deadline_seconds=5.0)

    @staticmethod
    async def until(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                await asyncio.sleep(0.005)

    def _told(self, outcome: Outcome[object]) -> str:
        match outcome:
            case Done(value=value):
                return f"done {self._shown(value)}"
            case Refused(why=why):
                return f"refused: {why.value}"
            case Unknown(why=why):
                return f"unknown: {why.value}"

    def _shown(self, value: object) -> str:
        match value:
            case ZnodeFacts():
                number = self._writes.setdefault(value.written_by, len(self._writes) + 1)
                ours = " ours" if value.ours else ""
                owned = " ephemeral" if value.owner else ""
                return f"version {value.version}{owned}{ours}, write {number}"
            case (bytes() as data, ZnodeFacts() as facts):
                return f"{data!r} {self._shown(facts)}"
            case (frozenset() as acl, int() as version):
                return f"{sorted(map(str, acl))} version {version}"
            case tuple() as names:  # a server lists them in no order
                return repr(sorted(names))
            case str():
                return value.removeprefix(self.scope)
            case _:
                return repr(value)


async def versions(script: Script) -> None:
    """Try conditional writes and deletes, and every refusal that a path can give."""
    one, top = await script.client("one"), script.scope
    script.note("create", await one.create(f"{top}/a", b"x"))
    script.note("again", await one.create(f"{top}/a", b"y"))
    script.note("no parent", await one.create(f"{top}/no/a", b""))
    script.note("read", await one.read(f"{top}/a"))
    script.note("write at 0", await one.write(f"{top}/a", b"y", version=0))
    script.note("write at 0 again", await one.write(f"{top}/a", b"z", version=0))
    script.note("write at any", await one.write(f"{top}/a", b"z", version=-1))
    script.note("read", await one.read(f"{top}/a"))
    script.note("look", await one.look(f"{top}/a"))
    script.note("delete at 1", await one.delete(f"{top}/a", version=1))
    script.note("delete at 2", await one.delete(f"{top}/a", version=2))
    script.note("delete again", await one.delete(f"{top}/a"))
    script.note("read nothing", await one.read(f"{top}/a"))
    script.note("write nothing", await one.write(f"{top}/a", b"", version=-1))
    script.note("look at nothing", await one.look(f"{top}/a"))
    script.note("anew", await one.create(f"{top}/a", b"n"))
    script.note("its version", await one.look(f"{top}/a"))
    script.note("below", await one.create(f"{top}/a/b"))
    script.note("not empty", await one.delete(f"{top}/a"))
    script.note("children", await one.children(top))
    script.note("children of nothing", await one.children(f"{top}/no"))


async def ephemerals(script: Script) -> None:
    """Show whose a lock is, and that it goes with its session, closed or expired."""
    one, two = await script.client("one"), await script.client("two")
    lock = f"{script.scope}/lock"
    script.note("one takes it", await one.create(lock, b"1", ephemeral=True))
    script.note("two wants it", await two.create(lock, b"2", ephemeral=True))
    script.note("one looks", await one.look(lock))
    script.note("two looks", await two.look(lock, watch=True))
    script.note("below a lock", await one.create(f"{lock}/x"))
    script.lines.append(f"one closes: {await one.close(deadline_seconds=5.0)}")
    await script.fires("two", "the lock goes")
    script.note("two takes it", await two.create(lock, b"2", ephemeral=True))
    three = await script.client("three")
    script.note("three looks", await three.look(lock, watch=True))
    await script.expire(two)
    await script.ends("two")
    await script.fires("three", "the lock goes")
    script.note("two asks", await two.look(lock))
    script.note("three takes it", await three.create(lock, b"3", ephemeral=True))
    script.note("three deletes it", await three.delete(lock))
    script.note("settled", await three.look(lock))
    script.silent("three", "no watch was left for that")


async def watches(script: Script) -> None:
    """Call once for one look, or many; a look at nothing waits for a creation."""
    one, two, top = await script.client("one"), await script.client("two"), script.scope
    script.note("look at nothing", await one.look(f"{top}/w", watch=True))
    script.note("create", await two.create(f"{top}/w", b""))
    await script.fires("one", "created")
    script.note("write unseen", await two.write(f"{top}/w", b"1", version=0))
    script.note("look", await one.look(f"{top}/w", watch=True))
    script.note("look again", await one.look(f"{top}/w", watch=True))
    script.note("write", await two.write(f"{top}/w", b"2", version=1))
    await script.fires("one", "written")
    script.note("look", await one.look(f"{top}/w", watch=True))
    script.note("delete", await two.delete(f"{top}/w"))
    await script.fires("one", "deleted")
    script.note("create", await two.create(f"{top}/w", b""))
    script.note("settled", await one.look(f"{top}/w"))
    script.silent("one", "no watch was left")
    script.note("list", await one.children(top, watch=True))
    script.note("child", await two.create(f"{top}/c"))
    await script.fires("one", "a child came")
    script.note("list", await one.children(top, watch=True))
    script.note("write of a child", await two.write(f"{top}/c", b"1", version=0))
    script.note("settled", await one.look(f"{top}/c"))
    script.silent("one", "a list does not hear of it")
    script.note("child goes", await two.delete(f"{top}/c"))
    await script.fires("one", "a child went")
    script.note("list nothing", await one.children(f"{top}/no", watch=True))
    script.note("create it", await two.create(f"{top}/no"))
    script.note("settled", await one.look(f"{top}/no"))
    script.silent("one", "a list of nothing leaves no watch")


async def numbers_and_rights(script: Script) -> None:
    """Show that numbered znodes count on; the ACL has a version of its own."""
    one, top = await script.client("one"), script.scope
    script.note("above", await one.create(f"{top}/h"))
    for _ in range(3):
        script.note("numbered", await one.create_numbered(f"{top}/h/r-", b"x"))
    script.note("delete", await one.delete(f"{top}/h/r-0000000001"))
    script.note("numbered", await one.create_numbered(f"{top}/h/r-", b"x"))
    script.note("another", await one.create(f"{top}/h/other"))
    script.note("numbered", await one.create_numbered(f"{top}/h/r-", b"x"))
    script.note("no parent", await one.create_numbered(f"{top}/no/r-", b"x"))
    script.note("list", await one.children(f"{top}/h"))
    script.note("acl", await one.acl(f"{top}/h"))
    script.note("set at 1", await one.set_acl(f"{top}/h", acl_version=1))
    script.note("set at 0", await one.set_acl(f"{top}/h", acl_version=0))
    script.note("acl", await one.acl(f"{top}/h"))
    script.note("data's version", await one.look(f"{top}/h"))
    script.note("acl of nothing", await one.acl(f"{top}/no"))


async def order(script: Script) -> None:
    """Carry out and answer a session's requests in order, a watch before later reads."""
    one, two, top = await script.client("one"), await script.client("two"), script.scope
    many: list[asyncio.Future[Any]] = [
        one.create(f"{top}/o", b"0"),
        one.write(f"{top}/o", b"1", version=0),
        one.write(f"{top}/o", b"2", version=1),
        one.read(f"{top}/o"),
        one.delete(f"{top}/o", version=2),
        one.look(f"{top}/o"),
    ]
    for number, outcome in enumerate(await asyncio.gather(*many)):
        script.note(f"request {number}", outcome)
    script.note("look", await one.look(f"{top}/p", watch=True))
    script.note("create", await two.create(f"{top}/p"))
    await script.fires("one", "created")
    script.note("seen", await one.look(f"{top}/p"))
    two.create(f"{top}/last", b"of two")
    script.lines.append(f"two closes behind it: {await two.close(deadline_seconds=5.0)}")
    three = await script.client("three")
    script.note("and it is there", await three.read(f"{top}/last"))


async def transactions(script: Script) -> None:
    """Do all parts or none; what one transaction has written carries one number."""
    one, two, top = await script.client("one"), await script.client("two"), script.scope
    lock, count = f"{top}/lock", f"{top}/count"
    made = (CreateEphemeral(lock, b"1"), SetData(count, b""))
    script.note("no count", await one.transact(made))
    script.note("no lock was made", await one.look(lock))
    script.note("count", await one.create(count))
    script.note("made", await one.transact(made))
    script.note("lock", await two.look(lock, watch=True))
    script.note("count", await two.look(count))
    script.note("made twice", await two.transact(made))
    script.note("at an old count", await two.transact((CheckVersion(count, 0), Delete(lock, 0))))
    script.note("at an old lock", await two.transact((CheckVersion(count, 1), Delete(lock, 1))))
    script.silent("two", "the lock stands")
    script.note("removed", await two.transact((CheckVersion(count, 1), Delete(lock, 0))))
    await script.fires("two", "the lock goes")
    script.note("gone", await two.transact((CheckVersion(count, 1), Delete(lock, 0))))
    script.note("no such", await two.transact((CheckVersion(f"{top}/no", 0), Delete(lock, 0))))
    script.note("two makes one", await two.transact(made))
    script.note("lock", await one.look(lock))
    script.note("count", await one.look(count))


SCENARIOS: Final = {
    one.__name__: one
    for one in (versions, ephemerals, watches, numbers_and_rights, order, transactions)
}
