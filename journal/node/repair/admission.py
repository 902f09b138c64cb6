"""Gets a learner's vote back by the voters' answers, if its writer (Java's) admits no learners.

See docs/reference/quorum-journal.md#a-vote-without-the-writers-word.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from journal.core import voters
from journal.core.requests import LearnDigest
from journal.core.state import JournalState
from journal.errors import JournalError, NotAdmitted, OutOfSync
from journal.links.peer import Peer
from journal.model import NO_EPOCH, NO_TXID, NodeName, TxId
from journal.node import metrics
from journal.node.owner.owner import JournalOwner

log = structlog.get_logger()

FIRST_EDIT: Final = TxId(1)

AskEach = Callable[[Callable[[Peer], Awaitable[voters.Voter]]], Awaitable[Sequence[voters.Voter]]]
"""Asks all other nodes, and returns the answers of those that did not fail."""


class Admission:
    """Gets the vote of one journal back; each call of ``attempt`` takes the steps that it can.

    1. A writer has begun a segment since this node became a learner: its recovery is complete.
    2. Take the baseline: the highest edit of a majority of voters that have promised that writer.
    3. Wait until no other writer's takeover that counted this node's old promise can still run.
    4. The voters have finalized all edits up to the baseline, and this node has them.
    5. A majority of the voters, asked again, has promised no newer writer.
    """

    def __init__(
        self, owner: JournalOwner, nodes: int, wait_seconds: float, call_seconds: float
    ) -> None:
        self._owner = owner
        self._nodes = nodes
        self._wait_seconds = wait_seconds
        self._call_seconds = call_seconds
        self._incarnation = ""
        self._since = 0.0
        self._mark: voters.VoterBaseline | None = None
        self._told = ""
        self._identities: dict[NodeName, str] = {}

    @property
    def under_way(self) -> bool:
        """Whether the next attempt should be soon: a writer has begun a segment."""
        state = self._owner.state
        return state.learner and state.start_heard != NO_EPOCH

    @property
    def waits_for(self) -> str | None:
        """Why the last attempt did not get the vote; None for a voter."""
        return (self._told or "the first look at the voters") if self._owner.state.learner else None

    async def attempt(self, ask_each: AskEach) -> None:
        """Take the steps that can be taken; log the reason if one cannot, once for each reason."""
        state = self._owner.state
        if not state.learner or state.namespace is None:
            self._incarnation = ""
            return
        if state.incarnation != self._incarnation:
            self._incarnation, self._mark, self._told = state.incarnation, None, ""
            self._since = asyncio.get_running_loop().time()
        try:
            await self._step(state, ask_each)
        except JournalError as failure:
            if str(failure) != self._told:
                self._told = str(failure)
                log.info(
                    "learner.not_admitted_yet", journal=self._owner.journal_id, because=self._told
                )

    async def _step(self, state: JournalState, ask_each: AskEach) -> None:
        epoch = state.start_heard
        if epoch == NO_EPOCH or epoch != state.promised:
            raise NotAdmitted(
                "no writer has begun a segment since this node is a learner: it takes a log roll"
            )
        if self._mark is None or self._mark.epoch != epoch:
            self._mark = voters.set_baseline(await ask_each(self._look), epoch, self._nodes)
            log.info(
                "learner.marked",
                journal=self._owner.journal_id,
                epoch=epoch,
                reached=self._mark.reached,
            )
        if self._claims_may_be_under_way():
            raise OutOfSync(
                f"a writer's claim from the time before may be under way for {self._wait_seconds:g}"
                " s (dfs.qjournal.new-epoch.timeout.ms)"
            )
        request = voters.admission_request(
            self._mark, await ask_each(self._look), state.incarnation, self._nodes
        )
        for wanted in request.required:
            held = self._owner.state.find(wanted.first)
            if wanted.digest and held is not None and not held.digest:
                await self._owner.ask(LearnDigest(wanted.first))
        # Ask for the promises last: a newer writer's promise since the look must be noticed.
        told = await ask_each(self._promise)
        voters.require_majority(((v.identity, v.promised) for v in told), epoch, self._nodes)
        await self._owner.ask(request)
        metrics.ADMITTED.labels(self._owner.journal_id).inc()
        log.info(
            "learner.admitted",
            journal=self._owner.journal_id,
            by=sorted(voter.identity for voter in told),
            epoch=epoch,
            reached=self._mark.reached,
            segments=len(request.required),
        )

    def _claims_may_be_under_way(self) -> bool:
        """Return whether a takeover that counts the promise this node has lost may still run.

        Bad schedule: this node promises a new writer and loses its disk.  It gets its vote back,
        and the older writer commits edits with it.  Then the new writer's NewEpoch reaches a third
        node: it has a majority, and goes on without those edits.  A Java writer does not ask again.
        """
        return asyncio.get_running_loop().time() - self._since < self._wait_seconds

    async def _look(self, peer: Peer) -> voters.Voter:
        held = await peer.held(FIRST_EDIT, self._call_seconds)
        ours, theirs = self._owner.state.namespace, held.namespace
        if ours is not None and theirs is not None:
            same = (ours.namespace_id, ours.cluster_id) == (theirs.namespace_id, theirs.cluster_id)
            if not same:
                raise NotAdmitted(f"{peer.name} keeps the journal of {theirs.cluster_id}")
        self._identities[peer.name] = held.identity
        promised = await peer.promised(self._call_seconds)
        return voters.Voter(held.identity, promised, held.segments, held.last_written, held.purged)

    async def _promise(self, peer: Peer) -> voters.Voter:
        identity = self._identities.get(peer.name)
        if identity is None:
            raise NotAdmitted(f"{peer.name} has not said what it holds")
        return voters.Voter(identity, await peer.promised(self._call_seconds), (), NO_TXID)
