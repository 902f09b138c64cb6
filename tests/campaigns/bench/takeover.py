"""What a new writer needs: recovery of an unclosed segment; and what a node keeps in memory."""

import asyncio
import math
import statistics
import time
from collections.abc import Sequence

from journal.frame import scan
from journal.model import TxId
from journal.writer.writer import QuorumWriter
from tests.campaigns.bench.load import ready_op
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.world import OurNodes, World, resident_megabytes, still

RUNS = 5
SEGMENT_BYTES = 64 * 1024 * 1024
BATCH_OPS = 2048
OP_BYTES = 200
MEMORY_BYTES = 1_000_000_000
_LOAD_OPS = 335_000


async def takeover(world: World) -> list[Row]:
    """Measure newEpoch and recovery: of 64 MB, equal copies or one lacking, and of one edit."""
    nodes = world.ours
    equal = [await _take_over(nodes, SEGMENT_BYTES) for _ in range(RUNS)]
    fetched = [await _take_over(nodes, SEGMENT_BYTES, lacking=True) for _ in range(RUNS)]
    one = [await _take_over(nodes, 1) for _ in range(2 * RUNS - 1)]
    return [
        _row("takeover, 64 MB, copies equal", equal, 0.5, "Hadoop 0.64 s"),
        _row("takeover, 64 MB, one copy to fetch", fetched, 2.0, "-"),
        _row("takeover, one edit", one, 0.03, "Hadoop 0.03 s"),
    ]


def _row(what: str, took: Sequence[float], bar: float, peer: str) -> Row:
    value = statistics.median(took)
    return Row(what, value, "s", f"<= {bar:g}", value <= bar, peer)


async def _take_over(nodes: OurNodes, size: int, *, lacking: bool = False) -> float:
    """Write a segment and leave it open; then take over.

    Where a copy is to be lacking, the third node stands still while the edits are written, and
    the second one while the new writer needs a quorum.
    """
    async with nodes.journal() as name:
        return await _takeover_of(nodes, name, size, lacking=lacking)


async def _takeover_of(nodes: OurNodes, name: str, size: int, *, lacking: bool) -> float:
    old = nodes.writer(name)
    await old.become_writer()
    await old.start_segment(TxId(1))
    with still(nodes.processes[2:] if lacking else ()):
        last = await _write(old, size)
        if not lacking:
            await old.settle(timeout_seconds=10)
        await old.close()
    new = nodes.writer(name)
    with still(nodes.processes[1:2] if lacking else ()):
        began = time.perf_counter()
        recovered = await new.become_writer(predecessor_gone_until=math.inf)
        took = time.perf_counter() - began
    await new.close()
    if recovered.last_txid != last:
        raise RuntimeError(f"{last} edits were written, {recovered.last_txid} recovered")
    return took


async def _write(writer: QuorumWriter, size: int) -> TxId:
    """Write edits of that many bytes together; return the last one's number."""
    wanted = -(-size // OP_BYTES)
    for first in range(1, wanted + 1, BATCH_OPS):
        count = min(BATCH_OPS, wanted + 1 - first)
        records = b"".join(ready_op(first + i, OP_BYTES) for i in range(count))
        await writer.write(TxId(first), count, records)
    return TxId(wanted)


async def memory(world: World) -> list[Row]:
    """Measure a node's resident memory: fresh, after 100 MB, and after 1 GB."""
    nodes = await asyncio.to_thread(world.fresh_nodes, "memory")
    idle = max(map(resident_megabytes, nodes.processes))
    early = 0.0
    async with nodes.open() as writer:
        first = 1
        while (written := (first - 1) * OP_BYTES) < MEMORY_BYTES:
            records = b"".join(ready_op(first + i, OP_BYTES) for i in range(BATCH_OPS))
            await writer.write(TxId(first), BATCH_OPS, records)
            first += BATCH_OPS
            if not early and written > MEMORY_BYTES / 10:
                early = max(map(resident_megabytes, nodes.processes))
        late = max(map(resident_megabytes, nodes.processes))
    return [
        Row("resident, idle", idle, "MB", "<= 50", idle <= 50, "Hadoop 115-152 MB"),
        Row("resident, 1 GB written", late, "MB", "-", None, f"after 100 MB {early:.1f} MB"),
        Row("growth from 100 MB to 1 GB", late - early, "MB", "<= 5", late - early <= 5, "-"),
    ]


async def scanning(_world: World) -> list[Row]:
    """Measure frames, checksums and numbers of a whole segment."""
    data = b"".join(ready_op(txid, OP_BYTES) for txid in range(1, _LOAD_OPS + 1))
    took = []
    for _ in range(5):
        began = time.process_time()  # it is all work of one core
        found = scan(data, expected=TxId(1))
        took.append(time.process_time() - began)
        if found.last != _LOAD_OPS:
            raise RuntimeError(f"the scan ended at {found.last}: {found.damage}")
    seconds = statistics.median(took)
    ops, whole = _LOAD_OPS / seconds, seconds * SEGMENT_BYTES / len(data)
    return [
        Row("segment scan", ops, "ops/s", ">= 1.5 million", ops >= 1.5e6, "-"),
        Row("scan of 64 MB", whole, "s", "<= 0.25", whole <= 0.25, "-"),
    ]
