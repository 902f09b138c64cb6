"""Segment files made for tests, and where the real ones are."""

from collections.abc import Iterable, Sequence

import pytest

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import encode
from namenode_sim.edits.file_header import header_bytes
from namenode_sim.edits.values import Block, Permission, RpcIds

FRAMED, OLD = -65, -55
"""A layout whose frames have a length, and the last one without."""
LAYOUTS = pytest.mark.parametrize("layout", [FRAMED, OLD], ids=["framed", "old"])

PERMISSION = Permission("hdfs", "supergroup", 0o644)
IDS = RpcIds(bytes(range(16)), 7)

SMALL: Sequence[ops.Op] = (
    ops.StartLogSegment(),
    ops.Mkdir(16386, "/d", 1, 1, PERMISSION),
    ops.Add(16387, "/d/f", 3, 1, 1, 128, (), PERMISSION, client_name="c", rpc=IDS),
    ops.Close(0, "/d/f", 3, 1, 1, 128, (Block(1, 2, 3),), PERMISSION),
    ops.Delete("/d/f", 9, IDS),
    ops.EndLogSegment(),
)


def frames(written: Iterable[ops.Op], *, first: int = 1, layout: int = -65) -> list[bytes]:
    return [encode(op, TxId(first + n), layout) for n, op in enumerate(written)]


def segment_bytes(written: Iterable[ops.Op] = SMALL, *, first: int = 1, layout: int = -65) -> bytes:
    return header_bytes(layout) + b"".join(frames(written, first=first, layout=layout))
