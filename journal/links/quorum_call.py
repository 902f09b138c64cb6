"""One question to all nodes: it ends when the answer is certain, or patience does."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

import structlog

from journal.errors import InvariantBroken, JournalError, QuorumLost, Unavailable
from journal.links import metrics
from journal.links.countdown import STEPS, Countdown
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import NodeName
from journal.quorum import CallOutcome, Tally, majority, majority_of

T = TypeVar("T")

log = structlog.get_logger()


class QuorumCall(Generic[T]):
    """Collects one answer per node; ``outcome`` returns as soon as a quorum has agreed.

    Late answers are not counted.
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
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._countdown = Countdown(timeout_seconds, self._stepped)
        self._countdown.start()

    @property
    def decided(self) -> bool:
        """Whether no answer changes the verdict any more."""
        return self._done.done()

    def succeed(self, node: NodeName, result: T) -> None:
        """Count that node's yes, with its result."""
        if self._done.done():
            return
        self._results[node] = result
        self._tally = self._tally.yes(node)
        if self._tally.verdict is CallOutcome.WON:
            self._done.set_result(None)

    def fail(self, node: NodeName, error: JournalError) -> None:
        """Count that node as one that refused, or cannot be reached."""
        metrics.ERRORS.labels(jn=node, code=type(error).__name__).inc()
        if self._done.done():
            return
        self._failures[node] = error
        self._tally = self._tally.no(node)
        if isinstance(error, InvariantBroken):
            # One node that has seen the impossible outweighs a quorum that has not.
            self._done.set_exception(InvariantBroken(f"{self.operation}: {node}: {error}"))
        elif self._tally.verdict is CallOutcome.LOST:
            self._done.set_exception(self._loss())

    async def outcome(self) -> dict[NodeName, T]:
        """Wait for the verdict; the answers of the nodes that agreed by then.

        Raises:
            QuorumLost: if too few can agree any more, or have agreed in time.
            InvariantBroken: if a node reports one.
        """
        try:
            await self._done
        finally:
            self._countdown.stop()
        return dict(self._results)

    def _stepped(self) -> bool:
        if self._done.done():
            return False
        if self._countdown.step < STEPS:
            if self._countdown.step == STEPS // 2:
                log.warning(
                    "journal.quorum_slow",
                    operation=self.operation,
                    silent=sorted(self._tally.silent),
                    failed={node: str(error) for node, error in self._failures.items()},
                )
            return True
        for node in sorted(self._tally.silent):
            self._failures[node] = Unavailable(f"no answer within {self._countdown.seconds:g} s")
        self._done.set_exception(self._loss())
        return False

    def _loss(self) -> QuorumLost:
        tally = self._tally
        return quorum_lost(self.operation, len(tally.nodes), tally.succeeded, self._failures)


def quorum_lost(
    operation: str,
    members: int,
    agreed: Collection[NodeName],
    failures: Mapping[NodeName, JournalError],
) -> QuorumLost:
    """Build the error that says which nodes agreed to an operation, which did not, and why."""
    said_yes = f"agreed: {', '.join(sorted(agreed))}" if agreed else "none agreed"
    return QuorumLost(
        f"{operation} needs {majority(members)} of {members} JournalNodes;"
        f" {said_yes}; failed: {reasons(failures)}",
        failures=failures,
    )


class Named(Protocol):
    """A JournalNode, or a channel to one."""

    @property
    def name(self) -> NodeName:
        """The name in the configuration."""


N = TypeVar("N", bound=Named)


async def ask_each(
    nodes: Iterable[N], question: Callable[[N], Awaitable[T]]
) -> dict[NodeName, T | JournalError]:
    """Ask all nodes at once and wait for all; every answer, or the reason why there is none."""

    async def one(node: N) -> tuple[NodeName, T | JournalError]:
        try:
            return node.name, await question(node)
        except JournalError as error:
            return node.name, error

    return dict(await asyncio.gather(*(one(node) for node in nodes)))


async def ask_once(
    nodes: Iterable[tuple[str, int]],
    journal: JournalAddress,
    question: Callable[[RemoteNode], Awaitable[T]],
) -> dict[NodeName, T | JournalError]:
    """Ask each node one question, over connections that are closed as soon as it is answered."""

    async def one(remote: RemoteNode) -> T:
        try:
            return await question(remote)
        finally:
            await remote.close()

    return await ask_each([RemoteNode(host, port, journal) for host, port in nodes], one)


def good(answers: Mapping[NodeName, T | JournalError]) -> dict[NodeName, T]:
    """Return the answers of the nodes that answered."""
    return {node: a for node, a in answers.items() if not isinstance(a, JournalError)}


def failed(answers: Mapping[NodeName, T | JournalError]) -> dict[NodeName, JournalError]:
    """Return the errors of the nodes that did not answer."""
    return {node: a for node, a in answers.items() if isinstance(a, JournalError)}


def reasons(failures: Mapping[NodeName, Exception]) -> str:
    """Return each failed node's reason, in one line."""
    return "; ".join(f"{node}: {failures[node]}" for node in sorted(failures))
