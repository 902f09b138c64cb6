"""Parses ha.zookeeper.acl and ha.zookeeper.auth.

See docs/reference/election.md#acls-and-credentials.
"""

from typing import Final

from ha.elector.zookeeper.errors import BadCredentialSetting
from ha.record import dataclass

_PERMISSIONS = {"r": 1, "w": 2, "c": 4, "d": 8, "a": 16}
ALL_PERMISSIONS = 31
READ = 1


@dataclass(frozen=True, slots=True)
class AclEntry:
    """An identity and its permissions on a znode, as ZooKeeper's bits."""

    scheme: str
    identity: str
    permissions: int


@dataclass(frozen=True, slots=True)
class AuthEntry:
    """A credential that is sent to ZooKeeper on each connection."""

    scheme: str
    secret: str

    def __repr__(self) -> str:
        """Return a text with the scheme only, as representations are logged."""
        return f"AuthEntry(scheme={self.scheme!r})"


DIGEST: Final = "digest"
CREATOR_ALL = AclEntry("auth", "", ALL_PERMISSIONS)


def open_to_all(acl: tuple[AclEntry, ...]) -> bool:
    """Return whether every client may change or delete a znode with this ACL."""
    return any(
        (one.scheme, one.identity) == ("world", "anyone") and one.permissions & ~READ for one in acl
    )


def format_entry(entry: AclEntry) -> str:
    """Return the entry in the form of ha.zookeeper.acl, without a digest's hash."""
    letters = "".join(name for name, bit in _PERMISSIONS.items() if entry.permissions & bit)
    return f"{entry.scheme}:{shown_identity(entry.scheme, entry.identity)}:{letters}"


def shown_identity(scheme: str, identity: str) -> str:
    """Return an id without the password's hash: a single SHA-1, from which it can be guessed."""
    if scheme != DIGEST:
        return identity
    return f"{identity.partition(':')[0]}:(hash)"


def parse_acl(text: str) -> tuple[AclEntry, ...]:
    """Parse a list of ``scheme:id:perms``; the id may contain colons, the list may be empty.

    Raises BadCredentialSetting with the bad item.
    """
    return tuple(_acl_entry(item) for item in _items(text))


def parse_auth(text: str) -> tuple[AuthEntry, ...]:
    """Parse a list of ``scheme:secret``; the secret may contain colons.

    Raises BadCredentialSetting with the number of the bad item, never with a secret.
    """
    entries = []
    for number, item in enumerate(_items(text), start=1):
        scheme, colon, secret = item.partition(":")
        if not colon:
            raise BadCredentialSetting(
                f"ha.zookeeper.auth: item {number} has no colon; expected scheme:secret"
            )
        entries.append(AuthEntry(scheme, secret))
    return tuple(entries)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _acl_entry(item: str) -> AclEntry:
    scheme, first, rest = item.partition(":")
    identity, last, letters = rest.rpartition(":")
    if not first or not last:
        raise BadCredentialSetting(f"ha.zookeeper.acl: {item!r} is not of the shape scheme:id:perm")
    bits = 0
    for letter in letters:
        if letter not in _PERMISSIONS:
            raise BadCredentialSetting(
                f"ha.zookeeper.acl: invalid permission {letter!r} in {item!r}; use letters of rwcda"
            )
        bits |= _PERMISSIONS[letter]
    return AclEntry(scheme, identity, bits)
