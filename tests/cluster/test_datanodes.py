"""`nnha datanode` and `nnha namenode` as processes: both NameNodes know it, one is obeyed."""

import json
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import wait_until

pytestmark = pytest.mark.cluster

SECONDS = 60.0
DATANODE = "dn1"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with open_cluster(tmp_path) as cluster:
        cluster.up()
        yield cluster


def start_datanode(cluster: Cluster) -> str:
    data, rpc, http = free_ports(3)
    keys = {
        "dfs.datanode.data.dir": (cluster.layout.directory / "data" / DATANODE).as_uri(),
        "dfs.datanode.address": f"127.0.0.1:{data}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{rpc}",
        "dfs.datanode.http.address": f"127.0.0.1:{http}",
    }
    overrides = [part for key, value in keys.items() for part in ("-D", f"{key}={value}")]
    cluster.supervisor.start(DATANODE, cluster.command("datanode", *overrides))
    return f"http://127.0.0.1:{http}"


def get(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def obeyed(url: str) -> str | None:
    found = get(f"{url}/status")
    return str(json.loads(found)["obeyed"]) if found else None


def lives_at(cluster: Cluster, name: str) -> bool:
    """Return whether a NameNode counts it as live, and has taken its full report in."""
    text = get(cluster.layout.url(name) + "/metrics")
    reports = 'nnha_block_report_seconds_count{kind="full"} 0.0'
    known = 'nnha_datanodes{state="live"} 1.0' in text
    return known and "nnha_block_report_seconds_count" in text and reports not in text


def test_both_namenodes_know_it_and_the_active_one_is_obeyed(cluster: Cluster) -> None:
    url = start_datanode(cluster)
    for name in NAMENODES:
        wait_until(
            partial(lives_at, cluster, name),
            what=f"the DataNode to report to {name}",
            deadline_seconds=SECONDS,
        )
    active = cluster.wait_for_active()
    wait_until(lambda: obeyed(url) == active, what="obedience", deadline_seconds=SECONDS)
    cluster.kill(active)
    other = next(name for name in NAMENODES if name != active)
    wait_until(
        lambda: obeyed(url) == other,
        what="the DataNode to obey the new active",
        deadline_seconds=SECONDS,
    )
