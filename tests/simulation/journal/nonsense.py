"""Requests that a JournalNode must refuse whoever sends them, and questions that change nothing.

They are malformed, or they speak for a writer that was superseded, or they would destroy a journal
without having looked at it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from google.protobuf.message import Message

from journal.core.state import JournalState
from journal.messages import namespace_message
from journal.model import LAYOUT_VERSION
from journal.proto import journal_pb2 as pb
from tests.simulation.journal.machine import JOURNAL, NAMESPACE

_DIGEST: Final = bytes(32)
_SHORT: Final = bytes(5)


@dataclass(frozen=True, slots=True)
class _Saying:
    """What a request is drawn from: ``info`` is of the newest writer, ``stale`` of an older one."""

    rng: Random
    state: JournalState
    info: pb.RequestInfo
    stale: pb.RequestInfo

    def segment(self) -> pb.SegmentState:
        first, last, digest = self.rng.choice(((3, 1, _DIGEST), (0, 3, _DIGEST), (1, 3, _SHORT)))
        return pb.SegmentState(first_txid=first, last_txid=last, digest=digest)


def _format(say: _Saying) -> Message:
    """By force, but not with what the node has promised in view; or without force or a name."""
    promised = int(say.state.promised)
    ours = NAMESPACE.namespace_id
    force, seen, named = say.rng.choice(
        (
            (False, promised, ours),
            (True, None, ours),
            (True, promised, 1),
            (True, promised - 1, ours),
        )
    )
    return pb.FormatRequest(
        journal_id=JOURNAL,
        namespace_info=namespace_message(NAMESPACE) if say.rng.random() < 0.8 else None,
        force=force,
        seen_promised_epoch=None if seen is None else max(0, seen),
        seen_namespace_id=named,
    )


def _start(say: _Saying) -> Message:
    first, layout = say.rng.choice(((0, LAYOUT_VERSION), (9_999, 0)))
    return pb.StartLogSegmentRequest(info=say.info, first_txid=first, layout_version=layout)


def _resume(say: _Saying) -> Message:
    first, layout = say.rng.choice(((0, LAYOUT_VERSION), (1, 0)))
    return pb.ResumeSegmentRequest(info=say.info, first_txid=first, layout_version=layout)


def _batch(say: _Saying) -> Message:
    """Behind the open segment's last edit, and without the edits that it announces."""
    at = say.state.open
    first = 1 if at is None else int(at.first)
    following = 1 if at is None else int(at.next_txid)
    records = say.rng.choice((b"", b"\x00" * 40, b"\xff" * 7))
    batch = pb.Batch(segment_first_txid=first, first_txid=following, count=3, records=records)
    return pb.WriteRequest(info=say.info, batch=batch)


def _finalize(say: _Saying) -> Message:
    told = say.segment()
    return pb.FinalizeLogSegmentRequest(
        info=say.info, first_txid=max(told.first_txid, 1), last_txid=0, digest=told.digest
    )


def _can_roll_back(say: _Saying) -> Message:
    layout = say.rng.choice((LAYOUT_VERSION, 1))
    asked = namespace_message(NAMESPACE)
    return pb.CanRollBackRequest(
        journal_id=JOURNAL, namespace_info=asked, target_layout_version=layout
    )


def _peek(say: _Saying) -> Message:
    return pb.PeekRecoveryRequest(journal_id=JOURNAL, segment_first_txid=say.rng.choice((0, 1, 5)))


_SAID: Final[dict[str, Callable[[_Saying], Message]]] = {
    "Format": _format,
    "StartLogSegment": _start,
    "ResumeSegment": _resume,
    "Write": _batch,
    "FinalizeLogSegment": _finalize,
    "AcceptRecovery": lambda say: pb.AcceptRecoveryRequest(info=say.info, segment=say.segment()),
    "CatchUp": lambda say: pb.CatchUpRequest(
        info=say.info, segment=say.segment(), layout_version=LAYOUT_VERSION
    ),
    "PurgeLogs": lambda say: pb.PurgeLogsRequest(info=say.info, min_txid_to_keep=0),
    "Admit": lambda say: pb.AdmitRequest(info=say.stale, incarnation="0" * 32),
    "PreUpgrade": lambda say: pb.WriterRequest(info=say.stale),
    "Upgrade": lambda say: pb.UpgradeRequest(
        info=say.stale, namespace_info=namespace_message(NAMESPACE)
    ),
    "FinalizeUpgrade": lambda say: pb.WriterRequest(info=say.stale),
    "RollBack": lambda say: pb.WriterRequest(info=say.stale),
    "DiscardSegments": lambda say: pb.DiscardSegmentsRequest(info=say.stale, first_txid=1),
    "CanRollBack": _can_roll_back,
    "GetJournalCTime": lambda _: pb.JournalRequest(journal_id=JOURNAL),
    "PeekRecovery": _peek,
}


def drawn(state: JournalState, rng: Random) -> tuple[str, Message] | None:
    """What to call with what; None where no writer was superseded yet."""
    if state.promised < 2:
        return None
    serial = max(0, int(state.serial)) + 1
    newest = pb.RequestInfo(
        journal_id=JOURNAL,
        epoch=int(state.promised),
        serial=serial,
        namespace_id=NAMESPACE.namespace_id,
    )
    stale = pb.RequestInfo(
        journal_id=JOURNAL,
        epoch=int(state.promised) - 1,
        serial=serial,
        namespace_id=NAMESPACE.namespace_id,
    )
    kind = rng.choice(sorted(_SAID))
    return kind, _SAID[kind](_Saying(rng, state, newest, stale))
