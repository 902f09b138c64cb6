"""What learners hold, as shown to an operator: they list no segments, and have no vote."""

from collections.abc import Iterable, Mapping
from typing import Final

from ha.record import dataclass
from journal.cli.options import JournalTarget, ask_each
from journal.errors import StorageFailed
from journal.links.quorum_call import good
from journal.links.remote_node import RemoteNode
from journal.messages import segment_of
from journal.model import NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb

LEARNER_SEGMENTS: Final = 200
"""The number of newest segments that a learner is asked about: one question for each."""


@dataclass(frozen=True, slots=True)
class Learner:
    """A node without a vote, and its copies of the newest segments that the voters list."""

    status: pb.JournalStatus
    segments: tuple[Segment, ...]

    def differing(self, listed: Iterable[Segment]) -> tuple[TxId, ...]:
        """Return the starts of copies, final here, that differ from what a voter has finalized."""
        final = {segment.first: segment for segment in listed if segment.finalized}
        return tuple(
            ours.first
            for ours in self.segments
            if ours.finalized
            and (theirs := final.get(ours.first)) is not None
            and (ours.last, ours.digest) != (theirs.last, theirs.digest)
        )


async def ask_learners(
    place: JournalTarget, nodes: Iterable[NodeName], firsts: Iterable[TxId]
) -> dict[NodeName, Learner]:
    """Return the learners among these nodes, with their copies of the segments at ``firsts``."""
    wanted = sorted(set(firsts))[-LEARNER_SEGMENTS:]

    async def ask(remote: RemoteNode) -> Learner:
        status = await remote.status(place.timeout_seconds)
        held = []
        # A learner lists nothing, so that it is not counted; it answers an operator's peek.
        for first in wanted if status.is_learner else ():
            try:
                peeked = await remote.peek_recovery(first, place.timeout_seconds)
            except StorageFailed:
                continue  # damaged, and known to be by its status
            if peeked.HasField("segment"):
                held.append(segment_of(peeked.segment))
        return Learner(status, tuple(held))

    answers = good(await ask_each(place, ask, only=nodes))
    return {node: answer for node, answer in answers.items() if answer.status.is_learner}


def learner_rows(
    learners: Mapping[NodeName, Learner], listed: Iterable[Segment]
) -> list[dict[str, object]]:
    told = tuple(listed)
    return [
        {
            "node": node,
            "incarnation": learner.status.incarnation,
            "segments": [
                {"first": s.first, "last": s.last, "finalized": s.finalized}
                for s in learner.segments
            ],
            "lacks": _lacking(learner, told),
            "differing_segments": learner.differing(told),
            "damaged_segments": list(learner.status.damaged_segments),
        }
        for node, learner in sorted(learners.items())
    ]


def learner_lines(
    learners: Mapping[NodeName, Learner], listed: Iterable[Segment]
) -> list[tuple[NodeName, str]]:
    told = tuple(listed)
    lines = []
    for node, learner in sorted(learners.items()):
        lacking = len(_lacking(learner, told))
        said = [f"holds {len(learner.segments)} segments, lacks {lacking}"]
        if differing := learner.differing(told):
            said.append(f"has other edits in those at {', '.join(map(str, differing))}")
        if damaged := learner.status.damaged_segments:
            said.append(f"has damaged ones at {', '.join(map(str, damaged))}")
        lines.append((node, f"a learner, which is not counted; it {', '.join(said)}"))
    return lines


def _lacking(learner: Learner, listed: Iterable[Segment]) -> list[TxId]:
    """Return the voters' finalized segments, of those asked for, that are not final here."""
    firsts = sorted({segment.first for segment in listed if segment.finalized})
    have = {segment.first for segment in learner.segments if segment.finalized}
    return [first for first in firsts[-LEARNER_SEGMENTS:] if first not in have]
