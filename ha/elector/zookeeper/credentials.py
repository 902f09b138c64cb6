"""The texts of ha.zookeeper.acl and ha.zookeeper.auth as values.

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
    """Which identity may do what with a znode; permissions are ZooKeeper's bits."""

    scheme: str
    identity: str
    permissions: int


@dataclass(frozen=True, slots=True)
class AuthEntry:
    """One credential shown to ZooKeeper on every connection."""

    scheme: str
    secret: str

    def __repr__(self) -> str:
        """Name the scheme only: representations end up in logs."""
        return f"AuthEntry(scheme={self.scheme!r})"


DIGEST: Final = "digest"
CREATOR_ALL = AclEntry("auth", "", ALL_PERMISSIONS)


def open_to_all(acl: tuple[AclEntry, ...]) -> bool:
    """Return whether every client may change or delete a znode with this ACL."""
    return any(
        (one.scheme, one.identity) == ("world", "anyone") and one.permissions & ~READ for one in acl
    )


def format_entry(entry: AclEntry) -> str:
    """Return the entry as ha.zookeeper.acl has it, but for a digest's hash."""
    letters = "".join(name for name, bit in _PERMISSIONS.items() if entry.permissions & bit)
    return f"{entry.scheme}:{shown_identity(entry.scheme, entry.identity)}:{letters}"


def shown_identity(scheme: str, identity: str) -> str:
    """Return an id without a password's hash: that is one SHA-1, so short ones can be guessed."""
    if scheme != DIGEST:
        return identity
    return f"{identity.partition(':')[0]}:(hash)"


def parse_acl(text: str) -> tuple[AclEntry, ...]:
    """Read ``scheme:id:perms`` items; the id may contain colons.  An empty text has no items.

    Raises BadCredentialSetting with the item at fault.
    """
    return tuple(_acl_entry(item) for item in _items(text))


def parse_auth(text: str) -> tuple[AuthEntry, ...]:
    """Read ``scheme:secret`` items; the secret may hold colons.

    Raises BadCredentialSetting with the item's scheme at fault, never with a secret.
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
