"""Leases of full reports: how many, for how long, and whose."""

import random

import pytest

from namenode_sim.datanodes.errors import LeaseNotHeld
from namenode_sim.datanodes.report_leases import LARGEST_ID, NO_LEASE, LeaseRules, ReportLeases

RULES = LeaseRules(most=2, seconds=300.0)


def leases() -> ReportLeases:
    return ReportLeases(random.Random(1), RULES)


def give(made: ReportLeases, uuid: str, now: float = 0.0, *, after_claim: bool = True) -> int:
    return made.give(uuid, now, after_claim=after_claim)


@pytest.mark.row("B18")
def test_b18_so_many_report_at_once() -> None:
    made = leases()
    one, two = give(made, "a"), give(made, "b")
    assert NO_LEASE not in {one, two}
    assert give(made, "c") == NO_LEASE
    made.give_back("a")
    assert give(made, "c") not in {NO_LEASE, one, two}


@pytest.mark.row("B18")
def test_b18_who_asks_again_gets_another_one_and_the_first_is_void() -> None:
    made = leases()
    first = give(made, "a")
    second = give(made, "a")
    assert second != first
    with pytest.raises(LeaseNotHeld):
        made.check("a", first, 0.0)
    assert made.check("a", second, 0.0) is not None
    give(made, "b")
    assert give(made, "a") != NO_LEASE


@pytest.mark.row("B18")
def test_b18_a_lease_ends_and_makes_room() -> None:
    made = leases()
    assert not made.has("a", 0.0)
    first = give(made, "a")
    give(made, "b", 100.0)
    held = made.check("a", first, 299.9)
    assert held is not None
    assert (held.since, held.after_claim) == (0.0, True)
    assert made.has("a", 299.9)
    assert not made.has("a", 300.0)
    with pytest.raises(LeaseNotHeld):
        made.check("a", first, 300.0)
    assert give(made, "c", 300.0) != NO_LEASE


@pytest.mark.parametrize("wrong", ["another's", "nobody's", "a former process's", "cleared"])
def test_wrong_leases(wrong: str) -> None:
    made = leases()
    mine, other = give(made, "a"), give(made, "b")
    shown = {"another's": other, "nobody's": mine, "a former process's": 4711, "cleared": mine}
    if wrong == "cleared":
        made.clear()
    who = "c" if wrong == "nobody's" else "a"
    with pytest.raises(LeaseNotHeld, match=f"lease {shown[wrong]}"):
        made.check(who, shown[wrong], 0.0)


def test_no_lease_is_needed_by_who_knows_none() -> None:
    assert leases().check("a", 0, 0.0) is None


def test_of_hadoops_defaults_six_report_at_once_and_have_five_minutes() -> None:
    made = ReportLeases(random.Random(1))
    held = [give(made, f"n{number}") for number in range(7)]
    assert 0 not in held[:6]
    assert held[6] == 0, "on the wire that is no lease"
    assert give(made, "n6", 299.9) == 0
    assert give(made, "n6", 300.0) != 0


def test_ids_go_round_without_zero() -> None:
    class Highest:
        def random(self) -> float:
            return 0.5

        def randrange(self, stop: int, /) -> int:
            return stop - 1

    made = ReportLeases(Highest(), RULES)
    assert [give(made, "a"), give(made, "a")] == [LARGEST_ID, 1]
