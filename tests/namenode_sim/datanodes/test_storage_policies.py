"""Storage policies as tables: the types of a block's replicas, and whose policy holds where."""

from dataclasses import dataclass
from typing import Final

import pytest

from namenode_sim.datanodes.model import StorageType
from namenode_sim.datanodes.storage_policies import BY_NAME, policy_of
from namenode_sim.edits import ops
from namenode_sim.namespace.usage import effective_policy_id
from tests.namenode_sim.namespace.given_edits import add, after, mkdir

LETTERS: Final = {
    "D": StorageType.DISK,
    "S": StorageType.SSD,
    "A": StorageType.ARCHIVE,
    "R": StorageType.RAM_DISK,
    "P": StorageType.PROVIDED,
    "N": StorageType.NVDIMM,
}


def types(letters: str) -> list[StorageType]:
    return [LETTERS[letter] for letter in letters]


@pytest.mark.parametrize(
    ("policy", "of_three"),
    [
        ("HOT", "DDD"),
        ("COLD", "AAA"),
        ("WARM", "DAA"),
        ("ONE_SSD", "SDD"),
        ("ALL_SSD", "SSS"),
        ("ALL_NVDIMM", "NNN"),
        ("LAZY_PERSIST", "DDD"),
        ("PROVIDED", "DDD"),
    ],
)
def test_the_last_type_stands_for_all_others_and_some_types_are_never_chosen(
    policy: str, of_three: str
) -> None:
    for count in range(4):
        assert BY_NAME[policy].types(count) == types(of_three[:count])


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """The types of the replicas that a block of that many has, and of those it is still to get."""

    policy: str
    count: int = 3
    have: str = ""
    unavailable: str = ""
    new: str
    copies: str | None = None
    """Where it is not the same when a replica is copied."""


WANTS: Final = {
    "all are new": Want(policy="ONE_SSD", new="SDD"),
    "one is there": Want(policy="ONE_SSD", have="D", new="SD"),
    "the first is there": Want(policy="ONE_SSD", have="S", new="DD"),
    "one of the last type is there": Want(policy="WARM", have="A", new="DA"),
    "two are there": Want(policy="WARM", have="AD", new="A"),
    "all are there": Want(policy="WARM", have="AAD", new=""),
    "one of another type counts": Want(policy="HOT", have="S", new="DD"),
    "two of another type count": Want(policy="HOT", have="SS", new="D"),
    "the right ones and one of another type": Want(policy="HOT", have="DA", new="D"),
    "as many of another type as wanted": Want(policy="HOT", have="SSS", new=""),
    "more of another type than wanted": Want(policy="HOT", count=2, have="SSS", new=""),
    "more of the right type than wanted": Want(policy="HOT", count=2, have="DDD", new=""),
    "no room, and nothing instead": Want(policy="COLD", unavailable="A", new=""),
    "no room": Want(policy="ALL_SSD", unavailable="S", new="DDD"),
    "no room, and one is there": Want(policy="ALL_SSD", have="S", unavailable="S", new="DD"),
    "no room for one of two types": Want(policy="ONE_SSD", unavailable="D", new="SSS"),
    "no room for what would stand in either": Want(
        policy="ALL_SSD", unavailable="SD", new=""),
    "only a copy may go elsewhere": Want(policy="HOT", unavailable="D", new="", copies="AAA"),
    "what is never chosen does not stand in": Want(policy="PROVIDED", unavailable="D", new=""),
}  # fmt: skip


@pytest.mark.parametrize("want", WANTS.values(), ids=WANTS)
def test_what_is_there_need_not_be_made_and_another_type_stands_in_where_there_is_no_room(
    want: Want,
) -> None:
    have, unavailable = types(want.have), types(want.unavailable)
    copies = want.new if want.copies is None else want.copies
    for copy, expected in ((False, want.new), (True, copies)):
        found = BY_NAME[want.policy].wanted(want.count, have, unavailable, copy=copy)
        assert found == types(expected)


COLD, WARM, HOT, UNKNOWN = 2, 5, 7, 3


@pytest.mark.parametrize(
    ("given", "number", "name"),
    [
        pytest.param({}, 0, "HOT", id="nobody has one"),
        pytest.param({"/a/b/f": COLD}, COLD, "COLD", id="its own"),
        pytest.param({"/a/b": COLD}, COLD, "COLD", id="its directory's"),
        pytest.param({"/": COLD}, COLD, "COLD", id="the root's"),
        pytest.param({"/a": WARM, "/a/b": COLD}, COLD, "COLD", id="the nearest directory's"),
        pytest.param({"/a/b": COLD, "/a/b/f": WARM}, WARM, "WARM", id="its own before all"),
        pytest.param({"/a": COLD, "/a/b": HOT}, HOT, "HOT", id="the default, set nearer"),
        pytest.param({"/a/b/f": UNKNOWN}, UNKNOWN, "HOT", id="one that is not known"),
    ],
)
def test_the_nearest_policy_holds(given: dict[str, int], number: int, name: str) -> None:
    edits = [ops.SetStoragePolicy(path, policy) for path, policy in given.items()]
    file = after(mkdir("/a"), mkdir("/a/b"), add("/a/b/f"), *edits).tree.node("/a/b/f")
    assert effective_policy_id(file) == number
    assert policy_of(file) == BY_NAME[name]
