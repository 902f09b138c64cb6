"""A learner's steps to its vote by the voters' word: each thing it waits for, on virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from journal.core.requests import Format
from journal.core.voters import Voter
from journal.errors import JournalError, NotAdmitted
from journal.links.peer import Listed, Peer, PeerReport
from journal.model import NO_TXID, Epoch, JournalId, NodeName, TxId
from journal.node.owner.owner import JournalOwner
from journal.node.repair.admission import Admission
from journal.storage.disk import Disk
from tests.journal.core.requests_of import LIFE, NAMESPACE, MemoryFiles
from tests.log_lines import captured
from tests.namenode_sim.term.test_tailer import on_virtual_time

OTHERS = replace(NAMESPACE, cluster_id="another")


@dataclass
class InMemory:
    """A voter without a network; ``promises_next`` is what it promises once it was looked at."""

    name: NodeName
    promise: int = 1
    promises_next: int = 0
    last: int = NO_TXID
    namespace: Any = NAMESPACE
    holds: bool = True
    host: str = "there"

    async def promised(self, timeout_seconds: float) -> Epoch:
        promise = self.promise
        self.promise = self.promises_next or promise
        return Epoch(promise)

    async def held(self, since: TxId, timeout_seconds: float) -> PeerReport:
        if not self.holds:
            raise NotAdmitted("a learner")
        return PeerReport(f"disk {self.name}", self.namespace, 1, (), TxId(self.last))

    async def http_port(self, timeout_seconds: float) -> int:
        raise NotImplementedError

    async def listed(self, since: TxId, timeout_seconds: float) -> Listed:
        raise NotImplementedError

    async def close(self) -> None: ...


#   when it tries; what its state, or the second voter, has become by then; what it waits for
UNDER_WAY, ROLL = "may be under way for 10 s", "it takes a log roll"
Tries = Sequence[tuple[float, dict[str, Any], dict[str, Any], str | None]]
SCENES: dict[str, Tries] = {
    "all is well": (
        (0, {}, {}, UNDER_WAY), (5, {}, {}, UNDER_WAY), (9.9, {}, {}, UNDER_WAY), (10, {}, {}, None)
    ),
    "no writer has begun": ((20, {"start_heard": Epoch(0)}, {}, ROLL),),
    "another writer has": ((20, {"promised": Epoch(2)}, {}, ROLL),),
    "a newer writer is promised as the voter is looked at": (
        (0, {}, {}, UNDER_WAY), (10, {}, {"promises_next": 2}, "a voter has promised 2")
    ),
    "a later writer needs another mark": (
        (0, {}, {"promise": 1}, UNDER_WAY),
        (5, {"promised": Epoch(2), "start_heard": Epoch(2)}, {"promise": 2}, "and 1 say so"),
    ),
    "formatted anew it waits anew": (
        (0, {}, {}, UNDER_WAY), (12, {"incarnation": "1" * 32}, {}, UNDER_WAY),
        (21.9, {}, {}, UNDER_WAY), (22, {}, {}, None),
    ),
    "a voter of another file system": ((0, {}, {"namespace": OTHERS}, "and 1 say so"),),
    "a voter that does not say what it holds": (
        (0, {}, {"holds": False}, "and 1 say so"), (1, {}, {"holds": True}, UNDER_WAY),
        (12, {}, {"holds": False}, "2 voters besides this learner must answer"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("tries", SCENES.values(), ids=list(SCENES))
def test_what_a_learner_of_three_nodes_waits_for(tries: Tries) -> None:
    voters = [InMemory(NodeName("a")), InMemory(NodeName("b"))]

    async def ask_each(question: Callable[[Peer], Awaitable[Voter]]) -> Sequence[Voter]:
        answers = await asyncio.gather(*map(question, voters), return_exceptions=True)
        assert all(isinstance(one, Voter | JournalError) for one in answers)
        return [one for one in answers if isinstance(one, Voter)]

    async def play() -> None:
        disk, loop = Disk(Path("/journal"), MemoryFiles()), asyncio.get_running_loop()
        owner = JournalOwner(JournalId("learner"), disk, disk.load())
        await owner.ask(Format(NAMESPACE, founding=False, incarnation=LIFE))
        owner.state = replace(owner.state, promised=Epoch(1), start_heard=Epoch(1))
        admission = Admission(owner, 3, wait_seconds=10.0, call_seconds=1.0)
        assert admission.waits_for == "the first look at the voters"
        for at, of_state, of_voter, waits_for in tries:
            await asyncio.sleep(at - loop.time())
            owner.state = replace(owner.state, **of_state)
            voters[1] = replace(voters[1], **of_voter)
            await admission.attempt(ask_each)
            assert (admission.waits_for is None) is (waits_for is None)
            assert waits_for is None or waits_for in str(admission.waits_for)
        await owner.stop()

    with captured("learner.not_admitted_yet") as lines:
        on_virtual_time(play())
    if tries is SCENES["all is well"]:
        assert len(lines) == 1, "it is logged once"
