"""Why a controller could not fail over right now: what /health and the operator's tools show."""

from ha.elector.model import Link
from ha.elector.state import ElectorState
from ha.health.core import Health, HealthState
from ha.zkfc.core import Candidacy


def trouble_of(
    health: HealthState, elector: ElectorState, candidacy: Candidacy, absence: str
) -> str | None:
    """The first reason found, or None; ``absence`` tells of a ZooKeeper that is away."""
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
