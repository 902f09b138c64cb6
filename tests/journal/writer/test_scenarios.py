"""Recoveries after crashes and lost requests, with every set of nodes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from journal.errors import QuorumLost
from journal.model import TxId
from journal.writer.writer import QuorumWriter, WriterSettings
from tests.journal.writer.journal_cluster import (
    JOURNAL,
    Nodes,
    edits,
    formatted_nodes,
    write_segment,
)
from tests.journal.writer.proxy import Fate, Judge, Proxy, always_pass, behind_proxies

SUBSETS = [(0, 1), (0, 2), (1, 2), (0, 1, 2)]


def lose(*methods: str, since: int = 1) -> Judge:
    """Lose every request of these methods from the ``since``-th call of the node on."""
    return lambda number, method: (
        Fate.LOSE_REQUEST if method in methods and number >= since else Fate.PASS
    )


class Rig:
    """Three formatted nodes, each behind a proxy."""

    def __init__(self, nodes: Nodes, proxies: list[Proxy]) -> None:
        self.nodes = nodes
        self.proxies = proxies

    def writer(self) -> QuorumWriter:
        return self.nodes.writer(addresses=[proxy.address for proxy in self.proxies])

    def arm(self, *judges: Judge) -> None:
        for proxy, judge in zip(self.proxies, judges, strict=True):
            proxy.arm(judge)

    async def end(self, writer: QuorumWriter) -> None:
        """Close it, and lose nothing more once nothing of it is on its way."""
        await writer.close()
        for proxy in self.proxies:
            await proxy.quiet.wait()
        self.heal()

    def heal(self) -> None:
        self.arm(*[always_pass] * len(self.proxies))

    async def recover(self, *up: int, without: tuple[str, ...] = ()) -> int:
        """Have a writer that sees only these nodes recover; ``without`` is lost on its way."""
        every = ("GetJournalState", "NewEpoch", "PrepareRecovery", "AcceptRecovery",
                 "FinalizeLogSegment", "StartLogSegment", "Write")  # fmt: skip
        self.arm(*(lose(*(without if i in up else every)) for i in range(len(self.proxies))))
        writer = self.writer()
        try:
            won = await writer.become_writer()
            await writer.settle(timeout_seconds=30)
            return won.last_txid
        finally:
            await self.end(writer)

    async def leave_open(self, ends: list[int], tag: str = "") -> None:
        """Finalize nothing, and end each node's open segment at its own txid, from 1 on."""
        writer = self.writer()
        first = (await writer.become_writer()).last_txid + 1
        await writer.start_segment(TxId(first))
        for end in sorted({end for end in ends if end >= first}):
            self.arm(*(lose("Write") if end > own else always_pass for own in ends))
            try:
                await writer.write(TxId(first), end - first + 1, edits(first, end, tag))
            except QuorumLost:
                assert end == max(ends)
            first = end + 1
        await writer.settle(timeout_seconds=30)
        await self.end(writer)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with formatted_nodes(tmp_path) as nodes, behind_proxies(nodes.addresses) as proxies:
        yield Rig(nodes, proxies)


@pytest.mark.parametrize("up", SUBSETS)
@pytest.mark.parametrize(
    ("ends", "results"),
    [
        ([3, 6, 6], {(0, 1): 6, (0, 2): 6, (1, 2): 6, (0, 1, 2): 6}),  # 2.10.1
        ([4, 6, 3], {(0, 1): 6, (0, 2): 4, (1, 2): 6, (0, 1, 2): 6}),  # 2.10.2
        ([3, 3, 3], {(0, 1): 3, (0, 2): 3, (1, 2): 3, (0, 1, 2): 3}),  # writers' logs in sync
    ],
)
async def test_a_crashed_writers_segment_is_recovered_by_any_majority(
    rig: Rig, ends: list[int], results: dict[tuple[int, ...], int], up: tuple[int, ...]
) -> None:
    await rig.leave_open(ends)
    # A quorum may be made without the slowest of three, so (0, 1, 2) allows each pair's answer.
    legal = {results[up]} if len(up) == 2 else set(results.values())
    last = await rig.recover(*up)
    assert last in legal
    rig.nodes.ensure_recovered(1, last)
    assert await rig.nodes.read_all() == edits(1, last)
    _, again = await rig.nodes.recover()
    assert again == last


@pytest.mark.row("X1")
@pytest.mark.parametrize("up", SUBSETS)
async def test_x1_a_stale_copy_of_equal_length_is_replaced(rig: Rig, up: tuple[int, ...]) -> None:
    """Replace its bytes, which Hadoop keeps, so that readers get them."""
    await write_on(rig, "first", 1, 3)
    await rig.leave_open([6, 0, 0], tag="stale")
    assert await rig.recover(1, 2) == 3
    rig.arm(lose("NewEpoch", "StartLogSegment", "Write"), always_pass, always_pass)
    second = rig.writer()
    await second.become_writer()
    await second.start_segment(TxId(4))
    await second.write(TxId(4), 3, edits(4, 6, "acked"))
    await second.close()
    assert await rig.recover(*up) == 6
    for i in range(3):
        path = rig.nodes.current(i) / f"edits_{4:019d}-{6:019d}"
        if i in up:
            assert path.read_bytes()[8:] == edits(4, 6, "acked")
        else:
            assert not path.exists() or path.read_bytes()[8:] == edits(4, 6, "acked")
    for gone in range(3):
        await rig.nodes.stop(gone)
        assert (await rig.nodes.read_all()) == edits(1, 3, "first") + edits(4, 6, "acked")
        await rig.nodes.start(gone)


@pytest.mark.row("X2")
async def test_x2_a_stale_copy_is_not_finalized_when_its_replacement_was_lost(rig: Rig) -> None:
    """Lose acceptRecovery to the stale node; finalize reaches it."""
    await write_on(rig, "first", 1, 3)
    await rig.leave_open([6, 0, 0], tag="stale")
    assert await rig.recover(1, 2) == 3
    rig.arm(lose("NewEpoch", "StartLogSegment", "Write"), always_pass, always_pass)
    second = rig.writer()
    await second.become_writer()
    await second.start_segment(TxId(4))
    await second.write(TxId(4), 3, edits(4, 6, "acked"))
    await second.close()
    rig.arm(lose("AcceptRecovery"), always_pass, always_pass)
    third = rig.writer()
    assert (await third.become_writer()).last_txid == 6
    await third.settle(timeout_seconds=30)
    await third.close()
    assert (4, 6) not in rig.nodes.finalized(0)
    assert await rig.nodes.read_all() == edits(1, 3, "first") + edits(4, 6, "acked")
    # In the background a peer's finalized segment replaces it later.
    await rig.nodes.stop(0)
    rig.nodes.extra |= {"peers": {JOURNAL: rig.nodes.addresses}, "sync_interval_seconds": 0.05}
    await rig.nodes.start(0)
    async with asyncio.timeout(30):
        while (4, 6) not in rig.nodes.finalized(0):
            await asyncio.sleep(0.01)
    path = rig.nodes.current(0) / f"edits_{4:019d}-{6:019d}"
    assert path.read_bytes()[8:] == edits(4, 6, "acked")


@pytest.mark.row("X5")
async def test_x5_two_failures_end_the_wait_for_a_node_that_hangs(rig: Rig) -> None:
    """Hadoop waits for the third node or the timeout."""
    writer = rig.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    rig.arm(lose("Write"), lose("Write"), lambda _n, _m: Fate.HANG)
    started = asyncio.get_running_loop().time()
    with pytest.raises(QuorumLost, match=r"the request was lost.*the request was lost"):
        await writer.write(TxId(1), 1, edits(1, 1))
    assert asyncio.get_running_loop().time() - started < 4
    await writer.close()


async def test_a_node_that_hangs_delays_nothing_and_holds_little(rig: Rig) -> None:
    settings = WriterSettings(queued_edits_limit_bytes=64 * 1024, write_txns_timeout_seconds=60)
    writer = rig.nodes.writer(settings, [proxy.address for proxy in rig.proxies])
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    rig.arm(always_pass, lambda _n, m: Fate.HANG if m == "Write" else Fate.PASS, always_pass)
    async with asyncio.timeout(30):  # waiting for the one that hangs would take a minute
        for txid in range(1, 101):
            await writer.write(TxId(txid), 1, edits(txid, txid, "x" * 2000))
    status = writer.node_statuses()[1]
    assert not status.in_sync
    assert "too far behind" in (status.last_error or "")
    assert status.lag_transactions == 100
    await writer.finalize_segment(TxId(100))
    await writer.close()
    assert len(await rig.nodes.read_all()) == len(edits(1, 100, "x" * 2000))


async def test_a_heartbeat_tells_a_node_that_is_left_out(rig: Rig) -> None:
    writer = rig.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    rig.arm(lose("Write"), always_pass, always_pass)
    await writer.write(TxId(1), 1, edits(1, 1))
    await writer.settle(timeout_seconds=30)
    rig.heal()
    async with asyncio.timeout(30):
        while "ResumeSegment" not in rig.proxies[0].calls:
            await asyncio.sleep(0.05)
    await writer.write(TxId(2), 1, edits(2, 2))
    await writer.finalize_segment(TxId(2))
    await writer.settle(timeout_seconds=30)
    rig.proxies[0].calls.clear()
    async with asyncio.timeout(30):
        while not writer.node_statuses()[0].in_sync and "Write" not in rig.proxies[0].calls:
            await asyncio.sleep(0.05)
    await writer.start_segment(TxId(3))
    await writer.write(TxId(3), 1, edits(3, 3))
    async with asyncio.timeout(30):
        while not writer.node_statuses()[0].in_sync:
            await asyncio.sleep(0.01)
    await writer.close()


async def write_on(rig: Rig, tag: str, first: int, last: int) -> None:
    writer = rig.writer()
    await writer.become_writer()
    await write_segment(writer, first, last, tag)
    await writer.settle(timeout_seconds=30)
    await writer.close()
