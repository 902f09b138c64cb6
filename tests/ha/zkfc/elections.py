"""Moves of the election, as a candidacy hears of them."""

from typing import Final

from ha.elector.model import Link, Role, Stage
from ha.elector.state import ElectorState
from ha.zkfc.candidacy.model import ElectionMoved


def at(role: Role) -> ElectorState:
    ours = role in (Role.TAKING_OVER, Role.ACTIVE)
    return ElectorState(
        role=role, wanted=role is not Role.INIT, holding=ours, serving=role is Role.ACTIVE,
        link=Link.CLOSED if role is Role.INIT else Link.CONNECTED,
        stage=Stage.READING if role is Role.TAKING_OVER else Stage.NONE,
    )  # fmt: skip


def moved(before: Role, after: Role, *, planned: bool = False) -> ElectionMoved:
    return ElectionMoved(at(before), at(after), planned)


LOCK_WON: Final = moved(Role.STANDBY, Role.TAKING_OVER)
ELECTED: Final = moved(Role.TAKING_OVER, Role.ACTIVE)
ELECTED_AS_PLANNED: Final = moved(Role.TAKING_OVER, Role.ACTIVE, planned=True)
ABANDONED: Final = moved(Role.TAKING_OVER, Role.NEUTRAL)
