"""A cluster whose files cannot be read is not healthy: real DataNodes die and come back."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from tests.local_services import fs_shell

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SECONDS = 60.0
KEYS = {
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.stale.datanode.interval": "3000",
    "dfs.namenode.heartbeat.recheck-interval": "300000",  # silent ones stay so to the end
    "dfs.namenode.safemode.extension": "0",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with open_cluster(tmp_path, datanodes=3, more_keys=KEYS) as cluster:
        cluster.up()
        yield cluster


def nnha(cluster: Cluster, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        cluster.command(*words), capture_output=True, text=True, check=False, timeout=60
    )


def status(cluster: Cluster) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(nnha(cluster, "status", "-o", "json").stdout)
    return found


def says(cluster: Cluster, condition: str, *beginnings: str) -> bool:
    """Return whether the status has this condition, and problems with these beginnings."""
    found = status(cluster)
    problems = found["problems"]
    named = all(any(one.startswith(text) for one in problems) for text in beginnings)
    well = found["healthy"] if not beginnings else not found["healthy"]
    return bool(found["verdict"]["condition"] == condition and named and well)


def put(cluster: Cluster, local: Path, path: str) -> None:
    done = fs_shell(
        cluster.conf_dir, "-put", str(local), path, java=cluster.java, deadline_seconds=SECONDS
    )
    assert done.returncode == 0, done.stderr


def test_dead_datanodes_are_no_healthy_cluster(cluster: Cluster, tmp_path: Path) -> None:
    until = partial(wait_until, deadline_seconds=SECONDS)
    local = tmp_path / "content"
    local.write_bytes(b"x" * 100_000)
    put(cluster, local, "/whole")
    until(lambda: says(cluster, "serving"), what="a healthy cluster with a file")

    for name in ("dn1", "dn2"):
        cluster.kill(name)
    few = "1 block has too few replicas"
    until(lambda: says(cluster, "serving", few, "2 DataNodes are silent"), what="the silence")
    put(cluster, local, "/one-replica")
    few = "2 blocks have too few replicas"
    until(lambda: says(cluster, "serving", few), what="the file with one replica to be counted")

    cluster.kill("dn3")
    none = "no DataNode is heard"
    lost = "2 blocks have no usable replica"
    until(lambda: says(cluster, "data unreadable", none, lost), what="the files to be unreadable")
    assert nnha(cluster, "status", "--check").returncode == 8
    listed = json.loads(nnha(cluster, "datanodes", "-o", "json").stdout)["datanodes"]
    assert [one["state"] for one in listed] == ["stale"] * 3
    assert all(one["volumes"] for one in listed)

    for name in cluster.datanodes:
        cluster.start(name)
    until(lambda: says(cluster, "serving"), what="a healthy cluster again")
    assert nnha(cluster, "status", "--check").returncode == 0
