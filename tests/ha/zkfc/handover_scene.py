"""A hand-over by itself: our controller's, and the two other controllers that it asks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.model import AttemptNumber
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.health.core import HealthSettings
from ha.rpc.client import RpcConnection
from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from ha.service.ha_service import zkfc_protocol
from ha.zkfc.handover.graceful_failover import HandOver, Situation
from ha.zkfc.record.attempts import Attempts
from ha.zkfc.record.takeover_record import AttemptRecord
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import Surroundings
from tests.ha.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode

SECONDS = 30.0
CEDE_MILLIS = 4000


@dataclass
class Peer:
    """Another NameNode's controller: what it was asked, and what it does before it answers."""

    name: str
    does: Callable[[], object] = lambda: None
    silent: bool = False
    asked: list[int] = field(default_factory=list)
    server: RpcServer | None = None
    port: int = 0

    async def start(self) -> None:
        self.server = RpcServer([zkfc_protocol(self)])
        self.port = await self.server.start(HOST, 0)

    async def stop(self) -> None:
        if self.server is not None:
            await self.server.stop()

    async def cede_active(self, millis: int, _call: Call) -> None:
        self.asked.append(millis)
        if millis > 0:
            self.does()
        if self.silent:
            await asyncio.Event().wait()

    async def graceful_failover(self, _call: Call) -> None:
        raise NotImplementedError


@dataclass
class Scene:
    """Our controller's hand-over, that of nn2, and two other controllers; nn1 is the active."""

    namenode: ToyNameNode
    holder: Peer
    other: Peer
    active: ActiveNodeInfo | Exception | None = None
    situation: Situation = field(default_factory=lambda: Situation(None, serving=False))
    attempts: Attempts = field(default_factory=Attempts)
    ended_cedes: int = 0
    failures: list[AttemptRecord] = field(default_factory=list)
    ready: RpcConnection | None = None
    new_active_seconds: float = SECONDS
    cede_seconds: float = CEDE_MILLIS / 1000
    at_read: Callable[[], object] = lambda: None
    broken: bool = False
    """Connections fail by a fault of ours."""
    hand_over: HandOver = field(init=False)

    def begin(self) -> None:
        self.active = self.named(self.holder)
        self.holder.does = lambda: self.tried()
        self.hand_over = HandOver(
            self.settings(),
            self.attempts,
            read_active=self.read_active,
            situation=lambda: self.situation,
            end_cede=self.end_cede,
            record_failure=self.failures.append,
            around=Surroundings(take_ready=lambda _: self.take_ready(), connect=self.connect),
        )

    def settings(self) -> ZkfcSettings:
        return ZkfcSettings(
            own=address("nn2", self.namenode.port, 1),
            others=(address("nn1", 1, self.holder.port), address("nn3", 1, self.other.port)),
            zookeeper=ZooKeeperSettings(hosts="x", session_timeout_seconds=1, scope="/x"),
            health=HealthSettings(),
            bind_host=HOST,
            graceful_fence_timeout_seconds=self.cede_seconds / 2,
            new_active_timeout_seconds=self.new_active_seconds,
        )

    def named(self, peer: Peer) -> ActiveNodeInfo:
        return ActiveNodeInfo("ns1", peer.name, HOST, 1, peer.port)

    def ours(self) -> ActiveNodeInfo:
        return ActiveNodeInfo("ns1", "nn2", HOST, self.namenode.port, 1)

    def tried(self, failure: str = "") -> None:
        number = AttemptNumber(self.attempts.number + 1)
        self.attempts.add(
            AttemptRecord(
                number=number, succeeded=not failure, text=failure, fenced="",
                duration_seconds=0.0, finished_at="",
            )
        )  # fmt: skip

    async def read_active(self) -> ActiveNodeInfo | None:
        await asyncio.sleep(0)
        self.at_read()
        if isinstance(self.active, Exception):
            raise self.active
        return self.active

    async def connect(self, host: str, port: int, **named: Any) -> RpcConnection:  # noqa: ANN401
        if self.broken:
            raise KeyError("a fault of ours")
        return await RpcConnection.open(host, port, **named)

    def end_cede(self) -> None:
        self.ended_cedes += 1

    def take_ready(self) -> RpcConnection | None:
        ready, self.ready = self.ready, None
        return ready

    @property
    def all_asked(self) -> list[list[int]]:
        return [self.holder.asked, self.other.asked]


def address(name: str, service_port: int, zkfc_port: int) -> NameNodeAddress:
    service, off = HostPort(HOST, service_port), HostPort(HOST, 0)
    return NameNodeAddress(
        "ns1", name, service, service, off, HostPort(HOST, zkfc_port), off, service
    )


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    namenode = ToyNameNode("nn2", SharedResource())
    await namenode.start()
    made = Scene(namenode, Peer("nn1"), Peer("nn3"))
    for peer in (made.holder, made.other):
        await peer.start()
    made.begin()
    try:
        async with asyncio.timeout(SECONDS):
            yield made
    finally:
        await made.hand_over.stop()
        for peer in (made.holder, made.other):
            await peer.stop()
        await namenode.die()
