"""A writer with a fault at each await, over gRPC and its lanes: both ends give all back."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from journal.errors import JournalError
from journal.model import TxId
from journal.writer.writer import WriterSettings
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc.test_cut_short import holdings as rpc_holdings
from tests.journal.writer.journal_cluster import JOURNAL, Nodes, edits

HOST = "127.0.0.1"
EDITS = 3


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.BREAK, Fault.STOP])
async def test_a_writer_that_is_cut_short_leaves_nothing_open(fault: Fault, tmp_path: Path) -> None:
    """One that is closed in a call ends it at once: its timeouts are longer than a life may be."""
    nodes = Nodes(tmp_path, count=1)
    nodes.extra |= {"lane_host": HOST, "edits_cache_bytes": 1 << 16}
    await nodes.start()
    await nodes.format()
    (daemon,) = nodes.daemons
    assert daemon is not None
    writers = [nodes.writer()]

    def holdings() -> Mapping[str, float]:
        lanes = daemon.node.lanes
        return {**rpc_holdings(), "lanes": lanes.open_to(JOURNAL) if lanes else 0}

    async def life() -> None:
        writer = nodes.writer(WriterSettings())
        writers.append(writer)
        try:
            first = TxId((await writer.become_writer()).last_txid + 1)
            await writer.start_segment(first)
            await writer.write(first, EDITS, edits(first, first + EDITS - 1))
            await writer.finalize_segment(TxId(first + EDITS - 1))
        finally:
            await writer.close()

    async def after(_: int) -> None:
        await writers[-1].close()
        writers.clear()

    # gRPC closes its sockets when it likes; a lane's have threads at the other end.  The node
    # keeps each life's segment.
    cuts = Cuts(
        life,
        fault,
        stop=lambda: writers[-1].close(),
        typed=(JournalError,),
        kept=frozenset({"edits_inprogress", "socket:", "ha.daemon.door", "journal.model.Segment"}),
    )
    try:
        assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 12
    finally:
        await nodes.stop()
