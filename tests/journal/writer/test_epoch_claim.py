"""A claim's two rounds: each node must still know its promise when a majority has promised."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from journal.errors import Fenced, InvariantBroken, NotAdmitted, QuorumLost, Unavailable
from journal.links.grpc_link import GrpcLink
from journal.links.link import WriteStream
from journal.model import Epoch, NodeName
from journal.proto import journal_pb2 as pb
from journal.writer.channel import NodeChannel
from journal.writer.epoch_claim import Claim
from tests.journal.writer.journal_cluster import NAMESPACE, QUICK, Nodes

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
