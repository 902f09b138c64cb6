"""Bytes and frames of ops, put together without the product's codec."""

from collections.abc import Callable
from struct import Struct
from typing import Any
from zlib import crc32

from journal.model import TxId
from namenode_sim.edits.values import RpcIds

Write = Callable[[Any], bytes]
Read = Callable[[bytes, int], tuple[Any, ...]]

TXID = TxId(7)
i8, i16, u16, i32, i64 = (Struct(form).pack for form in (">b", ">h", ">H", ">i", ">q"))
LEAST, GREATEST = -(2**63), 2**63 - 1
"""The least and the greatest number of 64 bits."""
CALL = RpcIds(bytes(range(16)), 7)
CALLED = i16(16) + bytes(range(16)) + i32(7)
NO_CALL = i16(0) + i32(-2)


def text(content: str) -> bytes:
    """Return a string with its length in two bytes."""
    return len(content).to_bytes(2, "big") + content.encode()


def framed(opcode: int, body: bytes, layout: int = -67, *, txid: int = TXID) -> bytes:
    """Return a frame with a right length, where the layout has one, and a right checksum."""
    length = i32(12 + len(body)) if layout <= -56 else b""
    return sealed(bytes((opcode,)) + length + i64(txid) + body)


def sealed(head: bytes) -> bytes:
    return head + crc32(head).to_bytes(4, "big")


def belong_together(write: Write, read: Read, content: Any, written: bytes) -> None:  # noqa: ANN401
    assert write(content) == written
    for behind in (b"", b"x" * 300):
        assert read(b"x" + written + behind, 1) == (content, 1 + len(written))
