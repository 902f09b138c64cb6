"""What the checkpoint service does next: every decision, and nothing but decisions (pure).

One thing is under way at a time.  Each thing that is done ends in one event; each event is answered
by one thing to do, and by what is to be said about it.
"""

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import TypeAlias, assert_never

from ha.record import dataclass, replace
from journal.model import Epoch, TxId
from namenode_sim.checkpoint.schedule import CheckpointRules, CheckpointState, due_reason
from spark.ends.sinks.model import UploadVerdict

ROLL_SHARE = 10
"""The log is rolled if the open segment has more than one tenth (1 / ROLL_SHARE) of the edits to be
merged: the rest is not worth a call to the active.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When a checkpoint is due (Hadoop's keys), and how failures are waited out; seconds."""

    due: CheckpointRules
    retry_first_seconds: float = 10.0
    retry_most_seconds: float = 600.0

    def patience(self, failures: int) -> float:
        """Return the seconds to wait after ``failures`` in a row: doubling, bounded, no dice."""
        doublings = min(failures - 1, 60)
        return min(self.retry_first_seconds * 2.0**doublings, self.retry_most_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """What the cluster says of itself.

    Args:
        active: which NameNode is active; None if none is.
        image_txid: the newest image of the active.
        finalized_txid: the last edit of a finalized segment.
        last_txid: the last durable edit.
        epoch: under which the newest segment was written.
    """

    active: str | None
    image_txid: TxId
    finalized_txid: TxId
    last_txid: TxId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Ready:
    """A merged image that no NameNode has taken yet, and the epoch of its plan."""

    txid: TxId
    epoch: Epoch | None


class Phase(StrEnum):
    """What is under way."""

    WAITING = "waiting"
    LOOKING = "looking"
    ROLLING = "rolling"
    MERGING = "merging"
    UPLOADING = "uploading"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What decisions depend on; times are on one monotonic clock, in seconds."""

    phase: Phase = Phase.WAITING
    last_at: float
    """The last checkpoint by any process, or our start: the first by time comes one period later.
    """
    image_txid: TxId | None = None
    """The active's newest image as we saw it last."""
    seen: ClusterState | None = None
    ready: Ready | None = None
    failures: int = 0
    """In a row."""


@dataclass(frozen=True, slots=True)
class WokeUp:
    """The pause is over."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The cluster has answered."""

    seen: ClusterState


@dataclass(frozen=True, slots=True)
class Rolled:
    """The active was asked to end its segment; ``problem`` is empty if it did."""

    problem: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """An image is ready in the work folder."""

    ready: Ready


@dataclass(frozen=True, slots=True)
class Offered:
    """What the NameNodes said to the image."""

    verdict: UploadVerdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """What was under way failed; nothing half-done is left."""

    why: str


Event: TypeAlias = WokeUp | Looked | Rolled | Merged | Offered | Failed


@dataclass(frozen=True, slots=True)
class Look:
    """Ask the cluster."""


@dataclass(frozen=True, slots=True)
class Roll:
    """Ask the active to end its segment."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Stage what the cluster has, and merge it."""


@dataclass(frozen=True, slots=True)
class Upload:
    """Offer the image to the NameNodes."""

    ready: Ready


@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for ``seconds`` seconds."""

    seconds: float


Action: TypeAlias = Look | Roll | Merge | Upload | Sleep


@dataclass(frozen=True, slots=True)
class Step:
    """The next state, what to do, and what to say: an event name and its facts."""

    state: State
    action: Action
    said: str
    facts: Mapping[str, object]


def step(state: State, event: Event, rules: Rules, now: float) -> Step:
    match event:
        case WokeUp():
            return Step(replace(state, phase=Phase.LOOKING), Look(), "checkpoint.looking", {})
        case Looked(seen):
            return _handle_look(state, seen, rules, now)
        case Rolled(problem):
            return _begin_merge(state, problem, rules)
        case Merged(ready):
            return _begin_upload(state, ready, rules)
        case Offered():
            return _handle_offered(state, event, rules, now)
        case Failed(why):
            # An upload that fails, not a NameNode's word, cannot read our image: make another.
            lost = state.phase is Phase.UPLOADING
            return _retry_later(replace(state, ready=None) if lost else state, why, rules)
        case _:
            assert_never(event)


def _handle_look(state: State, seen: ClusterState, rules: Rules, now: float) -> Step:
    before = state.image_txid
    state = replace(state, seen=seen, image_txid=seen.image_txid)
    if seen.active is None:
        # No NameNode could take an image, and what is merged now would carry an epoch that is
        # ending.
        return _retry_later(replace(state, image_txid=before), "no NameNode is active", rules)
    elsewhere = before is not None and seen.image_txid > before
    if elsewhere:
        state = replace(state, last_at=now)
    ready = state.ready
    if ready is not None and (ready.txid <= seen.image_txid or ready.epoch != seen.epoch):
        ready = None
        state = replace(state, ready=None)
    facts: Mapping[str, object] = asdict(seen)
    if ready is not None:
        return Step(
            replace(state, phase=Phase.UPLOADING),
            Upload(ready),
            "checkpoint.offered_again",
            {**facts, "txid": ready.txid},
        )
    known = CheckpointState(last_at=state.last_at, last_txid=seen.image_txid)
    why = due_reason(known, rules.due, seen.last_txid, now)
    if not why:
        said = "checkpoint.made_elsewhere" if elsewhere else "checkpoint.not_due"
        return _wait(replace(state, failures=0), rules, said, facts)
    facts = {**facts, "because": why}
    in_open = seen.last_txid - max(seen.finalized_txid, seen.image_txid)
    # One edit is the opening mark, which a roll could only replace by another.
    if in_open > 1 and in_open * ROLL_SHARE > seen.last_txid - seen.image_txid:
        state = replace(state, phase=Phase.ROLLING)
        return Step(state, Roll(), "checkpoint.roll", {**facts, "in_open_segment": in_open})
    if seen.finalized_txid <= seen.image_txid:
        return _wait(replace(state, failures=0), rules, "checkpoint.nothing_finalized", facts)
    return Step(replace(state, phase=Phase.MERGING), Merge(), "checkpoint.merge", facts)


def _begin_merge(state: State, problem: str, rules: Rules) -> Step:
    seen = state.seen
    nothing = seen is None or seen.finalized_txid <= seen.image_txid
    if problem and nothing:
        return _retry_later(state, f"the log could not be rolled: {problem}", rules)
    # What is finalized already is worth a merge without the rest.
    said = "checkpoint.merge_without_the_rest" if problem else "checkpoint.merge"
    facts = {"problem": problem} if problem else {}
    return Step(replace(state, phase=Phase.MERGING), Merge(), said, facts)


def _begin_upload(state: State, ready: Ready, rules: Rules) -> Step:
    facts = {"txid": ready.txid, "epoch": ready.epoch}
    if state.image_txid is not None and ready.txid <= state.image_txid:
        return _wait(replace(state, failures=0), rules, "checkpoint.nothing_finalized", facts)
    state = replace(state, phase=Phase.UPLOADING, ready=ready)
    return Step(state, Upload(ready), "checkpoint.merged", facts)


def _handle_offered(state: State, event: Offered, rules: Rules, now: float) -> Step:
    ready = state.ready
    facts: dict[str, object] = {"txid": None if ready is None else ready.txid}
    if event.why:
        facts["because"] = event.why
    done = replace(state, ready=None, failures=0, last_at=now)
    match event.verdict:
        case UploadVerdict.TAKEN:
            taken = state.image_txid if ready is None else ready.txid
            return _wait(replace(done, image_txid=taken), rules, "checkpoint.taken", facts)
        case UploadVerdict.NOT_NEEDED:
            # Somebody else was quicker, and the active counts from his image.
            return _wait(done, rules, "checkpoint.made_elsewhere", facts)
        case UploadVerdict.SUPERSEDED:
            # A new term: only a new plan can be taken, and the next look makes one.
            why = event.why or "the active writes under another epoch"
            return _retry_later(
                replace(state, ready=None), why, rules, said="checkpoint.superseded"
            )
        case UploadVerdict.NO_ACTIVE | UploadVerdict.FAILED:
            return _retry_later(state, event.why or "no NameNode took the image", rules)
        case _:
            assert_never(event.verdict)


def _retry_later(state: State, why: str, rules: Rules, *, said: str = "checkpoint.failed") -> Step:
    failures = state.failures + 1
    seconds = rules.patience(failures)
    facts = {
        "during": state.phase.value,
        "because": why,
        "failures": failures,
        "again_in_seconds": seconds,
    }
    state = replace(state, phase=Phase.WAITING, failures=failures)
    return Step(state, Sleep(seconds), said, facts)


def _wait(state: State, rules: Rules, said: str, facts: Mapping[str, object]) -> Step:
    state = replace(state, phase=Phase.WAITING)
    return Step(state, Sleep(rules.due.pause_seconds), said, facts)
