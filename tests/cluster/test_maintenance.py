"""A DataNode in maintenance: it dies, a failover comes, it returns, and its time ends at last."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic

import pytest

from deploy.local.cluster.cluster import Cluster
from deploy.local.workload.file_workload import FileWorkload
from deploy.local.workload.java_client import open_java_client, start_java_client
from ha.conf.keys import hosts
from tests.cluster.rack_scene import (
    SECONDS,
    Kept,
    blocks_of,
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

GOOD = ("live", "excess", "entering maintenance", "in maintenance")
SOME_ROUNDS = 80
"""In that many looks the active goes through what lacks replicas two times at least."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    file = tmp_path / "hosts.json"
    file.write_text("[]\n")
    keys = {hosts.PROVIDER.name: hosts.JSON_HOSTS, hosts.INCLUDE.name: str(file)}
    with on_racks(tmp_path, keys) as cluster:
        yield cluster


@pytest.mark.row("B21", because="it plays what the rows of maintenance ask for, on processes")
def test_nothing_is_copied_for_a_datanode_in_maintenance_until_its_time_ends(
    cluster: Cluster,
) -> None:
    java = start_java_client(cluster.supervisor, java=cluster.java, conf_dir=cluster.conf_dir)
    with open_java_client(java) as client:
        kept = Kept(client.files())
        kept.write("/kept/three", 30, 3)
        kept.write("/kept/one", 20, 1)
        until(lambda: are_as_wanted(cluster), what="what is too much to be deleted")
        before = where(cluster)
        alone = Counter(name for names in before.values() if len(names) == 1 for name in names)
        name = alone.most_common(1)[0][0]
        work = FileWorkload(client, "/work", pause_seconds=0.02)
        work.start()
        work.wait_for_more(20, deadline_seconds=SECONDS)

        at_rest = enter(cluster, name, before)
        cluster.kill(name)
        until(lambda: state_of(cluster, name) == ("dead", "in maintenance"), what="its death")
        stays(cluster, at_rest, kept)
        assert nnha(cluster, "status").returncode == 0

        killed = cluster.wait_for_active()
        cluster.kill(killed)
        assert cluster.wait_for_active() != killed
        assert state_of(cluster, name) == ("dead", "in maintenance")
        stays(cluster, at_rest, kept)
        cluster.start(killed)
        cluster.wait_for_ready_standby(killed)

        cluster.start(name)
        until(lambda: state_of(cluster, name) == ("live", "in maintenance"), what="its return")
        stays(cluster, at_rest, kept)

        cluster.kill(name)
        begun = nnha(cluster, "datanodes", "maintenance", f"{name}.local", "--for", "20s")
        assert begun.returncode == 0, begun.stdout + begun.stderr
        until(lambda: state_of(cluster, name) == ("dead", "in service"), what="the time to end")
        ended = monotonic()
        until(lambda: are_whole(cluster), what="copies of what it had")
        say(f"{name} serves, and is dead: all is whole again after {monotonic() - ended:.1f} s")
        assert all(name not in names for names in where(cluster).values())
        assert kept.wrong() == []
        cluster.start(name)
        until(lambda: state_of(cluster, name) == ("live", "in service"), what="its return")
        until(lambda: are_as_wanted(cluster), what="what is too much to be deleted")
        assert kept.wrong() == []
        work.stop()
        assert work.check_all() > 0
        assert (work.wrong, work.errors()) == ([], ())


def where(cluster: Cluster) -> Mapping[str, set[str]]:
    """Return the DataNodes of each block's good replicas, of the files that stay as they are."""
    return {
        str(one["block"]): holders(one, *GOOD)
        for one in blocks_of(cluster)
        if one["path"].startswith("/kept/")
    }


def are_as_wanted(cluster: Cluster) -> bool:
    """Return whether each block has as many good replicas as it is to have, and no more."""
    found = [one for one in blocks_of(cluster) if one["path"].startswith("/kept/")]
    return bool(found) and all(len(holders(one, *GOOD)) == one["expected"] for one in found)


def are_whole(cluster: Cluster) -> bool:
    found = blocks_of(cluster)
    return bool(found) and not misplaced(found)


def state_of(cluster: Cluster, name: str) -> tuple[str, str]:
    row = listed(cluster).get(name, {"state": "", "service": ""})
    return row["state"], row["service"]


def enter(cluster: Cluster, name: str, before: Mapping[str, set[str]]) -> Mapping[str, set[str]]:
    """Take a DataNode into maintenance: only what it alone has is copied, once."""
    entered = nnha(cluster, "datanodes", "maintenance", f"{name}.local", "--wait")
    assert entered.returncode == 0, entered.stdout + entered.stderr
    assert entered.stdout.strip() == f"{name}.local is in maintenance"
    after = where(cluster)
    assert after.keys() == before.keys()
    more = {block: after[block] - before[block] for block in before}
    assert all(before[block] <= after[block] for block in before)
    assert {block for block in more if more[block]} == {
        block for block in before if before[block] == {name}
    }
    assert all(len(names) <= 1 for names in more.values())
    had = sum(name in names for names in before.values())
    say(f"{name} had {had} blocks; {sum(map(len, more.values()))} that it alone had were copied")
    return after


def stays(cluster: Cluster, at_rest: Mapping[str, set[str]], kept: Kept) -> None:
    """See that all can be read, and that for some rounds nothing is copied or deleted."""
    assert kept.wrong() == []
    begun = monotonic()
    with looking(cluster) as counted:
        until(lambda: counted.looks > SOME_ROUNDS, what="some rounds")
        assert where(cluster) == at_rest
    say(f"{counted.looks} looks in {monotonic() - begun:.1f} s: nothing was copied or deleted")
