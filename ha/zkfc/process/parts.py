"""Builds parts of a controller from its settings."""

from collections.abc import Callable

from ha.health.core import ProbeOutcome
from ha.health.monitor import HealthMonitor, Listener
from ha.health.pid_file import PidFile
from ha.zkfc.candidacy.eligibility import Standing
from ha.zkfc.candidacy.flapping import Flapping
from ha.zkfc.candidacy.state import Candidacy
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import Surroundings


def first_candidacy(settings: ZkfcSettings, standing: Standing) -> Candidacy:
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
    sign: Callable[[float], None],
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
        sign=sign,
    )
