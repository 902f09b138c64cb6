"""What keeps a healthy NameNode out of the election: pause, drain, rank; and who may succeed it.

A pause and a drain are an operator's word.  The rank is readiness first (Hadoop makes a NameNode in
safe mode active), then the configured priority.  A lower rank waits only for a better one that
could take the lock now, and never longer than a limit: it is known before the lock is free, so that
equal ranks wait for nothing.
"""

from ha.health.core import Health
from ha.notices.model import Drain, Member, Pause, time_text
from ha.notices.seen import FREE, Notices
from ha.record import dataclass, field, replace
from ha.service.model import ServiceState

UNREADY_REPORTS = 2
"""A candidate that says once that it is not ready may be between two edits; twice, it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """The rank of this NameNode (nnha.candidate.*)."""

    nofailover: bool = False
    priority: int = 100
    priority_delay_seconds: float = 2.0
    unready_delay_seconds: float = 5.0
    failback_after_seconds: float = 0.0
    """See ``failback``; 0: never."""

    def __post_init__(self) -> None:
        delays = self.priority_delay_seconds, self.unready_delay_seconds
        if min(*delays, self.failback_after_seconds) < 0:
            raise ValueError("a candidate's delays must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the bars depend on.  Times are the caller's monotonic clock's."""

    namenode: str = ""
    rank: Rank = field(default_factory=Rank)
    notices: Notices | None = field(default_factory=Notices)
    """None: not read yet."""
    ready: bool = True
    not_ready_reason: str = ""
    unready_in_a_row: int = 0
    asked: int = 0
    """Operators' hand-overs to us that are under way, or wait for the one before them."""
    may_return: bool = False
    """We gave the lock away, and it is not known that anybody has become active in our place."""
    own_lock: int = 0
    """No lock up to this ZooKeeper transaction is newer than the newest that was ours."""
    free_since: float | None = None
    """Since when the lock is known to be free."""
    no_ready_peer_since: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """Why we do not stand, and after how many seconds to look again (None: an event will come)."""

    because: str
    again_after_seconds: float | None = None
    waits: bool = False
    """Only for somebody better, who is there: nothing is wrong."""


def take_notices(standing: Standing, notices: Notices, now: float) -> Standing:
    """Take in the notices, which were read anew."""
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
        may_return=standing.may_return and not active_elsewhere(standing, notices),
        no_ready_peer_since=_without_ready_peer(standing, notices, now),
    )


def take_report(standing: Standing, *, ready: bool, reason: str) -> Standing:
    """Take in the NameNode's report whether it is ready to become active."""
    count = 0 if ready else standing.unready_in_a_row + 1
    return replace(standing, ready=ready, not_ready_reason=reason, unready_in_a_row=count)


def bar(standing: Standing, *, now: float, joined: bool, is_active: bool) -> Bar | None:
    """Return what keeps a healthy NameNode that does not hold the lock out of the election.

    ``is_active``: it says that it is active, so its taking a free lock changes no role.
    """
    notices = standing.notices
    if notices is None:
        return Bar("the notices in ZooKeeper were not read yet")
    if notices.namesake:
        return Bar(notices.namesake)
    # In a pause, an operator may have made ours active while another has the lock: leave it so.
    elsewhere = notices.lock_holder not in (None, FREE, standing.namenode)
    if (is_active and not elsewhere) or standing.may_return:
        return None
    if notices.drain is not None:
        return Bar(describe_drain(notices.drain))
    if standing.asked > 0:
        return None
    if notices.pause is not None:
        return Bar(describe_pause(notices.pause))
    if standing.rank.nofailover:
        return Bar("nnha.candidate.nofailover is set: only an operator makes it active")
    unready = standing.unready_in_a_row >= (UNREADY_REPORTS if joined else 1)
    by_rank = _rank_bar(standing, notices, now, ready=not unready)
    return (_unready(standing, now) if unready else None) or by_rank


def successor(standing: Standing) -> Member | None:
    """Return the peer that could take over from us now: the best by rank, then by name."""
    notices = standing.notices
    fit = [] if notices is None else [one for one in notices.members if _fit(one) and one.ready]
    in_it = [one for one in fit if one.in_election]
    return min(in_it, key=lambda one: (-one.priority, one.namenode), default=None)


def describe_pause(pause: Pause) -> str:
    """Return the pause in words."""
    return f"paused by {pause.owner}{_until(pause)}: {pause.reason}"


def describe_drain(drain: Drain) -> str:
    """Return the drain in words."""
    return f"drained by {drain.owner}{_until(drain)}: {drain.reason}"


def _until(notice: Pause) -> str:
    return "" if notice.until is None else f" until {time_text(notice.until)}"


def with_lock(standing: Standing) -> Standing:
    """Make ours the holder of the lock, whichever NameNode the notices name."""
    notices = standing.notices
    if notices is None:
        return standing
    ours = replace(notices, lock_holder=standing.namenode)
    return replace(note_own_lock(standing, notices.lock_made), notices=ours)


def note_own_lock(standing: Standing, made: int) -> Standing:
    """Remember that no lock up to this transaction is newer than our newest."""
    known = replace(standing, own_lock=max(standing.own_lock, made))
    if known.notices is None:
        return known
    return replace(known, notices=_without_older_lock(known, known.notices))


def _without_older_lock(standing: Standing, notices: Notices) -> Notices:
    """Return the notices without the holder of a lock that was made before our newest.

    Notices are read in another session than the election's, and from a server that may lag.  The
    bad schedule: our NameNode has become active, old notices call the former active active, and we
    are asked to cede.  We would count as replaced, and stay out for as long as a pause lasts.
    """
    if 0 < notices.lock_made <= standing.own_lock and notices.lock_holder != standing.namenode:
        return replace(notices, lock_holder=None)
    return notices


def replaced(standing: Standing) -> bool:
    """Return whether another has become active under a lock that is known to be newer than ours."""
    notices = standing.notices
    newer = notices is not None and notices.lock_made > standing.own_lock
    return newer and active_elsewhere(standing, notices)


def active_elsewhere(standing: Standing, notices: Notices | None) -> bool:
    """Return whether another has become active; one that only has the lock may still fail to.

    The lock of a controller that shows no member (Hadoop's) counts as proof.
    """
    if notices is None or notices.lock_holder in (None, FREE, standing.namenode):
        return False
    holder = [one for one in notices.members if one.namenode == notices.lock_holder]
    return not holder or holder[0].state == ServiceState.ACTIVE


def _unready(standing: Standing, now: float) -> Bar | None:
    wait = standing.rank.unready_delay_seconds
    because = f"our NameNode is not ready to become active: {standing.not_ready_reason}"
    # A ready peer that leaves the lock alone for this time will not take it: better an unready
    # active than none.
    starts = [one for one in (standing.no_ready_peer_since, standing.free_since) if one is not None]
    if not starts:
        return Bar(because)
    left = min(starts) + wait - now
    return Bar(because, left) if left > 0 else None


def _rank_bar(standing: Standing, notices: Notices, now: float, *, ready: bool) -> Bar | None:
    because = _better(standing, notices, ready=ready)
    if because is None:
        return None
    if standing.free_since is None:
        return Bar(because, waits=True)
    left = standing.free_since + standing.rank.priority_delay_seconds - now
    return Bar(because, left, waits=True) if left > 0 else None


def _better(standing: Standing, notices: Notices, *, ready: bool) -> str | None:
    """Return in words which NameNode should have the lock before us."""
    for one in notices.members:
        if _is_active_without_lock(one):
            return f"{one.namenode} is active; its controller was killed and takes its lock again"
    own = (ready, standing.rank.priority)
    better = [one for one in notices.members if _fit(one) and (one.ready, one.priority) > own]
    if not better:
        return None
    best = min(better, key=lambda one: (not one.ready, -one.priority, one.namenode))
    return f"{best.namenode} has the higher rank: priority {best.priority}" + (
        "" if best.ready == ready else ", and it is ready"
    )


def _is_active_without_lock(member: Member) -> bool:
    """Return whether it is active, and its controller was started again and waits for its own lock.

    The bad schedule: its controller is killed and started again, and when the earlier session ends,
    a standby takes the free lock first and demotes a healthy active.
    """
    return (
        member.lock_of_earlier_process
        and member.health == Health.HEALTHY
        and member.state == ServiceState.ACTIVE
    )


def _fit(member: Member) -> bool:
    """Return whether it could take the lock now; an active that has just died says active still."""
    return (
        member.health == Health.HEALTHY
        and member.state == ServiceState.STANDBY
        and not member.nofailover
        and (member.in_election or not member.out_because)
    )


def _without_ready_peer(standing: Standing, notices: Notices, now: float) -> float | None:
    for member in notices.members:
        active = member.health == Health.HEALTHY and member.state == ServiceState.ACTIVE
        if member.ready and (active or _fit(member)):
            return None
    return now if standing.no_ready_peer_since is None else standing.no_ready_peer_since
