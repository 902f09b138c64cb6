"""A majority call as arithmetic: which nodes said yes, which said no, and is it decided?"""

from collections.abc import Iterable, Sequence
from enum import Enum

from ha.record import dataclass
from journal.errors import ensure
from journal.model import MAX_EPOCH_LEAP, Epoch, NodeName


class CallOutcome(Enum):
    """What is certain about a call."""

    PENDING = "pending"
    WON = "won"
    LOST = "lost"


def majority(members: int) -> int:
    """Return the smallest number of members of which any two such groups share one.

    Raises:
        InvariantBroken: if there are no members.
    """
    ensure(members > 0, "a journal has at least one node")
    return members // 2 + 1


@dataclass(frozen=True, slots=True)
class Tally:
    """The answers to one call so far.

    It is lost as soon as success has become impossible.  Hadoop waits for one failure more, so that
    two dead nodes of three cost its writer a full timeout.
    """

    nodes: frozenset[NodeName]
    needed: int
    succeeded: frozenset[NodeName] = frozenset()
    failed: frozenset[NodeName] = frozenset()

    def yes(self, node: NodeName) -> "Tally":
        """Return the tally after that node agreed."""
        self._check(node)
        return Tally(self.nodes, self.needed, self.succeeded | {node}, self.failed)

    def no(self, node: NodeName) -> "Tally":
        """Return the tally after that node refused, or stayed silent too long."""
        self._check(node)
        return Tally(self.nodes, self.needed, self.succeeded, self.failed | {node})

    @property
    def verdict(self) -> CallOutcome:
        """Won, lost, or not certain yet."""
        if len(self.succeeded) >= self.needed:
            return CallOutcome.WON
        if len(self.nodes) - len(self.failed) < self.needed:
            return CallOutcome.LOST
        return CallOutcome.PENDING

    @property
    def silent(self) -> frozenset[NodeName]:
        """The nodes that have not answered."""
        return self.nodes - self.succeeded - self.failed

    def _check(self, node: NodeName) -> None:
        asked = node in self.nodes
        ensure(asked and node not in self.succeeded | self.failed, f"{node} answers once")


def majority_of(nodes: Iterable[NodeName]) -> Tally:
    """Return an empty tally that a majority of these nodes wins."""
    members = frozenset(nodes)
    return Tally(members, majority(len(members)))


def next_epoch(promises: Sequence[Epoch], nodes: int) -> Epoch | None:
    """Return the epoch to claim: above the promises of a majority that can grant it, or None.

    A node refuses an epoch that is far above its promise.  One node that was made to promise an
    absurd number must not keep the others from granting the next one; it refuses, alone.  Half of
    what a node takes is used, so that one that has missed a few claims is not left behind.
    """
    told, needed = sorted(promises), majority(nodes)
    for highest in range(len(told) - 1, needed - 2, -1):
        claimed = told[highest] + 1
        if claimed - told[highest - needed + 1] <= MAX_EPOCH_LEAP // 2:
            return Epoch(claimed)
    return None
