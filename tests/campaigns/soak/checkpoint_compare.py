"""Whether a merged image is what a replay of everything gives, down to what a reader forgives."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from namenode_sim.image.container import SUB, Summary, read_summary
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import load_image
from namenode_sim.image.sections import ImageSections
from namenode_sim.namespace.inode import signed_order
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.namespace.dump import differences, dump_node

_MAGIC_BYTES: Final = 8
_COPIED: Final = ("SNAPSHOT", "SNAPSHOT_DIFF", "INODE_REFERENCE")
_LARGE: Final = ("INODE", "INODE_DIR")


@dataclass(frozen=True, slots=True)
class Image:
    """An image with its namespace, and the messages of its sections as they are."""

    path: Path
    summary: Summary
    namespace: Namespace
    header: pb.INodeSection
    inodes: dict[int, bytes]
    entries: list[pb.DirEntry]
    open_files: dict[int, str]
    strings: dict[int, str]

    @classmethod
    def load(cls, path: Path) -> "Image":
        """Read everything; the digest is compared, too.

        Raises:
            ImageError: if it is not sound, or has an inode twice.
        """
        namespace = load_image(path)
        header, *inodes = _messages(path, "INODE")
        by_id = {pb.INode.FromString(raw).id: raw for raw in inodes}
        if len(by_id) != len(inodes):
            raise ImageError(f"{len(inodes) - len(by_id)} inodes are there twice")
        uc = [pb.FileUnderConstructionEntry.FromString(raw)
              for raw in _messages(path, "FILES_UNDERCONSTRUCTION")]  # fmt: skip
        _, *strings = _messages(path, "STRING_TABLE")
        entries = [pb.StringTableSection.Entry.FromString(raw) for raw in strings]
        with path.open("rb") as file:
            summary = read_summary(file)
        return cls(
            path=path,
            summary=summary,
            namespace=namespace,
            header=pb.INodeSection.FromString(header),
            inodes=by_id,
            entries=[pb.DirEntry.FromString(raw) for raw in _messages(path, "INODE_DIR")],
            open_files={entry.inodeId: entry.fullPath for entry in uc},
            strings={entry.id: entry.str for entry in entries},
        )


def _messages(path: Path, name: str) -> list[bytes]:
    with path.open("rb") as file, ImageSections(file).open(name) as found:
        return list(found)


def problems(base: Path, oracle: Path, result: Path, *, divided: bool) -> list[str]:
    """Return what is wrong with a merged image, one sentence each.

    Args:
        base: the image that was merged.
        oracle: what one process made of it and the same edits.
        result: what is to be judged.
        divided: whether it was merged in parts; then what did not change must be as it was.
    """
    try:
        ours = Image.load(result)
    except ImageError as problem:
        return [f"it does not load: {problem}"]
    before, wanted = Image.load(base), Image.load(oracle)
    found = [f"content: {each}" for each in differences(wanted.namespace, ours.namespace)]
    found += _figures(wanted, ours)
    found += _entries(ours)
    found += _places(ours)
    if divided:
        found += _kept(before, wanted, ours)
    return found


def _figures(wanted: Image, ours: Image) -> Iterator[str]:
    """Compare what the loader does not look at."""
    if ours.path.name != wanted.path.name:
        yield f"its name is {ours.path.name}, not {wanted.path.name}"
    if ours.summary.layout != wanted.summary.layout:
        yield f"its layout is {ours.summary.layout}, not {wanted.summary.layout}"
    if ours.header != wanted.header:
        yield f"its header says {ours.header}, not {wanted.header}"
    if ours.header.numInodes != len(ours.inodes):
        yield f"it announces {ours.header.numInodes} inodes and has {len(ours.inodes)}"
    if ours.open_files != wanted.open_files:
        yield f"files under construction: {ours.open_files}, not {wanted.open_files}"
    if len(set(ours.strings.values())) < len(ours.strings) and len(ours.strings) < 1 << 29:
        kinds = [(number >> 29, text) for number, text in ours.strings.items()]
        if len(set(kinds)) < len(kinds):
            yield f"strings are there twice: {sorted(kinds)}"
    # Loaders before layout -65 hold the table in an array of just as many places.
    if ours.summary.layout > -65 and sorted(ours.strings) != list(range(1, len(ours.strings) + 1)):
        yield f"the string ids have gaps: {sorted(ours.strings)}"


def _entries(ours: Image) -> Iterator[str]:
    """Check the order, in which newer NameNodes search: they miss a child out of place."""
    parents = [entry.parent for entry in ours.entries]
    if len(set(parents)) < len(parents):
        yield "a directory has two entries"
    names = {number: node.name for number, node in ours.namespace.tree.inodes.items()}
    for entry in ours.entries:
        if not entry.children and not entry.refChildren:
            yield f"directory {entry.parent} has an empty entry"
        keys = [signed_order(names[child]) for child in entry.children]
        if any(one >= other for one, other in pairwise(keys)):
            yield f"the children of {entry.parent} are not in order"


def _places(ours: Image) -> Iterator[str]:
    """Check that sections have no gaps; sub-sections come first in the summary."""
    with ours.path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(size - 4)
        end = size - 4 - int.from_bytes(file.read(4), "big")
    whole = [section for section in ours.summary.sections if not section.name.endswith(SUB)]
    at = _MAGIC_BYTES
    for section in sorted(whole, key=lambda each: each.offset):
        if section.offset != at:
            yield f"section {section.name} begins at {section.offset}, not at {at}"
        at = section.offset + section.length
    if at != end:
        yield f"the sections end at {at}, the summary begins at {end}"
    order = [section.name for section in ours.summary.sections]
    for name in _LARGE:
        if name + SUB in order and order.index(name + SUB) > order.index(name):
            yield f"the summary names {name} before its parts"
        if any(part.length == 0 for part in ours.summary.parts(name) if len(order) > 1 and
               part.name.endswith(SUB)):  # fmt: skip
            yield f"{name} has an empty part"


def _kept(before: Image, wanted: Image, ours: Image) -> Iterator[str]:
    """Check that a merge in parts left alone what it need not change."""
    if ours.summary.codec != before.summary.codec:
        yield f"its codec is {ours.summary.codec!r}, not {before.summary.codec!r}"
    for name in _LARGE:
        had = [part.name for part in before.summary.parts(name)] != [name]
        has = [part.name for part in ours.summary.parts(name)] != [name]
        # All inodes of the second part may be gone, so that one part is left.
        if has and not had:
            yield f"{name} has parts, which the old image had not"
        if had and not has:
            yield f"{name} has no parts, which the old image had"
    yield from _copied(before, wanted, ours)


def _copied(before: Image, wanted: Image, ours: Image) -> Iterator[str]:
    for number, text in before.strings.items():
        if ours.strings.get(number) != text:
            yield f"string {number} was {text!r} and is {ours.strings.get(number)!r}"
    for number, raw in ours.inodes.items():
        if number not in before.inodes or before.inodes[number] == raw:
            continue
        old, new = (image.namespace.tree.inodes[number] for image in (before, wanted))
        if (old.name, dump_node(old)) == (new.name, dump_node(new)):
            yield f"the message of inode {number} is another, though nothing in it changed"
    if before.namespace.tree.has_snapshots:
        for name in _COPIED:
            if _messages(before.path, name) != _messages(ours.path, name):
                yield f"section {name} is another"
