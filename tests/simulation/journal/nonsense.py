"""Requests that a JournalNode must refuse whoever sends them, and questions that change nothing.

They are malformed, or they speak for a writer that was superseded, or they would destroy a journal
without having looked at it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from google.protobuf.message import Message

from journal.core.state import JournalState
from journal.messages import namespace_message
from journal.model import LAYOUT_VERSION, Segment
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

    def final(self) -> Segment | None:
        held = [one for one in self.state.segments.values() if one.finalized]
        return self.rng.choice(held) if held else None


def _format(say: _Saying) -> Message:
    """Format by force, but not with the node's promise in view; or without force or a name."""
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
    first, layout = say.rng.choice(((0, LAYOUT_VERSION), (9_999, -1)))
    return pb.StartLogSegmentRequest(info=say.info, first_txid=first, layout_version=layout)


def _resume(say: _Saying) -> Message:
    first, layout = say.rng.choice(((0, LAYOUT_VERSION), (1, -1)))
    return pb.ResumeSegmentRequest(info=say.info, first_txid=first, layout_version=layout)


def _batch(say: _Saying) -> Message:
    """Send one behind the open segment's last edit, and without the edits that it announces."""
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


Theme = Mapping[str, Callable[[_Saying], Message]]

_SAID: Final[Theme] = {
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


def _new_epoch(say: _Saying) -> Message:
    """Claim an epoch for another file system."""
    asked = namespace_message(NAMESPACE)
    if say.rng.random() < 0.5:
        asked.namespace_id += 1
    else:
        asked.cluster_id = "another"
    return pb.NewEpochRequest(
        journal_id=JOURNAL, namespace_info=asked, epoch=int(say.state.promised) + 1
    )


def _upgrade(say: _Saying) -> Message:
    """Upgrade to what the journal is already, of another file system, or as a writer would."""
    asked = namespace_message(NAMESPACE)
    asked.ctime = say.rng.choice((0, 0, 7, 8))
    if say.rng.random() < 0.2:
        asked.namespace_id += 1
    return pb.UpgradeRequest(info=say.info, namespace_info=asked)


def _discard(say: _Saying) -> Message:
    """Discard from nowhere, from inside a segment, or from behind everything."""
    final = say.final()
    inside = final.last if final is not None and final.first < final.last else 0
    first = say.rng.choice((0, inside, 1_000_000))
    return pb.DiscardSegmentsRequest(info=say.info, first_txid=first)


def _admit(say: _Saying) -> Message:
    """Admit another one than this node; or with other edits, or a hole between two segments."""
    final, meant = say.final(), say.rng.random() < 0.7
    listed = []
    if final is not None:
        digest = say.rng.choice((_DIGEST, final.digest))
        listed = [
            pb.SegmentState(first_txid=first, last_txid=last, digest=digest)
            for first, last in (
                (int(final.first), int(final.last)),
                (int(final.last) + 2, int(final.last) + 2),
            )
        ]
    return pb.AdmitRequest(
        info=say.info,
        incarnation=say.state.incarnation if meant and listed else "0" * 32,
        founding=not meant and say.rng.random() < 0.5,
        required=listed,
        committed_txid=1_000_000,
    )


def _start_inside(say: _Saying) -> Message:
    """Start inside a finalized segment, or without frames."""
    final = say.final()
    first = 0 if final is None else int(final.last)
    layout = say.rng.choice((LAYOUT_VERSION, -1))
    return pb.StartLogSegmentRequest(info=say.info, first_txid=first, layout_version=layout)


def _resume_unframed(say: _Saying) -> Message:
    return pb.ResumeSegmentRequest(info=say.info, first_txid=9_999, layout_version=-1)


def _other_batch(say: _Saying) -> Message:
    """Send a batch of another segment than the open one, behind a gap, or torn and uncommitted."""
    at = say.state.open
    other, gap = say.rng.choice(((1, 0), (0, 1), (0, 0)))
    segment = 0 if at is None else int(at.first)
    following = 1 if at is None else int(at.next_txid)
    info = pb.RequestInfo()
    info.CopyFrom(say.info)
    info.committed_txid = 0
    info.read_lease_micros = say.state.read_lease_micros
    batch = pb.Batch(
        segment_first_txid=segment + other,
        first_txid=following + gap,
        count=2,
        records=b"\x00" * 40,
    )
    return pb.WriteRequest(info=info, batch=batch)


def _close_otherwise(say: _Saying) -> Message:
    """Close a finalized segment, with another end or other edits."""
    final = say.final()
    first, last = (1, 1) if final is None else (int(final.first), int(final.last))
    further = say.rng.choice((0, 1))
    return pb.FinalizeLogSegmentRequest(
        info=say.info, first_txid=first, last_txid=last + further, digest=_DIGEST
    )


def _decide_otherwise(say: _Saying) -> Message:
    final = say.final()
    if final is None:
        return pb.AcceptRecoveryRequest(info=say.info, segment=say.segment())
    told = pb.SegmentState(
        first_txid=int(final.first), last_txid=int(final.last) + 1, digest=_DIGEST
    )
    return pb.AcceptRecoveryRequest(info=say.info, segment=told)


_SAID_MORE: Final[Theme] = {
    **_SAID,
    "AcceptRecovery": _decide_otherwise,
    "Admit": _admit,
    "DiscardSegments": _discard,
    "FinalizeLogSegment": _close_otherwise,
    "FinalizeUpgrade": lambda say: pb.WriterRequest(info=say.info),
    "NewEpoch": _new_epoch,
    "PreUpgrade": lambda say: pb.WriterRequest(info=say.info),
    "ResumeSegment": _resume_unframed,
    "StartLogSegment": _start_inside,
    "Upgrade": _upgrade,
    "Write": _other_batch,
}
"""Said in worlds with long segments; no rollback, as that takes away what was written since."""
_OF_AN_UPGRADE: Final = (
    *("PreUpgrade", "Upgrade", "FinalizeUpgrade", "CanRollBack", "DiscardSegments"),
)
_THEME: Final = 4


def _batch_elsewhere(say: _Saying) -> Message:
    """Send a batch of another segment, or behind a gap; it claims nothing to be safe."""
    at = say.state.open
    other, gap = say.rng.choice(((1, 0), (0, 1)))
    batch = pb.Batch(
        segment_first_txid=other + (1 if at is None else int(at.first)),
        first_txid=gap + (1 if at is None else int(at.next_txid)),
        count=1,
        records=b"\x00" * 40,
    )
    return pb.WriteRequest(info=say.info, batch=batch)


def _admit_with_holes(say: _Saying) -> Message:
    """Admit with segments that no node has between those listed, let go of or not."""
    if say.rng.random() < 0.5:
        return _admit(say)
    listed = [pb.SegmentState(first_txid=at, last_txid=at, digest=_DIGEST) for at in (1, 3)]
    return pb.AdmitRequest(
        info=say.info,
        incarnation=say.state.incarnation,
        required=listed,
        committed_txid=1_000_000,
        purged_txid=say.rng.choice((0, 3)),
    )


_AMONG_COMEBACKS: Final[Mapping[str, Theme]] = {
    "segment": {"Write": _batch_elsewhere},
    "strays": {"PreUpgrade": _SAID_MORE["PreUpgrade"], "Upgrade": _upgrade},
}


def theme(rng: Random, comebacks: str) -> Theme:
    """Return what one stranger says where segments are long: few things, each of them often."""
    if comebacks:
        return _AMONG_COMEBACKS.get(comebacks, {"Admit": _admit_with_holes})
    upgrades = rng.random() < 0.4
    kinds = _OF_AN_UPGRADE if upgrades else rng.sample(sorted(_SAID_MORE), _THEME)
    return {kind: _SAID_MORE[kind] for kind in kinds}


def drawn(state: JournalState, rng: Random, said: Theme) -> tuple[str, Message] | None:
    """Draw what to call with what, of a theme or of all; None where no writer is superseded."""
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
    kind = rng.choice(list(said) if said else sorted(_SAID))
    say = (said or _SAID)[kind]
    return kind, say(_Saying(rng, state, newest, stale))
