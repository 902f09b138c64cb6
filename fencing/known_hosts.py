"""A file of known hosts, read line by line as OpenSSH reads it, and what it says of a key.

See docs/reference/fencing.md#known-hosts.

Pure.
"""

import base64
import binascii
import hashlib
import hmac
import re
from enum import StrEnum
from typing import Final

from ha.record import dataclass

DEFAULT_PORT: Final = 22
CERTIFICATE: Final = "-cert-v01@openssh.com"
"""How the kind of a key ends that comes with a certificate."""


class Marker(StrEnum):
    """What a line says of its key."""

    NONE = ""
    AUTHORITY = "@cert-authority"
    """It signs the keys of these hosts."""
    REVOKED = "@revoked"
    """It must never be accepted for these hosts."""


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One line: for which hosts it is, and its key."""

    number: int
    marker: Marker
    hosts: str
    kind: str
    blob: bytes


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The lines that could be read, and why each other one was skipped."""

    keys: tuple[KnownKey, ...] = ()
    skipped: tuple[str, ...] = ()

    def of(self, host: str, port: int, *markers: Marker) -> tuple[KnownKey, ...]:
        """Return the keys of a host: those with its port, then those of its bare name."""
        keys = [one for one in self.keys if one.marker in markers]
        names = dict.fromkeys([host_name(host, port), host])
        found = [one for name in names for one in keys if _matches(one.hosts, name)]
        return tuple(dict.fromkeys(found))

    def kinds(self, host: str, port: int) -> tuple[str, ...]:
        """Return the kinds of key to ask a host for, so that it shows one that can be checked."""
        signed = [CERTIFICATE for _ in self.of(host, port, Marker.AUTHORITY)]
        plain = [one.kind for one in self.of(host, port, Marker.NONE)]
        return tuple(dict.fromkeys([*signed, *plain]))


class Trust(StrEnum):
    """What the file says of a key that it does not forbid."""

    KNOWN = "known"
    SIGNED = "signed"
    """By an authority of the file; whether the certificate is valid is not said."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Refused:
    """The key must not be accepted, and why."""

    why: str


def read_known_hosts(text: str) -> KnownHosts:
    """Read each line for itself: what cannot be understood is skipped, and named."""
    keys, skipped = list[KnownKey](), list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        read = _read(number, line.split())
        if isinstance(read, KnownKey):
            keys.append(read)
        else:
            skipped.append(f"line {number} {read}")
    return KnownHosts(tuple(keys), tuple(skipped))


def host_name(host: str, port: int) -> str:
    """Return a host as the file names it."""
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"


def judge(
    known: KnownHosts, host: str, port: int, shown: bytes, authority: bytes | None
) -> Trust | Refused:
    """Return what the file says of a host's key, which ``authority`` has signed if it is there."""
    for one in known.of(host, port, Marker.REVOKED):
        if one.blob in (shown, authority):
            return Refused(f"line {one.number} revokes it")
    if any(one.blob == authority for one in known.of(host, port, Marker.AUTHORITY)):
        return Trust.SIGNED
    keys = known.of(host, port, Marker.NONE)
    if any(one.blob == shown for one in keys):
        return Trust.KNOWN
    # A key of the bare name may be that of another sshd, at another port.
    own = [one for one in keys if _matches(one.hosts, host_name(host, port))]
    lines = ", ".join(f"line {one.number} ({one.kind})" for one in own)
    return Refused(f"the file has another: {lines}") if own else Trust.UNKNOWN


def _read(number: int, words: list[str]) -> KnownKey | str:
    marker = Marker.NONE
    if words[0].startswith("@"):
        if words[0] not in set(Marker):
            return f"has an unknown marker {words[0]}"
        marker, *words = Marker(words[0]), *words[1:]
    if len(words) >= 3 and all(word.isdecimal() for word in words[1:3]):
        return "is a key of SSH-1, which no server has any more"
    if len(words) < 3:
        return "is no host key: it has no host, kind and key"
    hosts, kind, encoded = words[:3]
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return "is no host key: its base64 is broken"
    if not _whole(kind, blob):
        return f"is no host key: what it has is no {kind} key, or not all of one"
    return KnownKey(number, marker, hosts, kind, blob)


def _whole(kind: str, blob: bytes) -> bool:
    """Return whether these bytes are strings of SSH, each whole, and the first is the kind."""
    parts, rest = list[bytes](), blob
    while (size := int.from_bytes(rest[:4])) <= len(rest) - 4:
        parts.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    return not rest and len(parts) > 1 and parts[0] == kind.encode()


def _matches(hosts: str, name: str) -> bool:
    """Return whether a line is for a host: a hashed name, or patterns, of which ``!`` forbids."""
    name = name.lower()
    if hosts.startswith("|"):
        return _is_hash_of(hosts, name)
    fitting = [one for one in hosts.lower().split(",") if _fits(one.removeprefix("!"), name)]
    return bool(fitting) and not any(one.startswith("!") for one in fitting)


def _fits(pattern: str, name: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    # Only * and ? have a meaning; brackets hold a host with a port.
    spelt = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(spelt, name) is not None


def _is_hash_of(hashed: str, name: str) -> bool:
    try:
        _, scheme, salt, digest = hashed.split("|")
        salted = hmac.new(base64.b64decode(salt), name.encode(), hashlib.sha1).digest()
        return scheme == "1" and hmac.compare_digest(salted, base64.b64decode(digest))
    except ValueError:
        return False
