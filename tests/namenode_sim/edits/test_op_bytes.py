"""The bytes of each op: every field in its place, by number, and what older layouts leave out."""

from dataclasses import fields, replace

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.admin_codec import ADMIN_CODECS
from namenode_sim.edits.codec import decode, encode
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.file_codec import FILE_CODECS
from namenode_sim.edits.tree_codec import TREE_CODECS
from namenode_sim.edits.values import (
    AclEntry,
    AclScope,
    AclType,
    Block,
    CacheDirective,
    CachePool,
    DelegationKey,
    DelegationTokenIdentifier,
    EcPolicy,
    Permission,
    RenameOption,
    StorageType,
    XAttr,
    XAttrNamespace,
)
from tests.namenode_sim.edits import framed_bytes
from tests.namenode_sim.edits.framed_bytes import CALL, CALLED, TXID, i8, i16, i32, i64, text

PERMISSION = Permission("o", "gr", 0o1644)
OWNED = b"\x01o\x02gr\x03\xa4"
ONE, TWO = Block(0x11, 100, 0x1001), Block(-0x12, 90, 0x1003)
WHOLE = {"one": i64(0x11) + i64(100) + i64(0x1001), "two": i64(-0x12) + i64(90) + i64(0x1003)}
# In variable length: one byte up to 127, else the number of bytes first; then differences.
SHORT_ONE = i64(0x11) + b"\x64" + b"\x8e\x10\x01"
SHORT_TWO_BEHIND_ONE = i64(-0x12) + i8(-10) + b"\x02"
ACL = (
    AclEntry(AclScope.DEFAULT, AclType.GROUP, "g", 5),
    AclEntry(AclScope.ACCESS, AclType.OTHER, None, 3),
)
PACKED_ACL = i32(2) + bytes((0x40 | 1 << 5 | 1 << 3 | 5,)) + text("g") + bytes((3 << 3 | 3,))
ACL_MESSAGE = b"\x08\x01\x10\x01\x18\x05\x22\x01g", b"\x08\x03\x10\x00\x18\x03"
XATTRS = (XAttr(XAttrNamespace.SYSTEM, "a", b"v"), XAttr(XAttrNamespace.TRUSTED, "b", None))
XATTRS_MESSAGE = b"\x12\x08\x08\x03\x12\x01a\x1a\x01v\x12\x05\x08\x01\x12\x01b"
TOKEN = DelegationTokenIdentifier("o", "r", "u", 0x21, 0x22, 0x23, 0x24)
TOKEN_BYTES = b"\x00\x01o\x01r\x01u\x21\x22\x23\x24"

BODIES: dict[str, tuple[ops.Op, bytes]] = {
    "a file": (
        ops.Add(1, "/f", 2, 3, 4, 5, (ONE, TWO), PERMISSION, ACL, XATTRS, "c", "m", True, 6, 7,
                CALL),
        i64(1) + text("/f") + i16(2) + i64(3) + i64(4) + i64(5)
        + i32(2) + WHOLE["one"] + WHOLE["two"] + OWNED + PACKED_ACL
        + i8(len(XATTRS_MESSAGE)) + XATTRS_MESSAGE + text("c") + text("m")
        + b"\x01" + i8(6) + i8(7) + CALLED,
    ),
    "a file with nothing that can be left out": (
        ops.Add(1, "/f", 2, 3, 4, 5, (), PERMISSION),
        i64(1) + text("/f") + i16(2) + i64(3) + i64(4) + i64(5) + i32(0) + OWNED + i32(0)
        + b"\x00" + text("") + text("") + b"\x00\x00\x00" + framed_bytes.NO_CALL,
    ),
    "a file that is complete": (
        ops.Close(1, "/f", 2, 3, 4, 5, (ONE, TWO), PERMISSION),
        i64(1) + text("/f") + i16(2) + i64(3) + i64(4) + i64(5)
        + i32(2) + WHOLE["one"] + WHOLE["two"] + OWNED,
    ),
    "an append": (
        ops.Append("/f", "c", "m", True, CALL),
        text("/f") + text("c") + text("m") + b"\x01" + CALLED,
    ),
    "an append to the last block": (
        ops.Append("/f", "c", "m", False, CALL),
        text("/f") + text("c") + text("m") + b"\x00" + CALLED,
    ),
    "the first block": (
        ops.AddBlock("/f", None, ONE, CALL), text("/f") + b"\x01" + SHORT_ONE + CALLED,
    ),
    "a further block": (
        ops.AddBlock("/f", ONE, TWO, CALL),
        text("/f") + b"\x02" + SHORT_ONE + SHORT_TWO_BEHIND_ONE + CALLED,
    ),
    "other blocks": (
        ops.UpdateBlocks("/f", (ONE, TWO), CALL),
        text("/f") + b"\x02" + SHORT_ONE + SHORT_TWO_BEHIND_ONE + CALLED,
    ),
    "no blocks any more": (ops.UpdateBlocks("/f", (), CALL), text("/f") + b"\x00" + CALLED),
    "a cut at a block's end": (
        ops.Truncate("/f", "c", "m", 1, 2),
        text("/f") + text("c") + text("m") + i64(1) + i64(2) + b"\x00",
    ),
    "a cut inside a block": (
        ops.Truncate("/f", "c", "m", 1, 2, ONE),
        text("/f") + text("c") + text("m") + i64(1) + i64(2) + b"\x01" + SHORT_ONE,
    ),
    "a concatenation": (
        ops.ConcatDelete("/t", ("/a", "/b"), 1, CALL),
        text("/t") + i32(2) + text("/a") + text("/b") + i64(1) + CALLED,
    ),
    "a replication": (ops.SetReplication("/f", 3), text("/f") + i16(3)),
    "another holder": (ops.ReassignLease("h", "/f", "n"), text("h") + text("/f") + text("n")),
    "the old generation stamp": (ops.SetGenstampV1(1), i64(1)),
    "the generation stamp": (ops.SetGenstampV2(1), i64(1)),
    "a block's id": (ops.AllocateBlockId(-1), i64(-1)),
    "a rename": (
        ops.RenameOld("/a", "/b", 1, CALL), text("/a") + text("/b") + i64(1) + CALLED,
    ),
    "a rename with options": (
        ops.Rename("/a", "/b", 1, (RenameOption.OVERWRITE, RenameOption.TO_TRASH), CALL),
        text("/a") + text("/b") + i64(1) + i32(2) + b"\x01\x02" + CALLED,
    ),
    "a deletion": (ops.Delete("/f", 1, CALL), text("/f") + i64(1) + CALLED),
    "a directory": (
        ops.Mkdir(1, "/d", 2, 3, PERMISSION, ACL, XATTRS),
        i64(1) + text("/d") + i64(2) + i64(3) + OWNED + PACKED_ACL
        + i8(len(XATTRS_MESSAGE)) + XATTRS_MESSAGE,
    ),
    "a directory with nothing that can be left out": (
        ops.Mkdir(1, "/d", 2, 3, PERMISSION),
        i64(1) + text("/d") + i64(2) + i64(3) + OWNED + i32(0) + b"\x00",
    ),
    "a symlink": (
        ops.Symlink(1, "/l", "t", 2, 3, PERMISSION, CALL),
        i64(1) + text("/l") + text("t") + i64(2) + i64(3) + OWNED + CALLED,
    ),
    "a mode": (ops.SetPermissions("/f", 0o1644), text("/f") + b"\x03\xa4"),
    "an owner": (ops.SetOwner("/f", "u", "g"), text("/f") + text("u") + text("g")),
    "times": (ops.Times("/f", 1, 2), text("/f") + i64(1) + i64(2)),
    "a quota of names": (ops.SetNsQuota("/d", 1), text("/d") + i64(1)),
    "no quota of names": (ops.ClearNsQuota("/d"), text("/d")),
    "quotas": (ops.SetQuota("/d", 1, 2), text("/d") + i64(1) + i64(2)),
    "a quota of a storage type": (
        ops.SetQuotaByStorageType("/d", StorageType.NVDIMM, 1), text("/d") + i32(5) + i64(1),
    ),
    "a storage policy": (ops.SetStoragePolicy("/f", -1), text("/f") + b"\xff"),
    "an ACL": (
        ops.SetAcl("/f", ACL),
        b"\x17\x0a\x02/f" + b"\x12\x09" + ACL_MESSAGE[0] + b"\x12\x06" + ACL_MESSAGE[1],
    ),
    "attributes": (
        ops.SetXAttr("/f", XATTRS, CALL), b"\x15\x0a\x02/f" + XATTRS_MESSAGE + CALLED,
    ),
    "attributes that go": (
        ops.RemoveXAttr("/f", XATTRS, CALL), b"\x15\x0a\x02/f" + XATTRS_MESSAGE + CALLED,
    ),
    "a snapshot": (
        ops.CreateSnapshot("/d", "s", 1, CALL), text("/d") + text("s") + i64(1) + CALLED,
    ),
    "a snapshot that goes": (
        ops.DeleteSnapshot("/d", "s", 1, CALL), text("/d") + text("s") + i64(1) + CALLED,
    ),
    "a snapshot that goes by no call": (
        ops.DeleteSnapshot("/d", "s", 1), text("/d") + text("s") + i64(1) + framed_bytes.NO_CALL,
    ),
    "another name of a snapshot": (
        ops.RenameSnapshot("/d", "s", "t", 1, CALL),
        text("/d") + text("s") + text("t") + i64(1) + CALLED,
    ),
    "snapshots allowed": (ops.AllowSnapshot("/d"), text("/d")),
    "snapshots disallowed": (ops.DisallowSnapshot("/d"), text("/d")),
    "a token": (ops.GetDelegationToken(TOKEN, 1), TOKEN_BYTES + i64(1)),
    "a token renewed": (ops.RenewDelegationToken(TOKEN, 1), TOKEN_BYTES + i64(1)),
    "a token cancelled": (ops.CancelDelegationToken(TOKEN), TOKEN_BYTES),
    "a key": (ops.UpdateMasterKey(DelegationKey(1, 2, b"key")), b"\x01\x02\x03key"),
    "an empty key": (ops.UpdateMasterKey(DelegationKey(1, 2, b"")), b"\x01\x02\x00"),
    "no key": (ops.UpdateMasterKey(DelegationKey(1, 2, None)), b"\x01\x02\xff"),
    "a segment's begin": (ops.StartLogSegment(), b""),
    "a segment's end": (ops.EndLogSegment(), b""),
    "a cache directive": (
        ops.AddCacheDirective(CacheDirective(1, "/f", 2, "p", 3), CALL),
        i64(1) + i32(0xF) + text("/f") + i16(2) + text("p") + i64(3) + CALLED,
    ),
    "a cache directive changed": (
        ops.ModifyCacheDirective(CacheDirective(1, "/f", 2, "p", 3), CALL),
        i64(1) + i32(0xF) + text("/f") + i16(2) + text("p") + i64(3) + CALLED,
    ),
    "a cache directive that goes": (ops.RemoveCacheDirective(1, CALL), i64(1) + CALLED),
    "a cache pool": (
        ops.AddCachePool(CachePool("p", "o", "g", 0o1644, 1, 2, 3), CALL),
        text("p") + i32(0x3F) + text("o") + text("g") + b"\x03\xa4" + i64(1) + i64(2) + i16(3)
        + CALLED,
    ),
    "a cache pool changed": (
        ops.ModifyCachePool(CachePool("p", "o", "g", 0o1644, 1, 2, 3), CALL),
        text("p") + i32(0x3F) + text("o") + text("g") + b"\x03\xa4" + i64(1) + i64(2) + i16(3)
        + CALLED,
    ),
    "a cache pool that goes": (ops.RemoveCachePool("p", CALL), text("p") + CALLED),
    "an upgrade begins": (ops.RollingUpgradeStart(1), i64(1)),
    "an upgrade ends": (ops.RollingUpgradeFinalize(1), i64(1)),
    "an erasure coding policy": (
        ops.AddErasureCodingPolicy(EcPolicy("rs", 6, 3, 1024, (("k", "v"), ("l", ""))), CALL),
        text("rs") + i32(6) + i32(3) + i32(1024) + i32(2)
        + text("k") + text("v") + text("l") + text("") + CALLED,
    ),
    "an erasure coding policy enabled": (
        ops.EnableErasureCodingPolicy("rs", CALL), text("rs") + CALLED,
    ),
    "an erasure coding policy disabled": (
        ops.DisableErasureCodingPolicy("rs", CALL), text("rs") + CALLED,
    ),
    "an erasure coding policy that goes": (
        ops.RemoveErasureCodingPolicy("rs", CALL), text("rs") + CALLED,
    ),
}  # fmt: skip


ALL_LAYOUTS = tuple(range(-47, -68, -1))
FIELDS: dict[type[ops.Op], tuple[tuple[int, str, bytes], ...]] = {
    # The first layout that has the field (-47: all have it), its name and its bytes.
    ops.Add: (
        (-47, "", BODIES["a file"][1].partition(PACKED_ACL)[0]),
        (-53, "acl", PACKED_ACL),
        (-57, "xattrs", i8(len(XATTRS_MESSAGE)) + XATTRS_MESSAGE),
        (-47, "", text("c") + text("m")),
        (-58, "overwrite", b"\x01"),
        (-60, "storage_policy_id", i8(6)),
        (-64, "ec_policy_id", i8(7)),
        (-47, "", CALLED),
    ),
    ops.Mkdir: (
        (-47, "", BODIES["a directory"][1].partition(PACKED_ACL)[0]),
        (-53, "acl", PACKED_ACL),
        (-57, "xattrs", i8(len(XATTRS_MESSAGE)) + XATTRS_MESSAGE),
    ),
    ops.Append: (
        (-47, "", text("/f") + text("c") + text("m")),
        (-62, "new_block", b"\x01"),
        (-47, "", CALLED),
    ),
    ops.CreateSnapshot: (
        (-47, "", text("/d") + text("s")), (-66, "mtime", i64(1)), (-47, "", CALLED),
    ),
    ops.DeleteSnapshot: (
        (-47, "", text("/d") + text("s")), (-66, "mtime", i64(1)), (-47, "", CALLED),
    ),
    ops.RenameSnapshot: (
        (-47, "", text("/d") + text("s") + text("t")), (-66, "mtime", i64(1)), (-47, "", CALLED),
    ),
}  # fmt: skip


def test_every_op_has_its_bytes() -> None:
    assert {type(op) for op, _ in BODIES.values()} == set(ops.OP_CLASSES)


@pytest.mark.parametrize("case", BODIES)
def test_an_op_has_its_fields_in_order(case: str) -> None:
    op, body = BODIES[case]
    frame = framed_bytes.framed(op.opcode, body)
    assert encode(op, TXID, -67) == frame
    assert decode(b"before" + frame + b"behind", 6, -67) == (TXID, op, 6 + len(frame))


def test_each_op_is_in_one_table_of_codecs() -> None:
    listed = [op.opcode for op in (*FILE_CODECS, *TREE_CODECS, *ADMIN_CODECS)]
    assert sorted(listed) == sorted(op.opcode for op in ops.OP_CLASSES)


UNCHANGED = [
    case for case, (op, _) in BODIES.items() if type(op) not in {*FIELDS, ops.SetQuotaByStorageType}
]


@pytest.mark.parametrize("case", UNCHANGED)
def test_most_ops_have_the_same_fields_without_a_length(case: str) -> None:
    op, body = BODIES[case]
    frame = framed_bytes.framed(op.opcode, body, -55)
    assert encode(op, TXID, -55) == frame
    assert decode(b"before" + frame + b"behind", 6, -55) == (TXID, op, 6 + len(frame))


UNSAID = {field.name: field.default for op in FIELDS for field in fields(op)}
# The first row of each class, which has all fields.
WITH_ALL = {type(op): op for op, _ in reversed(BODIES.values())}


@pytest.mark.parametrize("op_class", FIELDS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("layout", ALL_LAYOUTS)
def test_a_layout_has_the_fields_that_it_had_from_the_first(
    op_class: type[ops.Op], layout: int
) -> None:
    whole, parts = WITH_ALL[op_class], FIELDS[op_class]
    missing = {name: UNSAID[name] for since, name, _ in parts if layout > since}
    op = replace(whole, **missing)  # type: ignore[arg-type]
    body = b"".join(part for since, _, part in parts if layout <= since)
    frame = framed_bytes.framed(op.opcode, body, layout)
    assert encode(op, TXID, layout) == frame
    assert decode(b"before" + frame + b"behind", 6, layout) == (TXID, op, 6 + len(frame))
    for name in missing:
        said = replace(op, **{name: getattr(whole, name)})
        if name == "mtime":  # Readers of older layouts have a time of their own.
            assert encode(said, TXID, layout) == frame
            continue
        with pytest.raises(EditsError, match=f"layout {layout} has no field for {name}"):
            encode(said, TXID, layout)
        with pytest.raises(EditsError):
            decode(
                framed_bytes.framed(op.opcode, b"".join(part for *_, part in parts), layout),
                0,
                layout,
            )


NOTHING = {
    "acl": i32(0), "xattrs": b"\x00", "overwrite": b"\x00", "new_block": b"\x00",
    "storage_policy_id": b"\x00", "ec_policy_id": b"\x00",
}  # fmt: skip


@pytest.mark.parametrize("op_class", [ops.Add, ops.Mkdir, ops.Append], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("layout", ALL_LAYOUTS)
def test_a_field_that_says_nothing_takes_its_place(op_class: type[ops.Op], layout: int) -> None:
    parts = [(name, part) for since, name, part in FIELDS[op_class] if layout <= since]
    unsaid = {name: UNSAID[name] for _, name, _ in FIELDS[op_class] if name}
    op = replace(WITH_ALL[op_class], **unsaid)  # type: ignore[arg-type]
    frame = framed_bytes.framed(
        op.opcode, b"".join(NOTHING.get(name, part) for name, part in parts), layout
    )
    assert encode(op, TXID, layout) == frame
    assert decode(frame, 0, layout) == (TXID, op, len(frame))


SNAPSHOTS = (
    "a snapshot",
    "a snapshot that goes",
    "a snapshot that goes by no call",
    "another name of a snapshot",
)


@pytest.mark.parametrize("case", SNAPSHOTS)
@pytest.mark.parametrize("layout", range(-56, -68, -1))
def test_snapshots_may_have_their_time_in_older_layouts(case: str, layout: int) -> None:
    """Accept them as Hadoop 3.3.0 writes them; the length of the frame shows which."""
    op, body = BODIES[case]
    frame = framed_bytes.framed(op.opcode, body, layout)
    assert encode(op, TXID, layout, unversioned_mtime=True) == frame
    assert decode(frame, 0, layout)[1] == op


@pytest.mark.parametrize("case", SNAPSHOTS)
@pytest.mark.parametrize("layout", [-66, -67])
def test_a_snapshot_of_no_known_time_has_the_time_0(case: str, layout: int) -> None:
    op, body = BODIES[case]
    frame = framed_bytes.framed(op.opcode, body.replace(i64(1), i64(0), 1), layout)
    assert encode(replace(op, mtime=None), TXID, layout) == frame  # type: ignore[arg-type]
    assert decode(frame, 0, layout)[1] == replace(op, mtime=0)  # type: ignore[arg-type]


def test_nothing_else_has_newer_fields_in_older_layouts() -> None:
    op, _ = BODIES["a file"]
    with pytest.raises(EditsError, match="acl"):
        encode(op, TXID, -52, unversioned_mtime=True)
