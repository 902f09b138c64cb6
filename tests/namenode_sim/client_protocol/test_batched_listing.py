"""getBatchedListing: all entries of several paths once, in pages, and failures path by path."""

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import FILE_NOT_FOUND
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words.errors import UNSUPPORTED_ACTION
from namenode_sim.client_protocol.words.model import Settings
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

PATHS = ["/d", "/none", "/e", "/f", "/empty", "/d"]


async def prepared(limit: int) -> Served:
    """/d (with d0 to d6), /e (with e0 to e2), /empty, and the file /f."""
    served = serve(settings=Settings(listing_limit=limit))
    for path in (*(f"/d/d{n}" for n in range(7)), *(f"/e/e{n}" for n in range(3)), "/empty"):
        await served.mkdirs(path)
    await served.touch("/f")
    return served


async def pages(served: Served, *paths: str) -> list[calls.GetBatchedListingResponseProto]:
    found: list[calls.GetBatchedListingResponseProto] = []
    after = b""
    while not found or found[-1].hasMore:
        fields = {"paths": paths, "startAfter": after, "needLocation": False}
        answer = await served.call("getBatchedListing", **fields)  # type: ignore[arg-type]
        assert isinstance(answer, calls.GetBatchedListingResponseProto)
        found.append(answer)
        after = answer.startAfter
        assert len(found) < 100
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 10, 11, 1000])
async def test_every_entry_comes_once_whatever_a_page_holds(limit: int) -> None:
    served = await prepared(limit)
    found: dict[int, list[str]] = {}
    failed: dict[int, str] = {}
    for page in await pages(served, *PATHS):
        assert sum(len(one.partialListing) for one in page.listings) < 2 * limit
        for one in page.listings:
            names = [entry.path.decode() for entry in one.partialListing]
            found.setdefault(one.parentIdx, []).extend(names)
            if one.HasField("exception"):
                failed[one.parentIdx] = one.exception.className
                assert one.exception.message == "Path /none does not exist"
    seven = [f"d{n}" for n in range(7)]
    assert found == {0: seven, 1: [], 2: ["e0", "e1", "e2"], 3: [""], 4: [], 5: seven}
    assert failed == {1: FILE_NOT_FOUND}


@pytest.mark.parametrize("key", [b"\xff", b"nonsense"])
async def test_a_key_that_is_none_is_refused(key: bytes) -> None:
    served = await prepared(3)
    with pytest.raises(RemoteFault, match="startAfter is"):
        await served.call("getBatchedListing", paths=["/d"], startAfter=key, needLocation=False)


async def test_a_key_of_other_paths_and_too_many_paths_are_refused() -> None:
    served = await prepared(3)
    key = (await pages(served, "/d"))[0].startAfter
    with pytest.raises(RemoteFault, match="the key of a listing of other paths"):
        await served.call("getBatchedListing", paths=["/e"], startAfter=key, needLocation=False)
    few = serve(settings=Settings(batched_listing_limit=2))
    for where, most in ((await prepared(1000), 100), (few, 2)):
        await pages(where, *["/d"] * most)
        with pytest.raises(RemoteFault, match=rf"Too many source paths \({most + 1} > {most}\)"):
            await pages(where, *["/d"] * (most + 1))


async def test_the_storage_policy_satisfier_is_off() -> None:
    served = await prepared(3)
    with pytest.raises(RemoteFault, match="or use Mover tool") as refused:
        await served.call("satisfyStoragePolicy", src="/d")
    assert refused.value.java_class == UNSUPPORTED_ACTION
