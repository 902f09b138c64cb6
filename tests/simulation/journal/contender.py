"""A NameNode's half of the journal: wins an epoch, writes, pauses, dies, comes back too late."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from journal.errors import GapFound, InvariantBroken, JournalError, QuorumLost, StorageFailed
from journal.links.settings import WriterSettings
from journal.model import TxId
from journal.writer.writer import QuorumWriter
from tests.simulation.engine.clock import VirtualLoop
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Violated
from tests.simulation.journal.hadoop_like import hadoop_like
from tests.simulation.journal.machine import JOURNAL, NAMESPACE, RPC_PORT, Machine
from tests.simulation.journal.oracle import Oracle
from tests.simulation.journal.swarm import USUAL, Pace
from tests.simulation.journal.tags import Tag, transaction

SETTINGS: Final = WriterSettings(
    get_journal_state_timeout_seconds=1.0,
    new_epoch_timeout_seconds=1.0,
    prepare_recovery_timeout_seconds=1.0,
    accept_recovery_timeout_seconds=2.0,
    finalize_segment_timeout_seconds=1.0,
    start_segment_timeout_seconds=1.0,
    write_txns_timeout_seconds=1.0,
    heartbeat_interval_seconds=0.5,
)


_SETTLE_SECONDS: Final = 8.0


@dataclass(frozen=True, slots=True)
class Habits:
    """What a writer does apart from writing: answers reads under its lease, lets go of old edits.

    ``chance`` says where; it is the writer's own.  One that is ``hadoop_like`` admits no node.
    ``window_bytes`` is what it keeps for a slow node; 0: the usual.
    """

    lease_seconds: float
    purging: float
    chance: Random
    hadoop_like: bool = False
    window_bytes: int = 0

    @classmethod
    def none(cls) -> "Habits":
        return cls(0.0, 0.0, Random(0))


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """One segment: the sizes of its batches, how it is written and what comes before it."""

    batches: tuple[int, ...]
    together: bool
    closed: bool
    idle_before: float
    idle_inside: float


@dataclass(frozen=True, slots=True)
class Life:
    """What one writer does from its start to its end."""

    name: str
    begins: float
    segments: tuple[SegmentPlan, ...]
    lingers: float

    @classmethod
    def drawn(
        cls,
        number: int,
        begins: float,
        unclosed: float,
        rng: Random,
        *,
        rolls: int = 1,
        pace: Pace = USUAL,
    ) -> "Life":
        plans = []
        for _ in range(rolls * rng.choice((1, 1, 2, 3))):
            left, batches = rng.randint(pace.least, pace.edits), []
            while left:
                batches.append(min(left, rng.randint(1, pace.batch)))
                left -= batches[-1]
            plans.append(
                SegmentPlan(
                    tuple(batches),
                    together=rng.random() < 0.4,
                    closed=rng.random() >= unclosed,
                    idle_before=rolls * rng.choice((0, 0, 0.05, 0.7)) * rng.random(),
                    idle_inside=rng.choice(pace.idle) * rng.random(),
                )
            )
        return cls(f"w{number}", begins, tuple(plans), rng.choice((0.0, 0.0, 0.3, 3.0)))


_CLEAN: Final = (
    SegmentPlan((1, 2), together=False, closed=True, idle_before=0, idle_inside=0),
    SegmentPlan((1,), together=True, closed=True, idle_before=0, idle_inside=0),
)


class Contender:
    """Lives one life with the product's QuorumWriter, and reports to the oracle what it heard."""

    def __init__(
        self,
        life: Life,
        machines: Mapping[str, Machine],
        loop: VirtualLoop,
        oracle: Oracle,
        trace: Trace,
        habits: Habits | None = None,
    ) -> None:
        self.life = life
        self.habits = habits or Habits.none()
        self.finished = False
        self.last = 0
        self._machines = machines
        self._loop = loop
        self._oracle = oracle
        self._trace = trace
        self._count = 0
        self._shows = 0

    async def live(self) -> None:
        """Play the plan.  Any loss of the quorum ends it, as it ends a NameNode."""
        writer = self.new_writer()
        try:
            await self._rule(writer)
        except (QuorumLost, InvariantBroken) as end:
            self.judge_end(end)
        finally:
            if writer.epoch:
                self._oracle.won(self.life.name, writer.epoch)
            await writer.close()

    async def finish_cleanly(self) -> None:
        """Recover, write two segments and close them: the liveness phase.

        A node that missed the last recovery rejoins after one roll at the latest.

        Raises:
            QuorumLost: this attempt failed; late messages of the storm may still do that.
            Violated: a node that could take part does not.
        """
        writer = self.new_writer()
        try:
            recovered = await writer.become_writer()
            self._oracle.won(self.life.name, recovered.epoch)
            self._oracle.adopted(self.life.name, recovered.epoch, recovered.last_txid)
            first = recovered.last_txid + 1
            for plan in (
                SegmentPlan((1, 2), False, True, 0, 0),
                SegmentPlan((1,), True, True, 0, 0),
            ):
                first = await self.segment(writer, plan, first)
            await writer.settle(timeout_seconds=_SETTLE_SECONDS)
            behind = self._behind(writer)
            if behind:
                # Its syncer was quicker than we, or it learns: one roll, and its admission.
                first, behind = await self._take_along(writer, first)
            self.last = first - 1
            if not behind and any(node.queued_bytes for node in writer.node_statuses()):
                raise Violated("I22", "all nodes are in sync, and edits still wait for one")
        finally:
            await writer.close()
        if behind:
            raise Violated("L3", "; ".join(behind))

    async def _take_along(self, writer: QuorumWriter, first: int) -> tuple[int, list[str]]:
        """Keep one more segment open until every node takes part and has a vote."""
        await writer.start_segment(TxId(first))
        self._oracle.started(self.life.name, first)
        await self.write_some(writer, first, 1)
        until = self._loop.time() + _SETTLE_SECONDS
        while (behind := self._behind(writer)) and self._loop.time() < until:
            await asyncio.sleep(0.25)
        await writer.finalize_segment(TxId(first))
        self._oracle.closed(self.life.name, first, first)
        await writer.settle(timeout_seconds=_SETTLE_SECONDS)
        return first + 1, behind

    def _behind(self, writer: QuorumWriter) -> list[str]:
        return [
            f"{status.node} stayed behind: {status.last_error}"
            for status in writer.node_statuses()
            if not status.in_sync
            and self._machines[status.node.rpartition(":")[0]].promised <= writer.epoch
        ]

    def new_writer(self) -> QuorumWriter:
        writer = QuorumWriter(
            [(name, RPC_PORT) for name in self._machines],
            journal_id=JOURNAL,
            nameservice_id=JOURNAL,
            namespace=NAMESPACE,
            settings=replace(
                SETTINGS,
                read_lease_seconds=self.habits.lease_seconds,
                queued_edits_limit_bytes=self.habits.window_bytes
                or SETTINGS.queued_edits_limit_bytes,
            ),
        )
        writer.read_lease.clock = self._loop.time
        return hadoop_like(writer) if self.habits.hadoop_like else writer

    async def _answer_reads(self, writer: QuorumWriter) -> None:
        """Answer reads when readers like; what they are shown is looked at behind the lease."""
        chance = self.habits.chance
        while True:
            await asyncio.sleep(chance.choice((0.02, 0.1, 0.4)) * chance.random())
            came_after = self._oracle.seen_by_callers
            await asyncio.sleep(chance.choice((0.0, 0.0, 0.05)))
            if await writer.read_lease.wait_until_valid(0.3):
                self._oracle.served(self.life.name, came_after, self._shows)

    async def _rule(self, writer: QuorumWriter) -> None:
        recovered = await writer.become_writer()
        name = self.life.name
        self._oracle.won(name, recovered.epoch)
        self._oracle.adopted(name, recovered.epoch, recovered.last_txid)
        self._trace.add(name, f"rules epoch {recovered.epoch} behind {recovered.last_txid}")
        next_txid = recovered.last_txid + 1
        self._shows = recovered.last_txid
        reads = asyncio.create_task(self._answer_reads(writer))
        if not self.habits.lease_seconds:
            reads.cancel()
        try:
            for plan in self.life.segments:
                await asyncio.sleep(plan.idle_before)
                next_txid = await self.segment(writer, plan, next_txid)
                if not plan.closed:
                    break
                self._let_go(writer, next_txid - 1)
            await asyncio.sleep(self.life.lingers)
        finally:
            reads.cancel()

    def _let_go(self, writer: QuorumWriter, closed: int) -> None:
        if self.habits.chance.random() < self.habits.purging:
            most = self._oracle.may_purge_below(closed)
            minimum = self.habits.chance.randint(1, max(1, most))
            self._oracle.purged_below = max(self._oracle.purged_below, minimum)
            self._trace.add(self.life.name, f"purges below {minimum}")
            writer.purge_logs(TxId(minimum))

    async def segment(self, writer: QuorumWriter, plan: SegmentPlan, first: int) -> int:
        await writer.start_segment(TxId(first))
        self._oracle.started(self.life.name, first)
        txid, writes = first, []
        for number, size in enumerate(plan.batches):
            if number and plan.idle_inside:
                await asyncio.sleep(plan.idle_inside)
            if plan.together:
                writes.append(asyncio.create_task(self.write_some(writer, txid, size)))
                await asyncio.sleep(0)  # the writer takes batches in the order of their tasks
            else:
                await self.write_some(writer, txid, size)
            txid += size
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        if plan.closed:
            await writer.finalize_segment(TxId(txid - 1))
            self._oracle.closed(self.life.name, first, txid - 1)
            self._trace.add(self.life.name, f"closed {first}-{txid - 1}")
        return txid

    async def write_some(self, writer: QuorumWriter, first: int, size: int) -> None:
        tags: list[Tag] = []
        nonce = int(self.life.name[1:])
        for _ in range(size):
            self._count += 1
            tags.append((writer.epoch, nonce, self._count))
        records = b"".join(transaction(first + i, tag) for i, tag in enumerate(tags))
        await writer.write(TxId(first), size, records)
        self._shows = max(self._shows, first + size - 1)
        self._oracle.acked(self.life.name, first, tuple(tags))
        self._trace.add(self.life.name, f"ack {first}-{first + size - 1}")

    def judge_end(self, end: JournalError) -> None:
        """Check that an error has a cause that the run has put there."""
        self._trace.add(self.life.name, f"ends: {end}")
        self._oracle.guarded(lambda: judge(end, self.life.name, self._machines))


def judge(end: JournalError, who: str, machines: Mapping[str, Machine]) -> None:
    """Raise Violated for an error that no injected fault, fence or silence explains."""
    if isinstance(end, InvariantBroken | GapFound):
        raise Violated("I15", f"{who}: {end}")
    failures = end.failures if isinstance(end, QuorumLost) else {}
    for node, failure in failures.items():
        hurt = machines[node.rpartition(":")[0]].disk_was_hurt
        closing = "is being closed" in str(failure)
        if isinstance(failure, InvariantBroken) or "Unexpected" in str(failure):
            raise Violated("I15", f"{who}: {node}: {failure}")
        sent = str(failure).startswith("http:")  # damaged on the way, not on the disk
        if isinstance(failure, StorageFailed) and not hurt and not closing and not sent:
            raise Violated("I15", f"{who}: {node} has an unhurt disk, and says: {failure}")
