"""What the parts of a merge hand to each other: facts, plan, answers, difference."""

from collections.abc import Container, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ha.record import dataclass, field
from journal.model import TxId
from spark.merge.trie import BaseTrie

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An entry of FILES_UNDERCONSTRUCTION."""

    inode_id: int
    path: str


@dataclass(frozen=True, slots=True)
class BaseFacts:
    """What the planner must know of the old image.

    ``snapshottable`` are inode ids; ``references`` says whether INODE_REFERENCE holds anything.
    """

    layout: int
    namespace_id: int
    last_applied: TxId
    last_inode_id: int
    inodes: int
    open_files: tuple[OpenFile, ...] = ()
    snapshottable: frozenset[int] = frozenset()
    references: bool = False


@dataclass(frozen=True, slots=True)
class Looked:
    """What the image has at the places of a trie.

    Attributes:
        ids: the inode id by trie node, -1 where the image has nothing.  A node with NEED has its
            id whatever lies there; a node that is only walked through may be given as -1 if it is
            not a directory.
        messages: the raw INode messages (without length) of all nodes with NEED that exist, by
            inode id; the root always.
    """

    ids: Ids
    messages: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What is to be looked up in the image before the edits can be replayed.

    Attributes:
        trie: the places asked about.
        first, last: the transactions; ``last`` is ``first - 1`` if there are none.
        count: how many edits.
        reached: the edits reach no trie node from this one on; only paths of open files do.
        trusted: by trie node, the names that the edits put into that directory without asking
            whether they are taken.  If one was, the merged directory has it twice: an error.
        guesses: what the planner took for granted, as ``spark.merge.plan.place_kinds`` packs it.
        single_process_because: why the merge must be done by one process; None if it need not.
    """

    trie: BaseTrie
    first: TxId
    last: TxId
    count: int
    reached: int
    trusted: Mapping[int, Container[bytes]] = field(default_factory=dict)
    guesses: Sequence[int] = ()
    single_process_because: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """The difference that the edits make to the image.  INode messages come without length.

    Attributes:
        updated: new messages of inodes of the image, by id; those that stay are not among them.
        created: new inodes, by id.
        gone: looked-up inodes of the image that no longer exist, sorted.
        tombstones: the directories among ``gone``, sorted: all below them goes too, but for what
            is among ``materialised``.
        must_be_empty: the tombstones that a rename replaced, sorted.  Hadoop does that to an empty
            directory only: an inode below that is not among ``materialised`` is an error.
        materialised: every inode of the image whose fate the replay has decided, sorted.
        removed: the children that left a directory of the image which is still there, by its id.
        added: the (name, id) of children that came to a directory of the image, by its id.  A
            child with a new name in the same directory is in both.
        new_entries: the children of created directories that have some, in Hadoop's order.
        last_inode_id: for the header of INODE.
        sections: plain bytes of the small sections that are written anew.
    """

    updated: Mapping[int, bytes]
    created: Sequence[tuple[int, bytes]]
    gone: Ids
    tombstones: Ids
    must_be_empty: Ids
    materialised: Ids
    removed: Mapping[int, Sequence[int]]
    added: Mapping[int, Sequence[tuple[bytes, int]]]
    new_entries: Mapping[int, Sequence[int]]
    last_inode_id: int
    sections: Mapping[str, bytes]
