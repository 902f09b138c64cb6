"""The witness of another's silence through a long life, and its every step: reviewed as one text.

Times, answers and silences lie on both sides of each limit, and on it.
"""

from pathlib import Path
from random import Random

from ha.elector.model import Removal
from ha.service.model import WriterSilence
from ha.zkfc.witness import core
from ha.zkfc.witness.core import step
from tests.transitions import same_as, walked


def silence(nodes: int, witnesses: int, epoch: int, seconds: float, lease: float) -> WriterSilence:
    return WriterSilence(
        nodes=nodes, witnesses=witnesses, epoch=epoch, silent_seconds=seconds, lease_seconds=lease
    )


LOCKS = (core.Lock(7, "nn2"), core.Lock(7, "nn2"), core.Lock(7, "nn2"), core.Lock(9, "nn3"))
SILENCES = (
    None,
    *(silence(3, 2, 5, seconds, 2.0) for seconds in (2.0, 2.1, 2.25, 4.0)),
    *(silence(3, 2, 5, 9.0, 2.0) for _ in range(8)),
    silence(3, 2, 6, 9.0, 2.0),
    silence(3, 1, 5, 9.0, 2.0),
    silence(4, 2, 5, 9.0, 2.0),
    silence(3, 3, 5, 9.0, 0.0),
    silence(3, 2, 5, 1.25, 0.5),
    silence(3, 2, 5, 1.5, 0.5),
)
ANSWERS = (*(core.Answer.SILENT,) * 8, *core.Answer)
PAUSES = (0.0, 0.0625, 0.125, 1.0)
STEPS = 900


def drawn(rng: Random) -> core.Event:
    """Mostly an owner that is asked in vain, and a writer that is silent."""
    roll = rng.random()
    barred = "a pause" if rng.random() < 0.08 else ""
    if roll < 0.45:
        return core.OwnerAsked(rng.choice(LOCKS[: 4 if rng.random() < 0.2 else 3]),
                          rng.choice(ANSWERS), barred)  # fmt: skip
    if roll < 0.88:
        lock = rng.choice((*LOCKS, None)) if rng.random() < 0.1 else LOCKS[0]
        return core.WriterReported(lock, rng.choice(SILENCES), barred)
    if roll < 0.96:
        some = [one for one in Removal if one is not Removal.FORBIDDEN]
        return core.RemovalEnded(rng.choice(some))
    return rng.choice((core.NoOwner(), core.BecameActive()))


def test_a_long_life_of_the_witness_is_as_it_was_reviewed() -> None:
    rng, now = Random(3), 100.0

    def took(state: core.State, event: core.Event) -> tuple[core.State, tuple[core.Action, ...]]:
        nonlocal now
        now += rng.choice(PAUSES)
        result = step(state, event, now=now)
        return result.state, result.actions

    events = [drawn(rng) for _ in range(STEPS)]
    events += [core.RemovalEnded(Removal.FORBIDDEN), *(drawn(rng) for _ in range(STEPS // 10))]
    told = [(str(number), event) for number, event in enumerate(events)]
    start = core.State(settings=core.WitnessSettings(silence_seconds=1.25))
    same_as(Path(__file__).with_name("witness.txt"), walked(start, told, took))
