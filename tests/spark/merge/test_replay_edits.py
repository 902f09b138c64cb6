"""Logs by hand about what files hold, attributes, and what lies outside of the tree."""

import io
from collections.abc import Callable

import pytest

from namenode_sim.edits import ops, values
from namenode_sim.edits.segment_file import read_segment
from namenode_sim.image.reader import read_namespace
from tests.namenode_sim.image.image_world import KEY, TOKEN, real
from tests.namenode_sim.namespace.dump import differences
from tests.spark.merge.memory import check_against_oracle
from tests.spark.merge.script import Script

KEEP = 2**63 - 1
ACCESS = (
    values.AclEntry(values.AclScope.ACCESS, values.AclType.USER, None, 7),
    values.AclEntry(values.AclScope.ACCESS, values.AclType.USER, "zoe", 5),
    values.AclEntry(values.AclScope.ACCESS, values.AclType.GROUP, None, 4),
    values.AclEntry(values.AclScope.ACCESS, values.AclType.GROUP, "guests", 1),
    values.AclEntry(values.AclScope.ACCESS, values.AclType.MASK, None, 5),
    values.AclEntry(values.AclScope.ACCESS, values.AclType.OTHER, None, 0),
)
DEFAULT = tuple(
    values.AclEntry(values.AclScope.DEFAULT, e.type, e.name, e.permission) for e in ACCESS
)
TAG = values.XAttr(values.XAttrNamespace.USER, "tag", b"1")


def _world(layout: int = -65) -> Script:
    script = Script(layout)
    script.mkdirs("/d", "/d/e", "/quiet")
    script.mkdirs("/acl", acl=(*ACCESS, *DEFAULT))
    script.files("/d/a", "/d/b", "/d/c", "/d/e/a", "/quiet/file", "/acl/f")
    script.open("/d/open")
    script.write(ops.Symlink(script.namespace.counters.last_inode_id + 1, "/d/link", "/quiet",
                             5, 6, values.Permission("alice", "staff", 0o777)))  # fmt: skip
    script.write(ops.UpdateMasterKey(KEY))
    script.write(ops.GetDelegationToken(TOKEN, 99))
    script.write(ops.AddCachePool(values.CachePool("p", "alice", "staff", 0o755, 10, 20, 1)))
    script.write(ops.AddCacheDirective(values.CacheDirective(1, "/d", 1, "p", 30)))
    script.image()
    return script


def concat(s: Script) -> None:
    s.write(ops.ConcatDelete("/d/a", ("/d/b", "/d/c"), s.now))
    s.files("/d/b")
    s.write(ops.ConcatDelete("/d/a", ("/d/b",), s.now))
    s.rename("/d", "/dd")
    s.files("/dd/d")
    s.write(ops.ConcatDelete("/dd/d", ("/dd/a",), s.now))


def truncate_and_append(s: Script) -> None:
    s.write(ops.Truncate("/d/a", "w2", "host", 0, s.now, None))
    last = s.namespace.tree.file("/d/b").blocks[-1]
    s.write(ops.Truncate("/d/b", "w2", "host", 5, s.now, values.Block(last.block_id, 5, 1002)))
    s.write(ops.Append("/d/c", "w3", "host"))
    s.write(ops.ReassignLease("w3", "/d/c", "HDFS_NameNode"))
    s.rename("/d", "/moved")
    s.write(ops.Append("/moved/e/a", "w3", "host", True))
    s.close("/moved/open")
    s.close("/moved/b", values.Block(last.block_id, 5, 1002))


def reopened_by_add(s: Script) -> None:
    """Reopen as logs before layout -62 do."""
    file = s.namespace.tree.file("/d/a")
    who = values.Permission(file.user, file.group, file.mode)
    s.write(ops.Add(file.id, "/d/a", 3, 7, 8, 100, file.blocks, who, (), (), "w2", "h"))
    s.write(ops.Add(0, "/d/new", 3, 7, 8, 100, (), who, (), (), "w2", "h"))
    s.write(ops.Add(0, "/d/e/a", 3, 7, 8, 100, s.namespace.tree.file("/d/e/a").blocks, who))


def times_and_owners(s: Script) -> None:
    s.files("/d/new")
    s.write(ops.Times("/d", 3, -1))  # lower than what its children raised it to
    s.write(ops.Times("/d/link", 4, 5))
    s.write(ops.Times("/", 1, -1))
    s.write(ops.SetOwner("/", "new-user", "new-group"))
    s.write(ops.SetPermissions("/", 0o1777))
    s.write(ops.SetReplication("/d/a", 9))
    s.write(ops.SetReplication("/d", 9))
    s.write(ops.SetStoragePolicy("/d/a", 12))
    s.write(ops.SetStoragePolicy("/d/e", 7))
    s.files("/quiet/x", who=values.Permission("bob", "", 0o640))  # takes the directory's group
    s.mkdirs("/quiet/y", who=values.Permission("bob", "", 0o750))


def set_to_what_it_was(s: Script) -> None:
    s.write(ops.SetPermissions("/d/a", s.namespace.tree.node("/d/a").mode))


def quotas(s: Script) -> None:
    s.write(ops.SetQuota("/d", 100, 10**12))
    s.write(ops.SetQuota("/", 1000, KEEP))
    s.write(ops.SetQuota("/", -1, 5))
    s.write(ops.SetQuotaByStorageType("/d/e", values.StorageType.SSD, 10**9))
    s.write(ops.SetNsQuota("/acl", 7))
    s.write(ops.ClearNsQuota("/acl"))


def acls_and_xattrs(s: Script) -> None:
    s.write(ops.SetAcl("/d/a", ACCESS))
    s.write(ops.SetAcl("/acl", ()))
    s.write(ops.SetAcl("/d/e", (*ACCESS, *DEFAULT)))
    number, now = s.namespace.counters.last_inode_id + 1, s.now
    who = values.Permission("zoe", "", 0o640)
    s.write(ops.Add(number, "/acl/g", 3, now, now, 9, (), who, ACCESS, (TAG,), "w", "h", True))
    s.write(ops.SetXAttr("/d/b", (TAG, values.XAttr(values.XAttrNamespace.TRUSTED, "x", None))))
    s.write(ops.RemoveXAttr("/d/b", (TAG,)))
    s.write(ops.SetXAttr("/d", (TAG,)))


def symlinks(s: Script) -> None:
    s.delete("/d/link/file")  # is not followed
    s.write(ops.Symlink(s.namespace.counters.last_inode_id + 1, "/quiet/l", "/d", 5, 6,
                        values.Permission("u", "g", 0o777)))  # fmt: skip
    s.rename("/d/link", "/quiet/link")
    s.delete("/quiet/l")


def outside_of_the_tree(s: Script) -> None:
    s.write(ops.RenewDelegationToken(TOKEN, 123))
    s.write(ops.UpdateMasterKey(values.DelegationKey(2, 100, b"k2")))
    s.write(ops.ModifyCacheDirective(values.CacheDirective(1, replication=3)))
    s.write(ops.AddCachePool(values.CachePool("q", "alice", "staff", 0o755, 10, 20, 1)))
    s.write(ops.EnableErasureCodingPolicy("RS-6-3-1024k"))
    s.write(ops.AddErasureCodingPolicy(values.EcPolicy("rs", 4, 2, 65536)))
    s.write(ops.AllocateBlockId(-(2**62)))
    s.write(ops.SetGenstampV1(5))
    s.write(ops.RollingUpgradeStart(77))
    s.write(ops.EndLogSegment())
    s.write(ops.StartLogSegment())


def nothing(_: Script) -> None: ...


CASES = (
    concat,
    truncate_and_append,
    reopened_by_add,
    times_and_owners,
    set_to_what_it_was,
    quotas,
    acls_and_xattrs,
    symlinks,
    outside_of_the_tree,
    nothing,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_edits(case: Callable[[Script], None]) -> None:
    script = _world()
    case(script)
    merged = script.check()
    if case in {set_to_what_it_was, nothing}:
        assert not merged.delta.updated
        assert not merged.delta.created


def test_edits_of_a_real_namenode_give_the_image_that_it_saved() -> None:
    folder = real("name-dir")
    data, saved = ((folder / f"fsimage_{txid:019d}").read_bytes() for txid in (0, 26))
    merged = check_against_oracle(data, read_segment(folder / f"edits_{1:019d}-{26:019d}"))
    ours, hadoops = (read_namespace(io.BytesIO(image)) for image in (merged.data, saved))
    assert differences(ours, hadoops) == []


def test_ids_of_strings_stay_and_new_ones_are_dense_in_an_old_table() -> None:
    """Releases before layout -65 put the table into an array of as many elements."""
    script = _world(-63)
    script.files("/d/new", who=values.Permission("somebody", "new", 0o600))
    script.write(
        ops.SetXAttr("/d/b", (values.XAttr(values.XAttrNamespace.USER, "somebody", b"1"),))
    )
    merged = script.check()
    table = merged.sparse.strings
    assert table.mask_bits == 0
    assert len({"somebody", "new"} - set(table.raw.values())) == 2
    names = {"somebody": len(table.raw) + 1, "new": len(table.raw) + 2}
    content = merged.delta.sections["STRING_TABLE"]
    for text, number in names.items():
        assert bytes([8, number, 18, len(text)]) + text.encode() in content


def test_creates_without_overwriting_ask_for_nothing_but_their_directory() -> None:
    script = _world()
    script.files(*(f"/d/e/new{i}" for i in range(50)))
    script.mkdirs("/d/e/made")
    script.files("/d/e/made/x", overwrite=True)
    merged = script.check()
    # The root, /d, /d/open of the image, /d/e and the name of the new directory.
    assert len(merged.plan.trie) == 5
