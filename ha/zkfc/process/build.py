"""Builds parts of a controller from its settings, and joins the witness to its election."""

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
    """A part of a controller that follows the election."""

    def stepped(self, event: Event, before: ElectorState, after: ElectorState) -> None:
        """Take note of a step of the election."""


class _ElectorAccess:
    """See ``ha.zkfc.witness.runner.ControllerAccess``."""

    def __init__(
        self,
        elector: Elector,
        candidacy: Callable[[], Candidacy],
        removing: Callable[[str], None],
    ) -> None:
        self._elector = elector
        self._candidacy = candidacy
        self.removing = removing

    def barred(self) -> str:
        """Return why we may not take another's lock by ourselves now; empty where we may."""
        election = self._elector.state
        if election.role is not Role.STANDBY or election.link is not Link.CONNECTED:
            return "our elector does not stand by, connected to ZooKeeper"
        return lock_removal_obstacle(self._candidacy(), asyncio.get_running_loop().time())

    async def read_lock(self) -> tuple[bytes, ZnodeFacts] | None:
        """Return the lock's bytes and facts; None where there is none, or it is not known."""
        keeper = self._elector.keeper
        asked = keeper.read_lock() if isinstance(keeper, LockReader) else None
        outcome = None if asked is None else await asked
        return outcome.value if isinstance(outcome, Done) else None

    async def remove_lock(self, made: int) -> Removal:
        """Delete another's lock, the one that this ZooKeeper transaction has made."""
        keeper = self._elector.keeper
        if not isinstance(keeper, LockRemover):
            return Removal.UNKNOWN
        return await keeper.remove_lock(made, lambda: not self.barred())


def new_witness(
    settings: ZkfcSettings,
    elector: Elector,
    candidacy: Callable[[], Candidacy],
    removing: Callable[[str], None],
    around: Surroundings,
) -> Witness:
    """Build the witness of one controller."""
    doors = _ElectorAccess(elector, candidacy, removing)
    return Witness(
        settings.witness, settings.own, doors, address_of=settings.address_of, around=around
    )


def initial_candidacy(settings: ZkfcSettings, standing: Standing) -> Candidacy:
    """Return the candidacy before anything is known."""
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
    """Build the monitor of our NameNode."""
    return HealthMonitor(
        settings.own.lifeline,
        settings.health,
        listener,
        measure=measure,
        process=None if settings.pid_file is None else PidFile(settings.pid_file),
        connect=around.connect,
        heartbeat=heartbeat,
    )
