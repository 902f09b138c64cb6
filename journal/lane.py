"""The bytes of a write lane: one writer's batches and heartbeats on a connection of their own.

A lane carries two messages of ``journal.proto`` in fewer bytes and calls, and nothing else differs:
docs/reference/journal-node.md#write-lanes.  All numbers are in network order.

Pure.
"""

import struct
from typing import Final, Protocol

from ha.record import dataclass

MAGIC: Final = b"nnhalane"
VERSION: Final = 1
KEY_BYTES: Final = 16
NONE: Final = -1
"""Stands for a number that is not given."""

_HELLO: Final = struct.Struct(f">8sB{KEY_BYTES}sqH")
"""Magic, version, key, namespace id, bytes of the journal's id, which follows."""
HELLO_BYTES: Final = _HELLO.size
WELCOME: Final = b"\x01"

LENGTH_BYTES: Final = 4
HEADER: Final = struct.Struct(">IqqqqqqI")
"""Bytes that follow this number; serial, epoch, committed, read lease in microseconds, segment's
first edit, first edit, count.  A count of 0 is a heartbeat; a batch's records follow."""
HEADER_BYTES: Final = HEADER.size
LEAST_LENGTH: Final = HEADER_BYTES - LENGTH_BYTES

ANSWER: Final = struct.Struct(">Iq")
"""Bytes that follow this number; serial.  A Refusal follows where the answer is no."""
ANSWER_BYTES: Final = ANSWER.size
SERIAL_BYTES: Final = ANSWER_BYTES - LENGTH_BYTES
MOST_ANSWER_BYTES: Final = 64 * 1024
"""A refusal's message is short; anything longer is no answer."""


class NoLane(Exception):
    """What was received is not what begins a lane, or goes over one."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Where a node process takes lanes, and what each begins with."""

    port: int
    key: bytes


@dataclass(frozen=True, slots=True)
class Hello:
    """The beginning of a lane, which says what is the same in all of its messages."""

    key: bytes
    journal_id: str
    namespace_id: int | None


def hello_bytes(hello: Hello) -> bytes:
    named = hello.journal_id.encode()
    space = NONE if hello.namespace_id is None else hello.namespace_id
    return _HELLO.pack(MAGIC, VERSION, hello.key, space, len(named)) + named


def rest_of_hello(head: bytes) -> int:
    """Return how many bytes follow the first ones of a hello.

    Raises:
        NoLane: it is no hello, or one of another version.
    """
    magic, version, _, _, size = _HELLO.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise NoLane(f"it begins with {magic!r} and version {version}")
    return int(size)


def hello_of(head: bytes, rest: bytes) -> Hello:
    """Decode a received hello; ``rest`` is as long as ``rest_of_hello`` says."""
    _, _, key, space, _ = _HELLO.unpack(head)
    try:
        named = rest.decode()
    except UnicodeDecodeError:
        raise NoLane("the journal's id is no text") from None
    return Hello(key, named, None if space == NONE else space)


class TakenLanes(Protocol):
    """Where this process takes write lanes."""

    @property
    def offer(self) -> Offer:
        """What writers are offered: the port and the key."""

    def open_to(self, journal_id: str) -> int:
        """Return how many lanes a journal has."""
