"""Codecs of ops as lists of their fields: what is read in this order is written in this order.

For ops whose fields are the same in every layout, and which are rare: an op that each write logs
has a reader and a writer of its own (``file_codec``, ``tree_codec``), which are faster.
"""

from collections.abc import Callable
from dataclasses import fields
from struct import Struct
from typing import Any, Final

from ha.invariant import ensure
from ha.record import dataclass
from hadoop import writable
from namenode_sim.edits import ops, primitives
from namenode_sim.edits.values import Block

Read = tuple[ops.Op, int]
Reader = Callable[[bytes, int, int], Read]
"""Takes a frame, the position of a body in it, and the layout version."""

Writer = Callable[[Any, int], bytes]
"""Takes an op and the layout version, and returns the body."""


@dataclass(frozen=True, slots=True)
class Field:
    """One value of an op: how it is read from a frame at a position, and how it is written."""

    read: Callable[[bytes, int], tuple[Any, int]]
    write: Callable[[Any], bytes]


def number(form: str) -> Field:
    """Return the field of one number, in struct's words."""
    packed = Struct(form)

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        return packed.unpack_from(data, pos)[0], pos + packed.size

    return Field(read, packed.pack)


I8: Final = number(">b")
I16: Final = number(">h")
I32: Final = number(">i")
I64: Final = number(">q")
VINT: Final = Field(writable.read_vint, writable.vint)
VLONG: Final = Field(writable.read_vlong, writable.vlong)
STRING: Final = Field(primitives.read_string, primitives.string)
TEXT: Final = Field(writable.read_text, writable.text)
MODE: Final = Field(primitives.read_mode, primitives.mode)
PERMISSION: Final = Field(primitives.read_permission, primitives.permission)
RPC_IDS: Final = Field(primitives.read_rpc_ids, primitives.rpc_ids)
COMPACT_BLOCKS: Final = Field(primitives.read_compact_blocks, primitives.compact_blocks)


def _read_one_block(data: bytes, pos: int) -> tuple[Block | None, int]:
    found, pos = primitives.read_compact_blocks(data, pos)
    if len(found) > 1:
        raise ValueError(f"a file is cut inside {len(found)} blocks; at most one belongs here")
    return (found[0] if found else None), pos


ONE_BLOCK: Final = Field(
    _read_one_block, lambda block: primitives.compact_blocks(() if block is None else (block,))
)
"""A block or none, as compact blocks."""


def record_of(kind: Callable[..., Any], *parts: Field) -> Field:
    """Return the field of a dataclass: its fields, in the order of their definition."""
    names = _names_of(kind)

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        found = []
        for part in parts:
            value, pos = part.read(data, pos)
            found.append(value)
        return kind(*found), pos

    def write(value: Any) -> bytes:  # noqa: ANN401 - of the dataclass that was given
        return b"".join(
            part.write(getattr(value, name)) for name, part in zip(names, parts, strict=True)
        )

    ensure(len(names) == len(parts), "each field of a record is coded")
    return Field(read, write)


def flagged_record_of(kind: Callable[..., Any], first: Field, *optional: Field) -> Field:
    """Return the field of a dataclass whose fields but the first may be None.

    An ``i32`` behind the first has a bit for each other one that is there, the lowest first.
    """
    lead, *names = _names_of(kind)
    known = (1 << len(optional)) - 1

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        head, pos = first.read(data, pos)
        flags, pos = primitives.read_i32(data, pos)
        if flags & ~known:
            raise ValueError(f"a {kind.__name__} has unknown flags: {flags:#x}")
        found: list[Any] = []
        for bit, part in enumerate(optional):
            value = None
            if flags >> bit & 1:
                value, pos = part.read(data, pos)
            found.append(value)
        return kind(head, *found), pos

    def write(value: Any) -> bytes:  # noqa: ANN401 - of the dataclass that was given
        flags, parts = 0, []
        for bit, (name, part) in enumerate(zip(names, optional, strict=True)):
            content = getattr(value, name)
            if content is not None:
                flags |= 1 << bit
                parts.append(part.write(content))
        return first.write(getattr(value, lead)) + primitives.I32.pack(flags) + b"".join(parts)

    ensure(len(names) == len(optional), "each field of a record is coded")
    return Field(read, write)


def list_of(part: Field, smallest_bytes: int, most: int, name: str) -> Field:
    """Return the field of a tuple: an ``i32`` count, and that many of ``part``.

    ``smallest_bytes`` is what one of them takes at least: a false count is refused before anything
    is allocated for it.
    """

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        count, pos = primitives.read_i32(data, pos)
        if not 0 <= count <= most or count * smallest_bytes > len(data) - pos:
            raise ValueError(f"{count} {name}, but {len(data) - pos} bytes are left")
        found = []
        for _ in range(count):
            value, pos = part.read(data, pos)
            found.append(value)
        return tuple(found), pos

    return Field(
        read, lambda found: primitives.I32.pack(len(found)) + b"".join(map(part.write, found))
    )


def codec_of(op: type[ops.Op], *parts: Field) -> tuple[Reader, Writer]:
    """Return reader and writer of an op: its fields, in the order of their definition."""
    field = record_of(op, *parts)
    return (lambda data, pos, _layout: field.read(data, pos)), (lambda op, _: field.write(op))


def _names_of(kind: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))  # type: ignore[arg-type] # a dataclass
