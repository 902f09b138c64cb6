"""The hosts files as a NameNode follows them: at its start, on request, and when it takes over."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from journal.model import TxId
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanode_protocol.hosts import HostFiles, addresses_of
from namenode_sim.datanode_protocol.keeper import Keeper, KeeperRules, Standing
from namenode_sim.datanode_protocol.leaving import LeavingRules
from namenode_sim.datanode_protocol.racks import LookupFailed, Racks
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.commands import Heartbeat, StorageReport
from namenode_sim.datanodes.errors import BadHosts, NotIncluded, UnevenRacks, UnresolvedRack
from namenode_sim.datanodes.membership.host_lists import HostLists, json_lists, text_lists
from namenode_sim.datanodes.model import (
    AdminState,
    DatanodeId,
    Node,
    Room,
    StorageState,
    StorageType,
)
from namenode_sim.datanodes.registry import NamespaceIds, Registration, RegistryRules
from namenode_sim.term.role import Role
from tests.log_lines import captured

IDS = NamespaceIds(7, "CID", 0)
D_ING, D_ED = AdminState.DECOMMISSION_INPROGRESS, AdminState.DECOMMISSIONED
M_ING, M_IN = AdminState.ENTERING_MAINTENANCE, AdminState.IN_MAINTENANCE


@dataclass
class Files:
    """The lists as they are now; ``problem`` makes reading them fail."""

    lists: HostLists
    reads: int = 0
    problem: BadHosts | None = None
    meanwhile: Callable[[], object] = lambda: None

    def read(self) -> HostLists:
        self.reads += 1
        if self.problem is not None:
            raise self.problem
        found = self.lists
        self.meanwhile()
        return found


class Scene:
    """A keeper, and its clocks."""

    def __init__(self, **more: object) -> None:
        self.now, self.wall, self.durable = 100.0, 1000.0, TxId(0)
        state = BlockState(minimum=1)
        state.set_starting(starting=False)
        rules = KeeperRules(
            registry=RegistryRules(namespace=IDS),
            hosts=LeavingRules(look_seconds=3.0),
            **more,  # type: ignore[arg-type]  # what a test says of it
        )
        self.keeper = Keeper(
            Cluster("BP", state, Random(1)),
            rules,
            lambda: Standing(active=self.keeper.cluster.is_active(), durable=self.durable),
            clock=lambda: self.now,
        )
        self.hosts = self.keeper.hosts
        self.hosts.wall_clock = lambda: self.wall
        self.files = Files(HostLists())
        self.hosts.read = self.files.read

    def register(self, name: str, rack: str = "/default-rack") -> Node:
        number = ord(name)
        who = DatanodeId(name, f"10.0.0.{number}", f"host-{name}", 9866, 9864, 9867)
        node = self.keeper.register(Registration(who, IDS, "3.5.0-nnha", rack))
        report = StorageReport(name, StorageType.DISK, StorageState.NORMAL, Room(1, 0, 1))
        self.keeper.hear(Heartbeat(who, (report,)), wants_lease=False)
        for storage in node.storages.values():
            storage.held.confirmed = True
        return node

    async def asks(self, text: str, include: str = "") -> None:
        self.files.lists = text_lists(include, text, ("i", "e"))
        await self.keeper.refresh_nodes()

    async def become(self, role: Role) -> None:
        self.keeper.role_changed(role)
        async with asyncio.timeout(10):
            task = asyncio.create_task(self.hosts.run())
            while not self.keeper.cluster.hosts_known:
                await asyncio.sleep(0.01)
            task.cancel()

    async def look(self) -> None:
        while self.keeper.upkeep.redundancy.work(self.now):
            pass
        await self.hosts.look()

    def dies(self, node: Node) -> None:
        self.now += 10_000.0
        for other in self.keeper.cluster.nodes.values():
            other.last_heard = self.now if other is not node else 0.0
        self.keeper.look()  # this process slept
        for _ in range(200):
            self.now += 5.0
            for other in self.keeper.cluster.nodes.values():
                other.last_heard = self.now if other is not node else 0.0
            self.keeper.look()
        assert not node.alive


@pytest.mark.row("B21")
async def test_a_datanode_is_decommissioned_and_serves_again() -> None:
    scene = Scene()
    await scene.become(Role.ACTIVE)
    node = scene.register("a")
    await scene.asks("host-a")
    assert node.admin is D_ING
    await scene.look()
    assert node.admin is D_ED
    await scene.asks("")
    assert node.admin is AdminState.NORMAL
    assert scene.keeper.cluster.leaving == set()


@pytest.mark.row("B21")
async def test_one_that_is_excluded_registers_and_leaves_at_once() -> None:
    scene = Scene()
    await scene.asks("host-a")
    assert scene.register("a").admin is D_ING
    assert scene.register("b").admin is AdminState.NORMAL


@pytest.mark.row("B21")
async def test_one_that_is_not_included_is_refused_and_counts_as_dead() -> None:
    scene = Scene()
    node = scene.register("a")
    scene.register("b")
    await scene.asks("", include="host-b")
    assert not node.alive
    with pytest.raises(NotIncluded, match="host-a"):
        scene.register("a")
    assert scene.keeper.cluster.nodes["b"].alive
    await scene.asks("", include="host-b host-a")
    assert scene.register("a").alive


@pytest.mark.row("B21")
async def test_a_standby_follows_and_decides_nothing() -> None:
    """It does not know which replicas the active has ordered to be deleted."""
    scene = Scene()
    node = scene.register("a")
    await scene.asks("host-a")
    await scene.look()
    assert node.admin is D_ING


@pytest.mark.row("B21")
async def test_a_new_active_reads_the_files_before_it_copies_or_deletes() -> None:
    scene = Scene()
    node = scene.register("a")
    scene.files.lists = text_lists("", "host-a", ("i", "e"))
    scene.keeper.role_changed(Role.ACTIVE)
    assert not scene.keeper.cluster.hosts_known
    scene.keeper.upkeep.redundancy.work(scene.now)
    assert not scene.keeper.cluster.blocks.rechecks.is_started()
    await scene.become(Role.ACTIVE)
    assert node.admin is D_ING
    assert scene.files.reads == 1


async def test_a_new_active_that_cannot_read_them_goes_on_with_what_it_has() -> None:
    scene = Scene()
    node = scene.register("a")
    await scene.asks("host-a")
    scene.files.problem = BadHosts("/etc/exclude", "it cannot be read")
    with captured("hosts.not_read") as lines:
        await scene.become(Role.ACTIVE)
    assert lines
    assert node.admin is D_ING
    with pytest.raises(BadHosts):
        await scene.keeper.refresh_nodes()


@pytest.mark.row("B21")
async def test_what_the_former_active_had_proven_is_proven_anew() -> None:
    scene = Scene()
    await scene.become(Role.ACTIVE)
    node = scene.register("a")
    await scene.asks("host-a")
    await scene.look()
    assert node.admin is D_ED
    await scene.become(Role.STANDBY)
    await scene.become(Role.ACTIVE)
    assert node.admin is D_ING
    node.storages["a"].held.confirmed = False
    await scene.look()
    assert node.admin is D_ING
    node.storages["a"].held.confirmed = True
    await scene.look()
    assert node.admin is D_ED


async def test_a_read_that_ends_in_another_term_does_not_let_that_one_begin() -> None:
    scene = Scene()
    loop, terms = asyncio.get_running_loop(), list[bool]()

    def changes() -> None:
        scene.files.meanwhile = lambda: terms.append(scene.keeper.cluster.hosts_known)
        done = asyncio.run_coroutine_threadsafe(_there_and_back(scene), loop)
        done.result(10)

    scene.files.meanwhile = changes
    await scene.become(Role.ACTIVE)
    assert scene.files.reads == 2
    assert terms == [False]


async def _there_and_back(scene: Scene) -> None:
    scene.keeper.role_changed(Role.STANDBY)
    scene.keeper.role_changed(Role.ACTIVE)


def maintenance(until_ms: int | None = None) -> HostLists:
    more = "" if until_ms is None else f', "maintenanceExpireTimeInMS": {until_ms}'
    return json_lists(f'[{{"hostName": "host-a", "adminState": "IN_MAINTENANCE"{more}}}]', "f")


@pytest.mark.row("B21")
async def test_maintenance_ends_when_it_expires() -> None:
    scene = Scene()
    await scene.become(Role.ACTIVE)
    node = scene.register("a")
    scene.files.lists = maintenance(until_ms=2_000_000)
    await scene.keeper.refresh_nodes()
    assert node.admin is M_ING
    await scene.look()
    assert node.admin is M_IN
    scene.wall = 1999.999
    scene.hosts.expire()
    assert node.admin is M_IN
    scene.wall = 2000.0
    scene.hosts.expire()
    assert node.admin is AdminState.NORMAL


@pytest.mark.row("B21")
async def test_the_replicas_of_one_that_dies_in_maintenance_go_when_it_ends() -> None:
    scene = Scene()
    await scene.become(Role.ACTIVE)
    node, other = scene.register("a"), scene.register("b")
    scene.files.lists = maintenance()
    await scene.keeper.refresh_nodes()
    held = node.storages["a"].held
    scene.dies(node)
    assert held.confirmed  # nothing is forgotten
    assert other.alive
    scene.files.lists = HostLists()
    await scene.keeper.refresh_nodes()
    assert node.admin is AdminState.NORMAL
    assert not held.confirmed


@pytest.mark.row("B21")
async def test_a_dead_one_is_decommissioned_at_once_and_leaves_again_when_it_comes_back() -> None:
    scene = Scene()
    await scene.become(Role.ACTIVE)
    node = scene.register("a")
    scene.register("b")
    scene.dies(node)
    await scene.asks("host-a")
    assert node.admin is D_ED
    scene.register("a")
    assert node.admin is D_ING


async def test_files_that_are_not_valid_change_nothing(tmp_path: Path) -> None:
    exclude = tmp_path / "exclude"
    files = HostFiles(exclude=exclude)
    with pytest.raises(BadHosts, match=r"exclude: it cannot be read.*stay as they were"):
        files.read()
    exclude.write_bytes(b"\xff\xfe")
    with pytest.raises(BadHosts, match="it cannot be read"):
        files.read()
    exclude.write_text("localhost # this machine\n")
    lists = files.read()
    assert lists.asked(DatanodeId("u", "127.0.0.1", "other", 1, 2, 3)).kind.name == "DECOMMISSION"
    combined = HostFiles(exclude, combined=True)
    with pytest.raises(BadHosts, match="it is no JSON"):
        combined.read()
    exclude.write_text('[{"hostName": "127.0.0.1"}]')
    assert combined.read().includes(DatanodeId("u", "127.0.0.1", "other", 1, 2, 3))


def test_names_that_cannot_be_looked_up_are_left_out() -> None:
    with captured("hosts.") as lines:
        found = addresses_of({"127.0.0.1", "no such host.invalid"})
    assert found == {"127.0.0.1": frozenset({"127.0.0.1"})}
    assert lines[0]["hosts"] == 1


async def test_racks_are_looked_up_anew_with_the_hosts() -> None:
    scene, table = Scene(), {"10.0.0.97": "/x", "10.0.0.98": "/x"}
    scene.keeper.use_racks(Racks(lambda _: dict(table)))
    for name in "ab":
        rack = await scene.keeper.racks.of(DatanodeId(name, f"10.0.0.{ord(name)}", "h", 1, 2, 3))
        assert rack is not None
        scene.register(name, rack)
    table["10.0.0.98"] = "/y"
    await scene.keeper.refresh_nodes()
    nodes = scene.keeper.cluster.nodes
    assert [nodes[name].rack for name in "ab"] == ["/x", "/y"]
    table["10.0.0.98"] = "/hall/y"
    with pytest.raises(UnevenRacks):
        await scene.keeper.refresh_nodes()
    assert [nodes[name].rack for name in "ab"] == ["/x", "/y"]
    with pytest.raises(UnevenRacks, match="/hall/z"):
        scene.register("c", "/hall/z")
    assert "c" not in nodes


async def test_a_dead_one_that_the_table_lacks_keeps_no_other_away() -> None:
    """It has left, and is off the table: it is on /default-rack, on another level."""
    scene, table = Scene(), {"10.0.0.97": "/hall/x", "10.0.0.98": "/hall/x"}
    scene.keeper.use_racks(Racks(lambda _: dict(table)))
    _, gone = (scene.register(name, "/hall/x") for name in "ab")
    scene.dies(gone)
    del table["10.0.0.98"]
    await scene.keeper.refresh_nodes()
    assert (gone.rack, scene.register("c", "/hall/y").rack) == ("/default-rack", "/hall/y")


@pytest.mark.row("B21")
async def test_names_that_cannot_be_looked_up_now_keep_their_addresses() -> None:
    scene = Scene()
    node = scene.register("a")
    marked, normal = text_lists("", "alias", ("i", "e")).marked, AdminState.NORMAL
    for ip, state in (("10.0.0.97", D_ING), ("", D_ING), ("10.0.0.98", normal)):
        scene.files.lists = HostLists(None, marked, {"alias": frozenset({ip})} if ip else {})
        await scene.keeper.refresh_nodes()
        assert node.admin is state


async def test_one_whose_rack_is_not_known_is_on_the_default_or_refused() -> None:
    def fails(_: object) -> dict[str, str]:
        raise LookupFailed("no")

    asking = Registration(DatanodeId("a", "10.0.0.1", "h", 1, 2, 3), IDS, "3.5.0-nnha")
    for reject in (False, True):
        scene = Scene(reject_unresolved=reject)
        scene.keeper.use_racks(Racks(fails))
        if reject:
            with pytest.raises(UnresolvedRack):
                await scene.keeper.find_rack(asking)
        else:
            assert (await scene.keeper.find_rack(asking)).rack == "/default-rack"


async def test_a_datanode_does_not_go_by_an_edit_that_is_not_durable() -> None:
    """The edit deletes the file of its only replica, and may be lost."""
    scene = Scene()
    await scene.become(Role.ACTIVE)
    node = scene.register("a")
    await scene.asks("host-a")
    scene.keeper.cluster.blocks.begin_edit(TxId(7))
    await scene.look()
    assert node.admin is D_ING
    scene.durable = TxId(7)
    scene.hosts.settle()
    assert node.admin is D_ED


async def test_one_that_was_away_proves_nothing_when_it_serves_again() -> None:
    """Its disks may have been replaced while it was not needed."""
    scene = Scene()
    await scene.become(Role.ACTIVE)
    node = scene.register("a")
    await scene.asks("host-a")
    await scene.look()
    assert node.storages["a"].held.confirmed
    await scene.asks("")
    assert not node.storages["a"].held.confirmed


async def test_one_that_a_former_active_let_go_proves_nothing_when_it_serves_again() -> None:
    """The new active has not come to say that it may go, and it is away all the same."""
    scene = Scene()
    await scene.become(Role.ACTIVE)
    node = scene.register("a")
    await scene.asks("host-a")
    assert node.admin is D_ING
    await scene.asks("")
    assert not node.storages["a"].held.confirmed
