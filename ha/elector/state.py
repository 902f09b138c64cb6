"""What the elector remembers, and what one step of it yields."""

from ha.elector.actions import Action
from ha.elector.model import AttemptNumber, Link, Role, SessionNumber, Stage
from ha.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectorState:
    """Everything the election's decisions depend on; starts outside the election."""

    role: Role = Role.INIT
    wanted: bool = False
    data: bytes = b""
    session: SessionNumber = SessionNumber(0)
    link: Link = Link.CLOSED
    holding: bool = False
    """The lock was last known to be this session's."""
    creating: bool = False
    """A create of the lock has not been answered."""
    looking: bool = False
    """A look at the lock has not been answered."""
    serving: bool = False
    """Our NameNode was promoted under the lock that this session has held ever since."""
    attempt: AttemptNumber = AttemptNumber(0)
    stage: Stage = Stage.NONE
    breadcrumb_version: int | None = None
    """As read while a takeover fences, as written afterwards; None when there was none."""


@dataclass(frozen=True, slots=True)
class Step:
    """The state afterwards and what is to be done, in this order."""

    state: ElectorState
    actions: tuple[Action, ...] = ()
