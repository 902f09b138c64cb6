"""Whether a caller may take an action: a pure function of the mode, the caller and the table.

Pure.
"""

from collections.abc import Mapping
from typing import Final

from ha.conf.keys.security import Mode
from ha.record import dataclass, field, record
from ha.security.caller import Caller, Method, Role
from ha.security.rights import CLIENT_FACES, RIGHTS, Open, Right


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for a whole daemon: the mode, and the user that the daemon runs as.

    ``certificates``: it has some.  ``simple_clients``: callers of ClientProtocol need no proof.
    ``namenodes``: those that are configured, None if they are not.  ``own_name``: that in the
    daemon's certificate.
    """

    mode: Mode
    own_uid: int
    rights: Mapping[str, Mapping[str, Right]] = field(default_factory=lambda: RIGHTS)
    certificates: bool = False
    simple_clients: bool = False
    namenodes: frozenset[str] | None = None
    own_name: str | None = None

    @property
    def demands_certificates(self) -> bool:
        """Whether the kernel's word for a local user makes a client of it and nothing more."""
        return self.mode is Mode.STRICT and self.certificates


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
    """The caller may not do that.  ``unproven``: a proof is what it lacks.

    ``by_list``: an operator's list leaves it out (Hadoop's AuthorizationException).
    """

    reason: str
    unproven: bool = False
    by_list: bool = False


_NO_RIGHTS: Final[Mapping[str, Right]] = {}


def decide(policy: Policy, caller: Caller, action: Action) -> Allowed | Denied:
    """Decide whether ``caller`` may do that; what the table does not name is denied to all."""
    right = policy.rights.get(action.face, _NO_RIGHTS).get(action.name)
    barred = action.face in caller.barred
    if policy.mode is Mode.INSECURE and not barred:
        return Allowed(audited=right is not None and right.audited)
    if right is None:
        return Denied(
            f"{action.face} {action.name} stands in no row of the table of rights, so nobody may "
            "ask for it. That is an error in nnha: please report it"
        )
    if right.open is Open.TO_ALL or (
        right.open is Open.ON_THIS_MACHINE and caller.method is Method.PEER_UID
    ):
        return Allowed(right.audited)
    if caller.refused or barred:
        by_list = f"{caller.in_full} is not authorized for protocol {action.face}"
        return Denied(caller.refused or by_list, by_list=barred)
    if not right.roles.isdisjoint(caller.roles):
        stranger = _foreign_namenode_reason(policy, caller) or _foreign_zkfc_reason(
            policy, caller, action
        )
        return Denied(f"{action.name}{stranger}") if stranger else Allowed(right.audited)
    as_client = policy.mode is Mode.PERMISSIVE or Role.CLIENT in right.roles
    if as_client and _let_in(policy, caller, action.face):
        return Allowed(right.audited, unproven=True)
    needed = f"{action.name} is for {_join_roles(right.roles)}"
    if not caller.proven:
        return Denied(f"{needed}; {_unproven(policy, caller)}", unproven=True)
    if caller.method is Method.TLS:
        return Denied(f"{needed}; the caller is {caller}")
    why = f"{needed}; the caller is {caller}, whose role is {_join_roles(caller.roles)}"
    return Denied(why if caller.principal else f"{why}. {_how(policy)}")


def claim(
    policy: Policy,
    caller: Caller,
    user: str,
    real_user: str | None,
    uid_of_user: int | None,
    face: str = "",
) -> Caller | Denied:
    """Return the caller under the name that it gives itself, or why it may not have that name.

    ``uid_of_user`` is the user's on this machine, None if there is no such user or it is not known.
    ``face``: what it is here for.
    """
    if caller.refused:
        return Denied(caller.refused)
    if caller.method is Method.TLS:
        return _claim_by_certificate(caller, user, real_user)
    if policy.mode is Mode.INSECURE or caller.trusted:
        return caller.named(user)
    if not caller.proven:
        if _let_in(policy, caller, face):
            return caller.named(user)
        return Denied(_unproven(policy, caller), unproven=True)
    other = next((one for one in (user, real_user) if one not in (None, caller.name)), None)
    if other is None:
        return caller
    if caller.principal:
        return Denied(
            f"user {other} is not {caller.name}, whose ticket of {caller.principal} this is"
        )
    whose = f"is uid {uid_of_user}" if uid_of_user is not None else f"is not {caller.name}"
    return Denied(
        f"user {other} {whose}; the caller is uid {caller.uid}. Call under your own name, "
        f"{caller.name} (unset HADOOP_USER_NAME). {_how(policy)}"
    )


def _claim_by_certificate(caller: Caller, user: str, real_user: str | None) -> Caller | Denied:
    """Let a daemon name the user that it runs as: only its role gives it rights.

    A caller whose role is to be a client has the rights of its name, and so no name but that.
    """
    if caller.roles != {Role.CLIENT}:
        return caller.named(user)
    other = next((one for one in (user, real_user) if one not in (None, caller.name)), None)
    if other is None:
        return caller
    return Denied(f"user {other} is not {caller.name}, for whom the caller's certificate is")


def _foreign_namenode_reason(policy: Policy, caller: Caller) -> str:
    """Return why a NameNode's certificate does not count; empty: it does, or it is none."""
    if caller.method is not Method.TLS or caller.roles != {Role.NAMENODE}:
        return ""
    if policy.namenodes is None or caller.certified in policy.namenodes:
        return ""
    known = ", ".join(sorted(policy.namenodes))
    return f": {caller.certified} is no NameNode that dfs.ha.namenodes names ({known})"


def _foreign_zkfc_reason(policy: Policy, caller: Caller, action: Action) -> str:
    """Return why a controller may not promote this NameNode; empty: it may, or it is none.

    It holds the lock for its own NameNode, so it has no reason to promote another one.  To demote
    one is every controller's right, before it promotes its own.
    """
    if action.name != "transitionToActive" or caller.roles != {Role.ZKFC}:
        return ""
    if policy.own_name in (None, caller.certified):
        return ""
    return f" is for the zkfc of {policy.own_name}; the caller is {caller}"


def _let_in(policy: Policy, caller: Caller, face: str) -> bool:
    """Return whether a caller needs no proof; one that could have a proof and hides it does."""
    if caller.proven or caller.provable:
        return False
    if policy.mode is Mode.PERMISSIVE:
        return True
    return policy.certificates and policy.simple_clients and face in CLIENT_FACES


def _unproven(policy: Policy, caller: Caller) -> str:
    if policy.certificates:
        return (
            f"nothing proves who calls from {caller.address}. Call over TLS with a certificate of "
            "this cluster (nnha.security.tls.dir)"
        )
    return (
        f"nothing proves who calls from {caller.address}. Call from this machine over loopback, "
        "and keep the connection open until the answer comes; docs/security.md has the modes that "
        "let others in"
    )


def _how(policy: Policy) -> str:
    if policy.demands_certificates:
        return "In strict mode it needs a certificate (nnha.security.tls.dir)"
    own = "" if policy.own_uid == 0 else f" and uid {policy.own_uid}, whose daemon this is,"
    return f"On this machine root{own} may do it"


def _join_roles(roles: frozenset[Role]) -> str:
    return ", ".join(role for role in Role if role in roles) or "none"
