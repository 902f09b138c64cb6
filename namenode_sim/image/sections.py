"""The sections of an image by name, and where in them something is wrong.

See docs/reference/formats.md#image-file.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from struct import error as StructError
from typing import BinaryIO, Final

from google.protobuf.message import DecodeError, EncodeError

from namenode_sim.image.container import MessagePosition, Section, read_summary, section_messages
from namenode_sim.image.errors import ImageError

KNOWN_SECTIONS: Final = frozenset((
    "NS_INFO", "STRING_TABLE", "ERASURE_CODING", "INODE", "INODE_REFERENCE", "SNAPSHOT",
    "INODE_DIR", "FILES_UNDERCONSTRUCTION", "SNAPSHOT_DIFF", "SECRET_MANAGER", "CACHE_MANAGER",
    # Parts of a section, for loading in parallel; together they are the section (3.5).
    "INODE_SUB", "INODE_DIR_SUB", "SNAPSHOT_DIFF_SUB", "INODE_REFERENCE_SUB",
))  # fmt: skip

BROKEN: Final = (
    DecodeError,
    EncodeError,
    KeyError,
    IndexError,
    ValueError,
    OverflowError,
    StructError,
)
"""What malformed messages raise; protobuf raises EncodeError for fields that are missing."""


class ImageSections:
    """The sections of an image by name, each as messages; errors say where."""

    def __init__(self, file: BinaryIO) -> None:
        """Read the summary.

        Raises:
            ImageError: if it is no image, or one of an unknown kind.
        """
        try:
            self.summary = read_summary(file)
        except BROKEN as problem:
            what = f"{type(problem).__name__}: {problem}"
            raise ImageError(f"its summary is malformed ({what})") from problem
        self.place = MessagePosition()
        """Where in the section now open the message lies that was taken last."""
        self._file = file
        self._names: set[str] = set()
        for section in self.summary.sections:
            if section.name not in KNOWN_SECTIONS:
                raise ImageError(f"its section {section.name!r} is unknown")
            if section.name in self._names and not section.name.endswith("_SUB"):
                raise ImageError(f"its section {section.name} is there twice")
            self._names.add(section.name)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @contextmanager
    def open(self, name: str) -> Iterator[Iterator[bytes]]:
        """Yield the messages of a section, none if it is absent; all of them must be wanted.

        Raises:
            ImageError: for whatever is found wrong inside the ``with``; says where.
        """
        place = self.place = MessagePosition()
        at: list[Section] = []

        def streams() -> Iterator[Iterator[bytes]]:
            for part in self.summary.parts(name):
                at[:] = [part]
                yield section_messages(self._file, part, self.summary.codec, place)

        try:
            found = chain.from_iterable(streams())
            yield found
            if next(found, None) is not None:
                raise ImageError("it holds more than it announces")  # noqa: TRY301 - the same place
        except ImageError as problem:
            raise ImageError(f"{self._where(name, at, place)}: {problem}") from problem
        except BROKEN as problem:
            what = f"malformed ({type(problem).__name__}: {problem})"
            raise ImageError(f"{self._where(name, at, place)}: {what}") from problem

    def _where(self, name: str, at: list[Section], place: MessagePosition) -> str:
        if not at:
            return f"section {name}"
        if self.summary.codec:
            return f"section {name} at byte {at[0].offset}, byte {place.offset} of its plain bytes"
        return f"section {name}, byte {at[0].offset + place.offset} of the file"
