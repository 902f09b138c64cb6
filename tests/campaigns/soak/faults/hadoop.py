"""Hadoop's own NameNodes, JournalNodes and ZKFCs under the same faults, for comparison."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import Java, class_path, find_java
from deploy.local.cluster.zookeeper import LOG4J2
from ha.conf.topology import HostPort
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError
from ha.service.model import ServiceState
from tests.campaigns.soak.faults import hosts
from tests.campaigns.soak.faults import site as faults_site
from tests.campaigns.soak.faults.disks import Disks
from tests.interop.hadoop_jars import JarsMissing, server_jar
from tests.interop.hadoop_server import JARS
from tests.interop.relocated import relocated_zookeeper

_PACKAGE: Final = "org.apache.hadoop.hdfs"
_MAINS: Final = {
    "journalnode": (f"{_PACKAGE}.qjournal.server.JournalNode", 128),
    "namenode": (f"{_PACKAGE}.server.namenode.NameNode", 256),
    "zkfc": (f"{_PACKAGE}.tools.DFSZKFailoverController", 96),
}
"""Main class and heap in megabytes: seven of these JVMs next to three of ZooKeeper's."""


@dataclass(slots=True)
class Hadoop:
    """See ``System``."""

    disks: Disks
    logs_in: bool
    java: Java
    jars: str
    name: str = "hadoop"
    settle_seconds: float = 400.0
    datanodes: tuple[str, ...] = ()
    """A NameNode's JVM that starts on two busy cores took two minutes; it is no promise of ours."""
    directory: Path = Path()
    conf_dir: Path = Path()
    tls: Path | None = None

    def configure(self, directory: Path) -> None:
        hdfs = faults_site.hdfs_site(self.disks, directory, logs_in=self.logs_in)
        hdfs["dfs.webhdfs.enabled"] = "false"
        self.directory = directory
        self.conf_dir = faults_site.write_conf_dir(
            directory, faults_site.core_site(directory), hdfs
        )
        (directory / "log4j2.properties").write_text(LOG4J2.format(level="info"))

    def command(self, process: str) -> Sequence[str]:
        if process in hosts.JOURNALNODES:
            return self._java("journalnode", faults_site.journalnode_keys(self.disks, process))
        program = "namenode" if process in hosts.NAMENODES else "zkfc"
        return self._java(program, {"dfs.ha.namenode.id": hosts.host_of(process)})

    def formatting(self) -> Mapping[str, Sequence[str]]:
        own = {"dfs.ha.namenode.id": hosts.NAMENODES[0]}
        return {
            "format-namenode": self._java("namenode", own, "-format", "-nonInteractive"),
            "format-zk": self._java("zkfc", own, "-formatZK", "-force", "-nonInteractive"),
        }

    def learn(self, journalnode: str) -> Sequence[str] | None:
        """Refuse; it is not asked, see ``lacking``."""
        raise LocalClusterError(f"Hadoop does not take {journalnode} in with an empty disk")

    def switchover(self, active: str, target: str) -> Sequence[str]:
        """Return our haadmin's command line, which asks Hadoop's ZKFCs as Hadoop's does."""
        return self._nnha("haadmin", "-failover", active, target)

    def operate(self, *arguments: str) -> Sequence[str]:
        """Refuse; it is not asked, see ``lacking``."""
        raise LocalClusterError(f"Hadoop has no command {arguments[0]}")

    def verification(self) -> Sequence[str] | None:
        """Return None: its files are judged all the same."""
        return None

    def lacking(self) -> Mapping[str, str]:
        return {
            "pause": "Hadoop has no such command",
            "drain": "Hadoop has no such command",
            "wiped journalnode": "Hadoop takes no empty JournalNode in by itself",
            "clock": "a JVM hangs in libfaketime",
        }

    def unsettled(self) -> str:
        """Expect one active, two standbys, and that all others take connections."""
        for host in hosts.ZOOKEEPERS:
            if not faults_site.zookeeper_serves(host):
                return f"{host} does not serve"
        for host, port in [
            *((host, hosts.JOURNAL_PORT) for host in hosts.JOURNALNODES),
            *((host, hosts.ZKFC_PORT) for host in hosts.NAMENODES),
        ]:
            if not faults_site.listens(host, port):
                return f"{host}:{port} takes no connection"
        states = [_state(host) for host in hosts.NAMENODES]
        if sorted(map(str, states)) == sorted(
            map(str, (ServiceState.ACTIVE, ServiceState.STANDBY, ServiceState.STANDBY))
        ):
            return ""
        return ", ".join(
            f"{host} is {told}" for host, told in zip(hosts.NAMENODES, states, strict=True)
        )

    def active(self) -> str | None:
        actives = [host for host in hosts.NAMENODES if _state(host) is ServiceState.ACTIVE]
        return actives[0] if len(actives) == 1 else None

    def _nnha(self, *arguments: str) -> list[str]:
        program, *rest = arguments
        conf = ["--conf-dir", str(self.conf_dir)]
        return [sys.executable, "-m", "ha.cli.main", program, *conf, *rest]

    def _java(self, program: str, keys: Mapping[str, str], *arguments: str) -> list[str]:
        main, megabytes = _MAINS[program]
        return [
            str(self.java.executable),
            f"-Xmx{megabytes}m",
            "-XX:+UseSerialGC",
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            f"-Dhadoop.log.dir={self.directory}",
            "-cp",
            os.pathsep.join((str(self.conf_dir), self.jars)),
            main,
            *(f"-D{key}={value}" for key, value in keys.items()),
            *arguments,
        ]


def hadoop(disks: Disks, *, logs_in: bool) -> Hadoop:
    """Return Hadoop's daemons from its minicluster's jar; raise LocalClusterError without it."""
    try:
        # The server's jar lacks a few of ZooKeeper's classes that its own ZKFC needs.
        zookeeper = class_path("netty-*.jar", first=relocated_zookeeper(disks.directory))
        jars = class_path(*JARS, first=server_jar())
    except JarsMissing as missing:
        raise LocalClusterError(str(missing)) from missing
    return Hadoop(disks, logs_in, find_java(), os.pathsep.join((zookeeper, jars)))


def _state(host: str) -> ServiceState | None:
    return asyncio.run(_ask_state(HostPort(hosts.address(host), hosts.NAMENODE_PORT)))


async def _ask_state(where: HostPort) -> ServiceState | None:
    try:
        client = await ServiceClient.open(where, deadline_seconds=faults_site.LOOK_SECONDS)
        try:
            return (await client.status(deadline_seconds=faults_site.LOOK_SECONDS)).state
        finally:
            await client.close()
    except ServiceError:
        return None
