"""One JVM with Hadoop's own servers, and what a workload left, for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import admin_workload, file_workload, snapshot_workload
from tests.interop.file_workload import Client
from tests.interop.hadoop_jars import JarsMissing
from tests.interop.hadoop_server import Hadoop, running_hadoop
from tests.needs import HADOOP_SERVER


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    """Yield a started JVM; its log is hadoop.log in the session's temporary directory."""
    try:
        with running_hadoop(tmp_path_factory.mktemp("hadoop")) as server:
            yield server
    except JarsMissing as missing:
        HADOOP_SERVER.skip(str(missing))


@pytest.fixture(scope="session")
def worked_in(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a real cluster's name directory after a workload, with an image for each step.

    Not to be written to.
    """
    folder = tmp_path_factory.mktemp("worked-in")
    settings = {"hadoop.security.key.provider.path": f"jceks://file{folder}/keys.jceks"}
    with hadoop.cluster(folder, data_nodes=3, settings=settings) as cluster:
        client = Client(hadoop, cluster, cluster.getFileSystem())
        for step in (*file_workload.STEPS, *admin_workload.STEPS, *snapshot_workload.STEPS):
            step(client)
            hadoop.save_namespace(client.fs)
    return folder / "name"
