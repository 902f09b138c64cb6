"""Why a controller could not fail over, or accept a hand-over, in words for operators."""

from ha.elector.model import Link
from ha.elector.state import ElectorState
from ha.health.core import Health, HealthState
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import drained
from ha.zkfc.candidacy.state import Candidacy


def trouble_of(
    health: HealthState, elector: ElectorState, candidacy: Candidacy, absence: str
) -> str | None:
    """Return the first reason found, or None; ``absence`` describes a ZooKeeper that is away."""
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


def unfit_of(health: HealthState, candidacy: Candidacy) -> str | None:
    """Return why our NameNode cannot be the target of a hand-over; None when it can."""
    if health.health is not Health.HEALTHY:
        return health.reason or health.health.value
    if candidacy.reported is ServiceState.OBSERVER:
        return "it is an observer"
    notices = candidacy.standing.notices
    if notices is not None and notices.namesake:
        return notices.namesake
    if notices is not None and notices.drain is not None:
        return f"it is {drained(notices.drain)}"
    return None
