"""A takeover's stages in the order that keeps it safe: read, fence, write, promote, look again.

Fence before writing our name, write before promoting
(docs/reference/election.md#order-of-a-takeover): a NameNode whose promotion timed out and succeeds
later is then still found, and fenced, by the next owner.
"""

from dataclasses import replace
from typing import assert_never

from ha.elector import actions
from ha.elector.events import BreadcrumbRead, BreadcrumbWritten, OldActiveFenced, Promoted
from ha.elector.model import Breadcrumb, Role, Stage, Term
from ha.elector.state import ElectorState, Step


def answer_takeover(
    state: ElectorState,
    event: BreadcrumbRead | BreadcrumbWritten | OldActiveFenced | Promoted,
) -> Step:
    """Return the next stage; an answer that the present stage does not wait for changes nothing."""
    match event:
        case BreadcrumbRead():
            return _read(state, event.breadcrumb) if state.stage is Stage.READING else Step(state)
        case OldActiveFenced():
            return _write(state) if state.stage is Stage.FENCING else Step(state)
        case BreadcrumbWritten():
            return _promote(state, event.version) if state.stage is Stage.WRITING else Step(state)
        case Promoted():
            return _serve(state) if state.stage is Stage.PROMOTING else Step(state)
    assert_never(event)


def _read(state: ElectorState, breadcrumb: Breadcrumb | None) -> Step:
    if breadcrumb is None:
        return _write(replace(state, breadcrumb_version=None))
    state = replace(state, breadcrumb_version=breadcrumb.version)
    if breadcrumb.content == state.data and breadcrumb.term is not Term.DOUBTED:
        # We were the last active ourselves.  Writing our name again costs one round trip and
        # proves that the session still lives.
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
    # The session may have died at the servers while the NameNode worked; look before we rest.
    active = replace(state, role=Role.ACTIVE, stage=Stage.NONE, serving=True, looking=True)
    return Step(
        active, (actions.WatchLock(state.session), actions.RecordSettled(state.session, state.data))
    )
