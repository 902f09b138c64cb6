"""Parsers from a configured text to a typed value: numbers, durations, sizes, lists, addresses."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

from ha.conf.errors import BadValue
from ha.record import dataclass

T = TypeVar("T")

_DURATION = re.compile(r"([+-]?\d+)\s*(ns|us|ms|s|m|h|d)?", re.ASCII | re.IGNORECASE)
_SIZE = re.compile(r"([+-]?\d+)\s*([kmgtpe]?)b?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?(?:0x[0-9a-f]+|\d+)", re.ASCII | re.IGNORECASE)

INT: Final = 2**31 - 1
"""Java's largest int; in milliseconds, the longest session that ZooKeeper's protocol knows."""
LONG: Final = 2**63 - 1
LONGEST_SECONDS: Final = 100 * 365 * 86400.0
"""A century: what a timer takes for ever.  The system's own refuse more than some centuries."""
_LONGEST_NUMBER = 40
"""No number of ours needs more characters; longer ones are refused before they are parsed."""

_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_HIGHEST_PORT = 65535
_LONGEST_LABEL = 63
_NAMEABLE = re.compile(rf"[^.]{{1,{_LONGEST_LABEL}}}(\.[^.]{{1,{_LONGEST_LABEL}}})*\.?")
"""What DNS can hold.  For anything else Python's resolver raises what no caller expects."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """One address as an operator writes it: ``host:port``, IPv6 hosts in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the form in which it is configured, logged and shown."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Ensemble:
    """ZooKeeper's servers, and the znode below which all of ours are."""

    servers: tuple[HostPort, ...] = ()
    chroot: str = ""
    """Empty, or a path such as ``/hadoop``."""

    def __str__(self) -> str:
        """Return the form in which it is configured, logged and shown."""
        return ",".join(map(str, self.servers)) + self.chroot

    def __iter__(self) -> Iterator[HostPort]:
        """Iterate over the servers."""
        return iter(self.servers)

    def __len__(self) -> int:
        """Return how many servers there are."""
        return len(self.servers)


class Unset(Enum):
    """What an address may be instead of one."""

    CHOSEN = ""
    """The program chooses."""
    OFF = "off"


def text(value: str) -> str:
    """Return the value as it stands, without the blanks around it."""
    return value.strip()


def regular_expression(value: str) -> str:
    try:
        re.compile(value.strip())
    except re.error as error:
        raise BadValue(f"must be a regular expression: {error}") from error
    return value.strip()


def optional_text(value: str) -> str | None:
    """Return the trimmed value, or None when nothing is configured (empty counts as nothing)."""
    return value.strip() or None


def optional(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    """Return a parser that returns None when nothing is configured."""

    def parse_or_none(value: str) -> T | None:
        return parse(value) if value.strip() else None

    return parse_or_none


def flag(value: str) -> bool:
    """Parse ``true`` or ``false``.  Hadoop takes its default for any other word; we refuse it."""
    match value.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise BadValue("must be true or false")


def whole(*, at_least: int | None = None, at_most: int = LONG) -> Callable[[str], int]:
    """Return a parser of whole numbers, decimal or 0x hexadecimal as Hadoop's getInt reads them."""

    def parse(value: str) -> int:
        found = value.strip()
        if len(found) > _LONGEST_NUMBER or not _WHOLE.fullmatch(found):
            raise BadValue("must be a whole number, for instance 3")
        number = int(found, 16) if "x" in found.lower() else int(found)
        if at_least is not None and number < at_least:
            raise BadValue(f"must be a whole number of at least {at_least}")
        if number > at_most:
            raise BadValue(f"must be a whole number of at most {at_most}")
        return number

    return parse


def fraction(value: str) -> float:
    """Parse as ``java_float``, but refuse negative and infinite numbers."""
    found = java_float(value)
    if not 0 <= found < math.inf:
        raise BadValue("must be a decimal number that is not negative, for instance 0.5")
    return found


def java_float(value: str) -> float:
    """Parse a decimal number as Java's Float does, for instance 0.999f; also a negative one."""
    found = value.strip()
    shape = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?[fFdD]?"
    if len(found) > _LONGEST_NUMBER or not re.fullmatch(shape, found, re.ASCII):
        raise BadValue("must be a decimal number, for instance 0.999")
    return float(found.rstrip("fFdD"))


def duration(
    unit: str, *, negative: bool = False, zero: bool = True, at_most: float = LONGEST_SECONDS
) -> Callable[[str], float]:
    """Return a parser of durations to **seconds**; ``unit`` is meant when the value has none.

    The suffixes are those of Hadoop's ``getTimeDuration``: ns, us, ms, s, m, h, d.  A number must
    fit into Java's long; what is longer than a century counts as one.
    """
    example = f"for instance 10s, 1m, or a bare number of {unit}"

    def parse(value: str) -> float:
        found = value.strip()
        match = _DURATION.fullmatch(found) if len(found) <= _LONGEST_NUMBER else None
        if match is None:
            raise BadValue(f"must be a duration, {example}")
        number = int(match[1])
        if number < 0 and not negative:
            raise BadValue(f"must be a duration that is not negative, {example}")
        if number == 0 and not zero:
            raise BadValue(f"must be a duration longer than zero, {example}")
        seconds = number * _SECONDS[(match[2] or unit).lower()]
        if abs(number) > LONG or at_most < min(seconds, LONGEST_SECONDS):
            most = LONG if at_most >= LONGEST_SECONDS else round(at_most / _SECONDS[unit])
            raise BadValue(f"must be a duration of at most {most} {unit}")
        return min(max(seconds, -LONGEST_SECONDS), LONGEST_SECONDS)

    return parse


def size(value: str) -> int:
    """Parse a number of bytes; k, m, g, t, p, e (with or without b) stand for powers of 1024."""
    found = value.strip()
    match = _SIZE.fullmatch(found) if len(found) <= _LONGEST_NUMBER else None
    if match is None or int(match[1]) < 0:
        raise BadValue("must be a size in bytes, for instance 1048576, 64k or 1m")
    number = int(match[1]) << (10 * _POWER[match[2].lower()])
    if number > LONG:
        raise BadValue("must be a size of at most 8e")
    return number


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser of one of these words."""

    def parse(value: str) -> str:
        found = value.strip()
        if found not in allowed:
            raise BadValue(f"must be {' or '.join(allowed)}")
        return found

    return parse


def words(value: str) -> tuple[str, ...]:
    """Split a comma separated list; drop blanks around items and empty items."""
    return tuple(item for item in (part.strip() for part in value.split(",")) if item)


def group_overrides(value: str) -> Mapping[str, frozenset[str]]:
    """Parse users with their groups, ``user=group,group;user=;...`` (Groups.parseStaticMapping)."""
    found: dict[str, frozenset[str]] = {}
    for entry in filter(None, (part.strip() for part in value.split(";"))):
        user, _, groups = entry.partition("=")
        if not user.strip() or "=" in groups:
            raise BadValue("must be a list of users with their groups, as in user1=group1,group2")
        found[user.strip()] = frozenset(words(groups))
    return MappingProxyType(found)


def host_port(*, default_port: int | None = None) -> Callable[[str], HostPort]:
    """Return a parser of one ``host:port``; ``default_port`` is for a host without a port."""
    shape = "must be host:port" if default_port is None else f"must be host or host:{default_port}"

    def parse(value: str) -> HostPort:
        found = value.strip()
        if found.startswith("["):
            host, closed, rest = found[1:].partition("]")
            if not closed or (rest and not rest.startswith(":")):
                raise BadValue(f"{shape}, an IPv6 host as [::1]:8020")
            port_text = rest[1:] if rest else None
        else:
            host, colon, after = found.partition(":")
            port_text = after if colon else None
        if re.search(r"[\s/,;@\0]", host):
            raise BadValue(shape)
        if not _NAMEABLE.fullmatch(host):
            raise BadValue(
                f"{shape}; in the host, 1 to {_LONGEST_LABEL} characters stand between two dots"
            )
        if port_text is None:
            if default_port is None:
                raise BadValue(shape)
            return HostPort(host, default_port)
        return HostPort(host, _port(port_text, shape))

    return parse


def optional_host_port(*, default_port: int | None = None) -> Callable[[str], HostPort | None]:
    """Return a parser as ``host_port``, which returns None when nothing is configured."""
    parse = host_port(default_port=default_port)
    return lambda value: parse(value) if value.strip() else None


def host_port_or_off(value: str) -> HostPort | Unset:
    """Parse an address that may be left to the program, or be ``off``."""
    if value.strip() in {"", "off"}:
        return Unset(value.strip())
    return host_port()(value)


def ensemble(value: str) -> Ensemble:
    """Parse as ZooKeeper's client does: ``host:port,host:port``, at the end perhaps a chroot."""
    parse = host_port(default_port=2181)
    servers, slash, path = value.strip().partition("/")
    if "," in path:
        raise BadValue("must be host:2181,host:2181/chroot: the chroot stands once, at the end")
    names = path.split("/") if path else []
    if any(name in ("", ".", "..") or not name.isprintable() for name in names):
        raise BadValue(f"must be host:2181,host:2181/chroot, and {slash + path!r} is no znode")
    found = tuple(parse(item) for item in words(servers))
    if slash and not found:
        raise BadValue("must be host:2181,host:2181/chroot; it names no host")
    return Ensemble(found, slash + path if path else "")


def _port(found: str, shape: str) -> int:
    if not re.fullmatch(r"\d{1,5}", found, re.ASCII) or int(found) > _HIGHEST_PORT:
        raise BadValue(f"{shape}, the port a number from 0 to {_HIGHEST_PORT}")
    return int(found)
