"""Which connections there are, and which one gives way when there are too many.

The last seats are for connections that have not said yet what they are for, and for the protocols
of failover and of administrators.  Where a newcomer finds no seat, the longest idle connection of
whoever has the most gives way: first of those that have said nothing, then of clients.  See
docs/reference/rpc.md#limits.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Protocol

from ha.rpc.limits import RpcLimits
from ha.rpc.metrics import CONNECTIONS, HANGUPS


class Seated(Protocol):
    """A connection, as far as its seat depends on it."""

    @property
    def host(self) -> str:
        """The peer's address."""

    @property
    def user(self) -> str:
        """Who it says it is; empty before it has."""

    @property
    def protocol(self) -> str:
        """What it says it is for; empty before it has."""

    @property
    def idle(self) -> bool:
        """Nothing is owed to the peer.  A half frame is no work."""

    @property
    def heard_at(self) -> float:
        """When the peer said something last, or was answered."""

    def give_way(self) -> None:
        """Close now; it leaves its seat before this returns."""


class Seats:
    """The connections of one server."""

    def __init__(self, limits: RpcLimits, privileged: Collection[str]) -> None:
        self.taken: set[Seated] = set()
        self._limits = limits
        self._privileged = frozenset(privileged)

    def is_privileged(self, connection: Seated) -> bool:
        """Whether a seat is kept for it."""
        return connection.protocol in self._privileged

    def admit(self, newcomer: Seated) -> bool:
        """A connection was accepted; whether it may stay until it says what it is for."""
        if len(self.taken) >= self._limits.max_connections and not self._make_room():
            HANGUPS.labels("max_connections").inc()
            return False
        self.taken.add(newcomer)
        CONNECTIONS.inc()
        return True

    def greeted(self, connection: Seated) -> bool:
        """Decide whether a connection may stay that has said what it is for."""
        if self.is_privileged(connection):
            return True
        clients = [one for one in self.taken if one.protocol and not self.is_privileged(one)]
        if len(clients) <= self._limits.max_connections - self._limits.kept_connections:
            return True
        clients.remove(connection)
        if _evict(clients):
            return True
        HANGUPS.labels("kept_connections").inc()
        return False

    def leave(self, connection: Seated) -> None:
        """The connection is gone."""
        if connection in self.taken:
            self.taken.remove(connection)
            CONNECTIONS.dec()

    def _make_room(self) -> bool:
        mute = [one for one in self.taken if not one.protocol]
        clients = [one for one in self.taken if one.protocol and not self.is_privileged(one)]
        kept = [one for one in self.taken if self.is_privileged(one)]
        if len(kept) > self._limits.kept_connections and _evict(kept):
            return True  # more than that many say what nobody can check
        return _evict(mute) or _evict(clients)


def _evict(candidates: Iterable[Seated]) -> bool:
    """Let the longest idle one go, of the address and then the user that has the most."""
    candidates = list(candidates)
    hosts = Counter(one.host for one in candidates)
    users = Counter((one.host, one.user) for one in candidates)
    idle = [one for one in candidates if one.idle]
    if not idle:
        return False
    chosen = min(idle, key=lambda one: (-hosts[one.host], -users[one.host, one.user], one.heard_at))
    HANGUPS.labels("gave_way").inc()
    chosen.give_way()
    return True
