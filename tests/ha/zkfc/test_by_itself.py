"""What keeps our NameNode from taking a lock that is not free, though all speaks against its owner.

The candidacy comes about as in production, event by event.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ha.health.core import Health, Trouble
from ha.notices.seen import Notices
from ha.service.model import ServiceState
from ha.zkfc.candidacy import model
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.failover_obstacle import lock_removal_obstacle
from ha.zkfc.candidacy.flapping import Flapping
from ha.zkfc.candidacy.model import CedeAsked
from ha.zkfc.candidacy.state import Candidacy
from tests.ha.zkfc.test_standing import DRAIN, PAUSE

NOW = 1000.0
STANDBY = model.StatusReported(ServiceState.STANDBY, True, "")
WELL = model.HealthChanged(Health.HEALTHY, Trouble.NONE, "")
HELD = Notices(lock_holder="nn2")
STANDS_BY: tuple[model.Event, ...] = (
    model.NoticesSeen(HELD),
    STANDBY,
    WELL,
    model.DemotionTried(""),
)
OFTEN = Flapping(takeovers=(NOW - 3, NOW - 2, NOW - 1))

CASES: Mapping[str, tuple[tuple[model.Event, ...], Flapping, str]] = {
    "nothing": (STANDS_BY, Flapping(), ""),
    "not in the election yet": (STANDS_BY[:2], Flapping(), "our NameNode was not probed yet"),
    "no role yet": (STANDS_BY[:3], Flapping(), "our NameNode does not stand by in the election"),
    "a demotion is under way": (
        (*STANDS_BY, model.TransitionBegun()),
        Flapping(),
        "our NameNode does not stand by in the election",
    ),
    "it is ill": (
        (*STANDS_BY, model.HealthChanged(Health.UNHEALTHY, Trouble.ILL, "no space")),
        Flapping(),
        "our NameNode is unhealthy: no space",
    ),
    "it says that it is active": (
        (*STANDS_BY, model.StatusReported(ServiceState.ACTIVE, True, "")),
        Flapping(),
        "our NameNode is not a healthy standby",
    ),
    "it is not ready": (
        (*STANDS_BY, model.StatusReported(ServiceState.STANDBY, False, "in safe mode")),
        Flapping(),
        "our NameNode is not ready to become active: in safe mode",
    ),
    "a pause": (
        (*STANDS_BY, model.NoticesSeen(replace(HELD, pause=PAUSE))),
        Flapping(),
        "paused by ann@host: new switch",
    ),
    "a drain": (
        (*STANDS_BY, model.NoticesSeen(replace(HELD, drain=DRAIN))),
        Flapping(),
        "drained by bob@host until 2026-01-31T14:00:00.000Z: new disk",
    ),
    "it stands back": (
        (*STANDS_BY, CedeAsked(9.0, needs_fencing=False)),
        Flapping(),
        "asked to cede",
    ),
    "a hand-over to it": (
        (*STANDS_BY, model.HandOverBegun()),
        Flapping(),
        "a hand-over to us is under way",
    ),
    "flapping": (STANDS_BY, OFTEN, "the active has changed too often of late"),
    "flapping long ago": (STANDS_BY, Flapping(takeovers=(NOW - 900, NOW - 800, NOW - 700)), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_what_keeps_us_from_another_s_lock(case: str) -> None:
    events, flapping, because = CASES[case]
    candidacy = Candidacy(flapping=flapping)
    for event in events:
        candidacy = step(candidacy, event, now=NOW).state
    assert lock_removal_obstacle(candidacy, NOW) == because
