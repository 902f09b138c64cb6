"""getContentSummary and getQuotaUsage: what is counted, of whom, and what snapshots add."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ContentSummaryProto, QuotaUsageProto, StorageTypeProto
from namenode_sim.client_protocol.reads.summary import ContentCounts, counting
from namenode_sim.namespace.inode import STRIPED
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Served, linked, serve

NO_QUOTA = (1 << 64) - 1


async def filled() -> Served:
    """``/d`` has a link, three directories and files of 10 bytes, 7 bytes and none."""
    served = datanodes_in_memory.with_datanodes(await linked())
    await datanodes_in_memory.written(served, "/d/ten", 6, 4)
    await datanodes_in_memory.written(served, "/d/e/seven", 7)
    await served.call("setReplication", src="/d/e/seven", replication=2)
    await served.mkdirs("/d/e/empty")
    return served


async def summed(served: Served, path: str, user: str = SUPERUSER) -> ContentSummaryProto:
    answer = await served.call("getContentSummary", path=path, user=user)
    assert isinstance(answer, calls.GetContentSummaryResponseProto)
    return answer.summary


async def used(served: Served, path: str) -> QuotaUsageProto:
    answer = await served.call("getQuotaUsage", path=path)
    assert isinstance(answer, calls.GetQuotaUsageResponseProto)
    return answer.usage


def told(
    sums: tuple[int, int, int, int],
    gone: tuple[int, int, int, int] = (0, 0, 0, 0),
    quotas: tuple[int, int] = (NO_QUOTA, NO_QUOTA),
    coding: str = "",
) -> ContentSummaryProto:
    """Return an answer; sums are files, directories, bytes and bytes with all replicas."""
    return ContentSummaryProto(
        fileCount=sums[0],
        directoryCount=sums[1],
        length=sums[2],
        spaceConsumed=sums[3],
        snapshotFileCount=gone[0],
        snapshotDirectoryCount=gone[1],
        snapshotLength=gone[2],
        snapshotSpaceConsumed=gone[3],
        quota=quotas[0],
        spaceQuota=quotas[1],
        erasureCodingPolicy=coding,
    )


async def test_a_directory_counts_itself_and_all_below() -> None:
    served = await filled()
    assert await summed(served, "/d") == told((4, 3, 17, 44))
    await served.call("setQuota", path="/d", namespaceQuota=50, storagespaceQuota=1 << 40)
    assert await summed(served, "/d") == told((4, 3, 17, 44), quotas=(50, 1 << 40))
    assert await used(served, "/d") == QuotaUsageProto(
        fileAndDirectoryCount=7, quota=50, spaceConsumed=44, spaceQuota=1 << 40
    )


async def test_a_file_has_no_quotas_and_is_replicated() -> None:
    served = await filled()
    assert await summed(served, "/d/ten") == told((1, 0, 10, 30), coding="Replicated")
    assert await used(served, "/d/ten") == QuotaUsageProto(
        fileAndDirectoryCount=1, quota=NO_QUOTA, spaceConsumed=30, spaceQuota=NO_QUOTA
    )


async def test_a_striped_file_is_not_replicated() -> None:
    served = await filled()
    served.namespace.tree.file("/d/g").block_type = STRIPED
    assert (await summed(served, "/d/g")).erasureCodingPolicy == ""


async def test_nobody_needs_to_read_the_files_that_are_counted() -> None:
    served = await filled()
    await served.call("setPermission", src="/d/ten", permission={"perm": 0})
    assert (await summed(served, "/d", user="bob")).length == 17


async def snapshotted() -> Served:
    served = await filled()
    await served.take_snapshot("/d", "one")
    return served


async def append(served: Served, src: str, length: int) -> None:
    opened = await served.call("append", src=src, clientName="writer")
    assert isinstance(opened, calls.AppendResponseProto)
    block = datanodes_in_memory.sized(opened.block.b, opened.block.b.numBytes + length)
    datanodes_in_memory.report(served, block, "d1", "d2", "d3")
    assert await served.complete(src, last=block)


async def test_what_was_deleted_counts_while_a_snapshot_has_it() -> None:
    served = await snapshotted()
    await served.call("delete", src="/d/e", recursive=True)
    assert await summed(served, "/d") == told((4, 3, 17, 44), gone=(1, 2, 7, 14))
    assert await summed(served, "/d/.snapshot/one") == told((4, 3, 17, 44))
    await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName="one")
    assert await summed(served, "/d") == told((3, 1, 10, 30))


async def test_a_file_that_was_appended_to_counts_as_it_is_now() -> None:
    served = await snapshotted()
    await append(served, "/d/ten", 5)
    assert await summed(served, "/d") == told((4, 3, 22, 59))
    assert await summed(served, "/d/.snapshot/one") == told((4, 3, 17, 44))


async def test_what_came_after_a_snapshot_is_not_counted_in_it() -> None:
    served = await snapshotted()
    await served.touch("/d/new")
    await served.mkdirs("/d/later")
    assert await summed(served, "/d") == told((5, 4, 17, 44))
    assert await summed(served, "/d/.snapshot/one") == told((4, 3, 17, 44))


async def test_what_moved_away_counts_as_it_was() -> None:
    served = await snapshotted()
    await served.call("rename2", src="/d/ten", dst="/away", overwriteDest=False)
    await append(served, "/away", 5)
    assert await summed(served, "/d") == told((4, 3, 17, 44), gone=(1, 0, 10, 30))
    assert (await summed(served, "/away")).length == 15


@pytest.mark.parametrize(("nodes", "pauses"), [(4999, 0), (5000, 1), (10_000, 2)])
async def test_others_get_their_turn_after_so_many_inodes(nodes: int, pauses: int) -> None:
    served = serve()
    await served.touch("/f")
    root = served.namespace.tree.root
    root.children |= {b"%d" % number: root.children[b"f"] for number in range(nodes - 2)}
    caller = served.scene(SUPERUSER).caller
    counts = ContentCounts()
    assert len(list(counting(caller, root, counts))) == pauses
    assert counts.files + counts.directories == nodes


async def test_quotas_by_type_of_storage_are_shown() -> None:
    served = await filled()
    assert not (await used(served, "/d")).HasField("typeQuotaInfos")
    for kind, quota in (("DISK", 1 << 20), ("SSD", 5)):
        await served.call(
            "setQuota", path="/d", namespaceQuota=2**63 - 1, storagespaceQuota=quota,
            storageType=kind,
        )  # fmt: skip
    for answer in (await used(served, "/d"), await summed(served, "/d")):
        found = [(one.type, one.quota) for one in answer.typeQuotaInfos.typeQuotaInfo]
        assert sorted(found) == [(StorageTypeProto.DISK, 1 << 20), (StorageTypeProto.SSD, 5)]


@pytest.mark.parametrize("limit", [None, ("DISK", 1 << 20)])
async def test_what_storage_policies_use_is_shown_without_quotas(
    limit: tuple[str, int] | None,
) -> None:
    """TestQuota.testRenameInodeWithStorageType: a type without a quota has -1."""
    served = await filled()
    await served.call("setStoragePolicy", src="/d/e", policyName="ONE_SSD")
    wanted = {"DISK": (7, NO_QUOTA), "SSD": (7, NO_QUOTA)}
    if limit is not None:
        kind, quota = limit
        await served.call(
            "setQuota", path="/d", namespaceQuota=2**63 - 1, storagespaceQuota=quota,
            storageType=kind,
        )  # fmt: skip
        wanted[kind] = (7, quota)
    for answer in (await used(served, "/d"), await summed(served, "/d")):
        assert wanted == {
            StorageTypeProto.Name(one.type): (one.consumed, one.quota)
            for one in answer.typeQuotaInfos.typeQuotaInfo
        }


async def test_each_call_has_its_words_for_what_is_not_there() -> None:
    served = await filled()
    for call, words in (
        (summed(served, "/none"), "File does not exist: /none"),
        (used(served, "/none"), "File/Directory does not exist: /none"),
    ):
        with pytest.raises(RemoteFault) as refused:
            await call
        assert refused.value.message == words
