"""Which edits leave an answer for a call that is repeated after a failover, and which one."""

from dataclasses import replace

import pytest

from namenode_sim.edits import ops, values
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.retry_cache import DONE, DirectiveAdded, Opened, SnapshotTaken
from tests.namenode_sim.namespace.given_edits import B1, WHO, add, after, close, file, mkdir

RPC = values.RpcIds(b"client-of-16byte", 7)
MARK = (values.XAttr(values.XAttrNamespace.USER, "a", b"1"),)
EC = values.EcPolicy("rs", 3, 2, 8192)
POOL, DIRECTIVE = (
    values.CachePool("p", "o", "g", 0o700, 1, 2),
    values.CacheDirective(4, "/d", 1, "p", 9),
)
TOKEN = values.DelegationTokenIdentifier("o", "r", "", 1, 2, 7, 3)
KEY_GIVEN = ops.UpdateMasterKey(values.DelegationKey(3, 99, b"k"))
TOKEN_GIVEN = ops.GetDelegationToken(TOKEN, 5)
WITH_SNAPSHOT: list[Op] = [mkdir("/d"), ops.AllowSnapshot("/d"), ops.CreateSnapshot("/d", "s", 5)]

DONE_ONCE: list[tuple[list[Op], Op]] = [
    ([add("/f"), ops.AddBlock("/f", None, B1)], ops.UpdateBlocks("/f", ())),
    ([*file("/f"), *file("/g", B1)], ops.ConcatDelete("/f", ("/g",), 5)),
    (file("/f"), ops.Delete("/f", 5)),
    (file("/f"), ops.RenameOld("/f", "/g", 5)),
    (file("/f"), ops.Rename("/f", "/g", 5)),
    ([], ops.Symlink(0, "/l", "/t", 5, 5, WHO)),
    (WITH_SNAPSHOT, ops.RenameSnapshot("/d", "s", "t", 6)),
    (WITH_SNAPSHOT, ops.DeleteSnapshot("/d", "s", 6)),
    ([mkdir("/d")], ops.SetXAttr("/d", MARK)),
    ([mkdir("/d"), ops.SetXAttr("/d", MARK)], ops.RemoveXAttr("/d", MARK)),
    ([], ops.AddCachePool(POOL)),
    ([ops.AddCachePool(POOL)], ops.ModifyCachePool(values.CachePool("p", limit=5))),
    ([ops.AddCachePool(POOL)], ops.RemoveCachePool("p")),
    (
        [ops.AddCachePool(POOL), ops.AddCacheDirective(DIRECTIVE)],
        ops.ModifyCacheDirective(values.CacheDirective(4, replication=3)),
    ),
    ([ops.AddCachePool(POOL), ops.AddCacheDirective(DIRECTIVE)], ops.RemoveCacheDirective(4)),
    ([], ops.AddErasureCodingPolicy(EC)),
    ([], ops.EnableErasureCodingPolicy("XOR-2-1-1024k")),
    ([], ops.DisableErasureCodingPolicy("XOR-2-1-1024k")),
    ([ops.AddErasureCodingPolicy(EC)], ops.RemoveErasureCodingPolicy("RS-3-2-8k")),
]


def name(value: object) -> str | None:
    return None if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize(("given", "op"), DONE_ONCE, ids=name)
def test_a_call_that_was_carried_out(given: list[Op], op: Op) -> None:
    namespace = after(given, replace(op, rpc=RPC))  # type: ignore[arg-type]
    assert namespace.retry_cache.find(RPC) is DONE
    assert len(namespace.retry_cache) == 1


def test_a_file_that_was_created_is_answered_again() -> None:
    namespace = after(add("/f", rpc=RPC))
    assert namespace.retry_cache.find(RPC) == Opened(namespace.tree.file("/f"))


def test_a_file_that_was_reopened_is_answered_again() -> None:
    namespace = after(file("/f"), ops.Append("/f", "other", "there", rpc=RPC))
    assert namespace.retry_cache.find(RPC) == Opened(namespace.tree.file("/f"))


def test_the_path_of_a_snapshot_is_answered_again() -> None:
    taken = ops.CreateSnapshot("/d", "s", 5, rpc=RPC)
    answer = after(mkdir("/d"), ops.AllowSnapshot("/d"), taken).retry_cache.find(RPC)
    assert answer == SnapshotTaken("/d", "s")
    assert isinstance(answer, SnapshotTaken)
    assert answer.path == "/d/.snapshot/s"


REPEATABLE: list[tuple[list[Op], Op]] = [
    ([], mkdir("/d")),
    ([add("/f")], close("/f")),
    ([add("/f")], ops.AddBlock("/f", None, B1, rpc=RPC)),
    (file("/f", B1), ops.Truncate("/f", "w", "m", 50, 5, values.Block(1, 100, 21))),
    (file("/f"), ops.SetReplication("/f", 2)),
    ([add("/f")], ops.ReassignLease("writer", "/f", "other")),
    ([], ops.SetGenstampV1(7)),
    ([], ops.SetGenstampV2(1001)),
    ([], ops.AllocateBlockId(2**30 + 1)),
    ([mkdir("/d")], ops.SetPermissions("/d", 0o700)),
    ([mkdir("/d")], ops.SetOwner("/d", "bob", "")),
    ([mkdir("/d")], ops.Times("/d", 1, 2)),
    ([mkdir("/d")], ops.SetQuota("/d", 5, 6)),
    ([mkdir("/d")], ops.SetNsQuota("/d", 5)),
    ([mkdir("/d")], ops.ClearNsQuota("/d")),
    ([mkdir("/d")], ops.SetQuotaByStorageType("/d", values.StorageType.SSD, 5)),
    ([mkdir("/d")], ops.SetAcl("/d", ())),
    ([mkdir("/d")], ops.SetStoragePolicy("/d", 7)),
    ([mkdir("/d")], ops.AllowSnapshot("/d")),
    ([mkdir("/d"), ops.AllowSnapshot("/d")], ops.DisallowSnapshot("/d")),
    ([], KEY_GIVEN),
    ([KEY_GIVEN], TOKEN_GIVEN),
    ([KEY_GIVEN, TOKEN_GIVEN], ops.RenewDelegationToken(TOKEN, 6)),
    ([KEY_GIVEN, TOKEN_GIVEN], ops.CancelDelegationToken(TOKEN)),
    ([], ops.RollingUpgradeStart(5)),
    ([ops.RollingUpgradeStart(5)], ops.RollingUpgradeFinalize(6)),
    ([], ops.StartLogSegment()),
    ([], ops.EndLogSegment()),
]


@pytest.mark.parametrize(("given", "op"), REPEATABLE, ids=name)
def test_a_call_that_may_be_carried_out_again(given: list[Op], op: Op) -> None:
    namespace = after(given, op)
    assert namespace.last_applied == len(given) + 1
    assert len(namespace.retry_cache) == 0


def test_every_kind_of_edit_was_tried() -> None:
    tried = {type(op) for _, op in (*DONE_ONCE, *REPEATABLE)}
    others = {ops.Add, ops.Append, ops.CreateSnapshot, ops.AddCacheDirective}
    assert tried | others == set(ops.OP_CLASSES)


def test_an_added_directive_is_remembered_by_its_id() -> None:
    added = ops.AddCacheDirective(DIRECTIVE, rpc=RPC)
    namespace = after([ops.AddCachePool(POOL)], added)
    assert namespace.retry_cache.find(RPC) == DirectiveAdded(4)
