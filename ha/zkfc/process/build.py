"""Builds the witness, the health monitor and the first candidacy of a controller."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from ha.elector.events import Event
from ha.elector.keeper import LockReader, LockRemover
from ha.elector.model import Link, Removal, Role
from ha.elector.runner import Elector
from ha.elector.state import ElectorState
from ha.elector.zookeeper.outcome import Done, ZnodeFacts
from ha.health.core import ProbeOutcome
from ha.health.monitor import HealthMonitor, Listener
from ha.health.pid_file import PidFile
from ha.zkfc.candidacy.eligibility import Standing
from ha.zkfc.candidacy.failover_obstacle import lock_removal_obstacle
from ha.zkfc.candidacy.flapping import Flapping
from ha.zkfc.candidacy.state import Candidacy
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import Surroundings
from ha.zkfc.witness.runner import Witness


class StepListener(Protocol):
    """A part of a controller that observes each step of the election."""

    def observe_step(self, event: Event, before: ElectorState, after: ElectorState) -> None:
        """Handle a step of the election."""


class _ElectorAccess:
    """See ``ha.zkfc.witness.runner.ControllerAccess``."""

    def __init__(
        self,
        elector: Elector,
        candidacy: Callable[[], Candidacy],
        set_removal_reason: Callable[[str], None],
    ) -> None:
        self._elector = elector
        self._candidacy = candidacy
        self.set_removal_reason = set_removal_reason

    def obstacle(self) -> str:
        """Return why our controller may not take over by itself now; empty if it may."""
        election = self._elector.state
        if election.role is not Role.STANDBY or election.link is not Link.CONNECTED:
            return "our elector does not stand by, connected to ZooKeeper"
        return lock_removal_obstacle(self._candidacy(), asyncio.get_running_loop().time())

    async def read_lock(self) -> tuple[bytes, ZnodeFacts] | None:
        """Return the lock's content and facts; None if there is none or the answer is unknown."""
        keeper = self._elector.keeper
        asked = keeper.read_lock() if isinstance(keeper, LockReader) else None
        outcome = None if asked is None else await asked
        return outcome.value if isinstance(outcome, Done) else None

    async def remove_lock(self, made: int) -> Removal:
        """Delete the peer's lock that this ZooKeeper transaction created."""
        keeper = self._elector.keeper
        if not isinstance(keeper, LockRemover):
            return Removal.UNKNOWN
        return await keeper.remove_lock(made, lambda: not self.obstacle())


def new_witness(
    settings: ZkfcSettings,
    elector: Elector,
    candidacy: Callable[[], Candidacy],
    set_removal_reason: Callable[[str], None],
    around: Surroundings,
) -> Witness:
    """Build the witness of one controller."""
    access = _ElectorAccess(elector, candidacy, set_removal_reason)
    return Witness(
        settings.witness, settings.own, access, address_of=settings.address_of, around=around
    )


def initial_candidacy(settings: ZkfcSettings, standing: Standing) -> Candidacy:
    """Return the candidacy at the start."""
    return Candidacy(
        back_off=settings.back_off,
        standing=standing,
        flapping=Flapping(settings=settings.flapping),
    )


def new_monitor(
    settings: ZkfcSettings,
    listener: Listener,
    *,
    measure: Callable[[float, ProbeOutcome], None],
    heartbeat: Callable[[float], None],
    around: Surroundings,
) -> HealthMonitor:
    """Build the health monitor of our NameNode."""
    return HealthMonitor(
        settings.own.lifeline,
        settings.health,
        listener,
        measure=measure,
        process=None if settings.pid_file is None else PidFile(settings.pid_file),
        connect=around.connect,
        heartbeat=heartbeat,
    )
