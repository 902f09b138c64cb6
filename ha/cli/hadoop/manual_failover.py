"""Failover without failover controllers: check the new active, stop the old one, promote.

The order and the rules are those of Hadoop's FailoverController.  Only the two NameNodes and the
fencer act; the caller gives them as ``NameNodeAccess``.

See docs/reference/fencing.md#failover-by-hand.
"""

from typing import Protocol

from fencing.model import FencingReport
from ha.conf.topology import NameNodeAddress
from ha.record import dataclass
from ha.service.errors import ServiceError, ServiceUnreachable
from ha.service.model import ServiceState, ServiceStatus


class FailoverFailed(Exception):
    """The target is not active.  The message says what was done, and the present state."""


class OutcomeUnknown(Exception):
    """The target may or may not have become active."""


class NameNodeAccess(Protocol):
    """What can be done to a NameNode; everything but ``fence`` raises ServiceError."""

    async def status(self, node: NameNodeAddress) -> ServiceStatus:
        """Return a NameNode's state, and whether it could become active."""

    async def check_health(self, node: NameNodeAddress) -> None:
        """Return if the NameNode is healthy; raise if it is not."""

    async def to_standby(self, node: NameNodeAddress) -> None:
        """Ask it to become standby."""

    async def to_active(self, node: NameNodeAddress) -> None:
        """Ask it to serve."""

    async def fence(self, node: NameNodeAddress) -> FencingReport:
        """Make it harmless by the configured methods."""


@dataclass(frozen=True, slots=True)
class Force:
    """The checks that the operator wants to override."""

    fence: bool = False
    """Fence the old active even if it steps back when asked."""
    active: bool = False
    """Promote the target although it says that it is not ready."""


async def fail_over(
    old: NameNodeAddress, new: NameNodeAddress, force: Force, hands: NameNodeAccess
) -> None:
    """Make ``new`` active in place of ``old``.

    Raises:
        FailoverFailed: it is not.  If the old one was not fenced it has been made active again,
            or the message says why not.
        OutcomeUnknown: it did not answer, and may be active.
    """
    await _check(old, new, force, hands)
    fenced = await _still(old, force, hands)
    try:
        await hands.to_active(new)
    except ServiceError as failure:
        if isinstance(failure, ServiceUnreachable) and failure.sent and fenced:
            raise OutcomeUnknown(
                f"{new.namenode} stopped answering while it became active: {failure}"
            ) from failure
        told = f"Unable to make {new.namenode} active: {failure}"
        if fenced:
            raise FailoverFailed(
                f"{told}. {old.namenode} was fenced and stays as it is"
            ) from failure
        raise FailoverFailed(f"{told}. {await _fail_back(old, new, hands)}") from failure


async def _check(
    old: NameNodeAddress, new: NameNodeAddress, force: Force, hands: NameNodeAccess
) -> None:
    """Check everything that can be known before anything is changed."""
    if old.service == new.service:
        raise FailoverFailed("Can't failover a service to itself. Nothing was changed")
    try:
        status = await hands.status(new)
    except ServiceError as failure:
        raise FailoverFailed(
            f"Unable to get service state for {new.namenode}: {failure}. Nothing was changed"
        ) from failure
    if status.state is not ServiceState.STANDBY:
        raise FailoverFailed(
            f"Can't failover to {new.namenode}, which is {status.state}. Nothing was changed"
        )
    if not status.ready_to_become_active and not force.active:
        raise FailoverFailed(
            f"{new.namenode} is not ready to become active: {status.not_ready_reason}. Nothing was "
            "changed. --forceactive promotes it anyway"
        )
    try:
        await hands.check_health(new)
    except ServiceError as failure:
        raise FailoverFailed(
            f"Can't failover to {new.namenode}, which is not healthy: {failure}. "
            "Nothing was changed"
        ) from failure


async def _still(old: NameNodeAddress, force: Force, hands: NameNodeAccess) -> bool:
    """Make the old one standby or fence it; True if it was fenced."""
    refusal: ServiceError | None = None
    try:
        await hands.to_standby(old)
    except ServiceError as failure:
        refusal = failure
    if refusal is None and not force.fence:
        return False
    report = await hands.fence(old)
    if report.fenced:
        return True
    state = (
        f"it did not become standby when asked ({refusal}) and may be active"
        if refusal is not None
        else "it became standby when asked; no NameNode is active now"
    )
    raise FailoverFailed(f"Unable to fence {old.namenode}: {report}; {state}")


async def _fail_back(old: NameNodeAddress, new: NameNodeAddress, hands: NameNodeAccess) -> str:
    """Make the old one active again; says what came of it.

    The new one is fenced first, whatever it says: it may have become active after all.
    """
    report = await hands.fence(new)
    if not report.fenced:
        return (
            f"Failback to {old.namenode} failed: {new.namenode} could not be fenced ({report}); "
            "no NameNode may be active now"
        )
    try:
        await hands.to_active(old)
    except ServiceError as failure:
        return (
            f"Failback to {old.namenode} failed: {failure}; {new.namenode} was fenced, no NameNode "
            "is active now"
        )
    return f"{old.namenode} is active again; {new.namenode} was fenced"
