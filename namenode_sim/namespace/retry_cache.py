"""What clients were answered lately, so that a call repeated after a failover is not done twice.

Every edit of an "at most once" call carries the client's id and call number; applying the edit
fills the cache, on the active as on the standby (Hadoop's RetryCache).  See
docs/reference/namenode.md#retry-cache.
"""

from google.protobuf.message import Message

from ha.record import dataclass
from namenode_sim.edits.values import RpcIds
from namenode_sim.namespace.inode import INodeFile

EXPIRY_SECONDS = 600.0
"""The default of dfs.namenode.retrycache.expirytime.millis."""

MAX_ENTRIES = 200_000
"""Instead of Hadoop's share of the heap: about 60 MB of answers, 333 a second for 10 minutes."""

_CLIENT_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """The call succeeded; there is nothing more to say."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The call created or reopened this file; the answer is built from it again."""

    file: INodeFile


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """The call took a snapshot of a directory; the client may not have given its name."""

    root: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.root.rstrip('/')}/.snapshot/{self.name}"


@dataclass(frozen=True, slots=True)
class DirectiveAdded:
    """The call added the cache directive with this id."""

    id: int


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The call was answered and changed nothing; no edit mentions it, so a standby never knows."""

    answer: Message


@dataclass(frozen=True, slots=True)
class RememberedRefusal:
    """As ``Unchanged``, of a call that was answered with an exception."""

    java_class: str
    message: str


Remembered = CachedAnswer | Opened | SnapshotTaken | DirectiveAdded | Unchanged | RememberedRefusal
DONE = CachedAnswer()


class RetryCache:
    """Answers by (client id, call id), in two generations; none with ``max_entries`` 0.

    A generation lasts ``expiry_seconds``, so an answer is kept between one and two of them; when
    a generation is full it ends early, and the older answers go.
    """

    __slots__ = ("_expiry_seconds", "_max_entries", "_old", "_rotated_at", "_young")

    def __init__(
        self, *, expiry_seconds: float = EXPIRY_SECONDS, max_entries: int = MAX_ENTRIES
    ) -> None:
        self._expiry_seconds = expiry_seconds
        self._max_entries = max_entries
        self._young: dict[RpcIds, Remembered] = {}
        self._old: dict[RpcIds, Remembered] = {}
        self._rotated_at: float | None = None

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def remember(self, rpc: RpcIds, answer: Remembered) -> None:
        """Keep the answer of a call; nothing if the call has no ids (no client caused it)."""
        if not identifies(rpc) or not self._max_entries:
            return
        if len(self._young) >= self._max_entries // 2:
            self._rotate()
        self._young[rpc] = answer

    def find(self, rpc: RpcIds) -> Remembered | None:
        """Return the answer this very call got before, if it is still known."""
        return self._young.get(rpc) or self._old.get(rpc)

    def advance(self, now: float) -> None:
        """Let answers grow old; ``now`` is in monotonic seconds."""
        if self._rotated_at is None:
            self._rotated_at = now
        elif now - self._rotated_at >= self._expiry_seconds:
            self._rotate()
            self._rotated_at = now

    def _rotate(self) -> None:
        self._old = self._young
        self._young = {}


def identifies(rpc: RpcIds) -> bool:
    """Return whether these ids name one client's call (RetryCache.skipRetryCache)."""
    return len(rpc.client_id) == _CLIENT_ID_BYTES and rpc.call_id >= 0
