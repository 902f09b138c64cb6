"""Fail-back: when a preferred standby takes the role back, and when it never does.

Times are counted from when it stands behind an active of lower rank.
"""

from dataclasses import replace

import pytest

from ha.elector.zookeeper.znodes import connected
from ha.health.core import Health, Trouble
from ha.notices.model import FailoverKind, FailoverRecord, FailoverResult
from ha.notices.seen import FREE, Notices
from ha.notices.store import read_history
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.eligibility import Rank
from ha.zkfc.candidacy.failback import FailBack, update_wait
from ha.zkfc.candidacy.flapping import FlapSettings
from ha.zkfc.candidacy.model import (
    CedeAsked,
    Decision,
    DemotionTried,
    Event,
    HandOverBegun,
    HandOverEnded,
    HealthChanged,
    NoticesSeen,
    StatusReported,
    TakeBack,
    TransitionBegun,
)
from ha.zkfc.candidacy.state import Candidacy
from tests.ha.zkfc.test_notices import ranked
from tests.ha.zkfc.test_standing import (
    DRAIN,
    NAMESAKE,
    NOW,
    PAUSE,
    PEER,
    S,
    candidacy,
    inside,
)
from tests.ha.zkfc.zkfc_world import Worlds

AFTER = 60.0
LOWER = replace(PEER, state="active", priority=50)
LED = Notices(members=(LOWER,), lock_holder="nn2")
OURS = Notices(members=(replace(LOWER, state="standby"),), lock_holder="nn1")
WELL = StatusReported(S.STANDBY)
PREFERRED = Rank(priority=200, failback_after_seconds=AFTER)
BACK = TakeBack("fail-back: nn1 has priority 200, nn2 50, and was fit for 60 s")

Story = tuple[tuple[float, Event], ...]


def told(state: Candidacy, story: Story) -> list[tuple[float, Decision]]:
    """Return when it decides what, with a report of the NameNode every five seconds in between."""
    found: list[tuple[float, Decision]] = []
    end = max(at for at, _ in story)
    ticks = tuple((5.0 * n, WELL) for n in range(int(end // 5) + 1))
    for at, event in sorted((*story, *ticks), key=lambda one: one[0]):
        result = step(state, event, now=NOW + at)
        state = result.state
        found += [(at, one) for one in result.decisions if isinstance(one, TakeBack)]
    return found


def standby(rank: Rank = PREFERRED) -> Candidacy:
    """Well, ready, in the election and standing by."""
    return inside(candidacy(Notices(lock_holder="nn2"), rank=rank))


NEVER: dict[str, tuple[Candidacy, Notices]] = {
    "it is off": (standby(Rank(priority=200)), LED),
    "a pause": (standby(), replace(LED, pause=PAUSE)),
    "a drain": (standby(), replace(LED, drain=DRAIN)),
    "another controller of ours": (standby(), replace(LED, namesake=NAMESAKE)),
    "nofailover": (standby(replace(PREFERRED, nofailover=True)), LED),
    "an active of the same rank": (
        standby(), replace(LED, members=(replace(LOWER, priority=200),))),
    "an active that is ill": (
        standby(), replace(LED, members=(replace(LOWER, health="unhealthy"),))),
    "one that only has the lock": (
        standby(), replace(LED, members=(replace(LOWER, state="standby"),))),
    "an active that shows no rank, as Hadoop's": (standby(), replace(LED, members=())),
    "nobody active": (standby(), replace(LED, lock_holder=FREE)),
    "the lock is not known": (standby(), replace(LED, lock_holder=None)),
    "a standby that is better still": (
        standby(), replace(LED, members=(LOWER, replace(PEER, namenode="nn3", priority=300)))),
    "we are active": (replace(inside(candidacy(OURS, rank=PREFERRED), S.ACTIVE)), OURS),
}  # fmt: skip


@pytest.mark.row("W26")
@pytest.mark.parametrize("case", NEVER)
def test_w26_it_never_takes_the_role_back_where_anything_is_against_it(case: str) -> None:
    state, notices = NEVER[case]
    assert told(state, ((0.0, NoticesSeen(notices)), (10 * AFTER, WELL))) == []


@pytest.mark.parametrize("case", NEVER)
def test_w26_nor_does_the_time_count_then(case: str) -> None:
    """Asked directly: most of it takes a candidate out of the election as well."""
    state, notices = NEVER[case]
    standing = replace(state.standing, notices=notices)
    assert update_wait(FailBack(since=NOW), standing, FlapSettings(), NOW).since is None


ILL = HealthChanged(Health.UNHEALTHY, Trouble.ILL, "disk")
UNREADY = StatusReported(S.STANDBY, ready=False, not_ready_reason="behind")
STORIES: dict[str, tuple[Story, list[float]]] = {
    "after so long, then after twice and four times that": (
        ((700.0, WELL),), [60.0, 185.0, 430.0]),
    "not sooner": (((59.0, WELL),), []),
    "a pause in between begins it anew": (
        ((30.0, NoticesSeen(replace(LED, pause=PAUSE))), (40.0, NoticesSeen(LED)),
        (41.0, DemotionTried()), (107.0, WELL)), [105.0]),
    "two unready reports begin it anew": (
        ((31.0, UNREADY), (32.0, UNREADY), (36.0, DemotionTried()), (102.0, WELL)), [100.0]),
    "one does not": (((31.0, UNREADY), (99.0, WELL)), [60.0]),
    "an operator's hand-over begins it anew": (
        ((30.0, HandOverBegun()), (40.0, HandOverEnded()), (101.0, WELL)), [100.0]),
    "a cede begins it anew": (
        ((30.0, TransitionBegun()), (30.0, CedeAsked(10.0, needs_fencing=False)), (200.0, WELL)),
        []),
    "illness takes it out": (((30.0, ILL), (200.0, WELL)), []),
}  # fmt: skip


@pytest.mark.row("W26")
@pytest.mark.parametrize("case", STORIES)
def test_w26_when_it_takes_the_role_back(case: str) -> None:
    story, times = STORIES[case]
    found = told(standby(), ((0.0, NoticesSeen(LED)), *story))
    assert found == [(at, BACK) for at in times]


def test_w26_it_waits_until_the_namenode_is_ready_again() -> None:
    late = ((1.0, NoticesSeen(LED)), (62.0, UNREADY), (66.0, WELL))
    assert told(standby(), late) == [(65.0, BACK)]


@pytest.mark.row("W26")
def test_w26_after_repeated_failovers_it_stays_until_they_are_long_ago() -> None:
    moves = tuple(
        (float(at), NoticesSeen(notices))
        for at, notices in ((0, OURS), (1, LED), (2, OURS), (3, LED))
    )
    assert told(standby(), (*moves, (599.0, WELL))) == []
    assert [at for at, _ in told(standby(), (*moves, (700.0, WELL)))][:1] == [665.0]
    assert [at for at, _ in told(standby(), (*moves[2:], (100.0, WELL)))][:1] == [65.0]


@pytest.mark.row("W26")
@pytest.mark.zookeeper
async def test_w26_a_preferred_namenode_that_is_back_takes_the_role_by_a_hand_over(
    worlds: Worlds,
) -> None:
    ranks = {"nn1": Rank(priority=200, failback_after_seconds=0.5), "nn2": Rank(priority=100)}
    async with worlds("nn1", "nn2", settings_hook=ranked(ranks)) as (here):
        one, two = here.nodes
        one.gate.shut()
        await here.expire(one)
        await here.active(two)
        one.gate.open()
        await here.active(one)
        await here.standby(two)
        assert here.fenced() == ["nn1"] * here.fence_count("nn1"), "nn2 handed over politely"
        async with connected(here.zookeeper, deadline_seconds=10.0) as session:
            await here.until(lambda: one.zkfc.attempts.last, "its attempt")
            found: list[FailoverRecord] = []
            while not [record for record in found if record.cause.startswith("fail-back")]:
                entries = await read_history(session, here.zookeeper, 10)
                found = [entry.record for entry in entries if entry.record is not None]
        (record,) = (one for one in found if one.cause.startswith("fail-back"))
        assert record.cause == "fail-back: nn1 has priority 200, nn2 100, and was fit for 0.5 s"
        assert (record.kind, record.result) == (FailoverKind.AUTO, FailoverResult.SUCCEEDED)
        assert (record.actor, record.previous) == (None, "nn2")
