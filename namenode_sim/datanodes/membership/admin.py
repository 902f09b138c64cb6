"""Whether a DataNode serves, leaves, or is in maintenance: the states and what changes them.  Pure.

See docs/reference/datanodes.md#leaving-service.
"""

from enum import Enum, auto
from typing import assert_never

from ha.record import dataclass
from namenode_sim.datanodes.model import AdminState


class Kind(Enum):
    """What operators ask of a DataNode by the hosts files."""

    SERVICE = auto()
    DECOMMISSION = auto()
    MAINTENANCE = auto()


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of one DataNode; maintenance until ``until_ms`` since 1970, None for ever."""

    kind: Kind
    until_ms: int | None = None

    def at(self, now_ms: int) -> "Asked":
        """Return what is asked at a time: a maintenance that has expired asks for nothing."""
        expired = self.until_ms is not None and self.until_ms <= now_ms
        return SERVICE if expired else self


SERVICE = Asked(Kind.SERVICE)

AFTER = {
    AdminState.DECOMMISSION_INPROGRESS: AdminState.DECOMMISSIONED,
    AdminState.ENTERING_MAINTENANCE: AdminState.IN_MAINTENANCE,
}
"""What a DataNode is once all its blocks are safe without it."""


def asked_state(state: AdminState, kind: Kind, *, alive: bool, at_once: bool) -> AdminState:
    """Return the state that follows from what is asked.

    ``at_once``: dfs.namenode.maintenance.replication.min is 0, so that nothing need be copied.  The
    replicas of a dead DataNode cannot be copied from it: there is nothing to wait for.
    """
    match kind:
        case Kind.SERVICE:
            return AdminState.NORMAL
        case Kind.DECOMMISSION:
            if state in (AdminState.DECOMMISSION_INPROGRESS, AdminState.DECOMMISSIONED):
                return state
            return AdminState.DECOMMISSION_INPROGRESS if alive else AdminState.DECOMMISSIONED
        case Kind.MAINTENANCE:
            if state.is_maintained:
                return state
            if not alive or at_once or state is AdminState.DECOMMISSIONED:
                return AdminState.IN_MAINTENANCE
            return AdminState.ENTERING_MAINTENANCE
        case _:
            assert_never(kind)


def unproven_state(state: AdminState, *, alive: bool, at_once: bool) -> AdminState:
    """Return the state of a DataNode whose blocks are not known to be safe without it any more.

    Bad schedule: the former active has had replicas of other DataNodes deleted, or the DataNode
    comes back from the dead; what had been proven then is not so now.
    """
    if not alive:
        return state
    match state:
        case AdminState.DECOMMISSIONED:
            return AdminState.DECOMMISSION_INPROGRESS
        case AdminState.IN_MAINTENANCE if not at_once:
            return AdminState.ENTERING_MAINTENANCE
        case _:
            return state
