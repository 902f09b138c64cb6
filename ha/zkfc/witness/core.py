"""Decides whether to remove a peer's lock before its session expires.

The schedule that it shortens: a host dies, and its lock lasts until its ZooKeeper session expires,
10 s by default, though after 1 s a majority of JournalNodes have had no heartbeat of its NameNode.

Two facts are needed.  The owner's NameNode and controller do not answer us; alone, this may be a
broken network between us and them.  A majority of JournalNodes does not hear the writer; alone, it
may be slow.  Both must hold several times in a row, so that no single stalled process decides.
If both are wrong, no edit is lost: the next holder fences, and the journal refuses the older epoch.

See docs/reference/zkfc.md#witnessed-takeover.
"""

from enum import Enum, StrEnum, auto
from typing import Final, assert_never

from ha.elector.model import Removal
from ha.record import dataclass, field, replace
from ha.service.model import WriterSilence

UNANSWERED_NEEDED: Final = 3
"""The owner must have left this number of requests in a row unanswered."""
SILENT_REPORTS_NEEDED: Final = 2
"""A majority must have reported this number of times in a row that the writer is silent.

The bad schedule: a stopped JournalNode goes on.  It answers us before it reads the heartbeats that
wait in its socket, and so reports a silence that is its own.
"""
LEAST_SECONDS_BETWEEN: Final = 0.1
"""Two reports count only if this time lies between them."""
CLOCKS: Final = 0.05
"""The share by which the clocks of a JournalNode and of the writer may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessSettings:
    """The keys ``nnha.zkfc.witnessed-takeover.*``."""

    enabled: bool = True
    silence_seconds: float = 1.2
    """The writer must be silent for longer than this and than its read lease."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A peer's lock: its owner, and the ZooKeeper transaction that created it."""

    made: int
    owner: str


class Answer(Enum):
    """The answer of the owner's NameNode and its controller."""

    SERVES = auto()
    """The NameNode answered that it is active."""
    ANSWERS = auto()
    """One of them gave another answer, or refused."""
    SILENT = auto()
    UNCLEAR = auto()
    """Our own event loop was late, no request could be sent, or the connection broke."""


class SilenceVerdict(StrEnum):
    """The verdict on the owner, for logs and pages."""

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
    """The owner of this lock was asked; ``barred`` says why we may not take over, if so."""

    lock: Lock
    answer: Answer
    barred: str


@dataclass(frozen=True, slots=True)
class WriterReported:
    """Our NameNode reported the silence of the newest writer; None if it could not.

    ``lock`` and ``barred`` are those after its answer.
    """

    lock: Lock | None
    silence: WriterSilence | None
    barred: str


@dataclass(frozen=True, slots=True)
class NoOwner:
    """No lock of a peer is known."""


@dataclass(frozen=True, slots=True)
class RemovalEnded:
    """The removal of the lock has ended with this outcome."""

    outcome: Removal


@dataclass(frozen=True, slots=True)
class BecameActive:
    """Our NameNode has become active under our lock."""


Event = OwnerAsked | WriterReported | NoOwner | RemovalEnded | BecameActive


@dataclass(frozen=True, slots=True)
class AskWriter:
    """Ask our NameNode how long the newest writer has been silent."""


@dataclass(frozen=True, slots=True)
class RemoveLock:
    """Delete exactly this lock."""

    lock: Lock
    because: str


Action = AskWriter | RemoveLock


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The evidence against the owner of one lock."""

    lock: Lock | None = None
    unanswered: int = 0
    """The number of requests in a row without an answer."""
    silent_reports: int = 0
    """The number of reports in a row by which the writer of ``epoch`` is silent."""
    epoch: int = 0
    last_report_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The settings, the evidence and the last removal."""

    settings: WitnessSettings = field(default_factory=WitnessSettings)
    suspicion: Suspicion = field(default_factory=Suspicion)
    removed: int = 0
    """The transaction of the lock that we removed last; 0 after a NameNode became active."""
    forbidden: bool = False
    verdict: SilenceVerdict = SilenceVerdict.CALM


@dataclass(frozen=True, slots=True)
class Step:
    """The state after an event, and the actions to carry out."""

    state: State
    actions: tuple[Action, ...] = ()


def step(state: State, event: Event, *, now: float) -> Step:
    """Return the state after an event, and the actions."""
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
    """Return how long the writer must be silent before its lock is removed, in seconds."""
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
            suspicion = replace(state.suspicion, unanswered=state.suspicion.unanswered + 1)
            return _suspect(replace(state, suspicion=suspicion), asked.barred)
    assert_never(asked.answer)


def _suspect(state: State, barred: str) -> Step:
    verdict = _find_block(state, barred)
    if verdict is None:
        keeps = state.verdict in (SilenceVerdict.UNPROVEN, SilenceVerdict.CONFIRMING)
        return Step(
            state if keeps else replace(state, verdict=SilenceVerdict.SUSPECTED), (AskWriter(),)
        )
    suspicion = replace(state.suspicion, silent_reports=0)
    return Step(replace(state, suspicion=suspicion, verdict=verdict))


def _find_block(state: State, barred: str) -> SilenceVerdict | None:
    """Return the verdict that forbids the removal of any lock; None if it is allowed."""
    if state.forbidden:
        return SilenceVerdict.FORBIDDEN
    if state.removed:
        return SilenceVerdict.SPENT
    return SilenceVerdict.BARRED if barred else None


def _weigh_writer_report(state: State, report: WriterReported, now: float) -> Step:
    suspicion = state.suspicion
    if suspicion.lock is None or report.lock != suspicion.lock or suspicion.unanswered == 0:
        return Step(_clear(state))
    block = _find_block(state, report.barred)
    silence = report.silence
    if block is not None or silence is None or not _is_proven(state.settings, silence):
        verdict = block or SilenceVerdict.UNPROVEN
        return Step(replace(state, suspicion=replace(suspicion, silent_reports=0), verdict=verdict))
    suspicion = _count_report(suspicion, silence, now)
    confirming = replace(state, suspicion=suspicion, verdict=SilenceVerdict.CONFIRMING)
    if suspicion.silent_reports < SILENT_REPORTS_NEEDED or suspicion.unanswered < UNANSWERED_NEEDED:
        return Step(confirming)
    removing = replace(confirming, removed=report.lock.made, verdict=SilenceVerdict.REMOVING)
    return Step(removing, (RemoveLock(report.lock, _describe_silence(suspicion, silence)),))


def _is_proven(settings: WitnessSettings, silence: WriterSilence) -> bool:
    """Return whether a majority reports that a writer with heartbeats was silent long enough."""
    a_majority = 2 * silence.witnesses > silence.nodes
    limit = limit_seconds(settings, silence.lease_seconds)
    return a_majority and silence.lease_seconds > 0 and silence.silent_seconds > limit


def _count_report(suspicion: Suspicion, silence: WriterSilence, now: float) -> Suspicion:
    if suspicion.silent_reports == 0 or silence.epoch != suspicion.epoch:
        return replace(suspicion, silent_reports=1, epoch=silence.epoch, last_report_at=now)
    if now - suspicion.last_report_at < LEAST_SECONDS_BETWEEN:
        return suspicion
    return replace(suspicion, silent_reports=suspicion.silent_reports + 1, last_report_at=now)


def _describe_silence(suspicion: Suspicion, silence: WriterSilence) -> str:
    assert suspicion.lock is not None
    return (
        f"neither the NameNode nor the zkfc of {suspicion.lock.owner} answered "
        f"{suspicion.unanswered} times in a row, and a majority of {silence.nodes} JournalNodes "
        f"has not heard the writer of epoch {silence.epoch} for {silence.silent_seconds:.2f} s"
    )
