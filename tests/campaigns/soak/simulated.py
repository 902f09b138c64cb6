"""What the soaks of all simulated worlds have in common on the command line."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from tests.campaigns.soak.mutants import find_all
from tests.campaigns.soak.seeds import soak
from tests.simulation.engine.simulation import Simulation

_OPTIONS: Final = (
    click.option("--first-seed", default=1, show_default=True, type=click.IntRange(min=0)),
    click.option(
        "--jobs", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(min=1)
    ),
    click.option("--mutants", is_flag=True, help="Instead of seeds: hunt every planted bug."),
    click.option(
        "--from-first", is_flag=True, help="Mutants: begin at seed 1, not near known ones."
    ),
    click.option("--note-seeds", is_flag=True, help="Mutants: write down which seeds found them."),
    click.option(
        "--json", "as_object", is_flag=True, help="One JSON object as stdout's last line."
    ),
)


def simulated(simulation: Simulation, seeds: int) -> Callable[[Callable[..., int]], click.Command]:
    """Make a command of a function that plays a range of seeds and returns the exit code.

    It is called with the seeds, ``jobs``, ``as_object`` and its own options; ``--mutants`` is done
    here.
    """

    def decorate(play: Callable[..., int]) -> click.Command:
        @wraps(play)
        def main(
            *, seeds: int, first_seed: int, mutants: bool, from_first: bool, note_seeds: bool,
            **named: Any,  # noqa: ANN401
        ) -> None:  # fmt: skip
            if mutants:
                jobs, as_object = named["jobs"], named["as_object"]
                hunt = {"from_first": from_first, "note": note_seeds, "as_object": as_object}
                raise SystemExit(find_all(simulation, jobs, **hunt))
            raise SystemExit(play(range(first_seed, first_seed + seeds), **named))

        counted = click.option(
            "--seeds", default=seeds, show_default=True, type=click.IntRange(min=1)
        )
        for option in reversed((counted, *_OPTIONS)):
            main = option(main)
        return click.command()(main)

    return decorate


def soaked(simulation: Simulation, seeds: int, why: str) -> click.Command:
    """Return a command that plays seeds and has no options of its own; ``why`` is its help."""

    def play(chosen: range, *, jobs: int, as_object: bool) -> int:
        return soak(simulation, chosen, jobs, as_object=as_object)

    play.__name__, play.__doc__ = simulation.name, why
    return simulated(simulation, seeds)(play)
