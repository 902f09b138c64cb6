"""Leases of a stopped client: another writer takes its files soon, the clock ends them later."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words.leases import LeaseTimes
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import AddBlock
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import namenode_in_memory
from tests.namenode_sim.client_protocol.datanodes_in_memory import joined

AT_ONCE = Settings(hard_lease_seconds=-1.0)


async def test_within_the_soft_limit_a_file_is_its_writer_s() -> None:
    served = namenode_in_memory.serve()
    await served.create("/f")
    with pytest.raises(RemoteFault, match="currently owned by writer"):
        await served.call("append", src="/f", clientName="other")


@pytest.mark.row("B24")
async def test_after_the_soft_limit_another_writer_takes_it() -> None:
    served = namenode_in_memory.serve()
    await served.create("/f")
    namenode_in_memory.silent_beyond_the_soft_limit(served)
    await served.call("append", src="/f", clientName="other")
    assert set(served.namespace.tree.leases) == {"other"}


async def test_after_the_soft_limit_a_create_closes_it_and_finds_the_name_taken() -> None:
    served = namenode_in_memory.serve()
    await served.create("/f")
    namenode_in_memory.silent_beyond_the_soft_limit(served)
    with pytest.raises(RemoteFault, match=r"/f for client 127\.0\.0\.1 already exists"):
        await served.create("/f", clientName="other")
    assert served.namespace.tree.leases == {}


def with_a_block(served: namenode_in_memory.Served, path: str) -> None:
    served.log_and_apply(AddBlock(path, None, Block(2**30 + 1, 0, 1001)))


async def test_a_block_that_no_datanode_has_goes_with_its_writer() -> None:
    """Wait until all have reported: one that is not back yet may hold acknowledged bytes."""
    served = namenode_in_memory.serve(settings=AT_ONCE)
    await served.create("/f")
    with_a_block(served, "/f")
    assert not await served.complete("/f")
    assert await served.face.release_expired_leases() == 0
    late = joined(served.cluster, "d1").storages["DS-d1-0"].held
    late.confirmed = False
    assert await served.face.release_expired_leases() == 0
    late.confirmed = True
    assert await served.face.release_expired_leases() == 1
    file = served.namespace.tree.file("/f")
    assert (file.blocks, file.under_construction) == ((), None)


@pytest.mark.row("B24")
async def test_after_the_hard_limit_files_are_closed() -> None:
    served = namenode_in_memory.serve(settings=AT_ONCE)
    for path in ("/a", "/b"):
        await served.create(path)
    await served.create("/c", clientName="other")
    assert await served.face.release_expired_leases() == 3
    assert served.namespace.tree.leases == {}
    assert await served.face.release_expired_leases() == 0


async def test_a_lease_can_be_taken_away_by_request() -> None:
    served = namenode_in_memory.serve()
    await served.create("/f")
    await served.call("recoverLease", src="/f", clientName="other")
    assert served.namespace.tree.file("/f").under_construction is None


def test_a_holder_never_heard_of_counts_as_just_renewed() -> None:
    times = LeaseTimes()
    assert times.idle_seconds("a", 100.0) == 0
    assert times.idle_seconds("a", 160.0) == 60
    times.renew("a", 170.0)
    assert times.idle_seconds("a", 171.0) == 1
    times.forget_all()
    assert times.idle_seconds("a", 500.0) == 0


def test_a_holder_that_is_asked_about_is_known_from_then_on() -> None:
    times = LeaseTimes()
    times.renew("a", 90.0)
    assert times.last_heard(["a", "b"], 100.0) == {"a": 90.0, "b": 100.0}
    assert times.last_heard(["b"], 150.0) == {"b": 100.0}
    times.keep_only({"a", "c"})
    assert times.last_heard(["a", "b"], 200.0) == {"a": 90.0, "b": 200.0}


def test_the_namenode_s_own_name_is_good_for_one_hard_limit() -> None:
    times = LeaseTimes()
    names = [times.own_holder(now, int(now * 1000), 60.0) for now in (100.0, 160.0, 160.5, 170.0)]
    assert names == [f"HDFS_NameNode-{since}" for since in (100_000, 100_000, 160_500, 160_500)]


async def test_a_client_renews_the_lease_of_what_it_writes_and_no_other() -> None:
    served = namenode_in_memory.serve()
    await served.create("/f")
    served.face.clock = lambda: 15.0
    for holder in ("writer", "reader"):
        served.face.leases.renew(holder, 10.0)
        await served.call("renewLease", clientName=holder)
    heard = served.face.leases.last_heard(["writer", "reader"], 20.0)
    assert heard == {"writer": 15.0, "reader": 10.0}


# What is asked for, by whom, and whether it is closed without an edit or how it is refused.
ASKED: dict[str, tuple[str, str, str]] = {
    "a closed file": ("/closed", "hdfs", ""),
    "a closed file that one may not write": ("/closed", "carol", ""),
    "an open file that one may not write": ("/open", "carol", "access=WRITE"),
    "a directory": ("/", "hdfs", "Path is not a file: /"),
    "nothing": ("/none", "hdfs", "File does not exist: /none"),
}


@pytest.mark.parametrize(("path", "user", "why"), ASKED.values(), ids=ASKED.keys())
async def test_whether_a_lease_can_be_recovered(path: str, user: str, why: str) -> None:
    served = namenode_in_memory.serve()
    await served.touch("/closed")
    await served.create("/open")
    edits = len(served.log.frames)
    if why:
        with pytest.raises(RemoteFault, match=why):
            await served.call("recoverLease", src=path, clientName="other", user=user)
    else:
        answer = await served.call("recoverLease", src=path, clientName="other", user=user)
        assert answer == calls.RecoverLeaseResponseProto(result=True)
    assert len(served.log.frames) == edits


async def test_an_open_file_without_a_lease_is_not_recovered() -> None:
    served = namenode_in_memory.serve()
    await served.create("/f")
    served.namespace.tree.leases.clear()
    with pytest.raises(RemoteFault, match="under construction but no leases found") as refused:
        await served.call("recoverLease", src="/f", clientName="other")
    assert refused.value.java_class.endswith("AlreadyBeingCreatedException")
