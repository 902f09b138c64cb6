"""An image opened for viewing: its string table, and its sections in the order of loading."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from namenode_sim.image.container import Summary, next_message
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.strings import Strings, read_strings

STEP: Final = 4096
"""Messages between two reports of progress."""

ReportRead = Callable[[str, int], None]
"""Called with the section being read and how many messages were taken from it since last time."""


class OpenedImage:
    """An fsimage as the viewers see it.

    Args:
        file: the image.
        report: called with the progress, if given.

    Raises:
        ImageError: if it is no image.
    """

    def __init__(self, file: BinaryIO, report: ReportRead | None = None) -> None:
        self._sections = ImageSections(file)
        self._report = report
        self.strings = Strings()
        if "STRING_TABLE" in self._sections:
            with self.section("STRING_TABLE") as found:
                self.strings = read_strings(found, {})

    @property
    def summary(self) -> Summary:
        return self._sections.summary

    def has(self, name: str) -> bool:
        return name in self._sections

    @contextmanager
    def section(self, name: str) -> Iterator[Iterator[bytes]]:
        """Yield a section's messages; raise ImageError if anything is wrong inside the ``with``."""
        with self._sections.open(name) as found:
            yield found if self._report is None else _report_progress(found, name, self._report)

    def inodes(self) -> Iterator[pb.INode]:
        """Yield all inodes, in the image's order.

        Raises:
            ImageError: while iterating, if the section is malformed.
        """
        with self.section("INODE") as found:
            announced = pb.INodeSection.FromString(next_message(found)).numInodes
            count = 0
            for raw in found:
                count += 1
                yield pb.INode.FromString(raw)
            if count != announced:
                raise ImageError(f"it announces {announced} inodes and holds {count}")


def _report_progress(found: Iterator[bytes], name: str, report: ReportRead) -> Iterator[bytes]:
    since = 0
    for raw in found:
        yield raw
        since += 1
        if since == STEP:
            report(name, since)
            since = 0
    report(name, since)
