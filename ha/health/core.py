"""From the outcomes of probes to the NameNode's health, and when to probe again (hadoop-ha 2).

Silence and refusal are damped apart: a slow NameNode may be in a long garbage collection, a
refused connection tells that nobody listens.  A broken connection tells nothing by itself (the
server may have dropped an idle peer), but it makes us ask at once.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never


class Health(StrEnum):
    """What we hold of the NameNode; INITIALIZING only before the first result."""

    INITIALIZING = "initializing"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    NOT_RESPONDING = "not_responding"


@dataclass(frozen=True, slots=True)
class Answered:
    """Status and health were both answered well."""


@dataclass(frozen=True, slots=True)
class Unwell:
    """The NameNode answered that it is not well."""

    reason: str


@dataclass(frozen=True, slots=True)
class Faulted:
    """The NameNode answered with an exception outside the protocol, e.g. while it starts."""

    reason: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection ended, at rest or under a probe."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """No connection could be made: nobody listens."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A connection or a call took longer than its deadline."""

    reason: str


Outcome = Answered | Unwell | Faulted | Broken | Refused | Unanswered


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Intervals and thresholds; the defaults are Hadoop's (hadoop-ha 2.2)."""

    check_interval_seconds: float = 1.0
    retry_interval_seconds: float = 1.0
    rpc_timeout_seconds: float = 45.0
    refusals: int = 1
    """Refused or twice broken connections in a row until the NameNode counts as gone."""
    timeouts: int = 1
    """Unanswered probes in a row until the NameNode counts as not responding."""

    def __post_init__(self) -> None:
        if self.check_interval_seconds <= 0 or self.rpc_timeout_seconds <= 0:
            raise ValueError("health intervals and timeouts must be greater than 0")
        if self.refusals < 1 or self.timeouts < 1:
            raise ValueError("health thresholds must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthState:
    """What the judgement depends on."""

    settings: HealthSettings
    health: Health = Health.INITIALIZING
    reason: str = "not probed yet"
    broken_in_a_row: int = 0
    refusals_in_a_row: int = 0
    timeouts_in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """The state afterwards, and how long to wait before the next probe."""

    state: HealthState
    probe_after_seconds: float


def step(state: HealthState, outcome: Outcome) -> Step:
    """Judge one probe."""
    settings = state.settings
    match outcome:
        case Answered():
            return Step(_enter(state, Health.HEALTHY, ""), settings.check_interval_seconds)
        case Unwell(reason=reason):
            # An answer, not a guess: no damping.
            return Step(_enter(state, Health.UNHEALTHY, reason), settings.check_interval_seconds)
        case Faulted(reason=reason):
            faulted = _enter(state, Health.NOT_RESPONDING, reason)
            return Step(faulted, settings.retry_interval_seconds)
        case Broken(reason=reason):
            return _broken(state, reason)
        case Refused(reason=reason):
            return _refused(state, reason)
        case Unanswered(reason=reason):
            return _unanswered(state, reason)
    assert_never(outcome)


def _broken(state: HealthState, reason: str) -> Step:
    if state.broken_in_a_row == 0:
        # A killed process closes its sockets before its port refuses: ask now, not in a second.
        return Step(replace(state, broken_in_a_row=1), 0.0)
    return _refused(state, reason)


def _refused(state: HealthState, reason: str) -> Step:
    count = state.refusals_in_a_row + 1
    counted = replace(state, refusals_in_a_row=count)
    if count >= state.settings.refusals:
        counted = replace(counted, health=Health.NOT_RESPONDING, reason=reason)
    return Step(counted, state.settings.retry_interval_seconds)


def _unanswered(state: HealthState, reason: str) -> Step:
    count = state.timeouts_in_a_row + 1
    counted = replace(state, timeouts_in_a_row=count)
    if count >= state.settings.timeouts:
        counted = replace(counted, health=Health.NOT_RESPONDING, reason=reason)
    return Step(counted, state.settings.retry_interval_seconds)


def _enter(state: HealthState, health: Health, reason: str) -> HealthState:
    return HealthState(settings=state.settings, health=health, reason=reason)
