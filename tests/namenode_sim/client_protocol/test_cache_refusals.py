"""Cache pools and directives: which callers may do what, and what is refused to all."""

import pytest

from ha.rpc.errors import RemoteFault
from tests.namenode_sim.client_protocol.cache_callers import (
    DENIED,
    INVALID,
    IO,
    LONGEST,
    Y2100,
    add,
    directives,
    pools,
    prepared,
)
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Fields

ACCESS = {
    SUPERUSER: (["bobs", "open", "short", "small"], ["bobs", "open", "short", "small"]),
    "bob": (["bobs", "open", "short", "small"], ["bobs", "open"]),
    "alice": (["bobs", "open", "short", "small"], ["open"]),  # of the group staff
    "carol": (["open", "short", "small"], ["open"]),
}


@pytest.mark.row("B28")
@pytest.mark.parametrize("user", ACCESS)
async def test_a_pool_s_mode_says_who_reads_and_who_writes(user: str) -> None:
    served = await prepared()
    for name in ("bobs", "open", "short", "small"):
        await add(served, "/x", name)
    reads, writes = ACCESS[user]
    entries = (await pools(served, user)).entries
    assert [entry.info.poolName for entry in entries] == ["bobs", "open", "short", "small"]
    assert [e.info.poolName for e in entries if e.info.HasField("ownerName")] == reads
    assert [one.info.pool for one in (await directives(served, user)).elements] == reads
    for name in ("bobs", "open", "short", "small"):
        if name in writes:
            number = await add(served, "/y", name, user=user)
            await served.call("removeCacheDirective", user=user, id=number)
            continue
        with pytest.raises(RemoteFault) as refused:
            await add(served, "/y", name, user=user)
        assert refused.value.java_class == DENIED
        assert refused.value.message == (
            f"Permission denied while accessing pool {name}: user {user} does not have WRITE "
            "permissions."
        )


def info(**fields: object) -> Fields:
    return {"info": fields}


REFUSED: dict[str, tuple[str, Fields, str, str]] = {
    "a pool without a name": (
        "addCachePool", info(poolName=""), IO, "invalid empty cache pool name",
    ),
    "a pool twice": (
        "addCachePool", info(poolName="open"), INVALID, "Cache pool open already exists.",
    ),
    "a negative limit": (
        "addCachePool", info(poolName="x", limit=-1), INVALID, "Limit is negative.",
    ),
    "a negative expiry": (
        "modifyCachePool", info(poolName="open", maxRelativeExpiry=-1), INVALID,
        "Max relative expiry is negative.",
    ),
    "too long an expiry": (
        "modifyCachePool", info(poolName="open", maxRelativeExpiry=LONGEST + 1), INVALID,
        "Max relative expiry is too big.",
    ),
    "no such pool": (
        "modifyCachePool", info(poolName="x"), INVALID, "Cache pool x does not exist.",
    ),
    "no such pool to remove": (
        "removeCachePool", {"poolName": "x"}, INVALID,
        "Cannot remove non-existent cache pool x",
    ),
    "no pool": ("addCacheDirective", info(path="/x"), INVALID, "No pool specified."),
    "an empty pool": (
        "addCacheDirective", info(path="/x", pool=""), INVALID, "Invalid empty pool name.",
    ),
    "an unknown pool": (
        "addCacheDirective", info(path="/x", pool="x"), INVALID, "Unknown pool x",
    ),
    "no path": ("addCacheDirective", info(pool="open"), INVALID, "No path specified."),
    "a bad path": (
        "addCacheDirective", info(path="x/y", pool="open"), INVALID, "Invalid path 'x/y'.",
    ),
    "no replica": (
        "addCacheDirective", info(path="/x", pool="open", replication=0), INVALID,
        "Invalid replication factor 0 <= 0",
    ),
    "more replicas than Java counts": (
        "addCacheDirective", info(path="/x", pool="open", replication=40_000), INVALID,
        "Invalid replication factor -25536 <= 0",
    ),
    "an end before its time": (
        "addCacheDirective",
        info(path="/x", pool="open", expiration={"millis": -1, "isRelative": True}), INVALID,
        "Cannot set a negative expiration: -1",
    ),
    "too far": (
        "addCacheDirective",
        info(path="/x", pool="open", expiration={"millis": 2**63 - 1, "isRelative": True}), INVALID,
        "is too far in the future!",
    ),
    "longer than the pool allows": (
        "addCacheDirective",
        info(path="/x", pool="short", expiration={"millis": 90_061_001, "isRelative": True}),
        INVALID,
        "Expiration 001:01:01:01.001 exceeds the max relative expiration time of 1000 ms.",
    ),
    "no id": ("modifyCacheDirective", info(path="/x"), INVALID, "Must supply an ID."),
    "an id below all": ("modifyCacheDirective", info(id=0), INVALID, "Invalid negative ID."),
    "an unknown id": (
        "modifyCacheDirective", info(id=9), INVALID, "No directive with ID 9 found.",
    ),
    "an unknown id to remove": (
        "removeCacheDirective", {"id": 9}, INVALID, "No directive with ID 9 found.",
    ),
    "into a pool that is shorter": (
        "modifyCacheDirective", info(id=1, pool="short"), INVALID,
        "exceeds the max relative expiration time of 1000 ms.",
    ),
    "into a pool that is full": (
        "modifyCacheDirective", info(id=1, pool="small", replication=9), INVALID,
        "Caching path /d/a of size 30 bytes at replication 9 would exceed pool small's",
    ),
    "by replication": (
        "listCacheDirectives", {"prevId": 0, "filter": {"replication": 1}}, INVALID,
        "Filtering by replication is unsupported.",
    ),
    "by a bad path": (
        "listCacheDirectives", {"prevId": 0, "filter": {"path": "x"}}, INVALID,
        "Invalid path 'x'.",
    ),
    "no name to remove": (
        "removeCachePool", {"poolName": ""}, IO, "invalid empty cache pool name",
    ),
    "a time too far for the pool": (
        "addCacheDirective",
        info(path="/x", pool="short", expiration={"millis": Y2100, "isRelative": False}),
        INVALID,
        "Expiration 2100-01-01T00:00:00+0000 exceeds the max relative expiration time of 1000 ms.",
    ),
    "a time that no clock shows": (
        "addCacheDirective",
        info(path="/x", pool="short", expiration={"millis": 2**62, "isRelative": False}),
        INVALID,
        f"Expiration {2**62} ms is too far in the future!",
    ),
    "by an unknown id": (
        "listCacheDirectives", {"prevId": 0, "filter": {"id": 9}}, INVALID,
        "Did not find requested id 9",
    ),
}  # fmt: skip


@pytest.mark.row("B28")
@pytest.mark.parametrize(
    ("method", "fields", "java_class", "message"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_what_is_refused(method: str, fields: Fields, java_class: str, message: str) -> None:
    served = await prepared()
    await add(served, "/d/a", "open")
    before = len(served.log.frames)
    with pytest.raises(RemoteFault) as refused:
        await served.call(method, **fields)
    assert refused.value.java_class == java_class
    assert message in refused.value.message
    assert len(served.log.frames) == before


@pytest.mark.parametrize("method", ["addCachePool", "modifyCachePool", "removeCachePool"])
async def test_pools_are_the_superuser_s(method: str) -> None:
    served = await prepared()
    fields: Fields = {"poolName": "bobs"} if method == "removeCachePool" else info(poolName="bobs")
    with pytest.raises(RemoteFault, match="Superuser privilege is required"):
        await served.call(method, user="bob", **fields)
