"""Checks each step of the candidacy; a controller whose step fails the check must end."""

from ha.elector.model import Role
from ha.invariant import ensure
from ha.zkfc.candidacy.model import ElectionMoved, Event, HandOverTo, Join, Leave, TakeoverFailed
from ha.zkfc.candidacy.state import Active, Candidacy, Step, TakingOver


def check(before: Candidacy, event: Event, step: Step) -> Step:
    """Return the step itself; raise InvariantBroken if it is wrong."""
    after, decisions = step.state, step.decisions
    joins = sum(isinstance(one, Join) for one in decisions)
    leaves = [one.because for one in decisions if isinstance(one, Leave)]
    left = bool(leaves) or (before.joined and isinstance(event, TakeoverFailed))
    ensure(
        after.joined is (bool(joins) or (before.joined and not left)) and joins + len(leaves) <= 1,
        "in the election is who has joined it and not left it since",
    )
    ensure(
        all(because == after.out_because for because in leaves),
        "there is one reason to be out: that with which the election was left",
    )
    if isinstance(after.place, TakingOver) and not isinstance(before.place, TakingOver):
        _ensure_role(event, Role.TAKING_OVER, joined=before.joined)
    if isinstance(after.place, Active) and not isinstance(before.place, Active):
        _ensure_role(event, Role.ACTIVE, joined=before.joined)
    handed = any(isinstance(one, HandOverTo) for one in decisions)
    ensure(not handed or isinstance(after.place, Active), "only an active hands over")
    return step


def _ensure_role(event: Event, role: Role, *, joined: bool) -> None:
    ensure(joined, f"a NameNode that is {role.value} is in the election")
    ensure(
        isinstance(event, ElectionMoved) and event.after.role is role and event.after.holding,
        f"a NameNode that is {role.value} has the lock",
    )
