"""Whether an image is whole, and how many inodes it holds, without loading it.

Older images and their edits are deleted behind an image, so one that comes from outside is read
from its beginning to its end first; that takes a small part of the time of a load, and no memory.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from namenode_sim.image.container import SUB, Section, next_message, section_messages
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import BROKEN, ImageSections
from namenode_sim.namespace.inode import ROOT_ID

_REQUIRED: Final = ("NS_INFO", "STRING_TABLE", "INODE", "INODE_DIR")
_ROOT_FIELD: Final = pb.INode(type=pb.INode.DIRECTORY, id=ROOT_ID).SerializeToString()[2:]
_NEAR: Final = 16
"""Type and id are the first fields of an inode, in Hadoop's images and in ours."""


def announced_inodes(path: Path) -> int:
    """Return how many inodes an image says it holds.

    Raises:
        ImageError: if it cannot be understood so far.
        OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        sections = ImageSections(file)
        parts = sections.summary.parts("INODE")
        if not parts:
            raise ImageError("it has no section INODE")
        try:
            first = next_message(section_messages(file, parts[0], sections.summary.codec))
            return pb.INodeSection.FromString(first).numInodes
        except BROKEN as problem:
            raise ImageError(f"its section INODE is malformed: {problem}") from problem


def checked_inodes(path: Path) -> int:
    """Read all of an image, and count its inodes.

    Raises:
        ImageError: if a section is missing, overlaps another or is cut short, if there are other
            inodes than announced, or no root directory among them.
        OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        sections = ImageSections(file)
        for name in _REQUIRED:
            if name not in sections:
                raise ImageError(f"it has no section {name}")
        whole = [one for one in sections.summary.sections if not one.name.endswith(SUB)]
        _ensure_apart(whole)
        count = 0
        for section in whole:
            with sections.open(section.name) as messages:
                if section.name == "INODE":
                    count = _count(messages)
                else:
                    for _ in messages:
                        pass
        return count


def _count(messages: Iterator[bytes]) -> int:
    announced = pb.INodeSection.FromString(next_message(messages)).numInodes
    count, roots = 0, 0
    for count, message in enumerate(messages, 1):  # noqa: B007 - its last value is wanted
        if _ROOT_FIELD in message[:_NEAR]:
            roots += _is_root(message)
    if count != announced:
        raise ImageError(f"it announces {announced} inodes and holds {count}")
    if roots != 1:
        raise ImageError("it has no root directory" if not roots else "it has two root directories")
    return count


def _is_root(message: bytes) -> bool:
    inode = pb.INode.FromString(message)
    return inode.id == ROOT_ID and inode.type == pb.INode.DIRECTORY and not inode.name


def _ensure_apart(sections: list[Section]) -> None:
    for one, other in pairwise(sorted(sections, key=lambda section: section.offset)):
        if one.offset + one.length > other.offset:
            raise ImageError(f"its sections {one.name} and {other.name} overlap")
