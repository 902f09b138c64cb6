"""fsck: what is said of files and blocks, over a NameNode in memory and over HTTP."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from namenode_sim.blocks import safemode
from namenode_sim.blocks.model import Slot
from namenode_sim.blocks.needed import Priority
from namenode_sim.client_protocol.fsck.report import Report, find_block
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.datanodes.model import AdminState
from namenode_sim.datanodes.redundancy import Redundancy
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Served, serve
from tests.namenode_sim.client_protocol.recovering_datanodes import without_replicas
from tests.namenode_sim.client_protocol.test_xattr_calls import MARK
from tests.namenode_sim.client_protocol.xattr_words import change

Change = Callable[[Served, ExtendedBlockProto], None]


@dataclass(slots=True)
class Site:
    """A NameNode with ``/d/f`` of one block on three DataNodes, and what judges its blocks."""

    served: Served
    redundancy: Redundancy
    block: ExtendedBlockProto

    def report(self, path: str, *flags: str, user: str = SUPERUSER) -> Report:
        return Report(self.served.scene(user), self.redundancy, path, frozenset(flags))

    def text(self, path: str, *flags: str, user: str = SUPERUSER) -> str:
        report = self.report(path, *flags, user=user)
        return "".join(report.steps()) + report.verdict()


async def site(*racks: str) -> Site:
    served = serve()
    for number, rack in enumerate(racks or ("/r1", "/r1", "/r2"), start=1):
        datanodes_in_memory.joined(served.cluster, f"d{number}", rack=rack)
    served.cluster.blocks.set_starting(starting=False)
    redundancy = Redundancy(served.cluster)
    await served.mkdirs("/d")
    (block,) = await datanodes_in_memory.written(served, "/d/f", 10)
    redundancy.begin_round(0.0)
    redundancy.begin_round(0.0)
    return Site(served, redundancy, block)


def slot_of(served: Served, block: ExtendedBlockProto) -> Slot:
    slot = served.cluster.blocks.map.find(block.blockId)
    assert slot is not None
    return slot


def losing(*names: str) -> Change:
    return lambda served, block: without_replicas(served, block, *names)


def leaving(state: AdminState, *names: str) -> Change:
    def change(served: Served, _: ExtendedBlockProto) -> None:
        for name in names:
            served.cluster.set_admin(served.cluster.nodes[name], state)

    return change


def damaged(*names: str) -> Change:
    return lambda served, block: datanodes_in_memory.report(served, block, *names, length=3)


def on_one_rack(served: Served, _: ExtendedBlockProto) -> None:
    for node in served.cluster.nodes.values():
        node.rack = "/r1"


def no_change(_: Served, __: ExtendedBlockProto) -> None:
    return


#   what happened, the block's state, the health, and what the report says
WORLDS = {
    "healthy": (no_change, "healthy", True, " Average block replication:\t3.0\n"),
    "missing": (losing("d1", "d2", "d3"), "missing", False, "MISSING 1 blocks of total size 10 B"),
    "corrupt": (damaged("d1", "d2", "d3"), "corrupt", False, "CORRUPT 1 blocks of total size 10 B"),
    "under-replicated": (
        losing("d1", "d2"), "under-replicated", True,
        "Target Replicas is 3 but found 1 live replica(s), 0 decommissioned replica(s), "
        "0 decommissioning replica(s).\n",
    ),
    "one corrupt": (
        damaged("d3"), "under-replicated", True, " Missing replicas:\t\t1 (33.333332 %)"
    ),
    "decommissioning": (
        leaving(AdminState.DECOMMISSION_INPROGRESS, "d1"), "healthy", True,
        " DecommissioningReplicas:\t1\n",
    ),
    "decommissioned": (
        leaving(AdminState.DECOMMISSIONED, "d1", "d2", "d3"), "healthy", True,
        " DecommissionedReplicas:\t3\n",
    ),
    "in maintenance": (
        leaving(AdminState.IN_MAINTENANCE, "d1"), "healthy", True, " InMaintenanceReplicas:\t1\n",
    ),
    "on one rack": (on_one_rack, "mis-replicated", True, "Replica placement policy is violated"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "state", "healthy", "said"), WORLDS.values(), ids=WORLDS)
async def test_the_report_says_what_is_wrong(
    change: Change, state: str, healthy: bool, said: str
) -> None:
    here = await site()
    change(here.served, here.block)
    text = here.text("/")
    assert said in text
    word = "HEALTHY" if healthy else "CORRUPT"
    assert f"\nStatus: {word}\n" in text
    assert text.endswith(f"\n\nThe filesystem under path '/' is {word}")
    listed = here.report("/", "form", "blocks")
    list(listed.steps())
    document = json.loads(json.dumps(listed.as_json()))
    assert document["healthy"] is healthy
    sums = document["totals"]
    assert set(sums) == set(Report(here.served.scene(), here.redundancy, "/", frozenset()).totals)
    assert (sums["files"], sums["blocks"], sums["not_listed"]) == (1, 1, 0)
    (one,) = document["blocks"]
    assert (one["path"], one["state"]) == ("/d/f", state)


@pytest.mark.parametrize(("name", "listed"), [
    ("healthy", []), ("missing", ["missing"]), ("under-replicated", ["under-replicated"]),
])  # fmt: skip
async def test_blocks_that_lack_replicas_are_listed_without_a_walk(
    name: str, listed: list[str]
) -> None:
    here = await site()
    WORLDS[name][0](here.served, here.block)
    needed = here.served.cluster.blocks.needed
    needed.put(slot_of(here.served, here.block), PUT[name])
    report = here.report("/", "form", "needed")
    report.list_needed()
    document = json.loads(json.dumps(report.as_json()))
    assert [one["state"] for one in document["blocks"]] == listed
    assert all(one["path"] == "/d/f" for one in document["blocks"])
    assert document["totals"]["not_listed"] == 0
    with pytest.raises(FsError):
        here.report("/", "form", "needed", user="alice").list_needed()


PUT = {"healthy": None, "missing": Priority.MISSING, "under-replicated": Priority.HIGHEST}


def shown(one: str) -> str:
    """Return what -files -blocks -replicaDetails says in the brackets of the first place."""
    return one.partition("[")[2].partition("]")[0]


STATES = {
    "live": (no_change, "LIVE"),
    "corrupt": (damaged("d1"), "CORRUPT"),
    "decommissioning": (leaving(AdminState.DECOMMISSION_INPROGRESS, "d1"), "DECOMMISSIONING"),
    "decommissioned": (leaving(AdminState.DECOMMISSIONED, "d1"), "DECOMMISSIONED"),
    "entering": (leaving(AdminState.ENTERING_MAINTENANCE, "d1"), "ENTERING MAINTENANCE"),
    "away": (leaving(AdminState.IN_MAINTENANCE, "d1"), "IN MAINTENANCE"),
}


@pytest.mark.parametrize(("change", "state"), STATES.values(), ids=STATES)
async def test_each_replica_has_its_state(change: Change, state: str) -> None:
    here = await site()
    change(here.served, here.block)
    flags = ("files", "blocks", "racks", "replicadetails", "maintenance")
    places = shown(here.text("/d/f", *flags)).split(", ")
    assert [one for one in places if one.startswith("/r1/10.0.0.1:9866(")] == [
        f"/r1/10.0.0.1:9866({state})"
    ]
    hidden = shown(here.text("/d/f", *flags[:-1])).split(", ")
    kept = state if "MAINTENANCE" not in state else "LIVE"
    assert f"/r1/10.0.0.1:9866({kept})" in hidden


async def test_a_silent_datanode_and_an_unconfirmed_storage_are_named() -> None:
    here = await site()
    nodes = here.served.cluster.nodes
    nodes["d1"].last_heard -= 100
    next(iter(nodes["d2"].storages.values())).held.confirmed = False
    text = here.text("/d/f", "files", "blocks", "replicadetails", "upgradedomains")
    assert "10.0.0.1:9866,DS-d1-0,DISK](ud=undefined)(STALE_NODE)" in text
    assert "10.0.0.2:9866,DS-d2-0,DISK](ud=undefined)(STALE_BLOCK_CONTENT)" in text
    name = f"{here.block.poolId}:blk_{here.block.blockId}_{here.block.generationStamp}"
    assert f"/d/f 10 bytes, replicated: replication=3, 1 block(s):  OK\n0. {name} len=10" in text


async def test_open_files_count_only_where_they_are_asked_for() -> None:
    here = await site()
    await here.served.create("/d/open")
    await datanodes_in_memory.add_block(here.served, "/d/open")
    without = here.text("/")
    assert " Total files:\t1 (Files currently being written: 1)\n" in without
    assert " (Total open file blocks (not validated): 1)\n" in without
    flags = ("openforwrite", "files", "blocks", "locations")
    text = here.text("/", *flags)
    assert "/d/open 0 bytes, replicated: replication=3, 1 block(s), OPENFORWRITE:  OK\n" in text
    assert "Under Construction Block:\n0. " in text
    assert "Expected_repl=3  [DatanodeInfoWithStorage[10.0.0." in text
    assert " Total files:\t2\n" in text


async def test_snapshots_are_gone_through_where_they_are_asked_for() -> None:
    here = await site()
    await here.served.take_snapshot("/d", "s")
    await here.served.call("delete", src="/d/f", recursive=True)
    losing("d1", "d2", "d3")(here.served, here.block)
    assert here.text("/").endswith("is HEALTHY")
    for path, flags in (
        ("/", ("includeSnapshots",)), ("/d/.snapshot", ()), ("/d/.snapshot/s/f", ())
    ):  # fmt: skip
        text = here.text(path, *flags)
        assert "\n/d/.snapshot/s/f: MISSING 1 blocks of total size 10 B." in text
        assert text.endswith("is CORRUPT")


async def test_what_moves_away_during_the_check_is_not_shown() -> None:
    """The schedule: a slice has ended in a directory, which is moved to where only hdfs may go."""
    here = await site()
    await here.served.mkdirs("/closed", mode=0o700)
    await here.served.touch("/d/g")
    steps = here.report("/d", "files", user="carol").steps()
    said = next(steps)
    await here.served.call("rename2", src="/d", dst="/closed/d", overwriteDest=False)
    assert said == "/d <dir>\n"
    assert "/g" not in "".join(steps)


async def test_a_block_that_is_deleted_during_the_check_is_left_out() -> None:
    here = await site()
    steps = here.report("/", "files").steps()
    assert [next(steps), next(steps), next(steps)] == ["/ <dir>\n", "/d <dir>\n", ""]
    await here.served.call("delete", src="/d/f", recursive=True)
    assert "\nStatus: HEALTHY\n" in "".join(steps)


def explained(here: Site) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return what is done about the block, and of each DataNode why it counts and what goes on."""
    _, facts = find_block(here.served.scene(SUPERUSER), here.redundancy, str(here.block.blockId))
    document = json.loads(json.dumps(facts.as_json()))
    return document["action"], {
        one["datanode"]: (one["why"], one["fate"]) for one in document["replicas"]
    }


def run(here: Site) -> None:
    """Let the NameNode do what it would do in a few rounds."""
    for _ in range(3):
        here.redundancy.begin_round(time.monotonic())
        while here.redundancy.work(time.monotonic()):
            pass


async def test_a_copy_waits_is_on_its_way_or_cannot_be() -> None:
    here = await site("/r1", "/r1", "/r2", "/r2")
    assert explained(here)[0] == "nothing is copied or deleted"
    holders = list(explained(here)[1])
    losing(*holders[:2])(here.served, here.block)
    assert explained(here) == (
        "waits for a copy, in the queue highest", {holders[2]: ("counts", "stays")}
    )  # fmt: skip
    run(here)
    assert explained(here)[0].startswith("on its way to 10.0.0.")
    losing(holders[2])(here.served, here.block)
    assert explained(here) == ("nothing can be copied: no good replica is known", {})


async def test_nothing_is_copied_in_safe_mode_or_judged_at_the_start() -> None:
    here = await site()
    losing("d1")(here.served, here.block)
    here.served.cluster.set_safe_mode(safemode.SafeMode(safemode.Off(), by_hand=True))
    assert explained(here)[0] == "it needs a copy, and nothing is copied in safe mode"
    here.served.cluster.blocks.rechecks.stop()
    assert explained(here)[0].startswith("blocks are not judged yet")


async def test_too_many_replicas_are_deleted_once_their_storages_are_confirmed() -> None:
    here = await site("/r1", "/r1", "/r2")
    held = next(iter(here.served.cluster.nodes["d1"].storages.values())).held
    held.confirmed = False
    await here.served.call("setReplication", src="/d/f", replication=1)
    run(here)
    action, replicas = explained(here)
    assert action == "deletions wait until all storages of the block have reported in full"
    assert replicas["d1"] == ("counts", "stays; a full report has not confirmed it")
    ordered = [name for name, (why, _) in replicas.items() if "excess" in why]
    assert [replicas[name] for name in ordered] == [
        ("does not count: excess", "its deletion waits for a heartbeat of its DataNode")
    ]
    blocks = here.served.cluster.blocks
    number = next(iter(here.served.cluster.nodes[ordered[0]].storages.values())).held.number
    blocks.invalidations.forget(number, here.block.blockId)
    assert explained(here)[1][ordered[0]][1] == (
        "its DataNode was ordered to delete it, and has not reported that"
    )
    held.confirmed = True
    blocks.rechecks.settle(slot_of(here.served, here.block))
    assert explained(here)[0] == "its excess is deleted"


async def test_a_corrupt_replica_says_why_and_how_long_it_stays() -> None:
    here = await site()
    damaged("d1")(here.served, here.block)
    why = "does not count: corrupt: its length is not the block's"
    assert explained(here)[1]["d1"] == (why, "kept until there are enough good ones")
    damaged("d2", "d3")(here.served, here.block)
    assert explained(here)[1]["d1"] == (why, "kept: none is good")
    here.served.cluster.nodes["d1"].last_heard -= 100
    assert explained(here)[1]["d1"][0] == f"{why}; its DataNode was silent for 100 s"


async def test_a_block_that_is_written_is_not_judged() -> None:
    here = await site()
    await here.served.create("/open")
    added = await datanodes_in_memory.add_block(here.served, "/open")
    here.block = added.b
    action, replicas = explained(here)
    assert action == "it is being written: nothing is copied"
    assert set(replicas.values()) == {("does not count: being written; 0 bytes", "is written")}


async def test_a_look_does_not_hide_a_copy_that_was_lost_on_its_way() -> None:
    """The schedule: the DataNode that a copy goes to dies, and fsck looks before the round."""
    here = await site("/r1", "/r1", "/r2", "/r2")
    lost, *_ = explained(here)[1]
    losing(lost)(here.served, here.block)
    run(here)
    (target,) = here.redundancy.pending.places(here.block.blockId)
    target[0].alive = False
    here.text("/")
    run(here)
    (other,) = here.redundancy.pending.places(here.block.blockId)
    assert other[0] is not target[0]


async def test_the_superuser_gets_no_report_of_a_file_that_it_must_not_read() -> None:
    here = await site()
    await change(here.served, MARK, "/d/f")
    with pytest.raises(FsError, match="since the superuser is not allowed to"):
        here.text("/")
    assert here.text("/d/f", user="alice").endswith("is HEALTHY")
