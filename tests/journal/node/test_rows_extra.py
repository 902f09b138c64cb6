"""Scenarios that Hadoop's tests lack, on real nodes."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from random import Random

import aiohttp
import pytest

from journal.core.requests import DiscardSegments
from journal.errors import QuorumLost
from journal.model import TxId
from journal.proto import journal_pb2 as pb
from journal.writer.writer import QuorumWriter
from tests.journal.core.requests_of import Writer, records
from tests.journal.node.process import NodeClient, node_and_client, segment_url, until
from tests.journal.writer import journal_cluster
from tests.journal.writer.proxy import Fate, behind_proxies
from tests.journal.writer.test_scenarios import Rig


@pytest.mark.row("X12")
@pytest.mark.parametrize("source", [1, 2])
async def test_x12_a_source_that_dies_between_prepare_and_accept(
    tmp_path: Path, source: int
) -> None:
    """JN0 lags; JN1 and JN2 are equal sources, and one of them serves nothing any more."""
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(journal_cluster.formatted_nodes(tmp_path, 5))
        proxies = await stack.enter_async_context(behind_proxies(nodes.addresses))
        await Rig(nodes, proxies).leave_open([3, 6, 6, 6, 3])
        await nodes.stop(3, 4)  # so that all of 0, 1 and 2 must answer
        for proxy in proxies:
            proxy.arm(lambda _n, m: Fate.HOLD if m == "AcceptRecovery" else Fate.PASS)
        writer = nodes.writer(addresses=[proxy.address for proxy in proxies])
        stack.push_async_callback(writer.close)
        recovery = asyncio.create_task(writer.become_writer())
        await asyncio.wait_for(asyncio.gather(*(p.held.wait() for p in proxies[:3])), 30)
        daemon = nodes.daemons[source]
        assert daemon is not None
        assert daemon._endpoint is not None
        await daemon._endpoint.stop()
        for proxy in proxies:
            proxy.opened.set()
        assert (await recovery).last_txid == 6
        await writer.settle(timeout_seconds=30)
        assert [nodes.finalized(i) for i in range(3)] == [[(1, 6)]] * 3


@pytest.mark.row("X17")
@pytest.mark.parametrize("contenders", [2, 3])
async def test_x17_contenders_in_lock_step_end_with_one_writer(
    nodes: journal_cluster.Nodes, contenders: int
) -> None:
    """They all begin each round together, and back off by chance; at most one epoch can write."""
    won: list[QuorumWriter] = []

    async def contend(number: int) -> None:
        chance, attempts = Random(number), 0
        while not won:
            attempts += 1
            assert attempts < 50, "nobody wins"
            writer = nodes.writer()
            try:
                first = TxId((await writer.become_writer()).last_txid + 1)
                await writer.start_segment(first)
                await writer.write(
                    first, 3, journal_cluster.edits(first, first + 2, f"of {number}")
                )
                won.append(writer)
            except QuorumLost:
                await writer.close()
                await asyncio.sleep(chance.uniform(0, 0.05 * attempts))

    await asyncio.gather(*(contend(number) for number in range(contenders)))
    epochs = [writer.epoch for writer in won]
    assert len(set(epochs)) == len(epochs) > 0
    alive = 0
    for writer in won:
        try:
            await writer.finalize_segment(writer.committed)
            alive += 1
        except QuorumLost:
            continue
        finally:
            await writer.close()
    assert alive <= 1
    epoch, last = await nodes.recover()
    assert epoch > max(epochs)
    assert last >= 3 * len(won)
    assert len(await nodes.read_all()) == len(journal_cluster.edits(1, last, "of 0"))


@pytest.mark.row("X19")
@pytest.mark.parametrize("count", [1, 2, 4, 5, 7])
async def test_x19_any_number_of_nodes(tmp_path: Path, count: int) -> None:
    """Survive as many failures as leave a majority, and report one more."""
    spare = (count - 1) // 2
    async with journal_cluster.formatted_nodes(tmp_path, count) as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        await journal_cluster.write_segment(writer, 1, 3)
        await nodes.stop(*range(spare)) if spare else None
        await journal_cluster.write_segment(writer, 4, 6)
        await writer.start_segment(TxId(7))
        await writer.write(TxId(7), 1, journal_cluster.edits(7, 7))
        await nodes.stop(spare)
        with pytest.raises(QuorumLost, match=f"needs {count // 2 + 1} of {count}"):
            await writer.write(TxId(8), 1, journal_cluster.edits(8, 8))
        await writer.close()
        failing = nodes.writer()
        with pytest.raises(QuorumLost, match=r"needs \d of \d JournalNodes"):
            await failing.become_writer()
        await failing.close()
        await nodes.start(spare)
        _, last = await nodes.recover()
        assert last in (7, 8)
        assert await nodes.read_all() == journal_cluster.edits(1, last)


@pytest.mark.row("X19")
async def test_x19_every_two_failures_of_five(tmp_path: Path) -> None:
    """Stop each pair while a writer recovers and writes; nothing is lost on the way."""
    async with journal_cluster.formatted_nodes(tmp_path, 5) as nodes:
        last = 0
        for gone in combinations(range(5), 2):
            writer = nodes.writer()
            assert (await writer.become_writer()).last_txid == last
            await writer.start_segment(TxId(last + 1))
            await writer.write(TxId(last + 1), 2, journal_cluster.edits(last + 1, last + 2))
            await nodes.stop(*gone)
            await writer.write(TxId(last + 3), 1, journal_cluster.edits(last + 3, last + 3))
            await writer.close()
            assert (await nodes.recover())[1] == last + 3
            last += 3
            await nodes.start(*gone)
        assert await nodes.read_all() == journal_cluster.edits(1, last)


@pytest.mark.row("X21")
async def test_x21_a_download_that_is_open_survives_a_discard(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.written(writer, 1, 2)
        await client.finalize(writer, 1, 2)
        await client.written(writer, 3, 4000)
        await client.finalize(writer, 3, 4000)
        owner = daemon.node.find(client.journal_id)
        assert owner is not None
        async with aiohttp.ClientSession() as session:
            async with session.get(segment_url(daemon, 3)) as response:
                begun = await response.content.readexactly(100)
                await owner.ask(DiscardSegments(writer.stamp(), TxId(3)))
                body = begun + await response.read()
            assert body[8:] == records(3, 4000)
            for first, status in ((1, 200), (3, 404)):
                async with session.get(segment_url(daemon, first)) as response:
                    assert response.status == status


async def fences(nodes: journal_cluster.Nodes, stale: Writer) -> list[list[bool]]:
    fenced = []
    for rpc in nodes.addresses:
        client = NodeClient(rpc[1], journal_cluster.JOURNAL)
        beat = pb.WriteRequest(info=client.info(stale), heartbeat=pb.Heartbeat())
        replies = await client.write([beat, client.batch(stale, 1, 100, 100)])
        fenced.append([reply.refusal.kind == pb.Refusal.FENCED for reply in replies])
        await client.close()
    return fenced


@pytest.mark.row("X22")
@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_x22_a_stale_writer_is_fenced_whatever_the_order(
    nodes: journal_cluster.Nodes, order: tuple[int, ...]
) -> None:
    """Send the successor's newEpoch to one node after another; the old one writes in between."""
    old = nodes.writer()
    epoch = (await old.become_writer()).epoch
    await old.start_segment(TxId(1))
    await old.write(TxId(1), 2, journal_cluster.edits(1, 2))
    await old.settle(timeout_seconds=30)
    clients = [NodeClient(port, journal_cluster.JOURNAL) for _, port in nodes.addresses]
    await clients[order[0]].new_epoch(epoch + 1)
    await old.write(TxId(3), 1, journal_cluster.edits(3, 3))  # the other two are a majority
    await clients[order[1]].new_epoch(epoch + 1)
    with pytest.raises(QuorumLost) as lost:  # the very next call ends it
        await old.write(TxId(4), 1, journal_cluster.edits(4, 4))
    assert lost.value.fenced_by == epoch + 1
    await clients[order[2]].new_epoch(epoch + 1)
    for client in clients:
        await client.close()
    with pytest.raises(QuorumLost, match="this writer has ended"):
        await old.write(TxId(5), 1, journal_cluster.edits(5, 5))
    await old.close()
    assert await fences(nodes, Writer(epoch, 1000)) == [[True] * 2] * 3


@pytest.mark.row("X22")
async def test_x22_an_idle_stale_writer_hears_it_from_a_heartbeat(
    nodes: journal_cluster.Nodes,
) -> None:
    old = nodes.writer(replace(journal_cluster.QUICK, read_lease_seconds=0.2))
    told: list[str] = []
    old.read_lease.on_superseded = told.append
    await old.become_writer()
    await journal_cluster.write_segment(old, 1, 3)
    await old.start_segment(TxId(4))
    await nodes.recover()
    await until(lambda: told, "a majority has told it")
    assert "newer writer" in told[0]
    assert not old.read_lease.valid()
    with pytest.raises(QuorumLost) as lost:
        await old.write(TxId(4), 1, journal_cluster.edits(4, 4))
    assert lost.value.fenced_by == 2
    await old.close()
