"""What lies at the places asked about: nothing, a directory, or something else."""

from collections.abc import Sequence
from typing import Final

from ha.record import dataclass
from namenode_sim.image.proto import fsimage_pb2 as pb
from spark.merge.model import Looked, MergePlan

UNKNOWN: Final = 0
ABSENT: Final = 1
DIRECTORY: Final = 2
OTHER: Final = 3

KIND_BITS: Final = 4
"""The low bits of a guess, for the kinds that it may be; the node is in the bits above them."""

_TYPE_TAG: Final = 0x08


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kind by trie node; nodes that came later are unknown."""

    by_node: Sequence[int]

    def of(self, node: int) -> int:
        return self.by_node[node] if node < len(self.by_node) else UNKNOWN


def kinds_of(looked: Looked) -> Kinds:
    """Return the kind of every node, by the answers."""
    return Kinds(bytes(kind_at(looked, node) for node in range(len(looked.ids))))


def kind_at(looked: Looked, node: int) -> int:
    """Return one node's kind, by the answers; one only walked through is a directory."""
    inode_id = int(looked.ids[node])
    if inode_id < 0:
        return ABSENT
    raw = looked.messages.get(inode_id)
    if raw is None:
        return DIRECTORY
    # Writers put the type first; a message that does not begin with it is parsed.
    kind = raw[1] if raw[0] == _TYPE_TAG else pb.INode.FromString(raw).type
    return DIRECTORY if kind == pb.INode.DIRECTORY else OTHER


def first_wrong_guess(plan: MergePlan, looked: Looked) -> int | None:
    """Return the first trie node that the planner guessed wrongly; None if there is none."""
    for packed in plan.guesses:
        node = packed >> KIND_BITS
        if not packed & 1 << kind_at(looked, node):
            return node
    return None
