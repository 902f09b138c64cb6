"""`./run soak mutation`: one slip after another in a core; every one has to be noticed.

First by the core's fast tests, then by drawn worlds that run the changed line.  A slip that changes
nothing anybody could see is listed with its reason in tests/mutation/explained.json.
"""

import json
import os
import time
from collections.abc import Sequence
from random import Random

import click

from tests.mutation.core import Core
from tests.mutation.cores import CORES, below
from tests.mutation.explained import explained
from tests.mutation.judging import Limits, Verdict, judge
from tests.mutation.slips import Slip, slips_of


@click.command()
@click.option("--core", "names", multiple=True, type=click.Choice(list(CORES)), help="Or all.")
@click.option(
    "--below",
    "folders",
    multiple=True,
    help="A folder of the product, by the tests that mirror it.",
)
@click.option("--sample", default=0, type=click.IntRange(min=0), help="So many of each; 0: all.")
@click.option("--seed", default=1, show_default=True, help="Of the sample.")
@click.option("--only", default="", help="Those whose name has this text in it.")
@click.option("--confused", is_flag=True, help="Only those that take one thing for another.")
@click.option("--owed", is_flag=True, help="Only where something fails, ends or was awaited.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(min=1))
@click.option("--worlds", default=25, show_default=True, help="At most so many for a slip.")
@click.option("--measured", default=200, show_default=True, help="Worlds that tell their reach.")
@click.option("--first-seed", default=1, show_default=True, help="Of the worlds.")
@click.option("--seconds", default=120.0, show_default=True, help="For the worlds of one slip.")
@click.option("--slow", default=3.0, show_default=True, help="Seconds; slower tests are left out.")
@click.option("--list", "listed", is_flag=True, help="Only say which slips there are.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def mutation(
    *,
    names: Sequence[str],
    folders: Sequence[str],
    sample: int,
    seed: int,
    only: str,
    confused: bool,
    owed: bool,
    jobs: int,
    worlds: int,
    measured: int,
    first_seed: int,
    seconds: float,
    slow: float,
    listed: bool,
    as_object: bool,
) -> None:
    """Plant slips into the cores; exit code 0 only if each is noticed or explained."""
    limits = Limits(jobs, measured, worlds, seconds, first_seed, slow)
    scores = []
    cores = {name: CORES[name] for name in names or ([] if folders else CORES)}
    cores |= {folder: below(folder) for folder in folders}
    for name, core in cores.items():
        slips = chosen(core, sample, seed, only, confused=confused, owed=owed)
        if listed:
            for slip in slips:
                click.echo(slip.name)
            continue
        scores.append(_score(name, core, slips, limits))
    if as_object:
        click.echo(json.dumps({"cores": scores}))
    raise SystemExit(1 if any(score["survived"] for score in scores) else 0)


def chosen(
    core: Core, sample: int, seed: int, only: str, *, confused: bool = False, owed: bool = False
) -> list[Slip]:
    """Return some of this core's slips, without the explained ones."""
    known = explained()
    slips = [slip for path in core.files for slip in slips_of(path) if only in slip.name]
    slips = [slip for slip in slips if slip.name not in known]
    slips = [slip for slip in slips if confused <= slip.confused and owed <= slip.owed]
    if 0 < sample < len(slips):
        picked = sorted(Random(seed).sample(range(len(slips)), sample))
        slips = [slips[index] for index in picked]
    return slips


def _score(name: str, core: Core, slips: Sequence[Slip], limits: Limits) -> dict[str, object]:
    began = time.monotonic()
    done = 0

    def told(verdict: Verdict) -> None:
        nonlocal done
        done += 1
        by = f"by {verdict.by}"[:90] if verdict.by else "SURVIVED"
        click.echo(f"{done}/{len(slips)} {verdict.slip.path}:{verdict.slip.line} {by}", err=True)

    verdicts = judge(core, slips, limits, told)
    survived = [verdict for verdict in verdicts if not verdict.by]
    for verdict in survived:
        ran = f"{verdict.tests} tests and {verdict.worlds} of {limits.measured} worlds run its line"
        click.echo(f"SURVIVED {verdict.slip.diff()}\n    {ran}", err=True)
    by_world = sum(verdict.by.startswith("seed ") for verdict in verdicts)
    took = time.monotonic() - began
    click.echo(
        f"{name}: {len(verdicts)} slips, {len(verdicts) - len(survived)} noticed"
        f" ({by_world} by worlds alone), {len(survived)} survived, {took:.0f} s",
        err=True,
    )
    return {
        "core": name,
        "slips": len(verdicts),
        "noticed_by_worlds_alone": by_world,
        "survived": [verdict.slip.name for verdict in survived],
        "seconds": round(took, 1),
    }
