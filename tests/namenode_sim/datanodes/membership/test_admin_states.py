"""What becomes of a DataNode's state by what is asked of it: the whole table."""

from itertools import product
from typing import Final

import pytest

from namenode_sim.datanodes.membership.admin import (
    AFTER,
    SERVICE,
    Asked,
    Kind,
    asked_state,
    unproven_state,
)
from namenode_sim.datanodes.model import AdminState as S

N, D_ING, D_ED = S.NORMAL, S.DECOMMISSION_INPROGRESS, S.DECOMMISSIONED
M_ING, M_IN = S.ENTERING_MAINTENANCE, S.IN_MAINTENANCE

DECOMMISSION: Final = {
    # from: (alive, dead)
    N: (D_ING, D_ED),
    D_ING: (D_ING, D_ING),
    D_ED: (D_ED, D_ED),
    M_ING: (D_ING, D_ED),
    M_IN: (D_ING, D_ED),
}
MAINTENANCE: Final = {
    # from: (alive, dead, alive where no replica need be elsewhere)
    N: (M_ING, M_IN, M_IN),
    D_ING: (M_ING, M_IN, M_IN),
    D_ED: (M_IN, M_IN, M_IN),
    M_ING: (M_ING, M_ING, M_ING),
    M_IN: (M_IN, M_IN, M_IN),
}
UNPROVEN: Final = {
    # from: (alive, dead, alive where no replica need be elsewhere)
    N: (N, N, N),
    D_ING: (D_ING, D_ING, D_ING),
    D_ED: (D_ING, D_ED, D_ING),
    M_ING: (M_ING, M_ING, M_ING),
    M_IN: (M_ING, M_IN, M_IN),
}


@pytest.mark.parametrize(
    ("before", "alive", "at_once"), list(product(S, (True, False), (True, False)))
)
def test_each_state_follows_from_what_is_asked(before: S, *, alive: bool, at_once: bool) -> None:
    def found(kind: Kind) -> S:
        return asked_state(before, kind, alive=alive, at_once=at_once)

    column = 1 if not alive else 2 if at_once else 0
    assert found(Kind.SERVICE) is N
    assert found(Kind.DECOMMISSION) is DECOMMISSION[before][not alive]
    assert found(Kind.MAINTENANCE) is MAINTENANCE[before][column]
    assert unproven_state(before, alive=alive, at_once=at_once) is UNPROVEN[before][column]


def test_what_is_asked_again_changes_nothing() -> None:
    for before, kind, alive, at_once in product(S, Kind, (True, False), (True, False)):
        once = asked_state(before, kind, alive=alive, at_once=at_once)
        assert asked_state(once, kind, alive=alive, at_once=at_once) is once


def test_two_states_end_once_all_blocks_are_safe() -> None:
    assert AFTER == {D_ING: D_ED, M_ING: M_IN}


def test_a_maintenance_asks_for_nothing_once_it_has_expired() -> None:
    asked = Asked(Kind.MAINTENANCE, until_ms=1000)
    assert asked.at(999) is asked
    assert asked.at(1000) is SERVICE
    for_ever = Asked(Kind.MAINTENANCE)
    assert for_ever.at(2**63) is for_ever


def test_states_are_numbered_as_on_the_wire() -> None:
    assert [state.value for state in (N, D_ING, D_ED, M_ING, M_IN)] == [0, 1, 2, 3, 4]
