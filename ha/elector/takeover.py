"""The stages of a takeover: read the breadcrumb, fence, write it, promote, read the lock again.

The breadcrumb is written before the promotion (docs/reference/election.md#order-of-a-takeover), so
that the next owner of the lock finds and fences a NameNode whose promotion succeeds too late.
"""

from dataclasses import replace
from typing import assert_never

from ha.elector import actions
from ha.elector.events import BreadcrumbRead, BreadcrumbWritten, OldActiveFenced, Promoted
from ha.elector.model import Breadcrumb, Role, Stage, Term
from ha.elector.state import ElectorState, Step


def advance_takeover(
    state: ElectorState,
    event: BreadcrumbRead | BreadcrumbWritten | OldActiveFenced | Promoted,
) -> Step:
    """Return the step to the next stage; ignore an answer for which this stage does not wait."""
    match event:
        case BreadcrumbRead():
            return (
                _after_read(state, event.breadcrumb)
                if state.stage is Stage.READING
                else Step(state)
            )
        case OldActiveFenced():
            return _write(state) if state.stage is Stage.FENCING else Step(state)
        case BreadcrumbWritten():
            return _promote(state, event.version) if state.stage is Stage.WRITING else Step(state)
        case Promoted():
            return _serve(state) if state.stage is Stage.PROMOTING else Step(state)
    assert_never(event)


def _after_read(state: ElectorState, breadcrumb: Breadcrumb | None) -> Step:
    if breadcrumb is None:
        return _write(replace(state, breadcrumb_version=None))
    state = replace(state, breadcrumb_version=breadcrumb.version)
    if breadcrumb.content == state.data and breadcrumb.term is not Term.DOUBTED:
        # Our NameNode was the last active.  The write proves that our session still lives.
        return _write(state)
    fencing = replace(state, stage=Stage.FENCING)
    return Step(
        fencing, (actions.FenceOldActive(state.attempt, breadcrumb.content, breadcrumb.term),)
    )


def _write(state: ElectorState) -> Step:
    write = actions.WriteBreadcrumb(
        state.session, state.attempt, state.data, state.breadcrumb_version
    )
    return Step(replace(state, stage=Stage.WRITING), (write,))


def _promote(state: ElectorState, version: int) -> Step:
    promoting = replace(state, stage=Stage.PROMOTING, breadcrumb_version=version)
    return Step(promoting, (actions.ServeAsActive(state.attempt),))


def _serve(state: ElectorState) -> Step:
    # The session may have expired during the promotion: read the lock once more.
    active = replace(state, role=Role.ACTIVE, stage=Stage.NONE, serving=True, looking=True)
    return Step(
        active, (actions.WatchLock(state.session), actions.RecordSettled(state.session, state.data))
    )
