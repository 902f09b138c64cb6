"""What a new namespace has given out, which block ids may follow, and the policies it knows."""

import pytest

from namenode_sim.edits.values import EcPolicy
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.state import Counters, EcState, system_ec_policies

NOTHING_YET = Counters(
    last_inode_id=16385,
    generation_stamp_v1=1000,
    generation_stamp_v2=1000,
    generation_stamp_v1_limit=0,
    last_block_id=1073741824,
    last_striped_block_id=-9223372036854775808,
)


def test_a_new_namespace_has_given_out_what_is_reserved() -> None:
    assert Counters() == NOTHING_YET


GIVEN: dict[str, tuple[int, tuple[int, int]]] = {
    "the next one": (1073741835, (1073741835, -500)),
    "a later one": (2**62, (2**62, -500)),
    "the last one again": (1073741834, (1073741834, -500)),
    "the next group": (-484, (1073741834, -484)),
    "the last group again": (-500, (1073741834, -500)),
    "the last group that there can be": (-1, (1073741834, -1)),
}


@pytest.mark.parametrize(("block_id", "last"), GIVEN.values(), ids=GIVEN.keys())
def test_a_block_id_is_given_out(block_id: int, last: tuple[int, int]) -> None:
    counters = Counters(last_block_id=1073741834, last_striped_block_id=-500)
    counters.allocate_block_id(block_id)
    assert (counters.last_block_id, counters.last_striped_block_id) == last


REFUSED = {"a lower one": 1073741833, "a lower group": -501, "zero, which is no group's": 0}


@pytest.mark.parametrize("block_id", REFUSED.values(), ids=REFUSED.keys())
def test_a_lower_block_id_is_refused(block_id: int) -> None:
    counters = Counters(last_block_id=1073741834, last_striped_block_id=-500)
    with pytest.raises(ApplyError, match=f"{block_id} comes after"):
        counters.allocate_block_id(block_id)


MIB = 1048576
POLICIES = {
    1: ("RS-6-3-1024k", EcPolicy("rs", 6, 3, MIB)),
    2: ("RS-3-2-1024k", EcPolicy("rs", 3, 2, MIB)),
    3: ("RS-LEGACY-6-3-1024k", EcPolicy("rs-legacy", 6, 3, MIB)),
    4: ("XOR-2-1-1024k", EcPolicy("xor", 2, 1, MIB)),
    5: ("RS-10-4-1024k", EcPolicy("rs", 10, 4, MIB)),
}


def test_five_policies_are_known_and_disabled() -> None:
    found = system_ec_policies()
    assert {number: (one.name, one.policy) for number, one in found.items()} == POLICIES
    assert [one.id for one in found.values()] == [1, 2, 3, 4, 5]
    assert {one.state for one in found.values()} == {EcState.DISABLED}
