"""Whether a caller may take an action: a pure function of the mode, the caller and the table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ha.conf.keys.security import Mode
from ha.record import record
from ha.security.caller import Caller, Role
from ha.security.rights import RIGHTS, Open, Right


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for a whole daemon: the mode, and the user that the daemon runs as."""

    mode: Mode
    own_uid: int
    rights: Mapping[str, Mapping[str, Right]] = field(default_factory=lambda: RIGHTS)


@record
class Action:
    """What is asked for: a method of a protocol, or a request for a page."""

    face: str
    name: str


@record
class Allowed:
    """The caller may do that.  ``unproven``: by the mode alone, as nothing proves who calls."""

    audited: bool = False
    unproven: bool = False


@record
class Denied:
    """The caller may not do that.  ``unproven``: a proof is what it lacks."""

    reason: str
    unproven: bool = False


_NO_RIGHTS: Final[Mapping[str, Right]] = {}


def decide(policy: Policy, caller: Caller, action: Action) -> Allowed | Denied:
    """Whether ``caller`` may do that; whatever the table does not name is denied to everybody."""
    right = policy.rights.get(action.face, _NO_RIGHTS).get(action.name)
    if policy.mode is Mode.INSECURE:
        return Allowed(audited=right is not None and right.audited)
    if right is None:
        return Denied(
            f"{action.face} {action.name} stands in no row of the table of rights, so nobody may "
            "ask for it. That is an error in nnha: please report it"
        )
    if right.open is Open.TO_ALL or (right.open is Open.ON_THIS_MACHINE and caller.proven):
        return Allowed(right.audited)
    if not right.roles.isdisjoint(caller.roles):
        return Allowed(right.audited)
    if _let_in(policy, caller):
        return Allowed(right.audited, unproven=True)
    needed = f"{action.name} is for {_listed(right.roles)}"
    if not caller.proven:
        return Denied(f"{needed}; {_unproven(caller)}", unproven=True)
    return Denied(
        f"{needed}; the caller is {caller}, whose role is {_listed(caller.roles)}. {_how(policy)}"
    )


def claim(
    policy: Policy, caller: Caller, user: str, real_user: str | None, uid_of_user: int | None
) -> Caller | Denied:
    """The caller under the name that it gives itself, or why it may not have that name.

    ``uid_of_user`` is the user's on this machine, None if there is no such user or it is not known.
    """
    if policy.mode is Mode.INSECURE or caller.trusted:
        return caller.named(user)
    if not caller.proven:
        if _let_in(policy, caller):
            return caller.named(user)
        return Denied(_unproven(caller), unproven=True)
    other = next((one for one in (user, real_user) if one not in (None, caller.name)), None)
    if other is None:
        return caller
    whose = f"is uid {uid_of_user}" if uid_of_user is not None else f"is not {caller.name}"
    return Denied(
        f"user {other} {whose}; the caller is uid {caller.uid}. Call under your own name, "
        f"{caller.name} (unset HADOOP_USER_NAME). {_how(policy)}"
    )


def _let_in(policy: Policy, caller: Caller) -> bool:
    """Whether a caller needs no proof; who could have one and hides it does."""
    return policy.mode is Mode.PERMISSIVE and not caller.proven and not caller.provable


def _unproven(caller: Caller) -> str:
    return (
        f"nothing proves who calls from {caller.address}. Call from this machine over loopback, "
        "and keep the connection open until the answer comes; docs/security.md has the modes that "
        "let others in"
    )


def _how(policy: Policy) -> str:
    own = "" if policy.own_uid == 0 else f" and uid {policy.own_uid}, whose daemon this is,"
    return f"On this machine root{own} may do it"


def _listed(roles: frozenset[Role]) -> str:
    return ", ".join(role for role in Role if role in roles) or "none"
