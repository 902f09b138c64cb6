"""The notices in ZooKeeper: pause, drain, members, history; as values and as JSON."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from ha.notices.codec import MAX_TEXT, BadNotice, Codec, time_text
from ha.record import dataclass

__all__ = ["MAX_TEXT", "BadNotice", "time_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """No automatic role change in this nameservice, until an operator ends it or time does."""

    owner: str
    """The operator, as ``user@host``."""
    reason: str
    since: datetime
    until: datetime | None
    """None: until an operator ends it."""

    def over(self, now: datetime) -> bool:
        """Return whether it has expired; it is then as if it were not there."""
        return self.until is not None and now >= self.until


Drain = Pause
"""A pause of one NameNode: it is no candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One running ZKFC, as it sees itself; ephemeral, so it is gone with its session."""

    namenode: str
    zkfc_http: str
    """host:port of its /status; empty when it has none."""
    zkfc_rpc: str
    """host:port of its ZKFCProtocol."""
    pid: int
    started: datetime
    health: str
    """Its judgement of its NameNode, ``ha.health.core.Health``."""
    state: str
    """What its NameNode says it is: active, standby, initializing, observer, unknown."""
    ready: bool
    """Its NameNode says that it could become active."""
    not_ready_reason: str
    nofailover: bool
    priority: int
    in_election: bool
    out_because: str
    """Why it is not in the election; empty when it is."""
    version: str
    pause_seen: datetime | None = None
    """``since`` of the pause that it obeys; None: it knows of none in force."""
    drain_seen: datetime | None = None
    """The same of its NameNode's drain."""
    host: str = ""
    """The machine that it runs on, by its own name; empty where an older version says none."""
    user: str = ""
    """Whom it runs as, and so asks others as; empty where an older version says none."""
    hand_over_failure: str = ""
    """Why the last try to hand its drained NameNode's role over failed; empty: none did."""
    lock_of_earlier_process: bool = False
    """Its NameNode is active, and the lock is still that of its controller's earlier process, which
    was killed.  When that session ends, this controller takes the lock again.
    """


class FailoverKind(StrEnum):
    """What caused the role to move; the last two are no failovers."""

    AUTO = "auto"
    SWITCHOVER = "switchover"
    MANUAL = "manual"
    FIRST = "first"
    """The first election of a nameservice: no NameNode was active before."""
    REJOINED = "rejoined"
    """The active won its own lock again, as after a restart of its controller in a pause."""


class FailoverResult(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PhaseDuration:
    """How long one phase of a failover took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FencingAttempt:
    """One method tried on one NameNode."""

    method: str
    target: str
    result: str
    seconds: float | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverRecord:
    """One failover attempt, written by the ZKFC that took over or tried to.  None: not known."""

    at: datetime
    """When it ended."""
    namenode: str
    """The NameNode that was to become active."""
    cause: str
    actor: str | None
    """The operator, for a switchover; None when no operator asked."""
    kind: FailoverKind
    result: FailoverResult
    failure: str | None
    phases: tuple[PhaseDuration, ...]
    epoch: int | None
    last_txid: int | None
    previous: str | None
    """The NameNode that was active before."""
    fencing: tuple[FencingAttempt, ...]
    session: str | None
    """ZooKeeper's number of the session that held the lock, in hex."""
    lock_czxid: int | None

    @property
    def seconds(self) -> float:
        """How long it took: the phases' sum."""
        return sum(phase.seconds for phase in self.phases)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One znode of the history; its number only ever grows, though not by ones."""

    number: int
    record: FailoverRecord | None
    unreadable: str = ""
    """Why there is no record: one bad znode must not hide the others."""


PAUSE: Final = Codec(Pause, "pause")
DRAIN: Final = Codec(Drain, "drain")
MEMBER: Final = Codec(Member, "member")
RECORD: Final = Codec(FailoverRecord, "record of a failover")

encode_pause, decode_pause, decode_drain = PAUSE.encode, PAUSE.decode, DRAIN.decode
encode_member, decode_member = MEMBER.encode, MEMBER.decode
encode_record, decode_record, record_json = RECORD.encode, RECORD.decode, RECORD.to_json
