"""Planted bugs of the limits that keep one request from doing harm that lasts."""

from dataclasses import replace
from typing import Any, Final

from journal.core import admission, limits, machine, recovery
from journal.core.state import JournalState
from journal.node.owner import owner
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing

_CORE: Final = "tests/journal/core/test_"
_LIMITS: Final = _CORE + "limits.py::test_it_is_refused_and_changes_nothing"
_STRANGER: Final = "whoever has a writer's rights may shut a writer out anyway, and worlds allow it"
bug: Final = Planted()


@bug.killed_by(_LIMITS)
@bug("any epoch is promised", 100)
def any_leap() -> Planting:
    places = (admission, recovery)
    return all_of(
        *(replacing(at, "require_small_leap", lambda state, epoch: None) for at in places)
    )


@bug.killed_by(
    _CORE + "limits.py::test_only_what_a_new_writer_begins_with_promises_its_epoch", why=_STRANGER
)
@bug("a heartbeat promises", 0)
def everything_promises() -> Planting:
    return replacing(machine, "_PROMISING", (object,))


@bug.killed_by(_LIMITS, why=_STRANGER)
@bug("any serial is taken", 0)
def any_serial() -> Planting:
    huge = 1 << 80
    return all_of(replacing(limits, "MAX_SERIAL_LEAP", huge), replacing(limits, "MAX_SERIAL", huge))


@bug.killed_by(
    _LIMITS, why="what is said to be committed decides nothing where the edits are missing"
)
@bug("any committed txid is taken", 0)
def any_committed() -> Planting:
    return replacing(limits, "MAX_COMMITTED_LEAP", 1 << 80)


@bug.killed_by(_CORE + "limits.py::test_a_claim_beyond_the_edits_here_decides_nothing")
@bug.replacing("claims about missing edits decide", machine, "admit", 1500)
def claims_decide(really: Any, state: JournalState, stamp: Any, *, promises: bool) -> Any:
    admitted = really(state, stamp, promises=promises)
    claimed = max(admitted.state.committed, admitted.state.claimed)
    return replace(admitted, state=replace(admitted.state, committed=claimed))


@bug.killed_by(
    _LIMITS, why="those that strangers send there do no harm with the right number either"
)
@bug.replacing("another file system's requests are taken", admission, "require_sane_stamp", 0)
def any_namespace(really: Any, state: JournalState, stamp: Any, *, known: bool) -> None:
    really(state, replace(stamp, namespace_id=None), known=known)


@bug.killed_by("tests/journal/node/test_lane_limits.py::test_a_stray_heartbeat_changes_nothing")
@bug("any read lease is granted", 1500)
def any_lease() -> Planting:
    return replacing(owner, "require_short_lease", lambda request, limit_micros: None)
