"""Several controllers with toy NameNodes, on a real ZooKeeper and real RPC, in one event loop."""

import asyncio
import base64
import hashlib
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kazoo.client import KazooClient

from deploy.local.cluster.ports import free_ports
from fencing.model import ShellMethod
from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.actions import CreateLock, OpenSession, ZooKeeperAction
from ha.elector.keeper import KazooKeeper
from ha.elector.model import Role
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.outcome import Outcome, ZnodeFacts
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from ha.health.core import HealthSettings
from ha.notices.board import Board
from ha.service.model import ServiceState
from ha.service.zkfc_client import ZkfcClient
from ha.zkfc.candidacy.state import BackOff
from ha.zkfc.process.controller import Controller
from ha.zkfc.settings.settings import FencingPlan, ZkfcSettings
from tests.awaits import tasks_left
from tests.ha.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode

DEADLINE_SECONDS = 60.0
USER, PASSWORD = "nn-user", "nn-password"
_scopes = itertools.count(1)


async def until(
    condition: Callable[[], object], what: str, *, seconds: float = DEADLINE_SECONDS
) -> None:
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.003)
    except TimeoutError as failure:
        raise AssertionError(f"not within {seconds} s: {what}") from failure


def is_active(node: "Node") -> bool:
    return node.zkfc.believed is ServiceState.ACTIVE and node.namenode.state is ServiceState.ACTIVE


def free_port() -> int:
    """Return a port that was free a moment ago, and that no client's connection is given."""
    return free_ports(1)[0]


def digest(user: str, password: str) -> str:
    hashed = hashlib.sha1(f"{user}:{password}".encode(), usedforsecurity=False).digest()
    return f"{user}:{base64.b64encode(hashed).decode()}"


class Gate:
    """A keeper that opens no new session while it is shut (an expired elector
    is kept from coming back until the others have acted)."""

    def __init__(self, inner: KazooKeeper) -> None:
        self.inner = inner
        self._shut = False
        self._dead = False
        self._held: list[ZooKeeperAction] = []
        self.holds_creates = False

    @property
    def session_timeout_seconds(self) -> float | None:
        return self.inner.session_timeout_seconds

    @property
    def last_contact(self) -> float | None:
        return self.inner.last_contact

    @property
    def holds_something(self) -> bool:
        return bool(self._held)

    async def wait_idle(self) -> None:
        await self.inner.wait_idle()

    def read_lock(self) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]] | None:
        return self.inner.read_lock()

    def perform(self, action: ZooKeeperAction) -> None:
        if self._dead:
            return
        create = self.holds_creates and isinstance(action, CreateLock)
        if create or (self._shut and isinstance(action, OpenSession)):
            self._held.append(action)
        else:
            self.inner.perform(action)

    def kill(self) -> Callable[[], None]:
        """Stop as of SIGKILL: the session lives on until the returned function is called."""
        self._dead = True
        sessions = list(self.inner._sessions.values())

        def expire() -> None:
            for session in sessions:
                session._client.stop()
                session._client.close()

        return expire

    def shut(self) -> None:
        self._shut = True

    def open(self) -> None:
        """Open the newest one that was asked for in between: the older ones are given up."""
        self._shut = self.holds_creates = False
        held, self._held = self._held, []
        for action in held[-1:]:
            self.inner.perform(action)


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
        assert self.controller is not None
        return self.controller

    @property
    def gate(self) -> Gate:
        """Before its door to ZooKeeper."""
        assert isinstance(self.zkfc.elector.keeper, Gate)
        return self.zkfc.elector.keeper

    @property
    def keeper(self) -> KazooKeeper:
        return self.gate.inner

    def check(self) -> None:
        if self.task is not None and self.task.done() and not self.task.cancelled():
            raise AssertionError(f"the controller of {self.name} died") from self.task.exception()

    async def rpc(self) -> ZkfcClient:
        return await ZkfcClient.open(HostPort(HOST, self.zkfc.port), deadline_seconds=5.0)

    async def terminate(self) -> None:
        await self.zkfc.hand_over_before_stop()
        await self.stop()

    async def stop(self) -> None:
        """Stop as SIGTERM does with nnha.zkfc.stop.hand-over off."""
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
        return self.fence_log.read_text().split() if self.fence_log.exists() else []

    def fence_count(self, namenode: str) -> int:
        return self.fenced().count(namenode)

    def address(self, node: Node) -> NameNodeAddress:
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
        """Add a NameNode; its controller is started by ``start``."""
        self.resource.fences = self.fence_count
        namenode = ToyNameNode(name, self.resource)
        await namenode.start()
        node = Node(name, namenode, free_port())
        self.nodes.append(node)
        return node

    async def start(self, node: Node) -> None:
        zookeeper = self.zookeeper
        node.controller = Controller(
            self.settings(node),
            keeper=lambda post, released: Gate(KazooKeeper(zookeeper, post, on_release=released)),
            board=lambda tell: Board(zookeeper, node.name, tell),
        )
        node.task = asyncio.create_task(node.controller.run())

    async def active(self, node: Node) -> None:
        await self.until(lambda: is_active(node), f"{node.name} active")

    async def standby(self, node: Node) -> None:
        await self.until(
            lambda: (
                node.zkfc.believed is ServiceState.STANDBY
                and node.zkfc.elector.state.role is Role.STANDBY
            ),
            f"{node.name} standby",
        )

    async def one_active(self) -> Node:
        """Wait until one node is active and all others standby; answers the active one."""
        found: list[Node] = []

        def settled() -> bool:
            found[:] = [node for node in self.nodes if is_active(node)]
            roles = sorted(node.zkfc.elector.state.role for node in self.nodes)
            others = [Role.STANDBY] * (len(self.nodes) - 1)
            return len(found) == 1 and roles == [Role.ACTIVE, *others]

        await self.until(settled, "one active, all others standby")
        return found[0]

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait as the function of this name; a controller that dies ends the wait."""

        def met() -> object:
            for node in self.nodes:
                node.check()
            return condition()

        try:
            await until(met, what)
        except AssertionError as failure:
            raise AssertionError(f"{failure}; {self.story()}") from failure

    async def move_by_expiry(self, loser: Node, winner: Node) -> None:
        """Hadoop's expireActiveAndVerifyFailover: the winner is active, then the loser standby."""
        loser.gate.shut()
        await self.expire(loser)
        await self.active(winner)
        loser.gate.open()
        await self.standby(loser)

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
    session_timeout_seconds: float = 10.0,
    settings_hook: Callable[[ZkfcSettings], ZkfcSettings] = lambda settings: settings,
) -> AsyncIterator[World]:
    """Make a formatted scope with these nodes; the first is active, the others standby."""
    zookeeper = ZooKeeperSettings(
        hosts=hosts,
        session_timeout_seconds=session_timeout_seconds,
        # Not /hadoop-ha: other tests format below that without our digest.
        scope=f"/toys/toy{next(_scopes)}",
        # With a digest and an ACL for it alone, so that auth is always exercised.
        acl=parse_acl(f"digest:{digest(USER, PASSWORD)}:rwcda"),
        auth=parse_auth(f"digest:{USER}:{PASSWORD}"),
    )
    # A busy machine may keep the server from its disk for longer than a short session lasts.
    patient = replace(zookeeper, session_timeout_seconds=DEADLINE_SECONDS)
    async with connected(patient, deadline_seconds=DEADLINE_SECONDS) as session:
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
        died = [node for node in made.nodes if node.task is not None and node.task.done()]
        for node in made.nodes:
            await node.stop()
        for node in made.nodes:
            await node.namenode.die()
    assert made.resource.violations == 0
    assert [node.name for node in died] == []
    assert left_by_controllers() == []


def left_by_controllers() -> list[str]:
    """Return the timers and tasks that controllers which have ended still have on this loop."""
    timers = vars(asyncio.get_running_loop()).get("_scheduled", ())
    called = [
        str(getattr(one._callback, "__qualname__", "")) for one in timers if not one.cancelled()
    ]
    return [name for name in (*called, *tasks_left()) if name.startswith("Controller.")]


Worlds = Callable[..., AbstractAsyncContextManager[World]]
