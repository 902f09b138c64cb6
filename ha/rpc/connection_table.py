"""Which connections there are, and which one gives way when there are too many.

The last seats are for connections that have not said yet what they are for, and for the protocols
of failover and of administrators.  Where a newcomer finds no seat, the longest idle connection of
the user with the most gives way: first of those that have said nothing, then of clients.  The same
within the share of one user and of one address.  See docs/reference/rpc.md#limits.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from ipaddress import ip_address
from typing import Final, Protocol, TypeVar, assert_never

from ha.rpc.limits import RpcLimits
from ha.rpc.metrics import CONNECTIONS, HANGUPS, LIMITS_MET
from ha.security.caller import Caller, Role

T = TypeVar("T")
_MERE_CLIENT: Final = frozenset({Role.CLIENT})


class TabledConnection(Protocol):
    """A connection, as far as its seat depends on it."""

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


class Share(Enum):
    """How much those from one place may have together."""

    OF_ADDRESS = auto()
    OF_USER = auto()
    UNLIMITED = auto()
    """As much as there is: it may be anybody on this machine."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a connection comes from, for the share that it has with others from there.

    On this machine the address does not distinguish callers: where the kernel was asked, the uid
    does.
    """

    name: str
    share: Share


def place_of(host: str, caller: Caller | None) -> Place:
    """Return the place of a connection from this address."""
    if caller is not None and caller.uid is not None:
        return Place(f"uid {caller.uid}", Share.OF_USER)
    try:
        loopback = ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        loopback = False  # no address of a network
    return Place(host, Share.UNLIMITED if loopback else Share.OF_ADDRESS)


class ConnectionTable:
    """The connections of one server."""

    def __init__(self, limits: RpcLimits, privileged: Collection[str]) -> None:
        self.taken: set[TabledConnection] = set()
        self._clients: dict[TabledConnection, tuple[Place, str]] = {}
        """Counted below as well: a thousand clients connect again within a failover."""
        self._of_place: Counter[Place] = Counter()
        self._of_user: Counter[str] = Counter()
        self._mute: set[TabledConnection] = set()
        """Those of whom nothing was known at the last sweep."""
        self._limits = limits
        self._privileged = frozenset(privileged)

    def is_privileged(self, connection: TabledConnection) -> bool:
        """Return whether a seat is kept for it: not for a caller known to be a mere HDFS client."""
        caller = connection.caller
        mere_client = caller is not None and caller.proven and caller.roles <= _MERE_CLIENT
        return connection.protocol in self._privileged and not mere_client

    def admit(self, newcomer: TabledConnection) -> bool:
        """Return whether an accepted connection may stay until it names its protocol."""
        if len(self.taken) >= self._limits.max_connections:
            LIMITS_MET.labels("max_connections").inc()
            if not self._make_room():
                HANGUPS.labels("max_connections").inc()
                return False
        self.taken.add(newcomer)
        CONNECTIONS.inc()
        return True

    def greeted(self, connection: TabledConnection) -> bool:
        """Decide whether a connection may stay that has said what it is for."""
        if self.is_privileged(connection):
            return True
        place, user = place_of(connection.host, connection.caller), connection.user
        self._clients[connection] = place, user
        self._of_place[place] += 1
        self._of_user[user] += 1
        limits = self._limits
        return (
            self._fits_its_place(connection, place)
            and self._fits(
                connection, "of_user", limits.max_of_user, self._of_user[user],
                lambda: [one for one, (_, its) in self._clients.items() if its == user],
            )
            and self._fits(
                connection, "kept_connections", limits.max_connections - limits.kept_connections,
                len(self._clients), lambda: list(self._clients),
            )
        )  # fmt: skip

    def close_unidentified(self) -> None:
        """Hang up on unknown callers beyond their share, if unknown now and one sweep ago.

        The longest there go first: a peer that has come to call says so at once.  After a
        standstill of our own, what they have said may not have been read when the first sweep
        comes; before the second one it has.
        """
        unknown = {one for one in self.taken if _unknown(one)}
        mute = sorted(unknown & self._mute, key=lambda one: one.born_at)
        self._mute = unknown
        counts = Counter(place_of(one.host, one.caller) for one in mute)
        left = []
        for one in mute:
            place = place_of(one.host, one.caller)
            if counts[place] > self._limits.max_unproven_of_address:
                counts[place] -= 1
                _hang_up(one, "unproven_of_address")
            else:
                left.append(one)
        excess = len(left) - self._limits.max_unproven
        for one in left[: max(0, excess)]:
            _hang_up(one, "unproven")

    def leave(self, connection: TabledConnection) -> None:
        """Free the seat of a closed connection."""
        if connection in self.taken:
            self.taken.remove(connection)
            self._mute.discard(connection)
            CONNECTIONS.dec()
        if connection in self._clients:
            place, user = self._clients.pop(connection)
            _less(self._of_place, place)
            _less(self._of_user, user)

    def _fits_its_place(self, connection: TabledConnection, place: Place) -> bool:
        limits, count = self._limits, self._of_place[place]

        def crowd() -> list[TabledConnection]:
            return [one for one, (its, _) in self._clients.items() if its == place]

        match place.share:
            case Share.OF_ADDRESS:
                return self._fits(connection, "of_address", limits.max_of_address, count, crowd)
            case Share.OF_USER:
                return self._fits(connection, "of_user", limits.max_of_user, count, crowd)
            case Share.UNLIMITED:
                return True
        assert_never(place.share)

    def _fits(
        self, connection: TabledConnection, limit: str, most: int, count: int,
        crowd: Callable[[], Iterable[TabledConnection]],
    ) -> bool:  # fmt: skip
        """Return whether a client is within a limit, or one of the crowd within it gives way."""
        if count <= most:
            return True
        LIMITS_MET.labels(limit).inc()
        if _evict(one for one in crowd() if one is not connection):
            return True
        HANGUPS.labels(limit).inc()
        return False

    def _make_room(self) -> bool:
        mute = [one for one in self.taken if not one.user]
        kept = [one for one in self.taken if self.is_privileged(one)]
        if len(kept) > self._limits.kept_connections and _evict(kept):
            return True  # more than that many claim what cannot be checked
        return _evict(mute) or _evict(self._clients)


def _less(counts: Counter[T], key: T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def _unknown(connection: TabledConnection) -> bool:
    """Return whether nothing is known of the caller."""
    caller = connection.caller
    return not connection.user and (caller is None or not caller.proven)


def _hang_up(connection: TabledConnection, limit: str) -> None:
    LIMITS_MET.labels(limit).inc()
    HANGUPS.labels(limit).inc()
    connection.give_way()


def _evict(candidates: Iterable[TabledConnection]) -> bool:
    """Let the longest idle one go, of the place and then the user that has the most."""
    placed = [(one, place_of(one.host, one.caller)) for one in candidates]
    places = Counter(place for _, place in placed)
    users = Counter((place, one.user) for one, place in placed)
    idle = [(one, place) for one, place in placed if one.idle]
    if not idle:
        return False
    chosen, _ = min(
        idle, key=lambda both: (-places[both[1]], -users[both[1], both[0].user], both[0].heard_at)
    )
    HANGUPS.labels("gave_way").inc()
    chosen.give_way()
    return True
