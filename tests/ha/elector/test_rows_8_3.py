"""The rows of Hadoop's TestActiveStandbyElector, by the same names, on our core.

Where ours differs, by design: a connection that is lost ends nothing, however often, and
only what no retry can change makes the elector give up.
"""

from dataclasses import dataclass, field

import pytest

from ha.elector import actions
from ha.elector.core import step
from ha.elector.events import (
    BreadcrumbRead,
    BreadcrumbWritten,
    Event,
    JoinRequested,
    LockChanged,
    LockCreated,
    LockGone,
    LockSeen,
    LockTaken,
    LookDue,
    LookUnanswered,
    OldActiveFenced,
    OutcomeUnknown,
    Promoted,
    QuitRequested,
    RequestRefused,
    SessionExpired,
    SessionOpened,
    SessionRefused,
    SessionSuspended,
    TakeoverFailed,
)
from ha.elector.model import AttemptNumber, Breadcrumb, Role, SessionNumber
from ha.elector.state import ElectorState
from ha.zkfc.candidacy.state import BackOff

ME, OTHER = b"me", b"other"
ONE, TWO = SessionNumber(1), SessionNumber(2)
FIRST, SECOND = AttemptNumber(1), AttemptNumber(2)


@dataclass
class Election:
    """An elector that gets events, and remembers all that it asked for."""

    state: ElectorState = field(default_factory=ElectorState)
    asked: list[actions.Action] = field(default_factory=list)

    def saw(self, *events: Event) -> list[actions.Action]:
        new: list[actions.Action] = []
        for event in events:
            result = step(self.state, event)
            self.state = result.state
            new.extend(result.actions)
        self.asked.extend(new)
        return new

    def count(self, kind: type[actions.Action]) -> int:
        return sum(isinstance(action, kind) for action in self.asked)


def _creating() -> Election:
    election = Election()
    election.saw(JoinRequested(ME), SessionOpened(ONE))
    return election


def _active() -> Election:
    election = _creating()
    election.saw(
        LockCreated(ONE),
        BreadcrumbRead(ONE, FIRST, None),
        BreadcrumbWritten(ONE, FIRST, 0),
        Promoted(FIRST),
        LockSeen(ONE, ours=True),
    )
    assert election.state.role is Role.ACTIVE
    return election


def _standby() -> Election:
    election = _creating()
    election.saw(LockTaken(ONE), LockSeen(ONE, ours=False))
    assert election.state.role is Role.STANDBY
    return election


@pytest.mark.row("8.3 testJoinElectionException")
def test_row_8_3_join_election_exception() -> None:
    election = Election()
    with pytest.raises(ValueError, match="data"):
        election.saw(JoinRequested(b""))
    assert election.asked == []


@pytest.mark.row("8.3 testJoinElection")
def test_row_8_3_join_election() -> None:
    election = _creating()
    election.saw(JoinRequested(ME), JoinRequested(b"other data"))
    assert election.asked == [actions.OpenSession(ONE), actions.CreateLock(ONE, ME)]


@pytest.mark.row("8.3 testCreateNodeResultBecomeActive")
def test_row_8_3_create_node_result_become_active() -> None:
    election = _active()
    election.saw(LockSeen(ONE, ours=True), LookDue(), LockSeen(ONE, ours=True))
    assert election.count(actions.ServeAsActive) == 1
    assert election.count(actions.CreateLock) == 1
    assert election.count(actions.EnterNeutral) == election.count(actions.ServeAsStandby) == 0


@pytest.mark.row("8.3 testFailToBecomeActive")
def test_row_8_3_fail_to_become_active() -> None:
    election = _creating()
    election.saw(LockCreated(ONE), BreadcrumbRead(ONE, FIRST, None))
    failed = election.saw(BreadcrumbWritten(ONE, FIRST, 0), TakeoverFailed(FIRST, "refused"))
    assert failed[1:] == [
        actions.ReleaseLock(ONE),
        actions.CloseSession(ONE),
        actions.ReportFailure(FIRST, "refused"),
    ]
    # A controller that joins again waits first: that is the candidacy's to decide.
    assert BackOff().after(1) > 0
    again = election.saw(JoinRequested(ME), SessionOpened(TWO))
    assert again == [actions.OpenSession(TWO), actions.CreateLock(TWO, ME)]


@pytest.mark.row("8.3 testFailToBecomeActiveAfterZKDisconnect")
def test_row_8_3_fail_to_become_active_after_zk_disconnect() -> None:
    election = _creating()
    back = election.saw(SessionSuspended(ONE), SessionOpened(ONE), LockSeen(ONE, ours=True))
    assert actions.WatchLock(ONE) in back
    assert election.state.role is Role.TAKING_OVER, "the create had taken effect"
    election.saw(BreadcrumbRead(ONE, FIRST, None), TakeoverFailed(FIRST, "refused"))
    again = election.saw(JoinRequested(ME), SessionOpened(TWO))
    assert again == [actions.OpenSession(TWO), actions.CreateLock(TWO, ME)]


@pytest.mark.row("8.3 testFencesOldActive")
def test_row_8_3_fences_old_active() -> None:
    election = _creating()
    election.saw(LockCreated(ONE))
    fence = election.saw(BreadcrumbRead(ONE, FIRST, Breadcrumb(OTHER, 0)))
    assert fence == [actions.FenceOldActive(FIRST, OTHER)]
    assert election.saw(OldActiveFenced(FIRST)) == [actions.WriteBreadcrumb(ONE, FIRST, ME, 0)]
    assert election.saw(BreadcrumbWritten(ONE, FIRST, 1)) == [actions.ServeAsActive(FIRST)]


@pytest.mark.row("8.3 testQuitElectionRemovesBreadcrumbNode")
def test_row_8_3_quit_election_removes_breadcrumb_node() -> None:
    left = _active().saw(QuitRequested(keep_breadcrumb=False))
    assert left == [
        actions.DeleteBreadcrumb(ONE, 0),
        actions.ReleaseLock(ONE),
        actions.CloseSession(ONE),
    ]


@pytest.mark.row("8.3 testCreateNodeResultBecomeStandby")
def test_row_8_3_create_node_result_become_standby() -> None:
    election = _standby()
    assert election.count(actions.ServeAsStandby) == election.count(actions.WatchLock) == 1


@pytest.mark.row("8.3 testCreateNodeResultError")
def test_row_8_3_create_node_result_error() -> None:
    election = _creating()
    gave_up = election.saw(RequestRefused(ONE, "create the lock /x/Lock", "no node (NoNodeError)"))
    assert gave_up[-1] == actions.GiveUp("create the lock /x/Lock: no node (NoNodeError)")


@pytest.mark.row("8.3 testCreateNodeResultRetryBecomeActive")
def test_row_8_3_create_node_result_retry_become_active() -> None:
    election = _creating()
    for _ in range(10):  # Hadoop's gives up at the fourth
        election.saw(SessionSuspended(ONE), SessionOpened(ONE), LockGone(ONE))
    election.saw(LockTaken(ONE), LockSeen(ONE, ours=True))
    assert election.state.role is Role.TAKING_OVER
    assert election.count(actions.GiveUp) == 0


@pytest.mark.row("8.3 testCreateNodeResultRetryBecomeStandby")
def test_row_8_3_create_node_result_retry_become_standby() -> None:
    election = _creating()
    election.saw(SessionSuspended(ONE), SessionOpened(ONE), LockSeen(ONE, ours=False))
    assert election.state.role is Role.STANDBY
    assert election.count(actions.ServeAsStandby) == election.count(actions.WatchLock) == 1


@pytest.mark.row("8.3 testCreateNodeResultRetryNoNode")
def test_row_8_3_create_node_result_retry_no_node() -> None:
    election = _creating()
    election.saw(SessionSuspended(ONE), SessionOpened(ONE), SessionSuspended(ONE))
    assert election.saw(SessionOpened(ONE), LockGone(ONE))[-1] == actions.CreateLock(ONE, ME)
    assert election.count(actions.CreateLock) == 2


@pytest.mark.row("8.3 testStatNodeRetry")
def test_row_8_3_stat_node_retry() -> None:
    election = _standby()
    for _ in range(10):  # Hadoop's gives up at the fourth
        assert election.saw(LookDue(), LookUnanswered(ONE)) == [actions.WatchLock(ONE)]
    assert election.state.role is Role.STANDBY


@pytest.mark.row("8.3 testStatNodeError")
def test_row_8_3_stat_node_error() -> None:
    election = _active()
    election.saw(LookDue(), RequestRefused(ONE, "look at the lock", "no rights"))
    assert election.asked[-1] == actions.GiveUp("look at the lock: no rights")
    assert election.count(actions.EnterNeutral) == 0


@pytest.mark.row("8.3 testProcessCallbackEventNone")
def test_row_8_3_process_callback_event_none() -> None:
    election = Election()
    assert election.saw(JoinRequested(ME)) == [actions.OpenSession(ONE)]
    election.saw(SessionOpened(ONE), LockCreated(ONE), BreadcrumbRead(ONE, FIRST, None))
    election.saw(BreadcrumbWritten(ONE, FIRST, 0), Promoted(FIRST), LockSeen(ONE, ours=True))
    assert election.saw(SessionSuspended(ONE)) == [actions.EnterNeutral()]
    assert election.saw(SessionOpened(ONE)) == [actions.WatchLock(ONE)]
    expired = election.saw(SessionSuspended(ONE), SessionExpired(ONE))
    assert expired == [actions.CloseSession(ONE), actions.OpenSession(TWO)], "no second neutral"
    created = election.saw(SessionOpened(TWO), LockCreated(TWO))
    assert created[0] == actions.CreateLock(TWO, ME)
    written = BreadcrumbWritten(TWO, SECOND, 1)
    election.saw(BreadcrumbRead(TWO, SECOND, Breadcrumb(ME, 0)), written, Promoted(SECOND))
    assert election.state.role is Role.ACTIVE
    assert election.saw(SessionRefused(TWO, "authentication failed"))[-1] == actions.GiveUp(
        "authentication failed"
    )


@pytest.mark.row("8.3 testProcessCallbackEventNode")
def test_row_8_3_process_callback_event_node() -> None:
    standby = _standby()
    assert standby.saw(LockChanged(ONE)) == [actions.WatchLock(ONE)]
    assert standby.saw(LockGone(ONE)) == [actions.CreateLock(ONE, ME)], "no neutral for a standby"
    active = _active()
    assert active.saw(LockGone(ONE)) == [actions.EnterNeutral(), actions.CreateLock(ONE, ME)]
    # Hadoop's fatal "watch with no path": kazoo's session events never reach the watcher.
    out = _active()
    out.saw(RequestRefused(ONE, "look at the lock", "odd"))
    assert out.saw(LockChanged(ONE), LookDue(), LockGone(ONE)) == [], "no further watches"


@pytest.mark.row("8.3 testSuccessiveStandbyCalls")
def test_row_8_3_successive_standby_calls() -> None:
    election = _standby()
    again = election.saw(LockGone(ONE), LockTaken(ONE), LockSeen(ONE, ours=False))
    assert again == [actions.CreateLock(ONE, ME), actions.WatchLock(ONE)]
    assert election.count(actions.ServeAsStandby) == 1


@pytest.mark.row("8.3 testQuitElection")
def test_row_8_3_quit_election() -> None:
    election = _creating()
    assert election.saw(QuitRequested(keep_breadcrumb=True)) == [actions.CloseSession(ONE)]
    assert election.saw(LockChanged(ONE), LookDue()) == [], "no watches"
    again = election.saw(JoinRequested(ME), SessionOpened(TWO), LockTaken(TWO))
    assert again == [actions.OpenSession(TWO), actions.CreateLock(TWO, ME), actions.WatchLock(TWO)]


@pytest.mark.row("8.3 testBecomeActiveBeforeServiceHealthy")
def test_row_8_3_become_active_before_service_healthy() -> None:
    election = Election()
    assert election.saw(SessionExpired(SessionNumber(0)), SessionExpired(ONE)) == []


@pytest.mark.row("W24")
def test_w24_an_elector_that_left_is_not_brought_back_by_an_expiry() -> None:
    election = _active()
    election.saw(QuitRequested(keep_breadcrumb=True))
    assert election.saw(SessionExpired(ONE), SessionOpened(ONE), LockGone(ONE), LookDue()) == []
    assert not election.state.wanted


@pytest.mark.row("8.13 12")
def test_8_13_12_node_exists_after_a_lost_create_is_settled_by_the_owner() -> None:
    for ours, role in ((True, Role.TAKING_OVER), (False, Role.STANDBY)):
        election = _creating()
        taken = election.saw(SessionSuspended(ONE), SessionOpened(ONE), LockGone(ONE))
        assert taken[-1] == actions.CreateLock(ONE, ME)
        election.saw(LockTaken(ONE), LockSeen(ONE, ours=ours))
        assert election.state.role is role


def test_an_outcome_that_nobody_knows_closes_the_session_and_looks_again() -> None:
    election = _creating()
    unknown = election.saw(OutcomeUnknown(ONE, "create the lock"))
    assert unknown == [actions.CloseSession(ONE), actions.OpenSession(TWO)]
    # The ghost of the old session's create is another's lock, until that session is over.
    ghost = election.saw(SessionOpened(TWO), LockTaken(TWO), LockSeen(TWO, ours=False))
    assert ghost[-1] == actions.ServeAsStandby()
    assert election.saw(LockCreated(ONE), LockSeen(ONE, ours=True)) == []
    assert election.saw(LockGone(TWO)) == [actions.CreateLock(TWO, ME)]
