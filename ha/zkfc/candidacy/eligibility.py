"""What bars a healthy NameNode from the election (pause, drain, rank), and which peer succeeds it.

Operators set pauses and drains.  The rank compares readiness first (Hadoop makes a NameNode in safe
mode active), then the configured priority.  A NameNode of lower rank waits for a better one that
could take the lock now, and no longer than a limit.  Members publish their ranks before the lock is
free, so that NameNodes of equal rank do not wait.
"""

from ha.health.core import Health
from ha.notices.model import Drain, Member, Pause, time_text
from ha.notices.seen import FREE, Notices
from ha.record import dataclass, field, replace
from ha.service.model import ServiceState

UNREADY_REPORTS = 2
"""A candidate leaves after two such reports; at one it may just be behind by an edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """The rank of our NameNode, from the keys ``nnha.candidate.*``."""

    nofailover: bool = False
    priority: int = 100
    priority_delay_seconds: float = 2.0
    unready_delay_seconds: float = 5.0
    failback_after_seconds: float = 0.0
    """See ``failback``; 0 turns it off."""

    def __post_init__(self) -> None:
        delays = self.priority_delay_seconds, self.unready_delay_seconds
        if min(*delays, self.failback_after_seconds) < 0:
            raise ValueError("a candidate's delays must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The facts that decide about bars.  Times are of the caller's monotonic clock."""

    namenode: str = ""
    rank: Rank = field(default_factory=Rank)
    notices: Notices | None = field(default_factory=Notices)
    """None: not read yet."""
    ready: bool = True
    not_ready_reason: str = ""
    unready_in_a_row: int = 0
    hand_overs: int = 0
    """The number of requested hand-overs to us that run or wait for their turn."""
    may_return: bool = False
    """We ceded the lock, and no other NameNode is known to have become active since."""
    own_lock: int = 0
    """Locks created up to this ZooKeeper transaction are not newer than our own newest one."""
    free_since: float | None = None
    """When the lock was first seen to be free; None while it is held or unknown."""
    no_ready_peer_since: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """A reason to stay out, and when to decide again, in seconds (None: at the next event)."""

    because: str
    again_after_seconds: float | None = None
    waits: bool = False
    """The only reason is a candidate of higher rank, so operators need not act."""


def apply_notices(standing: Standing, notices: Notices, now: float) -> Standing:
    """Return the standing after these newly read notices."""
    notices = _without_older_lock(standing, notices)
    since = standing.free_since
    if notices.lock_holder != FREE:
        since = None
    elif since is None:
        since = now
    return replace(
        standing,
        notices=notices,
        free_since=since,
        may_return=standing.may_return and not is_active_elsewhere(standing, notices),
        no_ready_peer_since=_find_no_ready_peer_since(standing, notices, now),
    )


def apply_report(standing: Standing, *, ready: bool, reason: str) -> Standing:
    """Return the standing after our NameNode reported whether it is ready to become active."""
    count = 0 if ready else standing.unready_in_a_row + 1
    return replace(standing, ready=ready, not_ready_reason=reason, unready_in_a_row=count)


def find_bar(standing: Standing, *, now: float, joined: bool, is_active: bool) -> Bar | None:
    """Return what bars our healthy NameNode, which does not hold the lock; None: nothing.

    ``is_active``: our NameNode reports that it is active, so that no role changes if it takes a
    free lock.
    """
    notices = standing.notices
    if notices is None:
        return Bar("the notices in ZooKeeper were not read yet")
    if notices.namesake:
        return Bar(notices.namesake)
    # In a pause an operator may have made ours active while a peer holds the lock: stay out then.
    elsewhere = notices.lock_holder not in (None, FREE, standing.namenode)
    if (is_active and not elsewhere) or standing.may_return:
        return None
    if notices.drain is not None:
        return Bar(describe_drain(notices.drain))
    if standing.hand_overs > 0:
        return None
    if notices.pause is not None:
        return Bar(describe_pause(notices.pause))
    if standing.rank.nofailover:
        return Bar("nnha.candidate.nofailover is set: only an operator makes it active")
    unready = standing.unready_in_a_row >= (UNREADY_REPORTS if joined else 1)
    by_rank = _rank_bar(standing, notices, now, ready=not unready)
    return (_unready_bar(standing, now) if unready else None) or by_rank


def successor(standing: Standing) -> Member | None:
    """Return the ready peer in the election of the highest priority, then by name; None: none."""
    notices = standing.notices
    fit = [] if notices is None else [one for one in notices.members if _is_fit(one) and one.ready]
    in_it = [one for one in fit if one.in_election]
    return min(in_it, key=lambda one: (-one.priority, one.namenode), default=None)


def describe_pause(pause: Pause) -> str:
    return f"paused by {pause.owner}{_until(pause)}: {pause.reason}"


def describe_drain(drain: Drain) -> str:
    return f"drained by {drain.owner}{_until(drain)}: {drain.reason}"


def _until(notice: Pause) -> str:
    return "" if notice.until is None else f" until {time_text(notice.until)}"


def take_lock(standing: Standing) -> Standing:
    """Return the standing after our elector won the lock, whatever the older notices say."""
    notices = standing.notices
    if notices is None:
        return standing
    ours = replace(notices, lock_holder=standing.namenode)
    return replace(apply_own_lock(standing, notices.lock_made), notices=ours)


def apply_own_lock(standing: Standing, made: int) -> Standing:
    """Return the standing after ZooKeeper showed our own lock, created in transaction ``made``."""
    known = replace(standing, own_lock=max(standing.own_lock, made))
    if known.notices is None:
        return known
    return replace(known, notices=_without_older_lock(known, known.notices))


def _without_older_lock(standing: Standing, notices: Notices) -> Notices:
    """Return the notices with the lock's holder unknown, if that lock is older than our own.

    The notices are read in their own session, from a server that may lag.  The bad schedule: our
    NameNode has become active, lagging notices still name the former active, and we are asked to
    cede.  We would conclude that we are superseded, and stay out until the pause ends.
    """
    if 0 < notices.lock_made <= standing.own_lock and notices.lock_holder != standing.namenode:
        return replace(notices, lock_holder=None)
    return notices


def is_superseded(standing: Standing) -> bool:
    """Return whether another NameNode became active under a lock that is newer than ours."""
    notices = standing.notices
    newer = notices is not None and notices.lock_made > standing.own_lock
    return newer and is_active_elsewhere(standing, notices)


def is_active_elsewhere(standing: Standing, notices: Notices | None) -> bool:
    """Return whether the holder of the lock is another NameNode and reports that it is active.

    A controller of Hadoop publishes no member; then its lock alone is the proof.
    """
    if notices is None or notices.lock_holder in (None, FREE, standing.namenode):
        return False
    holder = [one for one in notices.members if one.namenode == notices.lock_holder]
    return not holder or holder[0].state == ServiceState.ACTIVE


def _unready_bar(standing: Standing, now: float) -> Bar | None:
    wait = standing.rank.unready_delay_seconds
    because = f"our NameNode is not ready to become active: {standing.not_ready_reason}"
    # A ready peer that has not taken the free lock within this time will not take it.  Then an
    # unready active is better than none.
    starts = [one for one in (standing.no_ready_peer_since, standing.free_since) if one is not None]
    if not starts:
        return Bar(because)
    left = min(starts) + wait - now
    return Bar(because, left) if left > 0 else None


def _rank_bar(standing: Standing, notices: Notices, now: float, *, ready: bool) -> Bar | None:
    because = _describe_better(standing, notices, ready=ready)
    if because is None:
        return None
    if standing.free_since is None:
        return Bar(because, waits=True)
    left = standing.free_since + standing.rank.priority_delay_seconds - now
    return Bar(because, left, waits=True) if left > 0 else None


def _describe_better(standing: Standing, notices: Notices, *, ready: bool) -> str | None:
    """Describe the peer that should take the lock before us; None: there is none."""
    for one in notices.members:
        if _is_active_without_lock(one):
            return f"{one.namenode} is active; its controller was killed and takes its lock again"
    own = (ready, standing.rank.priority)
    better = [one for one in notices.members if _is_fit(one) and (one.ready, one.priority) > own]
    if not better:
        return None
    best = min(better, key=lambda one: (not one.ready, -one.priority, one.namenode))
    return f"{best.namenode} has the higher rank: priority {best.priority}" + (
        "" if best.ready == ready else ", and it is ready"
    )


def _is_active_without_lock(member: Member) -> bool:
    """Return whether it is active while the lock of its killed controller's session still stands.

    The bad schedule: a controller is killed and started again.  When its old session ends, a
    standby takes the free lock first, and demotes the healthy active.
    """
    return (
        member.lock_of_earlier_process
        and member.health == Health.HEALTHY
        and member.state == ServiceState.ACTIVE
    )


def _is_fit(member: Member) -> bool:
    """Return whether it could take the lock now.  A dead active's member still says active."""
    return (
        member.health == Health.HEALTHY
        and member.state == ServiceState.STANDBY
        and not member.nofailover
        and (member.in_election or not member.out_because)
    )


def _find_no_ready_peer_since(standing: Standing, notices: Notices, now: float) -> float | None:
    for member in notices.members:
        active = member.health == Health.HEALTHY and member.state == ServiceState.ACTIVE
        if member.ready and (active or _is_fit(member)):
            return None
    return now if standing.no_ready_peer_since is None else standing.no_ready_peer_since
