"""Protobuf fields of many messages at a time: each message has its own cursor.

Hadoop writes the fields of a message in the order of their numbers, so that one step per field
takes all messages forward.  A cursor that does not end exactly where its message does has met
something else and is left to protobuf's own parser: nothing is guessed.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

SLACK_BYTES: Final = 24
"""What must follow the last message in a buffer, so that words can be read at its end."""

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

_U = np.uint64
_STOPS: Final = _U(0x8080808080808080)
_PAYLOAD: Final = _U(0x7F7F7F7F7F7F7F7F)
_SQUEEZE: Final = (
    (_U(0x007F007F007F007F), _U(0x7F007F007F007F00), _U(1)),
    (_U(0x00003FFF00003FFF), _U(0x3FFF00003FFF0000), _U(2)),
    (_U(0x000000000FFFFFFF), _U(0x0FFFFFFF00000000), _U(4)),
)
_BYTE: Final = _U(0xFF)
_ONE: Final = _U(1)
_LONG: Final = 8
"""Size of a varint that does not end within the seven bytes behind a key."""


def words_of(data: bytes | bytearray | memoryview) -> Words:
    """Return the eight bytes from any place of a buffer as one number, the first byte lowest."""
    words: Words = np.ndarray((len(data) - 7,), np.dtype("<u8"), buffer=data, strides=(1,))
    return words


def squeezed(word: Words) -> Words:
    """Return the payload of varint bytes, seven bits from each of the eight bytes."""
    word = word & _PAYLOAD
    for low, high, shift in _SQUEEZE:
        word = (word & low) | ((word & high) >> shift)
    return word


def varints(word: Words) -> tuple[Words, Ints]:
    """Varints that begin at the lowest byte of each word, and their sizes.

    A size of 9 says that all eight bytes belong to a longer one.
    """
    stop = ~word & _STOPS
    below = (stop & (~stop + _ONE)) - _ONE
    size = (np.bitwise_count(below) >> 3).astype(np.int64) + 1
    return squeezed(word & below), size


class Cursors:
    """Positions in many messages of one kind, taken forward field by field.

    Attributes:
        at: where each cursor is.
        end: where its message ends.
        bad: cursors that met what they do not know; they stand at their ends.
    """

    __slots__ = ("at", "bad", "end", "words")

    def __init__(self, words: Words, at: Ints, end: Ints) -> None:
        self.words = words
        self.at = at
        self.end = end
        self.bad: Flags = np.zeros(len(at), np.bool_)

    def number(self, key: int) -> tuple[Words, Flags]:
        """Read an optional number with a one-byte key: its values (0 where absent), and where."""
        word = self.words[self.at]
        has = ((word & _BYTE) == _U(key)) & (self.at < self.end)
        word >>= _U(8)
        if not (word & _U(0x80)).any():
            value, size = word & _U(0x7F), np.ones(len(word), np.int64)
        else:
            value, size = varints(word)
            long = np.flatnonzero(has & (size >= _LONG))
            if len(long):
                value[long], size[long] = self._long(self.at[long] + 1)
        if has.all():
            self.move(self.at + (size + 1))
            return value, has
        self.move(self.at + (size + 1) * has)
        return value * has, has

    def _long(self, at: Ints) -> tuple[Words, Ints]:
        """Varints of more than seven bytes; one without an end gets a size beyond any message."""
        low, rest = self.words[at], self.words[at + 8]
        value = squeezed(low)
        ninth, tenth = rest & _BYTE, (rest >> _U(8)) & _BYTE
        long = (low >> _U(63)) == 1
        longer = long & (ninth >= 0x80)
        value = np.where(long, value | ((ninth & _U(0x7F)) << _U(56)), value)
        value = np.where(longer, value | (tenth << _U(63)), value)
        size = 8 + long.astype(np.int64) + longer
        return value, np.where(longer & (tenth >= 0x80), np.int64(1) << 40, size)

    def fixed64(self, key: int) -> Words:
        """Read an optional number of eight bytes; 0 where absent."""
        has = ((self.words[self.at] & _BYTE) == _U(key)) & (self.at < self.end)
        # A cursor at its very end must not read further than the slack goes.
        value: Words = self.words[self.at + has]
        self.move(self.at + 9 * has)
        if not has.all():
            value *= has
        return value

    def inner(self, key: int) -> tuple[Ints, Ints, Flags]:
        """Pass an optional delimited field, and return its begin, its end, and where it is."""
        length, has = self.number(key)
        begin = self.at
        # What cannot be a length here must not overflow before it is found out.
        self.move(begin + np.minimum(length, _U(1 << 40)).view(np.int64))
        return begin, self.at, has

    def move(self, to: Ints) -> None:
        """Take the cursors forward; those that leave their message are bad."""
        beyond = to > self.end
        if beyond.any():
            self.bad |= beyond
            to = np.minimum(to, self.end)
        self.at = to

    def at_end(self) -> Flags:
        """Return which cursors have decoded their message, all of it."""
        known: Flags = (self.at == self.end) & ~self.bad
        return known
