"""Length-prefixed frames and length-prefixed messages within them: bytes in, pieces out."""

from ha.rpc.errors import MalformedFrame

_COMPACT_BYTES = 64 * 1024
_VARINT_BYTES = 5
_SHORT = tuple(bytes((number,)) for number in range(0x80))


class FrameSplitter:
    """Cuts a byte stream into what its reader asks for next.

    Holds at most the piece that is being received and what came in the same read: ``take`` says
    no to a frame that announces more than the limit before any of it is stored.
    """

    __slots__ = ("_buffer", "_start")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Add what the peer sent, in any split."""
        self._buffer += data

    @property
    def buffered_bytes(self) -> int:
        """How much was fed and not yet taken."""
        return len(self._buffer) - self._start

    def peek(self, size: int) -> bytes:
        """Return the next ``size`` bytes, or as many as are there."""
        return bytes(self._buffer[self._start : self._start + size])

    def skip(self, size: int) -> None:
        """Drop bytes that were peeked at."""
        self._start += size
        self._compact()

    def take_frame(self, max_frame_bytes: int) -> bytes | None:
        """Return the next frame without its length, or None until all of it is there.

        Raises:
            MalformedFrame: if it announces more than ``max_frame_bytes``.
        """
        start = self._start + 4
        if len(self._buffer) < start:
            return None
        length = int.from_bytes(self._buffer[self._start : start], "big")
        if length > max_frame_bytes:
            raise MalformedFrame(f"a frame of {length} bytes; the limit is {max_frame_bytes}")
        end = start + length
        if len(self._buffer) < end:
            return None
        frame = bytes(self._buffer[start:end])
        self._start = end
        self._compact()
        return frame

    def _compact(self) -> None:
        # Cutting the front off on each frame would copy the rest each time: quadratic for a
        # peer that sends many small frames in one segment.
        if self._start == len(self._buffer):
            self._buffer.clear()
            self._start = 0
        elif self._start > _COMPACT_BYTES:
            del self._buffer[: self._start]
            self._start = 0


def take_delimited(frame: bytes, offset: int) -> tuple[bytes, int]:
    """Return one varint-prefixed message of a frame, and the offset of the next.

    Raises:
        MalformedFrame: if the frame ends first.

    See docs/reference/rpc.md#frames.
    """
    if offset < len(frame) and frame[offset] < 0x80:
        length, start = frame[offset], offset + 1
    else:
        length, start = _long_length(frame, offset)
    end = start + length
    if end > len(frame):
        raise MalformedFrame(f"a message of {length} bytes at {offset} in a frame of {len(frame)}")
    return frame[start:end], end


def _long_length(frame: bytes, offset: int) -> tuple[int, int]:
    length = shift = 0
    for position in range(offset, min(offset + _VARINT_BYTES, len(frame))):
        byte = frame[position]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return length, position + 1
        shift += 7
    raise MalformedFrame(f"no message length at {offset} in a frame of {len(frame)} bytes")


def varint(number: int) -> bytes:
    """Encode a length as protobuf writes it."""
    if number < 0x80:
        return _SHORT[number]
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def frame_of(*messages: bytes) -> bytes:
    """Make a whole frame, length first, of serialized messages."""
    body = b"".join([piece for message in messages for piece in (varint(len(message)), message)])
    return len(body).to_bytes(4, "big") + body
