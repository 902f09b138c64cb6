"""`./run bench checkpoint`: merges on Spark against our own single process, on the same images.

Images and edits are generated (checkpoint_images, checkpoint_edits).  Every merge runs in a new
process; its CPU seconds are those of the whole process tree.  Up to 5 million inodes the two
results are compared, and a row holds only if they are the same.  Of larger ones a sample is held
against the replay of the edits; above 20 million inodes the single process has too little memory.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from journal.model import TxId
from tests.campaigns.bench import checkpoint_sample
from tests.campaigns.bench.checkpoint_rates import rate_rows
from tests.campaigns.bench.checkpoint_run import SINGLE, SPARK, Run, run
from tests.campaigns.bench.checkpoint_same import content_of
from tests.campaigns.bench.checkpoint_sample import Sampled
from tests.campaigns.bench.report import Row, publish, unmeasured
from tests.worlds.large.edits import edits_on, write_segments
from tests.worlds.large.images import LAST_TXID, how_many, write_big_image
from tests.worlds.large.shape import Shape

if TYPE_CHECKING:
    from tests.campaigns.bench.hadoop_checkpoint import HadoopRun

OPS: Final = 100_000
MANY_OPS: Final = 1_000_000
MANY_OPS_ON: Final = 5_000_000
COMPARED_UP_TO: Final = 5_000_000
BREAK_EVEN: Final = 5_000_000
LARGE: Final = 20_000_000
LARGEST: Final = 100_000_000
_SEGMENTS: Final = 4
_DISK_PER_INODE: Final = 400
"""Bytes: the image, two results and the parts of one of them."""


@dataclass(slots=True)
class Figures:
    """Everything measured: runs by (inodes, ops), and what the comparisons said."""

    single: dict[tuple[int, int], Run] = field(default_factory=dict)
    spark: dict[tuple[int, int], Run] = field(default_factory=dict)
    differences: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    sampled: dict[tuple[int, int], Sampled] = field(default_factory=dict)
    touched: dict[tuple[int, int], int] = field(default_factory=dict)
    rates: list[Row] = field(default_factory=list)
    hadoop: "dict[tuple[int, int], HadoopRun]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inputs:
    """An image and its edits on disk."""

    image: Path
    edits: dict[int, Path]


def prepare(folder: Path, inodes: int, ops: Sequence[int]) -> Inputs:
    folder.mkdir(parents=True)
    shape = Shape(inodes)
    found = Inputs(write_big_image(folder, shape), {})
    for count in ops:
        found.edits[count] = folder / f"edits-{count}"
        found.edits[count].mkdir()
        write_segments(found.edits[count], edits_on(shape, count), first=TxId(LAST_TXID + 1),
                       segments=_SEGMENTS, count=count)  # fmt: skip
    return found


def prepared(folder: Path, sizes: Sequence[int], ops: int) -> dict[int, Inputs]:
    """Prepare the inputs of all sizes, the largest first and two at a time."""
    wanted = {size: (ops, MANY_OPS) if size == MANY_OPS_ON else (ops,) for size in sizes}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        futures = {
            size: pool.submit(prepare, folder / str(size), size, wanted[size])
            for size in sorted(sizes, reverse=True)
        }
        return {size: future.result() for size, future in futures.items()}


def measure(inputs: Inputs, inodes: int, ops: int, figures: Figures) -> None:
    """Merge one image and log by both engines, the quicker one first, and compare them."""
    key, out = (inodes, ops), inputs.image.parent
    _say(f"{inodes:,} inodes, {ops:,} edits: Spark")
    figures.spark[key] = run(SPARK, inputs.image, inputs.edits[ops], out / "spark")
    _say(figures.spark[key].told())
    if inodes > COMPARED_UP_TO:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            figures.sampled[key] = process.submit(
                checkpoint_sample.compare, figures.spark[key].image, inputs.edits[ops],
                Shape(inodes), ops, out / "sample",
            ).result()  # fmt: skip
        _say(str(figures.sampled[key]))
    if ops != MANY_OPS and inodes <= LARGE:
        _say(f"{inodes:,} inodes, {ops:,} edits: one process")
        figures.single[key] = run(SINGLE, inputs.image, inputs.edits[ops], out / "single")
        _say(figures.single[key].told())
        if inodes <= COMPARED_UP_TO:
            ours, theirs = (runs[key].image for runs in (figures.spark, figures.single))
            figures.differences[key] = content_of(ours).differences(content_of(theirs))
    for name in ("spark", "single"):
        shutil.rmtree(out / name, ignore_errors=True)


def merge_rows(figures: Figures) -> Iterator[Row]:
    """Yield the wall time of both, size by size."""
    for key, spark in figures.spark.items():
        inodes, ops = key
        single = figures.single.get(key)
        differences = figures.differences.get(key)
        told = {
            None: "not compared",
            True: "the same content",
            False: f"NOT the same: {differences}",
        }
        same = told[None if differences is None else not differences]
        holds = None if differences is None else not differences
        if (sampled := figures.sampled.get(key)) is not None:
            holds, same = not sampled.wrong, str(sampled)
        if spark.single_process_because is not None:
            holds, same = False, f"not divided: {spark.single_process_because}"
        name = f"{inodes:,} inodes, {ops:,} edits"
        yield Row(f"merge on local[2], {name}", spark.seconds, "s", "the same content", holds,
                  f"{same}; {spark.told()}")  # fmt: skip
        if single is None:
            continue
        yield Row(f"one process, {name}", single.seconds, "s", "-", None, single.told())
        bar = {BREAK_EVEN: 1.0, LARGE: 2.0}.get(inodes)
        speed = single.seconds / spark.seconds
        yield Row(f"times as fast as one process, {inodes:,} inodes", speed, "x",
                  f">= {bar:g}" if bar else "-", speed >= bar if bar else None,
                  f"of CPU {single.cpu_seconds / spark.cpu_seconds:.2f}")  # fmt: skip


def slope_rows(figures: Figures, ops: int) -> Iterator[Row]:
    small, large = figures.spark.get((MANY_OPS_ON, ops)), figures.spark.get((LARGE, ops))
    name = "CPU per inode, 5 M to 20 M"
    if small is None or large is None:
        yield unmeasured(name, "µs", "<= 2.5", "it needs 5m and 20m")
    else:
        value = 1e6 * (large.cpu_seconds - small.cpu_seconds) / (LARGE - MANY_OPS_ON)
        yield Row(name, value, "µs", "<= 2.5", value <= 2.5, _single_slope(figures, ops))
    many, name = figures.spark.get((MANY_OPS_ON, MANY_OPS)), "CPU per op, 5 M inodes"
    if small is None or many is None:
        yield unmeasured(name, "µs", "<= 70", "it needs 5m")
        return
    value = 1e6 * (many.cpu_seconds - small.cpu_seconds) / (MANY_OPS - ops)
    yield Row(name, value, "µs", "<= 70", value <= 70, f"{ops:,} to {MANY_OPS:,} edits")


def _single_slope(figures: Figures, ops: int) -> str:
    small, large = figures.single.get((MANY_OPS_ON, ops)), figures.single.get((LARGE, ops))
    if small is None or large is None:
        return "-"
    value = 1e6 * (large.cpu_seconds - small.cpu_seconds) / (LARGE - MANY_OPS_ON)
    return f"one process {value:.2f}"


def memory_rows(figures: Figures, ops: int) -> Iterator[Row]:
    small, large = figures.spark.get((MANY_OPS_ON, ops)), figures.spark.get((LARGE, ops))
    name = f"driver's peak memory, 20 M inodes, {ops:,} edits"
    if large is None:
        yield unmeasured(name, "MB", "<= 600", "it needs 20m")
    else:
        megabytes = large.driver_bytes / 1e6
        single = figures.single.get((LARGE, ops))
        peer = f"one process {single.driver_bytes / 1e6:,.0f}" if single else "-"
        yield Row(name, megabytes, "MB", "<= 600", megabytes <= 600, peer)
    if small is not None and large is not None:
        ratio = large.driver_bytes / small.driver_bytes
        more = figures.touched[LARGE, ops] - figures.touched[MANY_OPS_ON, ops]
        yield Row("driver's peak memory, 20 M over 5 M", ratio, "x", "0.9 to 1.1",
                  0.9 <= ratio <= 1.1, f"{small.driver_bytes / 1e6:,.0f} MB at 5 M; the same edits "
                  f"touch {more:,} more inodes at 20 M")  # fmt: skip
    yield _touched_row(figures, small, ops)


def largest_rows(figures: Figures, ops: int) -> Iterator[Row]:
    """Yield what grows from 20 to 100 million inodes: time in proportion, memory hardly."""
    small, large, largest = (
        figures.spark.get((inodes, ops)) for inodes in (MANY_OPS_ON, LARGE, LARGEST)
    )
    if largest is None:
        return
    megabytes, name = largest.driver_bytes / 1e6, "driver's peak memory, 100 M inodes"
    yield Row(name, megabytes, "MB", "<= 350", megabytes <= 350, largest.told())
    if large is None or small is None:
        yield unmeasured("time and memory, 20 M to 100 M", "x", "<= 1.1", "it needs 5m and 20m")
        return
    ratio = largest.driver_bytes / large.driver_bytes
    yield Row("driver's peak memory, 100 M over 20 M", ratio, "x", "<= 1.15", ratio <= 1.15,
              f"{large.driver_bytes / 1e6:,.0f} MB at 20 M")  # fmt: skip
    before = (large.seconds - small.seconds) / (LARGE - MANY_OPS_ON)
    slope = (largest.seconds - large.seconds) / (LARGEST - LARGE)
    yield Row("time an inode, 20 M to 100 M over 5 M to 20 M", slope / before, "x", "<= 1.1",
              slope <= 1.1 * before, f"{1e6 * slope:.2f} and {1e6 * before:.2f} us")  # fmt: skip


def _touched_row(figures: Figures, small: Run | None, ops: int) -> Row:
    name, bar = "driver's memory per touched inode", 2048
    many = figures.spark.get((MANY_OPS_ON, MANY_OPS))
    if many is None or small is None:
        return unmeasured(name, "bytes", f"<= {bar:,}", "it needs 5m")
    keys = (MANY_OPS_ON, MANY_OPS), (MANY_OPS_ON, ops)
    touched = figures.touched[keys[0]] - figures.touched[keys[1]]
    value = (many.driver_bytes - small.driver_bytes) / touched
    return Row(name, value, "bytes", f"<= {bar:,}", value <= bar,
               f"{touched:,} more inodes looked up or made, 5 M inodes")  # fmt: skip


def hadoop_row(figures: Figures) -> Row:
    """Measure Hadoop's own NameNode on the same image and edits."""
    name = "Hadoop's NameNode: load, replay, save"
    if not figures.hadoop:
        return unmeasured(name, "s", "-", "set NNHA_INTEROP=1")
    runs = sorted(figures.hadoop.items())
    told = "; ".join(
        f"{inodes:,} inodes {took.seconds:.0f} s: {took.told}" for (inodes, _), took in runs
    )
    return Row(name, runs[-1][1].seconds, "s", "-", None, told)


def figures_of(sizes: Sequence[int], ops: int, folder: Path) -> Figures:
    figures = Figures()
    began = time.monotonic()
    inputs = prepared(folder, sizes, ops)
    _say(f"images and edits are written: {time.monotonic() - began:.0f} s")
    for inodes in sorted(sizes):
        found = inputs[inodes]
        if not figures.rates:
            figures.rates = rate_rows(found.image, folder)
        for count, edits in found.edits.items():
            figures.touched[inodes, count] = count_touched(found.image, edits)
            measure(found, inodes, count, figures)
        if os.environ.get("NNHA_INTEROP") == "1" and inodes <= COMPARED_UP_TO:
            from tests.campaigns.bench.hadoop_checkpoint import run_hadoop

            edits = found.edits[ops]
            figures.hadoop[inodes, ops] = run_hadoop(found.image, edits, folder / "hadoop")
        shutil.rmtree(folder / str(inodes))
    return figures


def count_touched(image: Path, edits: Path) -> int:
    """Return how many inodes the driver knows: those looked up, and those that edits make."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_touched, image, edits).result()


def _touched(image: Path, edits: Path) -> int:
    from namenode_sim.edits import ops as kinds
    from namenode_sim.storage.local_edits import edits_of, finalized_in
    from spark.merge.base import read_base
    from spark.merge.plan.planner import plan_edits

    with image.open("rb") as file:
        facts = read_base(file).facts
    made = 0

    def log() -> Iterator[tuple[TxId, kinds.Op]]:
        nonlocal made
        for segment in finalized_in(edits):
            for located in edits_of(segment):
                made += isinstance(located.op, kinds.Add | kinds.Mkdir)
                yield located.txid, located.op

    return len(plan_edits(log(), facts).trie) + made


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.command()
@click.option("--sizes", default="1m,5m,20m", show_default=True, help="Inodes, as 200k or 5m.")
@click.option("--ops", default="100k", show_default=True, help="Edits behind each image.")
@click.option("--charts", type=click.Path(path_type=Path), help="Draw a PNG into this folder.")
@click.option("--folder", type=click.Path(path_type=Path, exists=True), help="Where to work.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(*, sizes: str, ops: str, charts: Path | None, folder: Path | None, as_json: bool) -> None:
    """Measure merges; 20 million inodes need 12 GB of memory for the single process."""
    if charts is not None and find_spec("matplotlib") is None:
        raise click.UsageError("--charts needs matplotlib, which ./run setup installs")
    counts, many = [how_many(size) for size in sizes.split(",")], how_many(ops)
    with tempfile.TemporaryDirectory(prefix="nnha-bench-", dir=folder) as room:
        free, needed = shutil.disk_usage(room).free, _DISK_PER_INODE * max(counts)
        if free < needed:
            raise click.UsageError(f"{room} has {free / 1e9:.1f} GB; {needed / 1e9:.1f} are needed")
        figures = figures_of(counts, many, Path(room))
    rows = [*merge_rows(figures), *slope_rows(figures, many), *memory_rows(figures, many)]
    rows += largest_rows(figures, many)
    rows += [*figures.rates, hadoop_row(figures)]
    if charts is not None:
        from tests.campaigns.bench.checkpoint_charts import draw

        draw(figures.single, figures.spark, many, charts)
    stages = {f"{inodes} inodes, {count} edits": dict(found.stages)
              for (inodes, count), found in figures.spark.items()}  # fmt: skip
    raise SystemExit(publish("checkpoint", rows, as_json=as_json, more={"stages": stages}))


if __name__ == "__main__":
    main()
