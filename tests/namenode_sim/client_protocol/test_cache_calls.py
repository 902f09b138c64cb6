"""Cache pools and directives: what the calls log, what they show to which caller and refuse."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto.hdfs_types_pb2 import CacheDirectiveEntryProto, CachePoolStatsProto
from namenode_sim.edits.ops import AddCacheDirective, AddCachePool, ModifyCacheDirective
from namenode_sim.edits.values import CacheDirective, CachePool
from namenode_sim.namespace.caching import directives_of, has_expired
from tests.namenode_sim.client_protocol.cache_callers import (
    INVALID,
    LONGEST,
    add,
    directives,
    pool,
    pools,
    prepared,
)
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Fields, serve


async def test_a_pool_has_defaults_and_its_creator_for_owner() -> None:
    served = serve()
    await pool(served, "p")
    op = served.log.ops()[-1]
    assert isinstance(op, AddCachePool)
    assert op.pool == CachePool("p", SUPERUSER, op.pool.group, 0o755, 2**63 - 1, LONGEST, 1)
    await served.call("modifyCachePool", info={"poolName": "p", "limit": 7, "mode": 0o700})
    held = served.log.replayed().cache.pools["p"]
    assert (held.limit, held.mode, held.owner) == (7, 0o700, SUPERUSER)


WHOLE: Fields = {
    "ownerName": "ann", "groupName": "people", "mode": 0o1751, "limit": 1000,
    "maxRelativeExpiry": 5000, "defaultReplication": 4,
}  # fmt: skip


@pytest.mark.row(
    "B28", because="each test of pools, directives and cached blocks is one of its cases"
)
async def test_a_pool_is_shown_as_it_was_made() -> None:
    served = serve()
    await pool(served, "p", **WHOLE)
    shown = {
        field.name: value for field, value in (await pools(served)).entries[0].info.ListFields()
    }
    assert shown == {"poolName": "p", **WHOLE}
    assert (await pools(served)).entries[0].stats == CachePoolStatsProto(
        bytesNeeded=0, bytesCached=0, bytesOverlimit=0, filesNeeded=0, filesCached=0
    )


@pytest.mark.parametrize("field", WHOLE)
async def test_only_what_is_given_of_a_pool_changes(field: str) -> None:
    """Of a mode only the bits count that HDFS knows."""
    served = serve()
    await pool(served, "p", ownerName="x", groupName="y", limit=7, maxRelativeExpiry=8)
    before = (await pools(served)).entries[0].info
    await served.call("modifyCachePool", info={"poolName": "p", field: WHOLE[field]})
    after = (await pools(served)).entries[0].info
    setattr(before, field, WHOLE[field])
    assert after == before


async def test_the_longest_expiry_is_let_in_and_a_group_is_the_caller_s() -> None:
    served = serve()
    await pool(served, "p", maxRelativeExpiry=LONGEST)
    assert (await pools(served)).entries[0].info.groupName == "hdfs"
    served = serve()
    await served.call("addCachePool", user="admin", info={"poolName": "p", "mode": 0o10755})
    shown = (await pools(served)).entries[0].info
    assert (shown.ownerName, shown.groupName, shown.mode) == ("admin", "supergroup", 0o755)


async def test_a_directive_is_shown_as_it_was_added() -> None:
    served = await prepared()
    soon: Fields = {"millis": served.scene("hdfs").now_ms + 60_000, "isRelative": False}
    await add(served, "/d/a", "bobs", replication=2, expiration=soon)
    wanted: Fields = {
        "info": {"id": 1, "path": "/d/a", "replication": 2, "pool": "bobs", "expiration": soon},
        "stats": {
            "bytesNeeded": 60, "bytesCached": 0, "filesNeeded": 1, "filesCached": 0,
            "hasExpired": False,
        },
    }  # fmt: skip
    assert (await directives(served)).elements[0] == CacheDirectiveEntryProto(**wanted)


async def test_an_owner_or_a_group_alone_may_be_given() -> None:
    served = serve()
    await pool(served, "p", ownerName="ann")
    await pool(served, "q", groupName="people")
    await served.call("addCachePool", user="admin", info={"poolName": "r"})
    shown = [one.info for one in (await pools(served)).entries]
    assert [(one.ownerName, one.groupName) for one in shown] == [
        ("ann", "hdfs"), ("hdfs", "people"), ("admin", "supergroup"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("user", "mode", "writes"),
    [("bob", 0o200, True), ("bob", 0o077, False), ("alice", 0o020, True), ("alice", 0o707, False),
     ("carol", 0o002, True), ("carol", 0o770, False)],
)  # fmt: skip
async def test_each_caller_has_the_bits_of_its_own_class(
    user: str, mode: int, writes: bool
) -> None:
    served = serve()
    await pool(served, "p", ownerName="bob", groupName="staff", mode=mode)
    if writes:
        assert await add(served, "/x", "p", user=user) == 1
        return
    with pytest.raises(RemoteFault, match="does not have WRITE permissions"):
        await add(served, "/x", "p", user=user)


async def test_a_directive_expires_behind_its_last_millisecond() -> None:
    served = await prepared()
    number = await add(served, "/d/a", "open")
    directive = directives_of(served.scene("hdfs").namespace)[number]
    assert not has_expired(directive, directive.expiration)
    assert has_expired(directive, directive.expiration + 1)


async def test_a_time_is_judged_from_now_on() -> None:
    served = await prepared()
    now = served.scene("hdfs").now_ms
    await add(served, "/x", "short", expiration={"millis": now + 500, "isRelative": False})
    late = {"millis": now + 60_000, "isRelative": False}
    with pytest.raises(RemoteFault, match="exceeds the max relative"):
        await add(served, "/x", "short", expiration=late)


async def test_other_flags_do_not_lift_a_limit() -> None:
    served = await prepared()
    await add(served, "/d", "small")
    with pytest.raises(RemoteFault, match="remaining capacity of 20 bytes"):
        await add(served, "/d/a", "small", flags=2)


async def test_a_directive_moves_with_the_path_and_replication_that_it_then_has() -> None:
    served = await prepared()
    changes: list[tuple[Fields, bool]] = [
        ({}, False), ({"path": "/d/b"}, True), ({"replication": 3}, True),
    ]  # fmt: skip
    for number, (asked, fits) in enumerate(changes, start=1):
        await add(served, "/d/a", "open", replication=4)
        change = {"id": number, "pool": "small", **asked}
        if fits:
            await served.call("modifyCacheDirective", info=change)
            await served.call("removeCacheDirective", id=number)
        else:
            with pytest.raises(RemoteFault, match="size 30 bytes at replication 4"):
                await served.call("modifyCacheDirective", info=change)


async def test_within_its_pool_a_directive_changes_without_a_look_at_the_limit() -> None:
    served = await prepared()
    number = await add(served, "/d", "small")
    await served.call("modifyCacheDirective", info={"id": number, "replication": 9})


@pytest.mark.row("B28")
async def test_a_directive_may_not_live_longer_than_its_pool_allows_now() -> None:
    served = await prepared()
    number = await add(served, "/d/b", "open")
    await served.call("modifyCachePool", info={"poolName": "open", "maxRelativeExpiry": 7})
    with pytest.raises(RemoteFault, match="exceeds the max relative expiration time of 7 ms"):
        await served.call("modifyCacheDirective", info={"id": number, "replication": 2})
    past = {"millis": 5, "isRelative": False}
    await served.call("modifyCacheDirective", info={"id": number, "expiration": past})
    assert (await directives(served)).elements[0].info.expiration.millis == 5


async def test_to_change_a_directive_takes_both_pools() -> None:
    served = await prepared()
    await pool(served, "hers", ownerName="carol", mode=0o700)
    number = await add(served, "/x", "bobs")
    for user, target in (("carol", "hers"), ("bob", "hers")):
        change = {"id": number, "pool": target}
        with pytest.raises(RemoteFault, match=f"user {user} does not have WRITE"):
            await served.call("modifyCacheDirective", user=user, info=change)
    with pytest.raises(RemoteFault, match="user carol does not have WRITE"):
        await served.call("removeCacheDirective", user="carol", id=number)


@pytest.mark.row("B28")
async def test_directives_count_up_and_take_what_their_pool_gives() -> None:
    served = await prepared()
    assert [await add(served, "/d/a", "small"), await add(served, "/none", "open")] == [1, 2]
    op = served.log.ops()[-2]
    assert isinstance(op, AddCacheDirective)
    assert (op.directive.replication, op.directive.pool) == (2, "small")
    assert op.directive.expiration is not None
    assert op.directive.expiration > LONGEST


#   what is asked for -> files and bytes with replicas
NEEDED: dict[str, tuple[Fields, tuple[int, int]]] = {
    "a file": ({"path": "/d/a", "pool": "open"}, (1, 30)),
    "a file twice": ({"path": "/d/a", "pool": "open", "replication": 2}, (1, 60)),
    "a directory's own files": ({"path": "/d", "pool": "open"}, (2, 40)),
    "nothing yet": ({"path": "/none", "pool": "open"}, (0, 0)),
    "what has expired": (
        {"path": "/d", "pool": "open", "expiration": {"millis": 0, "isRelative": False}}, (0, 0),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("info", "needed"), NEEDED.values(), ids=NEEDED.keys())
async def test_a_directive_needs_what_it_covers(info: Fields, needed: tuple[int, int]) -> None:
    served = await prepared()
    await served.call("addCacheDirective", info=info)
    stats = (await directives(served)).elements[0].stats
    assert (stats.filesNeeded, stats.bytesNeeded) == needed
    assert stats.hasExpired == ("expiration" in info)
    entry = next(one for one in (await pools(served)).entries if one.info.poolName == "open")
    assert (entry.stats.filesNeeded, entry.stats.bytesNeeded) == needed


@pytest.mark.row("B28")
async def test_a_limit_holds_to_the_byte_and_gives_way_to_force() -> None:
    served = await prepared()
    await add(served, "/d/b", "small")  # 20 of 100
    await add(served, "/d", "small")  # 80 more
    with pytest.raises(RemoteFault) as refused:
        await add(served, "/d/e", "small")
    assert refused.value.java_class == INVALID
    assert refused.value.message == (
        "Caching path /d/e of size 5 bytes at replication 2 would exceed pool small's remaining "
        "capacity of 0 bytes."
    )
    await add(served, "/d/e", "small", flags=1)
    entry = next(one for one in (await pools(served)).entries if one.info.poolName == "small")
    assert (entry.stats.bytesNeeded, entry.stats.bytesOverlimit) == (110, 10)


async def test_only_what_is_given_changes() -> None:
    served = await prepared()
    number = await add(served, "/d/a", "open")
    before = served.namespace.cache.directives[number]
    await served.call("modifyCacheDirective", info={"id": number, "replication": 3})
    op = served.log.ops()[-1]
    assert isinstance(op, ModifyCacheDirective)
    assert op.directive == CacheDirective(number, replication=3)
    await served.call(
        "modifyCacheDirective",
        info={"id": number, "path": "/d/b", "pool": "bobs",
              "expiration": {"millis": 5000, "isRelative": True}},
    )  # fmt: skip
    after = served.log.replayed().cache.directives[number]
    assert (after.path, after.pool, after.replication) == ("/d/b", "bobs", 3)
    assert before.expiration is not None
    assert after.expiration is not None
    assert 0 < before.expiration - LONGEST <= after.expiration - 5000


@pytest.mark.row("B28")
async def test_a_pool_goes_with_its_directives() -> None:
    served = await prepared()
    for name in ("open", "bobs", "open"):
        await add(served, "/d/a", name)
    await served.call("removeCachePool", poolName="open")
    assert [one.info.id for one in (await directives(served)).elements] == [2]
    await served.call("removeCacheDirective", id=2)
    assert not served.log.replayed().cache.directives


#   a filter -> the ids of the directives that are shown
SHOWN: dict[str, tuple[Fields, int, list[int]]] = {
    "all": ({}, 0, [1, 2, 3, 4]),
    "behind one": ({}, 2, [3, 4]),
    "of a pool": ({"pool": "bobs"}, 0, [2, 4]),
    "of a path": ({"path": "/x"}, 0, [1, 2]),
    "of both": ({"path": "/x", "pool": "bobs"}, 0, [2]),
    "one": ({"id": 3}, 0, [3]),
    "one that the filter leaves out": ({"id": 3, "path": "/x"}, 0, []),
}


@pytest.mark.row("B28")
@pytest.mark.parametrize(("wanted", "after", "expected"), SHOWN.values(), ids=SHOWN.keys())
async def test_directives_are_filtered(wanted: Fields, after: int, expected: list[int]) -> None:
    served = await prepared()
    for path, name in (("/x", "open"), ("/x", "bobs"), ("/y", "open"), ("/z", "bobs")):
        await add(served, path, name)
    shown = await directives(served, after=after, **wanted)
    assert [one.info.id for one in shown.elements] == expected


@pytest.mark.row("B28")
@pytest.mark.parametrize(("count", "more"), [(100, False), (101, True)])
async def test_lists_come_in_pieces(count: int, more: bool) -> None:
    served = serve()
    for number in range(count):
        await pool(served, f"p{number:03}")
        await add(served, "/x", f"p{number:03}")
    first = await pools(served)
    assert (len(first.entries), first.hasMore) == (100, more)
    assert (len((await directives(served)).elements), (await directives(served)).hasMore) == (
        100, more,
    )  # fmt: skip
    rest = await pools(served, after=first.entries[-1].info.poolName)
    assert (len(rest.entries), rest.hasMore) == (count - 100, False)


#   a caller -> the pools that it sees as a whole, and those that it may write to
