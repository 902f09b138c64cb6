"""Parses a known-hosts file as OpenSSH does, and checks a host's key against it.

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
"""The suffix of the kind of a key with a certificate."""


class Marker(StrEnum):
    """The marker of a line."""

    NONE = ""
    AUTHORITY = "@cert-authority"
    """The key signs certificates of these hosts."""
    REVOKED = "@revoked"
    """The key must never be accepted for these hosts."""


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One line: its hosts and its key."""

    number: int
    marker: Marker
    hosts: str
    kind: str
    blob: bytes


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The parsed lines, and why each other line was skipped."""

    keys: tuple[KnownKey, ...] = ()
    skipped: tuple[str, ...] = ()

    def of(self, host: str, port: int, *markers: Marker) -> tuple[KnownKey, ...]:
        """Return the keys of a host: those with its port, then those of its bare name."""
        keys = [one for one in self.keys if one.marker in markers]
        names = dict.fromkeys([host_name(host, port), host])
        found = [one for name in names for one in keys if _matches(one.hosts, name)]
        return tuple(dict.fromkeys(found))

    def kinds(self, host: str, port: int) -> tuple[str, ...]:
        """Return the kinds of key that we can check, to request one of them from the host."""
        signed = [CERTIFICATE for _ in self.of(host, port, Marker.AUTHORITY)]
        plain = [one.kind for one in self.of(host, port, Marker.NONE)]
        return tuple(dict.fromkeys([*signed, *plain]))


class Trust(StrEnum):
    """The trust in a key that the file does not forbid."""

    KNOWN = "known"
    SIGNED = "signed"
    """An authority of the file signed it; the certificate's validity is not checked."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Refused:
    """The key must not be accepted for this reason."""

    why: str


def read_known_hosts(text: str) -> KnownHosts:
    """Parse each line; skip and report lines that cannot be parsed."""
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
    """Return the host in the form of the file."""
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"


def judge(
    known: KnownHosts, host: str, port: int, shown: bytes, authority: bytes | None
) -> Trust | Refused:
    """Return the trust in a host's key; ``authority`` is the key that signed it, if any."""
    for one in known.of(host, port, Marker.REVOKED):
        if one.blob in (shown, authority):
            return Refused(f"line {one.number} revokes it")
    if any(one.blob == authority for one in known.of(host, port, Marker.AUTHORITY)):
        return Trust.SIGNED
    keys = known.of(host, port, Marker.NONE)
    if any(one.blob == shown for one in keys):
        return Trust.KNOWN
    # A key of the bare name may belong to another sshd, at another port.
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
    if not _is_key_of_kind(kind, blob):
        return f"is no host key: what it has is no {kind} key, or not all of one"
    return KnownKey(number, marker, hosts, kind, blob)


def _is_key_of_kind(kind: str, blob: bytes) -> bool:
    """Return whether these bytes are complete strings of SSH, of which the first is the kind."""
    parts, rest = list[bytes](), blob
    while (size := int.from_bytes(rest[:4])) <= len(rest) - 4:
        parts.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    return not rest and len(parts) > 1 and parts[0] == kind.encode()


def _matches(hosts: str, name: str) -> bool:
    """Return whether a line is for a host: a hashed name or patterns; ``!`` excludes hosts."""
    name = name.lower()
    if hosts.startswith("|"):
        return _is_hash_of(hosts, name)
    fitting = [
        one for one in hosts.lower().split(",") if _matches_pattern(one.removeprefix("!"), name)
    ]
    return bool(fitting) and not any(one.startswith("!") for one in fitting)


def _matches_pattern(pattern: str, name: str) -> bool:
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
