"""What certificates cost a commit: our nodes with and without them, taking turns."""

import asyncio
import statistics
from contextlib import AsyncExitStack

from journal.model import TxId
from journal.writer.batch_stream import LANE
from tests.campaigns.bench.load import ReadyOps, measure, percentile, rate
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.world import World
from tests.ha.security.acting import acting_as

RUNS = 9
SECONDS = 0.8
MOST_COST = 1.2
WITH, WITHOUT = "with certificates", "without"

Figures = dict[str, list[float]]


async def with_certificates(world: World) -> list[Row]:
    """Measure one caller, then 256; each ratio is of neighbouring turns."""
    secured = await asyncio.to_thread(lambda: world.secured)
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(world.ours.open())
        # What is opened under the certificate stays as it is: its lanes, with the first commits.
        with acting_as(secured.files):
            writer = await stack.enter_async_context(secured.nodes.open())
            systems = {WITHOUT: ReadyOps(plain, TxId(1)), WITH: ReadyOps(writer, TxId(1))}
            await _took(systems[WITH], 1)
        latency: Figures = {name: [] for name in systems}
        speed: Figures = {name: [] for name in systems}
        for _ in range(RUNS):
            for name, system in systems.items():
                latency[name].append(1000 * percentile(await _took(system, 1), 0.5))
        for _ in range(RUNS):
            for name, system in systems.items():
                speed[name].append(rate(await _took(system, 256), SECONDS))
        carried = {status.via for status in writer.node_statuses()}
        if carried != {LANE}:
            raise RuntimeError(f"commits with certificates went over {carried}, not over lanes")
    cost = _ratio(latency)
    beside = f"without {statistics.median(latency[WITHOUT]):.3f} ms"
    ops = statistics.median(speed[WITH])
    without = f"without {statistics.median(speed[WITHOUT]):,.0f}/s"
    figure = "commit p50, 1 caller, with certificates"
    return [
        Row(figure, statistics.median(latency[WITH]), "ms", "-", None, beside),
        Row(f"{figure} / without", cost, "ratio", f"<= {MOST_COST}", cost <= MOST_COST, beside),
        Row("ops/s, 256 callers, with certificates", ops, "1/s", "-", None, without),
        Row("ops/s, 256, with certificates / without", _ratio(speed), "ratio", "-", None, without),
    ]


async def _took(system: ReadyOps, callers: int) -> list[float]:
    system.make(20_000 if callers == 1 else 160_000)
    return await measure(callers, system.write, SECONDS)


def _ratio(found: Figures) -> float:
    pairs = zip(found[WITH], found[WITHOUT], strict=True)
    return statistics.median(one / other for one, other in pairs)
