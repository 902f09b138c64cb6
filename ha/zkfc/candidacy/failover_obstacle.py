"""Describes to operators what keeps a controller from failing over or accepting a hand-over."""

from ha.elector.model import Link
from ha.elector.state import ElectorState
from ha.health.core import Health, HealthState
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import describe_drain
from ha.zkfc.candidacy.flapping import is_flapping
from ha.zkfc.candidacy.state import Candidacy, StandingBy


def failover_obstacle(
    health: HealthState, elector: ElectorState, candidacy: Candidacy, absence: str
) -> str | None:
    """Return why we could not fail over now, or None; ``absence`` describes ZooKeeper's absence."""
    if health.health is not Health.HEALTHY:
        return f"the NameNode is {health.health}: {health.reason}"
    if candidacy.not_demoted:
        return candidacy.not_demoted
    if candidacy.waits:
        return None
    if not elector.wanted:
        return f"not in the election: {candidacy.out_because or 'not joined yet'}"
    if elector.link is not Link.CONNECTED:
        return absence or f"ZooKeeper: {elector.link.value}"
    return None


def hand_over_obstacle(health: HealthState, candidacy: Candidacy) -> str | None:
    """Return why our NameNode cannot be the target of a hand-over; None if it can."""
    if health.health is not Health.HEALTHY:
        return health.reason or health.health.value
    if candidacy.reported is ServiceState.OBSERVER:
        return "it is an observer"
    notices = candidacy.standing.notices
    if notices is not None and notices.namesake:
        return notices.namesake
    if notices is not None and notices.drain is not None:
        return f"it is {describe_drain(notices.drain)}"
    return None


def lock_removal_obstacle(candidacy: Candidacy, now: float) -> str:
    """Return why our witness may not remove another's lock; empty if it may."""
    standing = candidacy.standing
    if not isinstance(candidacy.place, StandingBy) or candidacy.in_transition:
        return candidacy.out_because or "our NameNode does not stand by in the election"
    if candidacy.health is not Health.HEALTHY or candidacy.reported is not ServiceState.STANDBY:
        return "our NameNode is not a healthy standby"
    if not standing.ready:
        return f"our NameNode is not ready to become active: {standing.not_ready_reason}"
    if standing.notices is None or standing.notices.pause or standing.notices.drain:
        return "a pause or a drain holds, or is not known"
    if standing.hand_overs > 0:
        return "a hand-over to us is under way"
    if is_flapping(candidacy.flapping, now):
        return "the active has changed too often of late"
    return ""
