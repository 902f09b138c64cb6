"""A DataNode that leaves and is asked into maintenance: what it had counts once it has reported."""

import pytest

from journal.model import TxId
from namenode_sim.blocks.model import Slot
from namenode_sim.datanode_protocol.gone import GoneStorages
from namenode_sim.datanode_protocol.hosts import Hosts
from namenode_sim.datanode_protocol.leaving import LeavingRules
from namenode_sim.datanodes.membership.admin import Asked, Kind
from namenode_sim.datanodes.membership.host_lists import HostEntry, HostLists
from namenode_sim.datanodes.model import AdminState
from tests.namenode_sim.datanodes.few_nodes import Few

D_ING, D_ED = AdminState.DECOMMISSION_INPROGRESS, AdminState.DECOMMISSIONED
M_ING, M_IN = AdminState.ENTERING_MAINTENANCE, AdminState.IN_MAINTENANCE


class Scene:
    """A block that is to have two replicas: on ``a``, which is decommissioned, and two others."""

    def __init__(self) -> None:
        self.few = Few("abc")
        self.slot: Slot = self.few.block("ab", expected=2)
        self.node = self.few.nodes["a"]
        self.hosts = Hosts(
            self.few.cluster,
            self.few.redundancy,
            GoneStorages(self.few.cluster),
            LeavingRules(),
            drop=lambda _: None,
            durable=lambda: TxId(1 << 40),
            clock=lambda: self.few.now,
        )
        self.asks(Kind.DECOMMISSION)
        self.few.received("c")
        self.few.work()

    def asks(self, kind: Kind) -> None:
        self.few.now += 1.0
        self.hosts.apply(HostLists(None, (HostEntry(self.node.id.host, 0, Asked(kind)),)))

    def state(self) -> AdminState:
        self.hosts.expire()
        return self.node.admin

    @property
    def required(self) -> int:
        return self.few.redundancy.assess(self.slot).required


@pytest.mark.parametrize(("before", "after"), [(D_ING, M_ING), (D_ED, M_IN)])
async def test_it_counts_as_kept_once_it_has_reported(
    before: AdminState, after: AdminState
) -> None:
    """Bad schedule: it was let go, is taken away, and its death is not known yet."""
    scene = Scene()
    if before is D_ED:
        await scene.hosts.look()
    assert scene.state() is before
    scene.asks(Kind.MAINTENANCE)
    assert scene.state() is before
    assert scene.required == 2
    scene.few.confirm("a")
    assert scene.state() is after
    assert scene.required == 1


async def test_one_that_was_in_service_enters_at_once() -> None:
    scene = Scene()
    scene.asks(Kind.SERVICE)
    scene.few.confirm("a")
    scene.asks(Kind.MAINTENANCE)
    assert scene.node.admin is M_ING


async def test_what_it_reports_before_it_is_asked_once_more_is_not_enough() -> None:
    scene = Scene()
    await scene.hosts.look()
    for kind in (Kind.MAINTENANCE, Kind.DECOMMISSION, Kind.MAINTENANCE):
        scene.asks(kind)
        assert scene.state() is D_ED
        if kind is Kind.DECOMMISSION:
            scene.few.confirm("a")
    scene.few.confirm("a")
    assert scene.state() is M_IN


@pytest.mark.parametrize("kind", [Kind.SERVICE, Kind.DECOMMISSION])
async def test_a_dead_one_is_in_maintenance_once_what_it_had_is_dropped(kind: Kind) -> None:
    """Bad schedule: another is let go because of replicas that are about to be dropped."""
    scene = Scene()
    scene.asks(kind)
    scene.node.alive = False
    before = scene.node.admin
    scene.asks(Kind.MAINTENANCE)
    assert scene.state() is before
    scene.few.dies("a")
    assert scene.state() is M_IN
    assert scene.required == 2
