"""A segment file's header: the layout, and from layout -50 on its flags.

See docs/reference/formats.md#segment-header.
"""

from struct import Struct
from typing import Final

from ha.record import dataclass
from namenode_sim.edits.codec import check_layout
from namenode_sim.edits.errors import EditsError

FLAGS_LAYOUT: Final = -50
"""The first layout whose header has flags."""
MAX_HEADER_BYTES: Final = 8

_I32 = Struct(">i")
_NEVER_WRITTEN: Final = -1


@dataclass(frozen=True, slots=True)
class Header:
    """What a segment file says of itself.  ``size`` is where its first frame begins."""

    layout: int
    size: int


def parse_header(data: bytes) -> Header:
    """Return the header at the start of ``data``.

    Raises:
        EditsError: if it is cut short, was never written, names flags or a layout whose ops we do
            not know.
    """
    if len(data) < _I32.size:
        raise EditsError(f"the file ends inside its header ({len(data)} bytes)", offset=0)
    (layout,) = _I32.unpack_from(data)
    if layout == _NEVER_WRITTEN:
        raise EditsError("space was preallocated, but the header was never written", offset=0)
    try:
        check_layout(layout)
    except EditsError as problem:
        raise EditsError(problem.what, offset=0) from None
    if layout > FLAGS_LAYOUT:
        return Header(layout, _I32.size)
    if len(data) < MAX_HEADER_BYTES:
        raise EditsError(f"the file ends inside its header ({len(data)} bytes)", offset=0)
    (flags,) = _I32.unpack_from(data, _I32.size)
    if flags != 0:
        raise EditsError(f"the header names {flags} layout flags; none is known", offset=_I32.size)
    return Header(layout, MAX_HEADER_BYTES)


def header_bytes(layout: int) -> bytes:
    if layout > FLAGS_LAYOUT:
        return _I32.pack(layout)
    return _I32.pack(layout) + bytes(4)
