"""What ACLs let whom do with a znode.

See docs/reference/election.md#acls-and-credentials.

Pure.
"""

from collections.abc import Iterable
from typing import Final

from ha.elector.zookeeper.credentials import (
    ALL_PERMISSIONS,
    CREATOR_ALL,
    READ,
    AclEntry,
    format_entry,
)
from ha.record import dataclass

_ANYBODY: Final = ("world", "anyone")
_UNPROVEN_SCHEMES: Final = ("world", "ip")
"""Of these ZooKeeper asks no proof."""
_HARM: Final = (
    (2, "write it"),
    (4, "create znodes in it"),
    (8, "delete what is in it"),
    (16, "give it another ACL"),
)


@dataclass(frozen=True, slots=True)
class ZnodeAcl:
    """A znode's path and its ACL; None where ZooKeeper does not let us see it."""

    path: str
    acl: frozenset[AclEntry] | None


def beyond(
    found: Iterable[AclEntry], configured: Iterable[AclEntry], ours: frozenset[AclEntry] | None
) -> frozenset[AclEntry]:
    """Return what a znode's ACL lets others change beyond what the configured one does.

    ``ours`` is the ACL of a znode that we have just made ourselves: ZooKeeper reports the creator's
    entry (``auth::``) as the identities that this session has proven.  Where it is not known, such
    identities cannot be distinguished from others, and are not held against a znode.
    """
    granted = frozenset(configured) if ours is None else ours
    anyone_proven = ours is None and any(one.scheme == CREATOR_ALL.scheme for one in granted)
    allowed: dict[tuple[str, str], int] = {}
    for one in granted:
        who = (one.scheme, one.identity)
        allowed[who] = allowed.get(who, 0) | one.permissions
    more = allowed.get(_ANYBODY, 0) | READ
    return frozenset(
        AclEntry(one.scheme, one.identity, extra)
        for one in found
        if (extra := one.permissions & ~allowed.get((one.scheme, one.identity), 0) & ~more)
        and not (anyone_proven and one.scheme not in _UNPROVEN_SCHEMES)
    )


def open_rights_text(acl: Iterable[AclEntry]) -> str:
    """Return what this ACL lets any client do apart from reading, in words; empty: nothing."""
    bits = 0
    for one in acl:
        if (one.scheme, one.identity) == _ANYBODY:
            bits |= one.permissions
    if bits & ALL_PERMISSIONS & ~READ == ALL_PERMISSIONS & ~READ:
        return "do everything with it"
    return ", ".join(words for bit, words in _HARM if bits & bit)


def shown_acl(acl: Iterable[AclEntry]) -> str:
    """Return the entries as ha.zookeeper.acl has them, in one order."""
    return ", ".join(sorted(map(format_entry, acl)))


def identities(acl: Iterable[AclEntry]) -> tuple[tuple[str, str], ...]:
    """Return the identities named in it, scheme and id, in one order."""
    return tuple(sorted({(one.scheme, one.identity) for one in acl}))
