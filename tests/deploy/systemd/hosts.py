"""A cluster on three booted hosts, installed and started as docs/install.md says.

All hosts share this machine's network; each has an address of its own on loopback, so that the
ports are the usual ones.  ZooKeeper and the Java client run outside them.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.cluster import state
from deploy.local.cluster.java import find_java
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.cluster.site import site_xml
from deploy.local.cluster.zookeeper import ZooKeeper, start_zookeeper, wait_for_zookeeper
from tests import ROOT
from tests.deploy.systemd.image import Image
from tests.deploy.systemd.machine import Machine

NAMESERVICE: Final = "ns1"
NAMENODES: Final = ("nn1", "nn2")
HOSTS: Final = ("h1", "h2", "h3")
"""Each has a JournalNode; the first two have a NameNode and its ZKFC."""
CONF: Final = "/etc/nnha/conf"
READY_SECONDS: Final = 120.0
INSTALL: Final = ROOT / "docs" / "install.md"
_BLOCK: Final = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)


def addresses(seed: int) -> Mapping[str, str]:
    """Return an address for each host; different seeds hardly ever give the same ones."""
    net = f"127.{64 + seed // 250 % 60}.{seed % 250}"
    return {host: f"{net}.{number}" for number, host in enumerate(HOSTS, 1)}


def blocks(title: str) -> tuple[str, ...]:
    """Return the commands below a heading of docs/install.md, a block each."""
    text = INSTALL.read_text().split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return tuple(
        "".join(line[4:] + "\n" for line in found.group().splitlines())
        for found in _BLOCK.finditer(text)
    )


@dataclass(slots=True)
class Hosts:
    """Three hosts and a ZooKeeper; use ``running`` to get them."""

    supervisor: Supervisor
    zookeeper: ZooKeeper
    at: Mapping[str, str]
    """Each host's address."""
    machines: Mapping[str, Machine]

    @property
    def conf_dir(self) -> Path:
        return self.supervisor.directory / "conf"

    @property
    def exchange(self) -> Path:
        """A folder that the hosts see as /exchange, and cannot write to."""
        return exchange_in(self.supervisor.directory)

    def where(self, namenode: str) -> str:
        return HOSTS[NAMENODES.index(namenode)]

    def host_of(self, namenode: str) -> Machine:
        return self.machines[self.where(namenode)]

    def keys(self, host: str) -> Mapping[str, str]:
        """Return the configuration of one host, as docs/operations.md has it."""
        journals = ";".join(f"{self.at[each]}:8485" for each in HOSTS)
        found = {
            "fs.defaultFS": f"hdfs://{NAMESERVICE}",
            "ha.zookeeper.quorum": self.zookeeper.connect,
            "ha.zookeeper.session-timeout.ms": "10000",
            "dfs.nameservices": NAMESERVICE,
            f"dfs.ha.namenodes.{NAMESERVICE}": ",".join(NAMENODES),
            f"dfs.client.failover.proxy.provider.{NAMESERVICE}": (
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
            "dfs.namenode.name.dir": "file:///data/nn",
            "dfs.namenode.shared.edits.dir": f"qjournal://{journals}/{NAMESERVICE}",
            "dfs.journalnode.edits.dir": "/data/jn",
            "dfs.journalnode.rpc-address": f"{self.at[host]}:8485",
            "dfs.journalnode.http-address": f"{self.at[host]}:8480",
            "dfs.ha.automatic-failover.enabled": "true",
            "dfs.ha.tail-edits.in-progress": "true",
            "dfs.permissions.enabled": "false",
            "dfs.ha.fencing.methods": "sshfence(hdfs:2222)\njournal-epoch",
            "dfs.ha.fencing.ssh.private-key-files": "/etc/nnha/id_ed25519",
            "nnha.fencing.ssh.known-hosts": "/etc/nnha/known_hosts",
            "nnha.web.http-address": f"{self.at['h3']}:9880",
            "nnha.web.url": f"http://{self.at['h3']}:9880",
        }
        for namenode, where in zip(NAMENODES, HOSTS, strict=False):
            own = f"{NAMESERVICE}.{namenode}"
            found |= {
                f"dfs.namenode.rpc-address.{own}": f"{self.at[where]}:8020",
                f"dfs.namenode.http-address.{own}": f"{self.at[where]}:9870",
                f"nnha.zkfc.http-address.{own}": f"{self.at[where]}:8119",
            }
        return found

    def install(self) -> None:
        """Walk the commands of docs/install.md on each host, up to its ``systemctl enable``."""
        self.conf_dir.mkdir(parents=True, exist_ok=True)
        self._write_conf(self.conf_dir, "h3")
        prepare, *_ = blocks("Under systemd")
        for host, machine in self.machines.items():
            folder = self.supervisor.directory / "conf-of" / host
            folder.mkdir(parents=True, exist_ok=True)
            self._write_conf(folder, host)
            for file in folder.iterdir():
                machine.write(f"{CONF}/{file.name}", file.read_text())
            self.walk(host, prepare)

    def walk(self, host: str, commands: str) -> str:
        """Run lines of the guide on a host, as they stand but for the NameNode's id."""
        here = dict(zip(HOSTS, NAMENODES, strict=False)).get(host)
        lines = [
            line.replace("nn1", here or "nn1")
            for line in commands.splitlines()
            if here is not None or "nn1" not in line
        ]
        script = "\n".join(["set -ex", "cd /src", *lines])
        return self.machines[host].run("sh", "-c", script).output

    def format(self) -> None:
        """Run the guide's commands that are given once for a cluster, each on its host."""
        _, first, other = blocks("Under systemd")
        for host in HOSTS:
            self.machines[host].run("systemctl", "start", "nnha-journalnode")
        self.walk("h1", first)
        self.walk("h2", other)

    def everything_up(self) -> None:
        """Start what is not started; until all is as after a boot of all hosts."""
        for machine in self.machines.values():
            machine.run("systemctl", "start", "nnha.target")
        self.wait_healthy()

    def status(self, namenode: str) -> state.NameNodeStatus | None:
        return state.namenode_status(f"http://{self.at[self.where(namenode)]}:9870")

    def active(self) -> str | None:
        """Return the one that calls itself active; None while there is none."""
        told = {name: self.status(name) for name in NAMENODES}
        found = [name for name, each in told.items() if each and each.state == "active"]
        assert len(found) < 2, f"two are active: {told}"
        return found[0] if found else None

    def wait_healthy(self) -> str:
        """Wait until one is active, the other ready, and both ZKFCs take part in the election."""
        return wait_until(
            self._healthy,
            what="an active NameNode, a ready one, and two ZKFCs",
            deadline_seconds=READY_SECONDS,
            poll_seconds=0.05,
        )

    def _healthy(self) -> str | None:
        active = self.active()
        if active is None:
            return None
        (other,) = set(NAMENODES) - {active}
        told = self.status(other)
        stands = all(
            state.zkfc_is_candidate(f"http://{self.at[host]}:8119")
            for host, _ in zip(HOSTS, NAMENODES, strict=False)
        )
        return active if told and told.ready and told.state == "standby" and stands else None

    def _write_conf(self, folder: Path, host: str) -> None:
        keys = self.keys(host)
        core = {key: keys[key] for key in keys if key.startswith(("fs.", "ha."))}
        (folder / "core-site.xml").write_text(site_xml(core))
        rest = {key: keys[key] for key in keys if key not in core}
        (folder / "hdfs-site.xml").write_text(site_xml(rest))


def exchange_in(directory: Path) -> Path:
    """Return that folder, made if it is not there."""
    folder = directory / "exchange"
    folder.mkdir(exist_ok=True)
    return folder


@contextlib.contextmanager
def running(directory: Path, image: Image, *, seed: int) -> Iterator[Hosts]:
    """Three booted hosts with nothing but the image, and a ZooKeeper, for the length of a with."""
    java = find_java(wrapper_directory=directory)
    with Supervisor(directory) as supervisor:
        (port,) = free_ports(1)
        zookeeper = start_zookeeper(supervisor, java=java, port=port)
        wait_for_zookeeper(zookeeper)
        binds = (f"--bind-ro={ROOT}:/src", f"--bind-ro={exchange_in(directory)}:/exchange")
        machines = {
            host: Machine(f"nnha-{seed}-{host}", supervisor, image, binds) for host in HOSTS
        }
        try:
            for machine in machines.values():
                machine.boot()
            yield Hosts(supervisor, zookeeper, addresses(seed), machines)
        finally:
            supervisor.stop_together([machine.name for machine in machines.values()])
            for machine in machines.values():
                machine.tidy()
