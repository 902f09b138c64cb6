"""The old image's small parts, read into the driver: everything but its inodes and directories."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, Final

from ha.record import dataclass
from journal.model import TxId
from namenode_sim.image import admin_sections
from namenode_sim.image.container import MessagePosition, next_message, section_messages
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import BROKEN, ImageSections
from namenode_sim.image.strings import Strings, read_strings
from namenode_sim.image.unknown import keep_unknown
from namenode_sim.namespace.inode import INodeDirectory
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.tree import new_root
from spark.merge.model import BaseFacts, OpenFile

_SMALL: Final = (
    "NS_INFO",
    "STRING_TABLE",
    "ERASURE_CODING",
    "FILES_UNDERCONSTRUCTION",
    "SECRET_MANAGER",
    "CACHE_MANAGER",
)
_NEEDED: Final = ("NS_INFO", "STRING_TABLE", "INODE")


@dataclass(frozen=True, slots=True)
class Base:
    """The small sections of an image, as messages, and what they say."""

    facts: BaseFacts
    sections: Mapping[str, tuple[bytes, ...]]

    def open(self, root: INodeDirectory) -> tuple[Namespace, Strings]:
        """Return a new namespace, with only a root in its tree and all that lies outside of it."""
        namespace = Namespace(root)
        kept = namespace.unknown_fields
        strings = read_strings(iter(self.sections["STRING_TABLE"]), kept)
        admin_sections.read_ns_info(iter(self.sections["NS_INFO"]), namespace)
        for name, read in (
            ("ERASURE_CODING", admin_sections.read_erasure_coding),
            ("SECRET_MANAGER", admin_sections.read_secrets),
            ("CACHE_MANAGER", admin_sections.read_cache),
        ):
            if name in self.sections:
                read(iter(self.sections[name]), namespace)
        for raw in self.sections.get("FILES_UNDERCONSTRUCTION", ()):
            entry = pb.FileUnderConstructionEntry.FromString(raw)
            keep_unknown(kept, ("FILES_UNDERCONSTRUCTION", entry.inodeId), raw, entry)
        namespace.counters.last_inode_id = self.facts.last_inode_id
        return namespace, strings


def read_base(file: BinaryIO) -> Base:
    """Read the small sections of an image.

    Raises:
        ImageError: if it is not a sound image; the message does not name the file.
    """
    found = ImageSections(file)
    for name in _NEEDED:
        if name not in found:
            raise ImageError(f"it has no section {name}")
    sections: dict[str, tuple[bytes, ...]] = {}
    for name in _SMALL:
        if name in found:
            with found.open(name) as messages:
                sections[name] = tuple(messages)
    header = pb.INodeSection.FromString(_first(file, found, "INODE") or b"")
    with _understood("NS_INFO"):
        info = pb.NameSystemSection.FromString(next_message(iter(sections["NS_INFO"])))
    snapshots = pb.SnapshotSection()
    with _understood("SNAPSHOT"):
        snapshots.ParseFromString(_first(file, found, "SNAPSHOT") or b"")
    with _understood("FILES_UNDERCONSTRUCTION"):
        open_files = tuple(map(_open_file, sections.get("FILES_UNDERCONSTRUCTION", ())))
    facts = BaseFacts(
        layout=found.summary.layout,
        namespace_id=info.namespaceId,
        last_applied=TxId(info.transactionId),
        last_inode_id=header.lastInodeId,
        inodes=header.numInodes,
        open_files=open_files,
        snapshottable=frozenset(snapshots.snapshottableDir),
        references=_first(file, found, "INODE_REFERENCE") is not None,
    )
    base = Base(facts, sections)
    with _understood("(one of the small ones)"):
        base.open(new_root("", ""))  # so that what is malformed shows before hours of work
    return base


def _open_file(raw: bytes) -> OpenFile:
    entry = pb.FileUnderConstructionEntry.FromString(raw)
    return OpenFile(entry.inodeId, entry.fullPath)


def _first(file: BinaryIO, sections: ImageSections, name: str) -> bytes | None:
    """Return the first message of a section; None if it is absent or empty."""
    for part in sections.summary.parts(name):
        with _understood(name):
            first = next(
                section_messages(file, part, sections.summary.codec, MessagePosition()), None
            )
        if first is not None:
            return first
    return None


@contextmanager
def _understood(name: str) -> Iterator[None]:
    try:
        yield
    except ImageError as problem:
        raise ImageError(f"section {name}: {problem}") from problem
    except BROKEN as problem:
        what = f"malformed ({type(problem).__name__}: {problem})"
        raise ImageError(f"section {name}: {what}") from problem
