"""Several controllers with toy NameNodes, on a real ZooKeeper and real RPC, in one event loop."""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.client import KazooClient

from fencing.model import ShellMethod
from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.credentials import parse_acl
from ha.elector.keeper import KazooKeeper
from ha.elector.model import Role
from ha.elector.settings import ZooKeeperSettings
from ha.elector.znodes import connected, ensure_parent
from ha.health.core import HealthSettings
from ha.service.model import ServiceState
from ha.service.zkfc_client import ZkfcClient
from ha.zkfc.controller import Controller
from ha.zkfc.core import BackOff
from ha.zkfc.settings import FencingPlan, ZkfcSettings
from tests.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode

DEADLINE_SECONDS = 15.0
_scopes = itertools.count(1)


async def until(
    condition: Callable[[], object], what: str, *, seconds: float = DEADLINE_SECONDS
) -> None:
    """Wait for a condition, looking every few milliseconds."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.003)
    except TimeoutError as failure:
        raise AssertionError(f"not within {seconds} s: {what}") from failure


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


@dataclass
class Node:
    """One NameNode and its controller."""

    name: str
    namenode: ToyNameNode
    zkfc_port: int
    controller: Controller | None = None
    task: asyncio.Task[None] | None = None

    @property
    def zkfc(self) -> Controller:
        """The controller, which must have been started."""
        assert self.controller is not None
        return self.controller

    @property
    def keeper(self) -> KazooKeeper:
        """Its door to ZooKeeper."""
        assert isinstance(self.zkfc.elector.keeper, KazooKeeper)
        return self.zkfc.elector.keeper

    async def rpc(self) -> ZkfcClient:
        """A connection to the controller."""
        return await ZkfcClient.open(HostPort(HOST, self.zkfc.port), deadline_seconds=5.0)

    async def stop(self) -> None:
        """As SIGTERM does."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})
            self.task = None


@dataclass
class World:
    """The nodes, what they share, and how they are fenced."""

    zookeeper: ZooKeeperSettings
    directory: Path
    nodes: list[Node] = field(default_factory=list)
    resource: SharedResource = field(default_factory=SharedResource)
    settings_hook: Callable[[ZkfcSettings], ZkfcSettings] = lambda settings: settings

    @property
    def fence_log(self) -> Path:
        """Each fencing command writes its victim here."""
        return self.directory / "fenced"

    def fenced(self) -> list[str]:
        """Whom the method has fenced, in order."""
        return self.fence_log.read_text().split() if self.fence_log.exists() else []

    def address(self, node: Node) -> NameNodeAddress:
        """As the configuration would have it."""
        service = node.namenode.address
        off = HostPort(HOST, 0)
        return NameNodeAddress(
            nameservice=self.nameservice, namenode=node.name, rpc=service, service=service,
            http=off, zkfc=HostPort(HOST, node.zkfc_port), zkfc_http=off, lifeline=service,
        )  # fmt: skip

    @property
    def nameservice(self) -> str:
        """The last part of the scope."""
        return self.zookeeper.scope.rsplit("/", 1)[1]

    def settings(self, node: Node) -> ZkfcSettings:
        """Quick intervals; fencing notes the victim and fails while the file "broken" exists."""
        command = (
            f'test ! -e {self.directory}/broken && echo "$target_namenodeid" >> {self.fence_log}'
        )
        plan = FencingPlan(methods=(ShellMethod(command),))
        return self.settings_hook(
            ZkfcSettings(
                own=self.address(node),
                others=tuple(self.address(one) for one in self.nodes if one is not node),
                zookeeper=self.zookeeper,
                health=HealthSettings(
                    check_interval_seconds=0.05, retry_interval_seconds=0.05,
                    rpc_timeout_seconds=2.0,
                ),
                fencing={"": plan},
                bind_host=HOST,
                new_active_timeout_seconds=5.0,
                graceful_fence_timeout_seconds=2.0,
                back_off=BackOff(first_seconds=0.2, cap_seconds=0.5),
            )
        )  # fmt: skip

    async def add(self, name: str) -> Node:
        """A NameNode; its controller is started by ``start``."""
        namenode = ToyNameNode(name, self.resource)
        await namenode.start()
        node = Node(name, namenode, free_port())
        self.nodes.append(node)
        return node

    async def start(self, node: Node) -> None:
        """Start its controller."""
        zookeeper = self.zookeeper
        node.controller = Controller(
            self.settings(node),
            keeper=lambda post, released: KazooKeeper(zookeeper, post, on_release=released),
        )
        node.task = asyncio.create_task(node.controller.run())

    async def active(self, node: Node) -> None:
        """Wait until this node's controller has made it active."""
        await until(
            lambda: (
                node.zkfc.believed is ServiceState.ACTIVE
                and node.namenode.state is ServiceState.ACTIVE
            ),
            f"{node.name} active; {self.story()}",
        )

    async def standby(self, node: Node) -> None:
        """Wait until this node's controller has made it standby."""
        await until(
            lambda: (
                node.zkfc.believed is ServiceState.STANDBY
                and node.zkfc.elector.state.role is Role.STANDBY
            ),
            f"{node.name} standby; {self.story()}",
        )

    async def expire(self, node: Node) -> None:
        """End the node's session at the server, as if it had been silent for too long."""
        session = max(node.keeper._sessions)
        client_id = node.keeper._sessions[session]._client.client_id

        def end() -> None:
            thief = KazooClient(hosts=self.zookeeper.hosts, client_id=client_id, timeout=10)
            thief.start()
            thief.stop()
            thief.close()

        await asyncio.to_thread(end)

    def story(self) -> str:
        """Where everybody stands."""
        return "; ".join(
            f"{one.name}: {one.controller.candidacy} {one.controller.elector.state.role}"
            for one in self.nodes
            if one.controller is not None
        )


@asynccontextmanager
async def world(
    hosts: str,
    directory: Path,
    *names: str,
    session_timeout_seconds: float = 4.0,
    settings_hook: Callable[[ZkfcSettings], ZkfcSettings] = lambda settings: settings,
) -> AsyncIterator[World]:
    """A formatted scope with these nodes; the first is active, the others standby."""
    zookeeper = ZooKeeperSettings(
        hosts=hosts,
        session_timeout_seconds=session_timeout_seconds,
        scope=f"/hadoop-ha/toy{next(_scopes)}",
        acl=parse_acl("world:anyone:rwcda"),
    )
    async with connected(zookeeper, deadline_seconds=10.0) as session:
        await ensure_parent(session, zookeeper)
    made = World(zookeeper, directory, settings_hook=settings_hook)
    try:
        for name in names:
            await made.add(name)
        for number, node in enumerate(made.nodes):
            await made.start(node)
            await (made.active(node) if number == 0 else made.standby(node))
        yield made
    finally:
        for node in made.nodes:
            await node.stop()
        for node in made.nodes:
            await node.namenode.die()
    assert made.resource.violations == 0
