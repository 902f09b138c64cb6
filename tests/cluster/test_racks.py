"""Six DataNodes on three racks: each rack dies, and a DataNode leaves through a failover."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from deploy.local.cluster.cluster import Cluster
from deploy.local.workload.file_workload import FileWorkload
from deploy.local.workload.java_client import open_java_client, start_java_client
from tests.cluster.rack_scene import (
    RACKS,
    SECONDS,
    Kept,
    begin_nnha,
    blocks_of,
    figures,
    holders,
    listed,
    looking,
    misplaced,
    nnha,
    on_racks,
    say,
    until,
)

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(900)]

SOME_LEFT, NONE_LEFT = "some blocks left", "no block left"
HEADING: Final = "# those that leave\n"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    exclude = tmp_path / "exclude"
    exclude.write_text(HEADING)
    with on_racks(tmp_path, {"dfs.hosts.exclude": str(exclude)}) as cluster:
        yield cluster


@pytest.mark.row("B21", because="it plays what the rows of decommissioning ask for, on processes")
def test_each_rack_dies_and_a_datanode_leaves_under_load(cluster: Cluster) -> None:
    java = start_java_client(cluster.supervisor, java=cluster.java, conf_dir=cluster.conf_dir)
    with open_java_client(java) as client:
        kept = Kept(client.files())
        kept.write("/kept/three", 40, 3)
        kept.write("/kept/two", 20, 2)
        work = FileWorkload(client, "/racks", pause_seconds=0.02)
        work.start()
        work.wait_for_more(20, deadline_seconds=SECONDS)
        for rack in sorted(set(RACKS.values())):
            lose_a_rack(cluster, rack, kept, work)
        leave_through_a_failover(cluster, "dn3", work, SOME_LEFT)
        leave_through_a_failover(cluster, "dn6", work, NONE_LEFT)
        assert kept.wrong() == []
        work.stop()
        read = work.check_all()
        assert (work.wrong, work.errors()) == ([], ())
        say(f"{len(work.calls())} calls on files, {read} bytes read at the end, 0 lost, 0 wrong")
    what_cannot_be_is_refused(cluster)


def lose_a_rack(cluster: Cluster, rack: str, kept: Kept, work: FileWorkload) -> None:
    """Kill a whole rack while files are written; all that was written is there, and is whole."""
    lost = [name for name, place in RACKS.items() if place == rack]
    for name in lost:
        cluster.kill(name)
    killed = monotonic()
    assert kept.wrong() == []
    work.wait_for_more(20, deadline_seconds=SECONDS)
    until(lambda: {listed(cluster)[name]["state"] for name in lost} == {"dead"}, what="its death")
    dead = monotonic()
    until(lambda: are_all_whole(cluster), what="copies of all")
    whole = monotonic()
    looked = nnha(cluster, "fsck", "/")
    assert looked.returncode == 0, looked.stdout
    say(f"{rack}: dead after {dead - killed:.1f} s, all on two racks {whole - dead:.1f} s later")
    assert kept.wrong() == []
    for name in lost:
        cluster.start(name)
    until(lambda: {one["state"] for one in listed(cluster).values()} == {"live"}, what="its return")
    until(lambda: are_all_whole(cluster), what="all to be whole")


def leave_through_a_failover(cluster: Cluster, leaves: str, work: FileWorkload, when: str) -> None:
    """Decommission a DataNode, kill the active at a moment, and switch the DataNode off at the end.

    It returns at last; then replicas are too many, and are deleted.
    """
    host, begun = f"{leaves}.local", monotonic()
    with looking(cluster) as counted:
        until(lambda: counted.looks > 5, what="some looks")
        waiting = begin_nnha(cluster, "datanodes", "decommission", host, "--wait")
        try:
            until(lambda: has_come(cluster, leaves, when), what=f"{host} with {when}")
            killed = cluster.wait_for_active()
            cluster.kill(killed)
            assert cluster.wait_for_active() != killed
            said, shown = waiting.communicate(timeout=SECONDS)
        finally:
            waiting.kill()
        assert (waiting.returncode, said.strip()) == (0, f"{host} is decommissioned"), shown
        until(lambda: has_come(cluster, leaves, NONE_LEFT), what="the new active's word")
        done = monotonic()
        cluster.kill(leaves)
        cluster.start(killed)
        cluster.wait_for_ready_standby(killed)
        work.wait_for_more(20, deadline_seconds=SECONDS)
        until(lambda: listed(cluster)[leaves]["state"] == "dead", what=f"{host} to be dead")
        until(lambda: are_all_whole(cluster), what="all to be whole without it")
        cluster.start(leaves)
        cluster.wait_for_datanode(leaves)
        back = nnha(cluster, "datanodes", "recommission", host, "--wait")
        assert (back.returncode, back.stdout.strip()) == (0, f"{host} is in service")
        work.wait_for_more(20, deadline_seconds=SECONDS)
        until(lambda: are_none_too_many(cluster), what="what is too much to be deleted")
    assert counted.below == []
    say(f"{leaves} decommissioned in {done - begun:.1f} s, the active killed with {when}")
    say(figures(counted))


def has_come(cluster: Cluster, leaves: str, when: str) -> bool:
    """Return whether the moment has come to kill the active, or to go on after that."""
    row = listed(cluster).get(leaves)
    if row is None:
        return False
    return bool(row["blocks_left"]) if when == SOME_LEFT else row["service"] == "decommissioned"


def are_all_whole(cluster: Cluster) -> bool:
    found = blocks_of(cluster)
    return bool(found) and not misplaced(found)


def are_none_too_many(cluster: Cluster) -> bool:
    found = [one for one in blocks_of(cluster) if one["path"].startswith("/kept/")]
    good = ("live", "excess", "decommissioning", "decommissioned")
    return bool(found) and all(len(holders(one, *good)) == one["expected"] for one in found)


def what_cannot_be_is_refused(cluster: Cluster) -> None:
    exclude = Path(cluster.more_keys["dfs.hosts.exclude"])
    assert exclude.read_text() == HEADING
    back = nnha(cluster, "datanodes", "recommission", "dn9.local")
    assert (back.returncode, "knows no DataNode dn9.local" in back.stdout) == (3, True)
    refused = nnha(cluster, "datanodes", "maintenance", "dn4.local")
    assert (refused.returncode, "needs the hosts file in JSON" in refused.stdout) == (3, True)
