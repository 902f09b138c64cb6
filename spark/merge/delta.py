"""The difference between the image and the sparse namespace after the replay.

See docs/reference/checkpoint.md#difference.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, cast

from ha.record import dataclass
from namenode_sim.image import admin_sections, inodes_writer
from namenode_sim.image.inodes_reader import inodes_of
from namenode_sim.image.strings import StringNumbers, write_strings
from namenode_sim.image.writer import open_files
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile, INodeSymlink
from namenode_sim.namespace.snapshots.diffs import in_order
from spark.merge.errors import EditsDoNotBelong, Miss
from spark.merge.garbage_collection import no_collection
from spark.merge.model import Delta
from spark.merge.sparse import Sparse, SparseChildren, known_ids
from spark.merge.trie import GAINS

_BATCH: Final = 4096


def delta_of(sparse: Sparse) -> Delta:
    """Return what has changed; ``sparse`` must have been replayed.

    Raises:
        EditsDoNotBelong: if the edits gave an inode an id that the image knows.
        Miss: if a directory gained children and the plan did not expect it.
        ImageError: if something does not fit into an image of that layout.
    """
    with no_collection():
        return _delta_of(sparse)


def _delta_of(sparse: Sparse) -> Delta:
    inodes = sparse.namespace.tree.inodes
    numbers = StringNumbers.seeded(sparse.strings)
    encoder = _Encoder(sparse, numbers)
    gone = [number for number in sparse.materialised.tolist() if number not in inodes]
    dead = [directory for _, directory in sparse.directories if directory.id not in inodes]
    updated = dict(encoder.updated())
    created = _created_inodes(sparse)
    removed, added = _moves(sparse)
    return Delta(
        updated=updated,
        created=list(zip((node.id for node in created), encoder.encoded(created), strict=True)),
        gone=known_ids(gone),
        tombstones=known_ids([directory.id for directory in dead]),
        must_be_empty=known_ids([d.id for d in dead if _children(d).taken_for_empty]),
        materialised=sparse.materialised,
        removed=removed,
        added=added,
        new_entries={
            node.id: [cast(INode, child).id for child in in_order(node.children)]
            for node in created
            if isinstance(node, INodeDirectory) and node.children
        },
        last_inode_id=sparse.namespace.counters.last_inode_id,
        sections=_sections(sparse, numbers),
    )


def _children(directory: INodeDirectory) -> SparseChildren:
    return cast(SparseChildren, cast(object, directory.children))


def _created_inodes(sparse: Sparse) -> list[INode]:
    """Inodes that the image does not have, by id."""
    inodes = sparse.namespace.tree.inodes
    old = frozenset(sparse.materialised.tolist())
    created = [inodes[number] for number in sorted(set(inodes) - old)]
    last = sparse.base.facts.last_inode_id
    if created and created[0].id <= last:
        raise EditsDoNotBelong(
            f"an edit creates inode {created[0].id}, but the image has given out all ids up to "
            f"{last}"
        )
    return created


def _moves(
    sparse: Sparse,
) -> tuple[dict[int, list[int]], dict[int, list[tuple[bytes, int]]]]:
    """Return the children that left and came to each directory of the image that is left."""
    removed: dict[int, list[int]] = {}
    added: dict[int, list[tuple[bytes, int]]] = {}
    ids, flags = sparse.looked.ids, sparse.plan.trie.flags
    inodes = sparse.namespace.tree.inodes
    for node, directory in sparse.directories:
        children = _children(directory)
        if not children.changed or directory.id not in inodes:
            continue
        now = children.ids_by_name()
        left = []
        for name, asked in children.asked.items():
            number = int(ids[asked])
            if number >= 0 and now.get(name) != number:
                left.append(number)
            elif number >= 0:
                del now[name]
        if left:
            removed[directory.id] = left
        if now:
            if not flags[node] & GAINS:
                raise Miss(directory.id, min(now))
            added[directory.id] = list(now.items())
    return removed, added


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Inodes to messages, with the string ids of the image."""

    sparse: Sparse
    numbers: StringNumbers

    def encoded(self, nodes: Iterable[INode]) -> Iterator[bytes]:
        """Messages without their lengths."""
        kept = self.sparse.namespace.unknown_fields
        layout = self.sparse.base.facts.layout
        unusual = {key[1] for key in kept if key[0] == "INODE"}
        rest = iter(nodes)
        while batch := list(islice(rest, _BATCH)):
            yield from inodes_writer.inode_messages(batch, self.numbers, layout, unusual, kept)

    def updated(self) -> Iterator[tuple[int, bytes]]:
        """Yield the image's inodes whose message is another now.

        One that only differs in how the same is said (an older writer's, say) has not changed.
        """
        inodes = self.sparse.namespace.tree.inodes
        messages = self.sparse.looked.messages
        nodes = [
            node
            for number in self.sparse.materialised.tolist()
            if number in messages and (node := inodes.get(number)) is not None
        ]
        for node, raw in zip(nodes, self.encoded(nodes), strict=True):
            before = messages[node.id]
            if raw != before and not self._says_the_same(node, before):
                yield node.id, raw

    def _says_the_same(self, node: INode, before: bytes) -> bool:
        (old,) = inodes_of([before], self.sparse.strings, {}, {})
        return _attributes(node) == _attributes(old)


def _attributes(node: INode) -> tuple[object, ...]:
    common = (node.id, node.name, node.user, node.group, node.mode, node.mtime)
    match node:
        case INodeFile():
            return (
                *common,
                node.atime,
                node.replication,
                node.preferred_block_size,
                node.packed_blocks,
                node.under_construction,
                node.acl,
                node.xattrs,
                node.storage_policy_id,
                node.block_type,
                node.ec_policy_id,
            )
        case INodeDirectory():
            return (*common, node.acl, node.xattrs, node.quotas)
        case INodeSymlink():
            return (*common, node.atime, node.target)


def _sections(sparse: Sparse, numbers: StringNumbers) -> Mapping[str, bytes]:
    """Write the small sections, the string table last: all ids must have been given out."""
    namespace, facts = sparse.namespace, sparse.base.facts
    kept = namespace.unknown_fields
    sections = {
        "NS_INFO": _collect(
            lambda write: admin_sections.write_ns_info(
                write, namespace, facts.namespace_id, facts.layout
            )
        )
    }
    if facts.layout <= inodes_writer.ERASURE_CODING_LAYOUT:
        sections["ERASURE_CODING"] = _collect(
            lambda write: admin_sections.write_erasure_coding(write, namespace)
        )
    sections["FILES_UNDERCONSTRUCTION"] = _collect(
        lambda write: inodes_writer.write_files_under_construction(
            write, open_files(namespace), kept
        )
    )
    sections["SECRET_MANAGER"] = _collect(
        lambda write: admin_sections.write_secrets(write, namespace)
    )
    sections["CACHE_MANAGER"] = _collect(lambda write: admin_sections.write_cache(write, namespace))
    sections["STRING_TABLE"] = _collect(lambda write: write_strings(write, numbers, kept))
    return sections


def _collect(section: Callable[[Callable[[bytes], None]], None]) -> bytes:
    parts: list[bytes] = []
    section(parts.append)
    return b"".join(parts)
