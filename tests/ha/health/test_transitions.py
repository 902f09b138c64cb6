"""The health of a NameNode after many probes, under several limits: reviewed as one text."""

from pathlib import Path
from random import Random

from ha.health import core
from ha.health.core import step
from tests.transitions import same_as, walked

OUTCOMES: dict[str, core.ProbeOutcome] = {
    "answered": core.Answered(),
    "answered again": core.Answered(),
    "starting": core.Starting("loading"),
    "unwell": core.Unwell("disk"),
    "faulted": core.Faulted("odd"),
    "broken": core.Broken("reset"),
    "refused": core.Refused("refused"),
    "unanswered": core.Unanswered("late"),
    "unjudged": core.Unjudged("we were late"),
    "ended": core.Ended("gone"),
}
LIMITS: dict[str, core.HealthSettings] = {
    "Hadoop's": core.HealthSettings(check_interval_seconds=1.0, retry_interval_seconds=3.0),
    "two in a row": core.HealthSettings(refusals=2, timeouts=2, retry_interval_seconds=3.0),
    "two of three, three of four": core.HealthSettings(
        refusals=2, refusals_of=3, timeouts=3, timeouts_of=4, retry_interval_seconds=3.0
    ),
}
STEPS = 200


def took(
    state: core.HealthState, outcome: core.ProbeOutcome
) -> tuple[core.HealthState, tuple[float, ...]]:
    result = step(state, outcome)
    return result.state, (result.probe_after_seconds,)


def test_what_is_held_of_a_namenode_is_as_it_was_reviewed() -> None:
    rng, lines = Random(5), list[str]()
    for name, settings in LIMITS.items():
        told = [(each, OUTCOMES[each]) for each in rng.choices(list(OUTCOMES), k=STEPS)]
        lines += [f"{name}:", *walked(core.HealthState(settings=settings), told, took)]
    same_as(Path(__file__).with_name("transitions.txt"), lines)
