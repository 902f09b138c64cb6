"""What a log line tells of a recovery."""

from journal.model import Segment
from journal.recovery import Answer, Copy, Empty, Held, Skip


def brief(told: Answer | Copy | Skip) -> str:
    match told:
        case Skip() | Empty():
            return "none"
        case Copy():
            return f"{_name(told.segment)} from {', '.join(told.sources)}"
        case Held():
            return f"{_name(told.segment)} writer {told.segment.writer} accepted {told.accepted_in}"


def _name(segment: Segment) -> str:
    state = "finalized" if segment.finalized else "in progress"
    return f"{segment.first}-{segment.last} {state} {segment.digest.hex()[:16]}"
