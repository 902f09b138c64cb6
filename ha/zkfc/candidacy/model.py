"""The words of the candidacy: what may happen to it, and what it decides."""

from ha.elector.state import ElectorState
from ha.health.core import Health, Trouble
from ha.notices.seen import Notices
from ha.record import dataclass
from ha.service.model import ServiceState


@dataclass(frozen=True, slots=True)
class HealthChanged:
    """The monitor has judged anew."""

    health: Health
    trouble: Trouble = Trouble.GONE
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StatusReported:
    """The NameNode said what it is, and whether it could become active."""

    state: ServiceState
    ready: bool = True
    not_ready_reason: str = ""


@dataclass(frozen=True, slots=True)
class NoticesSeen:
    """The notices in ZooKeeper were read anew."""

    notices: Notices


@dataclass(frozen=True, slots=True)
class ElectionMoved:
    """The elector has another role than before."""

    before: ElectorState
    after: ElectorState
    planned: bool = False
    """An operator wants our NameNode to be active."""


@dataclass(frozen=True, slots=True)
class OwnLockSeen:
    """ZooKeeper has shown us a lock of ours, which this transaction made."""

    made: int


@dataclass(frozen=True, slots=True)
class TransitionBegun:
    """We have asked our NameNode to change; its reports mean nothing until it has answered."""


@dataclass(frozen=True, slots=True)
class DemotionTried:
    """The lock is another's, and our NameNode was ordered to be standby."""

    failure: str = ""
    """Why it would not say that it is; empty when it did."""


@dataclass(frozen=True, slots=True)
class DemotionSpared:
    """The lock was left by an earlier process of ours: our NameNode stays what it is."""


@dataclass(frozen=True, slots=True)
class TakeoverFailed:
    """We won the lock and could not take over; the election was left."""


@dataclass(frozen=True, slots=True)
class CedeAsked:
    """A peer or an operator wants us out of the election for this time (greater than 0)."""

    seconds: float
    needs_fencing: bool
    """Our NameNode did not confirm that it is standby."""
    because: str = "asked to cede"


@dataclass(frozen=True, slots=True)
class CedeEnded:
    """Somebody lets us back in now."""


@dataclass(frozen=True, slots=True)
class HandOverBegun:
    """An operator wants our NameNode to be active; no pause and no rank stands against that."""


@dataclass(frozen=True, slots=True)
class HandOverEnded:
    """One that was begun has succeeded or failed."""


@dataclass(frozen=True, slots=True)
class DrainTried:
    """The successor that we asked has answered."""

    failure: str
    """Empty, or why it did not take over."""


@dataclass(frozen=True, slots=True)
class RecheckDue:
    """A pause that we announced may be over."""


Event = (
    HealthChanged
    | StatusReported
    | NoticesSeen
    | ElectionMoved
    | OwnLockSeen
    | HandOverBegun
    | HandOverEnded
    | DrainTried
    | TransitionBegun
    | DemotionTried
    | DemotionSpared
    | TakeoverFailed
    | CedeAsked
    | CedeEnded
    | RecheckDue
)


@dataclass(frozen=True, slots=True)
class Join:
    """Be in the election."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Be out of the election."""

    needs_fencing: bool
    """Keep the breadcrumb: our NameNode may still be active."""
    because: str


@dataclass(frozen=True, slots=True)
class AskAgainAfter:
    """Come back with RecheckDue after this number of seconds; replaces an earlier wish."""

    seconds: float


@dataclass(frozen=True, slots=True)
class HandOverTo:
    """Let this NameNode take over from ours, which is drained."""

    namenode: str
    zkfc: str
    """host:port of its controller."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Have the active hand over to our NameNode, which is preferred."""

    because: str


Decision = Join | Leave | AskAgainAfter | HandOverTo | TakeBack


def describe(event: Event) -> str:
    """Format for the log.  The notices have a line of their own, with every member."""
    match event:
        case NoticesSeen():
            return "NoticesSeen()"
        case ElectionMoved(before=before, after=after, planned=planned):
            return f"ElectionMoved({before.role}, {after.role}, {planned=})"
        case _:
            return repr(event)
