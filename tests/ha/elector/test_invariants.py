"""Each invariant of the election is seen to break, by a bug that is planted into the core."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from ha.elector import core, takeover
from ha.elector.actions import ServeAsActive, WriteBreadcrumb
from ha.elector.core import step
from ha.elector.events import (
    BreadcrumbRead,
    BreadcrumbWritten,
    Event,
    LockCreated,
    LockGone,
    LockSeen,
    LockTaken,
    OldActiveFenced,
    Promoted,
    SessionExpired,
    SessionOpened,
    SessionSuspended,
)
from ha.elector.invariants import check, ensure_attempt
from ha.elector.model import Breadcrumb, Link, Role, Stage
from ha.elector.state import ElectorState, Step
from ha.invariant import InvariantBroken
from tests.ha.elector.test_core import (
    ACTIVE,
    BACK,
    CREATING,
    FENCING,
    OLD,
    PROMOTING,
    READING,
    STALE,
    STANDBY,
    SUSPENDED,
    TAKING,
    WRITING,
    A,
    S,
)

FOREIGN = Breadcrumb(b"other", 7)
Bug = tuple[object, str, Callable[..., Step], ElectorState, Event, str]


def _promoted_at_once(state: ElectorState, *_: Any) -> Step:  # noqa: ANN401
    promoting = replace(state, stage=Stage.PROMOTING)
    return Step(promoting, (ServeAsActive(state.attempt),))


def _of_the_present_session(state: ElectorState, event: Any) -> Step:  # noqa: ANN401
    return _LOCK_NEWS(state, replace(event, session=state.session))


def _of_the_present_attempt(state: ElectorState, event: Any) -> Step:  # noqa: ANN401
    named = {name: getattr(state, name) for name in ("session", "attempt") if hasattr(event, name)}
    return _TAKEOVER_NEWS(state, replace(event, **named))


_LOCK_NEWS, _TAKEOVER_NEWS = core._handle_lock, core._handle_takeover
HAS_LOCK = "is in the election and has the lock"
OWN_LOCK = "begins with our session's own lock"
NAME = "our name is written when"
WRITTEN = "promoted when our own session has written"
IN_ATTEMPT = "promoted in the attempt that has the lock"

BUGS: dict[str, Bug] = {
    "active, and nobody knows whose the lock is": (
        core, "_enter_neutral", lambda state: Step(state), ACTIVE, SessionSuspended(S), HAS_LOCK),
    "taking over, and the lock is gone": (
        core, "_create_anew", lambda state: Step(replace(state, holding=False)),
        READING, LockGone(S), HAS_LOCK),
    "taking over, and out of the election": (
        core, "_handle_own_lock",
        lambda state: Step(replace(TAKING, stage=Stage.READING, wanted=False)),
        STANDBY, LockSeen(S, ours=True), HAS_LOCK),
    "taking over, and waiting for nothing": (
        takeover, "_write", lambda state: Step(replace(state, stage=Stage.NONE)),
        FENCING, OldActiveFenced(A), "waits for one answer"),
    "a promotion that outlives its lock": (
        core, "_create_anew",
        lambda state: Step(replace(state, role=Role.NEUTRAL, holding=False)),
        ACTIVE, LockGone(S), "counts under the lock"),
    "another's lock is taken for ours": (
        core, "_stand_by", lambda state: core._handle_own_lock(state),
        STANDBY, LockSeen(S, ours=False), OWN_LOCK),
    "a lock that is there is taken for ours": (
        core, "_look_at_lock", lambda state: core._handle_own_lock(state),
        CREATING, LockTaken(S), OWN_LOCK),
    "the lock of another session is taken for ours": (
        core, "_handle_lock", _of_the_present_session, CREATING, LockCreated(OLD), OWN_LOCK),
    "written without the fence's answer": (
        takeover, "_after_read", lambda state, _found: takeover._write(state), READING,
        BreadcrumbRead(S, A, FOREIGN), NAME),
    "written on the fence's answer to another attempt": (
        core, "_handle_takeover", _of_the_present_attempt, FENCING, OldActiveFenced(STALE), NAME),
    "written on what another session has read": (
        core, "_handle_takeover", _of_the_present_attempt, READING, BreadcrumbRead(OLD, A, None),
        NAME),
    "promoted without the fence's answer": (
        takeover, "_after_read", _promoted_at_once,
        READING, BreadcrumbRead(S, A, FOREIGN), WRITTEN),
    "promoted without our name": (
        takeover, "_write", _promoted_at_once, FENCING, OldActiveFenced(A), WRITTEN),
    "promoted on what another session has written": (
        core, "_handle_takeover", _of_the_present_attempt, WRITING, BreadcrumbWritten(OLD, A, 8),
        WRITTEN),
    "active by a promotion of another attempt": (
        core, "_handle_takeover", _of_the_present_attempt, PROMOTING, Promoted(STALE), IN_ATTEMPT),
    "active again by a reconnect": (
        core, "_handle_opened",
        lambda state: Step(replace(state, role=Role.ACTIVE, link=Link.CONNECTED)), SUSPENDED,
        SessionOpened(S), IN_ATTEMPT),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_breaks_an_invariant(bug: str) -> None:
    place, name, planted, state, event, invariant = BUGS[bug]
    step(state, event)
    with patch.object(place, name, planted), pytest.raises(InvariantBroken, match=invariant):
        step(state, event)


def test_what_keeps_an_active_that_was_out_of_touch_breaks_none() -> None:
    assert step(BACK, LockSeen(S, ours=True)).state.role is Role.ACTIVE
    assert step(SUSPENDED, SessionExpired(S)).state.role is Role.NEUTRAL


@pytest.mark.parametrize(
    "state", [READING, replace(FENCING, attempt=STALE), STANDBY, replace(PROMOTING, role=Role.INIT)]
)
def test_work_does_not_begin_for_an_attempt_that_does_not_wait_for_it(state: ElectorState) -> None:
    ensure_attempt(FENCING, A, Stage.FENCING)
    with pytest.raises(InvariantBroken, match="while it has the lock"):
        ensure_attempt(state, A, Stage.FENCING)


def test_who_was_never_promoted_is_not_active_by_a_look() -> None:
    """Require a promotion under the lock: the lock alone makes no NameNode active."""
    before = replace(SUSPENDED, serving=False, link=Link.CONNECTED, role=Role.NEUTRAL)
    active = Step(replace(ACTIVE, attempt=before.attempt))
    with pytest.raises(InvariantBroken, match=IN_ATTEMPT):
        check(before, LockSeen(S, ours=True), active)


def test_news_of_the_lock_says_nothing_of_the_former_active() -> None:
    """Write our name at two events only, of which this is none."""
    writing = Step(WRITING, (WriteBreadcrumb(S, WRITING.attempt, WRITING.data, None),))
    with pytest.raises(InvariantBroken, match=NAME):
        check(WRITING, LockSeen(S, ours=True), writing)
