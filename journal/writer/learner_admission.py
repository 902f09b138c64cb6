"""Gives a learner its vote back when it holds all edits of the voters.

A node that was wiped, formatted again or restored gets new edits like one that lags behind, and
fetches closed segments from its peers.  Before it is admitted, its acknowledgements do not count,
because a newer writer may rely on a promise that it has lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from journal.errors import Fenced, JournalError, OutOfSync, QuorumLost, Unavailable
from journal.links.quorum_call import QuorumCall, ask_each, failed, good
from journal.links.settings import WriterSettings
from journal.messages import segment_of
from journal.model import NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb
from journal.quorum import majority
from journal.writer.channel import NodeChannel
from journal.writer.window import Window

log = structlog.get_logger()

T = TypeVar("T")


class LearnerAdmission:
    """Runs a task for each learner of a writer until it is admitted."""

    def __init__(self, window: Window, settings: WriterSettings) -> None:
        self.channels: Sequence[NodeChannel] = ()
        self._window = window
        self._settings = settings
        self._tasks: set[asyncio.Task[None]] = set()
        self._learners: set[tuple[NodeName, str | None]] = set()

    def take_on(self, learner: NodeChannel) -> None:
        """Start to admit a learner that takes part; it may be called again for the same one."""
        pupil = (learner.name, learner.learner)
        if pupil in self._learners:
            return
        self._learners.add(pupil)
        task = asyncio.create_task(self._teach(learner), name=f"admission of {learner.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._learners.discard(pupil))

    async def stop(self) -> None:
        """Stop admitting learners."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _teach(self, learner: NodeChannel) -> None:
        incarnation, told = learner.learner, ""
        while incarnation is not None and learner.learner == incarnation:
            if learner.has_caught_up:
                try:
                    await self._admit(learner, incarnation)
                except JournalError as failure:
                    if str(failure) != told:
                        told = str(failure)
                        log.info("journal.not_admitted_yet", node=learner.name, because=told)
            await asyncio.sleep(self._settings.heartbeat_interval_seconds)

    async def _admit(self, learner: NodeChannel, incarnation: str) -> None:
        """Try once to admit the learner.

        Raises:
            JournalError: it lacks edits, or a majority of the others cannot confirm them.
        """
        others = [channel for channel in self.channels if channel is not learner]
        timeout = self._settings.operations_timeout_seconds
        committed = self._window.committed
        manifests = await self._from_majority(
            others, lambda channel: channel.remote.peer_manifest(TxId(1), timeout)
        )
        required, purged = all_segments(manifests), purge_point(manifests)
        # After the reads: a voter that has promised a newer epoch until now reports it here.
        await self._from_majority(others, self._still_ours)
        call: QuorumCall[None] = QuorumCall("admitting", [learner.name], timeout_seconds=timeout)

        async def ask() -> None:
            if learner.learner != incarnation or not learner.takes_part:
                raise OutOfSync("it is lost again")
            info = learner.headers.info()
            await learner.remote.admit(
                info, incarnation, required, committed, timeout, purged=purged
            )
            learner.admitted()

        learner.ask(call, ask)
        try:
            await call.outcome()
        except QuorumLost as lost:
            raise lost.failures[learner.name] from None

    async def _still_ours(self, channel: NodeChannel) -> None:
        state = await channel.remote.journal_state(self._settings.operations_timeout_seconds)
        promised = state.last_promised_epoch
        if promised != channel.headers.epoch:
            raise Fenced(f"{channel.name} has promised {promised}", promised=channel.headers.epoch)

    async def _from_majority(
        self, others: Sequence[NodeChannel], request: Callable[[NodeChannel], Awaitable[T]]
    ) -> list[T]:
        """Return the answers of a majority of all nodes; learners refuse these calls."""
        answers = await ask_each(others, request)
        told = good(answers)
        needed = majority(len(self.channels))
        if len(told) < needed:
            why = "; ".join(map(str, failed(answers).values()))
            raise Unavailable(f"{needed} voters must confirm: {why}")
        return list(told.values())


def all_segments(manifests: Sequence[pb.GetEditLogManifestReply]) -> list[Segment]:
    """Return every segment that is finalized on some voter, in order.

    Raises:
        OutOfSync: two of them differ, or one has no digest of its segment.
    """
    found: dict[TxId, Segment] = {}
    for manifest in manifests:
        for message in manifest.segments:
            told = segment_of(message)
            if not told.finalized:
                continue
            known = found.setdefault(told.first, told)
            if not told.digest or (known.last, known.digest) != (told.last, told.digest):
                raise OutOfSync(f"the voters do not agree about {told.name()}")
    return [found[first] for first in sorted(found)]


def purge_point(manifests: Sequence[pb.GetEditLogManifestReply]) -> TxId | None:
    """Return the highest purge point; the voters' segments before it may have holes."""
    told = [one.purged_txid for one in manifests if one.HasField("purged_txid")]
    return TxId(max(told)) if told else None
