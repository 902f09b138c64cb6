"""The looker of the plays on racks sees a block that has too few replicas."""

from typing import Final

import pytest

from tests.cluster.rack_scene import NEW_SECONDS, Block, Counted, misplaced

WHOLE: Final = "dn1 live, dn3 live, dn4 live"


def block(held: str, state: str = "healthy") -> Block:
    replicas = [
        {"datanode": f"{name}.local", "state": words}
        for name, _, words in (one.partition(" ") for one in held.split(", "))
    ]
    return {
        "block": "blk_1_1001",
        "path": "/f",
        "expected": 3,
        "state": state,
        "replicas": replicas,
    }


LOOKS: Final = {
    "all live": ([(0, WHOLE)], None),
    "one is being decommissioned": ([(0, "dn1 live, dn3 live, dn4 decommissioning")], None),
    "one has left": ([(0, WHOLE), (1, "dn1 live, dn3 live, dn4 decommissioned")], -1),
    "one is to be deleted": ([(0, WHOLE), (1, "dn1 live, dn3 live, dn4 excess")], -1),
    "one is gone for one look": ([(0, WHOLE), (1, "dn1 live, dn3 live"), (2, WHOLE)], -1),
    "a new one is not whole yet": ([(0, "dn1 live"), (NEW_SECONDS - 1, "dn1 live")], None),
    "a new one does not become whole": ([(0, "dn1 live"), (NEW_SECONDS + 1, "dn1 live")], -2),
}


@pytest.mark.parametrize(("looks", "lowest"), LOOKS.values(), ids=LOOKS)
def test_too_few_replicas_are_seen_at_any_look(
    looks: list[tuple[float, str]], lowest: int | None
) -> None:
    counted = Counted()
    for now, held in looks:
        counted.saw([block(held)], now)
    assert counted.looks == len(looks)
    assert (min(counted.lowest or 0, 0), len(counted.below)) == (lowest or 0, lowest is not None)


def test_no_answer_is_no_look_and_what_is_being_written_is_not_judged() -> None:
    counted = Counted()
    counted.saw([], 0.0)
    counted.saw([block("dn1 live", "being written")], NEW_SECONDS + 1)
    assert (counted.looks, counted.lowest, counted.below) == (1, None, [])


RACKED: Final = {WHOLE: 0, "dn1 live, dn2 live, dn3 excess": 1, "dn1 live, dn3 live": 1}


@pytest.mark.parametrize(("held", "count"), RACKED.items(), ids=RACKED)
def test_live_replicas_are_to_stand_on_two_racks(held: str, count: int) -> None:
    assert len(misplaced([block(held)])) == count


def test_two_on_one_rack_are_not_enough_where_two_are_wanted() -> None:
    one = {**block("dn1 live, dn2 live"), "expected": 2}
    assert len(misplaced([one])) == 1
    assert misplaced([{**one, "expected": 1}]) == []
