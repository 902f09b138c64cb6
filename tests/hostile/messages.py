"""Damage to protobuf that leaves all around it sound, so that it reaches what lies deep inside.

A message is taken apart into its fields without its description, as any reader of it could; one
field at any depth is changed, and all lengths around it are written anew.
"""

import random
from dataclasses import dataclass
from typing import Final

from tests.hostile.strokes import BAD_UTF8, ODD_NUMBERS

_DEEP: Final = (3, 50, 99, 101, 1000)
"""Levels; protobuf's own limit is 100."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field as it lies in the bytes."""

    number: int
    wire: int
    value: int | bytes


def varint(number: int, *, bytes_more: int = 0) -> bytes:
    """Encode a number with ``bytes_more`` bytes more than it needs."""
    out = bytearray()
    while number > 0x7F or bytes_more > 0:
        if number <= 0x7F:
            bytes_more -= 1
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int] | None:
    number = 0
    for shift, byte in enumerate(data[at : at + 10]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, at + shift + 1
    return None


def fields_of(data: bytes) -> list[Field] | None:
    """Return the fields of a message; None where the bytes are none."""
    found, at = [], 0
    while at < len(data):
        key = read_varint(data, at)
        if key is None or key[0] >> 3 == 0:
            return None
        number, wire, at = key[0] >> 3, key[0] & 7, key[1]
        value: int | bytes
        if wire == 0:
            told = read_varint(data, at)
            if told is None:
                return None
            value, at = told
        elif wire == 2:
            told = read_varint(data, at)
            if told is None or told[1] + told[0] > len(data):
                return None
            value, at = data[told[1] : told[1] + told[0]], told[1] + told[0]
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
            if at > len(data):
                return None
        else:
            return None
        found.append(Field(number, wire, value))
    return found


def encoded(field: Field) -> bytes:
    key = varint(field.number << 3 | field.wire)
    if isinstance(field.value, int):
        return key + varint(field.value)
    return key + (varint(len(field.value)) if field.wire == 2 else b"") + field.value


def damaged_message(data: bytes, source: random.Random) -> bytes:
    for _ in range(source.choice((1, 1, 2))):
        data = _changed(data, source)
    return data


def _changed(data: bytes, source: random.Random) -> bytes:
    fields = fields_of(data)
    if not fields:
        return data + source.choice(BAD_UTF8)
    at = source.randrange(len(fields))
    field = fields[at]
    if field.wire == 2 and isinstance(field.value, bytes) and source.random() < 0.7:
        inner = fields_of(field.value)
        if inner and source.random() < 0.9:
            fields[at] = Field(field.number, 2, _changed(field.value, source))
            return b"".join(map(encoded, fields))
    return b"".join(_rearranged(field, at, list(map(encoded, fields)), source))


def _rearranged(field: Field, at: int, raw: list[bytes], source: random.Random) -> list[bytes]:
    match source.randrange(9):
        case 0:
            raw.insert(source.randint(0, len(raw)), raw[at])
        case 1:
            del raw[at]
        case 2:
            source.shuffle(raw)
        case 3:
            raw[at] *= source.choice((2, 100, 2000))
        case 4:
            raw[at] = nested(field, source.choice(_DEEP))
        case 5:
            raw[at] = _lying(field, source)
        case 6:
            wire = source.choice((0, 1, 2, 3, 4, 5, 6, 7))
            raw[at] = varint(field.number << 3 | wire) + raw[at][1:]
        case 7:
            raw.append(encoded(Field(source.choice((1, 15, 16, 100, 2**29 - 1)), 2, b"x" * 40)))
        case _:
            raw[at] = _odd(field, source)
    return raw


def nested(field: Field, levels: int) -> bytes:
    value = encoded(field)
    for _ in range(levels):
        value = encoded(Field(field.number, 2, value))
    return value


def _lying(field: Field, source: random.Random) -> bytes:
    value = field.value if isinstance(field.value, bytes) else b""
    return varint(field.number << 3 | 2) + varint(source.choice(ODD_NUMBERS)) + value


def _odd(field: Field, source: random.Random) -> bytes:
    """Encode the field with a value that its sender would not write."""
    if isinstance(field.value, int):
        key = varint(field.number << 3)
        return key + varint(source.choice(ODD_NUMBERS), bytes_more=source.choice((0, 0, 3, 9, 12)))
    if field.wire != 2:
        return encoded(Field(field.number, field.wire, source.randbytes(len(field.value))))
    value = source.choice((
        b"", field.value + source.choice(BAD_UTF8), b"\0", b"../" * 9, b"\n\x1b[2J", b"%s{0}$(id)",
        b"x" * source.choice((255, 256, 5000, 60_000)), "é\u202e\U0001f600".encode() * 20,
        source.randbytes(16),
    ))  # fmt: skip
    return encoded(Field(field.number, 2, value))
