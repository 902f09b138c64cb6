"""Planted bugs of the limits that keep one request from doing harm that lasts."""

from dataclasses import replace
from typing import Any

from journal.core import admission, limits, machine, recovery
from journal.core.admission import Admitted
from journal.core.state import JournalState
from journal.node.owner import owner
from tests.simulation.engine.mutants import Planting, all_of, replacing


def any_leap() -> Planting:
    """Promise every epoch; the largest leaves no number for the next writer."""
    places = (admission, recovery)
    return all_of(
        *(replacing(at, "require_small_leap", lambda state, epoch: None) for at in places)
    )


def everything_promises() -> Planting:
    """Let a stray heartbeat fence the writer, as in Hadoop."""
    return replacing(machine, "_PROMISING", (object,))


def any_serial() -> Planting:
    huge = 1 << 80
    return all_of(replacing(limits, "MAX_SERIAL_LEAP", huge), replacing(limits, "MAX_SERIAL", huge))


def any_committed() -> Planting:
    return replacing(limits, "MAX_COMMITTED_LEAP", 1 << 80)


def claims_decide() -> Planting:
    """Take what a request says is committed for it, whatever edits are here."""
    admit = admission.admit

    def lenient(state: JournalState, stamp: Any, *, promises: bool) -> Admitted:  # noqa: ANN401
        admitted = admit(state, stamp, promises=promises)
        claimed = max(admitted.state.committed, admitted.state.claimed)
        return replace(admitted, state=replace(admitted.state, committed=claimed))

    return replacing(machine, "admit", lenient)


def any_namespace() -> Planting:
    sane = limits.require_sane_stamp

    def lenient(state: JournalState, stamp: Any, *, known: bool) -> None:  # noqa: ANN401
        sane(state, replace(stamp, namespace_id=None), known=known)

    return replacing(admission, "require_sane_stamp", lenient)


def any_lease() -> Planting:
    return replacing(owner, "require_short_lease", lambda request, limit_micros: None)
