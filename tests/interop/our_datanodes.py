"""Our DataNodes as processes, with a NameNode of Hadoop's in its own JVM."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import ManagedProcess, Supervisor, http_get, wait_until
from tests.interop.hadoop_server import Hadoop, JavaObject

POLL = {
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.safemode.min.datanodes": "0",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.namenode.redundancy.interval.seconds": "1s",
    "dfs.namenode.reconstruction.pending.timeout-sec": "5",
    "dfs.namenode.heartbeat.recheck-interval": "1000",
    "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "50",
    "dfs.namenode.lease-recheck-interval-ms": "200",
}


@dataclass(slots=True)
class OurDataNodes:
    """Starts and looks at DataNodes of one NameNode."""

    supervisor: Supervisor
    folder: Path
    namenode_port: int
    http_ports: dict[str, int] = field(default_factory=dict)

    def start(self, name: str, directory: Path | None = None) -> ManagedProcess:
        (http,) = free_ports(1)
        self.http_ports[name] = http
        settings = {
            "dfs.nameservices": "java",
            "dfs.ha.namenodes.java": "nn1",
            "dfs.namenode.rpc-address.java.nn1": f"127.0.0.1:{self.namenode_port}",
            "dfs.datanode.data.dir": (directory or self.folder / name).as_uri(),
            "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.datanode.http.address": f"127.0.0.1:{http}",
            "dfs.heartbeat.interval": "1s",
            "dfs.block.scanner.volume.bytes.per.second": "1g",
        }
        argv = [sys.executable, "-m", "ha.cli.main", "datanode", "--conf-dir", str(self.conf)]
        argv += [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        process = self.supervisor.start(name, argv)
        wait_until(
            lambda: self.is_healthy(name) or not process.running,
            what=f"{name} to be taken by the NameNode",
            deadline_seconds=30,
        )
        assert process.running, process.ended_early()
        return process

    @property
    def conf(self) -> Path:
        conf = self.folder / "conf"
        conf.mkdir(exist_ok=True)
        for name in ("core-site.xml", "hdfs-site.xml"):
            (conf / name).write_text("<configuration/>")
        return conf

    def is_healthy(self, name: str) -> bool:
        found = http_get(f"http://127.0.0.1:{self.http_ports[name]}/health")
        return found is not None and found[0] == 200

    def status(self, name: str) -> dict[str, object]:
        found = http_get(f"http://127.0.0.1:{self.http_ports[name]}/status")
        assert found is not None, name
        answer: dict[str, object] = json.loads(found[1])
        return answer


@contextmanager
def java_name_node(
    hadoop: Hadoop, folder: Path, *, settings: dict[str, str] | None = None
) -> Iterator[JavaObject]:
    """Run a ``MiniDFSCluster`` with a NameNode alone."""
    uri = (folder / "name").resolve().as_uri()
    configuration = hadoop.configuration({"dfs.namenode.name.dir": uri, **POLL, **(settings or {})})
    builder = hadoop.hadoop.hdfs.MiniDFSCluster.Builder(
        configuration, hadoop.gateway.jvm.java.io.File(str(folder / "cluster"))
    )
    cluster = builder.manageNameDfsDirs(False).numDataNodes(0).build()
    try:
        yield cluster
    finally:
        cluster.shutdown()


@contextmanager
def our_data_nodes(folder: Path, cluster: JavaObject) -> Iterator[OurDataNodes]:
    """Yield the DataNodes, none of which is started yet; all end with the block."""
    with Supervisor(folder) as supervisor:
        yield OurDataNodes(supervisor, folder, cluster.getNameNodePort())
