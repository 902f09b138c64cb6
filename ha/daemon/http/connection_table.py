"""Which HTTP connections there are, and which give way when there are too many.

A probe must be answered while somebody keeps hundreds of half requests open, from its own address
as well: a supervisor would kill a daemon that is well.  A newcomer therefore always finds a seat
as long as one is taken by somebody who has not asked yet.
"""

from collections import Counter
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final, Protocol, TypeVar

import structlog

from ha.daemon.http.stalled_readers import HANGUPS

log = structlog.get_logger()

MAX_CONNECTIONS: Final = 256
"""More would leave no descriptors, and a daemon could not reach its peers either."""
MAX_HANDED_ON: Final = 192
"""Of those, for requests that aiohttp serves, and that may take long: images and segments."""
SHARE_OF_ADDRESS: Final = 32
"""Connections of one address that have not asked yet; and as many that aiohttp serves.  Loopback
has no such share, as any user of this machine may call from it: the address with the most gives way
where all are taken.
"""
TOLD_EVERY_SECONDS: Final = 10.0


class Asking(Protocol):
    """A connection of which the request is not whole yet, or the answer not gone."""

    @property
    def host(self) -> str:
        """The peer's address."""

    def abort(self) -> None:
        """Close it, whatever was said."""


class HandedOn(Protocol):
    """A connection that aiohttp has; a transport of asyncio."""

    def is_closing(self) -> bool: ...

    def abort(self) -> None: ...


T = TypeVar("T")


class HttpConnectionTable:
    """The connections of one endpoint, the oldest first."""

    def __init__(self, most: int = MAX_CONNECTIONS, most_handed_on: int = MAX_HANDED_ON) -> None:
        if not 0 < most_handed_on < most:
            raise ValueError("some seats must be left for those that are not handed on")
        self._most = most
        self._most_handed_on = most_handed_on
        self._asking: dict[Asking, str] = {}
        self._handed_on: dict[HandedOn, str] = {}
        self._told_until = 0.0

    @property
    def asking(self) -> tuple[Asking, ...]:
        """Those that were not handed on."""
        return tuple(self._asking)

    def admit(self, newcomer: Asking, now: float) -> bool:
        """Admit one more, for which the oldest that has not asked yet may give way; else False."""
        self._forget_closed()
        if len(self._asking) + len(self._handed_on) >= self._most:
            oldest = _of_the_largest(self._asking)
            if oldest is None:
                self._tell(now, "handed on")
                return False
            self._tell(now, "half requests")
            HANGUPS.labels("gave_way").inc()
            del self._asking[oldest]
            oldest.abort()
        elif self._has_its_share(self._asking, newcomer.host):
            # The oldest: half requests may be kept open for long, and a probe asks at once.
            HANGUPS.labels("of_address").inc()
            oldest = next(one for one, host in self._asking.items() if host == newcomer.host)
            del self._asking[oldest]
            oldest.abort()
        self._asking[newcomer] = newcomer.host
        return True

    def leave(self, connection: Asking) -> None:
        """Forget a connection that is closed or handed on."""
        self._asking.pop(connection, None)

    def hand_on(self, connection: Asking, transport: HandedOn, now: float) -> bool:
        """Let aiohttp have a connection; False where too many are with it already."""
        self.leave(connection)
        self._forget_closed()
        if self._has_its_share(self._handed_on, connection.host):
            HANGUPS.labels("of_address").inc()
            self._tell(now, "one address")
            return False
        if len(self._handed_on) >= self._most_handed_on:
            counts = Counter(self._handed_on.values())
            oldest = _of_the_largest(self._handed_on)
            if oldest is None or counts[self._handed_on[oldest]] <= SHARE_OF_ADDRESS:
                self._tell(now, "handed on")
                return False
            HANGUPS.labels("gave_way").inc()
            del self._handed_on[oldest]
            oldest.abort()
        self._handed_on[transport] = connection.host
        return True

    def _has_its_share(self, seats: Mapping[T, str], host: str) -> bool:
        if len(seats) < SHARE_OF_ADDRESS or _is_loopback(host):
            return False
        return sum(one == host for one in seats.values()) >= SHARE_OF_ADDRESS

    def _forget_closed(self) -> None:
        if len(self._asking) + len(self._handed_on) >= min(self._most_handed_on, SHARE_OF_ADDRESS):
            for one in [one for one in self._handed_on if one.is_closing()]:
                del self._handed_on[one]

    def _tell(self, now: float, what: str) -> None:
        if now >= self._told_until:
            self._told_until = now + TOLD_EVERY_SECONDS
            log.warning("http.full", connections=self._most, taken_by=what)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _of_the_largest(hosts: Mapping[T, str]) -> T | None:
    """Return the oldest connection of the address that has the most."""
    if not hosts:
        return None
    counts = Counter(hosts.values())
    largest = max(sorted(counts), key=lambda host: counts[host])
    return next(one for one, host in hosts.items() if host == largest)
