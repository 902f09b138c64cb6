"""What a listing or a status with locations holds, and where a page of a listing ends."""

import random

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import DirectoryListingProto, HdfsFileStatusProto
from namenode_sim.client_protocol.words.model import Settings
from tests.namenode_sim.client_protocol.datanodes_in_memory import with_datanodes, written
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, prepared, serve


async def listing(served: Served, path: str, **more: object) -> DirectoryListingProto:
    fields: Fields = {"src": path, "startAfter": b"", "needLocation": False, **more}
    answer = await served.call("getListing", **fields)
    assert isinstance(answer, calls.GetListingResponseProto)
    return answer.dirList


def names(page: DirectoryListingProto) -> list[str]:
    return [entry.path.decode() for entry in page.partialListing]


async def located(served: Served, path: str) -> HdfsFileStatusProto | None:
    answer = await served.call("getLocatedFileInfo", src=path, needBlockToken=False)
    assert isinstance(answer, calls.GetLocatedFileInfoResponseProto)
    return answer.fs if answer.HasField("fs") else None


async def test_a_file_that_nobody_may_read_lists_itself() -> None:
    served = await prepared()
    await served.call("setPermission", src="/f", permission={"perm": 0})
    page = await listing(served, "/f", user="alice")
    assert [entry.fileType for entry in page.partialListing] == [HdfsFileStatusProto.IS_FILE]
    assert (names(page), page.remainingEntries) == ([""], 0)


async def test_listings_and_statuses_tell_locations_if_asked() -> None:
    served = with_datanodes(serve())
    await served.mkdirs("/d/e")
    await written(served, "/d/f", 10)
    directory, file = (await listing(served, "/d", needLocation=True)).partialListing
    assert not directory.HasField("locations")
    assert len(file.locations.blocks[0].locs) == 3
    (itself,) = (await listing(served, "/d/f", needLocation=True)).partialListing
    assert len(itself.locations.blocks[0].locs) == 3
    _, without = (await listing(served, "/d", needLocation=False)).partialListing
    assert not without.HasField("locations")
    status = await located(served, "/d/f")
    assert status is not None
    assert len(status.locations.blocks[0].locs) == 3


# How many replicas a page may count, the names of the first page, and how many come after it.
PAGES: dict[str, tuple[int, str, int]] = {
    "as many as one file wants": (3, "a", 3),
    "more than one file wants": (4, "ab", 2),
    "fewer than all files want": (5, "ab", 2),
    "as many as all files want": (12, "abcd", 0),
}


@pytest.mark.parametrize("datanodes", [1, 3])
@pytest.mark.parametrize(("limit", "listed", "remaining"), PAGES.values(), ids=PAGES.keys())
async def test_a_page_ends_with_the_replicas_that_its_files_want(
    limit: int, listed: str, remaining: int, datanodes: int
) -> None:
    served = with_datanodes(serve(settings=Settings(listing_limit=limit)), datanodes)
    for name in "abcd":
        await written(served, f"/d/{name}", 10)
    page = await listing(served, "/d", needLocation=True)
    assert (names(page), page.remainingEntries) == (list(listed), remaining)
    rest = await listing(served, "/d", needLocation=True, startAfter=listed[-1].encode())
    assert names(rest) == list("abcd"[len(listed) : 2 * len(listed)])


async def test_a_page_begins_after_the_name_of_an_inode() -> None:
    served = await prepared()
    file = await served.status("/f")
    assert file is not None
    by_id = f"/.reserved/.inodes/{file.fileId}".encode()
    assert names(await listing(served, "/")) == ["d", "f", "open"]
    assert names(await listing(served, "/", startAfter=by_id)) == ["open"]
    await served.call("delete", src="/f", recursive=False)
    with pytest.raises(RemoteFault, match="Can't find startAfter") as refusal:
        await listing(served, "/", startAfter=by_id)
    assert refusal.value.java_class.endswith(".fs.DirectoryListingStartAfterNotFoundException")


async def test_a_snapshot_lists_what_its_entries_were() -> None:
    served = with_datanodes(serve())
    await served.mkdirs("/s/e", mode=0o700)
    await written(served, "/s/f", 10)
    await served.take_snapshot("/s", "one")
    await served.call("setPermission", src="/s/e", permission={"perm": 0o777})
    await served.call("append", src="/s/f", clientName="writer")
    page = await listing(served, "/s/.snapshot/one", needLocation=True)
    directory, file = page.partialListing
    assert (directory.permission.perm, file.length) == (0o700, 10)
    assert not file.locations.underConstruction
    now = await listing(served, "/s", needLocation=True)
    assert [entry.permission.perm for entry in now.partialListing] == [0o777, 0o644]
    assert now.partialListing[1].locations.underConstruction


async def test_a_status_with_locations_has_all_blocks_of_a_file_and_no_other_has() -> None:
    served = with_datanodes(serve())
    await written(served, "/f", 1, 10)
    found = await located(served, "/f")
    assert found is not None
    assert [block.offset for block in found.locations.blocks] == [0, 1]
    without = await served.status("/f")
    assert without is not None
    assert not without.HasField("locations")


@pytest.mark.parametrize("path", ["/d", "/.snapshot", "/none", "/f/below-a-file"])
async def test_of_what_is_no_file_a_status_with_locations_tells_the_same_as_one_without(
    path: str,
) -> None:
    served = await prepared()
    assert await located(served, path) == await served.status(path)


async def test_a_file_s_block_size_is_that_of_its_creation() -> None:
    served = serve()
    await served.create("/f", blockSize=1 << 20)
    answer = await served.call("getPreferredBlockSize", filename="/f")
    assert answer == calls.GetPreferredBlockSizeResponseProto(bsize=1 << 20)


async def change(served: Served, chance: random.Random, path: str) -> None:
    """Change one trait, or the numbers, of a file; or delete it."""
    entry = {"type": 0, "scope": 0, "permissions": 7, "name": "bob"}
    calls_of: dict[str, Fields] = {
        "setPermission": {"permission": {"perm": 0o600}},
        "modifyAclEntries": {"aclSpec": [entry]},
        "setStoragePolicy": {"policyName": "COLD"},
        "setReplication": {"replication": chance.randrange(1, 5)},
        "delete": {"recursive": False},
        "setTimes": {"mtime": chance.randrange(1 << 41), "atime": 7},
    }
    method = chance.choice([*calls_of, "setTimes", "setTimes"])
    await served.call(method, src=path, **calls_of[method])


async def test_each_entry_is_the_status_of_its_path() -> None:
    """Files that are alike come behind each other, in the present and in a snapshot."""
    served, chance = serve(), random.Random(7)
    await served.mkdirs("/d/e")
    for number in range(200):
        await (served.touch if number % 5 else served.create)(f"/d/f{number:03}")
        if chance.randrange(4) == 0:
            await change(served, chance, f"/d/f{number:03}")
        if number == 120:
            await served.take_snapshot("/d", "s")
            await served.call("setStoragePolicy", src="/d", policyName="WARM")
    page = await listing(served, "/d")
    for name in chance.sample(names(page)[1:100], 40):
        await change(served, chance, f"/d/{name}")
    for folder in ("/d", "/d/.snapshot/s"):
        page = await listing(served, folder)
        assert len(page.partialListing) > 90
        for entry in page.partialListing:
            status = await served.status(f"{folder}/{entry.path.decode()}")
            assert status is not None
            status.path = entry.path
            assert entry.SerializeToString() == status.SerializeToString()
