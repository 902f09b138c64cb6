"""Quorum writes of ready-made ops: ours, the bare gRPC stream and raw TCP, taking turns."""

import asyncio
import statistics
from collections.abc import Sequence
from contextlib import AsyncExitStack

from journal.model import TxId
from tests.campaigns.bench.bare import BareQuorum
from tests.campaigns.bench.cpu import costing
from tests.campaigns.bench.floor import FloorWriter
from tests.campaigns.bench.load import ReadyOps, measure, percentile, rate
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.slow_flush import FLUSH_SECONDS
from tests.campaigns.bench.world import World, still

RUNS = 5
SECONDS = 0.8
NODE_MS = 0.14
WRITER_MS = 0.16
LARGE_BYTES = 1536
"""256 callers of ops of this size make batches of 384 KB."""

Sample = tuple[float, float, float, float, float]
"""p50 and p99 in milliseconds, ops a second, milliseconds of CPU an op: the writer's, a node's."""


class _Floor:
    """Raw TCP as a quorum."""

    def __init__(self, writer: FloorWriter) -> None:
        self._writer = writer

    async def write(self, _first: TxId, _count: int, records: bytes) -> None:
        await self._writer.write(records)


async def _sample(
    system: ReadyOps, callers: int, nodes: Sequence[int] = ()
) -> tuple[Sample, list[float]]:
    with costing(system, nodes) as cost:
        took = await measure(callers, system.write, SECONDS)
    p50, p99 = (percentile(took, share) * 1000 for share in (0.5, 0.99))
    return (p50, p99, rate(took, SECONDS), cost.writer, cost.node), took


async def _turns(
    world: World, callers: int, *, floor: bool, size: int = 200, grpc: bool = False
) -> dict[str, list[Sample]]:
    """Run each system for a short while, five times around."""
    async with AsyncExitStack() as stack:
        bare = BareQuorum(world.peer("bare"))
        stack.push_async_callback(bare.close)
        systems = {
            "bare": ReadyOps(bare, TxId(1), size),
            "ours": ReadyOps(await stack.enter_async_context(world.ours.open()), TxId(1), size),
        }
        if grpc:
            nodes_without = await asyncio.to_thread(lambda: world.without_lanes)
            writer = await stack.enter_async_context(nodes_without.open())
            systems["over gRPC"] = ReadyOps(writer, TxId(1), size)
        if floor:
            raw = await FloorWriter.connect(world.peer("floor"))
            stack.push_async_callback(raw.close)
            systems["raw TCP"] = ReadyOps(_Floor(raw), TxId(1), size)
        nodes = {name: world.node_pids(name) for name in systems}
        found: dict[str, list[Sample]] = {name: [] for name in systems}
        for _ in range(RUNS):
            for name, system in systems.items():
                system.make(20_000 if callers == 1 else int(200_000 * SECONDS * 200 / size))
                sample, took = await _sample(system, callers, nodes[name])
                found[name].append(sample)
                if size == 200:
                    world.latencies.setdefault(f"{name}, {callers}", []).extend(took)
        return found


def _median(samples: list[Sample], which: int) -> float:
    return statistics.median(sample[which] for sample in samples)


def _ratio(
    found: dict[str, list[Sample]], which: int, one: str = "ours", other: str = "bare"
) -> float:
    """Return one system's ratio to another, of neighbouring turns."""
    pairs = zip(found[one], found[other], strict=True)
    return statistics.median(mine[which] / theirs[which] for mine, theirs in pairs)


async def latency(world: World) -> list[Row]:
    found = await _turns(world, 1, floor=True, grpc=True)
    p50, p99 = _median(found["ours"], 0), _median(found["ours"], 1)
    others = ("over gRPC", "bare", "raw TCP")
    peers = ", ".join(f"{who} {_median(found[who], 0):.3f} ms" for who in others)
    raw = _ratio(found, 0, "ours", "raw TCP")
    bare = _ratio(found, 0)
    grpc = _ratio(found, 0, "over gRPC", "bare")
    tail = statistics.median(sample[1] / sample[0] for sample in found["ours"])
    return [
        Row("commit p50, 1 caller", p50, "ms", "-", None, peers),
        Row("commit p50 / raw TCP", raw, "ratio", "<= 1.15", raw <= 1.15, peers),
        Row("commit p50 / bare stream", bare, "ratio", "<= 1.25", bare <= 1.25, peers),
        Row("over gRPC alone / bare stream, p50", grpc, "ratio", "<= 1.25", grpc <= 1.25, peers),
        Row("commit p99, 1 caller", p99, "ms", "-", None, f"bare {_median(found['bare'], 1):.3f}"),
        Row("commit p99 / p50, 1 caller", tail, "ratio", "<= 3", tail <= 3, "-"),
        _cpu(found, "a node", 4, NODE_MS),
        _cpu(found, "the writer", 3, WRITER_MS),
    ]


def _cpu(found: dict[str, list[Sample]], who: str, which: int, bar: float) -> Row:
    peers = ", ".join(
        f"{name} {_median(samples, which):.3f} ms"
        for name, samples in found.items()
        if name != "ours"
    )
    ours, name = _median(found["ours"], which), f"CPU of {who} for a commit, 1 caller"
    return Row(name, ours, "ms", f"<= {bar:g}", ours <= bar, peers)


async def throughput(world: World) -> list[Row]:
    """Measure 256 callers, and what fewer do."""
    for callers in (4, 16, 64):
        for who, samples in (await _turns(world, callers, floor=False)).items():
            world.rates.setdefault(who, []).append((callers, _median(samples, 2)))
    found = await _turns(world, 256, floor=True)
    for who, samples in found.items():
        world.rates.setdefault(who, []).append((256, _median(samples, 2)))
    ops, ratio = _median(found["ours"], 2), _ratio(found, 2)
    tail = statistics.median(sample[1] / sample[0] for sample in found["ours"])
    peers = ", ".join(f"{who} {_median(found[who], 2):,.0f}/s" for who in ("bare", "raw TCP"))
    return [
        Row("ops/s, 256 callers", ops, "1/s", ">= 120,000", ops >= 120_000, peers),
        Row("ops/s / bare stream, 256", ratio, "ratio", ">= 0.65", ratio >= 0.65, peers),
        Row("commit p99 / p50, 256 callers", tail, "ratio", "<= 3", tail <= 3, "-"),
    ]


async def large_batches(world: World) -> list[Row]:
    """Measure bytes of edits a second, each counted once."""
    found = await _turns(world, 256, floor=True, size=LARGE_BYTES)
    ours, bare, raw = (
        _median(found[who], 2) * LARGE_BYTES / 1e6 for who in ("ours", "bare", "raw TCP")
    )
    ratio = _ratio(found, 2, "ours", "raw TCP")
    peer = f"bare {bare:,.0f} MB/s, raw TCP {raw:,.0f} MB/s: {ratio:.2f} x"
    bar = ">= 100, or >= 0.9 x raw TCP"
    holds = ours >= 100 or ratio >= 0.9
    return [Row("bytes/s, 384 KB batches", ours, "MB/s", bar, holds, peer)]


async def one_node_stopped(world: World) -> list[Row]:
    """Stop the third node for a while."""
    stopped = world.ours.processes[2]
    pairs = []
    async with world.ours.open() as writer:
        system = ReadyOps(writer, TxId(1))
        for _ in range(RUNS):
            system.make(100_000)
            healthy, _ = await _sample(system, 16)
            with still([stopped]):
                system.make(100_000)
                alone, _ = await _sample(system, 16)
            await writer.settle(timeout_seconds=10)
            pairs.append((healthy, alone))
    return [_patience("one node stopped", pairs)]


async def one_node_delayed(world: World) -> list[Row]:
    """Delay everything to the third node by 50 ms."""
    ports = world.ours.ports
    late = [*ports[:2], world.delayed(ports[2])]
    pairs = []
    async with world.ours.open() as plain, world.ours.open(late) as delayed:
        one, other = ReadyOps(plain, TxId(1)), ReadyOps(delayed, TxId(1))
        for _ in range(RUNS):
            samples = []
            for system in (one, other):
                system.make(100_000)
                samples.append((await _sample(system, 16))[0])
            pairs.append((samples[0], samples[1]))
    return [_patience("one node 50 ms late", pairs)]


def _patience(what: str, pairs: list[tuple[Sample, Sample]]) -> Row:
    ratio = statistics.median(hurt[1] / healthy[1] for healthy, hurt in pairs)
    undisturbed = statistics.median(healthy[1] for healthy, _ in pairs)
    name = f"p99, {what} / healthy, 16 callers"
    return Row(name, ratio, "ratio", "<= 1.1", ratio <= 1.1, f"healthy {undisturbed:.3f} ms")


async def slow_flush(world: World) -> list[Row]:
    """Measure nodes whose disks need 5 ms for a flush."""
    nodes = await asyncio.to_thread(world.fresh_nodes, "slow", "tests.campaigns.bench.slow_flush")
    async with nodes.open() as writer:
        system = ReadyOps(writer, TxId(1))
        system.make(20_000)
        samples = [(await _sample(system, 1))[0] for _ in range(RUNS)]
    ratio = _median(samples, 0) / (FLUSH_SECONDS * 1000)
    return [Row("commit p50 / flush of 5 ms", ratio, "ratio", "<= 1.25", ratio <= 1.25, "-")]
