"""The words of HAServiceProtocol: states, who asks for a change, and a NameNode's status."""

from enum import IntEnum, StrEnum

from ha.record import dataclass


class ServiceState(StrEnum):
    """A NameNode's role, named as on the wire and spelled as Hadoop prints it."""

    INITIALIZING = "initializing"
    ACTIVE = "active"
    STANDBY = "standby"
    OBSERVER = "observer"


class RequestSource(IntEnum):
    """The requester of a transition; a NameNode refuses the wrong kind.

    See docs/reference/rpc.md#requesters-of-a-transition.
    """

    USER = 0
    USER_FORCED = 1
    ZKFC = 2


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Which process answers: ``machine`` is the boot and pid namespace that ``pid`` belongs to."""

    pid: int
    started_ticks: int
    machine: str


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """What a NameNode says of itself.

    ``not_ready_reason`` is empty where ``ready_to_become_active`` holds.
    """

    state: ServiceState
    ready_to_become_active: bool
    not_ready_reason: str = ""
    process: ProcessIdentity | None = None
    """None where the NameNode does not report it, as Hadoop's does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSilence:
    """What the journal's nodes say of the newest writer, in durations."""

    nodes: int
    """How many the journal has."""
    witnesses: int
    """How many of them have heard the newest writer themselves, and know that it sends heartbeats.

    One that does not answer, was started again, expects another writer, or has heard one of
    Hadoop's, is none.
    """
    epoch: int
    silent_seconds: float
    """A majority of all nodes has not heard the writer for this time."""
    lease_seconds: float
    """The longest read lease that it, or one before it, may still hold."""
