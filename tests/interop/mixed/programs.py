"""The command lines of both kinds of daemon, on one set of directories and ports."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from deploy.local.cluster.cluster import Cluster
from deploy.local.cluster.java import Java, class_path
from deploy.local.cluster.layout import JOURNALNODES, NAMESERVICE, JournalNodePorts, Layout
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.site import core_site, datanode_overrides, hdfs_site, site_xml
from deploy.local.cluster.zookeeper import LOG4J2
from tests import ROOT
from tests.interop.hadoop_jars import server_jar
from tests.interop.hadoop_server import JARS
from tests.interop.relocated import relocated_zookeeper

MAINS = {
    "journalnode": "org.apache.hadoop.hdfs.qjournal.server.JournalNode",
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "namenode": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "zkfc": "org.apache.hadoop.hdfs.tools.DFSZKFailoverController",
    "haadmin": "org.apache.hadoop.hdfs.tools.DFSHAAdmin",
    "dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin",
}
# As docs/reference/operations.md#comparison-load says.
HEAP_MEGABYTES = {
    "journalnode": 256,
    "datanode": 256,
    "namenode": 512,
    "zkfc": 128,
    "haadmin": 128,
    "dfsadmin": 128,
}
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A NameNode is back in half the time on a machine with two cores."""


JOURNAL_HOSTS = {name: f"127.0.0.{number}" for number, name in enumerate(JOURNALNODES, start=2)}
"""As on three machines, all JournalNodes use the same ports."""


class Kind(StrEnum):
    """Whose daemon it is."""

    HADOOP = "hadoop"
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Programs:
    """What to start for each part.

    Hadoop's daemons and the clients read ``conf``, where the shared edits name the JournalNodes'
    Hadoop RPC port; ours read ``conf-ours``, where they name the gRPC port.
    """

    layout: Layout
    grpc_port: int
    java: Java
    class_path: str
    quick: bool
    before_java: list[str] = field(default_factory=list)
    """Words that stand before the command line of each of Hadoop's daemons."""
    hadoops_datanode_keys: dict[str, str] = field(default_factory=dict)
    """More keys of Hadoop's DataNodes."""
    journal_keys: dict[str, dict[str, str]] = field(default_factory=dict)
    """More keys of single JournalNodes."""

    @property
    def conf_dir(self) -> Path:
        return self.layout.conf_dir

    @property
    def our_conf_dir(self) -> Path:
        return self.layout.directory / "conf-ours"

    @property
    def journal_ports(self) -> JournalNodePorts:
        """Hadoop RPC and HTTP of every JournalNode."""
        return self.layout.journalnodes[JOURNALNODES[0]]

    def journal_url(self, name: str) -> str:
        """Return where a JournalNode's pages are."""
        return f"http://{JOURNAL_HOSTS[name]}:{self.journal_ports.http}"

    def write_conf(self, more_keys: Mapping[str, str]) -> None:
        """Write both folders; they differ in the JournalNodes' ports only."""
        keys = hdfs_site(self.layout) | {
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.webhdfs.enabled": "false",
            "dfs.namenode.safemode.extension": "0",
        }
        rpc = self.journal_ports.rpc
        for folder, port in ((self.conf_dir, rpc), (self.our_conf_dir, self.grpc_port)):
            nodes = ";".join(f"{host}:{port}" for host in JOURNAL_HOSTS.values())
            different = {
                "dfs.namenode.shared.edits.dir": f"qjournal://{nodes}/{NAMESERVICE}",
                "nnha.journalnode.hadoop-rpc-address": f"{HOST}:{rpc}",
            }
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "core-site.xml").write_text(site_xml(core_site(self.layout)))
            site = keys | dict(more_keys) | different
            (folder / "hdfs-site.xml").write_text(site_xml(site))
        settings = self.layout.directory / "log4j2.properties"
        settings.write_text(LOG4J2.format(level="info"))

    def journalnode(self, name: str, kind: Kind) -> list[str]:
        host, ports = JOURNAL_HOSTS[name], self.journal_ports
        keys = {
            "dfs.journalnode.http-address": f"{host}:{ports.http}",
            "dfs.journalnode.edits.dir": str(self.layout.edits_dir(name)),
            **self.journal_keys.get(name, {}),
        }
        if kind is Kind.HADOOP:
            keys["dfs.journalnode.rpc-address"] = f"{host}:{ports.rpc}"
            return self.hadoop("journalnode", *(f"-D{key}={value}" for key, value in keys.items()))
        keys["dfs.journalnode.rpc-address"] = f"{host}:{self.grpc_port}"
        keys["nnha.journalnode.hadoop-rpc-address"] = f"{host}:{ports.rpc}"
        return self.ours(
            "journalnode", *(word for each in keys.items() for word in ("-D", "=".join(each)))
        )

    def namenode(self, name: str, kind: Kind, *options: str) -> list[str]:
        return self._with_id("namenode", name, kind, *options)

    def zkfc(self, namenode: str, kind: Kind, *options: str) -> list[str]:
        return self._with_id("zkfc", namenode, kind, *options)

    def datanode(self, name: str, kind: Kind) -> list[str]:
        """Both kinds use the same directory and ports."""
        keys = [f"{key}={value}" for key, value in datanode_overrides(self.layout, name).items()]
        if kind is Kind.HADOOP:
            keys += [f"{key}={value}" for key, value in self.hadoops_datanode_keys.items()]
            return self.hadoop("datanode", *(f"-D{key}" for key in keys))
        return self.ours("datanode", *(word for key in keys for word in ("-D", key)))

    def hadoop(self, program: str, *arguments: str) -> list[str]:
        directory = self.layout.directory
        # Its ZKFC keeps the JVM's defaults: it is the one that is measured.
        quick = QUICK if self.quick and program != "zkfc" else ()
        return [
            *self.before_java,
            str(self.java.executable),
            f"-Xmx{HEAP_MEGABYTES[program]}m",
            *quick,
            f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
            f"-Dhadoop.log.dir={directory}",
            "-cp",
            self.class_path,
            MAINS[program],
            *arguments,
        ]

    def ours(self, program: str, *arguments: str) -> list[str]:
        """Return the command line of a program of nnha."""
        words = [sys.executable, "-m", "ha.cli.main", *program.split()]
        return [*words, "--conf-dir", str(self.our_conf_dir), *arguments]

    def _with_id(self, program: str, name: str, kind: Kind, *options: str) -> list[str]:
        own_id = f"dfs.ha.namenode.id={name}"
        if kind is Kind.HADOOP:
            return self.hadoop(program, f"-D{own_id}", *options)
        return self.ours(program, "-D", own_id, *options)


def run_hadoops_datanodes(cluster: Cluster, count: int) -> None:
    """Have the last ``count`` DataNodes of a local cluster be Hadoop's.

    Raises:
        JarsMissing, LocalClusterError: the jar or one of PySpark's is not here.
    """
    layout = cluster.layout
    programs = Programs(layout, 0, cluster.java, hadoop_class_path(layout), quick=True)
    (layout.directory / "log4j2.properties").write_text(LOG4J2.format(level="info"))
    for name in cluster.datanodes[len(cluster.datanodes) - count :]:
        cluster.commands[name] = programs.datanode(name, Kind.HADOOP)


def environment() -> dict[str, str]:
    """Lets a program of ours that is started in the cluster's directory import us."""
    return {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "160"}


def hadoop_class_path(layout: Layout) -> str:
    """Return the configuration, Hadoop's server jar, and what that lacks for its own ZKFC.

    Raises:
        JarsMissing, LocalClusterError: the jar or one of PySpark's is not here.
    """
    zookeeper = class_path("netty-*.jar", first=relocated_zookeeper(layout.directory))
    jars = class_path(*JARS, first=server_jar())
    return os.pathsep.join((str(layout.conf_dir), zookeeper, jars))
