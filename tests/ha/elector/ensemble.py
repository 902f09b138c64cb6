"""Three real ZooKeeper servers on loopback that elect a leader among themselves."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.cluster import zookeeper
from deploy.local.cluster.java import Java, find_java
from deploy.local.cluster.ports import HOST, free_ports
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.cluster.zookeeper import ZooKeeper
from tests import local_services

SERVERS = 3
SETTLE_SECONDS = 40.0
"""Three JVMs that start at once on a busy machine of two cores."""

_CONFIGURATION = """\
dataDir={data}
clientPort={port}
clientPortAddress={host}
tickTime=500
initLimit=20
syncLimit=6
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
maxClientCnxns=0
{servers}
"""


@dataclass(slots=True)
class Ensemble:
    """The servers by number; each may be killed and started again on its data."""

    supervisor: Supervisor
    servers: list[ZooKeeper] = field(default_factory=list)

    @property
    def connect(self) -> str:
        """The connect string, with all servers."""
        return ",".join(server.connect for server in self.servers)

    def modes(self) -> list[str]:
        """Return each server's mode: leader, follower, or nothing while it does not serve."""
        return [_mode(server) for server in self.servers]

    def leader(self) -> int:
        """Return the number of the server that leads."""
        return self.modes().index("leader")

    def kill(self, *numbers: int) -> None:
        """SIGKILL."""
        for number in numbers:
            self.servers[number].process.kill()

    def whole(self) -> None:
        """Start what does not run, and wait until one leads and the others follow."""
        for number, server in enumerate(self.servers):
            if not server.process.running:
                process = self.supervisor.start(server.process.name, server.process.argv)
                self.servers[number] = ZooKeeper(server.host, server.port, process)
        self.settle(SERVERS)

    def start(self, number: int) -> None:
        """Start a killed server again; it serves when this returns."""
        self.servers[number] = local_services.restart_zookeeper(
            self.supervisor, self.servers[number]
        )

    def settle(self, count: int) -> None:
        """Wait until ``count`` servers serve, one of them as the leader."""
        wait_until(
            lambda: sorted(filter(None, self.modes())) == ["follower"] * (count - 1) + ["leader"],
            what=f"{count} of the ensemble's servers to serve",
            deadline_seconds=SETTLE_SECONDS,
            poll_seconds=0.05,
        )


@contextlib.contextmanager
def running_ensemble(directory: Path) -> Iterator[Ensemble]:
    """Run a whole ensemble for the length of a ``with``."""
    java = find_java(wrapper_directory=directory)
    with Supervisor(directory) as supervisor:
        ports = free_ports(3 * SERVERS)
        made = Ensemble(supervisor)
        for number in range(SERVERS):
            made.servers.append(_start(supervisor, java, number, ports))
        made.settle(SERVERS)
        for server in made.servers:
            zookeeper.wait_for_zookeeper(server)
        yield made


def _start(supervisor: Supervisor, java: Java, number: int, ports: tuple[int, ...]) -> ZooKeeper:
    directory = supervisor.directory / f"server{number}"
    data = directory / "data"
    data.mkdir(parents=True)
    (data / "myid").write_text(f"{number + 1}\n")
    clients, peers, elections = ports[:SERVERS], ports[SERVERS : 2 * SERVERS], ports[2 * SERVERS :]
    servers = "\n".join(
        f"server.{index + 1}={HOST}:{peers[index]}:{elections[index]}" for index in range(SERVERS)
    )
    configuration = directory / "zoo.cfg"
    configuration.write_text(
        _CONFIGURATION.format(data=data.resolve(), port=clients[number], host=HOST, servers=servers)
    )
    argv = zookeeper.server_argv(java, configuration, "-Xmx128m")
    return ZooKeeper(HOST, clients[number], supervisor.start(f"server{number}", argv))


def _mode(server: ZooKeeper) -> str:
    answer = zookeeper.four_letters(server.host, server.port, "srvr")
    return answer.partition("Mode: ")[2].partition("\n")[0].strip()
