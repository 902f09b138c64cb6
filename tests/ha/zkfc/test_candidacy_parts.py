"""What the candidacy asks its parts, at the ends of their ranges; and what operators read."""

from dataclasses import replace

import pytest

from ha.elector.model import Link, Role
from ha.elector.state import ElectorState
from ha.health.core import Health, HealthSettings, HealthState, Trouble
from ha.notices.seen import Notices
from ha.service.model import ServiceState
from ha.zkfc.candidacy.eligibility import Rank, Standing, successor
from ha.zkfc.candidacy.failback import FailBack, describe_cause, seconds_left, update_wait
from ha.zkfc.candidacy.failover_obstacle import failover_obstacle, hand_over_obstacle
from ha.zkfc.candidacy.flapping import Flapping, FlapSettings, keep_seconds
from ha.zkfc.candidacy.state import Active, BackOff, Candidacy, Out, Waiting
from tests.ha.zkfc.elections import at
from tests.ha.zkfc.test_standing import DRAIN, DRAINED, NAMESAKE, PEER

NOW = 1000.0
LOWER = replace(PEER, state="active", priority=50)
LED = Notices(members=(LOWER,), lock_holder="nn2")
FLAP = FlapSettings(failovers=1)
PREFERRED = Standing(
    namenode="nn1", notices=LED, rank=Rank(priority=200, failback_after_seconds=1.0)
)


def test_nobody_succeeds_where_nothing_is_known() -> None:
    assert successor(Standing(notices=None)) is None


@pytest.mark.parametrize(
    ("standing", "fail_back", "since"),
    [
        (PREFERRED, FailBack(), NOW),
        (PREFERRED, FailBack(since=NOW - 9.0), NOW - 9.0),
        (replace(PREFERRED, notices=None), FailBack(), None),
        (replace(PREFERRED, rank=Rank(priority=200)), FailBack(), None),
        (replace(PREFERRED, unready_in_a_row=1), FailBack(), NOW),
        (replace(PREFERRED, unready_in_a_row=2), FailBack(), None),
        (replace(PREFERRED, hand_overs=1), FailBack(), None),
        (PREFERRED, FailBack(moves=(NOW - 1.0,)), None),
        (PREFERRED, FailBack(moves=(NOW - FLAP.window_seconds,)), NOW),
    ],
)
def test_a_fail_back_counts_only_while_nothing_is_against_it(
    standing: Standing, fail_back: FailBack, since: float | None
) -> None:
    assert update_wait(fail_back, standing, FLAP, NOW).since == since


def test_no_wait_is_shorter_than_none() -> None:
    assert seconds_left(FailBack(since=NOW - 9.0), PREFERRED, NOW) == 0.0
    assert seconds_left(FailBack(), PREFERRED, NOW) is None
    long_ago = Flapping(settings=FLAP, takeovers=(NOW,), trouble_since=NOW - 900.0)
    assert keep_seconds(long_ago, Trouble.SLOW, NOW) == 0.0


def test_a_cause_is_told_also_where_the_active_is_not_seen() -> None:
    told = "fail-back: nn1 has priority 200{}, and was fit for 1 s"
    assert describe_cause(PREFERRED) == told.format(", nn2 50")
    assert describe_cause(replace(PREFERRED, notices=None)) == told.format("")


@pytest.mark.parametrize(
    "wrong",
    [{"failovers": -1}, {"window_seconds": 0.0}, {"window_seconds": -1.0}, {"delay_seconds": -1.0}],
)
def test_flap_limits_are_sane(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="flap limits"):
        FlapSettings(**wrong)  # type: ignore[arg-type] # one field each


def test_the_least_flap_limits_are_taken() -> None:
    least = FlapSettings(failovers=0, window_seconds=0.5, delay_seconds=0.0)
    assert (least.failovers, least.window_seconds, least.delay_seconds) == (0, 0.5, 0.0)


def test_a_back_off_doubles_up_to_its_cap_however_often_it_fails() -> None:
    back_off = BackOff(first_seconds=1.0, cap_seconds=30.0)
    assert [back_off.after(n) for n in (1, 2, 5, 6, 5000)] == [1.0, 2.0, 16.0, 30.0, 30.0]


@pytest.mark.parametrize("place", [Out(), Waiting("outranked")])
def test_an_observer_is_known_for_one_wherever_it_waits(place: Out | Waiting) -> None:
    observer = Candidacy(place=place, reported=ServiceState.OBSERVER)
    assert observer.believed is ServiceState.OBSERVER
    nothing = replace(observer, reported=ServiceState.STANDBY)
    assert nothing.believed is ServiceState.INITIALIZING


WELL = HealthState(settings=HealthSettings(), health=Health.HEALTHY)
ILL = replace(WELL, health=Health.UNHEALTHY, reason="disk")
IN = at(Role.STANDBY)
AWAY = replace(IN, link=Link.SUSPENDED)
READY = Candidacy(place=Active())
Trouble_ = tuple[HealthState, ElectorState, Candidacy, str, str | None]
TROUBLES: dict[str, Trouble_] = {
    "none": (WELL, IN, READY, "away", None),
    "ill": (ILL, IN, READY, "", "the NameNode is unhealthy: disk"),
    "ill first of all": (ILL, at(Role.INIT), replace(READY, not_demoted="no"), "",
                         "the NameNode is unhealthy: disk"),
    "not demoted": (WELL, IN, replace(READY, not_demoted="late"), "", "late"),
    "one that waits is in none": (WELL, at(Role.INIT), Candidacy(place=Waiting("x")), "", None),
    "out": (WELL, at(Role.INIT), Candidacy(place=Out("ceded")), "", "not in the election: ceded"),
    "not joined": (WELL, at(Role.INIT), Candidacy(), "", "not in the election: not joined yet"),
    "ZooKeeper away": (WELL, AWAY, READY, "", "ZooKeeper: suspended"),
    "ZooKeeper away, for long": (WELL, AWAY, READY, "away for 5 s", "away for 5 s"),
}  # fmt: skip


@pytest.mark.parametrize("case", TROUBLES)
def test_the_first_trouble_is_told(case: str) -> None:
    health, elector, candidacy, absence, told = TROUBLES[case]
    assert failover_obstacle(health, elector, candidacy, absence) == told


def sees(notices: Notices | None) -> Candidacy:
    return Candidacy(standing=Standing(notices=notices))


@pytest.mark.parametrize(
    ("health", "candidacy", "told"),
    [
        (WELL, sees(None), None),
        (WELL, sees(LED), None),
        (ILL, sees(None), "disk"),
        (replace(ILL, reason=""), sees(None), "unhealthy"),
        (WELL, replace(sees(None), reported=ServiceState.OBSERVER), "it is an observer"),
        (WELL, sees(replace(LED, namesake=NAMESAKE)), NAMESAKE),
        (WELL, sees(replace(LED, drain=DRAIN)), f"it is {DRAINED}"),
    ],
)
def test_why_it_cannot_be_the_target_of_a_hand_over(
    health: HealthState, candidacy: Candidacy, told: str | None
) -> None:
    assert hand_over_obstacle(health, candidacy) == told
