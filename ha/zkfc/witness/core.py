"""Whether another's lock may be removed: its owner is silent, and the journal confirms it.

The bad schedule that this is for: a host dies, and its lock lasts as long as its session, ten
seconds by default, though a majority of JournalNodes know after one that its NameNode is silent.

Neither alone is enough.  An owner that does not answer us may be cut off from us alone, and write;
a writer that the nodes do not hear may be slow, and answer.  Both must hold several times in a row,
so that what one stalled process says, ours included, decides nothing.  No harm is done where both
are wrong all the same: the next holder of the lock fences, and the journal refuses the older epoch.

See docs/reference/zkfc.md#witnessed-takeover.
"""

from enum import Enum, StrEnum, auto
from typing import Final, assert_never

from ha.elector.model import Removal
from ha.record import dataclass, field, replace
from ha.service.model import WriterSilence

ASKED_IN_VAIN: Final = 3
"""So often in a row the owner must not have answered."""
SILENT_REPORTS_NEEDED: Final = 2
"""How often in a row a majority must have reported that the writer is silent.

The bad schedule: a node was stopped, and goes on.  It answers us before it reads the heartbeats
that lie in its socket, and reports its own silence; the next time it has read them.
"""
LEAST_SECONDS_BETWEEN: Final = 0.1
"""Between two answers that count; what was asked in one moment reports one moment."""
CLOCKS: Final = 0.05
"""By this share the clocks of a node and of the writer may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessSettings:
    """The keys ``nnha.zkfc.witnessed-takeover.*``."""

    enabled: bool = True
    silence_seconds: float = 1.2
    """The writer must be silent for longer than this, and longer than its read lease."""


@dataclass(frozen=True, slots=True)
class Lock:
    """One lock of another's: its holder, and the ZooKeeper transaction that made it."""

    made: int
    owner: str


class Answer(Enum):
    """What came of asking the owner's NameNode and its controller."""

    SERVES = auto()
    """The NameNode says that it is active."""
    ANSWERS = auto()
    """One of them said something else, be it a refusal."""
    SILENT = auto()
    UNCLEAR = auto()
    """Our own event loop was late, it could not be asked, or the connection broke."""


class SilenceVerdict(StrEnum):
    """Where we stand, for logs and pages."""

    CALM = "the owner of the lock answers, or there is none"
    BARRED = "we may not take over by ourselves"
    SUSPECTED = "the owner of the lock does not answer"
    UNPROVEN = "it does not answer, and no majority of JournalNodes tells that its writer is silent"
    CONFIRMING = "it does not answer, and its writer is silent; both are looked at again"
    REMOVING = "it is silent in every way, and its lock is removed"
    SPENT = "we have removed a lock, and nobody has become active since"
    FORBIDDEN = "we have no right to remove its lock"


@dataclass(frozen=True, slots=True)
class OwnerAsked:
    """The owner of this lock was asked; ``barred`` says why we may not take over, or is empty."""

    lock: Lock
    answer: Answer
    barred: str


@dataclass(frozen=True, slots=True)
class WriterReported:
    """Our NameNode has reported the newest writer; None where it could not.

    ``lock`` and ``barred`` as they are by now: it took a moment.
    """

    lock: Lock | None
    silence: WriterSilence | None
    barred: str


@dataclass(frozen=True, slots=True)
class NoOwner:
    """There is no lock of another's that we know."""


@dataclass(frozen=True, slots=True)
class RemovalEnded:
    """What has come of the removal."""

    outcome: Removal


@dataclass(frozen=True, slots=True)
class BecameActive:
    """Our NameNode is active under our lock."""


Event = OwnerAsked | WriterReported | NoOwner | RemovalEnded | BecameActive


@dataclass(frozen=True, slots=True)
class AskWriter:
    """Ask our NameNode for how long the newest writer has been silent."""


@dataclass(frozen=True, slots=True)
class RemoveLock:
    """Remove exactly this lock."""

    lock: Lock
    because: str


Action = AskWriter | RemoveLock


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What speaks against the owner of one lock."""

    lock: Lock | None = None
    in_vain: int = 0
    """So often in a row it was asked in vain."""
    told: int = 0
    """How often in a row a majority has reported that the writer of this epoch is silent."""
    epoch: int = 0
    told_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that the decision depends on."""

    settings: WitnessSettings = field(default_factory=WitnessSettings)
    suspicion: Suspicion = field(default_factory=Suspicion)
    removed: int = 0
    """The lock that we removed last; 0 once somebody is active after that."""
    forbidden: bool = False
    verdict: SilenceVerdict = SilenceVerdict.CALM


@dataclass(frozen=True, slots=True)
class Step:
    """The state afterwards, and what is to be done."""

    state: State
    actions: tuple[Action, ...] = ()


def step(state: State, event: Event, *, now: float) -> Step:
    """Return the suspicion after an event at this time, and the actions."""
    match event:
        case OwnerAsked():
            return _weigh_owner_answer(state, event)
        case WriterReported():
            return _weigh_writer_report(state, event, now)
        case NoOwner():
            return Step(_clear(state))
        case RemovalEnded(outcome=outcome):
            forbidden = state.forbidden or outcome is Removal.FORBIDDEN
            removed = 0 if outcome is Removal.TOO_LATE else state.removed
            return Step(replace(_clear(state), forbidden=forbidden, removed=removed))
        case BecameActive():
            return Step(replace(_clear(state), removed=0))
    assert_never(event)


def limit_seconds(settings: WitnessSettings, lease_seconds: float) -> float:
    """Return for how long the writer must be silent."""
    return max(settings.silence_seconds, lease_seconds * (1 + CLOCKS))


def _clear(state: State) -> State:
    return replace(state, suspicion=Suspicion(), verdict=SilenceVerdict.CALM)


def _weigh_owner_answer(state: State, asked: OwnerAsked) -> Step:
    if state.suspicion.lock != asked.lock:
        state = replace(state, suspicion=Suspicion(asked.lock))
    match asked.answer:
        case Answer.UNCLEAR:
            return Step(state)
        case Answer.SERVES if asked.lock.made != state.removed:
            return Step(replace(_clear(state), removed=0))
        case Answer.SERVES | Answer.ANSWERS:
            return Step(_clear(state))
        case Answer.SILENT:
            suspicion = replace(state.suspicion, in_vain=state.suspicion.in_vain + 1)
            return _suspect(replace(state, suspicion=suspicion), asked.barred)
    assert_never(asked.answer)


def _suspect(state: State, barred: str) -> Step:
    verdict = _held_back(state, barred)
    if verdict is None:
        keeps = state.verdict in (SilenceVerdict.UNPROVEN, SilenceVerdict.CONFIRMING)
        return Step(
            state if keeps else replace(state, verdict=SilenceVerdict.SUSPECTED), (AskWriter(),)
        )
    untold = replace(state.suspicion, told=0)
    return Step(replace(state, suspicion=untold, verdict=verdict))


def _held_back(state: State, barred: str) -> SilenceVerdict | None:
    """Return what keeps us from removing any lock; None if nothing does."""
    if state.forbidden:
        return SilenceVerdict.FORBIDDEN
    if state.removed:
        return SilenceVerdict.SPENT
    return SilenceVerdict.BARRED if barred else None


def _weigh_writer_report(state: State, told: WriterReported, now: float) -> Step:
    suspicion = state.suspicion
    if suspicion.lock is None or told.lock != suspicion.lock or suspicion.in_vain == 0:
        return Step(_clear(state))
    held_back = _held_back(state, told.barred)
    silence = told.silence
    if held_back is not None or silence is None or not _proven(state.settings, silence):
        verdict = held_back or SilenceVerdict.UNPROVEN
        return Step(replace(state, suspicion=replace(suspicion, told=0), verdict=verdict))
    suspicion = _confirm(suspicion, silence, now)
    confirming = replace(state, suspicion=suspicion, verdict=SilenceVerdict.CONFIRMING)
    if suspicion.told < SILENT_REPORTS_NEEDED or suspicion.in_vain < ASKED_IN_VAIN:
        return Step(confirming)
    removing = replace(confirming, removed=told.lock.made, verdict=SilenceVerdict.REMOVING)
    return Step(removing, (RemoveLock(told.lock, _because(suspicion, silence)),))


def _proven(settings: WitnessSettings, silence: WriterSilence) -> bool:
    """Return whether a majority reports long enough silence of a writer that sends heartbeats."""
    a_majority = 2 * silence.witnesses > silence.nodes
    limit = limit_seconds(settings, silence.lease_seconds)
    return a_majority and silence.lease_seconds > 0 and silence.silent_seconds > limit


def _confirm(suspicion: Suspicion, silence: WriterSilence, now: float) -> Suspicion:
    if suspicion.told == 0 or silence.epoch != suspicion.epoch:
        return replace(suspicion, told=1, epoch=silence.epoch, told_at=now)
    if now - suspicion.told_at < LEAST_SECONDS_BETWEEN:
        return suspicion
    return replace(suspicion, told=suspicion.told + 1, told_at=now)


def _because(suspicion: Suspicion, silence: WriterSilence) -> str:
    assert suspicion.lock is not None
    return (
        f"neither the NameNode nor the zkfc of {suspicion.lock.owner} answered "
        f"{suspicion.in_vain} times in a row, and a majority of {silence.nodes} JournalNodes has "
        f"not heard the writer of epoch {silence.epoch} for {silence.silent_seconds:.2f} s"
    )
