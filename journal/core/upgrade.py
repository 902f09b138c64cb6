"""Decides about upgrade, roll-back and discard of a journal.

In Hadoop any caller may send these requests.  Here they carry a writer's stamp.

See docs/reference/journal-node.md#upgrade-roll-back-discard.
"""

from dataclasses import replace
from typing import assert_never

from journal.core import effects as core_effects
from journal.core import requests
from journal.core.admission import abandon, require_formatted, require_namespace
from journal.core.replies import CTime, Done, RollBackAnswer
from journal.core.state import JournalState
from journal.errors import BadRequest, OutOfSync
from journal.model import Segment, TxId


def step(state: JournalState, request: requests.UpgradeStep) -> core_effects.Step:
    """Carry out one upgrade request of a writer that was admitted."""
    match request:
        case requests.PreUpgrade():
            return pre_upgrade(state)
        case requests.Upgrade():
            return upgrade(state, request)
        case requests.FinalizeUpgrade():
            return finalize_upgrade(state)
        case requests.RollBack():
            return roll_back(state)
        case requests.DiscardSegments():
            return discard(state, request)
    assert_never(request)


def ctime(state: JournalState) -> CTime:
    """Return when the journal was last upgraded."""
    return CTime(require_formatted(state).ctime)


def pre_upgrade(state: JournalState) -> core_effects.Step:
    """Keep a copy of the journal next to it; replace an earlier copy."""
    if state.previous is not None:
        raise BadRequest(
            "an earlier upgrade is neither finalized nor rolled back; do one of the two first"
        )
    closed = abandon(state)
    state = replace(closed.state, upgrade_begun=True)
    return core_effects.Step(state, (*closed.effects, core_effects.TakeSnapshot()), Done())


def upgrade(state: JournalState, request: requests.Upgrade) -> core_effects.Step:
    """Adopt the new layout and creation time; the copy becomes the state for a roll-back."""
    require_namespace(state, request.namespace)
    before = require_formatted(state)
    adopted = replace(
        before,
        layout_version=request.namespace.layout_version,
        ctime=request.namespace.ctime,
    )
    if not state.upgrade_begun:
        if state.previous is not None and adopted == before:
            return core_effects.Step(state, (), Done())
        raise OutOfSync("no upgrade was begun, or a restart has undone its beginning")
    if adopted == before:
        raise BadRequest("an upgrade changes the layout version or the creation time")
    upgraded = replace(state, namespace=adopted, previous=before, upgrade_begun=False)
    return core_effects.Step(upgraded, (core_effects.PersistNamespace(adopted),), Done())


def finalize_upgrade(state: JournalState) -> core_effects.Step:
    """Delete the state for a roll-back, if there is one."""
    if state.previous is None:
        return core_effects.Step(state, (), Done())
    return core_effects.Step(replace(state, previous=None), (core_effects.DropPrevious(),), Done())


def can_roll_back(state: JournalState, request: requests.CanRollBack) -> RollBackAnswer:
    """Return whether there is a state for a roll-back, of the layout that the caller can read.

    Raises:
        BadRequest: it is of another layout (HDFS-6135).
    """
    require_namespace(state, request.namespace)
    if state.previous is None:
        return RollBackAnswer(possible=False)
    found = state.previous.layout_version
    if found != request.target_layout_version:
        raise BadRequest(
            f"cannot roll back to layout {request.target_layout_version}: the state before the "
            f"upgrade has layout {found}"
        )
    return RollBackAnswer(possible=True)


def roll_back(state: JournalState) -> core_effects.Step:
    """Restore the state before the upgrade, but keep the promises made since then.

    The segments are loaded from the disk after that.
    """
    if state.previous is None:
        raise BadRequest("there is no state before an upgrade to go back to")
    closed = abandon(state)
    restored = replace(closed.state, namespace=state.previous, previous=None)
    return core_effects.Step(
        restored, (*closed.effects, core_effects.RestorePrevious(state.promised)), Done()
    )


def discard(state: JournalState, request: requests.DiscardSegments) -> core_effects.Step:
    """Rename all segments from ``first`` on to ``.trash``: a rolled back upgrade wrote them."""
    first = request.first
    if first <= 0:
        raise BadRequest(f"cannot discard from transaction {first} on")
    closed = abandon(state)
    state, effects = closed.state, list[core_effects.Effect](closed.effects)
    held = [*state.segments.values(), *(d.segment for d in state.damaged.values())]
    across = [segment for segment in held if segment.first < first <= segment.last]
    if across:
        return core_effects.Step(state, tuple(effects), _inside_segment(across[0], first))
    gone = tuple(segment for segment in held if segment.first >= first)
    decided = tuple(one for one in state.decisions if one >= first)
    effects.append(core_effects.DiscardFiles(first, gone, decided))
    for segment in gone:
        state = state.without_segment(segment.first)
    for one in decided:
        state = state.without_decision(one)
    kept = TxId(first - 1)
    if state.committed > kept:
        effects.append(core_effects.RememberCommitted(kept))
    committed, claimed = min(state.committed, kept), min(state.claimed, kept)
    return core_effects.Step(
        replace(state, committed=committed, claimed=claimed), tuple(effects), Done()
    )


def _inside_segment(segment: Segment, first: TxId) -> BadRequest:
    return BadRequest(f"cannot discard from {first} on: it lies inside {segment.name()}")
