"""When a writer gives a learner its vote: what the voters say decides, and when they say it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from journal.errors import JournalError, NotAdmitted, OutOfSync, Unavailable
from journal.links.quorum_call import QuorumCall
from journal.links.remote_node import RemoteNode
from journal.model import LAYOUT_VERSION, Epoch, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.writer import rejoin
from journal.writer.channel import NodeChannel
from journal.writer.learner_admission import LearnerAdmission
from journal.writer.rejoin import reopen
from journal.writer.window import Window
from tests.journal.node.process import until
from tests.journal.writer.journal_cluster import QUICK

EPOCH = Epoch(7)
QUICKEST = replace(QUICK, heartbeat_interval_seconds=0.001)
SEGMENT = pb.SegmentState(first_txid=1, last_txid=3, digest=b"d" * 32)


def manifest(purged: int | None = None) -> pb.GetEditLogManifestReply:
    open_one = pb.SegmentState(first_txid=4, last_txid=5, is_in_progress=True)
    return pb.GetEditLogManifestReply(segments=[SEGMENT, open_one], purged_txid=purged)


@dataclass
class Node:
    """A channel and its node, as far as an admission goes."""

    name: NodeName
    promised: Epoch = EPOCH
    silent: bool = False
    learner: str | None = None
    takes_part: bool = True
    catches_up_after: int = 0
    purged: int | None = None
    epoch: Epoch = EPOCH
    asked: list[str] = field(default_factory=list)
    admissions: list[tuple[object, ...]] = field(default_factory=list)
    refuses: list[JournalError] = field(default_factory=list)
    asking: asyncio.Task[None] | None = None
    on_state: Callable[[], None] | None = None

    @property
    def has_caught_up(self) -> bool:
        self.catches_up_after -= 1
        return self.catches_up_after < 0

    @property
    def remote(self) -> "Node":
        return self

    @property
    def headers(self) -> "Node":
        return self

    def info(self) -> pb.RequestInfo:
        return pb.RequestInfo(epoch=self.epoch)

    async def peer_manifest(self, since: TxId, _seconds: float) -> object:
        self._hears(f"manifest from {since}")
        return manifest(self.purged)

    async def journal_state(self, _seconds: float) -> object:
        self._hears("promise")
        if self.on_state is not None:
            self.on_state()
        return pb.GetJournalStateReply(last_promised_epoch=self.promised)

    def _hears(self, question: str) -> None:
        self.asked.append(question)
        if self.learner is not None:
            raise NotAdmitted(f"{self.name} has no vote")
        if self.silent:
            raise Unavailable(f"{self.name} is away")

    def ask(self, call: QuorumCall[None], perform: Callable[[], Awaitable[None]]) -> None:
        async def performed() -> None:
            try:
                await perform()
            except JournalError as error:
                call.fail(self.name, error)
            else:
                call.succeed(self.name, None)

        self.asking = asyncio.create_task(performed())

    async def admit(self, _info: object, *told: object, purged: TxId | None) -> None:
        incarnation, required, committed, _seconds = told
        self.asked.append("admit")
        if self.refuses:
            raise self.refuses.pop()
        self.admissions.append((incarnation, required, committed, purged))

    def admitted(self) -> None:
        self.learner = None


def group(size: int) -> list[Node]:
    """Make a learner, and voters."""
    learner, *voters = (Node(NodeName(f"{name}:1")) for name in "abcde"[:size])
    learner.learner = "disk-2"
    return [learner, *voters]


async def taught(nodes: Sequence[Node], enough: Callable[[], bool]) -> None:
    """Have a writer care for the first of the nodes until that is enough."""
    window = Window([node.name for node in nodes], limit_bytes=1, timeout_seconds=1.0)
    window.committed = TxId(5)
    admission = LearnerAdmission(window, QUICKEST)
    admission.channels = cast(Sequence[NodeChannel], nodes)
    for _ in range(2):
        admission.take_on(cast(NodeChannel, nodes[0]))
    await until(enough, "the admission to go on")
    await admission.stop()


CLOSED = Segment(TxId(1), TxId(3), finalized=True, digest=b"d" * 32)


@pytest.mark.parametrize(
    ("purged", "told"), [((None, None), None), ((4, None), 4), ((4, 6), 6), ((6, 4), 6)]
)
async def test_a_learner_is_admitted_once_with_what_all_voters_hold(
    purged: tuple[int | None, int | None], told: int | None
) -> None:
    learner, *voters = nodes = group(3)
    for voter, point in zip(voters, purged, strict=True):
        voter.purged = point
    await taught(nodes, lambda: learner.learner is None)
    assert learner.admissions == [("disk-2", [CLOSED], 5, told)]
    assert [voter.asked for voter in voters] == [["manifest from 1", "promise"]] * 2


async def test_a_learner_that_lacks_something_is_asked_again() -> None:
    learner, *_ = nodes = group(3)
    learner.refuses.append(OutOfSync("it lacks 2"))
    await taught(nodes, lambda: learner.learner is None)
    assert learner.asked == ["admit"] * 2


async def test_a_learner_that_has_not_caught_up_waits() -> None:
    learner, voter, _ = nodes = group(3)
    learner.catches_up_after = 3
    await taught(nodes, lambda: learner.learner is None)
    assert learner.catches_up_after < 0
    assert voter.asked == ["manifest from 1", "promise"]


def promised_a_newer_one(nodes: Sequence[Node]) -> None:
    nodes[2].promised = Epoch(EPOCH + 1)


def forgot_its_promise(nodes: Sequence[Node]) -> None:
    nodes[2].promised = Epoch(0)


def is_away(nodes: Sequence[Node]) -> None:
    nodes[2].silent = True


def is_a_learner_too(nodes: Sequence[Node]) -> None:
    nodes[2].learner = "disk-9"


def wiped_again(nodes: Sequence[Node]) -> None:
    def wipe() -> None:
        nodes[0].learner = "disk-3"

    nodes[1].on_state = wipe


def lost(nodes: Sequence[Node]) -> None:
    nodes[0].takes_part = False


Trouble = Callable[[Sequence[Node]], None]


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("trouble", [promised_a_newer_one, forgot_its_promise, is_away,
                                     is_a_learner_too, wiped_again, lost])  # fmt: skip
async def test_of_all_nodes_a_majority_beside_the_learner_must_confirm(
    trouble: Trouble, size: int
) -> None:
    """Bad schedule: a newer writer has this learner's old promise and one more, of these others."""
    learner, voter, *others = nodes = group(size)
    trouble(nodes)
    if size == 5:
        others[-1].silent = True  # without it three would do
    rounds = 1 if trouble is wiped_again else 3
    await taught(nodes, lambda: voter.asked.count("manifest from 1") > rounds - 1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert learner.asked == []


async def test_of_five_one_may_be_away() -> None:
    learner, *_, last = nodes = group(5)
    last.silent = True
    await taught(nodes, lambda: learner.learner is None)
    assert len(learner.admissions) == 1


class Returning:
    """A node that may have restarted, and what it says to the segment's writer."""

    def __init__(self, *says: TxId | JournalError, learner: str | None, back: bool = True) -> None:
        self.says, self.learner, self.back = list(says), learner, back

    async def resume_segment(self, *_asked: object) -> TxId:
        said = self.says.pop(0)
        if isinstance(said, JournalError):
            raise said
        return said

    async def wait_until_reconnected(self) -> None:
        if not self.back:
            await asyncio.get_running_loop().create_future()


AWAY = Unavailable("away")
RETURNS: dict[str, tuple[Returning, str | None, type[JournalError] | None]] = {
    "as it was": (Returning(TxId(6), learner=None), None, None),
    "still a learner": (Returning(TxId(6), learner="d"), "d", None),
    "it lacks edits": (Returning(TxId(5), learner=None), None, OutOfSync),
    "it has more": (Returning(TxId(7), learner=None), None, OutOfSync),
    "wiped": (Returning(TxId(6), learner="d"), None, OutOfSync),
    "another learner": (Returning(TxId(6), learner="e"), "d", OutOfSync),
    "admitted by another": (Returning(TxId(6), learner=None), "d", OutOfSync),
    "only its connection was lost": (Returning(AWAY, TxId(6), learner=None), None, None),
    "back, and lost again": (Returning(AWAY, AWAY, learner=None), None, Unavailable),
    "away": (Returning(AWAY, learner=None, back=False), None, Unavailable),
}


@pytest.mark.parametrize(("node", "learner", "raised"), RETURNS.values(), ids=RETURNS)
async def test_who_comes_back_must_be_who_it_was(
    node: Returning,
    learner: str | None,
    raised: type[JournalError] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rejoin, "RECONNECTED_WITHIN_SECONDS", 0.001)
    again = reopen(
        cast(RemoteNode, node), TxId(1), TxId(6), LAYOUT_VERSION, pb.RequestInfo, QUICK,
        learner=learner,
    )  # fmt: skip
    if raised is None:
        await again
    else:
        with pytest.raises(raised):
            await again
    assert node.says == []
