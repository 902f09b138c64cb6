"""Six DataNodes on three racks: a rack dies, and a DataNode leaves through a failover."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.local.cluster import site
from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from deploy.local.workload.file_workload import FileWorkload
from deploy.local.workload.java_client import open_java_client, start_java_client

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(300)]

SECONDS: Final = 120.0
RACKS: Final = {f"dn{n}": f"/rack{(n - 1) // 2}" for n in range(1, 7)}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    table, exclude = tmp_path / "racks", tmp_path / "exclude"
    table.write_text("".join(f"{name}.local {rack}\n" for name, rack in RACKS.items()))
    exclude.write_text("# those that leave\n")
    keys = {
        "net.topology.table.file.name": str(table),
        "dfs.hosts.exclude": str(exclude),
        "dfs.namenode.decommission.interval": "1s",
        "dfs.namenode.heartbeat.recheck-interval": "500",
        "dfs.namenode.safemode.extension": "0",
    }
    with open_cluster(tmp_path / "cluster", datanodes=len(RACKS), more_keys=keys) as cluster:
        for name in cluster.datanodes:
            own = site.datanode_overrides(cluster.layout, name)
            own |= {"dfs.datanode.hostname": f"{name}.local"}
            options = [part for key, value in own.items() for part in ("-D", f"{key}={value}")]
            cluster.commands[name] = cluster.command("datanode", *options)
        cluster.up()
        yield cluster


def nnha(cluster: Cluster, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "nnha", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env=os.environ | {"HADOOP_CONF_DIR": str(cluster.conf_dir)},
    )


def files(cluster: Cluster) -> Mapping[str, Any]:
    """Return what the active says of blocks and DataNodes; nothing while there is none."""
    page = json.loads(nnha(cluster, "status", "-o", "json").stdout)
    found = [one["files"] for one in page["namenodes"] if one["state"] == "active" and one["files"]]
    return found[0] if found else {}


def are_all_whole(cluster: Cluster, live: int) -> bool:
    found = files(cluster)
    return bool(found) and (found["live_datanodes"], found["under_replicated"]) == (live, 0)


def listed(cluster: Cluster) -> dict[str, Mapping[str, Any]]:
    found = json.loads(nnha(cluster, "datanodes", "-o", "json").stdout or '{"datanodes": []}')
    return {one["host"].removesuffix(".local"): one for one in found["datanodes"]}


@pytest.mark.row("B21", because="it plays what the rows of decommissioning ask for, on processes")
def test_a_rack_dies_and_a_datanode_leaves_under_load(cluster: Cluster) -> None:
    until = partial(wait_until, deadline_seconds=SECONDS)
    until(lambda: len(listed(cluster)) == len(RACKS), what="all DataNodes")
    assert {name: one["rack"] for name, one in listed(cluster).items()} == RACKS
    java = start_java_client(cluster.supervisor, java=cluster.java, conf_dir=cluster.conf_dir)
    with open_java_client(java) as client:
        work = FileWorkload(client, "/racks", pause_seconds=0.02)
        work.start()
        work.wait_for_more(20, deadline_seconds=SECONDS)

        for name in ("dn1", "dn2"):
            cluster.kill(name)
        work.wait_for_more(20, deadline_seconds=SECONDS)
        until(lambda: listed(cluster)["dn1"]["state"] == "dead", what="the rack to be dead")
        until(lambda: are_all_whole(cluster, 4), what="copies on two racks")
        for name in ("dn1", "dn2"):
            cluster.start(name)

        begun = nnha(cluster, "datanodes", "decommission", "dn3.local")
        assert begun.returncode == 0, begun.stdout + begun.stderr
        cluster.kill(cluster.wait_for_active())
        cluster.wait_for_active()
        work.wait_for_more(20, deadline_seconds=SECONDS)
        missing = set()

        def is_done() -> bool:
            missing.add(files(cluster).get("missing", 0))
            return bool(listed(cluster).get("dn3", {}).get("service") == "decommissioned")

        until(is_done, what="dn3 to be decommissioned")
        assert missing == {0}
        waited = nnha(cluster, "datanodes", "decommission", "dn3.local", "--wait")
        assert (waited.returncode, waited.stdout.strip()) == (0, "dn3.local is decommissioned")
        cluster.kill("dn3")
        work.wait_for_more(20, deadline_seconds=SECONDS)
        until(lambda: are_all_whole(cluster, 5), what="all blocks to be whole without it")
        work.stop()
        assert work.check_all() > 0
        assert work.wrong == []
    exclude = Path(cluster.more_keys["dfs.hosts.exclude"])
    assert exclude.read_text() == "# those that leave\ndn3.local\n"
    back = nnha(cluster, "datanodes", "recommission", "dn9.local")
    assert (back.returncode, "knows no DataNode dn9.local" in back.stdout) == (3, True)
    refused = nnha(cluster, "datanodes", "maintenance", "dn4.local")
    assert (refused.returncode, "needs the hosts file in JSON" in refused.stdout) == (3, True)
    back = nnha(cluster, "datanodes", "recommission", "dn3.local")
    assert back.returncode == 0, back.stdout + back.stderr
    assert exclude.read_text() == "# those that leave\n"
