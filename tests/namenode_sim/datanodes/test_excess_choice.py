"""Which replica goes when there is one too many."""

from typing import Final

import pytest

from namenode_sim.blocks.model import StorageNumber
from namenode_sim.blocks.recheck_queue import DeleteHint
from namenode_sim.datanodes.excess_choice import Candidate, choose_excess
from namenode_sim.datanodes.model import StorageType
from namenode_sim.datanodes.storage_policies import BY_NAME

One = tuple[str, int, float | None]
"""A rack, free bytes, and since when its DataNode is silent, or None."""

Asked = tuple[str, str] | None
"""The DataNode that may lose its replica, and the one that has got one for it."""

CASES: Final[dict[str, tuple[list[One], Asked, int]]] = {
    "the fullest": ([("r", 5, None), ("r", 3, None), ("r", 4, None)], None, 1),
    "of equal ones the first": ([("r", 3, None), ("r", 3, None)], None, 0),
    "the longest silent": ([("r", 1, None), ("r", 9, 50.0), ("r", 9, 40.0)], None, 2),
    "the one asked to": ([("r", 1, None), ("r", 9, None)], ("n1", "n0"), 1),
    "not the only one of a rack": ([("r", 1, None), ("s", 2, None), ("s", 3, None)], None, 1),
    "not even when asked to": ([("r", 1, None), ("s", 2, None), ("s", 3, None)], ("n0", "n2"), 1),
    "the only one of a rack for one on a new rack": (
        [("r", 5, None), ("s", 2, None), ("t", 9, None)],
        ("n0", "n2"),
        0,
    ),
    "not the only one of three racks for another of a rack": (
        [("r", 9, None), ("s", 5, None), ("t", 9, None), ("t", 9, None)],
        ("n0", "n3"),
        1,
    ),
    "one of a rack that has another, for one of that rack": (
        [("r", 9, None), ("r", 5, None), ("s", 1, None), ("t", 1, None)],
        ("n0", "n1"),
        0,
    ),
    "not where the one for it has not come": (
        [("r", 9, None), ("s", 5, None), ("t", 9, None)],
        ("n0", "n7"),
        1,
    ),
    "the fullest of three racks": (
        [("r", 5, None), ("r", 6, None), ("s", 1, None), ("t", 7, None)],
        None,
        2,
    ),
    "of equally full ones of three racks one whose rack has another": (
        [("s", 5, None), ("r", 5, None), ("t", 5, None), ("r", 5, None)],
        None,
        1,
    ),
    "of equally silent ones likewise": (
        [("s", 1, 40.0), ("t", 1, 40.0), ("r", 9, 40.0), ("r", 1, 40.0)],
        None,
        2,
    ),
    "of equally silent ones the first": ([("r", 9, 40.0), ("r", 1, 40.0)], None, 0),
    "any of three racks": ([("r", 1, None), ("s", 2, None), ("t", 3, None)], None, 0),
    "any of three when asked to": (
        [("r", 1, None), ("s", 2, None), ("t", 3, None)],
        ("n2", "n1"),
        2,
    ),
    "one of two racks with one each": ([("r", 2, None), ("s", 1, None)], None, 1),
    "somebody unknown is asked": ([("r", 5, None), ("r", 3, None)], ("n9", "n0"), 1),
}


@pytest.mark.row("B14")
@pytest.mark.parametrize(("replicas", "asked", "goes"), CASES.values(), ids=CASES)
def test_one_goes(replicas: list[One], asked: Asked, goes: int) -> None:
    candidates = [
        Candidate(
            StorageNumber(number),
            StorageType.DISK,
            f"n{number}",
            rack,
            100.0 if silent is None else silent,
            silent is not None,
            remaining,
        )
        for number, (rack, remaining, silent) in enumerate(replicas)
    ]
    hint = None if asked is None else DeleteHint(*asked)
    assert choose_excess(candidates, [StorageType.DISK] * (len(replicas) - 1), hint) == [goes]


@pytest.mark.row("B14")
def test_two_racks_stay_while_many_go() -> None:
    racks = ["r", "r", "s", "t", "t"]
    candidates = [
        Candidate(
            StorageNumber(number),
            StorageType.DISK,
            f"n{number}",
            rack,
            0.0,
            late=False,
            remaining=number,
        )
        for number, rack in enumerate(racks)
    ]
    gone = choose_excess(candidates, [StorageType.DISK] * 2, None)
    assert len({racks[number] for number in range(5) if number not in gone}) == 2


TYPES: Final = {
    "a fallback is not needed any more": ("DISK ARCHIVE DISK DISK", 3, [1]),
    "one SSD is wanted": ("SSD SSD DISK DISK", 3, [0]),
    "the named one is of a wanted type": ("ARCHIVE DISK DISK DISK", 3, [0]),
}


@pytest.mark.parametrize(("types", "stay", "gone"), TYPES.values(), ids=TYPES)
def test_what_the_policy_does_not_want_goes(types: str, stay: int, gone: list[int]) -> None:
    kinds = [StorageType[name] for name in types.split()]
    candidates = [
        Candidate(StorageNumber(number), kind, f"n{number}", "r", 0.0, late=False, remaining=number)
        for number, kind in enumerate(kinds)
    ]
    policy = BY_NAME["ONE_SSD" if StorageType.SSD in kinds else "HOT"]
    assert choose_excess(candidates, policy.types(stay), DeleteHint("n3", "n0")) == gone


MIXED: Final = {
    "a type is in excess on both racks together": ("DISK r, DISK s, SSD s", "DISK SSD", [1]),
    "a type is in excess on a rack's last one": ("SSD r, DISK s, DISK s", "DISK DISK", [1]),
    "a type is in excess beside a rack's last one": ("DISK r, DISK s, SSD s", "DISK DISK", [2]),
}


@pytest.mark.parametrize(("held", "wanted", "gone"), MIXED.values(), ids=MIXED)
def test_racks_come_before_types(held: str, wanted: str, gone: list[int]) -> None:
    """The first one's storage is the fullest, but for an SSD."""
    candidates = [
        Candidate(
            StorageNumber(number),
            StorageType[kind],
            f"n{number}",
            rack,
            0.0,
            late=False,
            remaining=0 if kind == "SSD" else number + 1,
        )
        for number, (kind, rack) in enumerate(one.split() for one in held.split(", "))
    ]
    assert choose_excess(candidates, [StorageType[one] for one in wanted.split()], None) == gone
