"""In production a few blocks a round are compared: what is wrong is logged and counted."""

from typing import Final

import pytest

from namenode_sim.blocks.errors import MapBroken
from namenode_sim.datanode_protocol.metrics import MAP_FINDINGS
from namenode_sim.datanode_protocol.upkeep import MAP_SLOTS_A_ROUND, MapCheck, Upkeep
from namenode_sim.datanodes.redundancy import ROUND_SECONDS
from tests.log_lines import captured
from tests.namenode_sim.datanodes.few_nodes import BLOCK, Few

ROUNDS: Final = 3


def a_map() -> Few:
    few = Few("ab")
    for number in range(ROUNDS * MAP_SLOTS_A_ROUND - 1):
        few.block("ab", expected=2, number=BLOCK + number)
    few.state.map.check()
    return few


def swap(few: Few, one: int, other: int) -> None:
    """Two blocks change places in a storage's list; their rows do not say so."""
    slots = few.storages["a"].held.slots
    slots[one], slots[other] = slots[other], slots[one]
    with pytest.raises(MapBroken, match="is not at position"):
        few.state.map.check()


def counted() -> float:
    (family,) = MAP_FINDINGS.collect()
    return next(one.value for one in family.samples if one.name.endswith("_total"))


async def test_each_block_is_compared_in_its_round_and_what_is_wrong_is_told_once_a_turn() -> None:
    few = a_map()
    swap(few, MAP_SLOTS_A_ROUND, 2 * MAP_SLOTS_A_ROUND - 1)
    upkeep, before, found = Upkeep(few.redundancy, few.state.map, lambda: few.now), counted(), []
    for _ in range(2 * ROUNDS):
        with captured("blocks.map_broken") as logs:
            await upkeep.look()
        found.append(logs)
        few.now += ROUND_SECONDS
    assert [len(lines) for lines in found] == [0, 1, 0] * 2
    line = found[1][0]
    assert (line["log_level"], line["first_slot"], line["findings"]) == (
        "error",
        MAP_SLOTS_A_ROUND,
        2,
    )
    assert f"{BLOCK + MAP_SLOTS_A_ROUND} in slot {MAP_SLOTS_A_ROUND}" in line["finding"]
    assert counted() == before + 4


def test_a_map_without_a_flaw_is_compared_silently() -> None:
    few, before = a_map(), counted()
    check = MapCheck(few.state.map)
    with captured("blocks.") as logs:
        for _ in range(ROUNDS + 1):
            check.look()
    assert (logs, counted()) == ([], before)


def test_a_map_that_breaks_the_check_itself_ends_nothing() -> None:
    few, before = a_map(), counted()
    few.storages["a"].held.slots = None  # type: ignore[assignment] # a fault of the machine
    with captured("blocks.") as logs:
        MapCheck(few.state.map).look()
    assert [line["event"] for line in logs] == ["blocks.map_broken"]
    assert counted() == before + 1
