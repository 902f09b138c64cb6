"""What real nodes report of a writer: while it is idle, when it is gone, after a restart."""

import asyncio

from journal.links.settings import WriterSettings
from journal.model import TxId
from journal.silence import Silence
from journal.writer.writer import QuorumWriter
from tests.journal.writer.journal_cluster import QUICK, Nodes, edits

LEASE = 1.0
FIELDS = {name: getattr(QUICK, name) for name in QUICK.__slots__}
LEASED = WriterSettings(**{**FIELDS, "read_lease_seconds": LEASE})
DEADLINE = 30.0


async def writing(nodes: Nodes, settings: WriterSettings) -> QuorumWriter:
    writer = nodes.writer(settings)
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await writer.write(TxId(1), 1, edits(1, 1))
    return writer


async def told(nodes: Nodes) -> Silence:
    reader = nodes.reader()
    try:
        return await reader.writer_silence(DEADLINE)
    finally:
        await reader.close()


async def test_an_idle_writer_is_heard_and_one_that_is_gone_is_not(nodes: Nodes) -> None:
    writer = await writing(nodes, LEASED)
    async with asyncio.timeout(DEADLINE):
        heard = await told(nodes)
        began = asyncio.get_running_loop().time()
        # It writes nothing any more, and its heartbeats keep the silence short.
        while asyncio.get_running_loop().time() < began + 2 * LEASE:
            heard = await told(nodes)
            await asyncio.sleep(LEASE / 8)
        assert heard.silent_seconds < 2 * LEASE
        assert (heard.nodes, heard.epoch, heard.lease_seconds) == (3, 1, LEASE)
        assert heard.witnesses >= 2
        await writer.close()
        while (await told(nodes)).silent_seconds <= 2 * LEASE:
            await asyncio.sleep(LEASE / 8)


async def test_nodes_that_were_started_again_bear_no_witness(nodes: Nodes) -> None:
    writer = await writing(nodes, LEASED)
    await writer.close()
    for number in (0, 1):
        await nodes.stop(number)
        await nodes.start(number)
    found = await told(nodes)
    assert (found.witnesses <= 1, found.silent_seconds) == (True, 0.0)


async def test_a_writer_without_a_lease_sends_no_heartbeats_and_has_no_witness(
    nodes: Nodes,
) -> None:
    writer = await writing(nodes, QUICK)
    found = await told(nodes)
    assert (found.witnesses, found.silent_seconds, found.epoch) == (0, 0.0, 1)
    await writer.close()


async def test_who_has_promised_a_newer_writer_bears_no_witness_of_the_older(nodes: Nodes) -> None:
    old = await writing(nodes, LEASED)
    new = nodes.writer(LEASED)
    await new.become_writer()
    found = await told(nodes)
    # Its recovery has spoken to them since: it is the newest writer, and was just heard.
    assert found.epoch == 2
    assert found.silent_seconds < LEASE
    await new.close()
    await old.close()
