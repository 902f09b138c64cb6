"""Checks each step of the election; a controller whose step fails the check must end.

The checks repeat the rules that keep two NameNodes from being active in another form: as what must
be true before each action.
"""

from ha.elector import events
from ha.elector.actions import ServeAsActive, WriteBreadcrumb
from ha.elector.model import Link, Role, Stage
from ha.elector.state import ElectorState, Step
from ha.invariant import ensure


def check(before: ElectorState, event: events.Event, step: Step) -> Step:
    """Return the step itself; raise InvariantBroken if it is wrong."""
    after = step.state
    held = after.wanted and after.holding and after.link is Link.CONNECTED
    taking_over = after.role is Role.TAKING_OVER
    ensure(
        held or after.role not in (Role.TAKING_OVER, Role.ACTIVE),
        "who takes over or is active is in the election and has the lock",
    )
    ensure(taking_over is (after.stage is not Stage.NONE), "a takeover waits for one answer")
    ensure(after.holding or not after.serving, "a promotion counts under the lock it was made")
    if after.attempt != before.attempt:
        ensure(_shows_own_lock(event, after), "a takeover begins with our session's own lock")
    if after.role is Role.ACTIVE and before.role is not Role.ACTIVE:
        ensure(
            _is_promoted(before, event), "an active was promoted in the attempt that has the lock"
        )
    for action in step.actions:
        match action:
            case WriteBreadcrumb():
                ensure(
                    _may_write_breadcrumb(before, event),
                    "our name is written when the former active is fenced, or there is none",
                )
            case ServeAsActive():
                ensure(
                    before.stage is Stage.WRITING
                    and isinstance(event, events.BreadcrumbWritten)
                    and (event.session, event.attempt) == (after.session, after.attempt),
                    "our NameNode is promoted when our own session has written its name",
                )
            case _:
                pass
    return step


def ensure_attempt(state: ElectorState, attempt: int, stage: Stage) -> None:
    """Ensure that a stage of a takeover begins only while its attempt holds the lock."""
    ensure(
        (state.role, state.stage, state.attempt) == (Role.TAKING_OVER, stage, attempt),
        f"attempt {attempt} is {stage.value} while it has the lock",
    )


def _shows_own_lock(event: events.Event, state: ElectorState) -> bool:
    """Return whether the event shows that our present session owns the lock."""
    ours = isinstance(event, events.LockCreated) or (
        isinstance(event, events.LockSeen) and event.ours
    )
    return ours and getattr(event, "session", None) == state.session


def _is_promoted(before: ElectorState, event: events.Event) -> bool:
    if isinstance(event, events.Promoted):
        return (before.stage, before.attempt) == (Stage.PROMOTING, event.attempt)
    # The same session has held the lock without a break, and was only suspended.
    return before.serving and _shows_own_lock(event, before)


def _may_write_breadcrumb(before: ElectorState, event: events.Event) -> bool:
    """Return whether the earlier active was fenced, or there is none or it is ours."""
    match event:
        case events.OldActiveFenced(attempt=attempt):
            return (before.stage, before.attempt) == (Stage.FENCING, attempt)
        case events.BreadcrumbRead(session=session, attempt=attempt, breadcrumb=found):
            asked = (before.session, before.attempt, Stage.READING)
            none_to_fence = found is None or found.content == before.data
            return (session, attempt, before.stage) == asked and none_to_fence
        case _:
            return False
