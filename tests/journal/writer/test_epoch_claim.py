"""A claim's two rounds: each node must still know its promise when a majority has promised.

Every pair of lost calls on two nodes, over a short life of a writer.
Beyond Hadoop's test, answers are lost as well as requests, and the bytes are compared: each
writer's edits carry its own tag, so that an acknowledged edit cannot be replaced unseen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from journal.errors import Fenced, InvariantBroken, NotAdmitted, QuorumLost, Unavailable
from journal.links.grpc_link import GrpcLink
from journal.links.link import WriteStream
from journal.model import Epoch, NodeName, TxId
from journal.proto import journal_pb2 as pb
from journal.writer.channel import NodeChannel
from journal.writer.epoch_claim import Claim
from journal.writer.writer import QuorumWriter, WriterSettings
from tests.journal.writer.journal_cluster import NAMESPACE, QUICK, Nodes, edits, formatted_nodes
from tests.journal.writer.proxy import Fate, Judge, Proxy, always_pass, behind_proxies

A, B = NodeName("a:1"), NodeName("b:1")
EPOCH = Epoch(7)


@dataclass
class Promising:
    """A node, as far as a claim asks it."""

    name: NodeName
    promised: int = EPOCH
    incarnation: str = ""
    asked: list[Epoch] = field(default_factory=list)

    @property
    def remote(self) -> "Promising":
        return self

    async def new_epoch(self, _namespace: object, epoch: Epoch, _seconds: float) -> object:
        self.asked.append(epoch)
        return pb.NewEpochReply(incarnation=self.incarnation)

    async def journal_state(self, _seconds: float) -> object:
        return pb.GetJournalStateReply(last_promised_epoch=self.promised)


async def propose(claim: Claim, *nodes: Promising) -> None:
    for node in nodes:
        await claim.propose(cast(NodeChannel, node), 1.0)


async def confirm(claim: Claim, node: Promising) -> None:
    await claim.confirm(cast(NodeChannel, node), 1.0)


@pytest.mark.parametrize(
    ("promised", "raised"),
    [(EPOCH, None), (EPOCH + 1, Fenced), (EPOCH - 1, NotAdmitted), (0, NotAdmitted)],
)
async def test_the_second_round_looks_at_each_promise_again(
    promised: int, raised: type[Exception] | None
) -> None:
    claim, node = Claim(NAMESPACE, EPOCH), Promising(A, promised)
    await propose(claim, node)
    assert node.asked == [EPOCH]
    assert claim.granted.keys() == {A}
    if raised is None:
        await confirm(claim, node)
        return
    with pytest.raises(raised) as refused:
        await confirm(claim, node)
    if isinstance(refused.value, Fenced):
        assert refused.value.promised == promised


async def test_who_has_not_promised_confirms_nothing() -> None:
    """Refuse its late promise, after the round: the node may have been wiped in between."""
    claim, late = Claim(NAMESPACE, EPOCH), Promising(B)
    await propose(claim, Promising(A))
    with pytest.raises(Unavailable, match="has not promised"):
        await confirm(claim, late)


@pytest.mark.parametrize(
    ("a", "b", "distinct"), [("x", "y", True), ("", "", True), ("x", "x", False)]
)
async def test_one_incarnation_promises_once(a: str, b: str, distinct: bool) -> None:
    claim = Claim(NAMESPACE, EPOCH)
    await propose(claim, Promising(A, incarnation=a), Promising(B, incarnation=b))
    if distinct:
        claim.ensure_distinct()
    else:
        with pytest.raises(InvariantBroken, match="one and the same incarnation x"):
            claim.ensure_distinct()


class Forgetful:
    """A way to a node whose promise is gone, as with its disk, as soon as it was given."""

    def __init__(self, host: str, port: int, forgets: Callable[[int], bool]) -> None:
        self._link, self._forgets = GrpcLink(host, port), forgets(port)
        self._promised = False

    async def call(
        self, method: str, request: Message, reply: type[Any], timeout_seconds: float
    ) -> Any:  # noqa: ANN401 - as in Link
        answer = await self._link.call(method, request, reply, timeout_seconds)
        if self._promised and isinstance(answer, pb.GetJournalStateReply):
            return pb.GetJournalStateReply(last_promised_epoch=0)
        self._promised |= self._forgets and isinstance(answer, pb.NewEpochReply)
        return answer

    def open_write_stream(self) -> WriteStream:
        return self._link.open_write_stream()

    async def wait_until_reconnected(self) -> None:
        await self._link.wait_until_reconnected()

    async def close(self) -> None:
        await self._link.close()


@pytest.mark.parametrize("wiped", [1, 2])
async def test_a_writer_has_won_only_if_a_majority_holds_all_its_promises_at_one_time(
    nodes: Nodes, wiped: int
) -> None:
    addresses = nodes.addresses
    forgetful = {port for _, port in addresses[:wiped]}
    nodes.reached_by(lambda host, port: Forgetful(host, port, forgetful.__contains__))
    writer = nodes.writer(QUICK, addresses)
    try:
        if wiped == 1:
            assert (await writer.become_writer()).epoch == 1
        else:
            with pytest.raises(QuorumLost, match="forgotten that it promised epoch 1"):
                await writer.become_writer()
    finally:
        await writer.close()


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
    # What is lost is noticed at once; so no timeout decides, on a busy machine either.
    writer = nodes.writer(WriterSettings(), [proxy.address for proxy in proxies])
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
    async with formatted_nodes(tmp_path) as nodes, behind_proxies(nodes.addresses) as proxies:
        for number, (a, b) in enumerate(product(range(1, CALLS + 1), repeat=2)):
            if (number % 2 == 0) == (lost is Fate.LOSE_REQUEST):
                continue  # the other half of the pairs is the other parameter's
            if (a - b) % 3 != part:
                continue
            pair = [at(a, lost), at(b, other if number % 4 < 2 else lost)]
            pair.insert(number % 3, always_pass)
            whole += await one_life(nodes, proxies, pair, f"{lost.name}-{a}-{b}")
    assert 0 < whole < CALLS * CALLS // 6
