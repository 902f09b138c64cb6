"""The NameNode's own way to the journal: typed edits, numbered, encoded and made durable."""

import statistics

from journal.model import TxId
from journal.writer.writer import QuorumWriter
from namenode_sim.edits.ops import Delete
from namenode_sim.edits.values import NO_RPC_IDS
from namenode_sim.term.edit_log import EditLog
from tests.campaigns.bench.load import measure, rate
from tests.campaigns.bench.report import Row
from tests.campaigns.bench.world import World

EDIT = Delete("/" + "d" * 160, 0, NO_RPC_IDS)  # 200 bytes with its frame
RUNS = 5
SECONDS = 0.8
BARS = {16: 18_000, 256: 60_000}
HADOOP = {16: 14_550, 256: 35_800}


async def typed_edits(world: World) -> list[Row]:
    """Measure edits a second through ``EditLog``."""
    async with world.ours.journal() as name:
        return await _rows(world.ours.writer(name))


async def _rows(writer: QuorumWriter) -> list[Row]:
    recovered = await writer.become_writer()
    failures: list[str] = []
    pen = EditLog(writer, on_failure=failures.append)
    await pen.open(TxId(recovered.last_txid + 1))

    async def one_edit() -> None:
        await pen.durable(pen.append(EDIT))

    rows = []
    for callers, bar in BARS.items():
        found = [rate(await measure(callers, one_edit, SECONDS), SECONDS) for _ in range(RUNS)]
        value = statistics.median(found)
        name, peer = f"typed edits/s, {callers} callers", f"Hadoop's FSEditLog {HADOOP[callers]:,}"
        rows.append(Row(name, value, "1/s", f">= {bar:,}", value >= bar, peer))
    await pen.close()
    await writer.close()
    if failures:
        raise RuntimeError(failures[0])
    return rows
