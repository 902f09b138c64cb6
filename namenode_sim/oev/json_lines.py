"""An edit log as JSON lines, without loss: the bytes come back as they were.

The first line is ``{"layout": …}``, then one line per op, ``{"padding": [[byte, count], …]}`` for
what follows them, and ``{"bytes": hex}`` for what is neither.  An op whose bytes are not those that
we would write has them next to its fields, as ``frame``; they count as long as they say the same as
the fields.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, assert_never

from journal.frame import MAX_OP_BYTES
from journal.model import TxId
from namenode_sim.edits.codec import check_layout, decode, encode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import Op
from namenode_sim.oev.events import Edit, Event, Lost, Opaque, Padding, Start
from namenode_sim.oev.json_values import from_json, to_json

MAX_LINE_BYTES: Final = 6 * MAX_OP_BYTES
"""No op of at most 50 MiB needs more: six characters for a byte are the worst."""
_MAX_PADDING: Final = 1 << 40


def frame_of(edit: Edit, layout: int) -> bytes:
    """Return the op's frame; the time of snapshot ops is written if it is known (3.3.0 GA).

    Raises:
        EditsError: if the layout cannot hold the op.
    """
    timed = getattr(edit.op, "mtime", None) is not None
    return encode(edit.op, edit.txid, layout, unversioned_mtime=timed)


class JsonLinesSink:
    """Writes JSON lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._layout = 0

    def take(self, event: Event) -> None:
        line: dict[str, Any]
        match event:
            case Start():
                self._layout = event.layout
                line = {"layout": event.layout}
            case Edit():
                line = to_json(event.txid, event.op)
                if event.frame is not None and event.frame != self._canonical(event):
                    line["frame"] = event.frame.hex()
            case Lost():
                return
            case Opaque():
                line = {"bytes": event.data.hex()}
            case Padding():
                line = {"padding": [list(run) for run in event.runs]}
            case _:
                assert_never(event)
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def finish(self) -> None:
        """Do nothing: nothing belongs at the end."""

    def _canonical(self, edit: Edit) -> bytes | None:
        try:
            return frame_of(edit, self._layout)
        except EditsError:
            return None


class JsonLinesSource:
    """Reads JSON lines."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self.size = file.seek(0, 2)
        self.position = 0
        file.seek(0)

    def events(self) -> Iterator[Event]:
        """Yield the header, the ops and what stands between them.

        Raises:
            EditsError: at the first line that is none of these.
        """
        layout: int | None = None
        number = 0
        while line := self._file.readline(MAX_LINE_BYTES + 1):
            number += 1
            try:
                event = _event(line, layout)
            except (ValueError, EditsError, RecursionError) as problem:
                what = problem.what if isinstance(problem, EditsError) else str(problem)
                txid = problem.txid if isinstance(problem, EditsError) else None
                raise EditsError(f"line {number}: {what}", file=self._name, offset=self.position,
                                 txid=txid) from None  # fmt: skip
            if isinstance(event, Start):
                layout = event.layout
            self.position += len(line)
            yield event
        if layout is None:
            raise EditsError("the first line with the layout is missing", file=self._name, offset=0)


def _event(line: bytes, layout: int | None) -> Event:
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"the line is longer than {MAX_LINE_BYTES} bytes")
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("there is no JSON object")  # noqa: TRY004 - it is the file's fault
    if layout is None or "layout" in record:
        return _start(record, first=layout is None)
    if record.keys() == {"padding"}:
        return Padding(_runs(record["padding"]))
    if record.keys() == {"bytes"} and isinstance(record["bytes"], str):
        return Opaque(bytes.fromhex(record["bytes"]))
    frame = record.pop("frame", None)
    txid, op = from_json(record)
    return Edit(TxId(txid), op, _frame(frame, txid, op, layout))


def _start(record: dict[str, Any], *, first: bool) -> Start:
    layout = record.get("layout")
    if not first or record.keys() != {"layout"} or type(layout) is not int:
        raise ValueError('the first line, and only it, says {"layout": number}')
    check_layout(layout)
    return Start(layout)


def _runs(runs: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(runs, list):
        raise ValueError("padding is no list")  # noqa: TRY004 - it is the file's fault
    for run in runs:
        sound = isinstance(run, list) and len(run) == 2 and all(type(n) is int for n in run)
        if not sound or not 0 <= run[0] <= 255 or not 0 <= run[1] <= _MAX_PADDING:
            raise ValueError(f"{str(run)[:40]} is no run of padding")
    return tuple((byte, count) for byte, count in runs)


def _frame(frame: object, txid: int, op: Op, layout: int) -> bytes | None:
    """Return the frame that a line gives, unless the fields next to it have been changed."""
    if frame is None:
        return None
    if not isinstance(frame, str):
        raise ValueError("frame is no hexadecimal text")  # noqa: TRY004 - it is the file's fault
    raw = bytes.fromhex(frame)
    return raw if decode(raw, 0, layout) == (txid, op, len(raw)) else None
