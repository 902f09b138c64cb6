"""Limits the changes by one request to values that can never decrease.

See docs/reference/journal-node.md#limits-of-a-request.
"""

from typing import Final

from journal.core.requests import NewEpoch, Request, Stamp
from journal.core.state import NO_SERIAL, JournalState
from journal.errors import BadRequest, OutOfSync, WrongNamespace
from journal.model import MAX_EPOCH_LEAP, Epoch, TxId

MAX_SERIAL_LEAP: Final = 1 << 32
MAX_SERIAL: Final = 1 << 48
"""The highest serial if no request of the epoch is known, as after a restart.

No writer sends this number of requests.
"""
MAX_COMMITTED_LEAP: Final = 1 << 32
MAX_FIRST_TXID: Final = 1 << 60


def require_small_leap(state: JournalState, epoch: Epoch) -> None:
    """Raise BadRequest if an epoch is far above the promise.

    A promise is kept for ever, so a huge epoch would leave no number for the next writer.
    """
    if epoch - state.promised > MAX_EPOCH_LEAP:
        raise BadRequest(
            f"epoch {epoch} is more than {MAX_EPOCH_LEAP} above the promise {state.promised}: no "
            "series of failovers does that"
        )


def require_sane_stamp(state: JournalState, stamp: Stamp, *, known: bool) -> None:
    """Check namespace, serial and committed txid of a request.

    ``known``: the last serial of this epoch is known, or there was none.

    Raises:
        WrongNamespace: the request is for another file system.
        OutOfSync: its serial is far above the last one.
        BadRequest: its committed txid is higher than any writer can have reached.
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
    """Return the highest committed txid that is accepted in a request.

    A voter with edits is at most MAX_COMMITTED_LEAP behind; other nodes may be farther behind.
    """
    last = state.last_written
    return MAX_FIRST_TXID if last <= 0 or state.learner else last + MAX_COMMITTED_LEAP


def highest_claimable(state: JournalState, epoch: Epoch) -> TxId:
    """Return the highest edit here that this writer's committed txid can refer to.

    It refers to the writer's own edits and finalized ones, not to an older writer's in-progress
    edits.
    """
    if state.open is not None and not state.open.empty and state.open.writer == epoch:
        return TxId(state.open.next_txid - 1)
    held = (s.last for s in state.segments.values() if s.finalized or s.writer == epoch)
    return max(held, default=TxId(0))


def require_short_lease(request: Request, limit_micros: int) -> None:
    """Raise BadRequest if the writer's read lease is longer than this node grants.

    The next writer must wait for its end.
    """
    stamp = None if isinstance(request, NewEpoch) else getattr(request, "stamp", None)
    if isinstance(stamp, Stamp) and stamp.read_lease_micros > limit_micros:
        raise BadRequest(
            f"a read lease of {stamp.read_lease_micros / 1e6:g} s; this node grants at most "
            f"{limit_micros / 1e6:g} s (nnha.journalnode.max-read-lease)"
        )
