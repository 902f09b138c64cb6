"""Claims an epoch in two rounds: a majority promises it, and then confirms its promises."""

from collections.abc import Mapping

from ha.record import dataclass, field
from journal.errors import Fenced, NotAdmitted, Unavailable, ensure
from journal.model import Epoch, NamespaceInfo, NodeName, TxId
from journal.proto import journal_pb2 as pb
from journal.writer.channel import NodeChannel


@dataclass(frozen=True, slots=True)
class Recovered:
    """The epoch of a new writer, and the last txid of the journal; 0 if it is empty."""

    epoch: Epoch
    last_txid: TxId


@dataclass(slots=True)
class Claim:
    """One writer's claim; ``granted`` has the answers of the nodes that have promised."""

    namespace: NamespaceInfo
    epoch: Epoch
    granted: dict[NodeName, pb.NewEpochReply] = field(default_factory=dict)

    async def propose(self, channel: NodeChannel, timeout_seconds: float) -> pb.NewEpochReply:
        """First round: ask the node to promise the epoch."""
        remote = channel.remote
        reply = await remote.new_epoch(self.namespace, self.epoch, timeout_seconds)
        self.granted[channel.name] = reply
        return reply

    async def confirm(self, channel: NodeChannel, timeout_seconds: float) -> None:
        """Second round: check that the node still has its promise after a majority promised.

        The bad schedule: a node promises, is wiped, and is admitted again by the older writer,
        which has a majority with it.  Then a third node promises late and gives us a majority, too,
        without the edits acknowledged in between (docs/reference/quorum-journal.md#epochs).
        """
        if channel.name not in self.granted:
            raise Unavailable("it has not promised")
        promised = (await channel.remote.journal_state(timeout_seconds)).last_promised_epoch
        if promised > self.epoch:
            raise Fenced(f"epoch {promised} was promised", promised=Epoch(promised))
        if promised < self.epoch:
            raise NotAdmitted(f"it has forgotten that it promised epoch {self.epoch}")

    def ensure_distinct(self) -> None:
        """Ensure that no promise counts twice.

        Raises:
            InvariantBroken: two nodes have the same folder, or a clone of it.
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
