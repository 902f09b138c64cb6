"""What an op's fields may leave out, how much they may hold, and what is refused."""

import pytest

from namenode_sim.edits import ops, values
from namenode_sim.edits.codec import decode, encode
from namenode_sim.edits.errors import EditsError
from tests.namenode_sim.edits.framed_bytes import (
    CALL,
    CALLED,
    GREATEST,
    LEAST,
    NO_CALL,
    TXID,
    framed,
    i16,
    i32,
    i64,
    text,
    u16,
)

DIRECTIVES = {
    "nothing": (values.CacheDirective(1), i32(0)),
    "a path": (values.CacheDirective(1, path="/f"), i32(1) + text("/f")),
    "an empty path": (values.CacheDirective(1, path=""), i32(1) + text("")),
    "a replication": (values.CacheDirective(1, replication=2), i32(2) + i16(2)),
    "no replicas": (values.CacheDirective(1, replication=0), i32(2) + i16(0)),
    "a pool": (values.CacheDirective(1, pool="p"), i32(4) + text("p")),
    "an empty pool": (values.CacheDirective(1, pool=""), i32(4) + text("")),
    "an expiration": (values.CacheDirective(1, expiration=3), i32(8) + i64(3)),
    "an expiration long ago": (values.CacheDirective(1, expiration=0), i32(8) + i64(0)),
}


def writes_and_reads(op: ops.Op, body: bytes) -> None:
    frame = framed(op.opcode, body)
    assert encode(op, TXID, -67) == frame
    assert decode(frame, 0, -67) == (TXID, op, len(frame))


@pytest.mark.parametrize(("directive", "said"), DIRECTIVES.values(), ids=DIRECTIVES)
def test_a_cache_directive_says_what_is_given(
    directive: values.CacheDirective, said: bytes
) -> None:
    writes_and_reads(ops.AddCacheDirective(directive, CALL), i64(1) + said + CALLED)


POOLS = {
    "nothing": (values.CachePool("p"), i32(0)),
    "an owner": (values.CachePool("p", owner="o"), i32(1) + text("o")),
    "no owner": (values.CachePool("p", owner=""), i32(1) + text("")),
    "a group": (values.CachePool("p", group="g"), i32(2) + text("g")),
    "no group": (values.CachePool("p", group=""), i32(2) + text("")),
    "a mode": (values.CachePool("p", mode=0o644), i32(4) + u16(0o644)),
    "no permission": (values.CachePool("p", mode=0), i32(4) + u16(0)),
    "a limit": (values.CachePool("p", limit=1), i32(8) + i64(1)),
    "a limit of nothing": (values.CachePool("p", limit=0), i32(8) + i64(0)),
    "an expiry": (values.CachePool("p", max_relative_expiry=1), i32(16) + i64(1)),
    "an expiry at once": (values.CachePool("p", max_relative_expiry=0), i32(16) + i64(0)),
    "a replication": (values.CachePool("p", default_replication=1), i32(32) + i16(1)),
    "no replicas": (values.CachePool("p", default_replication=0), i32(32) + i16(0)),
}


@pytest.mark.parametrize(("pool", "said"), POOLS.values(), ids=POOLS)
def test_a_cache_pool_says_what_is_given(pool: values.CachePool, said: bytes) -> None:
    writes_and_reads(ops.AddCachePool(pool, CALL), text("p") + said + CALLED)


NUMBERS = {
    "long ago": (
        values.DelegationTokenIdentifier("", "", "", -1, -(2**63), -1, -(2**31)),
        b"\x00" * 4 + b"\xff\x80\x7f" + b"\xff" * 8 + b"\x84\x7f" + b"\xff" * 3,
    ),
    "late": (
        values.DelegationTokenIdentifier("", "", "", 128, 2**63 - 1, 128, 2**31 - 1),
        b"\x00" * 4 + b"\x8f\x80\x88\x7f" + b"\xff" * 7 + b"\x8f\x80\x8c\x7f" + b"\xff" * 3,
    ),
}


@pytest.mark.parametrize(("token", "written"), NUMBERS.values(), ids=NUMBERS)
def test_a_token_has_dates_of_64_and_numbers_of_32_bits(
    token: values.DelegationTokenIdentifier, written: bytes
) -> None:
    writes_and_reads(ops.CancelDelegationToken(token), written)


def test_a_key_has_at_most_a_mib() -> None:
    op = ops.UpdateMasterKey(values.DelegationKey(-1, -2, bytes(2**20)))
    writes_and_reads(op, b"\xff\xfe\x8d\x10\x00\x00" + bytes(2**20))
    longer = framed(op.opcode, b"\xff\xfe\x8d\x10\x00\x01" + bytes(2**20 + 1))
    with pytest.raises(EditsError, match="a length of 1048577"):
        decode(longer, 0, -67)


def test_a_file_takes_at_most_a_mebi_of_others() -> None:
    head, tail = text("/t"), i64(1) + CALLED
    op = ops.ConcatDelete("/t", ("",) * 2**20, 1, CALL)
    assert decode(framed(op.opcode, head + i32(2**20) + bytes(2**21) + tail), 0, -67)[1] == op
    more = framed(op.opcode, head + i32(2**20 + 1) + bytes(2**21 + 2) + tail)
    with pytest.raises(EditsError, match="1048577 sources"):
        decode(more, 0, -67)


TOKEN = b"\x01o\x01r\x01u\x21\x22\x23\x24"
"""Behind the version."""
SMALL_EC = text("rs") + i32(6) + i32(3) + i32(1)
FEWEST = {
    "sources of no name": (
        ops.ConcatDelete("/t", ("", ""), 1), text("/t") + i32(2) + text("") * 2 + i64(1),
    ),
    "no sources": (ops.ConcatDelete("/t", (), 1), text("/t") + i32(0) + i64(1)),
    "no rename option": (ops.Rename("/a", "/b", 1), text("/a") + text("/b") + i64(1) + i32(0)),
    "empty policy options": (
        ops.AddErasureCodingPolicy(values.EcPolicy("rs", 6, 3, 1, (("", ""), ("", "")))),
        SMALL_EC + i32(2) + i64(0),
    ),
    "no policy option": (
        ops.AddErasureCodingPolicy(values.EcPolicy("rs", 6, 3, 1)), SMALL_EC + i32(0),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("op", "head"), FEWEST.values(), ids=FEWEST)
def test_a_list_may_be_as_short_as_its_entries(op: ops.Op, head: bytes) -> None:
    writes_and_reads(op, head + NO_CALL)


BLOCK = i64(1) + b"\x02\x03"
PYTHONS = "malformed at layout -67: (?!.* left)"
"""The words are Python's: it is not we who counted what is left."""
WRONG: dict[str, tuple[type[ops.Op], bytes, str]] = {
    "more blocks than bytes": (
        ops.UpdateBlocks, text("/f") + b"\x8c\x7f\xff\xff\xff", "2147483647 blocks",
    ),
    "no block that is added": (ops.AddBlock, text("/f") + b"\x00" + CALLED, "with 0 blocks"),
    "three blocks that are added": (
        ops.AddBlock, text("/f") + b"\x03" + BLOCK * 3 + CALLED, "with 3 blocks",
    ),
    "a cut inside two blocks": (
        ops.Truncate, text("/f") + text("") * 2 + i64(1) * 2 + b"\x02" + BLOCK * 2,
        "inside 2 blocks",
    ),
    "less than no sources": (ops.ConcatDelete, text("/t") + i32(-1) + i64(1) + CALLED, "-1 sour"),
    "more sources than bytes": (
        ops.ConcatDelete, text("/t") + i32(2) + bytes(3), "2 sources, but 3 bytes are left",
    ),
    "as many sources as bytes and no time": (
        ops.ConcatDelete, text("/t") + i32(2) + bytes(4), PYTHONS,
    ),
    "less than no options": (
        ops.Rename, text("/a") + text("/b") + i64(1) + i32(-1) + CALLED, "-1 rename options",
    ),
    "more options than bytes": (
        ops.Rename, text("/a") + text("/b") + i64(1) + i32(2) + b"\x00",
        "2 rename options, but 1 bytes",
    ),
    "as many options as bytes and no call": (
        ops.Rename, text("/a") + text("/b") + i64(1) + i32(2) + b"\x00\x00", PYTHONS,
    ),
    "an option without meaning": (
        ops.Rename, text("/a") + text("/b") + i64(1) + i32(1) + b"\x03" + CALLED, PYTHONS,
    ),
    "a token of another version": (
        ops.CancelDelegationToken, b"\x01" + TOKEN, "token of version 1",
    ),
    "a token's number of 33 bits": (
        ops.CancelDelegationToken, b"\x00" + TOKEN[:-2] + b"\x8c\x80\x00\x00\x00\x01", "32 bits",
    ),
    "a token's key of 33 bits": (
        ops.CancelDelegationToken, b"\x00" + TOKEN[:-1] + b"\x8c\x80\x00\x00\x00", "32 bits",
    ),
    "a key's number of 33 bits": (
        ops.UpdateMasterKey, b"\x8c\x80\x00\x00\x00" + b"\x01\x00", "32 bits",
    ),
    "a key of less than nothing": (ops.UpdateMasterKey, b"\x01\x02\xfe", "a length of -2"),
    "a directive with a flag without meaning": (
        ops.AddCacheDirective, i64(1) + i32(16) + CALLED, "unknown flags: 0x10",
    ),
    "a directive with the flag of the sign": (
        ops.ModifyCacheDirective, i64(1) + i32(-(2**31)) + CALLED, "unknown flags: -0x80000000",
    ),
    "a pool with a flag without meaning": (
        ops.AddCachePool, text("p") + i32(64) + CALLED, "unknown flags: 0x40",
    ),
    "a pool with the flag of the sign": (
        ops.ModifyCachePool, text("p") + i32(-(2**31)) + CALLED, "unknown flags: -0x80000000",
    ),
    "less than no policy options": (
        ops.AddErasureCodingPolicy, SMALL_EC + i32(-1) + CALLED, "-1 options",
    ),
    "more policy options than bytes": (
        ops.AddErasureCodingPolicy, SMALL_EC + i32(2) + bytes(7), "2 options, but 7 bytes",
    ),
    "as many policy options as bytes and no call": (
        ops.AddErasureCodingPolicy, SMALL_EC + i32(2) + bytes(8), PYTHONS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("op_class", "body", "reason"), WRONG.values(), ids=WRONG)
def test_what_has_no_meaning_is_refused(op_class: type[ops.Op], body: bytes, reason: str) -> None:
    frame = framed(op_class.opcode, body)
    with pytest.raises(EditsError, match=reason) as refusal:
        decode(frame, 0, -67)
    assert refusal.value.what.startswith(f"opcode {op_class.opcode} is malformed")


@pytest.mark.parametrize("flag", [0, 1, 2, 255])
def test_every_flag_but_zero_is_true(flag: int) -> None:
    head, tail = text("/f") + text("c") + text("m"), CALLED
    frame = framed(ops.Append.opcode, head + bytes((flag,)) + tail)
    assert decode(frame, 0, -67)[1] == ops.Append("/f", "c", "m", flag != 0, CALL)


EXTREMES: dict[str, tuple[ops.Op, bytes]] = {
    "the least replication": (ops.SetReplication("/f", -(2**15)), text("/f") + i16(-(2**15))),
    "the greatest replication": (ops.SetReplication("/f", 2**15 - 1), text("/f") + i16(2**15 - 1)),
    "the least policy": (ops.SetStoragePolicy("/f", -128), text("/f") + b"\x80"),
    "the greatest policy": (ops.SetStoragePolicy("/f", 127), text("/f") + b"\x7f"),
    "the greatest mode": (ops.SetPermissions("/f", 0xFFFF), text("/f") + b"\xff\xff"),
    "quotas": (ops.SetQuota("/d", LEAST, GREATEST), text("/d") + i64(LEAST) + i64(GREATEST)),
    "times": (ops.Times("/f", GREATEST, LEAST), text("/f") + i64(GREATEST) + i64(LEAST)),
    "the least block's id": (ops.AllocateBlockId(LEAST), i64(LEAST)),
    "the greatest id of a cut block": (
        ops.Truncate("/f", "", "", 1, 2, values.Block(GREATEST, 0, 0)),
        text("/f") + text("") * 2 + i64(1) + i64(2) + b"\x01" + i64(GREATEST) + b"\x00\x00",
    ),
    "the greatest time of an upgrade": (ops.RollingUpgradeStart(GREATEST), i64(GREATEST)),
}  # fmt: skip


@pytest.mark.parametrize(("op", "body"), EXTREMES.values(), ids=EXTREMES)
def test_the_least_and_the_greatest_numbers_fit(op: ops.Op, body: bytes) -> None:
    writes_and_reads(op, body)


STORAGE_TYPES = {
    # layout: those it knows
    -66: range(5),
    -67: range(6),
}


@pytest.mark.parametrize("layout", STORAGE_TYPES)
@pytest.mark.parametrize("number", range(-1, 8))
def test_a_storage_type_is_known_from_some_layout_on(layout: int, number: int) -> None:
    known = number in STORAGE_TYPES[layout]
    op = ops.SetQuotaByStorageType("/d", values.StorageType(number if 0 <= number < 6 else 0), 1)
    frame = framed(op.opcode, text("/d") + i32(number) + i64(1), layout)
    if known:
        assert encode(op, TXID, layout) == frame
        assert decode(frame, 0, layout)[1] == op
        return
    with pytest.raises(EditsError, match=f"no storage type {number}"):
        decode(frame, 0, layout)
    if number == values.StorageType.NVDIMM:
        with pytest.raises(EditsError, match="no storage type NVDIMM"):
            encode(op, TXID, layout)
