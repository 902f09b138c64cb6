"""Admits a writer's request: checks epoch, serial and committed txid, in Hadoop's order.

See docs/reference/journal-node.md#admission.
"""

from ha.record import dataclass, replace
from journal import errors
from journal.core.effects import AbandonSegment, Effect, PersistPromise, RememberCommitted
from journal.core.limits import highest_claimable, require_sane_stamp, require_small_leap
from journal.core.requests import Stamp
from journal.core.state import NO_SERIAL, SERIAL_UNKNOWN, JournalState
from journal.errors import StorageFailed
from journal.model import Epoch, NamespaceInfo, TxId


@dataclass(frozen=True, slots=True)
class Admitted:
    """The state and effects of a stamp, and the refusal if the request is not carried out."""

    state: JournalState
    effects: tuple[Effect, ...] = ()
    refusal: errors.Rejected | None = None


def require_formatted(state: JournalState) -> NamespaceInfo:
    """Return the journal's namespace, or raise NotFormatted."""
    if state.namespace is None:
        raise errors.NotFormatted("the journal is not formatted on this node")
    return state.namespace


def require_namespace(state: JournalState, theirs: NamespaceInfo) -> None:
    """Raise WrongNamespace unless the request is for this journal's file system."""
    ours = require_formatted(state)
    if theirs.namespace_id != ours.namespace_id:
        raise errors.WrongNamespace(
            f"Incompatible namespaceID: this journal belongs to {ours.namespace_id}, "
            f"the request to {theirs.namespace_id}"
        )
    if theirs.cluster_id != ours.cluster_id:
        raise errors.WrongNamespace(
            f"Incompatible clusterID: this journal belongs to {ours.cluster_id}, "
            f"the request to {theirs.cluster_id}"
        )


def admit(state: JournalState, stamp: Stamp, *, promises: bool) -> Admitted:
    """Check a writer's stamp; only a request that ``promises`` may have a newer epoch.

    Raises:
        NotFormatted: the journal is not formatted.
        Fenced: a newer epoch was promised; nothing changes.
        WrongNamespace, OutOfSync, BadRequest: the request does not fit this journal or its state;
            nothing changes.
    """
    require_formatted(state)
    if stamp.epoch < state.promised:
        raise errors.Fenced(
            f"the request's epoch {stamp.epoch} is less than the last promised epoch "
            f"{state.promised}",
            promised=state.promised,
        )
    newer = stamp.epoch > state.promised
    if newer and not promises:
        # A single heartbeat must not fence the promised writer.
        raise errors.OutOfSync(
            f"epoch {stamp.epoch} has not been promised here, {state.promised} has; this request "
            "promises nothing: ask newEpoch first"
        )
    require_small_leap(state, stamp.epoch)
    require_sane_stamp(state, stamp, known=not newer and state.serial != SERIAL_UNKNOWN)
    effects: tuple[Effect, ...] = ()
    if newer:
        # This node missed the writer's newEpoch.  A majority granted it, or the writer would not
        # send this request, so the node may promise it now.
        promised = promise(state, stamp.epoch)
        state, effects = replace(promised.state, serial=SERIAL_UNKNOWN), promised.effects
    if stamp.serial <= max(state.serial, NO_SERIAL):
        refusal = errors.OutOfSync(
            f"request {stamp.serial} of epoch {stamp.epoch} came after request {state.serial}"
        )
        return Admitted(state, effects, refusal)
    # The serial counts even if the request fails: a late duplicate must not take effect.  There
    # is one call of replace for all fields, as each costs as much as the check of a short batch.
    committed = state.committed
    claimed = state.claimed if stamp.committed is None else stamp.committed
    if stamp.committed is not None and stamp.committed != committed:
        if stamp.committed < committed:
            backward = errors.BadRequest(
                f"the request would move the committed txid backward, from {state.committed} "
                f"to {stamp.committed}"
            )
            return Admitted(replace(state, serial=stamp.serial), effects, backward)
        usable = min(claimed, highest_claimable(state, stamp.epoch))
        if usable > committed:
            committed = usable
            effects = (*effects, RememberCommitted(committed))
    state = replace(state, serial=stamp.serial, committed=committed, claimed=claimed)
    return Admitted(state, effects)


def promise(state: JournalState, epoch: Epoch) -> Admitted:
    """Promise a newer epoch, and close the older writer's open segment.

    Hadoop leaves the segment open if another request than newEpoch has the new epoch, though
    nothing may be appended to it any more.
    """
    closed = abandon(replace(state, promised=epoch, serial=NO_SERIAL, claimed=state.committed))
    return Admitted(closed.state, (PersistPromise(epoch), *closed.effects))


def damage_refusal(state: JournalState, first: TxId) -> StorageFailed | None:
    """Return the refusal of a request about a damaged segment; None if it is sound."""
    damage = state.damaged.get(first)
    if damage is None:
        return None
    why = damage.why.rstrip(".")
    return StorageFailed(
        f"our copy of {damage.segment.name()} is damaged: {why}. It has no vote until it has been "
        "replaced from another node"
    )


def abandon(state: JournalState) -> Admitted:
    """Close the open segment, if any; drop it if it has no edit."""
    if state.open is None:
        return Admitted(state)
    effect = AbandonSegment(state.open.first, empty=state.open.empty)
    closed = replace(state, open=None)
    if not state.open.empty:
        closed = closed.with_segment(state.open.as_segment())
    return Admitted(closed, (effect,))
