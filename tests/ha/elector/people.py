"""Electors whose application only notes what it is asked, on a real ZooKeeper."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from kazoo.client import KazooClient

from ha.elector.events import Event
from ha.elector.keeper import KazooKeeper
from ha.elector.model import AttemptNumber, Role, Term
from ha.elector.runner import Elector
from ha.elector.state import ElectorState
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, decode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.errors import BadBreadcrumb, TakeoverImpossible
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from tests.ha.zkfc.zkfc_world import until


@dataclass
class Person:
    """An application that notes what the election asks of it."""

    name: str
    settings: ZooKeeperSettings
    told: list[str] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    fenced: list[ActiveNodeInfo] = field(default_factory=list)
    refuse_to_fence: bool = False

    def __post_init__(self) -> None:
        self.elector = Elector(
            name=self.name,
            application=self,
            keeper=lambda post: KazooKeeper(self.settings, post),
            look_interval_seconds=0.2,
        )

    @property
    def keeper(self) -> KazooKeeper:
        assert isinstance(self.elector.keeper, KazooKeeper)
        return self.elector.keeper

    @property
    def role(self) -> Role:
        return self.elector.state.role

    def join(self) -> None:
        self.elector.join(self.name.encode())

    async def vanish(self) -> None:
        session = self.keeper._sessions[max(self.keeper._sessions)]
        await end_session(session, self.settings.hosts)

    async def is_(self, role: Role) -> None:
        """Wait until the elector has this role, and has had its application serve as a standby."""
        await until(
            lambda: self.role is role and (role is not Role.STANDBY or "standby" in self.told[-1:]),
            f"{self.name} {role}, not {self.role}",
        )

    async def fence_old_active(self, attempt: AttemptNumber, content: bytes, term: Term) -> None:
        self.terms.append(term)
        if self.refuse_to_fence:
            raise TakeoverImpossible("switched off")
        self.told.append(f"fence {content.decode(errors='replace')}")
        with suppress(BadBreadcrumb):
            self.fenced.append(decode(content))

    async def serve_as_active(self, attempt: AttemptNumber) -> None:
        self.told.append("active")

    async def serve_as_standby(self) -> None:
        self.told.append("standby")

    def observe_step(self, event: Event, before: ElectorState, after: ElectorState) -> None:
        if before.role is not after.role and after.role is Role.NEUTRAL:
            self.told.append("neutral")

    def takeover_failed(self, attempt: AttemptNumber, reason: str) -> None:
        self.told.append(f"failed: {reason}")

    def abort(self, reason: str) -> None:
        self.told.append(f"gave up: {reason}")


@asynccontextmanager
async def people(settings: ZooKeeperSettings, *names: str) -> AsyncIterator[list[Person]]:
    async with connected(settings, deadline_seconds=10.0) as session:
        await ensure_parent(session, settings)
    made = [Person(name, settings) for name in names]
    tasks = [asyncio.create_task(one.elector.run()) for one in made]
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def end_session(session: Session, hosts: str) -> None:
    """End a session at the server, by a second client with its number and password."""
    client_id = session._client.client_id

    def end() -> None:
        thief = KazooClient(hosts=hosts, client_id=client_id, timeout=5)
        thief.start()
        thief.stop()
        thief.close()

    await asyncio.to_thread(end)


async def count_locks(settings: ZooKeeperSettings) -> None:
    """Create the count as the first lock does, so that the next lock is made by one transaction."""
    async with connected(settings, deadline_seconds=40.0) as session:
        await ensure_parent(session, settings)
        assert isinstance(await session.create(settings.count), Done)


async def seated(active: Person, *standbys: Person) -> None:
    """Have the first take the lock, and then the others stand by."""
    for person in (active, *standbys):
        person.join()
        await person.is_(Role.ACTIVE if person is active else Role.STANDBY)
