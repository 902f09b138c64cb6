"""How far one request may move what a journal never takes back, whoever asks.

See docs/reference/journal-node.md#limits-of-a-request.
"""

from typing import Final

from journal.core.requests import NewEpoch, Request, Stamp
from journal.core.state import NO_SERIAL, JournalState
from journal.errors import BadRequest, OutOfSync, WrongNamespace
from journal.model import MAX_EPOCH_LEAP, Epoch, TxId

MAX_SERIAL_LEAP: Final = 1 << 32
MAX_SERIAL: Final = 1 << 48
"""The highest serial where no request of the epoch is known, as after a restart.

No writer lives to send as many.
"""
MAX_COMMITTED_LEAP: Final = 1 << 32
MAX_FIRST_TXID: Final = 1 << 60


def require_small_leap(state: JournalState, epoch: Epoch) -> None:
    """See that an epoch can be the next one, or nearly so.

    A promise is for ever: an enormous one would leave no number for the next writer.
    """
    if epoch - state.promised > MAX_EPOCH_LEAP:
        raise BadRequest(
            f"epoch {epoch} is more than {MAX_EPOCH_LEAP} above the promise {state.promised}: no "
            "series of failovers does that"
        )


def require_sane_stamp(state: JournalState, stamp: Stamp, *, known: bool) -> None:
    """Check that a request belongs to this journal, and follows what its writer sent before.

    ``known`` says that the last serial of this epoch is known, or that there was none.

    Raises:
        WrongNamespace: it is about another file system.
        OutOfSync: its serial is far ahead.
        BadRequest: it claims edits that no writer can have written.
    """
    ours = state.namespace
    if ours is not None and stamp.namespace_id not in {None, ours.namespace_id}:
        raise WrongNamespace(
            f"Incompatible namespaceID: this journal belongs to {ours.namespace_id}, "
            f"the request to {stamp.namespace_id}"
        )
    highest = max(state.serial, NO_SERIAL) + MAX_SERIAL_LEAP if known else MAX_SERIAL
    if stamp.serial > highest:
        raise OutOfSync(
            f"request {stamp.serial} of epoch {stamp.epoch} is far ahead of the last one, "
            f"{state.serial if known else 'unknown'}"
        )
    if stamp.committed is not None and stamp.committed > _highest_committed(state):
        raise BadRequest(
            f"the request says that {stamp.committed} is committed, far beyond "
            f"{max(state.last_written, 0)}, the last edit here"
        )


def _highest_committed(state: JournalState) -> int:
    """Return the highest committed txid that a request may claim.

    A node that has edits and a vote is at most MAX_COMMITTED_LEAP behind; others may be farther.
    """
    last = state.last_written
    return MAX_FIRST_TXID if last <= 0 or state.learner else last + MAX_COMMITTED_LEAP


def reach_of_claims(state: JournalState, epoch: Epoch) -> TxId:
    """Up to where this writer's word about what is committed is about edits that we have.

    Its own, and what is final.  About an older writer's unfinished edits a claim says nothing.
    """
    if state.open is not None and not state.open.empty and state.open.writer == epoch:
        return TxId(state.open.next_txid - 1)
    held = (s.last for s in state.segments.values() if s.finalized or s.writer == epoch)
    return max(held, default=TxId(0))


def require_short_lease(request: Request, limit_micros: int) -> None:
    """See that no writer makes the next one wait for long.

    Raises:
        BadRequest: its read lease is longer than this node grants.
    """
    stamp = None if isinstance(request, NewEpoch) else getattr(request, "stamp", None)
    if isinstance(stamp, Stamp) and stamp.read_lease_micros > limit_micros:
        raise BadRequest(
            f"a read lease of {stamp.read_lease_micros / 1e6:g} s; this node grants at most "
            f"{limit_micros / 1e6:g} s (nnha.journalnode.max-read-lease)"
        )
