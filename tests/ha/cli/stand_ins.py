"""Stand-ins for a cluster's processes, behind the real servers and protocols."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from ha.cli.hadoop.haadmin import run as haadmin
from ha.daemon.http.endpoint import Endpoint
from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from ha.service.errors import AccessDenied, HealthCheckFailed, ServiceFailed
from ha.service.ha_service import ha_service_protocol, zkfc_protocol
from ha.service.model import RequestSource, ServiceState, ServiceStatus
from tests.stand_in import say_nothing, stand_in

LOOPBACK = "127.0.0.1"


@dataclass
class NameNode:
    """A NameNode that obeys every request and remembers its source."""

    state: ServiceState = ServiceState.STANDBY
    unwell: str | None = None
    asked: list[tuple[str, RequestSource]] = field(default_factory=list)
    page: dict[str, object] = field(default_factory=dict)
    hang_up: bool = False
    """It obeys, and its answer is lost."""
    server: RpcServer | None = None

    async def status(self) -> ServiceStatus:
        return ServiceStatus(self.state, self.unwell is None, self.unwell or "")

    async def monitor_health(self) -> None:
        if self.unwell is not None:
            raise HealthCheckFailed(self.unwell)

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        self.asked.append(("active", source))
        self.state = ServiceState.ACTIVE
        self._answer()

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        self.asked.append(("standby", source))
        self.state = ServiceState.STANDBY
        self._answer()

    def _answer(self) -> None:
        if self.hang_up:
            assert self.server is not None
            self.server.abort_connections()


@dataclass
class Controller:
    """A ZKFC that makes its NameNode active when asked, or refuses, or falls silent."""

    own: NameNode
    others: list[NameNode]
    refusal: str | None = None
    hang_up: bool = False
    says_nothing: bool = False
    still_acts: bool = True
    asked: int = 0
    ceded: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    forbidden: bool = False
    acts_when_called_back: bool = False
    page: dict[str, object] = field(default_factory=dict)
    server: RpcServer | None = None

    async def cede_active(self, millis: int, call: Call) -> None:
        self.ceded.append(millis)
        if millis == 0 and self.acts_when_called_back:
            self.own.state = ServiceState.ACTIVE

    async def graceful_failover(self, call: Call) -> None:
        self.asked += 1
        self.reasons.append(call.context)
        if self.says_nothing:
            await asyncio.Event().wait()
        if self.forbidden:
            raise AccessDenied(f"{call.user} may not")
        if self.refusal is not None:
            raise ServiceFailed(self.refusal)
        if self.still_acts:
            for other in self.others:
                other.state = ServiceState.STANDBY
            self.own.state = ServiceState.ACTIVE
        if self.hang_up:
            assert self.server is not None
            self.server.abort_connections()


@dataclass
class Cluster:
    """Two NameNodes and their controllers, and a configuration folder that names them."""

    conf_dir: Path
    namenodes: dict[str, NameNode]
    controllers: dict[str, Controller]
    ports: Mapping[str, int]

    def words(self, *words: str) -> tuple[str, ...]:
        return ("--conf-dir", str(self.conf_dir), *words)


class Told(NamedTuple):
    """What one command line exited with and printed."""

    code: int
    out: str
    err: str


class Shell:
    """Command lines of haadmin for one cluster, and what they print."""

    def __init__(self, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
        self.cluster = cluster
        self._capsys = capsys

    async def __call__(self, *words: str) -> Told:
        code = await asyncio.to_thread(haadmin, self.cluster.words(*words))
        return Told(code, *self._capsys.readouterr())

    def states(self) -> list[ServiceState]:
        return [node.state for node in self.cluster.namenodes.values()]

    def asked(self) -> list[list[tuple[str, RequestSource]]]:
        return [node.asked for node in self.cluster.namenodes.values()]


def page_of(own: NameNode) -> Mapping[str, object]:
    return {"role": "namenode", "state": own.state.value, **own.page}


def zkfc_page_of(controller: Controller) -> Mapping[str, object]:
    return {"role": "zkfc", "health": "healthy", "elector": "active", **controller.page}


@asynccontextmanager
async def running_cluster(conf_dir: Path) -> AsyncIterator[Cluster]:
    """nn1 active, nn2 standby; automatic failover as the written configuration says."""
    namenodes = {"nn1": NameNode(ServiceState.ACTIVE), "nn2": NameNode()}
    controllers: dict[str, Controller] = {}
    ports: dict[str, int] = {}
    async with asyncio.timeout(60):
        servers: list[RpcServer | Endpoint] = []
        for name, own in namenodes.items():
            others = [other for other in namenodes.values() if other is not own]
            controller = Controller(own, others)
            controllers[name] = controller
            rpc = own.server = RpcServer([ha_service_protocol(own)])
            controller.server = RpcServer([zkfc_protocol(controller)])
            page = Endpoint(status=lambda own=own: page_of(own), healthy=lambda: None)  # type: ignore[misc]
            zkfc_page = Endpoint(
                status=lambda one=controller: zkfc_page_of(one),  # type: ignore[misc]
                healthy=lambda: None,
            )
            ports[f"rpc-{name}"] = await rpc.start(LOOPBACK, 0)
            ports[f"zkfc-{name}"] = await controller.server.start(LOOPBACK, 0)
            ports[f"http-{name}"] = await page.start(LOOPBACK, 0)
            ports[f"zkfc-http-{name}"] = await zkfc_page.start(LOOPBACK, 0)
            servers += [rpc, controller.server, page, zkfc_page]
        write_configuration(conf_dir, ports)
        try:
            yield Cluster(conf_dir, namenodes, controllers, ports)
        finally:
            for server in servers:
                await server.stop()


def write_configuration(conf_dir: Path, ports: Mapping[str, int], **extra: str) -> None:
    keys = {"dfs.nameservices": "ns1", "dfs.ha.namenodes.ns1": "nn1,nn2"}
    for name in ("nn1", "nn2"):
        keys |= {
            f"dfs.namenode.rpc-address.ns1.{name}": f"{LOOPBACK}:{ports[f'rpc-{name}']}",
            f"dfs.namenode.http-address.ns1.{name}": f"{LOOPBACK}:{ports[f'http-{name}']}",
            f"dfs.ha.zkfc.port.ns1.{name}": str(ports[f"zkfc-{name}"]),
            f"nnha.zkfc.http-address.ns1.{name}": f"{LOOPBACK}:{ports[f'zkfc-http-{name}']}",
        }
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in (keys | extra).items()
    )
    (conf_dir / "hdfs-site.xml").write_text(f"<configuration>{properties}</configuration>")


@asynccontextmanager
async def frozen_process() -> AsyncIterator[int]:
    async with stand_in(say_nothing) as port:
        yield port
