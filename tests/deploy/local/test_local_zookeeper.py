"""A real ZooKeeper starts from PySpark's jars, on whichever Java there is."""

from pathlib import Path

import pytest
from kazoo.client import KazooClient

from deploy.local.cluster import zookeeper
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import find_java
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import Supervisor
from tests import local_services

pytestmark = pytest.mark.zookeeper


def test_it_keeps_its_data_over_a_kill(tmp_path: Path) -> None:
    java = find_java(wrapper_directory=tmp_path)
    with Supervisor(tmp_path) as supervisor:
        (port,) = free_ports(1)
        server = zookeeper.start_zookeeper(supervisor, java=java, port=port)
        zookeeper.wait_for_zookeeper(server)
        client = KazooClient(server.connect)
        client.start(10)
        client.create("/kept", b"value")
        client.stop()
        client.close()
        server.process.kill()
        server = local_services.restart_zookeeper(supervisor, server)
        client = KazooClient(server.connect)
        client.start(10)
        assert client.get("/kept")[0] == b"value"
        client.stop()
        client.close()


def test_it_runs_on_the_wheel_s_java(tmp_path: Path) -> None:
    java = find_java({"PATH": ""}, wrapper_directory=tmp_path)
    with Supervisor(tmp_path) as supervisor:
        (port,) = free_ports(1)
        server = zookeeper.start_zookeeper(supervisor, java=java, port=port)
        zookeeper.wait_for_zookeeper(server)
        assert server.process.running


def test_a_taken_port_ends_with_its_own_words(tmp_path: Path) -> None:
    with (
        local_services.running_zookeeper(tmp_path / "first") as first,
        Supervisor(tmp_path) as supervisor,
    ):
        java = find_java(wrapper_directory=tmp_path)
        second = zookeeper.start_zookeeper(supervisor, java=java, port=first.port, name="second")
        second.process.wait(20)
        told = second.process.ended_early()
        assert told is not None
        assert "Address already in use" in told
        assert first.process.running


def test_one_that_cannot_start_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    java = find_java(wrapper_directory=tmp_path)
    data = tmp_path / "data" / "zookeeper"
    data.mkdir(parents=True)
    (data / "data").mkdir()
    (data / "data" / "version-2").write_text("not a directory")
    with Supervisor(tmp_path) as supervisor:
        (port,) = free_ports(1)
        server = zookeeper.start_zookeeper(supervisor, java=java, port=port)
        with pytest.raises(LocalClusterError, match=r"zookeeper ended with exit code"):
            zookeeper.wait_for_zookeeper(server)
