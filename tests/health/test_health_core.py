"""Probe outcomes to health: silence and refusal are damped apart, a broken connection hurries."""

import pytest

from ha.health.core import (
    Answered,
    Broken,
    Faulted,
    Health,
    HealthSettings,
    HealthState,
    Outcome,
    Refused,
    Unanswered,
    Unwell,
    step,
)

H = Health
OK, ILL, ODD = Answered(), Unwell("disk"), Faulted("starting")
CUT, NO, SLOW = Broken("eof"), Refused("refused"), Unanswered("late")
QUICK = HealthSettings(check_interval_seconds=1.0, retry_interval_seconds=2.0)
PATIENT = HealthSettings(refusals=2, timeouts=3)

CASES: dict[str, tuple[HealthSettings, list[Outcome], list[Health]]] = {
    "an answer is healthy": (QUICK, [OK], [H.HEALTHY]),
    "an ill answer is believed at once": (
        PATIENT, [OK, ILL, OK], [H.HEALTHY, H.UNHEALTHY, H.HEALTHY]),
    "a fault is no answer": (PATIENT, [OK, ODD], [H.HEALTHY, H.NOT_RESPONDING]),
    "a broken connection alone tells nothing": (QUICK, [OK, CUT, OK], [H.HEALTHY] * 3),
    "broken, then refused: gone": (QUICK, [OK, CUT, NO], [H.HEALTHY, H.HEALTHY, H.NOT_RESPONDING]),
    "broken twice: gone": (QUICK, [OK, CUT, CUT], [H.HEALTHY, H.HEALTHY, H.NOT_RESPONDING]),
    "refused at the start": (QUICK, [NO], [H.NOT_RESPONDING]),
    "broken at the start is still unknown": (QUICK, [CUT], [H.INITIALIZING]),
    "refusals below the threshold": (PATIENT, [OK, NO, OK, NO], [H.HEALTHY] * 4),
    "refusals at the threshold": (PATIENT, [OK, NO, NO], [H.HEALTHY, H.HEALTHY, H.NOT_RESPONDING]),
    "late once by default": (QUICK, [OK, SLOW], [H.HEALTHY, H.NOT_RESPONDING]),
    "late below the threshold": (PATIENT, [OK, SLOW, SLOW, OK, SLOW, SLOW], [H.HEALTHY] * 6),
    "late at the threshold": (
        PATIENT, [OK, SLOW, SLOW, SLOW], [*[H.HEALTHY] * 3, H.NOT_RESPONDING]),
    "it comes back": (
        QUICK, [OK, NO, NO, OK], [H.HEALTHY, H.NOT_RESPONDING, H.NOT_RESPONDING, H.HEALTHY]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_outcomes(case: str) -> None:
    settings, outcomes, expected = CASES[case]
    state, seen = HealthState(settings=settings), []
    for outcome in outcomes:
        state = step(state, outcome).state
        seen.append(state.health)
    assert seen == expected


@pytest.mark.parametrize(
    ("outcome", "seconds"), [(OK, 1.0), (ILL, 1.0), (ODD, 2.0), (NO, 2.0), (SLOW, 2.0), (CUT, 0.0)]
)
def test_when_to_probe_again(outcome: Outcome, seconds: float) -> None:
    assert step(HealthState(settings=QUICK), outcome).probe_after_seconds == seconds


def test_a_server_that_always_hangs_up_is_not_probed_in_a_tight_loop() -> None:
    state = HealthState(settings=QUICK)
    waits = []
    for _ in range(4):
        result = step(state, CUT)
        state = result.state
        waits.append(result.probe_after_seconds)
    assert waits == [0.0, 2.0, 2.0, 2.0]


def test_the_reason_is_kept_and_forgotten() -> None:
    state = step(HealthState(settings=QUICK), ILL).state
    assert state.reason == "disk"
    assert step(state, OK).state.reason == ""


@pytest.mark.parametrize(
    "bad",
    [{"check_interval_seconds": 0}, {"rpc_timeout_seconds": 0}, {"refusals": 0}, {"timeouts": 0}],
)
def test_settings_are_checked(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="health"):
        HealthSettings(**bad)
