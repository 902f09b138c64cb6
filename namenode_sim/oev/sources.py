"""Opens an edit log in any of its three forms, distinguished by ending and content."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Final

from namenode_sim.edits.recovery import Skipped, salvage_ops
from namenode_sim.edits.segment_file import SegmentFile
from namenode_sim.edits.window import CHUNK_BYTES
from namenode_sim.oev.events import Edit, Event, Lost, Opaque, Padding, Source, Start
from namenode_sim.oev.json_lines import JsonLinesSource
from namenode_sim.oev.xml_reader import XmlSource

_MAX_RUNS: Final = 4096
_OPAQUE_BYTES: Final = 1 << 16


class BinarySource:
    """An edit log as a NameNode writes it.

    Args:
        file: the edits.
        name: what errors call it.
        recover: go on behind damage, which is reported as ``Lost``.
    """

    def __init__(self, file: BinaryIO, name: str, *, recover: bool) -> None:
        self._segment = SegmentFile(file, name)
        self._recover = recover

    @property
    def size(self) -> int:
        return self._segment.size

    @property
    def position(self) -> int:
        return self._segment.offset

    def events(self) -> Iterator[Event]:
        """Yield the header, the ops, and the padding behind them.

        Raises:
            EditsError: at the first frame that is not sound, unless recovering.
        """
        segment = self._segment
        yield Start(segment.layout)
        start = segment.offset
        # As Hadoop's viewer: any txids are shown; the reader judges them.
        ops = salvage_ops(segment, numbered=False) if self._recover else segment.ops(numbered=False)
        for found in ops:
            if isinstance(found, Skipped):
                yield Lost(found)
                yield from self._opaque(found.offset, found.offset + found.length)
            else:
                yield Edit(*found, segment.frame(start))
            start = segment.offset
        yield from self._padding(start)

    def _opaque(self, start: int, end: int) -> Iterator[Event]:
        window = self._segment.window
        while start < end:
            count = min(_OPAQUE_BYTES, end - start)
            at = window.hold(start, count)
            yield Opaque(window.data[at : at + count])
            start += count

    def _padding(self, start: int) -> Iterator[Event]:
        window, runs = self._segment.window, list[tuple[int, int]]()
        while start < window.size:
            at = window.hold(start, min(CHUNK_BYTES, window.size - start))
            data = window.data[at:]
            for byte, count in _runs(data):
                if runs and runs[-1][0] == byte:
                    runs[-1] = byte, runs[-1][1] + count
                    continue
                if len(runs) == _MAX_RUNS:
                    yield Padding(tuple(runs))
                    runs.clear()
                runs.append((byte, count))
            start += len(data)
        if runs:
            yield Padding(tuple(runs))


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    if data == data[:1] * len(data):
        yield data[0], len(data)
        return
    for byte, same in groupby(data):
        yield byte, sum(1 for _ in same)


def open_source(file: BinaryIO, path: Path, *, recover: bool) -> Source:
    """Open the edits in a file: XML if its name ends so, as in Hadoop, or if it looks so.

    Raises:
        EditsError: if a binary file's header is not sound or its layout unknown.
    """
    begin = file.read(256).removeprefix(b"\xef\xbb\xbf").lstrip()
    file.seek(0)
    ending = path.suffix.lower()
    if ending == ".xml" or begin.startswith(b"<"):
        return XmlSource(file, str(path))
    if ending == ".jsonl" or begin.startswith(b"{"):
        return JsonLinesSource(file, str(path))
    return BinarySource(file, str(path), recover=recover)
