"""Quotas of space, in all and by type of storage: what each call may still take, to the byte."""

import cProfile
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import SPACE_QUOTA_EXCEEDED, TYPE_QUOTA_EXCEEDED
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words.quotas import prefixed
from namenode_sim.namespace.inode import INodeDirectory
from namenode_sim.namespace.snapshots import held
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve

KEEP, NONE = 2**63 - 1, 2**64 - 1
BLOCK = 1 << 20
"""The preferred block size of ``create`` here."""

Deed = Callable[[Served], Awaitable[object]]


async def prepared() -> Served:
    """``/q`` has ``f`` of 30 bytes and ``g`` of 10 in 2 replicas; ``/out/h`` has 7 bytes."""
    served = datanodes_in_memory.with_datanodes(serve())
    for path, *lengths in (("/q/f", 20, 10), ("/q/g", 10), ("/out/h", 7), ("/q/sub/i", 5)):
        assert isinstance(path, str)
        await served.create(path, blockSize=BLOCK)
        await write(served, path, *[length for length in lengths if isinstance(length, int)])
    await served.call("setReplication", src="/q/g", replication=2)
    return served


async def write(served: Served, path: str, *lengths: int) -> None:
    """Write blocks of these lengths into an open file, and close it."""
    last = None
    for length in lengths:
        added = await datanodes_in_memory.add_block(served, path, last)
        last = datanodes_in_memory.sized(added.b, length)
        names = [place.id.datanodeUuid for place in added.locs]
        datanodes_in_memory.report(served, last, *names)
    assert await served.complete(path, last=last)


async def limit(served: Served, path: str, space: int, kind: str | None = None) -> None:
    fields: Fields = {"path": path, "namespaceQuota": KEEP, "storagespaceQuota": space}
    if kind is not None:
        fields["storageType"] = kind
    await served.call("setQuota", **fields)


USED = 3 * 30 + 2 * 10 + 3 * 5
"""Bytes that /q takes with all replicas."""


async def add_a_block(served: Served) -> None:
    await served.create("/q/new", blockSize=BLOCK)
    await datanodes_in_memory.add_block(served, "/q/new")


async def add_two_blocks(served: Served) -> None:
    """Of the first only its 4 bytes count as soon as the second is asked for."""
    await served.create("/q/new", blockSize=BLOCK)
    added = await datanodes_in_memory.add_block(served, "/q/new")
    first = datanodes_in_memory.sized(added.b, 4)
    names = [place.id.datanodeUuid for place in added.locs]
    datanodes_in_memory.report(served, first, *names)
    await datanodes_in_memory.add_block(served, "/q/new", first)


def call(method: str, **fields: Any) -> Deed:  # noqa: ANN401 - as messages have them
    return lambda served: served.call(method, **fields)


NEEDS: dict[str, tuple[Deed, int]] = {
    "a block": (add_a_block, 3 * BLOCK),
    "a block behind a short one": (add_two_blocks, 3 * (4 + BLOCK)),
    "an append opens the last block": (
        call("append", src="/q/f", clientName="writer"), 3 * (BLOCK - 10),
    ),
    "more replicas": (call("setReplication", src="/q/f", replication=5), 2 * 30),
    "a cut inside a block opens it": (
        call("truncate", src="/q/f", newLength=25, clientName="writer"), 3 * (BLOCK - 10),
    ),
    "a cut gives blocks back first": (
        call("truncate", src="/q/f", newLength=15, clientName="writer"), 3 * (BLOCK - 20 - 10),
    ),
    "blocks get the replication of what they are put behind": (
        call("concat", trg="/q/f", srcs=["/q/g"]), 1 * 10,
    ),
    "a file comes": (call("rename2", src="/out/h", dst="/q/h", overwriteDest=False), 3 * 7),
    "a file comes with the old call": (call("rename", src="/out/h", dst="/q/h"), 3 * 7),
    "a directory comes": (call("rename", src="/out", dst="/q/out"), 3 * 7),
    "a file comes in the place of another": (
        call("rename2", src="/out/h", dst="/q/sub/i", overwriteDest=True), 3 * (7 - 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "at"),
    [(name, at) for name in NEEDS for at in ("/q", "/") if at == "/q" or "comes" not in name],
)
async def test_a_call_takes_the_last_byte_and_not_one_more(name: str, at: str) -> None:
    """What only moves within ``/`` takes nothing of its quota."""
    deed, needed = NEEDS[name]
    outside = 3 * 7 if at == "/" else 0
    served = await prepared()
    await limit(served, at, USED + outside + needed)
    await deed(served)
    served = await prepared()
    await limit(served, at, USED + outside + needed - 1)
    with pytest.raises(RemoteFault) as refused:
        await deed(served)
    assert refused.value.java_class == SPACE_QUOTA_EXCEEDED
    assert f"The DiskSpace quota of {at} is exceeded: quota = " in refused.value.message
    assert f"but diskspace consumed = {USED + outside + needed} B = " in refused.value.message


FREE: dict[str, Deed] = {
    "fewer replicas": call("setReplication", src="/q/f", replication=1),
    "a cut at a block's end": call("truncate", src="/q/f", newLength=20, clientName="writer"),
    "within the quota": call("rename", src="/q/f", dst="/q/sub/f"),
    "out of it": call("rename", src="/q/f", dst="/out/f"),
    "an append with a new block": call("append", src="/q/f", clientName="writer", flag=32),
    "an empty file": call(
        "create", src="/q/e", masked={"perm": 0o644}, clientName="w", createFlag=1,
        createParent=True, replication=3, blockSize=BLOCK,
    ),
    "a directory": call("mkdirs", src="/q/d", masked={"perm": 0o755}, createParent=True),
    "a deletion": call("delete", src="/q/f", recursive=False),
    "a storage policy": call("setStoragePolicy", src="/q/f", policyName="ALL_SSD"),
    "blocks with more replicas than the target's": call("concat", trg="/q/g", srcs=["/q/f"]),
}  # fmt: skip


@pytest.mark.parametrize("deed", FREE.values(), ids=FREE.keys())
async def test_what_takes_nothing_is_let_in_though_there_is_too_much(deed: Deed) -> None:
    served = await prepared()
    await limit(served, "/q", 1)
    await deed(served)


async def test_the_lowest_directory_refuses_first() -> None:
    served = await prepared()
    for path in ("/q", "/q/sub"):
        await limit(served, path, 20)
    with pytest.raises(RemoteFault, match="DiskSpace quota of /q/sub is exceeded"):
        await served.call("setReplication", src="/q/sub/i", replication=5)


async def test_a_refused_call_leaves_no_edit_and_no_place() -> None:
    served = await prepared()
    await limit(served, "/q", USED)
    await served.create("/q/new", blockSize=BLOCK)
    before = len(served.log.frames)
    with pytest.raises(RemoteFault):
        await datanodes_in_memory.add_block(served, "/q/new")
    assert len(served.log.frames) == before
    nodes = served.cluster.nodes.values()
    storages = [storage for node in nodes for storage in node.storages.values()]
    now = served.scene("hdfs").now
    assert [storage.held.scheduled.count(now) for storage in storages] == [0, 0, 0]


#   the policy of /q -> bytes on DISK, SSD and ARCHIVE of f, g and i
TYPES = {
    "HOT": (USED, 0, 0),
    "ALL_SSD": (0, USED, 0),
    "COLD": (0, 0, USED),
    "ONE_SSD": (USED - 45, 45, 0),
    "WARM": (45, 0, USED - 45),
}


@pytest.mark.parametrize(("policy", "expected"), TYPES.items())
async def test_bytes_count_on_the_types_of_the_policy(
    policy: str, expected: tuple[int, int, int]
) -> None:
    served = await prepared()
    for kind in ("DISK", "SSD", "ARCHIVE"):
        await limit(served, "/q", 1 << 40, kind)
    await served.call("setStoragePolicy", src="/q", policyName=policy)
    for method, field in (("getQuotaUsage", "usage"), ("getContentSummary", "summary")):
        infos = getattr(await served.call(method, path="/q"), field).typeQuotaInfos
        assert {one.type: one.consumed for one in infos.typeQuotaInfo} == {
            1: expected[0], 2: expected[1], 3: expected[2],
        }  # fmt: skip


async def test_a_quota_by_type_holds_for_that_type_alone() -> None:
    served = await prepared()
    await served.call("setStoragePolicy", src="/q", policyName="ONE_SSD")
    await limit(served, "/q", USED - 45 + 60, "DISK")
    await limit(served, "/q", 45, "SSD")
    await served.call("setReplication", src="/q/f", replication=5)  # 60 bytes more on DISK
    with pytest.raises(RemoteFault) as refused:
        await served.call("setReplication", src="/q/g", replication=3)
    assert refused.value.java_class == TYPE_QUOTA_EXCEEDED
    assert refused.value.message.startswith(
        "Quota by storage type : DISK on path : /q is exceeded. quota = 140 B but space consumed = "
        "150 B"
    )


async def test_files_without_a_policy_are_on_no_type() -> None:
    served = await prepared()
    await limit(served, "/q", 1, "DISK")
    await served.call("setReplication", src="/q/f", replication=5)


async def test_a_moved_file_counts_by_the_policy_of_its_new_place() -> None:
    served = await prepared()
    await served.call("setStoragePolicy", src="/out", policyName="ALL_SSD")
    await served.call("setStoragePolicy", src="/q", policyName="COLD")
    await limit(served, "/q", USED + 20, "ARCHIVE")
    with pytest.raises(RemoteFault, match=r"ARCHIVE on path : /q .* consumed = 146 B"):
        await served.call("rename", src="/out/h", dst="/q/h")


async def test_what_snapshots_alone_hold_counts() -> None:
    served = await prepared()
    await served.take_snapshot("/q", "s")
    await served.call("delete", src="/q/f", recursive=False)
    await limit(served, "/q", USED + 20)
    with pytest.raises(RemoteFault, match=f"consumed = {USED + 21} B"):
        await served.call("rename", src="/out/h", dst="/q/h")
    await served.call("deleteSnapshot", snapshotRoot="/q", snapshotName="s")
    await served.call("rename", src="/out/h", dst="/q/h")


async def test_a_file_that_a_snapshot_keeps_takes_a_name_as_its_successor_does() -> None:
    served = await prepared()
    await served.take_snapshot("/q", "s")
    fields: Fields = {"path": "/q", "namespaceQuota": 5, "storagespaceQuota": KEEP}
    await served.call("setQuota", **fields)
    before = len(served.log.frames)
    with pytest.raises(RemoteFault, match="quota=5 file count=6"):
        await served.create("/q/f", blockSize=BLOCK, createFlag=3)
    assert len(served.log.frames) == before
    await served.call("setQuota", **{**fields, "namespaceQuota": 6})
    await served.create("/q/f", blockSize=BLOCK, createFlag=3)
    await served.create("/q/f", blockSize=BLOCK, createFlag=3)  # the second is in no snapshot


async def test_a_snapshot_that_goes_does_not_have_the_tree_counted_anew() -> None:
    """A walk over millions of files, in the turn of the next call."""
    served = await prepared()
    await served.take_snapshot("/q", "s")
    await served.call("setReplication", src="/q/g", replication=1)
    directory = served.namespace.tree.find("/q")
    assert isinstance(directory, INodeDirectory)
    before = held.use_of(served.namespace.tree, directory)
    await served.call("deleteSnapshot", snapshotRoot="/q", snapshotName="s")
    kept = served.namespace.tree.usage.live[directory.id]
    assert before.space() == USED
    assert kept.space() == USED - 10
    assert held.use_of(served.namespace.tree, directory) == kept


async def test_what_only_a_snapshot_has_below_a_directory_moves_with_it() -> None:
    served = await prepared()
    await datanodes_in_memory.written(served, "/out/d/x", 4)
    await served.take_snapshot("/out", "s")
    await served.call("delete", src="/out/d/x", recursive=False)
    await limit(served, "/q", USED + 11)
    with pytest.raises(RemoteFault, match=f"consumed = {USED + 12} B"):
        await served.call("rename", src="/out/d", dst="/q/d")
    await limit(served, "/q", USED + 12)
    await served.call("rename", src="/out/d", dst="/q/d")


async def test_what_only_a_snapshot_has_counts_by_the_policy_of_its_new_place() -> None:
    served = await prepared()
    await served.call("setStoragePolicy", src="/out", policyName="ALL_SSD")
    await datanodes_in_memory.written(served, "/out/d/x", 4)
    await served.take_snapshot("/out", "s")
    await served.call("delete", src="/out/d/x", recursive=False)
    await limit(served, "/q", 1, "SSD")
    await served.call("rename", src="/out/d", dst="/q/d")


@pytest.mark.parametrize("changed", [False, True])
async def test_a_cut_counts_what_a_snapshot_keeps_of_the_file(changed: bool) -> None:
    """Whether or not a change since the snapshot has had its blocks noted."""
    served = await prepared()
    await served.take_snapshot("/q", "s")
    if changed:
        await served.call("setTimes", src="/q/f", mtime=1, atime=1)
    needed = USED + 3 * BLOCK
    await limit(served, "/q", needed - 1)
    cut: Fields = {"src": "/q/f", "newLength": 5, "clientName": "writer"}
    with pytest.raises(RemoteFault, match=f"consumed = {needed} B"):
        await served.call("truncate", **cut)
    await limit(served, "/q", needed)
    await served.call("truncate", **cut)


@pytest.mark.parametrize("kind", [None, "DISK"])
async def test_a_quota_of_nothing_lets_nothing_in(kind: str | None) -> None:
    served = await prepared()
    await served.call("setStoragePolicy", src="/out", policyName="HOT")
    await served.create("/out/empty/new", blockSize=BLOCK)
    await limit(served, "/out/empty", 0, kind)
    with pytest.raises(RemoteFault, match=r"quota = 0 B"):
        await datanodes_in_memory.add_block(served, "/out/empty/new")


async def test_a_type_on_which_nothing_is_added_refuses_nothing() -> None:
    """Though more is on it than its quota."""
    served = await prepared()
    await served.call("setStoragePolicy", src="/q/g", policyName="HOT")
    await served.call("setStoragePolicy", src="/q/f", policyName="ALL_SSD")
    await limit(served, "/q", 1, "DISK")
    await served.call("setReplication", src="/q/f", replication=5)
    with pytest.raises(RemoteFault, match="DISK on path : /q"):
        await served.call("setReplication", src="/q/g", replication=3)


async def test_the_last_byte_of_a_type_may_be_taken() -> None:
    served = await prepared()
    await served.call("setStoragePolicy", src="/q/g", policyName="HOT")
    await limit(served, "/q", 30, "DISK")
    await served.call("setReplication", src="/q/g", replication=3)
    with pytest.raises(RemoteFault, match="space consumed = 40 B"):
        await served.call("setReplication", src="/q/g", replication=4)


async def test_an_open_file_counts_a_whole_block_and_a_closed_one_its_bytes() -> None:
    served = await prepared()
    await limit(served, "/q", 1 << 40)
    opened = await served.call("append", src="/q/f", clientName="writer")
    assert isinstance(opened, calls.AppendResponseProto)
    usage = (await served.call("getQuotaUsage", path="/q")).usage  # type: ignore[attr-defined]
    assert usage.spaceConsumed == USED + 3 * (BLOCK - 10)
    block = datanodes_in_memory.sized(opened.block.b, 12)
    datanodes_in_memory.report(served, block, "d1", "d2", "d3")
    assert await served.complete("/q/f", last=block)
    directory = served.namespace.tree.node("/q")
    assert isinstance(directory, INodeDirectory)
    assert held.use_of(served.namespace.tree, directory).space() == USED + 6


#   as Hadoop's StringUtils.TraditionalBinaryPrefix.long2String(count, "B", 2) has them
PREFIXED = {
    0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1 KB", 1536: "1.50 KB", 1025: "1.00 KB",
    134217728: "128 MB", 1048575: "1.00 MB", 1048574: "1.00 MB", 1 << 60: "1 EB",
    (1 << 63) - 1: "8.00 EB", 1043334: "1018.88 KB",
}  # fmt: skip


@pytest.mark.parametrize(("count", "text"), PREFIXED.items())
def test_sizes_are_written_as_hadoop_writes_them(count: int, text: str) -> None:
    assert prefixed(count) == text


async def test_what_is_moved_is_counted_only_where_there_is_a_quota() -> None:
    """A directory may have millions of files, and the walk takes the turn of the call."""
    served = await prepared()
    for number in range(2000):
        await served.mkdirs(f"/big/{number}")
    counted = cProfile.Profile()
    with counted:
        await served.call("rename", src="/big", dst="/q/big")
    assert sum(one.callcount for one in counted.getstats()) < 2000
    await limit(served, "/out", 1)
    with pytest.raises(RemoteFault, match="consumed = "):
        await served.call("rename", src="/q", dst="/out/q")
