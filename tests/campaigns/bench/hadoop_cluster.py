"""Hadoop's own NameNodes, JournalNodes and ZKFCs on loopback, for figures next to ours."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.cluster.cluster import zkfc_of
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import Java, class_path, find_java
from deploy.local.cluster.layout import JOURNALNODES, NAMENODES, Layout, plan
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.cluster.site import core_site, datanode_overrides, hdfs_site, site_xml
from deploy.local.cluster.zookeeper import LOG4J2, start_zookeeper, wait_for_zookeeper
from ha.conf.topology import HostPort
from tests.interop.hadoop_jars import server_jar
from tests.interop.hadoop_server import JARS
from tests.interop.relocated import relocated_zookeeper

START_SECONDS = 180.0
HEALTHY = "Entering state SERVICE_HEALTHY"
"""What its ZKFC logs when it finds its NameNode well; it stands for election from then on."""

_MAINS = {
    "journalnode": "org.apache.hadoop.hdfs.qjournal.server.JournalNode",
    "namenode": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "zkfc": "org.apache.hadoop.hdfs.tools.DFSZKFailoverController",
}
# As docs/reference/operations.md#comparison-load says; all else is the JVM's default.
_HEAP_MEGABYTES = {"journalnode": 256, "namenode": 512, "zkfc": 128, "datanode": 256}


@dataclass(slots=True)
class HadoopCluster:
    """Parts named as ours are: zookeeper, jn1-jn3, nn1, nn2, zkfc-nn1, zkfc-nn2, and DataNodes if
    any.
    """

    layout: Layout
    supervisor: Supervisor
    java: Java
    class_path: str
    more_keys: Mapping[str, str] = field(default_factory=dict)
    """Of hdfs-site.xml, in place of our own of the same name."""
    more_heap: Mapping[str, int] = field(default_factory=dict)
    """The megabytes of a kind of daemon that needs more than usual."""

    @property
    def conf_dir(self) -> Path:
        return self.layout.conf_dir

    def address(self, namenode: str) -> HostPort:
        return HostPort(HOST, self.layout.namenodes[namenode].rpc)

    def up(self) -> None:
        """Format all, and start it; raise LocalClusterError with the log of what failed."""
        self._write_conf()
        server = start_zookeeper(self.supervisor, java=self.java, port=self.layout.zookeeper)
        for name in JOURNALNODES:
            ports = self.layout.journalnodes[name]
            self.start(
                name,
                "journalnode",
                f"-Ddfs.journalnode.rpc-address={HOST}:{ports.rpc}",
                f"-Ddfs.journalnode.http-address={HOST}:{ports.http}",
                f"-Ddfs.journalnode.edits.dir={self.layout.edits_dir(name)}",
            )
        wait_for_zookeeper(server, deadline_seconds=START_SECONDS)
        for name in JOURNALNODES:
            self._wait_for_word(name, "IPC Server listener on", 0)
        first, second = NAMENODES
        self._finish("format", "namenode", first, "-format", "-nonInteractive")
        shutil.copytree(self.layout.name_dir(first), self.layout.name_dir(second))
        self._finish("format-zk", "zkfc", first, "-formatZK", "-force", "-nonInteractive")
        for name in NAMENODES:
            self.start_namenode(name)
        for name in self.layout.datanodes:
            keys = datanode_overrides(self.layout, name)
            self.start(name, "datanode", *(f"-D{key}={value}" for key, value in keys.items()))
        for name in NAMENODES:
            self.start_zkfc(name)
            self.wait_for_candidate(name, 0)

    def start_namenode(self, name: str) -> None:
        self.start(name, "namenode", f"-Ddfs.ha.namenode.id={name}")

    def start_zkfc(self, namenode: str) -> None:
        self.start(zkfc_of(namenode), "zkfc", f"-Ddfs.ha.namenode.id={namenode}")

    def start(self, name: str, program: str, *options: str) -> None:
        """Start one part, and do not wait for it."""
        self.supervisor.start(name, self._command(program, *options))

    def log_size(self, name: str) -> int:
        path = self.supervisor.processes[name].log
        return path.stat().st_size if path.exists() else 0

    def wait_for_candidate(self, namenode: str, behind: int) -> None:
        self._wait_for_word(zkfc_of(namenode), HEALTHY, behind)

    def _wait_for_word(self, name: str, word: str, behind: int) -> None:
        process = self.supervisor.processes[name]

        def told() -> bool:
            with process.log.open("rb") as log:
                log.seek(behind)
                return word.encode() in log.read()

        wait_until(
            told,
            what=f"{name} to log {word!r}",
            deadline_seconds=START_SECONDS,
            poll_seconds=0.05,
            abandon=self._ended_early,
        )

    def _ended_early(self) -> str | None:
        reasons = (each.ended_early() for each in self.supervisor.processes.values())
        return next((reason for reason in reasons if reason), None)

    def _finish(self, name: str, program: str, namenode: str, *arguments: str) -> None:
        own_id = f"-Ddfs.ha.namenode.id={namenode}"
        process = self.supervisor.start(name, self._command(program, own_id, *arguments))
        if process.wait(START_SECONDS) != 0:
            raise LocalClusterError(f"Tried to {name}; {process.ended_early()}")
        self.supervisor.forget(name)

    def _command(self, program: str, *arguments: str) -> list[str]:
        directory = self.layout.directory
        return [
            str(self.java.executable),
            f"-Xmx{self.more_heap.get(program, _HEAP_MEGABYTES[program])}m",
            f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
            f"-Dhadoop.log.dir={directory}",
            "-cp",
            self.class_path,
            _MAINS[program],
            *arguments,
        ]

    def _write_conf(self) -> None:
        self.conf_dir.mkdir(parents=True)
        keys = hdfs_site(self.layout) | {
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.tail-edits.in-progress": "false",  # Hadoop's default
            "dfs.webhdfs.enabled": "false",
            **self.more_keys,
        }
        (self.conf_dir / "core-site.xml").write_text(site_xml(core_site(self.layout)))
        (self.conf_dir / "hdfs-site.xml").write_text(site_xml(keys))
        settings = self.layout.directory / "log4j2.properties"
        settings.write_text(LOG4J2.format(level="info"))


@contextmanager
def hadoop_cluster(
    directory: Path,
    *,
    datanodes: int = 0,
    more_keys: Mapping[str, str] | None = None,
    more_heap: Mapping[str, int] | None = None,
) -> Iterator[HadoopCluster]:
    """Run a cluster until the block ends.

    Raises:
        JarsMissing, LocalClusterError: Hadoop's jar or a Java is not here, or a part fails.
    """
    directory.mkdir(parents=True, exist_ok=True)
    # The server's jar lacks a few of ZooKeeper's classes that its own ZKFC needs.
    zookeeper = class_path("netty-*.jar", first=relocated_zookeeper(directory))
    jars = class_path(*JARS, first=server_jar())
    layout = plan(directory, datanodes=datanodes)
    with Supervisor(layout.directory) as supervisor:
        cluster = HadoopCluster(
            layout=layout,
            supervisor=supervisor,
            java=find_java(),
            class_path=os.pathsep.join((str(layout.conf_dir), zookeeper, jars)),
            more_keys=more_keys or {},
            more_heap=more_heap or {},
        )
        cluster.up()
        yield cluster
