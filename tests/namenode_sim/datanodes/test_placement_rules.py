"""The rules of placement one by one, as tables: racks, order, load, silence, room, and types."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import pytest

from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import Node, Room, StorageState, StorageType
from namenode_sim.datanodes.placement import Choice, NotTaken, Wish, choose
from namenode_sim.datanodes.storage_policies import BY_NAME
from namenode_sim.datanodes.topology import STALE_SECONDS
from tests.namenode_sim.datanodes import test_placement as placement
from tests.namenode_sim.datanodes.test_placement import ARCHIVE, SIZE, chosen, names, nodes, three

SEEDS: Final = range(5)


def on_racks(letters: str, types: tuple[StorageType, ...] = (placement.DISK,)) -> list[Node]:
    return nodes(*(f"/{letter}" for letter in letters), types=types)


def racks_of(choice: Choice) -> str:
    return "".join(sorted(node.rack[1:] for node, _ in choice.places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A letter for each DataNode's rack; those that are dead and so on by their numbers."""

    racks: str
    count: int
    new: str
    dead: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    full: tuple[int, ...] = ()
    have: tuple[int, ...] = ()


SHARES: Final = {
    "on two racks": Share(racks="aaaab", count=3, new="aab"),
    "two rather than all three": Share(racks="aaaab", count=3, new="aa", full=(4,)),
    "one rather than both": Share(racks="aab", count=2, new="a", full=(2,)),
    "(4 - 1) // 2 + 2": Share(racks="aaaab", count=4, new="aaab"),
    "(5 - 1) // 2 + 2": Share(racks="aaaaaaab", count=5, new="aaaab"),
    "(6 - 1) // 2 + 2": Share(racks="aaaaaaab", count=6, new="aaaab"),
    "(5 - 1) // 3 + 2": Share(racks="aaaaabc", count=5, new="aaabc"),
    "all, of two": Share(racks="ab", count=2, new="ab"),
    "all, of one": Share(racks="ab", count=1, new="a", dead=(1,)),
    "all, where there is one rack": Share(racks="aaaaaaa", count=7, new="aaaaaaa"),
    "by what the cluster has": Share(racks="aaaaaaaaab", count=20, new="aaaaaab"),
    "by what is asked of a large one": Share(racks="aaaaaaaaab", count=3, new="aab"),
    "not by the dead": Share(racks="aaaaabaaa", count=9, new="aaaab", dead=(6, 7, 8)),
    "not by the unknown": Share(racks="aaaaabaaa", count=9, new="aaaab", unknown=(6, 7, 8)),
    "a rack of dead ones is none": Share(racks="aaaab", count=3, new="aaa", dead=(4,)),
    "a rack of unknown ones is none": Share(racks="aaaab", count=3, new="aaa", unknown=(4,)),
    "those that have it count": Share(racks="aaaab", count=2, new="ab", have=(0,)),
    "but not twice": Share(racks="aaaaab", count=9, new="aaab", have=(0,)),
    "one that has it may be gone": Share(racks="aaa", count=1, new="a", dead=(0,), have=(0, 1)),
    "nothing is asked": Share(racks="ab", count=0, new=""),
}


@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_rack_s_share(share: Share, seed: int) -> None:
    among = on_racks(share.racks)
    for number in share.dead:
        among[number].alive = False
    for number in share.unknown:
        among[number].must_register = True
    for number in share.full:
        placement.place(among[number])[1].room = Room()
    have = tuple(placement.place(among[number]) for number in share.have)
    assert racks_of(chosen(among, three(count=share.count, chosen=have), seed)) == share.new


def test_a_refusal_tells_of_the_rack() -> None:
    choice = chosen(on_racks("aaaaaaaaab"), three(count=20), 1)
    assert choice.reasons == {NotTaken.TOO_MANY_ON_RACK: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """Where the next one goes: ``have`` and ``writer`` are numbers of DataNodes."""

    racks: str
    goes: str
    have: tuple[int, ...] = ()
    writer: int | None = None
    without_room: tuple[int, ...] = ()
    copy: bool = False


NEXT: Final = {
    "to the writer": Next(racks="aabbb", writer=1, goes="n1"),
    "to its rack if it takes none": Next(racks="aabbbbbb", writer=0, without_room=(0,), goes="n1"),
    "anywhere if its rack takes none": Next(racks="abcc", writer=0, without_room=(0, 1), goes="cc"),
    "off the rack of the first": Next(racks="aaaab", have=(0,), goes="n4"),
    "off it, be the writer there": Next(racks="aaaab", have=(0,), writer=1, goes="n4"),
    "on it if no other rack takes one": Next(racks="aab", have=(0,), without_room=(2,), goes="n1"),
    "off the rack that has two": Next(racks="aaaaaab", have=(0, 1), goes="n6"),
    "to the second's rack": Next(racks="aaabbb", have=(0, 3), goes="bb"),
    "to it, be the writer on a third": Next(racks="abcbc", have=(0, 1), writer=2, goes="n3"),
    "to the first's, if need be": Next(racks="aabccc", have=(0, 2), goes="n1"),
    "a copy beside its source": Next(racks="abcabc", have=(0, 1), copy=True, goes="n3"),
    "a copy beside its writer": Next(racks="abcabc", have=(0, 1), writer=2, copy=True, goes="c"),
    "a copy else to the first's": Next(
        racks="abcab", have=(0, 1), writer=2, without_room=(2,), copy=True, goes="n3"
    ),
}


@pytest.mark.parametrize("case", NEXT.values(), ids=NEXT)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_one_goes(case: Next, seed: int) -> None:
    among = on_racks(case.racks, types=(placement.DISK, placement.SSD))
    for number in case.without_room:
        for storage in among[number].storages.values():
            storage.room = Room()
    wish = Wish(
        count=2,
        size=SIZE,
        policy=BY_NAME["ONE_SSD"],
        chosen=tuple(placement.place(among[number]) for number in case.have),
        writer=None if case.writer is None else among[case.writer],
        copy=case.copy,
    )
    # Of two that are wanted the first gets the SSD, wherever it stands in the pipeline.
    (first,) = (
        node for node, held in chosen(among, wish, seed).places if held.type is placement.SSD
    )
    if case.goes.startswith("n"):
        assert first.id.uuid == case.goes
    else:
        assert first.rack == f"/{case.goes[0]}"


@pytest.mark.parametrize("seed", SEEDS)
def test_after_the_writer_s_own_nobody_is_taken_who_may_be_gone(seed: int) -> None:
    among = on_racks("aaaa")
    among[3].last_heard = placement.NOW - 31
    assert set(names(chosen(among, three(writer=among[0]), seed))) == {"n0", "n1", "n2"}


LOADS: Final = {
    "twice the mean is not too busy": ([4, 4, 0, 0], 4, []),
    "more is": ([5, 2, 1, 1], 3, [0]),
    "nobody is where nobody has anything to do": ([0, 0, 0, 0], 4, []),
    "one transfer may be more": ([1, 0, 0], 2, [0]),
    "two that are too busy": ([9, 9, 0, 0, 0, 0, 0], 5, [0, 1]),
}


@pytest.mark.parametrize(("transfers", "count", "spared"), LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_datanode_s_load(transfers: list[int], count: int, spared: list[int], seed: int) -> None:
    among = nodes(*["/a"] * len(transfers))
    for node, busy in zip(among, transfers, strict=True):
        node.transceivers = busy
    choice = chosen(among, three(count=count), seed)
    assert len(choice.places) == count
    assert not {f"n{number}" for number in spared} & set(names(choice))
    assert set(choice.reasons) <= {NotTaken.TOO_BUSY}


@pytest.mark.parametrize("flag", ["alive", "must_register"])
@pytest.mark.parametrize("seed", SEEDS)
def test_who_is_not_in_service_has_no_part_in_the_mean(flag: str, seed: int) -> None:
    among = nodes(*["/a"] * 5)
    among[0].transceivers, among[1].transceivers = 100, 4
    setattr(among[0], flag, flag == "must_register")
    assert set(names(chosen(among, three(), seed))) == {"n2", "n3", "n4"}


@pytest.mark.parametrize(
    ("stale_seconds", "silent_seconds", "is_stale"),
    [
        (STALE_SECONDS, 30.0, False),
        (STALE_SECONDS, 30.5, True),
        (90.0, 90.0, False),
        (90.0, 91.0, True),
    ],
)
def test_so_long_a_datanode_may_be_silent(
    stale_seconds: float, silent_seconds: float, is_stale: bool
) -> None:
    taken: Counter[str] = Counter()
    for seed in range(20):
        among = nodes(*["/a"] * 4)
        among[0].last_heard = placement.NOW - silent_seconds
        taken.update(names(choose(among, three(), placement.NOW, Random(seed), stale_seconds)))
    assert (taken["n0"] == 0) is is_stale


@pytest.mark.parametrize("seed", SEEDS)
def test_one_that_is_taken_in_the_end_is_not_told_of(seed: int) -> None:
    among = nodes("/a", "/a", "/a", "/a")
    among[0].transceivers = 9
    among[1].last_heard = placement.NOW - 31
    among[2].storages.clear()
    assert chosen(among, three(), seed).reasons == {NotTaken.NO_STORAGE_TYPE: 1}


def test_nobody_is_judged_once_all_are_found() -> None:
    among = nodes(*["/a"] * 6)
    wish = three(count=2, favored=tuple(among[:4]))
    for seed in SEEDS:
        choice = chosen(among, wish, seed)
        assert names(choice) == ["n0", "n1"]
        assert choice.reasons == {}
    assert chosen(among, three(), 1).reasons == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_favored_one_that_is_busy_is_spared(seed: int) -> None:
    among = nodes(*["/a"] * 5)
    among[0].transceivers = 9
    choice = chosen(among, three(favored=(among[0],)), seed)
    assert "n0" not in names(choice)
    assert len(choice.places) == 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Disks:
    """Free bytes of a DataNode's disks, and how many replicas are on their way to the first."""

    free: Sequence[int]
    coming: int = 0
    size: int = SIZE
    state: StorageState = StorageState.NORMAL


ROOM: Final[dict[str, tuple[Disks, set[int] | NotTaken]]] = {
    "just enough": (Disks(free=[SIZE]), {0}),
    "too little": (Disks(free=[SIZE - 1]), NotTaken.NO_ROOM),
    "only one of two has enough": (Disks(free=[SIZE - 1, SIZE]), {1}),
    "two have too little, each": (Disks(free=[SIZE - 1, SIZE - 1]), NotTaken.NO_ROOM),
    "any of two": (Disks(free=[SIZE, SIZE]), {0, 1}),
    "just enough beside those that come": (Disks(free=[3 * SIZE], coming=2), {0}),
    "too little beside those that come": (Disks(free=[3 * SIZE - 1], coming=2), NotTaken.NO_ROOM),
    "what is free together counts": (Disks(free=[SIZE, SIZE], coming=1), {0, 1}),
    "but not where it is too little": (Disks(free=[SIZE, SIZE - 1], coming=1), NotTaken.NO_ROOM),
    "nothing fits on a full one": (Disks(free=[0], size=0), {0}),
    "but not where no disk is": (Disks(free=[], size=0), NotTaken.NO_STORAGE_TYPE),
    "nor on a shared one": (
        Disks(free=[SIZE], size=0, state=StorageState.READ_ONLY_SHARED),
        NotTaken.NO_STORAGE_TYPE,
    ),
}


@pytest.mark.parametrize(("disks", "expected"), ROOM.values(), ids=ROOM)
def test_a_datanode_has_room_on(disks: Disks, expected: set[int] | NotTaken) -> None:
    cluster = Cluster("BP-1", BlockState(), Random(0))
    (node,) = nodes("/a")
    node.storages.clear()
    for number, free in enumerate(disks.free):
        storage = cluster.add_storage(node, f"{number}")
        storage.room, storage.state = Room(remaining=free), disks.state
    for _ in range(disks.coming):
        node.storages["0"].held.scheduled.add(placement.NOW)
    wish = three(count=1, size=disks.size)
    choices = [chosen([node], wish, seed) for seed in range(20)]
    if isinstance(expected, NotTaken):
        assert [choice.reasons for choice in choices] == [{expected: 1}] * 20
    else:
        found = {storage.uuid for choice in choices for _, storage in choice.places}
        assert found == {str(number) for number in expected}


FALLBACKS: Final = {
    "a new one has none": ("HOT", False, [ARCHIVE], []),
    "a copy has one": ("HOT", True, [ARCHIVE], [ARCHIVE]),
    "the policy's own type comes first": ("HOT", True, [ARCHIVE, placement.DISK], [placement.DISK]),
    "one after the other": ("WARM", False, [ARCHIVE], [ARCHIVE]),
    "none of them is there": ("ALL_SSD", False, [ARCHIVE], []),
}


@pytest.mark.parametrize(("policy", "copy", "there", "taken"), FALLBACKS.values(), ids=FALLBACKS)
def test_a_type_is_replaced(
    policy: str, copy: bool, there: list[StorageType], taken: list[StorageType]
) -> None:
    wish = replace(three(count=1), policy=BY_NAME[policy], copy=copy)
    choice = chosen(nodes("/a", "/a", types=tuple(there)), wish, 1)
    assert [storage.type for _, storage in choice.places] == taken


@pytest.mark.parametrize("seed", SEEDS)
def test_who_may_be_gone_is_better_than_another_type(seed: int) -> None:
    among = nodes("/a", "/a", types=(placement.SSD,)) + nodes("/a", types=(placement.DISK,))[:1]
    among[0].last_heard = placement.NOW - 31
    among[2].id = replace(among[2].id, uuid="disk")
    wish = three(count=2, policy=BY_NAME["ALL_SSD"])
    assert set(names(chosen(among, wish, seed))) == {"n0", "n1"}


PIPELINES: Final = {
    "from the first, and from each to the nearest": ("abcb", None, None, "n0 n1 n3 n2"),
    "from the writer": ("abcb", "c", None, "n2 n0 n1 n3"),
    "from the first that has it": ("abcb", None, "b", "n1 n3 n0 n2"),
    "from the writer although another has it": ("abcb", "c", "b", "n2 n0 n1 n3"),
    "on one rack as they were taken": ("aaa", None, None, "n0 n1 n2"),
}


@pytest.mark.parametrize(("racks", "writer", "has", "order"), PIPELINES.values(), ids=PIPELINES)
@pytest.mark.parametrize("copy", [True, False])
def test_the_pipeline_goes(
    racks: str, writer: str | None, has: str | None, order: str, copy: bool
) -> None:
    among = on_racks(racks)
    others = {rack: node for rack in set(racks) for node in on_racks(rack)}
    for rack, node in others.items():
        node.id = replace(node.id, uuid=rack)
    wish = three(
        count=len(among),
        favored=tuple(among),  # taken in this order
        writer=others[writer] if writer else None,
        chosen=(placement.place(others[has]),) if has else (),
        excluded=frozenset(others),
        copy=copy,
    )
    everyone = [*among, *others.values()]
    assert names(chosen(everyone, wish, 1)) == order.split()
