"""A ZooKeeper, Hadoop's shell and whole files, for tests and campaigns on real processes."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import Java, find_java
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.cluster.zookeeper import ZooKeeper, start_zookeeper, wait_for_zookeeper
from deploy.local.workload.file_workload import FileWorkload
from deploy.local.workload.hadoop_client import client_argv
from deploy.local.workload.java_client import JavaFiles

COPIED_SECONDS: Final = 180.0


@contextlib.contextmanager
def running_zookeeper(directory: Path, *, port: int | None = None) -> Iterator[ZooKeeper]:
    """Run a server for the length of a ``with`` in its own directory, on a free port.

    Raises LocalClusterError with the end of its log where it does not come up.
    """
    directory.mkdir(parents=True, exist_ok=True)
    java = find_java(wrapper_directory=directory)
    with Supervisor(directory) as supervisor:
        (chosen,) = free_ports(1) if port is None else (port,)
        server = start_zookeeper(supervisor, java=java, port=chosen)
        wait_for_zookeeper(server)
        yield server


def restart_zookeeper(supervisor: Supervisor, server: ZooKeeper) -> ZooKeeper:
    """Start the same server again on its data and port, after it was killed or stopped."""
    process = supervisor.start(server.process.name, server.process.argv)
    again = ZooKeeper(host=server.host, port=server.port, process=process)
    try:
        wait_for_zookeeper(again)
    except LocalClusterError:
        supervisor.stop(server.process.name)
        raise
    return again


def fs_shell(
    conf_dir: Path, *arguments: str, java: Java | None = None, deadline_seconds: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run one shell command and catch what it prints."""
    with tempfile.TemporaryDirectory() as scratch:
        argv = client_argv(
            java or find_java(),
            conf_dir,
            "org.apache.hadoop.fs.FsShell",
            log_directory=Path(scratch),
        )
        return subprocess.run(
            [*argv, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=deadline_seconds,
            check=False,
        )


def lacking_blocks(files: JavaFiles) -> int:
    """Return how many blocks have fewer replicas than they are to have, or none."""
    low = files.call(files.filesystem.getLowRedundancyBlocksCount)
    return int(low) + int(files.call(files.filesystem.getMissingBlocksCount))


def wait_until_whole(workload: FileWorkload) -> None:
    """Wait until every block has all its replicas.  Raises LocalClusterError."""
    files = workload.client.files()
    wait_until(
        lambda: lacking_blocks(files) == 0,
        what="every block to have all its replicas",
        deadline_seconds=COPIED_SECONDS,
    )
