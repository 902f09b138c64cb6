"""The client of a local cluster calls the cluster, or nothing."""

import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import find_java
from deploy.local.cluster.processes import ManagedProcess, Supervisor
from deploy.local.cluster.site import site_xml
from deploy.local.workload.java_client import open_java_client, start_java_client

STARTED_SECONDS = 120.0


@pytest.fixture
def started(tmp_path: Path) -> Iterator[ManagedProcess]:
    """Start a client before its folder of configuration is there, and wait for its JVM."""
    with Supervisor(tmp_path) as supervisor:
        java = find_java(wrapper_directory=tmp_path)
        process = start_java_client(supervisor, java=java, conf_dir=tmp_path / "conf")
        assert process.process.stdout is not None
        assert select.select([process.process.stdout], [], [], STARTED_SECONDS)[0]
        yield process


def test_what_is_configured_after_the_start_of_its_jvm_is_read(
    started: ManagedProcess, tmp_path: Path
) -> None:
    """A busy machine starts the JVM sooner than the cluster's files are written."""
    keys = {"fs.defaultFS": "hdfs://127.0.0.1:9"}
    conf = tmp_path / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "core-site.xml").write_text(site_xml(keys))
    with open_java_client(started) as client:
        assert client.on_files(lambda files: files.getUri().toString()) == keys["fs.defaultFS"]


def test_without_a_configuration_nothing_is_written_to_this_host(started: ManagedProcess) -> None:
    with pytest.raises(LocalClusterError, match=r"file:///.*fs\.defaultFS.*/conf has a core-site"):
        open_java_client(started)
