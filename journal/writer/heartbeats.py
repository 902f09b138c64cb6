"""A writer's heartbeats, and the read lease that they renew.

Each node hears from the writer every quarter of the lease, also while there is nothing to write.
A heartbeat takes its turn in the node's channel, so that a node that is slow with a batch has one
heartbeat waiting and not a hundred; the batch renews the lease as well.

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
    """Read a clock that goes on while the machine is suspended; the loop's may not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ReadLease:
    """Whether this writer is certainly the newest, as far as it knows; one per writer.

    ``clock`` is the one that runs the lease.  A loop's own clock is not good enough: it may be
    read once per turn, and a process can be stopped in the middle of one.
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
        """Renew the lease, as these nodes accepted a request of ours sent at ``sent_at``."""
        if self._lease is None:
            return
        self._lease = self._lease.accepted(nodes, sent_at)
        if self.valid():
            self._renewed.set()
            self._renewed = asyncio.Event()

    def refused(self, node: NodeName, why: str) -> None:
        """Note a node that promised a newer epoch; a majority of them ends an idle writer."""
        self._refused[node] = why
        if self._lease is None or len(self._refused) < majority(len(self._lease.nodes)):
            return
        if not self._ended:
            self.end()
            self.on_superseded(f"a newer writer has taken over: {why}")

    def written(self, nodes: Callable[[], Iterable[NodeName]], sent_at: float) -> None:
        """Renew it after a write; of writes that are answered together, one is enough."""
        if sent_at > self._written_at + SAME_MOMENT_SECONDS:
            self._written_at = sent_at
            self.accepted(nodes(), sent_at)

    def older_heard(self, replies: Collection[pb.NewEpochReply]) -> None:
        """Take in what a majority just reported of the writers before us; see ``left_to_wait``.

        They may be configured for longer leases than ours.
        """
        theirs = max((reply.previous_read_lease_micros / 1e6 for reply in replies), default=0.0)
        ago = [reply.previous_writer_heard_micros_ago / 1e6 for reply in replies]
        wait = left_to_wait(max(self.duration_seconds, theirs), ago)
        self._may_write_at = self.clock() + wait

    async def outlast_older(self) -> None:
        """Return once no older writer's lease can run.  Recovery need not wait for it: it makes
        nothing new visible.
        """
        if (wait := self._may_write_at - self.clock()) > 0:
            log.info("journal.outlasting_read_lease", seconds=round(wait, 3))
        # The clocks differ, and uvloop's timers ring up to two milliseconds early.
        while (wait := self._may_write_at - self.clock()) > 0:  # noqa: ASYNC110 - no event ends it
            await asyncio.sleep(wait)

    def end(self) -> None:
        """End the lease with its writer: it is never valid again, and what waits for it ends."""
        self._ended = True
        self._renewed.set()

    def valid(self) -> bool:
        """Return whether no other writer can have acknowledged a write until now."""
        if self._lease is None:
            return True
        return not self._ended and self._lease.covers(self.clock())

    def remaining_seconds(self) -> float:
        """Return for how long it is valid if it is not renewed; infinite without leases."""
        if self._lease is None:
            return math.inf
        ends = self._lease.valid_until
        return 0.0 if self._ended or ends is None else max(0.0, ends - self.clock())

    async def wait_until_valid(self, timeout_seconds: float) -> bool:
        """Wait for a renewal if need be; False when none comes in time, or can come at all."""
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
    """Sends them while a writer writes; one task for each node."""

    def __init__(
        self, channels: Sequence[NodeChannel], settings: WriterSettings, lease: ReadLease
    ) -> None:
        self._channels = channels
        self._settings = settings
        self._lease = lease
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin, unless begun or without a lease; an idle node then hears nothing, as in Hadoop."""
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
        # A node that is left out, or learns, may have lost its promise with its disk.
        status = channel.status()
        if status.in_sync and not status.learner:
            self._lease.accepted([channel.name], sent_at)
