"""Claim an epoch: a majority promises it, and holds all its promises at one time."""

from collections.abc import Mapping

from ha.record import dataclass, field
from journal.errors import Fenced, NotAdmitted, Unavailable, ensure
from journal.model import Epoch, NamespaceInfo, NodeName, TxId
from journal.proto import journal_pb2 as pb
from journal.writer.channel import NodeChannel


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a new writer has won.  ``last_txid`` is 0 while the journal holds nothing."""

    epoch: Epoch
    last_txid: TxId


@dataclass(slots=True)
class Claim:
    """One writer's claim.  ``granted`` has the answer of each node that has promised by now."""

    namespace: NamespaceInfo
    epoch: Epoch
    granted: dict[NodeName, pb.NewEpochReply] = field(default_factory=dict)

    async def propose(self, channel: NodeChannel, timeout_seconds: float) -> pb.NewEpochReply:
        """Ask the node to promise the epoch: the first round."""
        remote = channel.remote
        reply = await remote.new_epoch(self.namespace, self.epoch, timeout_seconds)
        self.granted[channel.name] = reply
        return reply

    async def confirm(self, channel: NodeChannel, timeout_seconds: float) -> None:
        """Check that the node still knows its promise when all have promised: the second round.

        A node may promise, be wiped, and be admitted again by the older writer, which then has a
        majority with it.  A late promise of a third node would give us one as well, and we would
        write on without what was acknowledged in between (docs/reference/quorum-journal.md#epochs).
        """
        if channel.name not in self.granted:
            raise Unavailable("it has not promised")
        promised = (await channel.remote.journal_state(timeout_seconds)).last_promised_epoch
        if promised > self.epoch:
            raise Fenced(f"epoch {promised} was promised", promised=Epoch(promised))
        if promised < self.epoch:
            raise NotAdmitted(f"it has forgotten that it promised epoch {self.epoch}")

    def ensure_distinct(self) -> None:
        """Ensure that no promise counts twice, whatever names its node goes by.

        Raises:
            InvariantBroken: two nodes run on one folder, or on a clone of its disk.
        """
        seen: dict[str, NodeName] = {}
        for node in sorted(self.granted):
            incarnation = self.granted[node].incarnation
            other = seen.setdefault(incarnation or node, node)
            ensure(
                other == node,
                f"{other} and {node} are one and the same incarnation {incarnation}: the disk of"
                " one was cloned for the other. Format the clone; it will be a learner.",
            )


def promised_in(states: Mapping[NodeName, pb.GetJournalStateReply]) -> list[Epoch]:
    return [Epoch(state.last_promised_epoch) for state in states.values()]
