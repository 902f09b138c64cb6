"""Compares the ACLs of a nameservice's znodes with the configured one, and explains each risk.

Pure.  See docs/zookeeper.md#access-rights.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from ha.elector.zookeeper.credentials import CREATOR_ALL, AclEntry, shown_identity
from ha.elector.zookeeper.rights import ZnodeAcl, beyond, identities, open_rights_text, shown_acl
from ha.record import dataclass

_WRITE: Final = 2
_UNSEEN: Final = "made under another identity, which does not let us see its ACL"
_OF_EACH_PROCESS: Final = ("x509", "sasl")
"""Schemes in which each host may have an identity of its own."""


class Fault(StrEnum):
    """How a znode's ACL differs from the configured one; the worst is first."""

    OPEN = "open"
    UNSEEN = "unseen"
    NOT_OURS = "not ours"
    OTHERS = "others"
    OTHERWISE = "otherwise"


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A znode with another ACL than the configured one, and a text for operators about the risk."""

    path: str
    fault: Fault
    text: str


def review(
    acls: Iterable[ZnodeAcl], configured: Sequence[AclEntry], ours: frozenset[AclEntry] | None
) -> tuple[Doubtful, ...]:
    """Return the znodes with another ACL than the configured one.

    ``ours`` is the configured ACL as ZooKeeper stores it for this session, see ``rights.beyond``.
    """
    if ours is None and not _for_creator(configured):
        ours = frozenset(configured)
    found = (_judge(one, configured, ours) for one in acls)
    return tuple(one for one in found if one is not None)


def _judge(
    one: ZnodeAcl, configured: Sequence[AclEntry], ours: frozenset[AclEntry] | None
) -> Doubtful | None:
    if one.acl is None:
        return Doubtful(one.path, Fault.UNSEEN, _UNSEEN)
    if one.acl == ours:
        return None
    if harm := open_rights_text(one.acl):
        return Doubtful(one.path, Fault.OPEN, f"anybody could {harm}")
    if ours is not None and _writers(ours) and not _writers(ours) & _writers(one.acl):
        return Doubtful(one.path, Fault.NOT_OURS, f"we may not write it: {shown_acl(one.acl)}")
    if text := doubt_of(one, configured, ours):
        return Doubtful(one.path, Fault.OTHERS, text)
    if ours is None:
        return None
    return Doubtful(one.path, Fault.OTHERWISE, f"its ACL is {shown_acl(one.acl)}")


def doubt_of(
    one: ZnodeAcl, configured: Sequence[AclEntry], ours: frozenset[AclEntry] | None
) -> str:
    """Return why a client outside the configured ACL could write a znode; empty if none could.

    An ACL that grants less than the configured one, even to this process, is no reason.
    """
    if one.acl is None:
        return _UNSEEN
    if harm := open_rights_text(one.acl):
        return f"anybody could {harm}"
    more = beyond(one.acl, configured, ours)
    return f"beyond the configured ACL it is open to {shown_acl(more)}" if more else ""


def takeover_obstacle(
    acls: Iterable[ZnodeAcl],
    configured: Sequence[AclEntry],
    ours: frozenset[AclEntry] | None,
    members: str,
) -> str:
    """Return why ZKFCs with other identities could not take over; empty if nothing shows that.

    ``members`` is the path below which each ZKFC creates a znode of its own.
    """
    if ours is None or not _for_creator(configured):
        return ""
    own = {who for who in identities(ours) if who[0] not in ("world", "ip")}
    others: dict[str, str] = {}
    for one in acls:
        if not one.path.startswith(f"{members}/"):
            continue
        name = one.path.rpartition("/")[2]
        if one.acl is None:
            others[name] = "an identity that does not let us see its znode"
        elif not own & set(identities(one.acl)):
            others[name] = shown_acl(one.acl)
    if others:
        told = "; ".join(f"that of {name} as {who}" for name, who in sorted(others.items()))
        return (
            f"the ZKFCs cannot share the breadcrumb: by the creator's ACL (auth::) what we make is "
            f"{shown_acl(ours)} alone, and other ZKFCs are known otherwise: {told}. "
            f"The first failover would fail. {_remedy(own)}"
        )
    if any(scheme in _OF_EACH_PROCESS for scheme, _ in own):
        return (
            f"by the creator's ACL (auth::) our znodes are for {shown_acl(ours)} alone: a ZKFC "
            f"that ZooKeeper knows under another identity could not write the breadcrumb, and its "
            f"takeover would fail. Where each host has an identity of its own: {_remedy(own)}"
        )
    return ""


def _for_creator(configured: Iterable[AclEntry]) -> bool:
    return any(one.scheme == CREATOR_ALL.scheme for one in configured)


def _remedy(own: set[tuple[str, str]]) -> str:
    ours = ",".join(
        f"{scheme}:{shown_identity(scheme, identity)}:rwcda" for scheme, identity in sorted(own)
    )
    return (
        f"Name all of them in ha.zookeeper.acl, on every host alike: {ours},... and then run "
        f"nnha zkfc --format-zk --keep"
    )


def _writers(acl: Iterable[AclEntry]) -> set[tuple[str, str]]:
    return {(one.scheme, one.identity) for one in acl if one.permissions & _WRITE}
