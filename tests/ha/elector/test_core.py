"""The table of docs/reference/election.md#events, row by row, against the pure core."""

from dataclasses import replace

import pytest

from ha.elector.actions import (
    AbandonTakeover,
    Action,
    CloseSession,
    CreateLock,
    DeleteBreadcrumb,
    EnterNeutral,
    FenceOldActive,
    GiveUp,
    OpenSession,
    ReadBreadcrumb,
    RecordEnded,
    RecordSettled,
    ReleaseLock,
    ReportFailure,
    ServeAsActive,
    ServeAsStandby,
    WatchLock,
    WriteBreadcrumb,
)
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
from ha.elector.model import AttemptNumber, Breadcrumb, Link, Role, SessionNumber, Stage, Term
from ha.elector.state import ElectorState

S, OLD, NEXT = SessionNumber(3), SessionNumber(2), SessionNumber(4)
A, STALE = AttemptNumber(5), AttemptNumber(4)
ME = b"me"

OUT = ElectorState(session=S, attempt=A)
WANTING = replace(OUT, wanted=True, data=ME, link=Link.CONNECTED)
CONNECTING = replace(WANTING, link=Link.CONNECTING)
CREATING = replace(WANTING, creating=True)
STANDBY = replace(WANTING, role=Role.STANDBY)
TAKING = replace(WANTING, role=Role.TAKING_OVER, holding=True)
READING = replace(TAKING, stage=Stage.READING)
FENCING = replace(TAKING, stage=Stage.FENCING, breadcrumb_version=7)
WRITING = replace(TAKING, stage=Stage.WRITING)
PROMOTING = replace(TAKING, stage=Stage.PROMOTING, breadcrumb_version=8)
ACTIVE = replace(WANTING, role=Role.ACTIVE, holding=True, serving=True, breadcrumb_version=8)
SUSPENDED = replace(ACTIVE, role=Role.NEUTRAL, link=Link.SUSPENDED)
BACK = replace(SUSPENDED, link=Link.CONNECTED, looking=True)
NEUTRAL = replace(WANTING, role=Role.NEUTRAL)

TAKE = (ReadBreadcrumb(S, AttemptNumber(6)), WatchLock(S))
AGAIN = (CloseSession(S), OpenSession(NEXT))
R = Role

CASES: dict[str, tuple[ElectorState, Event, Role, tuple[Action, ...]]] = {
    # join and quit
    "joining opens a session": (OUT, JoinRequested(ME), R.INIT, (OpenSession(NEXT),)),
    "joining twice changes nothing": (STANDBY, JoinRequested(b"x"), R.STANDBY, ()),
    "quitting while out changes nothing": (OUT, QuitRequested(keep_breadcrumb=False), R.INIT, ()),
    "a standby's quit touches no breadcrumb": (
        STANDBY, QuitRequested(keep_breadcrumb=False), R.INIT, (CloseSession(S),)),
    "an active's clean quit deletes the breadcrumb while it holds the lock": (
        ACTIVE, QuitRequested(keep_breadcrumb=False), R.INIT,
        (DeleteBreadcrumb(S, 8), ReleaseLock(S), CloseSession(S))),
    "an active's quit that needs fencing keeps the breadcrumb": (
        ACTIVE, QuitRequested(keep_breadcrumb=True), R.INIT, (ReleaseLock(S), CloseSession(S))),
    "quitting half-way abandons the takeover and keeps the breadcrumb": (
        PROMOTING, QuitRequested(keep_breadcrumb=False), R.INIT,
        (AbandonTakeover(A), ReleaseLock(S), CloseSession(S))),
    "quitting without a connection can only close": (
        SUSPENDED, QuitRequested(keep_breadcrumb=False), R.INIT, (CloseSession(S),)),
    # create
    "connected for the first time: create": (
        CONNECTING, SessionOpened(S), R.INIT, (CreateLock(S, ME),)),
    "created: take over": (CREATING, LockCreated(S), R.TAKING_OVER, TAKE),
    "taken: whose it is must be asked": (CREATING, LockTaken(S), R.INIT, (WatchLock(S),)),
    "creation unknown: only a new session settles it": (
        CREATING, OutcomeUnknown(S, "create"), R.INIT, AGAIN),
    "creation refused: give up": (
        CREATING, RequestRefused(S, "create", "no node"), R.INIT,
        (CloseSession(S), GiveUp("create: no node"))),
    "created, told by a dead session": (CREATING, LockCreated(OLD), R.INIT, ()),
    "created, told after a suspension": (SUSPENDED, LockCreated(S), R.NEUTRAL, ()),
    # look
    "ours as a newcomer (an earlier create won)": (WANTING, LockSeen(S, ours=True), R.TAKING_OVER,
        TAKE),
    "ours as the active": (ACTIVE, LockSeen(S, ours=True), R.ACTIVE, ()),
    "ours while taking over": (FENCING, LockSeen(S, ours=True), R.TAKING_OVER, ()),
    "ours again after a suspension: nothing has moved": (BACK, LockSeen(S, ours=True), R.ACTIVE,
        ()),
    "ours in a neutral that never served": (NEUTRAL, LockSeen(S, ours=True), R.TAKING_OVER, TAKE),
    "another's as a newcomer": (WANTING, LockSeen(S, ours=False), R.STANDBY, (ServeAsStandby(),)),
    "another's as a standby": (STANDBY, LockSeen(S, ours=False), R.STANDBY, ()),
    "another's as the active: demote ourselves": (
        ACTIVE, LockSeen(S, ours=False), R.STANDBY, (ServeAsStandby(),)),
    "another's while promoting: demote after abandoning": (
        PROMOTING, LockSeen(S, ours=False), R.STANDBY, (AbandonTakeover(A), ServeAsStandby())),
    "another's after a suspension": (BACK, LockSeen(S, ours=False), R.STANDBY,
        (ServeAsStandby(),)),
    "another's, told by a dead session": (ACTIVE, LockSeen(OLD, ours=False), R.ACTIVE, ()),
    "a look that is not answered is repeated later": (
        replace(STANDBY, looking=True), LookUnanswered(S), R.STANDBY, ()),
    "a look refused for good": (STANDBY, RequestRefused(S, "look", "no rights"), R.INIT,
        (CloseSession(S), GiveUp("look: no rights"))),
    # watch
    "gone as a standby: create, without neutral": (
        STANDBY, LockGone(S), R.STANDBY, (CreateLock(S, ME),)),
    "gone as the active: neutral, and create": (
        ACTIVE, LockGone(S), R.NEUTRAL, (EnterNeutral(), CreateLock(S, ME))),
    "gone while fencing: abandon, neutral, create": (
        FENCING, LockGone(S), R.NEUTRAL,
        (AbandonTakeover(A), EnterNeutral(), CreateLock(S, ME))),
    "gone, told twice: one create": (CREATING, LockGone(S), R.INIT, ()),
    "gone, told by a dead session": (ACTIVE, LockGone(OLD), R.ACTIVE, ()),
    "changed: look": (STANDBY, LockChanged(S), R.STANDBY, (WatchLock(S),)),
    "a second has passed: look": (STANDBY, LookDue(), R.STANDBY, (WatchLock(S),)),
    "a second has passed under a look": (
        replace(STANDBY, looking=True), LookDue(), R.STANDBY, ()),
    "a second has passed out of the election": (OUT, LookDue(), R.INIT, ()),
    "a second has passed without a connection": (SUSPENDED, LookDue(), R.NEUTRAL, ()),
    # session
    "suspended as a standby": (STANDBY, SessionSuspended(S), R.NEUTRAL, (EnterNeutral(),)),
    "suspended as the active: the NameNode stays": (
        ACTIVE, SessionSuspended(S), R.NEUTRAL, (EnterNeutral(),)),
    "suspended while fencing: stop it": (
        FENCING, SessionSuspended(S), R.NEUTRAL, (AbandonTakeover(A), EnterNeutral())),
    "suspended before any answer": (CREATING, SessionSuspended(S), R.INIT, ()),
    "suspended twice": (SUSPENDED, SessionSuspended(S), R.NEUTRAL, ()),
    "connected again: look, never create": (SUSPENDED, SessionOpened(S), R.NEUTRAL,
        (WatchLock(S),)),
    "connected while connected": (STANDBY, SessionOpened(S), R.STANDBY, ()),
    "expired as the active": (ACTIVE, SessionExpired(S), R.NEUTRAL, (EnterNeutral(), *AGAIN)),
    "expired while promoting": (
        PROMOTING, SessionExpired(S), R.NEUTRAL, (AbandonTakeover(A), EnterNeutral(), *AGAIN)),
    "expired while suspended": (SUSPENDED, SessionExpired(S), R.NEUTRAL, AGAIN),
    "an old session expired": (ACTIVE, SessionExpired(OLD), R.ACTIVE, ()),
    "expired before any join": (OUT, SessionExpired(S), R.INIT, ()),
    "refused": (CONNECTING, SessionRefused(S, "auth"), R.INIT, (CloseSession(S), GiveUp("auth"))),
    # taking over
    "no breadcrumb: write ours": (
        READING, BreadcrumbRead(S, A, None), R.TAKING_OVER, (WriteBreadcrumb(S, A, ME, None),)),
    "our own breadcrumb: no fencing": (
        READING, BreadcrumbRead(S, A, Breadcrumb(ME, 7)), R.TAKING_OVER,
        (WriteBreadcrumb(S, A, ME, 7),)),
    "our own breadcrumb, in doubt: whoever wrote it may spare another": (
        READING, BreadcrumbRead(S, A, Breadcrumb(ME, 7, Term.DOUBTED)), R.TAKING_OVER,
        (FenceOldActive(A, ME, Term.DOUBTED),)),
    "another's breadcrumb: fence": (
        READING, BreadcrumbRead(S, A, Breadcrumb(b"x", 7)), R.TAKING_OVER,
        (FenceOldActive(A, b"x"),)),
    "read for an abandoned attempt": (
        READING, BreadcrumbRead(S, STALE, None), R.TAKING_OVER, ()),
    "read in a dead session": (READING, BreadcrumbRead(OLD, A, None), R.TAKING_OVER, ()),
    "read twice": (PROMOTING, BreadcrumbRead(S, A, None), R.TAKING_OVER, ()),
    "fenced: write at the version read": (
        FENCING, OldActiveFenced(A), R.TAKING_OVER, (WriteBreadcrumb(S, A, ME, 7),)),
    "fenced for an abandoned attempt": (FENCING, OldActiveFenced(STALE), R.TAKING_OVER, ()),
    "fenced after the takeover ended": (STANDBY, OldActiveFenced(A), R.STANDBY, ()),
    "written: promote": (
        WRITING, BreadcrumbWritten(S, A, 8), R.TAKING_OVER, (ServeAsActive(A),)),
    "written in a dead session": (WRITING, BreadcrumbWritten(OLD, A, 8), R.TAKING_OVER, ()),
    "promoted: active, and look once more": (PROMOTING, Promoted(A), R.ACTIVE,
        (WatchLock(S), RecordSettled(S, ME))),
    "promoted for an abandoned attempt": (PROMOTING, Promoted(STALE), R.TAKING_OVER, ()),
    "promoted after the loss": (NEUTRAL, Promoted(A), R.NEUTRAL, ()),
    "failed: out of the election": (
        FENCING, TakeoverFailed(A, "no"), R.INIT,
        (ReleaseLock(S), CloseSession(S), ReportFailure(A, "no"))),
    "failed in an abandoned attempt": (FENCING, TakeoverFailed(STALE, "no"), R.TAKING_OVER, ()),
    "writing unknown: a new session": (
        WRITING, OutcomeUnknown(S, "write"), R.NEUTRAL,
        (AbandonTakeover(A), EnterNeutral(), *AGAIN)),
}  # fmt: skip


@pytest.mark.row("W24")
@pytest.mark.parametrize("case", CASES)
def test_event_table(case: str) -> None:
    state, event, role, actions = CASES[case]
    result = step(state, event)
    assert (result.state.role, result.actions) == (role, actions)


def test_joining_without_data_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="data"):
        step(OUT, JoinRequested(b""))


def test_quitting_and_joining_again_uses_a_new_session_and_attempt() -> None:
    out = step(ACTIVE, QuitRequested(keep_breadcrumb=True)).state
    joined = step(out, JoinRequested(ME)).state
    assert joined.session == NEXT
    taking = step(step(joined, SessionOpened(NEXT)).state, LockCreated(NEXT)).state
    assert taking.attempt == A + 1


def test_the_version_we_wrote_is_the_one_we_delete() -> None:
    active = step(step(WRITING, BreadcrumbWritten(S, A, 12)).state, Promoted(A)).state
    left = step(active, QuitRequested(keep_breadcrumb=False))
    assert DeleteBreadcrumb(S, 12) in left.actions


def test_after_an_expiry_the_lock_must_be_won_and_the_takeover_done_again() -> None:
    state = step(ACTIVE, SessionExpired(S)).state
    state = step(state, SessionOpened(NEXT)).state
    result = step(state, LockCreated(NEXT))
    assert result.state.role is Role.TAKING_OVER
    assert not result.state.serving


def test_a_lock_that_was_gone_must_be_taken_over_again() -> None:
    result = step(step(ACTIVE, LockGone(S)).state, LockCreated(S))
    assert result.state.role is Role.TAKING_OVER
    assert not result.state.serving


def test_the_end_of_the_active_process_is_recorded_before_the_lock_is_given_up() -> None:
    left = step(ACTIVE, QuitRequested(keep_breadcrumb=True, ended="pid 7"))
    assert left.actions == (RecordEnded(S, "pid 7"), ReleaseLock(S), CloseSession(S))
    for state in (STANDBY, PROMOTING, SUSPENDED):
        left = step(state, QuitRequested(keep_breadcrumb=True, ended="pid 7"))
        assert not [one for one in left.actions if isinstance(one, RecordEnded)]
