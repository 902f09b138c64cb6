"""Fail-back: a preferred NameNode takes the role back when the operator wants that.

Off unless ``nnha.candidate.failback-after`` is set.  The preferred standby decides, for itself: an
active of lower priority is well, and nothing has stood against a change for that time without a
break.  A change costs clients a moment, so it must not be made often: each try doubles the time
that the next one waits, and after as many changes of the active as are flapping there is none.
"""

from typing import Final

from ha.health.core import Health
from ha.notices.model import Member
from ha.notices.seen import FREE, Notices
from ha.record import dataclass, replace
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import UNREADY_REPORTS, Standing, successor
from ha.zkfc.candidacy.flapping import FlapSettings

MOST_DOUBLINGS: Final = 5
"""The longest wait is 32 times the first."""
FORGOTTEN_AFTER: Final = 64
"""Times the first wait: a try longer ago than this counts no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailBack:
    """What one controller remembers for it.  Times are the caller's monotonic clock's."""

    since: float | None = None
    """Since when nothing stands against it; None: something does."""
    tries: tuple[float, ...] = ()
    holder: str = ""
    """The last holder of the lock, as far as it was seen."""
    moves: tuple[float, ...] = ()
    """When another NameNode than before was seen to hold it."""


def note_lock(state: FailBack, notices: Notices, flap: FlapSettings, now: float) -> FailBack:
    """Count the change of the active that the notices, read anew, may show."""
    holder = notices.lock_holder
    if holder in (None, FREE, state.holder):
        return state
    recent = tuple(one for one in state.moves if one > now - flap.window_seconds)
    # The first holder that is seen has not come from anywhere.
    moves = (*recent, now) if state.holder else recent
    return replace(state, holder=holder or "", moves=moves)


def weigh(state: FailBack, standing: Standing, flap: FlapSettings, now: float) -> FailBack:
    """Begin, continue or restart the count for our NameNode, a standby in the election."""
    if _against(state, standing, flap, now):
        return replace(state, since=None)
    return replace(state, since=now if state.since is None else state.since)


def seconds_left(state: FailBack, standing: Standing, now: float) -> float | None:
    """Return the seconds until it would be tried, if nothing comes in between.

    None where something is against it.
    """
    if state.since is None:
        return None
    return max(0.0, state.since + _wait_seconds(state, standing, now) - now)


def note_try(state: FailBack, standing: Standing, now: float) -> FailBack:
    """Note that it is tried now; whatever comes of it, the next time waits longer."""
    return replace(state, since=None, tries=(*_recent_tries(state, standing, now), now))


def why(standing: Standing) -> str:
    """Return the cause that is recorded."""
    lower = _lower_active(standing)
    than = "" if lower is None else f", {lower.namenode} {lower.priority}"
    rank = standing.rank
    return (
        f"fail-back: {standing.namenode} has priority {rank.priority}{than}, and was fit for "
        f"{rank.failback_after_seconds:g} s"
    )


def _against(state: FailBack, standing: Standing, flap: FlapSettings, now: float) -> bool:
    notices, rank = standing.notices, standing.rank
    if rank.failback_after_seconds <= 0 or notices is None:
        return True
    if notices.pause is not None or notices.drain is not None or notices.namesake:
        return True
    if standing.asked > 0 or rank.nofailover or standing.unready_in_a_row >= UNREADY_REPORTS:
        return True
    moves = sum(one > now - flap.window_seconds for one in state.moves)
    if 0 < flap.failovers <= moves:
        return True
    return _lower_active(standing) is None or _better_standby(standing)


def _lower_active(standing: Standing) -> Member | None:
    """Return the active, if it is healthy and of lower priority; Hadoop's controller shows none."""
    members = () if standing.notices is None else standing.notices.members
    for one in members:
        if (
            standing.notices is not None
            and one.namenode == standing.notices.lock_holder
            and one.state == ServiceState.ACTIVE
            and one.health == Health.HEALTHY
            and one.priority < standing.rank.priority
        ):
            return one
    return None


def _better_standby(standing: Standing) -> bool:
    """Return whether a better one is preferred, too: it goes first, or both would take turns."""
    best = successor(standing)
    own = (-standing.rank.priority, standing.namenode)
    return best is not None and (-best.priority, best.namenode) < own


def _wait_seconds(state: FailBack, standing: Standing, now: float) -> float:
    doublings = min(len(_recent_tries(state, standing, now)), MOST_DOUBLINGS)
    return float(standing.rank.failback_after_seconds * 2**doublings)


def _recent_tries(state: FailBack, standing: Standing, now: float) -> tuple[float, ...]:
    since = now - FORGOTTEN_AFTER * standing.rank.failback_after_seconds
    return tuple(one for one in state.tries if one > since)
