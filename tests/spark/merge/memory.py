"""An image in memory: answers the planner's questions, and takes the difference, without ranges.

It knows messages, names and directory entries, nothing of what edits do; so it is a second opinion
on plan, replay and difference.
"""

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from journal.model import TxId
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.ops import Op
from namenode_sim.image.container import ImageWriter
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import read_namespace
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.writer import write_namespace
from namenode_sim.namespace.inode import signed_order
from namenode_sim.namespace.namespace import Namespace
from spark.merge.base import Base, read_base
from spark.merge.delta import delta_of
from spark.merge.model import Delta, Looked, MergePlan
from spark.merge.plan.planner import plan_edits
from spark.merge.plan.rounds import plan_until_right
from spark.merge.replay import replay
from spark.merge.sparse import Sparse, sparse_namespace
from spark.merge.trie import GAINS, NEED, ROOT, BaseTrie
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.files import info

Edits = list[tuple[TxId, Op]]


@dataclass(slots=True)
class MemoryImage:
    """Raw messages by inode id, their names, and the children of each directory."""

    data: bytes
    base: Base
    messages: dict[int, bytes]
    names: dict[int, bytes]
    entries: dict[int, list[int]]

    @classmethod
    def of(cls, data: bytes) -> "MemoryImage":
        sections = ImageSections(io.BytesIO(data))
        with sections.open("INODE") as found:
            next(found)
            messages = {pb.INode.FromString(raw).id: raw for raw in found}
        names = {number: pb.INode.FromString(raw).name for number, raw in messages.items()}
        with sections.open("INODE_DIR") as found:
            parsed = [pb.DirEntry.FromString(raw) for raw in found]
        entries = {entry.parent: list(entry.children) for entry in parsed}
        return cls(data, read_base(io.BytesIO(data)), messages, names, entries)

    def look_up(self, trie: BaseTrie) -> Looked:
        root = next(number for number, name in self.names.items() if not name)
        ids = np.full(len(trie), -1, np.int64)
        ids[ROOT] = root
        for node in range(1, len(trie)):
            above = int(ids[trie.parents[node]])
            for child in self.entries.get(above, []):
                if self.names[child] == trie.names[node]:
                    ids[node] = child
            # What is only walked through and is no directory may be given as absent: be mean.
            if not trie.flags[node] & NEED and not self._is_directory(int(ids[node])):
                ids[node] = -1
        needed = [int(ids[n]) for n in range(len(trie)) if trie.flags[n] & NEED and ids[n] >= 0]
        return Looked(ids, {number: self.messages[number] for number in [root, *needed]})

    def _is_directory(self, number: int) -> bool:
        raw = self.messages.get(number)
        return raw is not None and pb.INode.FromString(raw).type == pb.INode.DIRECTORY

    def expanded(self, delta: Delta) -> set[int]:
        """Return all inodes that go: the dead ones, and what only tombstones are above of."""
        gone = set(delta.gone.tolist())
        decided = set(delta.materialised.tolist())
        empty = set(delta.must_be_empty.tolist())
        waiting = delta.tombstones.tolist()
        while waiting:
            directory = waiting.pop()
            for child in self.entries.get(directory, []):
                if child not in decided:
                    assert directory not in empty, f"{directory} was taken for empty"
                    gone.add(child)
                    waiting.append(child)
        return gone

    def apply(self, delta: Delta) -> bytes:
        gone = self.expanded(delta)
        assert not gone & delta.updated.keys()
        messages = {n: raw for n, raw in self.messages.items() if n not in gone}
        messages.update(delta.updated)
        assert not messages.keys() & {number for number, _ in delta.created}
        messages.update(delta.created)
        names = self.names | {n: pb.INode.FromString(raw).name for n, raw in messages.items()}
        entries = {d: list(kept) for d, kept in self.entries.items() if d not in gone}
        for directory, left in delta.removed.items():
            assert directory not in gone
            for child in left:
                entries[directory].remove(child)
        for directory, came in delta.added.items():
            assert directory not in gone
            entries.setdefault(directory, []).extend(number for _, number in came)
            assert all(names[number] == name for name, number in came)
        for directory, children in entries.items():
            found = [names[child] for child in children]
            assert len(set(found)) == len(found), f"a name is twice in {directory}"
            children.sort(key=lambda child: signed_order(names[child]))
        for directory, ids in delta.new_entries.items():
            assert ids, "a directory without children has no entry"
            assert list(ids) == sorted(ids, key=lambda child: signed_order(names[child]))
            entries[directory] = list(ids)
        return self._written(delta, messages, entries)

    def _written(
        self, delta: Delta, messages: dict[int, bytes], entries: dict[int, list[int]]
    ) -> bytes:
        file = io.BytesIO()
        writer = ImageWriter(file, layout=self.base.facts.layout, codec="")
        header = pb.INodeSection(lastInodeId=delta.last_inode_id, numInodes=len(messages))
        sections = {
            **delta.sections,
            "INODE": b"".join(map(delimited, [header.SerializeToString(), *messages.values()])),
            "INODE_DIR": b"".join(
                delimited(pb.DirEntry(parent=d, children=children).SerializeToString())
                for d, children in entries.items()
                if children
            ),
            "SNAPSHOT": delimited(pb.SnapshotSection().SerializeToString()),
        }
        for name, content in sections.items():
            with writer.section(name) as write:
                write(content)
        writer.finish()
        return file.getvalue()


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge in memory and all its steps."""

    image: MemoryImage
    plan: MergePlan
    sparse: Sparse
    delta: Delta
    data: bytes
    rounds: int


def merge_in_memory(
    data: bytes, edits: Edits, *, planner: Callable[..., MergePlan] = plan_edits
) -> Merge:
    """Plan, look up, replay and apply the difference; plans again where guesses were wrong."""
    image = MemoryImage.of(data)
    rounds: list[BaseTrie] = []

    def look_up(trie: BaseTrie) -> Looked:
        rounds.append(trie)
        return image.look_up(trie)

    facts = image.base.facts
    plan, looked = plan_until_right(facts, lambda: edits, look_up, planner=planner)
    sparse = sparse_namespace(image.base, plan, looked)
    replay(sparse, edits)
    delta = delta_of(sparse)
    return Merge(image, plan, sparse, delta, image.apply(delta), len(rounds))


def check_against_oracle(
    data: bytes, edits: Iterable[tuple[TxId, Op]], *, planner: Callable[..., MergePlan] = plan_edits
) -> Merge:
    """Merge in memory, and compare with the replay of all edits on the whole namespace."""
    edits = list(edits)
    oracle = read_namespace(io.BytesIO(data))
    for txid, op in edits:
        oracle.apply(txid, op)
    merged = merge_in_memory(data, edits, planner=planner)
    facts, file = merged.image.base.facts, io.BytesIO()
    write_namespace(oracle, file, info(facts.layout, facts.namespace_id))
    expected = file.getvalue()
    ours, theirs = (read_namespace(io.BytesIO(image)) for image in (merged.data, expected))
    assert differences(ours, theirs) == []
    assert ours.unknown_fields == theirs.unknown_fields
    for name in SAME_SECTIONS:
        assert _messages(merged.data, name) == _messages(expected, name), name
    before, after = (set(_messages(image, "STRING_TABLE")[1:]) for image in (data, merged.data))
    assert before <= after
    _check_minimal(merged, oracle)
    return merged


SAME_SECTIONS = (
    "NS_INFO",
    "ERASURE_CODING",
    "FILES_UNDERCONSTRUCTION",
    "SECRET_MANAGER",
    "CACHE_MANAGER",
)


def _messages(image: bytes, name: str) -> list[bytes]:
    with ImageSections(io.BytesIO(image)).open(name) as found:
        return list(found)


def _check_minimal(merged: Merge, oracle: Namespace) -> None:
    """Check that only what changed is in the difference, and gaining directories are flagged."""
    delta, trie = merged.delta, merged.plan.trie
    assert set(delta.tombstones.tolist()) <= set(delta.gone.tolist())
    assert set(delta.gone.tolist()) <= set(delta.materialised.tolist())
    assert not set(delta.materialised.tolist()) - merged.image.messages.keys()
    for number, raw in delta.updated.items():
        assert raw != merged.image.messages[number]
        assert number in oracle.tree.inodes
    gaining = {
        int(number)
        for node, number in enumerate(merged.sparse.looked.ids)
        if trie.flags[node] & GAINS
    }
    assert delta.added.keys() <= gaining
