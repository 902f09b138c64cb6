"""Lets a node go on with the segment that the writer writes: ResumeSegment and CatchUp.

Neither removes sound edits of this writer's epoch.  Serials do not survive a restart of the node,
so a late duplicate of a request must do no harm.
"""

from dataclasses import replace

from journal.core import effects as core_effects
from journal.core.admission import abandon, damage_refusal, require_formatted
from journal.core.replies import Fetch, Resumed
from journal.core.requests import AdoptCatchUp, CatchUp, ResumeSegment
from journal.core.segments import DIGEST_BYTES, OLDEST_LAYOUT
from journal.core.state import JournalState, OpenSegment
from journal.errors import BadRequest, Fenced, OutOfSync, StorageFailed
from journal.model import NO_EPOCH, Epoch, Segment, TxId


def resume(state: JournalState, request: ResumeSegment) -> core_effects.Step:
    """Open the segment again after its last sound edit, or create it if it is missing.

    A quorum has begun it in this epoch, so an older writer's edits at the same first txid were
    never acknowledged, and are moved aside.
    """
    _check(request.first, request.layout_version)
    epoch = request.stamp.epoch
    _ensure_current(state, request.first, epoch)
    damaged = damage_refusal(state, request.first)
    if damaged is not None:
        raise damaged
    return _open(state, request.first, epoch, request.layout_version)


def catch_up(state: JournalState, request: CatchUp) -> core_effects.Step:
    """Request a download of the missing edits, unless we have all of them by now."""
    wanted = request.segment
    _check(wanted.first, request.layout_version)
    if wanted.last < wanted.first or len(wanted.digest) != DIGEST_BYTES:
        raise BadRequest(
            f"cannot catch up with {wanted.first}-{wanted.last} and a digest of "
            f"{len(wanted.digest)} bytes"
        )
    epoch = request.stamp.epoch
    _ensure_current(state, wanted.first, epoch)
    if _holds_all_of(state, wanted, epoch):
        return _open(state, wanted.first, epoch, request.layout_version)
    wanted = replace(wanted, writer=epoch, layout_version=request.layout_version)
    return core_effects.Step(state, (), Fetch(wanted, epoch))


def adopt(state: JournalState, request: AdoptCatchUp) -> core_effects.Step:
    """Replace our copy by the downloaded edits, and open it.

    All is checked again: during the download a newer epoch may have been promised, or the writer
    may have resumed the segment, written more, or begun the next one.
    """
    require_formatted(state)
    wanted, epoch = request.segment, request.epoch
    drop = core_effects.DropDownload(wanted.first, epoch)
    if epoch != state.promised:
        late = Fenced(
            f"epoch {state.promised} was promised while epoch {epoch} caught up here",
            promised=state.promised,
        )
        return core_effects.Step(state, (drop,), late)
    try:
        _ensure_current(state, wanted.first, epoch)
        complete = _holds_all_of(state, wanted, epoch)
        if not complete:
            _ensure_no_shorter(state, request)
    except (OutOfSync, StorageFailed) as refusal:
        return core_effects.Step(state, (drop,), refusal)
    if complete:
        resumed = _open(state, wanted.first, epoch, request.layout_version)
        return core_effects.Step(resumed.state, (drop, *resumed.effects), resumed.reply)
    state, effects = _close_and_clear(state, wanted.first, epoch)
    adopted = Segment(
        wanted.first,
        wanted.last,
        finalized=False,
        writer=epoch,
        layout_version=request.layout_version,
    )
    # The record has no end: after a crash our shorter copy is then not taken for damaged.
    effects.append(core_effects.AdoptDownload(adopted, epoch))
    return _reopen(state, effects, adopted, wanted.digest)


def _check(first: TxId, layout_version: int) -> None:
    if first <= 0:
        raise BadRequest(f"a segment cannot start at transaction {first}")
    if layout_version > OLDEST_LAYOUT:
        raise BadRequest(f"layout {layout_version} has no framed edits")


def _ensure_current(state: JournalState, first: TxId, epoch: Epoch) -> None:
    """Raise OutOfSync unless this epoch may be writing that segment now.

    Bad schedule: the node restarts, and the first request that arrives is an old one for a segment
    that the writer has closed since.
    """
    if state.open is not None and state.open.first > first:
        raise OutOfSync(f"segment {first} was left, {state.open.first} is open")
    closed = (*state.segments.values(), *(damage.segment for damage in state.damaged.values()))
    for held in closed:
        if held.first > first or (held.finalized and held.last >= first):
            raise OutOfSync(f"segment {first} was left: this node has {held.name()}")
    decision = state.decisions.get(first)
    if decision is not None and decision.epoch >= epoch:
        raise OutOfSync(f"epoch {decision.epoch} has decided how segment {first} ends")
    ours = _sound_copy(state, first)
    if ours is None:
        return
    if ours.writer == NO_EPOCH:
        raise OutOfSync(f"nobody knows who wrote {ours.name()}; it waits for the next segment")
    if ours.writer > epoch:
        raise OutOfSync(f"epoch {ours.writer} wrote {ours.name()}, epoch {epoch} asks for it")


def _sound_copy(state: JournalState, first: TxId) -> Segment | None:
    """Return the sound part of our closed copy; None if we have none."""
    damage = state.damaged.get(first)
    return state.find(first) if damage is None else damage.segment


def _holds_all_of(state: JournalState, wanted: Segment, epoch: Epoch) -> bool:
    """Return whether we have this epoch's edits up to the wanted end.

    Bad schedule: the writer does not wait for the download, resumes the segment, and gets more
    edits acknowledged here; then the download ends.  Adopting it would remove those edits.
    """
    if state.open is not None and state.open.first == wanted.first:
        return state.open.next_txid > wanted.last
    ours = _sound_copy(state, wanted.first)
    if ours is None or ours.writer != epoch:
        return False
    damaged = damage_refusal(state, wanted.first)
    if damaged is None:
        return ours.last >= wanted.last
    if ours.last > wanted.last:
        raise damaged  # it has more sound edits than the download
    return False


def _ensure_no_shorter(state: JournalState, request: AdoptCatchUp) -> None:
    """Raise StorageFailed if our damaged copy may hold more edits than the download.

    Bad schedule: this writer got edits after the damage acknowledged here, and a duplicate of its
    older CatchUp arrives.  This node would vote without those edits.
    """
    first = request.segment.first
    damage, damaged = state.damaged.get(first), damage_refusal(state, first)
    if damage is None or damaged is None or damage.segment.writer != request.epoch:
        return
    if damage.size_bytes > request.size_bytes:
        raise damaged


def _open(state: JournalState, first: TxId, epoch: Epoch, layout_version: int) -> core_effects.Step:
    if state.open is not None and state.open.first == first:
        return core_effects.Step(state, (), Resumed(state.open.next_txid))
    state, effects = _close_and_clear(state, first, epoch)
    ours = state.find(first)
    if ours is not None:
        return _reopen(state, effects, ours, ours.digest)
    effects.append(core_effects.CreateSegment(first, layout_version, epoch))
    if state.writer != epoch:
        effects.append(core_effects.PersistWriter(epoch))
    opened = OpenSegment(first=first, next_txid=first, writer=epoch, layout_version=layout_version)
    return core_effects.Step(
        replace(state, writer=epoch, open=opened), tuple(effects), Resumed(first)
    )


def _reopen(
    state: JournalState, effects: list[core_effects.Effect], held: Segment, digest: bytes
) -> core_effects.Step:
    if state.writer != held.writer:
        # After the file: the older writer's edits must not count as this writer's.
        effects.append(core_effects.PersistWriter(held.writer))
    following = TxId(held.last + 1)
    effects.append(core_effects.ReopenSegment(held.first, held.layout_version, digest))
    opened = OpenSegment(
        first=held.first,
        next_txid=following,
        digest=held.digest,
        writer=held.writer,
        layout_version=held.layout_version,
    )
    state = replace(state.without_segment(held.first), writer=held.writer, open=opened)
    return core_effects.Step(state, tuple(effects), Resumed(following))


def _close_and_clear(
    state: JournalState, first: TxId, epoch: Epoch
) -> tuple[JournalState, list[core_effects.Effect]]:
    """Close the open segment, drop older decisions, and move an older writer's copy aside."""
    closed = abandon(state)
    state, effects = closed.state, list(closed.effects)
    if first in state.decisions:
        effects.append(core_effects.ForgetDecision(first))
        state = state.without_decision(first)
    ours = _sound_copy(state, first)
    if ours is not None and ours.writer != epoch:
        effects.append(core_effects.MoveAside(first))
        state = state.without_segment(first)
    return state, effects
