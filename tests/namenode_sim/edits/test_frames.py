"""One frame: what holds it together, how long it may be, and what a reader refuses to believe."""

from dataclasses import replace

import pytest

from journal.frame import MAX_OP_BYTES
from journal.model import TxId
from namenode_sim.edits import ops, values
from namenode_sim.edits.codec import decode, decode_all, encode
from namenode_sim.edits.errors import EditsError
from tests.namenode_sim.edits.framed_bytes import NO_CALL, TXID, framed, i16, i32, i64, sealed, text
from tests.namenode_sim.edits.segments import FRAMED, LAYOUTS, OLD

BEFORE = b"before"


def refused(data: bytes, layout: int, reason: str) -> EditsError:
    """Return the refusal of what stands behind other bytes; it says where."""
    with pytest.raises(EditsError, match=reason) as refusal:
        decode(BEFORE + data, len(BEFORE), layout)
    assert refusal.value.offset == len(BEFORE)
    return refusal.value


SMALL = framed(ops.AllowSnapshot.opcode, text("/d"))
SMALL_OLD = framed(ops.AllowSnapshot.opcode, text("/d"), OLD)


@LAYOUTS
@pytest.mark.parametrize("txid", [0, 1, 2**63 - 1])
def test_a_transaction_has_any_number_that_is_not_negative(layout: int, txid: int) -> None:
    op = ops.AllowSnapshot("/d")
    frame = framed(op.opcode, text("/d"), layout, txid=txid)
    assert encode(op, TxId(txid), layout) == frame
    assert decode(BEFORE + frame + b"behind", 6, layout) == (txid, op, 6 + len(frame))
    negative = framed(op.opcode, text("/d"), layout, txid=-1)
    assert refused(negative, layout, "transaction id is negative").txid == -1


TORN = {
    "nothing": (b"", FRAMED, "cut short: 0 bytes are left"),
    "nothing without a length": (b"", OLD, "cut short: 0 bytes are left"),
    "a part of the head": (SMALL[:12], FRAMED, "cut short: 12 bytes are left"),
    "a part of the head without a length": (SMALL_OLD[:8], OLD, "cut short: 8 bytes are left"),
    "only the head": (SMALL[:13], FRAMED, "claims 16 bytes; 13 are left"),
    "all but a byte": (SMALL[:-1], FRAMED, "claims 16 bytes; 20 are left"),
    "a length that holds no transaction": (
        sealed(SMALL[:1] + i32(11) + SMALL[5:12]), FRAMED, "claims 11 bytes",
    ),
    "a length of less than nothing": (
        SMALL[:1] + i32(-1) + SMALL[5:], FRAMED, "claims -1 bytes; 21 are left",
    ),
    "a length beyond the end": (
        SMALL[:1] + i32(17) + SMALL[5:], FRAMED, "claims 17 bytes; 21 are left",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "layout", "reason"), TORN.values(), ids=TORN)
def test_a_frame_that_is_not_whole_names_no_transaction(
    data: bytes, layout: int, reason: str
) -> None:
    assert refused(data, layout, reason).txid is None


WRONG = {
    "a wrong checksum": (SMALL[:-1] + bytes((SMALL[-1] ^ 1,)), FRAMED, "checksum is wrong"),
    "a wrong checksum without a length": (
        SMALL_OLD[:-1] + bytes((SMALL_OLD[-1] ^ 1,)), OLD, "checksum is wrong",
    ),
    "an unknown op": (framed(53, b""), FRAMED, "opcode 53 is unknown"),
    "an unknown op without a length": (framed(53, b"", OLD), OLD, "opcode 53 is unknown"),
    "an op that nobody reads": (framed(6, b""), FRAMED, "opcode 6 is unknown"),
    "another op that nobody reads": (framed(5, b""), FRAMED, "opcode 5 is unknown"),
    "the greatest opcode": (framed(255, b""), FRAMED, "opcode 255 is unknown"),
    "a byte too many": (
        framed(29, text("/d") + b"x"), FRAMED, "fields take 4 bytes, its frame has 5",
    ),
    "a byte too few": (framed(29, text("/d")[:-1]), FRAMED, "malformed at layout -65: .* 2 byt"),
    "a byte too few without a length": (
        SMALL_OLD[:-5], OLD, "malformed at layout -55: .* 2 bytes, but 1 are left",
    ),
    "no checksum without a length": (SMALL_OLD[:-4], OLD, "opcode 29 is malformed at layout -55"),
    "a snapshot with a byte too many": (
        framed(26, text("/d") + text("s") + NO_CALL + b"x"), FRAMED,
        "opcode 26 is malformed at layout -65: its fields take 13 bytes, its frame has 14",
    ),
    "a snapshot with its time and a byte too many": (
        framed(26, text("/d") + text("s") + i64(1) + NO_CALL + b"x", FRAMED), FRAMED,
        "opcode 26 is malformed at layout -65",
    ),
    "a snapshot whose call is cut": (
        framed(26, text("/d") + text("s") + NO_CALL[:-1]), FRAMED,
        "0 bytes, but 3 are left",
    ),
    "a text that is none": (framed(29, b"\x00\x01\xff"), FRAMED, "malformed"),
    "a message that is none": (framed(40, b"\x01\xff"), FRAMED, "malformed"),
    "no body": (framed(29, b""), FRAMED, "malformed at layout -65"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "layout", "reason"), WRONG.values(), ids=WRONG)
def test_what_a_whole_frame_holds_is_refused_with_its_transaction(
    data: bytes, layout: int, reason: str
) -> None:
    assert refused(data, layout, reason).txid == TXID


@pytest.mark.parametrize("layout", [-46, -68, 0, 65])
def test_an_unknown_layout_is_refused(layout: int) -> None:
    with pytest.raises(EditsError, match=f"{layout} is unknown; known are -47 to -67"):
        decode(SMALL, 0, layout)
    with pytest.raises(EditsError, match=f"{layout} is unknown"):
        list(decode_all(b"", layout))


LONGEST = {FRAMED: 64696, OLD: 64700}
"""Behind 799 paths of the greatest length, the length of the last one that fits into 50 MiB."""
TOO_LONG = {FRAMED: "a frame claims 52428796 bytes; 52428801 are left", OLD: "checksum is wrong"}


def longest(layout: int) -> ops.ConcatDelete:
    """Return an op that takes as many bytes as a frame may have."""
    return ops.ConcatDelete("/t", (*("n" * 0xFFFF,) * 799, "n" * LONGEST[layout]), 1)


@LAYOUTS
def test_no_frame_of_more_than_50_mib_is_written(layout: int) -> None:
    op = longest(layout)
    assert len(encode(op, TXID, layout)) == MAX_OP_BYTES
    with pytest.raises(EditsError, match="no reader takes more than 52428800") as refusal:
        encode(replace(op, rpc=values.RpcIds(b"x", -2)), TXID, layout)
    assert refusal.value.txid == TXID


@LAYOUTS
def test_no_frame_of_more_than_50_mib_is_read(layout: int) -> None:
    op = longest(layout)
    body = text("/t") + i32(800) + b"".join(map(text, op.sources)) + i64(1)
    frame = framed(op.opcode, body + NO_CALL, layout)
    assert decode(BEFORE + frame, 6, layout)[1:] == (op, 6 + MAX_OP_BYTES)
    longer = framed(op.opcode, body + i16(1) + b"x" + i32(-2), layout)
    with pytest.raises(EditsError, match=TOO_LONG[layout]):
        decode(BEFORE + longer, 6, layout)


UNFIT: dict[str, ops.Op] = {
    "a number of 17 bits": ops.SetReplication("/f", 2**15),
    "a number of 65 bits": ops.Rename("/a", "/b", 2**63),
    "a mode of less than nothing": ops.SetPermissions("/f", -1),
    "a policy of nine bits": ops.SetStoragePolicy("/f", 128),
    "a name that is no text": ops.SetXAttr(
        "/f", (values.XAttr(values.XAttrNamespace.USER, 5, b""),)  # type: ignore[arg-type]
    ),
    "an attribute without a name": ops.SetXAttr(
        "/f", (values.XAttr(values.XAttrNamespace.USER, None, b""),)  # type: ignore[arg-type]
    ),
    "an owner that is no text": ops.Mkdir(1, "/d", 1, 1, values.Permission("\ud800", "g", 0)),
    "a sequence number of 33 bits": ops.CancelDelegationToken(
        values.DelegationTokenIdentifier("o", "r", "u", 1, 2, 2**31, 3)
    ),
    "a time that is no number": ops.Delete("/f", "now"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("case", UNFIT)
def test_an_op_that_does_not_fit_is_not_written(case: str) -> None:
    op = UNFIT[case]
    with pytest.raises(EditsError, match=f"{type(op).__name__} cannot be written") as refusal:
        encode(op, TXID)
    assert refusal.value.txid == TXID
