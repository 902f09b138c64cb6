"""What one look has shown of ZooKeeper: its servers, the lock and the notices.  Pure."""

from collections.abc import Mapping

from ha.notices.model import Drain, HistoryEntry, Member, Pause, time_text
from ha.record import dataclass, field


@dataclass(frozen=True, slots=True)
class ZooKeeperRow:
    """One server of the ensemble; ``mode`` is leader, follower, observer or standalone."""

    server: str
    mode: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LockView:
    """The holder of the election's lock: a NameNode id, or none, or why it is not known."""

    holder: str | None = None
    error: str | None = None
    session_timeout_seconds: float | None = None
    """What ZooKeeper has granted to our own session."""


@dataclass(frozen=True, slots=True)
class NoticesView:
    """The notices of operators and ZKFCs in ZooKeeper, or why they are not known."""

    pause: Pause | None = None
    drains: Mapping[str, Drain] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    namesakes: tuple[Member, ...] = ()
    """Running ZKFCs that may not join the election, because another ZKFC of their NameNode runs."""
    history: tuple[HistoryEntry, ...] = ()
    """The newest records, newest first."""
    unreadable: tuple[str, ...] = ()
    error: str | None = None


def second_zkfc_text(one: Member) -> str:
    """Describe a second ZKFC of one NameNode by what an operator needs to find it."""
    since = time_text(one.started)
    return f"a second ZKFC of {one.namenode} runs: process {one.pid} on {one.host}, since {since}"
