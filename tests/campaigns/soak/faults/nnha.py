"""nnha's own daemons under faults."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deploy.local.cluster import state
from ha.conf.keys.security import SECURITY_MODE, SIMPLE_CLIENTS, TLS_DIR, Mode
from tests.campaigns.soak.faults import hosts
from tests.campaigns.soak.faults import site as faults_site
from tests.campaigns.soak.faults.certified import make_certificates, tls_folder
from tests.campaigns.soak.faults.disks import Disks

LOOK_SECONDS: Final = 2.0


def url(process: str) -> str:
    if process in hosts.JOURNALNODES:
        return f"http://{hosts.address(process)}:{hosts.JOURNAL_HTTP_PORT}"
    if process in hosts.DATANODES:
        return f"http://{hosts.address(process)}:{hosts.DATANODE_HTTP_PORT}"
    if process in hosts.NAMENODES:
        return f"http://{hosts.address(process)}:{hosts.NAMENODE_HTTP_PORT}"
    return f"http://{hosts.address(process.removeprefix('zkfc-'))}:{hosts.ZKFC_HTTP_PORT}"


@dataclass(slots=True)
class Nnha:
    """See ``System``."""

    disks: Disks
    logs_in: bool
    """How it fences, see ``site.hdfs_site``."""
    entries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The module that starts a process in place of nnha's own, and its first arguments."""
    datanodes: tuple[str, ...] = ()
    secure: bool = False
    """Whether all have a certificate, and none is believed without."""
    name: str = "nnha"
    settle_seconds: float = 120.0
    conf_dir: Path = Path()
    tls: Path | None = None

    def configure(self, directory: Path) -> None:
        hdfs = faults_site.hdfs_site(self.disks, directory, logs_in=self.logs_in) | {
            "dfs.ha.tail-edits.in-progress": "true",
            SECURITY_MODE.name: Mode.INSECURE,
        }
        if self.datanodes:
            hdfs |= faults_site.FILE_KEYS | faults_site.write_racks(directory)
        if self.secure:
            hdfs |= make_certificates(directory)
            self.tls = tls_folder(directory)
            if self.datanodes:  # Hadoop's client has no certificate
                hdfs |= {SIMPLE_CLIENTS.name: "simple-i-know"}
        self.conf_dir = faults_site.write_conf_dir(
            directory, faults_site.core_site(directory), hdfs
        )

    def nnha(self, *arguments: str, entry: Sequence[str] = ("ha.cli.main",)) -> list[str]:
        """Return one of nnha's commands with this cluster's configuration."""
        return [sys.executable, "-m", *entry, *arguments, "--conf-dir", str(self.conf_dir)]

    def command(self, process: str) -> Sequence[str]:
        entry = self.entries.get(process, ("ha.cli.main",))
        if process in hosts.JOURNALNODES:
            keys = faults_site.journalnode_keys(self.disks, process)
            program = "journalnode"
        elif process in hosts.DATANODES:
            keys = faults_site.datanode_keys(self.disks, process)
            program = "datanode"
        else:
            keys = {"dfs.ha.namenode.id": process.removeprefix("zkfc-")}
            program = "namenode" if process in hosts.NAMENODES else "zkfc"
        return self.nnha(program, *_options(keys | self._tls_of(process)), entry=entry)

    def formatting(self) -> Mapping[str, Sequence[str]]:
        first = hosts.NAMENODES[0]
        own = _options({"dfs.ha.namenode.id": first} | self._tls_of(first))
        return {
            "format-namenode": self.nnha("namenode", "--format", "--non-interactive", *own),
            "format-zk": self.nnha("zkfc", "--format-zk", "--non-interactive", *own),
        }

    def learn(self, journalnode: str) -> Sequence[str] | None:
        node = f"{hosts.address(journalnode)}:{hosts.JOURNAL_PORT}"
        return self.nnha("journal", "format", "--node", node)

    def switchover(self, active: str, target: str) -> Sequence[str]:
        """Return the command line; it finds out itself which one is active now."""
        return self.nnha("switchover", target, "--yes", "--reason", f"instead of {active}")

    def operate(self, *arguments: str) -> Sequence[str]:
        return self.nnha(*arguments)

    def lacking(self) -> Mapping[str, str]:
        return {}

    def verification(self) -> Sequence[str]:
        return self.nnha("journal", "verify", "--deep")

    def unsettled(self) -> str:
        """Expect one active, the others ready, all JournalNodes in sync."""
        looks = (
            _mute_server(),
            *(_unready(host) for host in hosts.NAMENODES),
            *(_unobeying(host) for host in self.datanodes),
        )
        if why := next(filter(None, looks), ""):
            return why
        active = self.active()
        return self._lagging(active) if active else "there is not one active"

    def active(self) -> str | None:
        looks = {host: state.namenode_status(url(host)) for host in hosts.NAMENODES}
        actives = [host for host, told in looks.items() if told and told.state == "active"]
        return actives[0] if len(actives) == 1 else None

    def _tls_of(self, process: str) -> dict[str, str]:
        return {} if self.tls is None else {TLS_DIR.name: str(self.tls / process)}

    def _lagging(self, active: str) -> str:
        told = state.status(url(active), deadline_seconds=LOOK_SECONDS) or {}
        nodes = told.get("journal")
        if not isinstance(nodes, list) or len(nodes) != len(hosts.JOURNALNODES):
            return f"{active} does not tell of its journal"
        for node in nodes:
            if not node.get("in_sync") or node.get("learner"):
                return f"{node.get('node')} is not in sync: {node.get('last_error')}"
        return ""


def _mute_server() -> str:
    for host in hosts.ZOOKEEPERS:
        if not faults_site.zookeeper_serves(host):
            return f"{host} does not serve"
    for host in hosts.JOURNALNODES:
        if state.status(url(host), deadline_seconds=LOOK_SECONDS) is None:
            return f"{host} does not answer"
    return ""


def _unready(host: str) -> str:
    told = state.namenode_status(url(host), deadline_seconds=LOOK_SECONDS)
    if told is None:
        return f"{host} does not answer"
    if told.state != "active" and not told.ready:
        return f"{host} is not ready: {told.not_ready_reason}"
    return (
        ""
        if state.zkfc_is_candidate(url(hosts.zkfc_of(host)))
        else f"the ZKFC of {host} does not stand"
    )


def _unobeying(host: str) -> str:
    serves = state.datanode_serves(url(host))
    return "" if serves else f"{host} does not obey an active, or is not known to all NameNodes"


def _options(keys: Mapping[str, str]) -> list[str]:
    return [part for key, value in keys.items() for part in ("-D", f"{key}={value}")]
