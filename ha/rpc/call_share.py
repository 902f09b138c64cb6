"""Which call is taken next, when there are more than a server carries out at once.

No call is refused: a user that has had enough waits until others have had as much.  See
docs/reference/rpc.md#limits.
"""

from typing import Protocol

from ha.rpc.limits import RpcLimits
from ha.rpc.metrics import LIMITS_MET


class Calling(Protocol):
    """A connection, as far as the share of its calls depends on it."""

    @property
    def user(self) -> str:
        """The user that the connection names."""

    @property
    def privileged(self) -> bool:
        """Whether its calls are of the protocols of failover."""

    def pump(self) -> None:
        """Take what there is room for."""


class CallQueue:
    """Counts calls under way by user, and connections that wait for one to end, the first first."""

    def __init__(self, limits: RpcLimits) -> None:
        self._most, self._of_clients = limits.max_calls, limits.calls_of_clients
        self._share = limits.calls_of_user
        self.running = 0
        self._of_user: dict[str, int] = {}
        self.waiting: dict[Calling, str] = {}
        """With their users."""

    def has_room(self, connection: Calling) -> bool:
        """Return whether one more call of it may be taken; if not, it waits from now on."""
        limit = self._limit_met(connection)
        if limit is None:
            return True
        if connection not in self.waiting:
            LIMITS_MET.labels(limit).inc()
            self.waiting[connection] = connection.user
        return False

    def began(self, user: str) -> None:
        """Count a call that was taken."""
        self.running += 1
        self._of_user[user] = self._of_user.get(user, 0) + 1

    def ended(self, user: str) -> None:
        """Count off a call that is answered, or will never be."""
        self.running -= 1
        left = self._of_user[user] - 1
        if left:
            self._of_user[user] = left
        else:
            del self._of_user[user]

    def leave(self, connection: Calling) -> None:
        """Forget a connection that waits no longer."""
        self.waiting.pop(connection, None)

    def next_one(self) -> Calling | None:
        """Remove and return the longest waiting connection of those whose call may be taken now."""
        found = next((one for one in self.waiting if self._limit_met(one) is None), None)
        if found is not None:
            self.leave(found)
        return found

    def _limit_met(self, connection: Calling) -> str | None:
        """Return the name of the limit that keeps a call of this connection back."""
        user = connection.user
        at_share = self._of_user.get(user, 0) >= self._share
        if self.running < self._of_clients and not at_share:
            return None
        if not user:
            return None  # it comes to say who it is, perhaps a controller, and not to call
        if self.running >= self._most:
            return "max_calls"
        if connection.privileged:
            return None
        if self.running >= self._of_clients:
            return "kept_calls"
        return "share_of_user" if self._others_wait(user) else None

    def _others_wait(self, user: str) -> bool:
        """Return whether another user waits that has less than its share.

        Two users that both have more do not wait for one another.
        """
        others = set(self.waiting.values()) - {user}
        return any(self._of_user.get(other, 0) < self._share for other in others)
