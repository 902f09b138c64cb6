"""Sends a writer's heartbeats, and keeps the read lease that they renew.

Each node gets a heartbeat every quarter of the lease, even without edits.  A heartbeat is queued in
the node's channel, so that at most one waits while the node is slow with a batch; a batch renews
the lease, too.

See docs/reference/quorum-journal.md#read-lease.
"""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import structlog

from journal.errors import QuorumLost
from journal.lease import Lease, left_to_wait
from journal.links import metrics
from journal.links.quorum_call import QuorumCall
from journal.links.settings import WriterSettings
from journal.model import NodeName
from journal.proto import journal_pb2 as pb
from journal.quorum import majority
from journal.writer.channel import NodeChannel

log = structlog.get_logger()

BEATS_PER_LEASE: Final = 4
SAME_MOMENT_SECONDS: Final = 0.005


def seconds_since_boot() -> float:
    """Return the time of a clock that also runs while the machine is suspended, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ReadLease:
    """Decides whether no newer writer can have written, so that reads may be served.

    ``clock`` measures the lease.  The event loop's clock must not: it may be read once in a turn,
    and the process may be stopped during that turn.
    """

    def __init__(
        self,
        nodes: Iterable[NodeName],
        duration_seconds: float,
        clock: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self.duration_seconds = duration_seconds
        self.clock = clock
        self._lease = Lease(duration_seconds, frozenset(nodes)) if duration_seconds else None
        self.on_superseded: Callable[[str], None] = lambda _why: None
        self._may_write_at = self._written_at = 0.0
        self._refused: dict[NodeName, str] = {}
        self._ended = False
        self._renewed = asyncio.Event()

    def accepted(self, nodes: Iterable[NodeName], sent_at: float) -> None:
        """Renew the lease: these nodes accepted a request that was sent at ``sent_at``."""
        if self._lease is None:
            return
        self._lease = self._lease.accepted(nodes, sent_at)
        if self.valid():
            self._renewed.set()
            self._renewed = asyncio.Event()

    def refused(self, node: NodeName, why: str) -> None:
        """Record that a node promised a newer epoch; a majority of them ends an idle writer."""
        self._refused[node] = why
        if self._lease is None or len(self._refused) < majority(len(self._lease.nodes)):
            return
        if not self._ended:
            self.end()
            self.on_superseded(f"a newer writer has taken over: {why}")

    def written(self, nodes: Callable[[], Iterable[NodeName]], sent_at: float) -> None:
        """Renew the lease after a write; call it once for writes that are answered together."""
        if sent_at > self._written_at + SAME_MOMENT_SECONDS:
            self._written_at = sent_at
            self.accepted(nodes(), sent_at)

    def older_heard(self, replies: Collection[pb.NewEpochReply]) -> None:
        """Record the read leases of older writers that a majority reported; see ``left_to_wait``.

        They may be longer than ours.
        """
        theirs = max((reply.previous_read_lease_micros / 1e6 for reply in replies), default=0.0)
        ago = [reply.previous_writer_heard_micros_ago / 1e6 for reply in replies]
        wait = left_to_wait(max(self.duration_seconds, theirs), ago)
        self._may_write_at = self.clock() + wait

    async def outlast_older(self) -> None:
        """Wait until no older writer's lease can be valid.

        Recovery need not wait for that, as it makes no new edits visible.
        """
        if (wait := self._may_write_at - self.clock()) > 0:
            log.info("journal.outlasting_read_lease", seconds=round(wait, 3))
        # The two clocks differ, and uvloop's timers fire up to 2 ms early.
        while (wait := self._may_write_at - self.clock()) > 0:  # noqa: ASYNC110 - no event ends it
            await asyncio.sleep(wait)

    def end(self) -> None:
        """End the lease for good, and with it all waits for it."""
        self._ended = True
        self._renewed.set()

    def valid(self) -> bool:
        """Return whether no other writer can have had a write acknowledged until now."""
        if self._lease is None:
            return True
        return not self._ended and self._lease.covers(self.clock())

    def remaining_seconds(self) -> float:
        """Return how long the lease is valid without a renewal; infinite if leases are off."""
        if self._lease is None:
            return math.inf
        ends = self._lease.valid_until
        return 0.0 if self._ended or ends is None else max(0.0, ends - self.clock())

    async def wait_until_valid(self, timeout_seconds: float) -> bool:
        """Wait until the lease is valid; return False if it is not within the time or for good."""
        if self.valid():
            return True
        metrics.LEASE_WAITS.inc()
        try:
            async with asyncio.timeout(timeout_seconds):
                while not self.valid():
                    if self._ended:
                        return False
                    await self._renewed.wait()
        except TimeoutError:
            return False
        return True


class Heartbeats:
    """Sends heartbeats while a writer has a segment open; one task for each node."""

    def __init__(
        self, channels: Sequence[NodeChannel], settings: WriterSettings, lease: ReadLease
    ) -> None:
        self._channels = channels
        self._settings = settings
        self._lease = lease
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the tasks once; without a lease there are no heartbeats, as in Hadoop."""
        if not self._tasks and self._lease.duration_seconds:
            self._tasks = [
                asyncio.create_task(self._beat(channel), name=f"heartbeats {channel.name}")
                for channel in self._channels
            ]
            metrics.LEASE_VALID.set_function(self._lease.valid)
            metrics.LEASE_REMAINING.set_function(self._lease.remaining_seconds)

    async def stop(self) -> None:
        self._lease.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _beat(self, channel: NodeChannel) -> None:
        interval = self._settings.read_lease_seconds / BEATS_PER_LEASE
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self._one(channel)
            await asyncio.sleep(max(0.0, began + interval - loop.time()))

    async def _one(self, channel: NodeChannel) -> None:
        call: QuorumCall[None] = QuorumCall(
            "heartbeat", [channel.name], timeout_seconds=self._settings.write_txns_timeout_seconds
        )
        sent_at = self._lease.clock()
        channel.ask(call, channel.heartbeat)
        try:
            await call.outcome()
        except QuorumLost as lost:  # the channel has noted why
            if lost.fenced_by is not None:
                self._lease.refused(channel.name, str(lost.failures[channel.name]))
            return
        # A node that does not take part, or is a learner, may have lost its promise.
        status = channel.status()
        if status.in_sync and not status.learner:
            self._lease.accepted([channel.name], sent_at)
