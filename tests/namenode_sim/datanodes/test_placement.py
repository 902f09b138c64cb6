"""Where replicas go: racks, load, room, types, and why a DataNode is not taken."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import DatanodeId, Node, Room, StorageState, StorageType
from namenode_sim.datanodes.placement import Choice, NotTaken, Place, Wish, choose
from namenode_sim.datanodes.storage_policies import POLICIES

NOW = 1000.0
SIZE = 1 << 20
HOT = POLICIES[7]
SEEDS = range(20)
DISK, SSD, ARCHIVE = StorageType.DISK, StorageType.SSD, StorageType.ARCHIVE


def nodes(*racks: str, types: tuple[StorageType, ...] = (DISK,)) -> list[Node]:
    cluster = Cluster("BP-1", BlockState(), Random(0))
    found: list[Node] = []
    for number, rack in enumerate(racks):
        name = f"n{number}"
        node = Node(DatanodeId(name, f"10.0.0.{number}", name, 1, 2, 3), "3.5.0", NOW, rack)
        for kind in types:
            storage = cluster.add_storage(node, f"{name}-{kind.name}")
            storage.type, storage.room = kind, Room(remaining=10 * SIZE)
        found.append(node)
    return found


def chosen(among: list[Node], wish: Wish, seed: int) -> Choice:
    return choose(among, wish, NOW, Random(seed))


def names(choice: Choice) -> list[str]:
    return [node.id.uuid for node, _ in choice.places]


def three(**more: object) -> Wish:
    return replace(Wish(count=3, size=SIZE, policy=HOT), **more)  # type: ignore[arg-type]


def place(node: Node) -> Place:
    return node, next(iter(node.storages.values()))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_writer_then_another_rack_then_the_same_one(seed: int) -> None:
    among = nodes("/a", "/a", "/b", "/b", "/c", "/c")
    choice = chosen(among, three(writer=among[0]), seed)
    first, second, third = (node for node, _ in choice.places)
    assert first is among[0]
    assert second.rack != "/a"
    assert third.rack == second.rack
    assert third is not second


@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_elsewhere_gets_two_racks(seed: int) -> None:
    choice = chosen(nodes("/a", "/a", "/b", "/b"), three(), seed)
    assert len({node.rack for node, _ in choice.places}) == 2
    assert len(set(names(choice))) == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_writer_that_takes_no_replica_gets_one_on_its_rack(seed: int) -> None:
    among = nodes("/a", "/a", "/b", "/b")
    among[0].storages.clear()
    assert names(chosen(among, three(writer=among[0]), seed))[0] == "n1"


@pytest.mark.parametrize("seed", SEEDS)
def test_so_many_at_most_are_on_one_rack(seed: int) -> None:
    choice = chosen(nodes("/a", "/a", "/a", "/a", "/b", "/b"), three(count=5), seed)
    on_a = [node for node, _ in choice.places if node.rack == "/a"]
    assert len(choice.places) == 5
    assert len(on_a) <= 4  # (5 - 1) // 2 + 2
    choice = chosen(nodes("/a", "/a", "/a", "/b"), three(count=4), seed)
    assert sum(node.rack == "/a" for node, _ in choice.places) == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_copy_goes_where_a_rack_lacks_one(seed: int) -> None:
    among = nodes("/a", "/a", "/a", "/b", "/b")
    one = three(count=1, copy=True, chosen=(place(among[0]), place(among[1])))
    assert chosen(among, one, seed).places[0][0].rack == "/b"
    two = three(count=1, copy=True, chosen=(place(among[0]), place(among[3])))
    assert chosen(among, two, seed).places[0][0].rack == "/a"  # next to the source
    assert not set(names(chosen(among, two, seed))) & {"n0", "n3"}


def silent(node: Node) -> None:
    node.last_heard = NOW - 31


def broken(node: Node) -> None:
    node.broken = True


def busy(node: Node) -> None:
    node.transceivers = 9


def dead(node: Node) -> None:
    node.alive = False


def unknown(node: Node) -> None:
    node.must_register = True


def full(node: Node) -> None:
    for storage in node.storages.values():
        storage.room = Room(remaining=SIZE - 1)


def promised(node: Node) -> None:
    for storage in node.storages.values():
        for _ in range(10):
            storage.held.scheduled.add(NOW)


def failed(node: Node) -> None:
    for storage in node.storages.values():
        storage.state = StorageState.FAILED


def empty(node: Node) -> None:
    node.storages.clear()


def whole(_: Node) -> None:
    return


UNFIT: dict[str, tuple[Callable[[Node], None], NotTaken]] = {
    "silent": (silent, NotTaken.STALE),
    "its connection broke": (broken, NotTaken.STALE),
    "busy": (busy, NotTaken.TOO_BUSY),
    "dead": (dead, NotTaken.NOT_IN_SERVICE),
    "to register": (unknown, NotTaken.NOT_IN_SERVICE),
    "full": (full, NotTaken.NO_ROOM),
    "promised to others": (promised, NotTaken.NO_ROOM),
    "failed": (failed, NotTaken.NO_STORAGE_TYPE),
    "without storages": (empty, NotTaken.NO_STORAGE_TYPE),
}


@pytest.mark.row("B14", because="each reason for which a DataNode is not taken is a case")
@pytest.mark.parametrize(("spoil", "reason"), UNFIT.values(), ids=UNFIT.keys())
def test_an_unfit_datanode_is_not_taken(spoil: Callable[[Node], None], reason: NotTaken) -> None:
    told: list[NotTaken] = []
    for seed in SEEDS:
        among = nodes("/a", "/a", "/a", "/a", "/a")
        spoil(among[0])
        choice = chosen(among, three(), seed)
        assert len(choice.places) == 3
        assert "n0" not in names(choice)
        told += choice.reasons
    assert set(told) == {reason}


@pytest.mark.parametrize("spoil", [silent, broken, busy])
def test_one_that_may_be_gone_or_is_busy_is_better_than_none(spoil: Callable[[Node], None]) -> None:
    among = nodes("/a", "/a", "/a")
    spoil(among[0])
    assert len(chosen(among, three(), 1).places) == 3


def test_the_writer_s_own_is_never_too_busy() -> None:
    among = nodes("/a", "/a", "/a", "/a")
    busy(among[0])
    assert names(chosen(among, three(writer=among[0]), 1))[0] == "n0"


def test_a_writer_may_be_spared_if_there_are_others() -> None:
    among = nodes("/a", "/a", "/a", "/a")
    wish = three(writer=among[0], local_write=False)
    for seed in SEEDS:
        assert "n0" not in names(chosen(among, wish, seed))
    assert len(chosen(among[:3], wish, 1).places) == 3


def test_fewer_come_where_there_are_no_more() -> None:
    among = nodes("/a", "/b", "/c")
    dead(among[2])
    choice = chosen(among, three(excluded=frozenset({"n0"})), 1)
    assert names(choice) == ["n1"]
    assert choice.reasons == {NotTaken.NOT_IN_SERVICE: 1}
    assert chosen([], three(), 1) == Choice((), {})


def test_favored_datanodes_come_first() -> None:
    among = nodes(*["/a"] * 9)
    for seed in SEEDS:
        wish = three(favored=(among[7], among[4]))
        assert {"n7", "n4"} < set(names(chosen(among, wish, seed)))


def test_the_pipeline_goes_from_the_writer_to_the_nearest() -> None:
    among = nodes("/a", "/a", "/b", "/b", "/c")
    for seed in SEEDS:
        racks = [
            node.rack for node, _ in chosen(among, three(count=5, writer=among[2]), seed).places
        ]
        assert racks[:2] == ["/b", "/b"]
        assert racks.index("/c") in {2, 4}


def types(policy: int, seed: int, **more: object) -> list[StorageType]:
    """Return the types chosen for three replicas, sorted."""
    among = nodes("/a", "/a", "/a", types=(DISK, SSD))
    choice = chosen(among, three(policy=POLICIES[policy], **more), seed)
    return sorted(storage.type for _, storage in choice.places)


def test_a_policy_names_types_and_what_to_take_instead() -> None:
    assert types(7, 1) == [DISK, DISK, DISK]
    assert types(10, 1) == [DISK, DISK, SSD]
    assert types(12, 1) == [SSD, SSD, SSD]
    assert types(14, 1) == [DISK, DISK, DISK]  # no NVDIMM is there
    assert types(15, 1) == [DISK, DISK, DISK]  # memory is not used
    assert types(5, 1) == [DISK, DISK, DISK]  # no ARCHIVE is there
    assert types(2, 1) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_every_choice_is_one_storage_a_datanode(seed: int) -> None:
    draw = Random(seed)
    among = nodes(*[draw.choice(["/a", "/b", "/c"]) for _ in range(8)], types=(DISK, SSD))
    for node in among:
        draw.choice([silent, busy, dead, full, whole, whole])(node)
    choice = chosen(among, three(writer=draw.choice([None, *among])), seed)
    assert len(set(names(choice))) == len(choice.places)
    for node, storage in choice.places:
        assert node.alive
        assert storage in node.storages.values()
        assert storage.room.remaining >= SIZE


class Counted:
    """Draws as ``Random`` does, and counts."""

    def __init__(self) -> None:
        self._draw, self.count = Random(0), 0

    def random(self) -> float:
        raise AssertionError

    def randrange(self, stop: int, /) -> int:
        self.count += 1
        return self._draw.randrange(stop)


def test_of_a_thousand_datanodes_only_a_few_are_drawn() -> None:
    among, draw = nodes(*(f"/{number % 10}" for number in range(1000))), Counted()
    for _ in range(20):
        assert len(choose(among, three(writer=among[0]), NOW, draw).places) == 3
    assert draw.count < 20 * 100
