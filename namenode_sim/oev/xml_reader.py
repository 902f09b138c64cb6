"""Reads Hadoop's XML of an edit log, one record at a time (OfflineEditsXmlLoader)."""

from collections.abc import Iterator
from enum import Enum, auto
from typing import BinaryIO, Final
from xml.parsers import expat

from journal.model import TxId
from namenode_sim.edits.codec import check_layout
from namenode_sim.edits.errors import EditsError
from namenode_sim.oev.events import Edit, Event, Start
from namenode_sim.oev.names import OP_OF
from namenode_sim.oev.stanza import Stanza
from namenode_sim.oev.xml_fields import from_xml
from namenode_sim.oev.xml_text import JAVA_SPACE

_CHUNK_BYTES: Final = 1 << 16
MAX_RECORD_BYTES: Final = 256 * 1024 * 1024
"""No op of at most 50 MiB needs more XML than that."""
_MAX_DEPTH: Final = 8


class _Place(Enum):
    """Which element may come next."""

    EDITS = auto()
    VERSION = auto()
    RECORD = auto()
    OPCODE = auto()
    DATA = auto()
    FIELDS = auto()
    RECORD_END = auto()
    END = auto()


_EXPECTED: Final = {
    _Place.EDITS: "EDITS",
    _Place.VERSION: "EDITS_VERSION",
    _Place.RECORD: "RECORD",
    _Place.OPCODE: "OPCODE",
    _Place.DATA: "DATA",
}


class _Handler:
    """Takes the parser's calls and collects events; raises ValueError for what does not belong."""

    def __init__(self) -> None:
        self.found: list[Event] = []
        self.place = _Place.EDITS
        self.txid: int | None = None
        self._open: list[Stanza] = []
        self._leaf = ""
        self._text: list[str] = []
        self._op_name = ""

    def start(self, tag: str, _attributes: object) -> None:
        self._text.clear()
        if self.place is _Place.FIELDS:
            if len(self._open) >= _MAX_DEPTH:
                raise ValueError(f"<{tag}> stands too deep")
            self._open.append(self._open[-1].child(tag))
            return
        expected = _EXPECTED.get(self.place)
        if self._leaf or tag != expected:
            raise ValueError(f"<{tag}> stands where {f'<{expected}>' if expected else 'nothing'} "
                             "belongs")  # fmt: skip
        if self.place is _Place.EDITS:
            self.place = _Place.VERSION
        elif self.place is _Place.RECORD:
            self.place = _Place.OPCODE
        elif self.place is _Place.DATA:
            self._open = [Stanza()]
            self.place = _Place.FIELDS
        else:
            self._leaf = tag

    def text(self, data: str) -> None:
        self._text.append(data)

    def end(self, tag: str) -> None:
        text = "".join(self._text)
        self._text.clear()
        if self.place is _Place.FIELDS:
            stanza = self._open.pop()
            stanza.text = text
            if not self._open:
                self._record(stanza)
                self.place = _Place.RECORD_END
        elif self._leaf == "EDITS_VERSION":
            self._leaf = ""
            self._version(text.strip(JAVA_SPACE))
        elif self._leaf == "OPCODE":
            self._leaf = ""
            self._op_name = text.strip(JAVA_SPACE)
            self.place = _Place.DATA
        elif self.place is _Place.RECORD_END:
            self.place = _Place.RECORD
        elif self.place is _Place.RECORD:
            self.place = _Place.END
        else:
            raise ValueError(f"</{tag}> comes too early")

    def refuse_document_type(self, *_declared: object) -> None:
        """Refuse a document type: its entities could make a few bytes into gigabytes."""
        raise ValueError("a document type does not belong here")

    def _version(self, text: str) -> None:
        stanza = Stanza()
        stanza.child("EDITS_VERSION").text = text
        layout = stanza.number("EDITS_VERSION")
        check_layout(layout)
        self.found.append(Start(layout))
        self.place = _Place.RECORD

    def _record(self, data: Stanza) -> None:
        op = OP_OF.get(self._op_name)
        if op is None:
            raise ValueError(f"opcode {self._op_name[:60]!r} is unknown")
        self.txid = None
        self.txid = data.number("TXID")
        self.found.append(Edit(TxId(self.txid), from_xml(op, data)))


class XmlSource:
    """Hadoop's XML of an edit log."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self.size = file.seek(0, 2)
        self.position = 0
        file.seek(0)

    def events(self) -> Iterator[Event]:
        """Yield the header and the ops.

        Raises:
            EditsError: at the first thing that does not belong into such a file; names the line.
        """
        handler = _Handler()
        # Whatever the document declares: as Hadoop, which reads all as UTF-8.
        parser = expat.ParserCreate("UTF-8")
        parser.buffer_text = True
        parser.StartElementHandler = handler.start
        parser.EndElementHandler = handler.end
        parser.CharacterDataHandler = handler.text
        parser.StartDoctypeDeclHandler = handler.refuse_document_type
        record_at = 0
        while True:
            chunk = self._file.read(_CHUNK_BYTES)
            self.position += len(chunk)
            try:
                parser.Parse(chunk, not chunk)
            except (ValueError, expat.ExpatError, EditsError) as problem:
                yield from handler.found  # what stands before it is sound
                raise self._error(problem, parser, handler.txid) from None
            if handler.found:
                record_at = self.position
            yield from handler.found
            handler.found.clear()
            if not chunk:
                break
            if self.position - record_at > MAX_RECORD_BYTES:
                raise self._error(ValueError("a record is too long"), parser, handler.txid)
        if handler.place is not _Place.END:
            raise self._error(ValueError("</EDITS> is missing"), parser, handler.txid)

    def _error(
        self, problem: Exception, parser: expat.XMLParserType, txid: int | None
    ) -> EditsError:
        if isinstance(problem, expat.ExpatError):
            what = f"this is no XML: {expat.ErrorString(problem.code)}"
        elif isinstance(problem, EditsError):
            what = problem.what
        else:
            what = str(problem)
        place = f"line {parser.CurrentLineNumber}"
        offset = max(parser.CurrentByteIndex, 0)
        return EditsError(f"{place}: {what}", file=self._name, offset=offset, txid=txid)
