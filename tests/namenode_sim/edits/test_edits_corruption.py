"""The corruption table: every bit of a small segment flipped, one at a time."""

from pathlib import Path

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.recovery import Skipped, salvage
from namenode_sim.edits.segment_file import read_segment
from namenode_sim.edits.values import StorageType, XAttr, XAttrNamespace
from tests.namenode_sim.edits.segments import IDS, SMALL, segment_bytes

OPS: tuple[ops.Op, ...] = (
    *SMALL[:-1],
    ops.CreateSnapshot("/d", "s", None, IDS),
    ops.SetXAttr("/d", (XAttr(XAttrNamespace.USER, "a", b"1"),), IDS),
    ops.SetQuotaByStorageType("/d", StorageType.SSD, 5),
    SMALL[-1],
)
ORIGINAL = list(enumerate(OPS, start=1))
PADDING = 8
LAYOUTS = (-56, -60, -63, -65)
"""Each has neighbours, one flipped bit away, with other fields."""


def _flipped(data: bytes, position: int, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[position] ^= 1 << bit
    return bytes(damaged)


def _read(path: Path) -> tuple[list[tuple[int, ops.Op]], EditsError | None]:
    found: list[tuple[int, ops.Op]] = []
    try:
        found.extend(read_segment(path))  # extend keeps what came before an error
    except EditsError as problem:
        return found, problem
    return found, None


@pytest.mark.parametrize(("layout", "finalized"), [*((n, False) for n in LAYOUTS), (-65, True)])
def test_a_flipped_bit_is_detected_or_harmless(
    tmp_path: Path, layout: int, finalized: bool
) -> None:
    whole = segment_bytes(OPS, layout=layout)
    data = whole + b"\xff" * PADDING
    path = tmp_path / (f"edits_1-{len(OPS)}" if finalized else "edits_inprogress_1")
    undetected = set()
    bits = range(8) if layout == -65 and not finalized else (0, 4)
    for position in range(len(data)):
        for bit in bits:
            path.write_bytes(_flipped(data, position, bit))
            found, problem = _read(path)
            assert found == ORIGINAL[: len(found)], (position, bit)
            if problem is None:
                assert len(found) == len(OPS)
                undetected.add(position)
                continue
            assert (problem.file, problem.txid) == (str(path), len(found) + 1)
            assert problem.offset is not None
            # Another layout in the header shows at the first op that has other fields there.
            assert problem.offset <= position or position < 4
            for fact in (str(path), f"offset {problem.offset}", f"transaction {problem.txid}"):
                assert fact in str(problem)
    # Harmless: a layout that has the same fields for these ops, and what follows the last
    # transaction that a finalized file's name promises.
    assert undetected <= {3} | (set(range(len(whole), len(data))) if finalized else set())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_recovery_loses_at_most_the_op_with_the_flipped_bit(tmp_path: Path, layout: int) -> None:
    data = segment_bytes(OPS, layout=layout) + b"\xff" * PADDING
    path = tmp_path / "edits_inprogress_1"
    for position in range(8, len(data)):
        for bit in (1, 7):
            path.write_bytes(_flipped(data, position, bit))
            found = list(salvage(path))
            kept = [item for item in found if not isinstance(item, Skipped)]
            skipped = [item for item in found if isinstance(item, Skipped)]
            assert set(kept) <= set(ORIGINAL)
            assert len(kept) >= len(OPS) - 1
            assert len(skipped) == 1
            assert skipped[0].offset <= position < skipped[0].offset + skipped[0].length
