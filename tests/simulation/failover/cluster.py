"""The simulated cluster as a whole: hosts, NameNodes, controllers, ensemble; and how they stand."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from fencing.model import MethodSpec
from ha.conf.topology import HostPort, NameNodeAddress
from ha.elector.zookeeper.breadcrumb import decode
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.health.core import HealthSettings
from ha.zkfc.candidacy.eligibility import Rank
from ha.zkfc.candidacy.flapping import FlapSettings
from ha.zkfc.candidacy.state import BackOff
from ha.zkfc.process.controller import Controller
from ha.zkfc.settings.settings import FencingPlan, ZkfcSettings
from ha.zkfc.witness.core import WitnessSettings
from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.failover.hosts import Host, WorldNetwork
from tests.simulation.failover.lasting import Lasting
from tests.simulation.failover.namenode import Condition, NameNode
from tests.simulation.failover.wire import Wire
from tests.simulation.failover.zk_ensemble import Ensemble

NAMESERVICE: Final = "ns"
SERVICE_PORT: Final = 8022
ZKFC_PORT: Final = 8019
SESSION_SECONDS: Final = 4.0
SILENCE_SECONDS: Final = 2.4
"""A writer's lease is 2 s here."""
UNREAD_SECONDS: Final = 20.0
"""How long a controller that reaches ZooKeeper may not know what stands there: it reads all of it
each 10 s, and requests may take 5 s."""
FLAPPING: Final = FlapSettings(window_seconds=30.0, delay_seconds=4.0)

ZOOKEEPER: Final = ZooKeeperSettings(
    hosts="zk1:2181,zk2:2181,zk3:2181",
    session_timeout_seconds=SESSION_SECONDS,
    scope=f"/hadoop-ha/{NAMESERVICE}",
    acl=parse_acl("world:anyone:rwcda"),
)


def address(name: str) -> NameNodeAddress:
    service, off = HostPort(name, SERVICE_PORT), HostPort(name, 0)
    return NameNodeAddress(
        nameservice=NAMESERVICE, namenode=name, rpc=service, service=service, http=off,
        zkfc=HostPort(name, ZKFC_PORT), zkfc_http=off, lifeline=service,
    )  # fmt: skip


def settings(
    name: str,
    names: tuple[str, ...],
    methods: tuple[MethodSpec, ...],
    *,
    ranked: bool,
    witnessed: bool,
) -> ZkfcSettings:
    """Return one controller's settings: quick, so that much happens in a minute."""
    plan = FencingPlan(methods=methods, method_timeout_seconds=2.0, total_timeout_seconds=3.0)
    return ZkfcSettings(
        own=address(name),
        others=tuple(address(one) for one in names if one != name),
        zookeeper=ZOOKEEPER,
        health=HealthSettings(rpc_timeout_seconds=2.0),
        fencing={"": plan},
        bind_host=name,
        new_active_timeout_seconds=8.0,
        graceful_fence_timeout_seconds=2.0,
        back_off=BackOff(first_seconds=1.0, cap_seconds=4.0),
        user="hdfs",
        rank=Rank(priority=100 - names.index(name) if ranked else 100),
        flapping=FLAPPING,
        witness=WitnessSettings(enabled=witnessed, silence_seconds=SILENCE_SECONDS),
    )


@dataclass(eq=False)
class Cluster:
    """Everything that is not a fault, an operator or a check."""

    loop: VirtualLoop
    network: WorldNetwork
    ensemble: Ensemble
    hosts: dict[str, Host] = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)
    controllers: dict[str, Controller] = field(default_factory=dict)
    nodes: dict[str, NameNode] = field(default_factory=dict)
    lock: str = ZOOKEEPER.lock
    breadcrumb: str = ZOOKEEPER.breadcrumb

    def __post_init__(self) -> None:
        self.wire = Wire(self.hosts, ZOOKEEPER)
        self.ensemble.listener = self.wire
        self._unread = {name: Lasting() for name in self.hosts}

    @property
    def noticing_seconds(self) -> float:
        """How long a session's end may go unnoticed by a client that runs."""
        return SESSION_SECONDS * 2 / 3 + 1.0

    def namenode(self, name: str) -> NameNode | None:
        """Return the living NameNode of a host."""
        node = self.nodes.get(name)
        return node if node is not None and node.life.alive else None

    def namenodes(self) -> Iterator[NameNode]:
        return (node for name in self.hosts if (node := self.namenode(name)) is not None)

    def controller(self, name: str) -> Controller | None:
        life = self.hosts[name].life("zkfc")
        return self.controllers.get(name) if life is not None else None

    def session_of(self, name: str) -> int | None:
        return self.wire.session_of(name)

    def lock_owner(self) -> str | None:
        owner = self.ensemble.owner_of(self.lock)
        return None if owner is None else owner.who

    def named(self) -> str | None:
        znode = self.ensemble.znode(self.breadcrumb)
        return None if znode is None else decode(znode.data).namenode

    def known_bars(self, name: str) -> frozenset[str]:
        """Return which bars (a pause, a drain of its NameNode) a host's controller must know of.

        Those that it was shown last; and where it could have been shown another state of things for
        long, that.
        """
        if self.controller(name) is None:
            return frozenset()
        late = self._unread[name].since
        if late is not None and self.loop.now - late > UNREAD_SECONDS:
            return self.wire.bars_at(name, self.ensemble.head.znodes)
        return self.wire.told_bars(name)

    def look(self) -> None:
        """Note which controllers have not been shown what stands in ZooKeeper."""
        for name, unread in self._unread.items():
            now = self.wire.bars_at(name, self.ensemble.head.znodes)
            other = self.unhindered(name) and self.wire.told_bars(name) != now
            unread.seconds(self.loop.now, holds=other)

    def free_since(self, name: str) -> float:
        """Return since when a host's controller has not been frozen."""
        life = self.hosts[name].life("zkfc")
        return 0.0 if life is None else life.thawed_at

    def unhindered(self, name: str) -> bool:
        """Return whether a host's controller runs, and can reach its NameNode and ZooKeeper."""
        lives = [self.hosts[name].life(one) for one in ("zkfc", "namenode")]
        if any(life is None or not life.runs for life in lives) or self.ensemble.away:
            return False
        return not self.network.is_cut_off(name)
