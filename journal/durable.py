"""Which of the newest edits cannot vanish any more, from what some nodes say they hold.

Hadoop counts how many transactions a majority has.  Counting is not enough: two nodes may have
different edits under one number, of which one was never acknowledged
(docs/reference/quorum-journal.md#durable-reads).  Equal bytes are not enough either.  Take three
nodes: epoch 1 has written edit 5 to A, epoch 2 another edit 5 to C, and epoch 3 began to recover
with A and B, chose A's edit and sent it only to B before it died.  A and B hold equal bytes, a
majority; yet a recovery that asks A and C takes C's edit, as epoch 2 is newer than what A knows of
its copy.

So an edit counts as durable if a majority of all nodes, answering or not, holds the same bytes, and

* all of them have it from the same writer: one value, one ballot, a majority, which is how Paxos
  chooses; it does not matter when each node took it.  Or
* each of them, when it answered, knew that an edit of that number is committed.  What is
  committed lies on a majority too; the two majorities share a node, and that node would have
  replaced the committed bytes by nothing else.  A third node's knowledge will not do: it may
  have learnt of the commit after the others had answered.

Pure.
"""

from collections.abc import Mapping, Sequence

from ha.record import dataclass
from journal.model import NO_EPOCH, Epoch, NodeName, TxId
from journal.quorum import majority


@dataclass(frozen=True, slots=True)
class Tail:
    """Consecutive edits that one node holds, and the writer of each of them on that node.

    The writer is NO_EPOCH where the edit did not come from its writer directly, but from another
    node, or where it is not known.  ``committed`` is the highest txid that was known to be
    committed, by this node or by the reader, when the node answered.
    """

    edits: Sequence[bytes]
    writers: Sequence[Epoch]
    committed: TxId | None = None


@dataclass(frozen=True, slots=True)
class Durable:
    """The first ``count`` edits are durable, and each of ``holders`` has all of them."""

    count: int
    holders: tuple[NodeName, ...]


def durable_prefix(tails: Mapping[NodeName, Tail], *, first: TxId, members: int) -> Durable:
    """Return how many edits from ``first`` on a majority of ``members`` nodes holds for good.

    The prefix ends at an edit for which another node has other bytes of a newer writer: that would
    mean that something is wrong, and must not be decided here.
    """
    needed = majority(members)
    holders, count = sorted(tails), 0
    while True:
        here = [node for node in holders if count < len(tails[node].edits)]
        edit = _choose_edit(
            {node: tails[node] for node in here}, count, TxId(first + count), needed
        )
        if edit is None or _contradicted(tails, edit, count):
            return Durable(count, tuple(holders) if count else ())
        holders = [node for node in here if tails[node].edits[count] == edit]
        count += 1


def _choose_edit(tails: Mapping[NodeName, Tail], at: int, txid: TxId, needed: int) -> bytes | None:
    """Return the one edit at that place that a majority has for good, or None."""
    copies: dict[bytes, list[Tail]] = {}
    for tail in tails.values():
        copies.setdefault(tail.edits[at], []).append(tail)
    for edit, holding in copies.items():
        knowing = [t for t in holding if t.committed is not None and t.committed >= txid]
        if len(knowing) >= needed:
            return edit
        writers = [tail.writers[at] for tail in holding if tail.writers[at] != NO_EPOCH]
        if any(writers.count(writer) >= needed for writer in set(writers)):
            return edit
    return None


def _contradicted(tails: Mapping[NodeName, Tail], edit: bytes, at: int) -> bool:
    copies = [(t.writers[at], t.edits[at]) for t in tails.values() if at < len(t.edits)]
    newest = max(writer for writer, held in copies if held == edit)
    return any(writer > newest for writer, _ in copies)
