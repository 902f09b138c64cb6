"""What edits do to attributes, counters, secrets, caches and snapshots."""

from collections.abc import Callable

import pytest

from journal.model import TxId
from namenode_sim.client_protocol.words.status import status_of
from namenode_sim.edits import ops, values
from namenode_sim.edits.ops import Op
from namenode_sim.namespace import inode
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.state import EcState
from namenode_sim.namespace.usage import storage_policy_of
from tests.namenode_sim.namespace import given_edits
from tests.namenode_sim.namespace.given_edits import add, directory, mtime

ATTRIBUTES: dict[str, tuple[list[Op], Callable[[inode.INodeDirectory], object], object]] = {
    "mode": ([ops.SetPermissions("/d", 0o1777)], lambda d: d.mode, 0o1777),
    "owner alone": ([ops.SetOwner("/d", "bob", "")], lambda d: (d.user, d.group), ("bob", "staff")),
    "group alone": ([ops.SetOwner("/d", "", "g")], lambda d: (d.user, d.group), ("alice", "g")),
    "both quotas": (
        [ops.SetQuota("/d", 5, 6)],
        lambda d: (d.quotas.namespace, d.quotas.space),
        (5, 6),
    ),
    "one quota kept": (
        [ops.SetQuota("/d", 5, 6), ops.SetQuota("/d", inode.QUOTA_DONT_SET, -1)],
        lambda d: (d.quotas.namespace, d.quotas.space),
        (5, -1),
    ),
    "the old quota edits": (
        [ops.SetQuota("/d", 5, 6), ops.SetNsQuota("/d", 7)],
        lambda d: (d.quotas.namespace, d.quotas.space),
        (7, 6),
    ),
    "the old clearing edit": (
        [ops.SetQuota("/d", 5, 6), ops.ClearNsQuota("/d")],
        lambda d: (d.quotas.namespace, d.quotas.space),
        (-1, 6),
    ),
    "a quota by type": (
        [ops.SetQuotaByStorageType("/d", values.StorageType.SSD, 9)],
        lambda d: d.quotas.by_type,
        ((values.StorageType.SSD, 9),),
    ),
    "one quota by type goes": (
        [
            ops.SetQuotaByStorageType("/d", values.StorageType.SSD, 9),
            ops.SetQuotaByStorageType("/d", values.StorageType.DISK, 8),
            ops.SetQuotaByStorageType("/d", values.StorageType.SSD, inode.QUOTA_RESET),
        ],
        lambda d: d.quotas.by_type,
        ((values.StorageType.DISK, 8),),
    ),
    "a quota by type that is not set": (
        [ops.SetQuotaByStorageType("/d", values.StorageType.SSD, inode.QUOTA_DONT_SET)],
        lambda d: d.quotas.by_type,
        (),
    ),
    "an access": ([ops.Times("/d", -1, 99)], lambda d: d.mtime, 10),
    "a change": ([ops.Times("/d", 99, -1)], lambda d: d.mtime, 99),
    "a storage policy is an xattr": (
        [ops.SetStoragePolicy("/d", 7)],
        lambda d: d.xattrs,
        (values.XAttr(values.XAttrNamespace.SYSTEM, "hsm.block.storage.policy.id", b"\x07"),),
    ),
    "policy 0 removes it": (
        [ops.SetStoragePolicy("/d", 7), ops.SetStoragePolicy("/d", 0)],
        lambda d: d.xattrs,
        None,
    ),
    "new xattrs come first": (
        [
            ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "a", b"1"),)),
            ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "b", b"2"),)),
            ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "a", b"3"),)),
        ],
        lambda d: [(x.name, x.value) for x in d.xattrs or ()],
        [("a", b"3"), ("b", b"2")],
    ),
    "an empty value is none": (
        [ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "a", b""),))],
        lambda d: d.xattrs,
        (values.XAttr(values.XAttrNamespace.USER, "a", None),),
    ),
    "a policy beyond 127": (
        [ops.SetStoragePolicy("/d", -56)],
        lambda d: d.xattrs,
        (values.XAttr(values.XAttrNamespace.SYSTEM, "hsm.block.storage.policy.id", b"\xc8"),),
    ),
    "the others stay": (
        [
            ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "a", b"1"),)),
            ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "b", b"2"),)),
            ops.RemoveXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "a", None),)),
        ],
        lambda d: d.xattrs,
        (values.XAttr(values.XAttrNamespace.USER, "b", b"2"),),
    ),
    "removed by name": (
        [
            ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "a", b"1"),)),
            ops.RemoveXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, "a", None),)),
        ],
        lambda d: d.xattrs,
        None,
    ),
}


@pytest.mark.parametrize(("given", "seen", "expected"), ATTRIBUTES.values(), ids=ATTRIBUTES.keys())
def test_attributes(
    given: list[Op], seen: Callable[[inode.INodeDirectory], object], expected: object
) -> None:
    assert seen(directory(given_edits.after(given_edits.mkdir("/d"), given))) == expected


def test_the_root_always_has_a_name_quota() -> None:
    namespace = given_edits.after(ops.SetQuota("/", -1, 5))
    quotas = directory(namespace, "/").quotas
    assert (quotas.namespace, quotas.space) == (inode.QUOTA_DONT_SET, 5)
    namespace.apply(TxId(2), ops.SetQuota("/", 7, -1))
    quotas = directory(namespace, "/").quotas
    assert (quotas.namespace, quotas.space) == (7, -1)
    namespace.apply(TxId(3), ops.SetQuota("/", inode.QUOTA_DONT_SET, 5))
    quotas = directory(namespace, "/").quotas
    assert (quotas.namespace, quotas.space) == (7, 5)
    namespace.apply(TxId(4), ops.SetQuota("/", -1, inode.QUOTA_DONT_SET))
    quotas = directory(namespace, "/").quotas
    assert (quotas.namespace, quotas.space) == (inode.QUOTA_DONT_SET, 5)


TIMES: dict[str, tuple[ops.Times, tuple[int, int]]] = {
    "of a change": (ops.Times("/f", 99, -1), (99, 10)),
    "of an access": (ops.Times("/f", -1, 99), (10, 99)),
    "both": (ops.Times("/f", 98, 99), (98, 99)),
    "0": (ops.Times("/f", 0, 0), (0, 0)),
}


@pytest.mark.parametrize(("op", "expected"), TIMES.values(), ids=TIMES.keys())
def test_a_file_s_times(op: ops.Times, expected: tuple[int, int]) -> None:
    found = given_edits.after(add("/f"), op).tree.file("/f")
    assert (found.mtime, found.atime) == expected


NOT_OF_THIS_KIND: dict[str, tuple[Op, str]] = {
    "quotas of a file": (ops.SetQuota("/f", 5, 6), "/f is not a directory"),
    "an ACL of a symlink": (ops.SetAcl("/l", ()), "/l is a symlink"),
    "attributes of a symlink": (ops.SetXAttr("/l", ()), "/l is a symlink"),
}


@pytest.mark.parametrize(("op", "match"), NOT_OF_THIS_KIND.values(), ids=NOT_OF_THIS_KIND.keys())
def test_what_only_others_have_is_refused(op: Op, match: str) -> None:
    namespace = given_edits.after(add("/f"), ops.Symlink(0, "/l", "/t/x", 5, 6, given_edits.WHO))
    with pytest.raises(ApplyError, match=match):
        namespace.apply(TxId(3), op)


POLICY = "hsm.block.storage.policy.id"
POLICIES: dict[str, tuple[str, list[Op], int]] = {
    "of a file": ("/f", [ops.SetStoragePolicy("/f", 7)], 7),
    "of a directory": ("/d", [ops.SetStoragePolicy("/d", 7)], 7),
    "none of a directory": ("/d", [], 0),
    "of a directory with more attributes": (
        "/d",
        [
            ops.SetStoragePolicy("/d", 7),
            ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.SYSTEM, "a", b"\x05"),)),
            ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.USER, POLICY, b"\x06"),)),
        ],
        7,
    ),
    "without a value": (
        "/d",
        [ops.SetXAttr("/d", (values.XAttr(values.XAttrNamespace.SYSTEM, POLICY, None),))],
        0,
    ),
    "of a symlink": ("/l", [ops.Symlink(0, "/l", "/t/x", 5, 6, given_edits.WHO)], 0),
}


@pytest.mark.parametrize(("path", "given", "policy"), POLICIES.values(), ids=POLICIES.keys())
def test_the_storage_policy_of_a_node(path: str, given: list[Op], policy: int) -> None:
    assert (
        storage_policy_of(
            given_edits.after(add("/f"), given_edits.mkdir("/d"), given).tree.node(path)
        )
        == policy
    )


def test_an_acl_s_mask_lives_in_the_mode_and_the_group_comes_back() -> None:
    a, scope = values.AclType, values.AclScope.ACCESS
    acl = (
        values.AclEntry(scope, a.USER, None, 7),
        values.AclEntry(scope, a.USER, "bob", 6),
        values.AclEntry(scope, a.GROUP, None, 5),
        values.AclEntry(scope, a.MASK, None, 4),
        values.AclEntry(scope, a.OTHER, None, 1),
    )
    namespace = given_edits.after(given_edits.mkdir("/d"), ops.SetAcl("/d", acl))
    assert directory(namespace).mode == 0o741
    assert directory(namespace).acl == (acl[1], acl[2])
    namespace.apply(TxId(3), ops.SetAcl("/d", ()))
    assert (directory(namespace).mode, directory(namespace).acl) == (0o751, None)


def test_ids_and_stamps_are_counted() -> None:
    namespace = given_edits.after(
        given_edits.mkdir("/d"),
        ops.Mkdir(20000, "/e", 1, 1, given_edits.WHO),
        add("/f"),
        ops.SetGenstampV1(7),
        ops.SetGenstampV2(1001),
        ops.AllocateBlockId(2**30 + 1),
        ops.AllocateBlockId(-(2**63) + 16),
        ops.Delete("/e", 5),
    )
    counters = namespace.counters
    assert namespace.tree.node("/d").id == 16386
    assert counters.last_inode_id == 20001 == namespace.tree.node("/f").id
    assert (counters.generation_stamp_v1, counters.generation_stamp_v2) == (7, 1001)
    assert (counters.last_block_id, counters.last_striped_block_id) == (2**30 + 1, -(2**63) + 16)


def test_a_file_s_replication_is_clamped_and_a_block_size_of_0_is_1() -> None:
    namespace = given_edits.after(
        ops.Add(0, "/f", 0, 1, 1, 0, (), given_edits.WHO), ops.SetReplication("/f", 999)
    )
    made = namespace.tree.file("/f")
    assert (made.replication, made.preferred_block_size) == (512, 1)


def test_a_striped_file_takes_its_layout_from_its_policy() -> None:
    namespace = given_edits.after(add("/f", ec_policy_id=1), ops.SetReplication("/f", 9))
    made = namespace.tree.file("/f")
    assert (made.block_type, made.ec_policy_id, made.replication) == (1, 1, 0)


def test_a_symlink_keeps_its_target() -> None:
    link = given_edits.after(ops.Symlink(0, "/l", "/t/x", 5, 6, given_edits.WHO)).tree.node("/l")
    assert isinstance(link, inode.INodeSymlink)
    assert (link.target, link.mtime, link.atime) == (b"/t/x", 5, 6)


def test_tokens_need_their_key() -> None:
    token = values.DelegationTokenIdentifier("o", "r", "", 1, 2, 7, 3)
    orphan = values.DelegationTokenIdentifier("o", "r", "", 1, 2, 8, 4)
    namespace = given_edits.after(
        ops.UpdateMasterKey(values.DelegationKey(3, 99, b"k")),
        ops.GetDelegationToken(token, 50),
        ops.GetDelegationToken(orphan, 50),
        ops.RenewDelegationToken(token, 60),
    )
    assert namespace.secrets.tokens == {token: 60}
    assert (namespace.secrets.token_sequence_number, namespace.secrets.current_key_id) == (8, 3)
    namespace.apply(TxId(5), ops.CancelDelegationToken(token))
    assert namespace.secrets.tokens == {}


def test_a_cache_pool_takes_its_directives_along() -> None:
    namespace = given_edits.after(
        ops.AddCachePool(values.CachePool("p", "o", "g", 0o700, 1, 2)),
        ops.ModifyCachePool(values.CachePool("p", limit=5)),
        ops.AddCacheDirective(values.CacheDirective(4, "/d", 1, "p", 9)),
        ops.ModifyCacheDirective(values.CacheDirective(4, replication=3)),
    )
    assert namespace.cache.pools["p"].limit == 5
    assert namespace.cache.directives[4] == values.CacheDirective(4, "/d", 3, "p", 9)
    namespace.apply(TxId(5), ops.RemoveCachePool("p"))
    assert (namespace.cache.directives, namespace.cache.next_directive_id) == ({}, 5)


def test_user_ec_policies_are_numbered_from_64_and_stay_as_removed() -> None:
    namespace = given_edits.after(
        ops.AddErasureCodingPolicy(values.EcPolicy("rs", 3, 2, 8192)),
        ops.EnableErasureCodingPolicy("RS-3-2-8k"),
        ops.EnableErasureCodingPolicy("XOR-2-1-1024k"),
        ops.RemoveErasureCodingPolicy("RS-3-2-8k"),
        ops.DisableErasureCodingPolicy("RS-3-2-8k"),
        ops.DisableErasureCodingPolicy("XOR-2-1-1024k"),
    )
    assert namespace.ec_policies[64].state is EcState.REMOVED
    assert namespace.ec_policies[4].state is EcState.DISABLED


def test_a_rolling_upgrade_begins_and_ends() -> None:
    namespace = given_edits.after(ops.RollingUpgradeStart(123))
    namespace.apply(TxId(2), ops.EndLogSegment())
    namespace.apply(TxId(3), ops.StartLogSegment())
    assert namespace.rolling_upgrade_start == 123
    namespace.apply(TxId(4), ops.RollingUpgradeFinalize(124))
    assert namespace.rolling_upgrade_start is None


SNAPSHOTTED: list[Op] = [
    given_edits.mkdir("/d"),
    ops.AllowSnapshot("/d"),
    ops.CreateSnapshot("/d", "s", 77),
]


def test_snapshots_are_taken_renamed_and_dropped() -> None:
    namespace = given_edits.after(list(SNAPSHOTTED), ops.RenameSnapshot("/d", "s", "t", 78))
    [snapshot] = namespace.snapshots.snapshottable[namespace.tree.node("/d").id]
    assert (snapshot.id, snapshot.name, snapshot.root.mtime, mtime(namespace, "/d")) == (
        0,
        "t",
        78,
        77,
    )
    namespace.apply(TxId(5), ops.DeleteSnapshot("/d", "t", 79))
    namespace.apply(TxId(6), ops.DisallowSnapshot("/d"))
    assert (namespace.snapshots.counter, namespace.snapshots.snapshottable) == (1, {})


MOVES_SNAPSHOTS: list[Op] = [
    ops.Delete("/p", 5),
    ops.RenameOld("/p", "/q", 5),
    ops.Rename("/p/d", "/q", 5),
    ops.Rename("/x", "/p/d", 5, (values.RenameOption.OVERWRITE,)),
]


@pytest.mark.parametrize("op", MOVES_SNAPSHOTS, ids=repr)
def test_a_directory_with_snapshots_can_neither_go_nor_move(op: Op) -> None:
    namespace = given_edits.after(
        given_edits.mkdir("/x"),
        given_edits.mkdir("/p"),
        given_edits.mkdir("/p/d"),
        ops.AllowSnapshot("/p/d"),
    )
    namespace.apply(TxId(5), ops.CreateSnapshot("/p/d", "s", 1))
    with pytest.raises(ApplyError, match="snapshottable and has 1 snapshots"):
        namespace.apply(TxId(6), op)


def test_a_snapshottable_directory_without_snapshots_may_go() -> None:
    namespace = given_edits.after(
        given_edits.mkdir("/d"), ops.AllowSnapshot("/d"), ops.Delete("/d", 5)
    )
    assert namespace.snapshots.snapshottable == {}


def test_a_file_is_a_file() -> None:
    made = given_edits.after(add("/f", storage_policy_id=2)).tree.file("/f")
    assert isinstance(made, inode.INodeFile)
    assert made.storage_policy_id == 2


def test_a_directory_keeps_the_access_time_that_was_set() -> None:
    """Hadoop keeps it in memory as well, and shows 0 after a load."""
    namespace = given_edits.after(given_edits.mkdir("/d"), ops.Times("/d", -1, 7))
    assert directory(namespace).atime == 7
    assert status_of(namespace, directory(namespace)).access_time == 7
