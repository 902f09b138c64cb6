"""ZooKeeper, JournalNodes, NameNodes, ZKFCs and DataNodes; each Hadoop's or ours at a time."""

import asyncio
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.client import KazooClient

from deploy.local.cluster import state
from deploy.local.cluster.cluster import zkfc_of
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import find_java
from deploy.local.cluster.layout import JOURNALNODES, NAMENODES, NAMESERVICE, Layout, plan
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.processes import ManagedProcess, Supervisor, wait_until
from deploy.local.cluster.zookeeper import start_zookeeper, wait_for_zookeeper
from deploy.local.workload.trial import other
from ha.conf.topology import HostPort
from ha.service.model import ServiceState, ServiceStatus
from tests.interop.mixed.programs import (
    JOURNAL_HOSTS,
    Kind,
    Programs,
    environment,
    hadoop_class_path,
)
from tests.interop.mixed.roles import status_of

START_SECONDS = 180.0
ROLE_SECONDS = 180.0
TOOL_SECONDS = 120.0
LOCK = f"/hadoop-ha/{NAMESERVICE}/ActiveStandbyElectorLock"
HEALTHY = "Entering state SERVICE_HEALTHY"
"""What Hadoop's ZKFC logs when it finds its NameNode well; it stands for election from then on."""


@dataclass(slots=True)
class MixedCluster:
    """The parts have the names of a local cluster: zookeeper, jn1-jn3, nn1, nn2, zkfc-nn1 …"""

    layout: Layout
    supervisor: Supervisor
    programs: Programs
    loop: asyncio.Runner
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Whose daemon was started last under a name."""

    def address(self, namenode: str) -> HostPort:
        """Return where a NameNode serves clients and daemons."""
        return HostPort(HOST, self.layout.namenodes[namenode].rpc)

    # -- starting ------------------------------------------------------------------------------

    def up(
        self,
        *,
        journalnodes: Kind,
        namenodes: Kind,
        zkfcs: Kind,
        others: Mapping[str, Kind] | None = None,
    ) -> None:
        """Format everything and start it; DataNodes are of the NameNodes' kind.

        ``others``: the kinds of single parts, by their names.

        Raises:
            LocalClusterError: with the log of what failed.
        """
        kind = dict.fromkeys(JOURNALNODES, journalnodes) | dict.fromkeys(NAMENODES, namenodes)
        kind |= {zkfc_of(name): zkfcs for name in NAMENODES}
        kind |= dict.fromkeys(self.layout.datanodes, namenodes) | dict(others or {})
        server = start_zookeeper(
            self.supervisor, java=self.programs.java, port=self.layout.zookeeper
        )
        for name in JOURNALNODES:
            self.launch(name, kind[name])
        wait_for_zookeeper(server, deadline_seconds=START_SECONDS)
        for name in JOURNALNODES:
            self.wait_for_port(name)
        first, second = NAMENODES
        self.finish(
            "format",
            self.programs.namenode(first, kind[first], "-format", "-nonInteractive"),
        )
        shutil.copytree(self.layout.name_dir(first), self.layout.name_dir(second))
        (self.layout.name_dir(second) / "in_use.lock").unlink(missing_ok=True)
        zkfc = self.programs.zkfc(first, kind[zkfc_of(first)], "-formatZK", "-nonInteractive")
        self.finish("format-zk", zkfc)
        for name in NAMENODES:
            self.launch(name, kind[name])
        for name in NAMENODES:
            self.start_zkfc(name, kind[zkfc_of(name)])
        self.wait_for_pair()
        for name in self.layout.datanodes:
            self.start_datanode(name, kind[name])

    def launch(self, name: str, kind: Kind) -> ManagedProcess:
        """Start one part and do not wait for it."""
        if name in self.layout.journalnodes:
            command = self.programs.journalnode(name, kind)
        elif name in self.layout.namenodes:
            command = self.programs.namenode(name, kind)
        elif name in self.layout.datanodes:
            command = self.programs.datanode(name, kind)
        else:
            command = self.programs.zkfc(name.removeprefix("zkfc-"), kind)
        self.kinds[name] = kind
        return self.supervisor.start(name, command, environment=environment())

    def start_journalnode(self, name: str, kind: Kind) -> None:
        self.launch(name, kind)
        self.wait_for_port(name)

    def start_namenode(self, name: str, kind: Kind | None = None) -> None:
        """Start one that was killed or stopped, of the kind that it was if nothing is said, and
        wait until it could take over and its ZKFC knows.
        """
        zkfc = zkfc_of(name)
        logged = self.log_size(zkfc)
        self.launch(name, kind or self.kinds[name])
        self.wait_for_candidate(name, behind=logged)
        self.wait_for_ready_standby(name)

    def start_zkfc(self, namenode: str, kind: Kind) -> None:
        """Start it, and wait until it finds its NameNode well and stands for election."""
        name = zkfc_of(namenode)
        logged = self.log_size(name)
        self.launch(name, kind)
        self.wait_for_candidate(namenode, behind=logged)

    def start_datanode(self, name: str, kind: Kind) -> None:
        """Start it, and wait until it obeys the active NameNode and the other one knows it."""
        self.launch(name, kind)
        url = self.layout.url(name)
        self._wait(lambda: state.datanode_serves(url), f"{name} to be taken by both NameNodes")

    def finish(self, name: str, command: list[str]) -> str:
        """Run a command of this cluster to its end; what it printed.

        Raises:
            LocalClusterError: its exit code is not 0.
        """
        process = self.supervisor.start(name, command, environment=environment())
        code = process.wait(TOOL_SECONDS)
        if code != 0:
            raise LocalClusterError(f"Tried to {name}; exit code {code}:\n{process.log_tail()}")
        self.supervisor.forget(name)
        return process.log.read_text(errors="replace")

    def stop(self, name: str) -> None:
        """SIGTERM, and SIGKILL where that does not help."""
        self.supervisor.stop(name)

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self.supervisor.processes[name].kill()

    # -- asking --------------------------------------------------------------------------------

    def status(self, namenode: str) -> ServiceStatus | None:
        """Return what a NameNode of either kind says of itself; None where it does not answer."""
        return self.loop.run(status_of(self.address(namenode)))

    def active(self) -> str:
        found = wait_until(
            lambda: [name for name in NAMENODES if self._is(name, ServiceState.ACTIVE)],
            what="one of the NameNodes to be active",
            deadline_seconds=ROLE_SECONDS,
            abandon=self.ended_early,
        )
        return found[0]

    def wait_for_pair(self) -> None:
        active = self.active()
        self.wait_for_ready_standby(other(active))

    def wait_for_active(self, namenode: str) -> None:
        self._wait(lambda: self._is(namenode, ServiceState.ACTIVE), f"{namenode} to be active")

    def wait_for_lock(self, since: float) -> None:
        """Wait until the election's lock is one created after that time of the wall clock.

        Hadoop's ZKFC does not release it when it is stopped: it ends with the session.
        """
        client = KazooClient(hosts=f"{HOST}:{self.layout.zookeeper}")
        client.start()
        try:
            self._wait(
                lambda: (lock := client.exists(LOCK)) is not None and lock.ctime / 1000 >= since,
                "a ZKFC to take the lock",
                poll_seconds=0.05,
            )
        finally:
            client.stop()
            client.close()

    def wait_for_ready_standby(self, namenode: str) -> None:
        def ready() -> bool:
            status = self.status(namenode)
            return (
                status is not None
                and status.state is ServiceState.STANDBY
                and status.ready_to_become_active
            )

        self._wait(ready, f"{namenode} to be a ready standby", poll_seconds=0.05)

    def wait_for_candidate(self, namenode: str, *, behind: int = 0) -> None:
        """Wait until its ZKFC finds it healthy and takes part in the election.

        ``behind``: the place in the log from which to look.
        """
        name = zkfc_of(namenode)
        log = self.supervisor.processes[name].log
        if self.kinds[name] is Kind.OURS:
            url = self.layout.url(f"zkfc-{namenode}")
            self._wait(lambda: state.zkfc_is_candidate(url), f"{name} to stand for election")
            return

        def told() -> bool:
            with log.open("rb") as written:
                written.seek(behind)
                return HEALTHY.encode() in written.read()

        self._wait(told, f"{name} to log {HEALTHY!r}", poll_seconds=0.05)

    def wait_for_port(self, journalnode: str) -> None:
        host, port = JOURNAL_HOSTS[journalnode], self.programs.journal_ports.rpc
        self._wait(lambda: _listens(host, port), f"{journalnode} to listen on port {port}")

    def log_size(self, name: str) -> int:
        """Return the size of a part's log now."""
        process = self.supervisor.processes.get(name)
        return process.log.stat().st_size if process and process.log.exists() else 0

    def _is(self, namenode: str, wanted: ServiceState) -> bool:
        status = self.status(namenode)
        return status is not None and status.state is wanted

    def _wait(
        self, condition: Callable[[], bool], what: str, *, poll_seconds: float = 0.01
    ) -> None:
        wait_until(
            condition,
            what=what,
            deadline_seconds=ROLE_SECONDS,
            poll_seconds=poll_seconds,
            abandon=self.ended_early,
        )

    def ended_early(self) -> str | None:
        """Return which part ended without our doing, with the end of its log."""
        reasons = (each.ended_early() for each in self.supervisor.processes.values())
        return next((reason for reason in reasons if reason), None)


@contextmanager
def mixed_cluster(
    directory: Path,
    *,
    more_keys: Mapping[str, str] | None = None,
    quick: bool = True,
    datanodes: int = 0,
) -> Iterator[MixedCluster]:
    """Yield a cluster of which nothing is started yet; all of it ends with the block.

    Raises:
        JarsMissing, LocalClusterError: Hadoop's jar or a Java is not here.
    """
    layout = plan(directory, datanodes=datanodes)
    # JournalNodes have one port for each purpose, on addresses of their own: some are left over.
    grpc_port = layout.journalnodes[JOURNALNODES[1]].rpc
    programs = Programs(layout, grpc_port, find_java(), hadoop_class_path(layout), quick)
    programs.write_conf(more_keys or {})
    with Supervisor(layout.directory) as supervisor, asyncio.Runner() as loop:
        yield MixedCluster(layout, supervisor, programs, loop)


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 1.0).close()
    except OSError:
        return False
    return True
