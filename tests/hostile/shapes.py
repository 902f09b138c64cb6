"""Hostile inputs by the form of their seeds: raw bytes, messages, conversations, texts."""

import json
import random
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Final, assert_never

from tests.hostile.messages import damaged_message, read_varint, varint
from tests.hostile.strokes import MAX_INPUT_BYTES, ODD_NUMBERS, damaged

PREAMBLE_BYTES: Final = 7
_LENGTH_BYTES: Final = 4


class Shape(Enum):
    """The form of a target's sound inputs, next to which any bytes are fed to it, too."""

    BYTES = auto()
    MESSAGE = auto()
    """Protobuf; what stands before a message is ``Target.prefix`` bytes long."""
    CONVERSATION = auto()
    """Hadoop RPC: a preamble, then frames of delimited messages."""
    LINES = auto()
    JSON = auto()


def hostile(
    seeds: Sequence[bytes], source: random.Random, shape: Shape = Shape.BYTES, prefix: int = 0
) -> bytes:
    """Return an input that an enemy may give a parser; ``prefix`` bytes of a seed stay."""
    if not seeds or source.random() < 0.3:
        return damaged(seeds, source)
    seed = source.choice(seeds)
    return (seed[:prefix] + _of_shape(shape)(seed[prefix:], source))[:MAX_INPUT_BYTES]


def _of_shape(shape: Shape) -> Callable[[bytes, random.Random], bytes]:
    match shape:
        case Shape.BYTES:
            return lambda seed, source: damaged([seed], source)
        case Shape.MESSAGE:
            return damaged_message
        case Shape.CONVERSATION:
            return _conversation
        case Shape.LINES:
            return _lines
        case Shape.JSON:
            return _json
    assert_never(shape)


def _frames(data: bytes) -> list[bytes]:
    """Return what stands behind each length."""
    found, at = [], 0
    while at + _LENGTH_BYTES <= len(data):
        size = int.from_bytes(data[at : at + _LENGTH_BYTES], "big")
        found.append(data[at + _LENGTH_BYTES : at + _LENGTH_BYTES + size])
        at += _LENGTH_BYTES + size
    return found


def _delimited(frame: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(frame) and (told := read_varint(frame, at)) is not None:
        found.append(frame[told[1] : told[1] + told[0]])
        at = told[1] + told[0]
    return found


def framed(messages: Sequence[bytes]) -> bytes:
    body = b"".join(varint(len(one)) + one for one in messages)
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def _conversation(data: bytes, source: random.Random) -> bytes:
    preamble, frames = data[:PREAMBLE_BYTES], _frames(data[PREAMBLE_BYTES:])
    if not frames:
        return damaged([data], source)
    whole = [len(frame).to_bytes(_LENGTH_BYTES, "big") + frame for frame in frames]
    at = source.randrange(len(frames))
    match source.randrange(8):
        case 0:
            preamble = damaged([preamble], source)
        case 1:
            source.shuffle(whole)
        case 2:
            whole.insert(source.randint(0, len(whole)), whole[at])
        case 3:
            whole[at] *= source.choice((2, 50))
        case 4:
            number = source.choice(ODD_NUMBERS) % (1 << 32)
            whole[at] = number.to_bytes(_LENGTH_BYTES, "big") + frames[at]
        case _:
            parts = _delimited(frames[at]) or [b""]
            which = source.randrange(len(parts))
            parts[which] = damaged_message(parts[which], source)
            whole[at] = framed(parts)
    return preamble + b"".join(whole)


_ODD_HEADERS: Final = (
    b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Content-Length: 5\r\n"
    b"Content-Length: 6", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked, chunked",
    b"Expect: 100-continue", b"Upgrade: h2c", b"Connection: upgrade, close", b"Host: a\tb",
    b"Cookie: " + b"a=b;" * 900, b"X: \xff", b"X: \xed\xa0\x80", b"\x80: x", b": x",
)  # fmt: skip


def _lines(data: bytes, source: random.Random) -> bytes:
    lines = data.split(b"\r\n")
    at = source.randrange(len(lines))
    match source.randrange(9):
        case 0:
            lines.insert(at, lines[source.randrange(len(lines))])
        case 1:
            source.shuffle(lines)
        case 2:
            lines[at] *= source.choice((2, 400))
        case 3:
            lines[at:at] = [b"X-%d: y" % number for number in range(source.choice((3, 300)))]
        case 4:
            lines[at] = lines[at].replace(b":", source.choice((b" :", b"", b":\0", b"::", b":\n ")))
        case 5:
            lines[at:at] = [source.choice(_ODD_HEADERS)]
        case 6:
            return source.choice((b"\n", b"\r", b"\r\n \t")).join(lines)
        case 7:
            lines[0] = damaged([lines[0]], source)
        case _:
            lines[at] = damaged([lines[at]], source)
    return b"\r\n".join(lines)


_ODD_JSON: Final = (
    "null", "true", "-1", "0", "1e400", "NaN", "-Infinity", "9" * 30, "9" * 5000, '""', '"\\ud800"',
    '"\\u0000\\u001b"', '"9999-12-31T23:59:59-05:00"', '"0001-01-01T00:00:00+14:00"', "[]", "{}",
    "[[]]", '{"a":1,"a":2}', '"' + "x" * 3000 + '"',
)  # fmt: skip


def _json(data: bytes, source: random.Random) -> bytes:
    """Replace one value, or nest it deeper than any reader follows."""
    levels = source.choice((0, 0, 0, 0, 90, source.randint(900, 1000), 5000))
    odd = source.choice(_ODD_JSON)
    if levels:
        odd = "[" * levels + "]" * levels if source.random() < 0.5 else nested_object(levels)
    try:
        found = json.loads(data)
    except ValueError:
        return damaged([data], source)
    if not isinstance(found, dict) or not found or source.random() < 0.1:
        return odd.encode("utf-8", "surrogatepass")
    parts = {key: json.dumps(value) for key, value in found.items()}
    key = source.choice(sorted(parts))
    if source.random() < 0.2:
        del parts[key]
    elif isinstance(found[key], dict | list) and found[key] and source.random() < 0.5:
        inner: Any = found[key] if isinstance(found[key], dict) else found[key][0]
        changed = _json(json.dumps(inner).encode(), source).decode("utf-8", "replace")
        parts[key] = changed if isinstance(found[key], dict) else f"[{changed}]"
    else:
        parts[key] = odd
    return ("{" + ",".join(f'"{name}":{value}' for name, value in parts.items()) + "}").encode()


def nested_object(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels
