"""The events and decisions of the candidacy."""

from ha.elector.state import ElectorState
from ha.health.core import Health, Trouble
from ha.notices.seen import Notices
from ha.record import dataclass
from ha.service.model import ServiceState


@dataclass(frozen=True, slots=True)
class HealthChanged:
    """The health monitor has changed its judgement of our NameNode."""

    health: Health
    trouble: Trouble = Trouble.GONE
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StatusReported:
    """Our NameNode reported its HA state and whether it is ready to become active."""

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
    """A requested hand-over to our NameNode is under way."""


@dataclass(frozen=True, slots=True)
class OwnLockSeen:
    """ZooKeeper showed a lock of our own, created by the transaction ``made``."""

    made: int


@dataclass(frozen=True, slots=True)
class TransitionBegun:
    """Our NameNode was asked to change its state; its reports count again when it has answered."""


@dataclass(frozen=True, slots=True)
class DemotionTried:
    """Another controller has the lock, and our NameNode was asked to become standby."""

    failure: str = ""
    """Why it did not confirm that it is standby; empty if it did."""


@dataclass(frozen=True, slots=True)
class DemotionSpared:
    """The lock is of our controller's earlier process, so our NameNode was not demoted."""


@dataclass(frozen=True, slots=True)
class TakeoverFailed:
    """Our elector won the lock, the takeover failed, and the elector left the election."""


@dataclass(frozen=True, slots=True)
class CedeAsked:
    """A hand-over or the absence of ZooKeeper makes us leave the election for this time."""

    seconds: float
    needs_fencing: bool
    """Our NameNode did not confirm that it is standby."""
    because: str = "asked to cede"


@dataclass(frozen=True, slots=True)
class CedeEnded:
    """No request to cede is left."""


@dataclass(frozen=True, slots=True)
class HandOverBegun:
    """A hand-over to our NameNode was requested; a pause and the rank do not bar it."""


@dataclass(frozen=True, slots=True)
class HandOverEnded:
    """A requested hand-over has succeeded or failed."""


@dataclass(frozen=True, slots=True)
class DrainTried:
    """The successor of our drained NameNode has answered our request."""

    failure: str
    """Why it did not take over; empty if it did."""


@dataclass(frozen=True, slots=True)
class RecheckDue:
    """The time of the last AskAgainAfter is over."""


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
    """Join the election."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the election."""

    needs_fencing: bool
    """Keep the breadcrumb, because our NameNode may still be active."""
    because: str


@dataclass(frozen=True, slots=True)
class AskAgainAfter:
    """Send RecheckDue after this time, instead of at the time that was asked for before."""

    seconds: float


@dataclass(frozen=True, slots=True)
class HandOverTo:
    """Ask this NameNode's controller to take over from ours, which is drained."""

    namenode: str
    zkfc: str
    """The host:port of its controller."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Fail back: request a hand-over from the active to our NameNode."""

    because: str


Decision = Join | Leave | AskAgainAfter | HandOverTo | TakeBack


def describe(event: Event) -> str:
    """Return the event as text for the log; notices are logged elsewhere with every member."""
    match event:
        case NoticesSeen():
            return "NoticesSeen()"
        case ElectionMoved(before=before, after=after, planned=planned):
            return f"ElectionMoved({before.role}, {after.role}, {planned=})"
        case _:
            return repr(event)
