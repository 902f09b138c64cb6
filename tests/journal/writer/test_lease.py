"""The read lease between real writers and nodes: what renews it, and what waits for it."""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from journal.errors import Fenced, JournalError, QuorumLost, Unavailable
from journal.lease import DRIFT_MARGIN
from journal.links.quorum_call import QuorumCall
from journal.links.settings import WriterSettings
from journal.model import Epoch, NodeName, TxId
from journal.proto import journal_pb2 as pb
from journal.writer.channel import NodeChannel
from journal.writer.channel_status import ChannelStatus
from journal.writer.heartbeats import SAME_MOMENT_SECONDS, Heartbeats, ReadLease
from tests.journal.node.process import until
from tests.journal.writer.journal_cluster import QUICK, Nodes, edits

LEASE = 1.0  # short, but long enough for a busy machine
FIELDS = {name: getattr(QUICK, name) for name in QUICK.__slots__}
LEASED = WriterSettings(**{**FIELDS, "read_lease_seconds": LEASE})
LONG = 6.0  # where no wait at all must be distinguished from one on a busy machine
LONG_LEASED = WriterSettings(**{**FIELDS, "read_lease_seconds": LONG})
ENDLESS = WriterSettings(**{**FIELDS, "read_lease_seconds": 60.0})
NODES = [NodeName(f"jn{i}:1") for i in range(3)]


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_an_idle_writer_keeps_its_lease_and_tells_what_is_committed(nodes: Nodes) -> None:
    writer = nodes.writer(LEASED)
    await writer.become_writer()
    assert not writer.read_lease.valid()
    await writer.start_segment(TxId(1))
    await writer.write(TxId(1), 3, edits(1, 3))
    assert writer.read_lease.valid()
    until = now() + 3 * LEASE
    while now() < until:
        assert await writer.read_lease.wait_until_valid(LEASE)
        await asyncio.sleep(LEASE / 8)
    for daemon in nodes.daemons:
        assert daemon is not None
        owner = daemon.node.find("test-journal")
        assert owner is not None
        assert owner.state.committed == 3
    await writer.close()
    assert not writer.read_lease.valid()


async def test_without_a_majority_the_lease_runs_out(nodes: Nodes) -> None:
    writer = nodes.writer(LEASED)
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await writer.write(TxId(1), 1, edits(1, 1))
    await nodes.stop(0)
    await asyncio.sleep(2 * LEASE)
    assert await writer.read_lease.wait_until_valid(LEASE)
    await nodes.stop(1)
    await asyncio.sleep(1.1 * LEASE)
    assert not writer.read_lease.valid()
    assert not await writer.read_lease.wait_until_valid(LEASE / 4)
    await writer.close()


async def test_a_new_writer_lets_the_old_lease_run_out_first(nodes: Nodes) -> None:
    old = nodes.writer(LONG_LEASED)
    await old.become_writer()
    await old.start_segment(TxId(1))
    leased = now()  # not before this; heartbeats may have renewed it since
    await old.write(TxId(1), 3, edits(1, 3))
    new = nodes.writer(LONG_LEASED)
    await new.become_writer()
    assert now() - leased < LONG, "recovery does not wait"
    await new.start_segment(TxId(4))
    assert now() - leased >= LONG
    assert not old.read_lease.valid()
    with pytest.raises(QuorumLost, match=r"writing transactions 4-4 .*epoch"):
        await old.write(TxId(4), 1, edits(4, 4))
    await old.close()
    await new.close()


async def test_a_new_writer_waits_only_what_is_left(nodes: Nodes) -> None:
    old = nodes.writer(LONG_LEASED)
    await old.become_writer()
    await old.start_segment(TxId(1))
    await old.write(TxId(1), 3, edits(1, 3))
    await old.close()
    await asyncio.sleep(LONG * (1 + DRIFT_MARGIN))
    new = nodes.writer(LONG_LEASED)
    await new.become_writer()
    began = now()
    await new.start_segment(TxId(4))
    assert now() - began < LONG
    await new.close()


@pytest.mark.parametrize("ours", [0.0, LEASE / 10])
async def test_a_new_writer_respects_a_longer_lease_than_its_own(nodes: Nodes, ours: float) -> None:
    """Two NameNodes are configured differently; the nodes have been restarted since."""
    old = nodes.writer(WriterSettings(**{**FIELDS, "read_lease_seconds": 3 * LEASE}))
    await old.become_writer()
    await old.start_segment(TxId(1))
    await old.write(TxId(1), 3, edits(1, 3))
    heard = now()
    await old.close()
    await nodes.stop()
    await nodes.start()
    new = nodes.writer(WriterSettings(**{**FIELDS, "read_lease_seconds": ours}))
    await new.become_writer()
    await new.start_segment(TxId(4))
    assert now() - heard > 3 * LEASE
    await new.close()
    # From here on only the shorter one can be held.
    last = nodes.writer(WriterSettings(**{**FIELDS, "read_lease_seconds": ours}))
    await last.become_writer()
    began = now()
    await last.start_segment(TxId(4))
    assert now() - began < 3 * LEASE
    await last.close()


async def test_what_was_known_before_the_epoch_was_won_is_not_enough(nodes: Nodes) -> None:
    """Try the bad schedule: it was known, the process stopped, another writer came and went."""
    old = nodes.writer(LEASED)
    await old.become_writer()
    await old.start_segment(TxId(1))
    await old.write(TxId(1), 3, edits(1, 3))
    heard = now()
    await old.close()
    new = nodes.writer(LEASED)
    await new.become_writer(predecessor_gone_until=now())
    await new.start_segment(TxId(4))
    assert now() - heard > LEASE
    await new.close()


async def test_a_new_writer_does_not_wait_for_one_that_is_known_to_be_gone(nodes: Nodes) -> None:
    old = nodes.writer(ENDLESS)
    await old.become_writer(predecessor_gone_until=math.inf)
    await old.start_segment(TxId(1))
    await old.write(TxId(1), 3, edits(1, 3))
    await old.close()
    new = nodes.writer(ENDLESS)
    await new.become_writer(predecessor_gone_until=math.inf)
    await asyncio.wait_for(new.start_segment(TxId(4)), 30)
    await new.close()


async def test_a_node_that_restarts_may_have_heard_a_writer_until_then(nodes: Nodes) -> None:
    writer = nodes.writer(LEASED)
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await writer.close()
    await nodes.stop(0)
    await asyncio.sleep(0.05)
    restarted = now()
    await nodes.start(0)
    daemon = nodes.daemons[0]
    assert daemon is not None
    owner = daemon.node.find("test-journal")
    assert owner is not None
    assert 0 <= owner.writer_heard_seconds_ago() <= now() - restarted


async def test_a_reply_that_lay_in_a_socket_proves_nothing_new() -> None:
    """Count the lease from when a request was sent (mutant: from when it was answered)."""
    clock = [100.0]
    lease = ReadLease(NODES, 1.0, lambda: clock[0])
    sent_at = lease.clock()
    clock[0] = 105.0  # stopped, and continued
    lease.accepted(NODES, sent_at)
    assert not lease.valid()
    lease.accepted(NODES, lease.clock())
    assert lease.valid()
    clock[0] = 106.0
    assert not lease.valid()


async def test_without_leases_a_writer_waits_for_nothing_and_ends_by_its_writes_alone() -> None:
    lease, told = ReadLease(NODES, 0.0), list[str]()
    lease.on_superseded = told.append
    for node in NODES:
        lease.refused(node, "a newer one")
        lease.accepted([node], 0.0)
    lease.older_heard([pb.NewEpochReply()])
    await lease.outlast_older()
    assert (lease.valid(), lease.remaining_seconds(), told) == (True, math.inf, [])
    assert await lease.wait_until_valid(0.0)


async def test_what_is_left_of_a_lease() -> None:
    clock = _Clock()
    lease = ReadLease(NODES, 8.0, clock)
    left = [lease.remaining_seconds()]
    for node, passed in zip(NODES, (0.0, 2.0, 1.0), strict=True):
        lease.accepted([node], clock())
        clock.now += passed
        left.append(lease.remaining_seconds())
    clock.now += 20.0
    left.append(lease.remaining_seconds())
    lease.accepted(NODES, clock())
    assert left == [0.0, 0.0, 6.0, 5.0, 0.0], "from when the second newest of three was sent"
    lease.end()
    assert (lease.valid(), lease.remaining_seconds()) == (False, 0.0)
    lease.accepted(NODES, clock())
    assert not lease.valid(), "for ever"


async def test_writes_that_are_answered_together_renew_it_once() -> None:
    lease, asked = ReadLease(NODES, 8.0, _Clock()), list[float]()

    def nodes_at(sent_at: float) -> Callable[[], Sequence[NodeName]]:
        def nodes() -> Sequence[NodeName]:
            asked.append(sent_at)
            return NODES

        return nodes

    for sent_at in (100.0, 100.0 + SAME_MOMENT_SECONDS / 2, 90.0, 101.0):
        lease.written(nodes_at(sent_at), sent_at)
    assert asked == [100.0, 101.0]
    assert lease.remaining_seconds() == 9.0


@pytest.mark.parametrize(
    ("ours", "replies", "waits"),
    [
        (0.2, [(0.0, 0.0), (0.0, 0.1)], 0.21),
        (0.1, [(0.2, 0.15), (0.3, 0.25)], 0.165),
        (0.0, [(0.0, 0.0)], 0.0),
        (0.2, [(0.2, 9.0)], 0.0),
    ],
    ids=["ours from the last word", "theirs is longer", "no leases", "long silent"],
)
async def test_a_new_writer_waits_for_the_longest_lease_from_the_newest_word(
    ours: float, replies: list[tuple[float, float]], waits: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock()
    lease = ReadLease(NODES, ours, clock)
    lease.older_heard([heard(theirs, ago) for theirs, ago in replies])

    async def passes(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(asyncio, "sleep", passes)
    await lease.outlast_older()
    assert clock.now - 100.0 == pytest.approx(waits)


async def test_who_waits_for_an_older_lease_waits_to_its_end() -> None:
    lease = ReadLease(NODES, 0.02, now)
    began = now()
    lease.older_heard([heard(0.0, 0.0)])
    await lease.outlast_older()
    assert now() - began >= 0.02


@pytest.mark.parametrize(
    ("errors", "superseded"),
    [
        ([Fenced("newer", promised=Epoch(9))] * 2, True),
        ([Fenced("newer", promised=Epoch(9))], False),
        ([Fenced("newer", promised=Epoch(9)), Unavailable("away")], False),
    ],
    ids=["two", "one", "one, and a silent one"],
)
async def test_an_idle_writer_is_superseded_by_a_majority_that_has_promised_a_newer_one(
    errors: list[JournalError], superseded: bool
) -> None:
    nodes, told = [_LateNode(name) for name in NODES], list[str]()
    lease = ReadLease(NODES, 30.0, _Clock())
    lease.on_superseded = told.append
    settings = WriterSettings(read_lease_seconds=30.0)
    beats = Heartbeats(cast(Sequence[NodeChannel], nodes), settings, lease)
    beats.start()
    await until(lambda: all(node.asked for node in nodes), "the first heartbeats")
    lease.accepted(NODES, lease.clock())
    for node, error in zip(nodes, errors, strict=False):
        node.asked[0].fail(node.name, error)
    for _ in range(20):  # turns: each heartbeat goes on with its answer
        await asyncio.sleep(0)
    assert lease.valid() is not superseded
    lease.refused(NODES[0], "once more")
    assert told == (["a newer writer has taken over: newer"] if superseded else [])
    await beats.stop()


async def test_whoever_waits_hears_of_the_end() -> None:
    lease = ReadLease(NODES, 60.0)
    waiting = asyncio.create_task(lease.wait_until_valid(60.0))
    await asyncio.sleep(0)
    lease.end()
    assert not await waiting
    assert not await lease.wait_until_valid(60.0)


def heard(lease_seconds: float, seconds_ago: float) -> pb.NewEpochReply:
    return pb.NewEpochReply(
        previous_read_lease_micros=round(lease_seconds * 1e6),
        previous_writer_heard_micros_ago=round(seconds_ago * 1e6),
    )


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class _LateNode:
    """A channel whose node answers when the test lets it."""

    def __init__(self, name: NodeName, *, in_sync: bool = True, learner: bool = False) -> None:
        self.name = name
        self.asked: list[QuorumCall[None]] = []
        self._status = ChannelStatus(name, in_sync, TxId(1), 0, None, learner=learner)

    async def heartbeat(self) -> None:
        return

    def ask(self, call: QuorumCall[None], _perform: object) -> None:
        self.asked.append(call)

    def status(self) -> ChannelStatus:
        return self._status


async def test_a_heartbeat_renews_from_when_it_was_sent() -> None:
    clock = _Clock()
    nodes = [_LateNode(name) for name in NODES]
    lease = ReadLease(NODES, 30.0, clock)
    settings = WriterSettings(read_lease_seconds=30.0)
    beats = Heartbeats(cast(Sequence[NodeChannel], nodes), settings, lease)
    beats.start()
    async with asyncio.timeout(30):
        while not all(node.asked for node in nodes):
            await asyncio.sleep(0)
    clock.now += 29.0  # stopped, with the answers in its sockets
    for node in nodes:
        node.asked[0].succeed(node.name, None)
    async with asyncio.timeout(30):
        while not lease.valid():
            await asyncio.sleep(0)
    clock.now += 1.0
    assert not lease.valid()
    await beats.stop()


@pytest.mark.parametrize(
    ("in_sync", "learner", "counts"),
    [(True, False, True), (False, False, False), (True, True, False), (False, True, False)],
)
async def test_only_a_node_in_sync_that_votes_renews(
    in_sync: bool, learner: bool, counts: bool
) -> None:
    """Leave out a node that is lost, or learns: its promise may be gone with its disk."""
    first, *others = NODES
    nodes = [_LateNode(first), *(_LateNode(n, in_sync=in_sync, learner=learner) for n in others)]
    lease = ReadLease(NODES, 30.0, _Clock())
    settings = WriterSettings(read_lease_seconds=30.0)
    beats = Heartbeats(cast(Sequence[NodeChannel], nodes), settings, lease)
    beats.start()
    async with asyncio.timeout(30):
        while not all(node.asked for node in nodes):
            await asyncio.sleep(0)
    for node in nodes:
        node.asked[0].succeed(node.name, None)
    for _ in range(20):  # turns: each heartbeat goes on with its answer
        await asyncio.sleep(0)
    assert lease.valid() is counts
    await beats.stop()


async def test_a_batch_renews_from_when_it_was_sent(nodes: Nodes) -> None:
    writer = nodes.writer(WriterSettings(**{**FIELDS, "read_lease_seconds": 60.0}))
    await writer.become_writer(predecessor_gone_until=math.inf)
    clock = _Clock()
    writer.read_lease.clock = clock
    await writer.start_segment(TxId(1))
    writing = asyncio.create_task(writer.write(TxId(1), 1, edits(1, 1)))
    await asyncio.sleep(0)
    clock.now += 59.0
    await writing
    assert writer.read_lease.valid()
    clock.now += 1.0
    assert not writer.read_lease.valid()
    await writer.close()
