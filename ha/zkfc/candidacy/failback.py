"""Fail-back: the standby of the highest priority requests a hand-over from a lower active.

It is off unless ``nnha.candidate.failback-after`` is set.  The standby requests it when nothing has
blocked a fail-back for that time.  Each hand-over interrupts clients, so each try doubles the wait
for the next one, and there is none while the active changes as often as ``flapping`` allows.
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
"""The wait is doubled at most this number of times, to 32 times the first."""
FORGOTTEN_AFTER: Final = 64
"""A try longer ago than this number of first waits is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailBack:
    """What a controller remembers for a fail-back.  Times are of the caller's monotonic clock."""

    since: float | None = None
    """When the last block ended; None while a fail-back is blocked."""
    tries: tuple[float, ...] = ()
    holder: str = ""
    """The last NameNode that was seen to hold the lock."""
    moves: tuple[float, ...] = ()
    """When a NameNode was first seen to hold the lock after another one."""


def count_lock_move(state: FailBack, notices: Notices, flap: FlapSettings, now: float) -> FailBack:
    """Count a move of the lock to another NameNode, if these newly read notices show one."""
    holder = notices.lock_holder
    if holder in (None, FREE, state.holder):
        return state
    recent = tuple(one for one in state.moves if one > now - flap.window_seconds)
    # The first holder that we see is no move.
    moves = (*recent, now) if state.holder else recent
    return replace(state, holder=holder or "", moves=moves)


def update_wait(state: FailBack, standing: Standing, flap: FlapSettings, now: float) -> FailBack:
    """Start or continue the wait for a fail-back to our standby; end it if that is blocked."""
    if _is_blocked(state, standing, flap, now):
        return replace(state, since=None)
    return replace(state, since=now if state.since is None else state.since)


def seconds_left(state: FailBack, standing: Standing, now: float) -> float | None:
    """Return the seconds until a fail-back is tried; None while it is blocked."""
    if state.since is None:
        return None
    return max(0.0, state.since + _wait_seconds(state, standing, now) - now)


def record_try(state: FailBack, standing: Standing, now: float) -> FailBack:
    """Record a try, so that the next one waits longer whether this one succeeds or not."""
    return replace(state, since=None, tries=(*_recent_tries(state, standing, now), now))


def describe_cause(standing: Standing) -> str:
    """Return the cause for the failover history."""
    lower = _lower_active(standing)
    than = "" if lower is None else f", {lower.namenode} {lower.priority}"
    rank = standing.rank
    return (
        f"fail-back: {standing.namenode} has priority {rank.priority}{than}, and was fit for "
        f"{rank.failback_after_seconds:g} s"
    )


def _is_blocked(state: FailBack, standing: Standing, flap: FlapSettings, now: float) -> bool:
    notices, rank = standing.notices, standing.rank
    if rank.failback_after_seconds <= 0 or notices is None:
        return True
    if notices.pause is not None or notices.drain is not None or notices.namesake:
        return True
    if standing.hand_overs > 0 or rank.nofailover or standing.unready_in_a_row >= UNREADY_REPORTS:
        return True
    moves = sum(one > now - flap.window_seconds for one in state.moves)
    if 0 < flap.failovers <= moves:
        return True
    return _lower_active(standing) is None or _better_standby(standing)


def _lower_active(standing: Standing) -> Member | None:
    """Return the active if it is healthy, of lower priority, and its controller is not Hadoop's."""
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
    """Return whether a better standby exists, which fails back itself: both would take turns."""
    best = successor(standing)
    own = (-standing.rank.priority, standing.namenode)
    return best is not None and (-best.priority, best.namenode) < own


def _wait_seconds(state: FailBack, standing: Standing, now: float) -> float:
    doublings = min(len(_recent_tries(state, standing, now)), MOST_DOUBLINGS)
    return float(standing.rank.failback_after_seconds * 2**doublings)


def _recent_tries(state: FailBack, standing: Standing, now: float) -> tuple[float, ...]:
    since = now - FORGOTTEN_AFTER * standing.rank.failback_after_seconds
    return tuple(one for one in state.tries if one > since)
