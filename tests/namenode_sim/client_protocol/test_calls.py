"""What calls answer, and what they leave behind."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import Mkdir
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, prepared

RENAMES: dict[str, tuple[str, str, bool, list[str]]] = {
    "to a new name": ("/f", "/x", True, ["/x"]),
    "into a directory": ("/f", "/d", True, ["/d/f"]),
    "onto itself": ("/f", "/f", True, ["/f"]),
    "onto a file": ("/d", "/f", False, ["/d", "/f"]),
    "of nothing": ("/none", "/x", False, []),
    "into a directory that has one": ("/d/g", "/d", True, ["/d/g"]),
    "below itself": ("/d", "/d/e", False, ["/d"]),
    "to where there is no directory": ("/f", "/x/y", False, ["/f"]),
    "of the root": ("/", "/x", False, []),
}


@pytest.mark.parametrize(("src", "dst", "result", "present"), RENAMES.values(), ids=RENAMES.keys())
async def test_the_first_rename_answers_with_true_or_false(
    src: str, dst: str, result: bool, present: list[str]
) -> None:
    served = await prepared()
    answer = await served.call("rename", src=src, dst=dst)
    assert answer == calls.RenameResponseProto(result=result)
    assert all([await served.status(path) is not None for path in present])


async def test_a_file_s_life() -> None:
    served = await prepared()
    made = await served.create("/n", blockSize=1 << 20, storagePolicy="COLD")
    assert (made.path, made.length, made.blocksize, made.block_replication) == (b"", 0, 1 << 20, 3)
    assert made.storagePolicy == 2
    closed = calls.IsFileClosedResponseProto(result=False)
    assert await served.call("isFileClosed", src="/n") == closed
    await served.call("rename", src="/n", dst="/d/e/m")
    assert await served.complete("/n", fileId=made.fileId)  # by id, wherever it is now
    closed.result = True
    assert await served.call("isFileClosed", src="/d/e/m") == closed
    assert await served.status("/n") is None


async def test_overwriting_gives_a_new_file() -> None:
    served = await prepared()
    old = await served.status("/open")
    new = await served.create("/open", createFlag=3, clientName="other")
    assert old is not None
    assert new.fileId > old.fileId
    assert set(served.namespace.tree.leases) == {"other"}


async def test_what_is_below_a_file_does_not_exist_for_the_superuser_and_is_denied_to_others() -> (
    None
):
    served = await prepared()
    assert await served.status("/f/x") is None
    with pytest.raises(RemoteFault, match=r"/f \(is not a directory\)"):
        await served.status("/f/x", user="alice")


async def test_an_inode_is_found_by_its_id() -> None:
    served = await prepared()
    directory = await served.status("/d")
    assert directory is not None
    by_id = f"/.reserved/.inodes/{directory.fileId}"
    assert await served.status(by_id) == directory
    assert await served.status(f"{by_id}/g") == await served.status("/d/g")
    with pytest.raises(RemoteFault, match="File for given inode path does not exist"):
        await served.status("/.reserved/.inodes/99999")


async def test_the_reserved_directory_is_shown_and_holds_all_paths_under_raw() -> None:
    served = await prepared()
    reserved = await served.status("/.reserved", user="alice")
    assert reserved is not None
    assert reserved.permission.perm == 0o1770
    listing = await served.call("getListing", src="/.reserved", startAfter=b"", needLocation=False)
    assert isinstance(listing, calls.GetListingResponseProto)
    assert [entry.path for entry in listing.dirList.partialListing] == [b".inodes", b"raw"]
    assert listing.dirList.remainingEntries == 0
    assert await served.status("/.reserved/.inodes") is None
    for path in ("/", "/d/g", "/none"):
        raw = await served.status(f"/.reserved/raw{path}", user="alice")
        assert raw == await served.status(path, user="alice")


CHANGES: dict[str, Fields] = {
    "setPermission": {"permission": {"perm": 0o700}},
    "setOwner": {"username": "alice"},
    "delete": {"recursive": True},
}


@pytest.mark.parametrize(("method", "fields"), CHANGES.items(), ids=CHANGES.keys())
async def test_the_reserved_directory_itself_is_not_changed(method: str, fields: Fields) -> None:
    served = await prepared()
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, src="/.reserved", **fields)
    assert refusal.value.message == "Invalid path name /.reserved"


async def test_only_the_superuser_changes_something_by_its_raw_path() -> None:
    served = await prepared()
    await served.call("setOwner", src="/d", username="alice")
    directory = await served.status("/d")
    assert directory is not None
    await served.mkdirs(f"/.reserved/.inodes/{directory.fileId}/i", user="alice")
    with pytest.raises(RemoteFault, match="Superuser privilege is required"):
        await served.mkdirs("/.reserved/raw/d/h", user="alice")
    await served.mkdirs("/.reserved/raw/d/h")
    (edit,) = served.log.ops()[-1:]
    assert isinstance(edit, Mkdir)
    assert edit.path == "/d/h"


async def test_listings_come_in_pages_after_a_name() -> None:
    served = await prepared(Settings(listing_limit=2))
    for name in ("a", "é", "b", "c"):
        await served.mkdirs(f"/l/{name}")
    seen: list[str] = []
    remaining: list[int] = []
    start = b""
    while True:
        page = await served.call("getListing", src="/l", startAfter=start, needLocation=False)
        assert isinstance(page, calls.GetListingResponseProto)
        seen += [entry.path.decode() for entry in page.dirList.partialListing]
        remaining.append(page.dirList.remainingEntries)
        if not page.dirList.remainingEntries:
            break
        start = page.dirList.partialListing[-1].path
    assert (seen, remaining) == (["é", "a", "b", "c"], [2, 0])
    missing = await served.call("getListing", src="/none", startAfter=b"", needLocation=False)
    assert missing == calls.GetListingResponseProto()


async def test_name_quotas_hold_for_new_and_for_moved_inodes() -> None:
    served = await prepared()
    await served.call("setQuota", path="/d", namespaceQuota=4, storagespaceQuota=2**64 - 1)
    await served.mkdirs("/d/x")  # /d, /d/e, /d/g and this
    with pytest.raises(RemoteFault) as refusal:
        await served.mkdirs("/d/y")
    assert refusal.value.java_class.endswith("NSQuotaExceededException")
    assert refusal.value.message == (
        "The NameSpace quota (directories and files) of directory /d is exceeded: "
        "quota=4 file count=5"
    )
    with pytest.raises(RemoteFault, match="is exceeded"):
        await served.call("rename", src="/f", dst="/d/f")
    await served.call("rename", src="/d/x", dst="/d/e/x")  # within the same quota
    await served.call("delete", src="/d/g", recursive=False)
    await served.mkdirs("/d/y")


async def test_a_directory_holds_so_many_entries() -> None:
    served = await prepared(Settings(max_directory_items=3))
    with pytest.raises(RemoteFault) as refusal:
        await served.touch("/more")
    assert refusal.value.message == "The directory item limit of / is exceeded: limit=3 items=3"


async def test_reading_moves_the_access_time_at_most_once_an_hour() -> None:
    served = await prepared()
    read: Fields = {"src": "/f", "offset": 0, "length": 10}
    await served.call("getBlockLocations", **read)
    edits = len(served.log.frames)
    await served.call("setTimes", src="/f", mtime=5, atime=5)
    await served.call("getBlockLocations", **read)
    await served.call("getBlockLocations", **read)
    assert len(served.log.frames) == edits + 2
    file = served.namespace.tree.file("/f")
    assert file.mtime == 5
    assert file.atime > 5
