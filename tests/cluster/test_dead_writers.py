"""Files of clients that were killed, through our NameNode and DataNodes with Hadoop's client."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.layout import NAMENODES
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import http_get, wait_until
from deploy.local.workload.java_client import JavaClient, open_java_client, start_java_client

pytestmark = pytest.mark.cluster

SECONDS = 60.0
DATANODES = ("dn1", "dn2", "dn3")
DATA = random.Random(26).randbytes(700_000)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with open_cluster(tmp_path) as cluster:
        cluster.up()
        ports = free_ports(3 * len(DATANODES))
        for index, name in enumerate(DATANODES):
            start_datanode(cluster, name, *ports[3 * index : 3 * index + 3])
        for name in NAMENODES:
            wait_until(
                partial(knows_three, cluster, name),
                what=f"{name} to know three DataNodes",
                deadline_seconds=SECONDS,
            )
        yield cluster


def start_datanode(cluster: Cluster, name: str, data: int, rpc: int, http: int) -> None:
    keys = {
        "dfs.datanode.data.dir": (cluster.layout.directory / "data" / name).as_uri(),
        "dfs.datanode.address": f"127.0.0.1:{data}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{rpc}",
        "dfs.datanode.http.address": f"127.0.0.1:{http}",
        "dfs.heartbeat.interval": "1s",
    }
    overrides = [part for key, value in keys.items() for part in ("-D", f"{key}={value}")]
    cluster.supervisor.start(name, cluster.command("datanode", *overrides))


def knows_three(cluster: Cluster, namenode: str) -> bool:
    found = http_get(cluster.layout.url(namenode) + "/metrics")
    return found is not None and 'nnha_datanodes{state="live"} 3.0' in str(found[1])


def java_client(cluster: Cluster, name: str = "java-client") -> JavaClient:
    process = start_java_client(
        cluster.supervisor, java=cluster.java, conf_dir=cluster.conf_dir, name=name
    )
    return open_java_client(process)


def write(client: JavaClient, path: str, data: bytes) -> None:
    def written(files: Any) -> None:  # noqa: ANN401 - py4j has no types
        stream = files.create(client.path(path), True)
        stream.write(data)
        stream.close()

    client.on_files(written)


def closed(client: JavaClient, path: str) -> bool:
    return bool(client.on_files(lambda files: files.isFileClosed(client.path(path))))


def recovered(client: JavaClient, path: str) -> bool:
    return bool(client.on_files(lambda files: files.recoverLease(client.path(path))))


def append(client: JavaClient, path: str, data: bytes) -> None:
    def appended(files: Any) -> None:  # noqa: ANN401 - py4j has no types
        stream = files.append(client.path(path))
        stream.write(data)
        stream.close()

    client.on_files(appended)


def truncate(client: JavaClient, path: str, length: int) -> bool:
    return bool(client.on_files(lambda files: files.truncate(client.path(path), length)))


def abandoned(cluster: Cluster, path: str, data: bytes) -> None:
    """Leave a file with these bytes behind by a client that is killed in the midst of it."""
    client = java_client(cluster, "writer")
    open_streams = []

    def begin(files: Any) -> None:  # noqa: ANN401 - py4j has no types
        stream = files.create(client.path(path), True)
        stream.write(data)
        stream.hflush()
        open_streams.append(stream)

    client.on_files(begin)
    client.process.kill()


@pytest.mark.row("B24", "B26")
def test_the_file_of_a_killed_client_is_closed_with_all_that_it_had_flushed(
    cluster: Cluster,
) -> None:
    abandoned(cluster, "/f", DATA[:300_001])
    with java_client(cluster) as client:
        assert not recovered(client, "/f")
        wait_until(
            lambda: recovered(client, "/f"), what="the recovery of /f", deadline_seconds=SECONDS
        )
        assert closed(client, "/f")
        assert client.read("/f") == DATA[:300_001]
        append(client, "/f", DATA[300_001:])  # in the midst of a chunk of 512 bytes
        assert client.read("/f") == DATA
        assert not truncate(client, "/f", 123_457)
        wait_until(lambda: closed(client, "/f"), what="the cut of /f", deadline_seconds=SECONDS)
        assert client.read("/f") == DATA[:123_457]
        assert truncate(client, "/f", 0)
        assert client.read("/f") == b""


@pytest.mark.row("B9")
def test_a_truncation_and_a_recovery_outlive_the_active_namenode(cluster: Cluster) -> None:
    abandoned(cluster, "/f", DATA[:300_001])
    with java_client(cluster) as client:
        write(client, "/g", DATA)
        client.on_files(lambda files: files.allowSnapshot(client.path("/")))
        client.on_files(lambda files: files.createSnapshot(client.path("/"), "s"))
        write(client, "/h", DATA)
        active = cluster.wait_for_active()
        assert not recovered(client, "/f")
        assert not truncate(client, "/g", 5001)  # a snapshot keeps what was there
        assert not truncate(client, "/h", 5001)
        cluster.kill(active)
        wait_until(
            lambda: recovered(client, "/f"), what="the recovery of /f", deadline_seconds=3 * SECONDS
        )
        assert client.read("/f") == DATA[:300_001]
        for path in ("/g", "/h"):
            wait_until(
                partial(closed, client, path), what=f"the cut of {path}", deadline_seconds=SECONDS
            )
            assert client.read(path) == DATA[:5001]
        assert client.read("/.snapshot/s/g") == DATA


@pytest.mark.row("B26")
def test_files_are_joined(cluster: Cluster) -> None:
    with java_client(cluster) as client:
        for number in range(3):
            write(client, f"/part{number}", DATA[number * 1000 : (number + 1) * 1000])
        arrays = client.files().jvm.java.lang.reflect.Array
        sources = arrays.newInstance(client.path("/part1").getClass(), 2)
        sources[0], sources[1] = client.path("/part1"), client.path("/part2")
        client.on_files(lambda files: files.concat(client.path("/part0"), sources))
        assert client.read("/part0") == DATA[:3000]
        append(client, "/part0", DATA[3000:3500])
        assert client.read("/part0") == DATA[:3500]
