"""Probe outcomes to health: silence and refusal are damped apart, a broken connection hurries."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.health import core
from ha.health.core import discard_if_loop_was_late, step

H = core.Health
OK, ILL, ODD = core.Answered(), core.Unwell("disk"), core.Faulted("starting")
CUT, NO, SLOW = core.Broken("eof"), core.Refused("refused"), core.Unanswered("late")
OVER = core.Ended("process 7 has ended")
QUICK = core.HealthSettings(check_interval_seconds=1.0, retry_interval_seconds=2.0)
PATIENT = core.HealthSettings(refusals=2, timeouts=3)
THREE_OF_FIVE = core.HealthSettings(refusals=2, refusals_of=3, timeouts=3, timeouts_of=5)

CASES: dict[str, tuple[core.HealthSettings, list[core.ProbeOutcome], list[core.Health]]] = {
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
    "late thrice of five, not in a row": (
        THREE_OF_FIVE, [SLOW, OK, SLOW, OK, SLOW],
        [H.INITIALIZING, H.HEALTHY, H.HEALTHY, H.HEALTHY, H.NOT_RESPONDING]),
    "late thrice of six is not of five": (
        THREE_OF_FIVE, [OK, SLOW, OK, OK, SLOW, OK, SLOW], [H.HEALTHY] * 7),
    "one good answer among late ones is no recovery": (
        THREE_OF_FIVE, [OK, SLOW, SLOW, SLOW, OK, OK, OK],
        [H.HEALTHY, H.HEALTHY, H.HEALTHY, *[H.NOT_RESPONDING] * 3, H.HEALTHY]),
    "refused twice of three": (
        THREE_OF_FIVE, [OK, NO, OK, NO], [H.HEALTHY, H.HEALTHY, H.HEALTHY, H.NOT_RESPONDING]),
    "now slow, now refusing": (
        replace(THREE_OF_FIVE, refusals=3), [OK, SLOW, NO, SLOW],
        [H.HEALTHY, H.HEALTHY, H.HEALTHY, H.NOT_RESPONDING]),
    "an end that was seen needs no second opinion": (
        PATIENT, [OK, OVER, OK], [H.HEALTHY, H.NOT_RESPONDING, H.HEALTHY]),
    "another process owes nothing to its forerunner's history": (
        THREE_OF_FIVE, [OK, SLOW, SLOW, OVER, OK, SLOW, SLOW],
        [H.HEALTHY, H.HEALTHY, H.HEALTHY, H.NOT_RESPONDING, H.HEALTHY, H.HEALTHY, H.HEALTHY]),
    "neither ill nor well again waits behind late ones": (
        THREE_OF_FIVE, [SLOW, SLOW, SLOW, ILL, OK],
        [H.INITIALIZING, H.INITIALIZING, H.NOT_RESPONDING, H.UNHEALTHY, H.HEALTHY]),
    "it comes back": (
        QUICK, [OK, NO, NO, OK], [H.HEALTHY, H.NOT_RESPONDING, H.NOT_RESPONDING, H.HEALTHY]),
}  # fmt: skip


@pytest.mark.row("W16")
@pytest.mark.parametrize("case", CASES)
def test_outcomes(case: str) -> None:
    settings, outcomes, expected = CASES[case]
    state, seen = core.HealthState(settings=settings), []
    for outcome in outcomes:
        state = step(state, outcome).state
        seen.append(state.health)
    assert seen == expected


@pytest.mark.parametrize(
    ("outcome", "seconds"), [(OK, 1.0), (ILL, 1.0), (ODD, 2.0), (NO, 2.0), (SLOW, 2.0), (CUT, 0.0)]
)
def test_when_to_probe_again(outcome: core.ProbeOutcome, seconds: float) -> None:
    assert step(core.HealthState(settings=QUICK), outcome).probe_after_seconds == seconds


def test_a_server_that_always_hangs_up_is_not_probed_in_a_tight_loop() -> None:
    state = core.HealthState(settings=QUICK)
    waits = []
    for _ in range(4):
        result = step(state, CUT)
        state = result.state
        waits.append(result.probe_after_seconds)
    assert waits == [0.0, 2.0, 2.0, 2.0]


TROUBLES: dict[str, tuple[list[core.ProbeOutcome], core.Trouble, str]] = {
    "well": ([OK], core.Trouble.NONE, ""),
    "ill": ([ILL], core.Trouble.ILL, "disk"),
    "faulty": ([ODD], core.Trouble.FAULTY, "starting"),
    "refused": ([OK, NO], core.Trouble.GONE, "refused"),
    "late": ([OK, SLOW], core.Trouble.SLOW, "late"),
    "late, then refused": (
        [OK, SLOW, NO], core.Trouble.GONE, "refused"),
    "ended": ([OK, OVER], core.Trouble.GONE, "process 7 has ended"),
}  # fmt: skip


@pytest.mark.row("W16")
@pytest.mark.parametrize("case", TROUBLES)
def test_w16_refused_and_slow_are_told_apart_with_a_reason(case: str) -> None:
    outcomes, trouble, reason = TROUBLES[case]
    state = core.HealthState(settings=QUICK)
    for outcome in outcomes:
        state = step(state, outcome).state
    assert (state.trouble, state.reason) == (trouble, reason)


@pytest.mark.row("W16")
def test_w16_the_reason_counts_where_one_probe_is_not_enough() -> None:
    state = core.HealthState(settings=PATIENT)
    for outcome in (OK, SLOW, SLOW, SLOW):
        state = step(state, outcome).state
    assert state.reason == "late (3 of the last 3 probes had no answer)"


@pytest.mark.row("W16")
@given(st.lists(st.sampled_from([OK, ILL, ODD, CUT, NO, SLOW, OVER]), max_size=40))
def test_w16_fewer_failures_than_the_limit_never_cost_a_healthy_namenode(
    outcomes: list[core.ProbeOutcome],
) -> None:
    state, seen = core.HealthState(settings=THREE_OF_FIVE), list[core.ProbeOutcome]()
    for outcome in outcomes:
        before, state = state.health, step(state, outcome).state
        seen.append(outcome)
        if before is H.HEALTHY and state.health is H.NOT_RESPONDING:
            silent = [
                one
                for one in seen[-6:]
                if isinstance(one, core.Refused | core.Unanswered | core.Broken)
            ]
            assert len(silent) >= 2 or outcome in (ODD, OVER)


def test_a_monitor_that_died_knows_nothing() -> None:
    state = core.record_monitor_failure(
        step(core.HealthState(settings=QUICK), OK).state, "out of memory"
    )
    assert (state.health, state.reason) == (H.MONITOR_FAILED, "out of memory")


def test_the_reason_is_kept_and_forgotten() -> None:
    state = step(core.HealthState(settings=QUICK), ILL).state
    assert state.reason == "disk"
    assert step(state, OK).state.reason == ""


@pytest.mark.parametrize(
    "bad",
    [
        {"check_interval_seconds": 0},
        {"rpc_timeout_seconds": 0},
        {"refusals": 0},
        {"timeouts": 0},
        {"refusals": 3, "refusals_of": 2},
        {"timeouts": 3, "timeouts_of": 2},
    ],
)
def test_settings_are_checked(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="health"):
        core.HealthSettings(**bad)


@pytest.mark.parametrize(
    ("outcome", "late", "judged"),
    [(SLOW, 0.0, True), (SLOW, 0.9, True), (SLOW, 1.0, False), (SLOW, 9.0, False),
     (OK, 9.0, True), (NO, 9.0, True), (ILL, 9.0, True)],
)  # fmt: skip
def test_only_silence_is_not_judged_where_a_third_of_it_was_our_own(
    outcome: core.ProbeOutcome, late: float, *, judged: bool
) -> None:
    found = discard_if_loop_was_late(outcome, late_seconds=late, deadline_seconds=3.0)
    assert (found is outcome) is judged
    assert isinstance(found, core.Unjudged) is not judged


def test_no_more_than_two_silences_in_a_row_are_ours() -> None:
    state, seen = core.HealthState(settings=QUICK), []
    outcomes: list[core.ProbeOutcome] = [OK, *[core.Unjudged("late")] * 3]
    for outcome in outcomes:
        state = step(state, outcome).state
        seen.append(state.health)
    assert seen == [H.HEALTHY] * 3 + [H.NOT_RESPONDING]


@pytest.mark.parametrize(("of", "fits"), [(0, True), (1, False), (2, True), (3, True)])
def test_so_many_failures_fit_into_so_many_probes(of: int, *, fits: bool) -> None:
    for limits in ({"refusals": 2, "refusals_of": of}, {"timeouts": 2, "timeouts_of": of}):
        if fits:
            core.HealthSettings(**limits)
        else:
            with pytest.raises(ValueError, match="health cannot see 2 failures in 1 probes"):
                core.HealthSettings(**limits)


def test_intervals_may_be_shorter_than_a_second_and_not_nothing() -> None:
    core.HealthSettings(check_interval_seconds=0.25, rpc_timeout_seconds=0.25)
    with pytest.raises(ValueError, match="must be greater than 0"):
        core.HealthSettings(check_interval_seconds=0.0)
    with pytest.raises(ValueError, match="must be greater than 0"):
        core.HealthSettings(rpc_timeout_seconds=0.0)
