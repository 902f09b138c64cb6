"""From the outcomes of probes to the NameNode's health, and when to probe again.

Silence and refusal are damped apart, each as N of the last M probes
(docs/reference/health.md#refused-and-slow): a slow NameNode may be in a long garbage collection, a
refused connection shows that nothing listens.  A broken connection proves nothing by itself (the
server may have dropped an idle peer), but it makes us ask at once.  A process that was seen to end
needs no second opinion.
"""

from enum import StrEnum
from typing import Final, assert_never

from ha.record import dataclass, replace


class Health(StrEnum):
    """What we hold of the NameNode; INITIALIZING before the first result, and while it loads."""

    INITIALIZING = "initializing"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    NOT_RESPONDING = "not_responding"
    MONITOR_FAILED = "monitor_failed"
    """The health is unknown from now on: the monitor itself has ended."""


class Trouble(StrEnum):
    """What kind of trouble a NameNode is in that is not healthy."""

    NONE = "none"
    ILL = "ill"
    """The NameNode reports that it is unhealthy."""
    FAULTY = "faulty"
    """It answers, but not as the protocol would have it."""
    SLOW = "slow"
    """It answers too late, or not at all; its process may well live."""
    GONE = "gone"
    """No process listens, or the NameNode's process has ended."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Status and health were both answered well."""


@dataclass(frozen=True, slots=True)
class Starting:
    """The NameNode answered that it is not ready to be asked: it loads its image."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unwell:
    """The NameNode answered that it is not well."""

    reason: str


@dataclass(frozen=True, slots=True)
class Faulted:
    """The NameNode answered with an exception outside the protocol."""

    reason: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection ended, at rest or under a probe."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """No connection could be made: no process listens."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A connection or a call took longer than its deadline."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """No answer came in time, but our own event loop stood still for a large part of that time."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The NameNode's process is no more."""

    reason: str


ProbeOutcome = (
    Answered | Starting | Unwell | Faulted | Broken | Refused | Unanswered | Unjudged | Ended
)

OWN_DELAY_SHARE: Final = 1 / 3
"""Of a probe's deadline: if our own delay is at least this share, silence proves nothing."""
MOST_UNJUDGED: Final = 2
"""In a row.  A loop that is late at each probe must not hide for ever that a NameNode hangs."""


class _Kind(StrEnum):
    ANSWERED = "answered"
    REFUSED = "refused"
    SLOW = "slow"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Intervals and thresholds; the defaults are Hadoop's."""

    check_interval_seconds: float = 1.0
    retry_interval_seconds: float = 1.0
    rpc_timeout_seconds: float = 45.0
    refusals: int = 1
    """This number of refused or twice broken connections of ``refusals_of`` makes a NameNode gone.
    """
    refusals_of: int = 0
    """The newest probes that count; 0: as many as ``refusals``, which is "in a row"."""
    timeouts: int = 1
    """This number of probes without an answer of ``timeouts_of`` makes a NameNode not responding.
    """
    timeouts_of: int = 0
    """The newest probes that count; 0: as many as ``timeouts``."""

    def __post_init__(self) -> None:
        if self.check_interval_seconds <= 0 or self.rpc_timeout_seconds <= 0:
            raise ValueError("health intervals and timeouts must be greater than 0")
        if self.refusals < 1 or self.timeouts < 1:
            raise ValueError("health thresholds must be at least 1")
        for least, of in ((self.refusals, self.refusals_of), (self.timeouts, self.timeouts_of)):
            if of != 0 and of < least:
                raise ValueError(f"health cannot see {least} failures in {of} probes")

    @property
    def refusals_window(self) -> int:
        """How many of the newest probes count for ``refusals``."""
        return self.refusals_of or self.refusals

    @property
    def timeouts_window(self) -> int:
        """How many of the newest probes count for ``timeouts``."""
        return self.timeouts_of or self.timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthState:
    """What the judgement depends on."""

    settings: HealthSettings
    health: Health = Health.INITIALIZING
    trouble: Trouble = Trouble.NONE
    reason: str = "not probed yet"
    broken_in_a_row: int = 0
    unjudged_in_a_row: int = 0
    recent: tuple[_Kind, ...] = ()
    """The newest probes, as many as any limit looks at; the oldest first."""


@dataclass(frozen=True, slots=True)
class Step:
    """The state afterwards, and how long to wait before the next probe."""

    state: HealthState
    probe_after_seconds: float


def step(state: HealthState, outcome: ProbeOutcome) -> Step:
    """Judge one probe."""
    settings = state.settings
    match outcome:
        case Answered():
            return Step(_recover(state), settings.check_interval_seconds)
        case Starting(reason=reason):
            starting = _accept_answer(state, Health.INITIALIZING, Trouble.NONE, reason)
            return Step(starting, settings.check_interval_seconds)
        case Unwell(reason=reason):
            # An answer, not a guess: no damping.
            ill = _accept_answer(state, Health.UNHEALTHY, Trouble.ILL, reason)
            return Step(ill, settings.check_interval_seconds)
        case Faulted(reason=reason):
            faulted = _accept_answer(state, Health.NOT_RESPONDING, Trouble.FAULTY, reason)
            return Step(faulted, settings.retry_interval_seconds)
        case Broken(reason=reason):
            return _count_broken(state, reason)
        case Refused(reason=reason):
            return _silent(state, _Kind.REFUSED, reason)
        case Unanswered(reason=reason):
            return _silent(state, _Kind.SLOW, reason)
        case Unjudged(reason=reason):
            return _count_unjudged(state, reason)
        case Ended(reason=reason):
            # What comes next is another process, and owes nothing to this one's history.
            gone = _enter(state, Health.NOT_RESPONDING, Trouble.GONE, reason)
            gone = replace(gone, recent=(), broken_in_a_row=0, unjudged_in_a_row=0)
            return Step(gone, settings.retry_interval_seconds)
    assert_never(outcome)


def discard_if_loop_was_late(
    outcome: ProbeOutcome, *, late_seconds: float, deadline_seconds: float
) -> ProbeOutcome:
    """Return the outcome of a probe, unjudged if our own loop was late by ``late_seconds`` in all.

    The bad schedule: the machine of both stands still for longer than the deadline.  When it goes
    on, our timer is due before the NameNode can have answered.

    See docs/reference/health.md#our-own-delay.
    """
    if not isinstance(outcome, Unanswered) or late_seconds < OWN_DELAY_SHARE * deadline_seconds:
        return outcome
    return Unjudged(f"{outcome.reason}, while our own event loop was {late_seconds:.1f} s late")


def note_monitor_failure(state: HealthState, reason: str) -> HealthState:
    """Return the health after the monitor itself has ended.

    See docs/reference/health.md#end-of-the-monitor.
    """
    return _enter(state, Health.MONITOR_FAILED, Trouble.FAULTY, reason)


def _recover(state: HealthState) -> HealthState:
    heard = replace(_remember(state, _Kind.ANSWERED), broken_in_a_row=0)
    over = _over_a_limit(heard) if state.health is Health.NOT_RESPONDING else None
    if over is None:
        return _enter(heard, Health.HEALTHY, Trouble.NONE, "")
    # A window that is longer than its limit damps the way back, too: one good answer among five
    # late ones is no recovery.
    trouble, counted = over
    return _enter(heard, Health.NOT_RESPONDING, trouble, f"it answers again, but {counted}")


def _accept_answer(
    state: HealthState, health: Health, trouble: Trouble, reason: str
) -> HealthState:
    heard = replace(_remember(state, _Kind.ANSWERED), broken_in_a_row=0)
    return _enter(heard, health, trouble, reason)


def _count_broken(state: HealthState, reason: str) -> Step:
    if state.broken_in_a_row == 0:
        # A killed process closes its sockets before its port refuses: ask now, not in a second.
        return Step(replace(state, broken_in_a_row=1), 0.0)
    return _silent(state, _Kind.REFUSED, reason)


def _count_unjudged(state: HealthState, reason: str) -> Step:
    if state.unjudged_in_a_row >= MOST_UNJUDGED:
        return _silent(state, _Kind.SLOW, reason)
    return Step(replace(state, unjudged_in_a_row=state.unjudged_in_a_row + 1), 0.0)


def _silent(state: HealthState, kind: _Kind, reason: str) -> Step:
    missed = _remember(state, kind)
    over = _over_a_limit(missed)
    if over is not None:
        trouble, counted = over
        words = reason if len(missed.recent) == 1 else f"{reason} ({counted})"
        missed = _enter(missed, Health.NOT_RESPONDING, trouble, words)
    return Step(missed, state.settings.retry_interval_seconds)


def _over_a_limit(state: HealthState) -> tuple[Trouble, str] | None:
    """Return which limit the newest probes exceed, and the count in words; the graver one first."""
    settings = state.settings
    window = state.recent[-settings.refusals_window :]
    refused = window.count(_Kind.REFUSED)
    if refused >= settings.refusals:
        return Trouble.GONE, f"{refused} of the last {len(window)} probes were refused"
    window = state.recent[-settings.timeouts_window :]
    # A refusal is no answer either: a NameNode that is now slow, now refusing, is not well.
    missed = len(window) - window.count(_Kind.ANSWERED)
    if _Kind.SLOW in window and missed >= settings.timeouts:
        return Trouble.SLOW, f"{missed} of the last {len(window)} probes had no answer"
    return None


def _remember(state: HealthState, kind: _Kind) -> HealthState:
    most = max(state.settings.refusals_window, state.settings.timeouts_window)
    return replace(state, recent=(*state.recent, kind)[-most:], unjudged_in_a_row=0)


def _enter(state: HealthState, health: Health, trouble: Trouble, reason: str) -> HealthState:
    return replace(state, health=health, trouble=trouble, reason=reason)
