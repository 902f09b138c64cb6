"""The state of the elector, and the result of one step."""

from ha.elector.actions import Action
from ha.elector.model import AttemptNumber, Link, Role, SessionNumber, Stage
from ha.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectorState:
    """All that the election's decisions depend on; the default is outside the election."""

    role: Role = Role.INIT
    wanted: bool = False
    data: bytes = b""
    session: SessionNumber = SessionNumber(0)
    link: Link = Link.CLOSED
    holding: bool = False
    """This session owned the lock when it was last read."""
    creating: bool = False
    """A create of the lock is not answered yet."""
    looking: bool = False
    """A read of the lock is not answered yet."""
    serving: bool = False
    """Our NameNode was promoted under the lock that this session has held since."""
    attempt: AttemptNumber = AttemptNumber(0)
    stage: Stage = Stage.NONE
    breadcrumb_version: int | None = None
    """The version that a takeover read, or later wrote; None if there was no breadcrumb."""


@dataclass(frozen=True, slots=True)
class Step:
    """The state after an event, and the actions to carry out in this order."""

    state: ElectorState
    actions: tuple[Action, ...] = ()
