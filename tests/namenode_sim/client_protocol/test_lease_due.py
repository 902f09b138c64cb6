"""Which files the NameNode releases by itself, in which order, and what of them it releases."""

from collections.abc import Awaitable, Callable

import pytest

from namenode_sim.client_protocol.open_files.lease_calls import due_files, release_due
from namenode_sim.client_protocol.open_files.lease_release import Released
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import Close, ReassignLease, SetGenstampV2
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.client_protocol.recovering_datanodes import RBW

NOW, HARD_LIMIT, RECOVERY = 1000.0, 100.0, 90.0
SETTINGS = Settings(hard_lease_seconds=HARD_LIMIT, block_recovery_seconds=RECOVERY)


def begun() -> Served:
    served = datanodes_in_memory.with_datanodes(serve(settings=SETTINGS))
    served.face.clock = lambda: NOW
    return served


def silent_for(served: Served, holder: str, seconds: float) -> None:
    served.face.leases.renew(holder, NOW - seconds)


async def opened(served: Served, path: str, client: str = "writer") -> int:
    return (await served.create(path, clientName=client)).fileId


async def recovered_since(served: Served, path: str, seconds: float, client: str = "writer") -> int:
    """Write a file of two blocks; the recovery of the open one began ``seconds`` ago."""
    number = await opened(served, path, client)
    first = datanodes_in_memory.sized(
        (await datanodes_in_memory.add_block(served, path, clientName=client)).b, 10
    )
    datanodes_in_memory.report(served, first, "d1", "d2", "d3")
    last = (await datanodes_in_memory.add_block(served, path, first, clientName=client)).b
    datanodes_in_memory.report(served, last, "d1", "d2", "d3", length=10, state=RBW)
    served.face.clock = lambda: NOW - seconds
    await served.call("recoverLease", src=path, clientName=client)
    served.face.clock = lambda: NOW
    return number


# ---- which, and in which order ----


async def test_files_of_the_longest_silent_come_first_and_of_one_by_number() -> None:
    served = begun()
    many = [await opened(served, f"/many{count}", "w1") for count in range(40)]
    one = await opened(served, "/one", "w2")
    await opened(served, "/lives", "w3")
    silent_for(served, "w1", 150.0)
    silent_for(served, "w2", 300.0)
    silent_for(served, "w3", HARD_LIMIT)
    assert due_files(served.scene()) == [one, *sorted(many)]


async def test_behind_them_come_those_whose_recovery_has_had_its_time() -> None:
    served = begun()
    stalled = [await recovered_since(served, f"/stalled{n}", RECOVERY, "w1") for n in range(20)]
    await recovered_since(served, "/recovers", RECOVERY - 0.1, "w2")
    silent = await opened(served, "/silent", "w3")
    both = await recovered_since(served, "/both", RECOVERY, "w4")
    for holder, seconds in {"w1": 1.0, "w2": 1.0, "w3": 300.0, "w4": 200.0}.items():
        silent_for(served, holder, seconds)
    assert due_files(served.scene()) == [silent, both, *stalled]


# ---- what of one of them ----


async def nothing(served: Served) -> int:
    return 2**40


async def a_directory(served: Served) -> int:
    await served.mkdirs("/d")
    return served.namespace.tree.node("/d").id


async def a_closed_file(served: Served) -> int:
    return (await served.touch("/f")).fileId


async def heard_lately(served: Served) -> int:
    number = await opened(served, "/f")
    silent_for(served, "writer", HARD_LIMIT)
    return number


async def in_recovery(served: Served) -> int:
    return await recovered_since(served, "/f", RECOVERY - 0.1)


async def in_a_snapshot_only(served: Served) -> int:
    await served.mkdirs("/s")
    number = await opened(served, "/s/f")
    block = datanodes_in_memory.sized((await datanodes_in_memory.add_block(served, "/s/f")).b, 10)
    await served.call("fsync", src="/s/f", client="writer", lastBlockLength=10)
    datanodes_in_memory.report(served, block, "d1", "d2", "d3")
    await served.take_snapshot("/s", "one")
    await served.call("delete", src="/s/f", recursive=False)
    silent_for(served, "writer", HARD_LIMIT + 1)
    return number


LEFT: tuple[Callable[[Served], Awaitable[int]], ...] = (
    nothing,
    a_directory,
    a_closed_file,
    heard_lately,
    in_recovery,
    in_a_snapshot_only,
)


@pytest.mark.parametrize("made", LEFT)
async def test_what_is_left_as_it_is(made: Callable[[Served], Awaitable[int]]) -> None:
    served = begun()
    assert release_due(served.scene(), await made(served)) is None


async def released(served: Served, number: int) -> Released:
    step = release_due(served.scene(), number)
    assert step is not None
    return step


async def test_a_silent_writer_s_file_is_closed_wherever_it_is_now() -> None:
    served = begun()
    number = await opened(served, "/f")
    silent_for(served, "writer", HARD_LIMIT + 1)
    await served.call("rename2", src="/f", dst="/g", overwriteDest=False)
    (edit,) = (await released(served, number)).ops
    assert isinstance(edit, Close)
    assert edit.path == "/g"


async def test_the_namenode_holds_a_silent_writer_s_file_while_it_is_recovered() -> None:
    served = begun()
    number = await opened(served, "/f")
    datanodes_in_memory.report(
        served, (await datanodes_in_memory.add_block(served, "/f")).b, "d1", length=10, state=RBW
    )
    silent_for(served, "writer", HARD_LIMIT + 1)
    stamp, holder = (await released(served, number)).ops
    assert stamp == SetGenstampV2(1002)
    assert isinstance(holder, ReassignLease)
    assert (holder.lease_holder, holder.path) == ("writer", "/f")
    assert holder.new_holder.startswith("HDFS_NameNode-")


async def test_a_recovery_that_had_its_time_begins_again_for_whoever_holds_the_file() -> None:
    served = begun()
    number = await recovered_since(served, "/f", RECOVERY)
    assert (await released(served, number)).ops == (SetGenstampV2(1004),)
