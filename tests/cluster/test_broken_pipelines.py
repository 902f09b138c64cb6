"""Hadoop's client writes and reads a file while NameNode and DataNode under it are killed."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import pytest

from deploy.local.cluster import Cluster, open_cluster
from deploy.local.dfs import fs_shell
from deploy.local.layout import NAMENODES
from deploy.local.ports import free_ports
from deploy.local.processes import http_get, wait_until

pytestmark = pytest.mark.cluster

SECONDS = 120.0
DATANODES = ("dn1", "dn2", "dn3")
BLOCK_BYTES = 4 << 20
BLOCKS = 40


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with open_cluster(tmp_path) as cluster:
        cluster.up()
        for name in DATANODES:
            start_datanode(cluster, name)
        for name in NAMENODES:
            wait_until(
                partial(all_live_at, cluster, name),
                what=f"{len(DATANODES)} DataNodes to be live at {name}",
                deadline_seconds=SECONDS,
            )
        yield cluster


def start_datanode(cluster: Cluster, name: str) -> None:
    data, rpc, http = free_ports(3)
    keys = {
        "dfs.datanode.data.dir": data_directory(cluster, name).as_uri(),
        "dfs.datanode.address": f"127.0.0.1:{data}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{rpc}",
        "dfs.datanode.http.address": f"127.0.0.1:{http}",
    }
    overrides = [part for key, value in keys.items() for part in ("-D", f"{key}={value}")]
    cluster.supervisor.start(name, cluster.command("datanode", *overrides))


def data_directory(cluster: Cluster, name: str) -> Path:
    return cluster.layout.directory / "data" / name


def all_live_at(cluster: Cluster, name: str) -> bool:
    found = http_get(cluster.layout.namenode_url(name) + "/metrics")
    live = f'nnha_datanodes{{state="live"}} {len(DATANODES)}.0'
    return found is not None and live in str(found[1])


def blocks_at(cluster: Cluster, name: str) -> int:
    """How many blocks a DataNode has whole."""
    finalized = data_directory(cluster, name).glob("current/*/current/finalized/*/*/blk_*.meta")
    return len(list(finalized))


def shell(cluster: Cluster, *arguments: str) -> None:
    done = fs_shell(cluster.layout.conf_dir, *arguments, deadline_seconds=SECONDS)
    assert done.returncode == 0, done.stderr


def test_a_file_is_written_through_kills_of_a_datanode_and_of_the_active_namenode(
    cluster: Cluster, tmp_path: Path
) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    chance = Random(1)
    source.write_bytes(b"".join(chance.randbytes(BLOCK_BYTES) for _ in range(BLOCKS)))
    with ThreadPoolExecutor(1) as pool:
        put = pool.submit(
            shell, cluster, "-D", f"dfs.blocksize={BLOCK_BYTES}", "-put", str(source), "/file"
        )
        for count, victim in ((4, "dn1"), (12, cluster.wait_for_active())):
            wait_until(
                lambda count=count: blocks_at(cluster, "dn2") >= count or put.done(),  # type: ignore[misc]
                what=f"{count} blocks to be written",
                deadline_seconds=SECONDS,
            )
            assert not put.done(), "the file was written before anything was killed"
            cluster.kill(victim)
        put.result()
    shell(cluster, "-get", "/file", str(back))
    assert _digest(back) == _digest(source)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
