"""The health of a NameNode after many probes, under several limits: reviewed as one text."""

from pathlib import Path
from random import Random

from ha.health.core import (
    Answered,
    Broken,
    Ended,
    Faulted,
    HealthSettings,
    HealthState,
    ProbeOutcome,
    Refused,
    Starting,
    Unanswered,
    Unjudged,
    Unwell,
    step,
)
from tests.transitions import same_as, walked

OUTCOMES: dict[str, ProbeOutcome] = {
    "answered": Answered(),
    "answered again": Answered(),
    "starting": Starting("loading"),
    "unwell": Unwell("disk"),
    "faulted": Faulted("odd"),
    "broken": Broken("reset"),
    "refused": Refused("refused"),
    "unanswered": Unanswered("late"),
    "unjudged": Unjudged("we were late"),
    "ended": Ended("gone"),
}
LIMITS: dict[str, HealthSettings] = {
    "Hadoop's": HealthSettings(check_interval_seconds=1.0, retry_interval_seconds=3.0),
    "two in a row": HealthSettings(refusals=2, timeouts=2, retry_interval_seconds=3.0),
    "two of three, three of four": HealthSettings(
        refusals=2, refusals_of=3, timeouts=3, timeouts_of=4, retry_interval_seconds=3.0
    ),
}
STEPS = 200


def took(state: HealthState, outcome: ProbeOutcome) -> tuple[HealthState, tuple[float, ...]]:
    """Return one step, and when to probe again."""
    result = step(state, outcome)
    return result.state, (result.probe_after_seconds,)


def test_what_is_held_of_a_namenode_is_as_it_was_reviewed() -> None:
    rng, lines = Random(5), list[str]()
    for name, settings in LIMITS.items():
        told = [(each, OUTCOMES[each]) for each in rng.choices(list(OUTCOMES), k=STEPS)]
        lines += [f"{name}:", *walked(HealthState(settings=settings), told, took)]
    same_as(Path(__file__).with_name("transitions.txt"), lines)
