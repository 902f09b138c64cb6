"""A place in a segment file: what is read to get behind an op, and what stays where one is bad."""

from struct import Struct

import pytest

from journal.frame import MAX_OP_BYTES
from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.file_header import Header, header_bytes, parse_header
from namenode_sim.edits.segment_file import NamedRange, named_range
from namenode_sim.edits.values import XAttr, XAttrNamespace
from tests.namenode_sim.edits.counted import Counted, opened
from tests.namenode_sim.edits.segments import SMALL, frames, segment_bytes

MIB = 1 << 20
MARK = ops.StartLogSegment()


def holding(value_bytes: int) -> ops.Op:
    return ops.SetXAttr("/f", (XAttr(XAttrNamespace.USER, "a", bytes(value_bytes)),))


HEADERS = {layout: 4 if layout > -50 else 8 for layout in range(-47, -68, -1)}


@pytest.mark.parametrize("layout", HEADERS)
def test_a_header_has_flags_from_layout_50_on(layout: int) -> None:
    written = layout.to_bytes(4, "big", signed=True) + bytes(HEADERS[layout] - 4)
    assert header_bytes(layout) == written
    assert parse_header(written) == Header(layout, HEADERS[layout])
    assert parse_header(written + b"more") == Header(layout, HEADERS[layout])
    for cut in range(len(written)):
        with pytest.raises(EditsError, match=f"inside its header .{cut} bytes") as refusal:
            parse_header(written[:cut])
        assert refusal.value.offset == 0


NAMES = {
    "edits_1-6": NamedRange(TxId(1), TxId(6)),
    "edits_0000000000000000010-0000000000000000062": NamedRange(TxId(10), TxId(62)),
    "edits_1-6.trash": NamedRange(TxId(1), TxId(6)),
    "edits_inprogress_7": NamedRange(TxId(7), None),
    "edits_inprogress_0000000000000000007.stale": NamedRange(TxId(7), None),
    "edits_inprogress_7-9": None,
    "edits_7": None,
    "edits_1-6.a.b": None,
    "edits_1-": None,
    "old_edits_1-6": None,
    "editsStored": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_segment_has_its_transactions(name: str) -> None:
    assert named_range(name) == NAMES[name]


def test_a_bad_header_is_named_with_what_was_due() -> None:
    with pytest.raises(EditsError, match="version -46") as refusal:
        opened(Struct(">ii").pack(-46, 0), first=5)
    assert (refusal.value.file, refusal.value.offset, refusal.value.txid) == ("edits", 0, 5)


@pytest.mark.parametrize("layout", [-47, -55, -56, -65])
@pytest.mark.parametrize("first", [5, None], ids=["numbered", "of any number"])
def test_the_place_moves_behind_each_op(layout: int, first: int | None) -> None:
    data = segment_bytes(first=5, layout=layout)
    segment = opened(data, first=first)
    place = len(header_bytes(layout))
    assert (segment.layout, segment.size) == (layout, len(data))
    assert (segment.offset, segment.expected) == (place, first)
    for txid, frame in enumerate(frames(SMALL, first=5, layout=layout), start=5):
        assert segment.next() == (txid, SMALL[txid - 5])
        assert segment.frame(place) == frame
        place += len(frame)
        assert (segment.offset, segment.expected) == (place, txid + 1)
    assert segment.next() is None
    assert (segment.offset, segment.expected) == (place, 5 + len(SMALL))


def test_an_op_of_another_number_is_refused_where_it_stands() -> None:
    data = segment_bytes(SMALL[:2]) + b"".join(frames(SMALL[2:], first=9))
    segment = opened(data)
    with pytest.raises(EditsError, match="transaction 9 stands where 3 belongs") as refusal:
        list(segment.ops())
    place = len(segment_bytes(SMALL[:2]))
    assert (refusal.value.offset, refusal.value.txid) == (place, 3)
    assert (segment.offset, segment.expected) == (place, 3)
    assert [txid for txid, _ in segment.ops(numbered=False)] == [9, 10, 11, 12]
    found = opened(data, first=None).ops(numbered=False)
    assert [txid for txid, _ in found] == [1, 2, 9, 10, 11, 12]


SAID = {
    # due, in the frame: the transaction that is named, and whether the frame's is shown too
    "the one that is due": (5, 5, 5, False),
    "another than is due": (5, 8, 5, True),
    "any": (None, 8, 8, False),
    "the first of all, where another is due": (5, 0, 5, True),
}


@pytest.mark.parametrize(("due", "framed", "named", "told"), SAID.values(), ids=SAID)
def test_a_bad_op_is_named_by_what_is_due(
    due: int | None, framed: int, named: int, *, told: bool
) -> None:
    frame = bytearray(frames([MARK], first=framed)[0])
    frame[-1] ^= 1
    segment = opened(segment_bytes([]) + frame, first=due)
    with pytest.raises(EditsError, match="checksum is wrong") as refusal:
        segment.next()
    assert (refusal.value.file, refusal.value.offset, refusal.value.txid) == ("edits", 8, named)
    assert (f"the frame says transaction {framed}" in refusal.value.what) == told
    assert (segment.offset, segment.expected) == (8, due)


# ---- what is read --------------------------------------------------------------------------

K16 = 1 << 14
READS: dict[str, tuple[int, list[int], list[int]]] = {
    # The layout, the sizes of the ops, and what is read; 5 MiB that are no op come behind them.
    "within the window": (-65, [100, 100], [MIB]),
    "longer than the window": (-65, [3 * MIB], [MIB, 3 * MIB]),
    "longer than the window, the first layout with lengths": (-56, [3 * MIB], [MIB, 3 * MIB]),
    "within the window, without lengths": (-55, [100, 100], [MIB, K16]),
    "longer than the window, without lengths": (
        -55, [3 * MIB], [MIB, K16, 4 * K16, 16 * K16, MIB, 4 * MIB],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("layout", "sizes", "reads"), READS.values(), ids=READS)
def test_no_more_is_read_than_an_op_needs(layout: int, sizes: list[int], reads: list[int]) -> None:
    (overhead,) = map(len, frames([holding(MIB * 2)], layout=layout))
    written = [holding(size - (overhead - MIB * 2 if size > MIB else 60)) for size in sizes]
    counted = Counted(segment_bytes(written, layout=layout) + b"\xff" * 5 * MIB)
    segment = opened(counted)
    for op in written:
        found = segment.next()
        assert found is not None
        assert found[1] == op
    assert counted.reads == reads


@pytest.mark.parametrize("left", [4 * MIB - 1, 4 * MIB, 4 * MIB + 1])
def test_a_length_beyond_the_file_costs_no_reading(left: int) -> None:
    size = 4 * MIB
    head = Struct(">Biq").pack(MARK.opcode, size - 5, 1)
    counted = Counted(segment_bytes([]) + head + bytes(left - len(head)))
    reason = "checksum is wrong" if left >= size else f"claims {size - 5} bytes; {left} are left"
    with pytest.raises(EditsError, match=reason) as refusal:
        opened(counted).next()
    assert (refusal.value.offset, refusal.value.txid) == (8, 1)
    assert counted.reads == ([MIB, size] if left >= size else [MIB])


LENGTHS = {
    "less than nothing": -1,
    "nothing": 0,
    "less than a transaction": 11,
    "above 50 MiB": 50 * MIB - 4,
    "the greatest": 2**31 - 1,
}


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_a_length_that_no_frame_has_costs_no_reading(length: int) -> None:
    head = Struct(">Biq").pack(MARK.opcode, length, 1)
    counted = Counted(segment_bytes([]) + head + bytes(60 * MIB))
    with pytest.raises(EditsError, match=f"claims {length} bytes") as refusal:
        opened(counted).next()
    assert "transaction" not in refusal.value.what
    assert counted.reads == [MIB]


def test_no_more_than_50_mib_are_read_for_one_op_without_a_length() -> None:
    op = bytes((ops.SetXAttr.opcode,)) + (1).to_bytes(8, "big")
    message = b"\x80\x80\x80\x1e"  # of 60 MiB
    counted = Counted(header_bytes(-55) + op + message + bytes(70 * MIB))
    with pytest.raises(EditsError, match="a message of 62914560 bytes"):
        opened(counted).next()
    assert max(counted.reads) == MAX_OP_BYTES


def test_the_bytes_of_an_op_that_was_just_read_are_held() -> None:
    written = [holding(MIB - 1000), holding(MIB // 3)]
    first, second = frames(written)
    counted = Counted(segment_bytes(written) + b"\xff" * 5 * MIB)
    segment = opened(counted)
    for _ in written:
        segment.next()
    reads = list(counted.reads)
    assert segment.frame(8 + len(first)) == second
    assert counted.reads == reads


@pytest.mark.parametrize("left", [1, 4, 5, 12, 16])
@pytest.mark.parametrize("held", [1, 4, 5])
def test_a_head_may_be_torn_behind_the_edge_of_what_is_held(left: int, held: int) -> None:
    around = len(segment_bytes([holding(MIB // 2)])) - MIB // 2
    data = segment_bytes([holding(MIB - held - around)])
    assert len(data) == MIB - held
    segment = opened(data + frames([MARK], first=2)[0][:left])
    assert segment.next() is not None
    with pytest.raises(EditsError, match=f" {left} (bytes )?are left") as refusal:
        segment.next()
    assert (refusal.value.offset, refusal.value.txid) == (len(data), 2)


# ---- padding -------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, MIB - 1, MIB, MIB + 1, 3 * MIB])
def test_padding_reaches_the_end_of_the_file(length: int) -> None:
    data = segment_bytes()
    segment = opened(data + b"\xff" * length)
    assert len(list(segment.ops())) == len(SMALL)
    assert segment.offset == len(data)
    assert segment.next() is None
    with pytest.raises(EditsError, match="neither a frame nor padding") as refusal:
        list(opened(data + b"\xff" * length + b"\x01").ops())
    assert (refusal.value.offset, refusal.value.txid) == (len(data), len(SMALL) + 1)


def test_a_file_whose_padding_is_cut_off_meanwhile_ends_with_its_last_op() -> None:
    data = segment_bytes([holding(3 * MIB)])
    counted = Counted(data + b"\xff" * MIB)
    segment = opened(counted)
    assert segment.next() is not None
    counted.cut(len(data))
    assert segment.next() is None
    assert (segment.offset, segment.expected) == (len(data), 2)
