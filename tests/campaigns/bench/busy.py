"""Commits of one caller next to busy loops: ours and Hadoop's, in turns."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from journal.model import TxId
from tests.campaigns.bench.hadoop_peer import Driver
from tests.campaigns.bench.load import ReadyOps, measure, percentile
from tests.campaigns.bench.report import Row, unmeasured
from tests.campaigns.bench.world import World
from tests.interop.hadoop_jars import JarsMissing

LOOPS: Final = 30
ROUNDS: Final = 3
SECONDS: Final = 5.0
_FIGURE: Final = f"commit p50 / Hadoop's, {LOOPS} busy loops beside"
_BAR: Final = "<= 1"


async def busy(world: World) -> list[Row]:
    """Measure what a busy DataNode leaves a NameNode nearby: a slice of a core, now and then."""
    try:
        with ExitStack() as running:
            folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
            driver = await asyncio.to_thread(Driver, folder)
            theirs = await asyncio.to_thread(
                lambda: driver.take_turns(running, driver.start_nodes(running))
            )
            async with world.ours.open() as writer:
                system = ReadyOps(writer, TxId(1))
                system.make(20_000)
                with busy_loops(LOOPS):
                    pairs = [
                        (
                            percentile(await measure(1, system.write, SECONDS), 0.5) * 1000,
                            await asyncio.to_thread(theirs.p50_ms, SECONDS),
                        )
                        for _ in range(ROUNDS)
                    ]
    except (JarsMissing, LocalClusterError) as missing:
        return [unmeasured(_FIGURE, "ratio", _BAR, str(missing).splitlines()[0][:200])]
    return [_row(pairs)]


def _row(pairs: Sequence[tuple[float, float]]) -> Row:
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    ours, theirs = (statistics.median(pair[which] for pair in pairs) for which in (0, 1))
    told = f"{ours:.2f} ms, Hadoop {theirs:.2f} ms"
    return Row(_FIGURE, ratio, "ratio", _BAR, ratio <= 1, told)


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    loops = [
        subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(count)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()
