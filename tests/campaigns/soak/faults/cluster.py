"""A cluster of real processes, each on a host of its own, started again when it ends by itself."""

import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import Java
from deploy.local.cluster.processes import ManagedProcess, Supervisor, wait_until
from deploy.local.cluster.zookeeper import server_argv
from tests import ROOT
from tests.campaigns.soak.faults import hosts
from tests.campaigns.soak.faults.disks import Disks, Preloads
from tests.campaigns.soak.faults.network import Network
from tests.campaigns.soak.faults.site import name_dir, write_zookeeper, zookeeper_serves
from tests.campaigns.soak.faults.system import System

START_SECONDS: Final = 180.0
SETTLE_POLL_SECONDS: Final = 0.3
REVIVE_SECONDS: Final = 1.0
"""A process that has ended is started again after this time, as a supervisor of services would."""


@dataclass(slots=True)
class Cluster:
    """The processes named in ``hosts``; those in ``held`` are down because a fault wants it."""

    network: Network
    disks: Disks
    preloads: Preloads
    supervisor: Supervisor
    java: Java
    system: System
    held: set[str] = field(default_factory=set)
    revived: dict[str, int] = field(default_factory=dict)
    """How often each process had ended by itself."""
    reasons: dict[str, float] = field(default_factory=dict)
    """Why the cluster was not well after the last fault, each with the seconds until when."""
    _ended: dict[str, float] = field(default_factory=dict)

    def up(self) -> None:
        """Format and start all, as configured; raises LocalClusterError with a failure's log."""
        for name in (*hosts.ZOOKEEPERS, *hosts.JOURNALNODES):
            self.start(name)
        for host in hosts.ZOOKEEPERS:
            wait_until(
                lambda host=host: zookeeper_serves(host),  # type: ignore[misc]
                what=f"{host} to serve",
                deadline_seconds=START_SECONDS,
                poll_seconds=0.1,
                abandon=self.process(host).ended_early,
            )
        for name, command in self.system.formatting().items():
            self.finish(name, hosts.NAMENODES[0], command)
        first, *others = hosts.NAMENODES
        for other in others:
            shutil.copytree(name_dir(self.disks, first), name_dir(self.disks, other))
            (name_dir(self.disks, other) / "in_use.lock").unlink(missing_ok=True)
        for host in hosts.NAMENODES:
            self.start(host)
        for name in (*map(hosts.zkfc_of, hosts.NAMENODES), *self.system.datanodes):
            self.start(name)

    def process(self, name: str) -> ManagedProcess:
        """Return the process that was started last under this name."""
        return self.supervisor.processes[name]

    def start(self, name: str) -> ManagedProcess:
        """Start a process on its host, and do not wait for it."""
        host = hosts.host_of(name)
        if name in hosts.ZOOKEEPERS:
            command: Sequence[str] = server_argv(self.java, write_zookeeper(self.disks, host))
        else:
            command = self.system.command(name)
        return self.run_on(host, name, command, spoilt=True)

    def run_on(
        self, host: str, name: str, command: Sequence[str], *, spoilt: bool = False
    ) -> ManagedProcess:
        """Run any program on a host; ``spoilt`` are those whose disk and clock faults may touch."""
        environment = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        if spoilt:
            environment |= self.preloads.environment(host)
        return self.supervisor.start(
            name, [*self.network.inside(host), *command], environment=environment
        )

    def finish(self, name: str, host: str, command: Sequence[str]) -> None:
        """Run a program until it has done its work; raises LocalClusterError where it has not."""
        process = self.run_on(host, name, command)
        if process.wait(START_SECONDS) != 0:
            raise LocalClusterError(f"Tried to {name}; {process.ended_early()}")
        self.supervisor.forget(name)

    def hold_down(self, names: Sequence[str]) -> None:
        """SIGKILL them, as one, and let none come back until ``release``."""
        self.held |= set(names)
        for name in names:
            self.process(name).ended_by_us = True
            self.process(name).send(signal.SIGKILL)
        for name in names:
            self.process(name).kill()

    def release(self, names: Sequence[str]) -> None:
        self.held -= set(names)
        for name in names:
            if not self.process(name).running:
                self.start(name)

    def stop(self, names: Sequence[str]) -> None:
        """SIGTERM, as an orderly restart does; they are held down as after a kill."""
        self.held |= set(names)
        self.supervisor.stop_together(list(names))

    def revive(self) -> None:
        """Start again what has ended by itself a while ago."""
        now = time.monotonic()
        for name in (*hosts.PROCESSES, *self.system.datanodes):
            if name in self.held or self.process(name).running:
                self._ended.pop(name, None)
            elif now - self._ended.setdefault(name, now) >= REVIVE_SECONDS:
                del self._ended[name]
                self.revived[name] = self.revived.get(name, 0) + 1
                self.start(name)

    def wait_settled(self, deadline_seconds: float) -> float:
        """Wait until all is well; return the seconds that it took.  Raise LocalClusterError."""
        began = time.monotonic()
        why = "it was not asked yet"
        self.reasons.clear()
        while why:
            if time.monotonic() - began > deadline_seconds:
                raise LocalClusterError(
                    f"Waited {deadline_seconds:g} s for the cluster to be well again: {why}"
                )
            self.revive()
            why = self.system.unsettled()
            if why:
                self.reasons[why] = round(time.monotonic() - began, 1)
                time.sleep(SETTLE_POLL_SECONDS)
        return time.monotonic() - began

    def watched_wait(self, seconds: float) -> None:
        """Let that much time pass, in which what ends is started again."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.revive()
            time.sleep(min(left, 0.1))
