"""`--reach` of a soak: in how many worlds each branch of the cores runs, and which never do."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import click

from tests.mutation.cores import CORES
from tests.mutation.judging import forked
from tests.mutation.reach import Block, Reached, probe, shown
from tests.mutation.unreached import name_of, unreached
from tests.simulation.engine.simulation import Simulation

RARE: Final = 1 / 500
_PORTION: Final = 20
_READERS: Final = frozenset({"edits-cache", "reading", "records", "wire", "znodes"})
"""They read what others wrote: tables and fuzzing show their refusals, and few worlds need them."""


def tell_reach(simulation: Simulation, seeds: Sequence[int], jobs: int, *, as_object: bool) -> int:
    """Play these worlds, and print the branches that less than one in 500 of them runs.

    Of some it is known why no world runs them (tests/mutation/unreached.json).
    """
    began = time.monotonic()
    files = files_of(simulation.name)
    portions = [seeds[at : at + _PORTION] for at in range(0, len(seeds), _PORTION)]
    works = [lambda part=part: _counts(simulation, files, part) for part in portions]
    counts: Counter[Block] = Counter()
    for number, found in enumerate(forked(works, jobs, 3600.0)):
        if not isinstance(found, dict):
            raise TypeError(f"worlds {portions[number]}: {found}")
        for block, worlds_of_part in found.items():
            counts[block] += worlds_of_part
    worlds, blocks = len(seeds), [block for block in counts if not block.column]
    rare = sorted(block for block in blocks if 0 < counts[block] < RARE * worlds)
    why = unreached()
    known = {block for block in blocks if name_of(block) in why}
    never = sorted(block for block in blocks if not counts[block] and block not in known)
    explained = [block for block in known if not counts[block]]
    reached = sorted(block for block in known if counts[block] >= RARE * worlds)
    for title, group in (("never", never), ("rarely", rare), ("after all", reached)):
        for block in group:
            click.echo(f"{title:9}{counts[block]:6}  {shown(block)}")
    for line in _by_file(files, counts, worlds):
        click.echo(line)
    took = time.monotonic() - began
    told = f"{worlds} worlds, {len(blocks)} branches, {len(never)} never, {len(rare)} in less than"
    known_why = f"{len(explained)} never, as explained"
    click.echo(f"{told} 1 of {1 / RARE:.0f} worlds, {known_why}, {took:.0f} s")
    if as_object:
        facts = {"worlds": worlds, "branches": len(blocks), "never": len(never), "rare": len(rare)}
        facts |= {"explained": len(explained), "after_all": len(reached)}
        click.echo(json.dumps(facts | {"seconds": round(took, 1)}))
    return 0


def files_of(worlds: str) -> tuple[str, ...]:
    """Return the files of all cores that these worlds run, but for those that read formats."""
    cores = (core for name, core in CORES.items() if name not in _READERS)
    return tuple(name for core in cores if core.worlds == worlds for name in core.files)


def _counts(simulation: Simulation, files: Sequence[str], seeds: Sequence[int]) -> dict[Block, int]:
    """Return in how many of these worlds each block runs, also where that is none."""
    reached = Reached()
    counts = dict.fromkeys(probe(files, reached), 0)
    for seed in seeds:
        reached.taken()
        simulation.run(seed)
        for block in reached.taken():
            counts[block] += 1
    return counts


def _by_file(files: Sequence[str], counts: Counter[Block], worlds: int) -> Iterator[str]:
    for name in files:
        of_file = [block for block in counts if block.path == name and not block.column]
        often = sum(counts[block] >= RARE * worlds for block in of_file)
        yield f"{often:5} of {len(of_file):4} branches often  {name}"
