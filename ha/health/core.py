"""Judges the NameNode's health from the outcomes of probes, and decides when to probe again.

Refused and unanswered probes have separate limits, each as N of the last M probes
(docs/reference/health.md#refused-and-slow): a refusal shows that no process listens, while a slow
NameNode may be in a long garbage collection.  A broken connection alone proves nothing, since the
server may have dropped an idle peer, but leads to a probe at once.  The end of the process counts
at once.
"""

from enum import StrEnum
from typing import Final, assert_never

from ha.record import dataclass, replace


class Health(StrEnum):
    """The judgement; INITIALIZING before the first probe and while the NameNode loads."""

    INITIALIZING = "initializing"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    NOT_RESPONDING = "not_responding"
    MONITOR_FAILED = "monitor_failed"
    """The monitor itself has ended, so the health is unknown."""


class Trouble(StrEnum):
    """Why a NameNode is not healthy."""

    NONE = "none"
    ILL = "ill"
    """The NameNode reports that it is unhealthy."""
    FAULTY = "faulty"
    """It answers with an exception outside the protocol."""
    SLOW = "slow"
    """It answers too late or not at all; its process may be alive."""
    GONE = "gone"
    """No process listens, or the NameNode's process has ended."""


@dataclass(frozen=True, slots=True)
class Answered:
    """getServiceStatus and monitorHealth both succeeded."""


@dataclass(frozen=True, slots=True)
class Starting:
    """The NameNode answered that it is still loading its image."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unwell:
    """The NameNode answered that it is unhealthy."""

    reason: str


@dataclass(frozen=True, slots=True)
class Faulted:
    """The NameNode answered with an exception outside the protocol."""

    reason: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection broke, during a probe or between two."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The connection was refused: no process listens."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A connection or a call took longer than its deadline."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """No answer came in time, but our own event loop was blocked for much of that time."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The NameNode's process has ended."""

    reason: str


ProbeOutcome = (
    Answered | Starting | Unwell | Faulted | Broken | Refused | Unanswered | Unjudged | Ended
)

OWN_DELAY_SHARE: Final = 1 / 3
"""If our own loop was late by this share of a probe's deadline, the probe does not count."""
MOST_UNJUDGED: Final = 2
"""In a row; after that they count, or a loop that is always late would hide a hanging NameNode."""


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
    """This number of refused probes among the last ``refusals_of`` makes it NOT_RESPONDING."""
    refusals_of: int = 0
    """0 means ``refusals``: all in a row."""
    timeouts: int = 1
    """This number of unanswered probes among the last ``timeouts_of`` does, too."""
    timeouts_of: int = 0
    """0 means ``timeouts``."""

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
        """The number of newest probes that count for ``refusals``."""
        return self.refusals_of or self.refusals

    @property
    def timeouts_window(self) -> int:
        """The number of newest probes that count for ``timeouts``."""
        return self.timeouts_of or self.timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthState:
    """The judgement, and the facts that the next one depends on."""

    settings: HealthSettings
    health: Health = Health.INITIALIZING
    trouble: Trouble = Trouble.NONE
    reason: str = "not probed yet"
    broken_in_a_row: int = 0
    unjudged_in_a_row: int = 0
    recent: tuple[_Kind, ...] = ()
    """The newest probes, as many as the longer window has, the oldest first."""


@dataclass(frozen=True, slots=True)
class Step:
    """The state after a probe, and how long to wait before the next one."""

    state: HealthState
    probe_after_seconds: float


def step(state: HealthState, outcome: ProbeOutcome) -> Step:
    """Return the judgement after a probe."""
    settings = state.settings
    match outcome:
        case Answered():
            return Step(_recover(state), settings.check_interval_seconds)
        case Starting(reason=reason):
            starting = _accept_answer(state, Health.INITIALIZING, Trouble.NONE, reason)
            return Step(starting, settings.check_interval_seconds)
        case Unwell(reason=reason):
            # The NameNode's own answer counts at once.
            ill = _accept_answer(state, Health.UNHEALTHY, Trouble.ILL, reason)
            return Step(ill, settings.check_interval_seconds)
        case Faulted(reason=reason):
            faulted = _accept_answer(state, Health.NOT_RESPONDING, Trouble.FAULTY, reason)
            return Step(faulted, settings.retry_interval_seconds)
        case Broken(reason=reason):
            return _count_broken(state, reason)
        case Refused(reason=reason):
            return _count_silence(state, _Kind.REFUSED, reason)
        case Unanswered(reason=reason):
            return _count_silence(state, _Kind.SLOW, reason)
        case Unjudged(reason=reason):
            return _count_unjudged(state, reason)
        case Ended(reason=reason):
            # The next process starts with an empty history.
            gone = _enter(state, Health.NOT_RESPONDING, Trouble.GONE, reason)
            gone = replace(gone, recent=(), broken_in_a_row=0, unjudged_in_a_row=0)
            return Step(gone, settings.retry_interval_seconds)
    assert_never(outcome)


def discard_if_loop_was_late(
    outcome: ProbeOutcome, *, late_seconds: float, deadline_seconds: float
) -> ProbeOutcome:
    """Return the outcome, or Unjudged if it is a timeout and our loop was late by a third of it.

    The bad schedule: the machine with both processes stops for longer than the deadline.  When it
    goes on, our timer fires before the NameNode can answer.

    See docs/reference/health.md#our-own-delay.
    """
    if not isinstance(outcome, Unanswered) or late_seconds < OWN_DELAY_SHARE * deadline_seconds:
        return outcome
    return Unjudged(f"{outcome.reason}, while our own event loop was {late_seconds:.1f} s late")


def record_monitor_failure(state: HealthState, reason: str) -> HealthState:
    """Return the state after the monitor itself has ended.

    See docs/reference/health.md#end-of-the-monitor.
    """
    return _enter(state, Health.MONITOR_FAILED, Trouble.FAULTY, reason)


def _recover(state: HealthState) -> HealthState:
    heard = replace(_remember(state, _Kind.ANSWERED), broken_in_a_row=0)
    over = _find_exceeded_limit(heard) if state.health is Health.NOT_RESPONDING else None
    if over is None:
        return _enter(heard, Health.HEALTHY, Trouble.NONE, "")
    # With a window longer than its limit, one good answer among five late ones is no recovery.
    trouble, counted = over
    return _enter(heard, Health.NOT_RESPONDING, trouble, f"it answers again, but {counted}")


def _accept_answer(
    state: HealthState, health: Health, trouble: Trouble, reason: str
) -> HealthState:
    heard = replace(_remember(state, _Kind.ANSWERED), broken_in_a_row=0)
    return _enter(heard, health, trouble, reason)


def _count_broken(state: HealthState, reason: str) -> Step:
    if state.broken_in_a_row == 0:
        # A killed process closes its sockets, and then refuses connections: probe at once.
        return Step(replace(state, broken_in_a_row=1), 0.0)
    return _count_silence(state, _Kind.REFUSED, reason)


def _count_unjudged(state: HealthState, reason: str) -> Step:
    if state.unjudged_in_a_row >= MOST_UNJUDGED:
        return _count_silence(state, _Kind.SLOW, reason)
    return Step(replace(state, unjudged_in_a_row=state.unjudged_in_a_row + 1), 0.0)


def _count_silence(state: HealthState, kind: _Kind, reason: str) -> Step:
    missed = _remember(state, kind)
    over = _find_exceeded_limit(missed)
    if over is not None:
        trouble, counted = over
        words = reason if len(missed.recent) == 1 else f"{reason} ({counted})"
        missed = _enter(missed, Health.NOT_RESPONDING, trouble, words)
    return Step(missed, state.settings.retry_interval_seconds)


def _find_exceeded_limit(state: HealthState) -> tuple[Trouble, str] | None:
    """Return the trouble whose limit is reached, refusals first, and the count in words."""
    settings = state.settings
    window = state.recent[-settings.refusals_window :]
    refused = window.count(_Kind.REFUSED)
    if refused >= settings.refusals:
        return Trouble.GONE, f"{refused} of the last {len(window)} probes were refused"
    window = state.recent[-settings.timeouts_window :]
    # Refusals count as unanswered, too, for a NameNode that alternates between both.
    missed = len(window) - window.count(_Kind.ANSWERED)
    if _Kind.SLOW in window and missed >= settings.timeouts:
        return Trouble.SLOW, f"{missed} of the last {len(window)} probes had no answer"
    return None


def _remember(state: HealthState, kind: _Kind) -> HealthState:
    most = max(state.settings.refusals_window, state.settings.timeouts_window)
    return replace(state, recent=(*state.recent, kind)[-most:], unjudged_in_a_row=0)


def _enter(state: HealthState, health: Health, trouble: Trouble, reason: str) -> HealthState:
    return replace(state, health=health, trouble=trouble, reason=reason)
