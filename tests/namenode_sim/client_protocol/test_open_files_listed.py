"""The list of files that are being written: which, from where on, and when it ends."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ALL_OPEN_FILES, BLOCKING_DECOMMISSION
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.datanodes.model import AdminState
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve

OPEN = ("/b", "/d/y", "/a", "/dd", "/d/x")
"""In the order of their creation, which is that of their ids."""


async def opened(limit: int = 1000) -> Served:
    served = serve(settings=Settings(listing_limit=limit))
    await served.touch("/closed")
    for number, path in enumerate(OPEN):
        await served.create(path, clientName=f"w{number % 2}", host=f"10.0.0.{number}")
    return served


async def listed(served: Served, **fields: object) -> calls.ListOpenFilesResponseProto:
    request: Fields = {"id": 0, **fields}
    answer = await served.call("listOpenFiles", **request)
    assert isinstance(answer, calls.ListOpenFilesResponseProto)
    return answer


async def paths(served: Served, **fields: object) -> tuple[str, ...]:
    answer = await listed(served, **fields)
    assert not answer.hasMore
    return tuple(entry.path for entry in answer.entries)


async def test_a_file_is_told_with_who_writes_it() -> None:
    served = await opened()
    entry = (await listed(served)).entries[1]
    file = served.namespace.tree.file("/d/y")
    assert (entry.id, entry.path) == (file.id, "/d/y")
    assert (entry.clientName, entry.clientMachine) == ("w1", "10.0.0.1")


# The path as it is asked for, and the files at or below it.
BELOW: dict[str, tuple[str, ...]] = {
    "": OPEN,
    "/": OPEN,
    "/d": ("/d/y", "/d/x"),
    "/d/": ("/d/y", "/d/x"),
    "//d//y": ("/d/y",),
    "/dd": ("/dd",),
    "/none": (),
}


@pytest.mark.parametrize(("path", "found"), BELOW.items(), ids=map(repr, BELOW))
async def test_files_are_listed_below_a_path(path: str, found: tuple[str, ...]) -> None:
    assert await paths(await opened(), path=path) == found


async def test_without_a_path_all_are_listed() -> None:
    assert await paths(await opened()) == OPEN


# The most of one page, the path, and the pages that a client gets.
PAGES: dict[str, tuple[int, str, list[tuple[str, ...]]]] = {
    "the last page is full": (2, "/d", [("/d/y", "/d/x")]),
    "the last page is not full": (2, "/", [("/b", "/d/y"), ("/a", "/dd"), ("/d/x",)]),
    "each page has one file": (1, "/d", [("/d/y",), ("/d/x",)]),
    "one page holds all": (5, "/", [OPEN]),
}


@pytest.mark.parametrize(("limit", "path", "pages"), PAGES.values(), ids=PAGES.keys())
async def test_a_list_comes_in_pages(limit: int, path: str, pages: list[tuple[str, ...]]) -> None:
    """Go on behind the last id until a page says that no more come."""
    served = await opened(limit)
    seen: list[tuple[str, ...]] = []
    last = 0
    while True:
        page = await listed(served, id=last, path=path)
        seen.append(tuple(entry.path for entry in page.entries))
        if not page.hasMore:
            break
        last = page.entries[-1].id
    assert seen == pages


TYPES: dict[str, tuple[list[int], tuple[str, ...]]] = {
    "as older clients ask": ([], OPEN),
    "all": ([ALL_OPEN_FILES], OPEN),
    "what holds up a decommission": ([BLOCKING_DECOMMISSION], ()),
    "both": ([BLOCKING_DECOMMISSION, ALL_OPEN_FILES], OPEN),
}


@pytest.mark.parametrize(("types", "found"), TYPES.values(), ids=TYPES.keys())
async def test_only_types_that_are_asked_for_are_listed(
    types: list[int], found: tuple[str, ...]
) -> None:
    served = await opened()
    assert await paths(served, types=types) == found
    assert list((await listed(served, types=types)).types) == types


async def test_a_file_holds_up_the_end_of_a_datanode_that_has_a_block_of_it() -> None:
    served = datanodes_in_memory.with_datanodes(await opened(), 1)
    for path, holder in (("/d/y", "w1"), ("/a", "w0")):
        added = await datanodes_in_memory.add_block(served, path, clientName=holder)
        if path == "/a":
            block = datanodes_in_memory.sized(added.b, 10)
            datanodes_in_memory.report(served, block, "d1")
            await datanodes_in_memory.add_block(served, path, block, clientName=holder)
    node = served.cluster.nodes["d1"]
    for state, found in (
        (AdminState.DECOMMISSION_INPROGRESS, ("/a",)),
        (AdminState.DECOMMISSIONED, ()),
        (AdminState.ENTERING_MAINTENANCE, ()),
        (AdminState.NORMAL, ()),
    ):
        served.cluster.set_admin(node, state)
        assert await paths(served, types=[BLOCKING_DECOMMISSION]) == found
    served.cluster.set_admin(node, AdminState.DECOMMISSION_INPROGRESS)
    assert await paths(served, types=[BLOCKING_DECOMMISSION], path="/d") == ()


async def test_only_the_superuser_sees_who_writes_what() -> None:
    served = await opened()
    with pytest.raises(RemoteFault, match="Superuser privilege is required"):
        await listed(served, user="alice")
