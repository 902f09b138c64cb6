"""Every pair of lost calls on two nodes, over a short life of a writer.

Beyond Hadoop's test, answers are lost as well as requests, and the bytes are compared: each
writer's edits carry its own tag, so that an acknowledged edit cannot be replaced unseen.
"""

from itertools import product
from pathlib import Path

import pytest

from journal.errors import QuorumLost
from journal.model import TxId
from journal.writer.writer import QuorumWriter
from tests.journal.writer.journal_cluster import Nodes, edits, formatted_nodes
from tests.journal.writer.proxy import Fate, Judge, Proxy, always_pass, behind_proxies

CALLS = 10
"""What one node is asked: state, epoch, prepare, accept, finalize, then twice (start, write,
finalize); the last one is left to the undisturbed part of the pairs."""


def at(index: int, fate: Fate) -> Judge:
    return lambda number, _method: fate if number == index else Fate.PASS


async def live(writer: QuorumWriter, tag: str) -> bytes:
    """Recover and write two segments until a quorum is lost; the acknowledged edits."""
    acked = b""
    try:
        first = (await writer.become_writer()).last_txid + 1
        for start in (first, first + 3):
            await writer.start_segment(TxId(start))
            await writer.write(TxId(start), 3, edits(start, start + 2, tag))
            acked += edits(start, start + 2, tag)
            await writer.finalize_segment(TxId(start + 2))
    except QuorumLost as lost:
        if "was lost" not in str(lost):
            raise
    return acked


async def one_life(nodes: Nodes, proxies: list[Proxy], judges: list[Judge], tag: str) -> bool:
    """Let a writer meet two faults; what it knew to be durable must be read ever after."""
    _, last_before = await nodes.recover()
    before = await nodes.read_all(last_before - 9) if last_before > 9 else b""
    for proxy, judge in zip(proxies, judges, strict=True):
        proxy.arm(judge)
    writer = nodes.writer(addresses=[proxy.address for proxy in proxies])
    acked = await live(writer, tag)
    await writer.settle(timeout_seconds=30)
    await writer.close()
    await nodes.recover()
    after = await nodes.read_all(max(1, last_before - 9))
    assert after.startswith(before)
    assert acked in after
    return len(acked) == len(edits(1, 6, tag))


@pytest.mark.row(
    "8.6 testRecoverAfterDoubleFailures",
    because="any two lost calls on two nodes are Hadoop's double failures, on real nodes",
)
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(one, marks=pytest.mark.long) for one in (1, 2))]
)
@pytest.mark.parametrize("lost", [Fate.LOSE_REQUEST, Fate.LOSE_ANSWER])
async def test_two_lost_calls_lose_no_edit(tmp_path: Path, lost: Fate, part: int) -> None:
    other = Fate.LOSE_ANSWER if lost is Fate.LOSE_REQUEST else Fate.LOSE_REQUEST
    whole = 0
    async with (
        formatted_nodes(tmp_path) as nodes,
        behind_proxies(nodes.addresses) as proxies,
    ):
        for number, (a, b) in enumerate(product(range(1, CALLS + 1), repeat=2)):
            if (number % 2 == 0) == (lost is Fate.LOSE_REQUEST):
                continue  # the other half of the pairs is the other parameter's
            if (a - b) % 3 != part:
                continue
            pair = [at(a, lost), at(b, other if number % 4 < 2 else lost)]
            pair.insert(number % 3, always_pass)
            whole += await one_life(nodes, proxies, pair, f"{lost.name}-{a}-{b}")
    assert 0 < whole < CALLS * CALLS // 6
