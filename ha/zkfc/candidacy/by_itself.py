"""Why our NameNode may not take the lock of another by itself, which is not free; pure.

A free lock is anybody's who stands in the election.  To remove one needs more: nothing of ours may
be unclear, and repeated failovers, which keep a slow active for a while, keep its lock, too.
"""

from ha.health.core import Health
from ha.service.model import ServiceState
from ha.zkfc.candidacy.flapping import too_many
from ha.zkfc.candidacy.state import Candidacy, StandingBy


def why_not(candidacy: Candidacy, now: float) -> str:
    """Return the reason in words; empty where it may."""
    standing = candidacy.standing
    if not isinstance(candidacy.place, StandingBy) or candidacy.in_transition:
        return candidacy.out_because or "our NameNode does not stand by in the election"
    if candidacy.health is not Health.HEALTHY or candidacy.reported is not ServiceState.STANDBY:
        return "our NameNode is not a healthy standby"
    if not standing.ready:
        return f"our NameNode is not ready to become active: {standing.not_ready_reason}"
    if standing.notices is None or standing.notices.pause or standing.notices.drain:
        return "a pause or a drain holds, or is not known"
    if standing.asked > 0:
        return "a hand-over to us is under way"
    if too_many(candidacy.flapping, now):
        return "the active has changed too often of late"
    return ""
