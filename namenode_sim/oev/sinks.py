"""Hadoop's processors: XML, binary and statistics."""

from collections import Counter
from typing import BinaryIO, Final, assert_never

from namenode_sim.edits.codec import encode
from namenode_sim.edits.file_header import header_bytes
from namenode_sim.oev.events import Edit, Event, Lost, Opaque, Padding, Start
from namenode_sim.oev.json_lines import frame_of
from namenode_sim.oev.names import ALL_NAMES, NAME_OF
from namenode_sim.oev.xml_fields import to_xml

_PADDING_CHUNK_BYTES: Final = 1 << 20


class XmlSink:
    """Hadoop's XML.  It has no place for padding."""

    def __init__(self, file: BinaryIO) -> None:
        self._write = file.write
        self._write(b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<EDITS>\n')

    def take(self, event: Event) -> None:
        if isinstance(event, Edit):
            self._write(to_xml(event.txid, event.op, NAME_OF[type(event.op)]).encode())
        elif isinstance(event, Start):
            self._write(f"  <EDITS_VERSION>{event.layout}</EDITS_VERSION>\n".encode())

    def finish(self) -> None:
        """Close the document, so that it is one also when the edits end in damage."""
        self._write(b"</EDITS>\n")


class StatsSink:
    """How often each op occurs (Hadoop's StatisticsEditsVisitor)."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._layout = -1
        self._counts: Counter[int] = Counter()

    def take(self, event: Event) -> None:
        if isinstance(event, Edit):
            self._counts[event.op.opcode] += 1
        elif isinstance(event, Start):
            self._layout = event.layout

    def finish(self) -> None:
        lines = [f"    {'VERSION':<30}      : {self._layout}"]
        lines += [
            f"    {name[:30]:<30} ({opcode:3}): {self._counts[opcode]}"
            for opcode, name in ALL_NAMES
        ]
        self._file.write("".join(line + "\n" for line in lines).encode())


class BinarySink:
    """An edit log as a NameNode writes it.

    Args:
        file: where to.
        exact: give back the bytes that the source knows, padding and damage included; else only
            the ops, without padding, as Hadoop does.
    """

    def __init__(self, file: BinaryIO, *, exact: bool) -> None:
        self._write = file.write
        self._exact = exact
        self._layout = 0

    def take(self, event: Event) -> None:
        """Write one part.

        Raises:
            EditsError: if the layout cannot hold the op.
        """
        match event:
            case Start():
                self._layout = event.layout
                self._write(header_bytes(event.layout))
            case Edit():
                self._edit(event)
            case Opaque():
                if self._exact:
                    self._write(event.data)
            case Padding():
                if self._exact:
                    for byte, count in event.runs:
                        self._run(byte, count)
            case Lost():
                pass
            case _:
                assert_never(event)

    def finish(self) -> None:
        """Do nothing: nothing belongs at the end."""

    def _edit(self, edit: Edit) -> None:
        if self._exact and edit.frame is not None:
            self._write(edit.frame)
        elif self._exact:
            self._write(frame_of(edit, self._layout))
        else:
            self._write(encode(edit.op, edit.txid, self._layout))

    def _run(self, byte: int, count: int) -> None:
        chunk = bytes((byte,)) * min(count, _PADDING_CHUNK_BYTES)
        while count > 0:
            self._write(chunk[:count])
            count -= len(chunk)
