"""Which connections there are, and which one gives way when there are too many.

The last seats are for connections that have not said yet what they are for, and for the protocols
of failover and of administrators.  Where a newcomer finds no seat, the longest idle connection of
the origin and the user with the most gives way: first of those that have said nothing, then of
clients, last of those that are proven to be more.  The same within the share of one user and of one
address.  See docs/reference/rpc.md#limits.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final, Protocol, assert_never

from ha.daemon.door.origin import Origin, Share, origin_of
from ha.daemon.door.places import Crowd, Places, Seat, Standing
from ha.rpc.limits import RpcLimits
from ha.rpc.metrics import CONNECTIONS, HANGUPS, LIMITS_MET
from ha.security.caller import Caller, Role

_MERE_CLIENT: Final = frozenset({Role.CLIENT})


class TabledConnection(Protocol):
    """A connection, as far as its seat depends on it."""

    def __hash__(self) -> int: ...

    @property
    def host(self) -> str:
        """The peer's address."""

    @property
    def caller(self) -> Caller | None:
        """The caller, as far as the kernel or a certificate has shown it."""

    @property
    def user(self) -> str:
        """The user that it names; empty before it has."""

    @property
    def protocol(self) -> str:
        """What it says it is for; empty before it has."""

    @property
    def idle(self) -> bool:
        """Nothing is owed to the peer.  A half frame is no work."""

    @property
    def born_at(self) -> float:
        """When it was accepted."""

    @property
    def heard_at(self) -> float:
        """When the peer said something last, or was answered."""

    def give_way(self) -> None:
        """Close now; it leaves its seat before this returns."""


class ConnectionTable:
    """The connections of one server."""

    def __init__(self, limits: RpcLimits, privileged: Collection[str]) -> None:
        self._places: Places[TabledConnection] = Places(
            lambda one: one.heard_at if one.idle else None
        )
        self._mute: set[TabledConnection] = set()
        """Those of whom nothing was known at the last sweep."""
        self._limits = limits
        self._privileged = frozenset(privileged)
        self._all = Crowd("max_connections", "", limits.max_connections)

    @property
    def taken(self) -> set[TabledConnection]:
        return set(self._places)

    def is_privileged(self, connection: TabledConnection) -> bool:
        """Return whether a seat is kept for it: not for a caller known to be a mere HDFS client."""
        caller = connection.caller
        mere_client = caller is not None and caller.proven and caller.roles <= _MERE_CLIENT
        return connection.protocol in self._privileged and not mere_client

    def admit(self, newcomer: TabledConnection) -> bool:
        """Return whether an accepted connection may stay until it names its protocol."""
        origin = origin_of(newcomer.host, newcomer.caller)
        # Any may give way to it: it may be for failover.
        seat = Seat(Standing.UNPROVEN, origin.name, (self._all,), before=Standing.KEPT)
        return self._take(newcomer, seat)

    def greeted(self, connection: TabledConnection) -> bool:
        """Decide whether a connection may stay that has said what it is for."""
        origin, user = origin_of(connection.host, connection.caller), connection.user
        if self.is_privileged(connection):
            caller = connection.caller
            standing = Standing.KEPT if caller is not None and caller.proven else Standing.PROVEN
            return self._take(connection, Seat(standing, origin.name, (self._all,), user))
        limits = self._limits
        crowds = (
            *self._of_origin(origin),
            Crowd("of_user", f"user {user}", limits.max_of_user),
            Crowd("kept_connections", "", limits.max_connections - limits.kept_connections),
            self._all,
        )
        return self._take(connection, Seat(Standing.PROVEN, origin.name, crowds, user))

    def close_unidentified(self) -> None:
        """Hang up on unknown callers beyond their share, if unknown now and one sweep ago.

        The longest there go first: a peer that has come to call says so at once.  After a
        standstill of our own, what they have said may not have been read when the first sweep
        comes; before the second one it has.
        """
        unknown = {one for one in self._places if _unknown(one)}
        mute = sorted(unknown & self._mute, key=lambda one: one.born_at)
        self._mute = unknown
        counts = Counter(origin_of(one.host, one.caller) for one in mute)
        left = []
        for one in mute:
            origin = origin_of(one.host, one.caller)
            if counts[origin] > self._limits.max_unproven_of_address:
                counts[origin] -= 1
                _hang_up(one, "unproven_of_address")
            else:
                left.append(one)
        excess = len(left) - self._limits.max_unproven
        for one in left[: max(0, excess)]:
            _hang_up(one, "unproven")

    def leave(self, connection: TabledConnection) -> None:
        """Free the seat of a closed connection."""
        if connection in self._places:
            self._places.leave(connection)
            CONNECTIONS.dec()

    def _of_origin(self, origin: Origin) -> tuple[Crowd, ...]:
        match origin.share:
            case Share.OF_ADDRESS:
                return (Crowd("of_address", origin.name, self._limits.max_of_address),)
            case Share.OF_USER:
                return (Crowd("of_user", origin.name, self._limits.max_of_user),)
            case Share.UNLIMITED:
                return ()
        assert_never(origin.share)

    def _take(self, connection: TabledConnection, seat: Seat) -> bool:
        before = len(self._places)
        verdict = self._places.take(connection, seat)
        CONNECTIONS.inc(len(self._places) - before)
        for other, limit in verdict.gives_way:
            LIMITS_MET.labels(limit).inc()
            HANGUPS.labels("gave_way").inc()
            other.give_way()
        if verdict.refused:
            LIMITS_MET.labels(verdict.refused).inc()
            HANGUPS.labels(verdict.refused).inc()
        return not verdict.refused


def _unknown(connection: TabledConnection) -> bool:
    """Return whether nothing is known of the caller."""
    caller = connection.caller
    return not connection.user and (caller is None or not caller.proven)


def _hang_up(connection: TabledConnection, limit: str) -> None:
    LIMITS_MET.labels(limit).inc()
    HANGUPS.labels(limit).inc()
    connection.give_way()
