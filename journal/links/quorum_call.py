"""One question to all nodes: it ends when the answer is certain, or patience does."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Generic, TypeVar

import structlog

from journal.errors import InvariantBroken, JournalError, QuorumLost, Unavailable
from journal.links import metrics
from journal.model import NodeName
from journal.quorum import Tally, Verdict, majority, majority_of

T = TypeVar("T")

log = structlog.get_logger()

_STEPS: Final = 20


class QuorumCall(Generic[T]):
    """Collects one answer per node; ``outcome`` returns as soon as a quorum has agreed.

    Late answers are counted for nobody.  Its deadline counts only time in which this process could
    have noticed an answer: each step of the countdown costs one step however late it comes, so that
    a process that was stopped for longer than its deadline first reads the answers that lie in its
    sockets (docs/reference/quorum-journal.md#pauses-of-the-writer-itself).
    """

    def __init__(
        self,
        operation: str,
        nodes: Iterable[NodeName],
        *,
        timeout_seconds: float,
    ) -> None:
        self.operation = operation
        self._tally: Tally = majority_of(nodes)
        self._results: dict[NodeName, T] = {}
        self._failures: dict[NodeName, JournalError] = {}
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._timeout_seconds = timeout_seconds
        self._steps_left = _STEPS
        self._timer = self._loop.call_later(timeout_seconds / _STEPS, self._step)

    def succeed(self, node: NodeName, result: T) -> None:
        """That node agreed."""
        if self._done.done():
            return
        self._results[node] = result
        self._tally = self._tally.yes(node)
        if self._tally.verdict is Verdict.WON:
            self._done.set_result(None)

    def fail(self, node: NodeName, error: JournalError) -> None:
        """That node refused, or cannot be reached."""
        metrics.ERRORS.labels(jn=node, code=type(error).__name__).inc()
        if self._done.done():
            return
        self._failures[node] = error
        self._tally = self._tally.no(node)
        if isinstance(error, InvariantBroken):
            # One node that has seen the impossible outweighs a quorum that has not.
            self._done.set_exception(InvariantBroken(f"{self.operation}: {node}: {error}"))
        elif self._tally.verdict is Verdict.LOST:
            self._done.set_exception(self._lost())

    async def outcome(self) -> dict[NodeName, T]:
        """Wait for the verdict; the answers of the nodes that agreed by then.

        Raises:
            QuorumLost: if too few can agree any more, or have agreed in time.
            InvariantBroken: if a node reports one.
        """
        try:
            await self._done
        finally:
            self._timer.cancel()
            self._done.cancel()
        return dict(self._results)

    def _step(self) -> None:
        if self._done.done():
            return
        self._steps_left -= 1
        if self._steps_left > 0:
            self._timer = self._loop.call_later(self._timeout_seconds / _STEPS, self._step)
            if self._steps_left == _STEPS // 2:
                log.warning(
                    "journal.quorum_slow",
                    operation=self.operation,
                    silent=sorted(self._tally.silent),
                    failed={node: str(error) for node, error in self._failures.items()},
                )
            return
        for node in sorted(self._tally.silent):
            self._failures[node] = Unavailable(f"no answer within {self._timeout_seconds:g} s")
        self._done.set_exception(self._lost())

    def _lost(self) -> QuorumLost:
        tally = self._tally
        return quorum_lost(self.operation, len(tally.nodes), tally.succeeded, self._failures)


def quorum_lost(
    operation: str,
    members: int,
    agreed: Collection[NodeName],
    failures: Mapping[NodeName, JournalError],
) -> QuorumLost:
    """The error that says who agreed to an operation, who did not, and why."""
    reasons = "; ".join(f"{node}: {failures[node]}" for node in sorted(failures))
    said_yes = f"agreed: {', '.join(sorted(agreed))}" if agreed else "none agreed"
    return QuorumLost(
        f"{operation} needs {majority(members)} of {members} JournalNodes;"
        f" {said_yes}; failed: {reasons}",
        failures=failures,
    )
