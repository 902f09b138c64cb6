"""Compares ACLs, and describes the rights that they grant.

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
"""Schemes whose identities ZooKeeper does not authenticate."""
_HARM: Final = (
    (2, "write it"),
    (4, "create znodes in it"),
    (8, "delete what is in it"),
    (16, "give it another ACL"),
)


@dataclass(frozen=True, slots=True)
class ZnodeAcl:
    """A znode's path and its ACL; None if this session has no right to read it."""

    path: str
    acl: frozenset[AclEntry] | None


def beyond(
    found: Iterable[AclEntry], configured: Iterable[AclEntry], ours: frozenset[AclEntry] | None
) -> frozenset[AclEntry]:
    """Return the rights, other than to read, that ``found`` grants and the configured ACL does not.

    ``ours`` is the ACL of a znode that this session has just created: ZooKeeper replaces the
    creator's entry (``auth::``) by the identities that the session has authenticated.  If they are
    not known (None), the rights of any authenticated identity are not returned.
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
    """Describe the rights, other than to read, that the ACL grants to all; empty if none."""
    bits = 0
    for one in acl:
        if (one.scheme, one.identity) == _ANYBODY:
            bits |= one.permissions
    if bits & ALL_PERMISSIONS & ~READ == ALL_PERMISSIONS & ~READ:
        return "do everything with it"
    return ", ".join(words for bit, words in _HARM if bits & bit)


def shown_acl(acl: Iterable[AclEntry]) -> str:
    """Return the sorted entries in the form of ha.zookeeper.acl."""
    return ", ".join(sorted(map(format_entry, acl)))


def identities(acl: Iterable[AclEntry]) -> tuple[tuple[str, str], ...]:
    """Return the identities of an ACL as (scheme, id), sorted and without duplicates."""
    return tuple(sorted({(one.scheme, one.identity) for one in acl}))
