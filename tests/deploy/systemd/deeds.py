"""What is done to daemons under systemd, and how long things took by systemd's own clock."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from deploy.local.cluster.java import find_java
from deploy.local.cluster.processes import wait_until
from deploy.local.workload.java_client import open_java_client, start_java_client
from deploy.local.workload.workload import Workload
from tests.deploy.systemd.hosts import NAMENODES, Hosts
from tests.deploy.systemd.machine import Machine

PATIENCE_SECONDS: Final = 180.0
UNITS: Final = ("nnha-journalnode", "nnha-namenode@{}", "nnha-zkfc@{}")
"""Of a host with a NameNode, whose id is to be put in."""
STACKS: Final = "Fatal Python error: Aborted"


@dataclass(frozen=True, slots=True)
class Back:
    """A daemon that was ended and is there again."""

    seconds: float
    """From its end until it was ready again."""
    restarts: int


def killed(machine: Machine, unit: str) -> Back:
    """SIGKILL for the main process; until the unit is ready again."""
    return struck(machine, unit, "KILL", machine.main_pid(unit))


def struck(machine: Machine, unit: str, signal: str, pid: int) -> Back:
    """Send a signal that ends the unit sooner or later; wait until it is ready again."""
    before = int(machine.shown(unit, "NRestarts")["NRestarts"])
    machine.run("kill", f"-{signal}", str(pid))
    return back(machine, unit, before)


def back(machine: Machine, unit: str, restarts_before: int) -> Back:
    """Wait until the unit has ended and is ready again."""
    asked = ("NRestarts", "ActiveState", "ActiveEnterTimestampMonotonic")
    left = "ActiveExitTimestampMonotonic"

    def ready() -> Back | None:
        told = machine.shown(unit, *asked, left)
        restarts = int(told["NRestarts"])
        if told["ActiveState"] != "active" or restarts == restarts_before:
            return None
        return Back((int(told[asked[2]]) - int(told[left])) / 1e6, restarts)

    return wait_until(
        ready,
        what=f"{unit} to be ended and ready again",
        deadline_seconds=PATIENCE_SECONDS,
        poll_seconds=0.05,
    )


def controller(machine: Machine, unit: str) -> int:
    """Return the child of a supervised ZKFC, which does the work."""
    parent = machine.main_pid(unit)
    pids = machine.run("pgrep", "--parent", str(parent)).output.split()
    (child,) = map(int, pids)
    return child


def one_active(hosts: Hosts) -> str:
    """Return the active NameNode, as soon as there is one."""
    return wait_until(
        hosts.active,
        what="a NameNode to be active",
        deadline_seconds=PATIENCE_SECONDS,
        poll_seconds=0.02,
    )


def other(namenode: str) -> str:
    """Return the NameNode that would take over from this one."""
    (found,) = set(NAMENODES) - {namenode}
    return found


@dataclass(frozen=True, slots=True)
class Watchdogged:
    """A controller that was stopped, while its NameNode was killed."""

    active_after_seconds: float
    """From the NameNode's end until one was active."""
    back: Back
    said: str
    """What stands in the journal of the controller's unit since it was stopped."""


def stopped_controller(hosts: Hosts) -> Watchdogged:
    """SIGSTOP for the active's controller, SIGKILL for the active, and what follows."""
    active = hosts.wait_healthy()
    machine, unit = hosts.host_of(active), f"nnha-zkfc@{active}"
    known = len(machine.journal(unit))
    restarts = int(machine.shown(unit, "NRestarts")["NRestarts"])
    namenode = machine.main_pid(f"nnha-namenode@{active}")
    machine.run("kill", "-STOP", str(controller(machine, unit)))
    machine.run("kill", "-KILL", str(namenode))
    began = time.monotonic()
    one_active(hosts)
    seconds = time.monotonic() - began
    again = back(machine, unit, restarts)
    return Watchdogged(seconds, again, machine.journal(unit)[known:])


@contextlib.contextmanager
def writing(hosts: Hosts) -> Iterator[Workload]:
    """Hadoop's own client with its default settings, which writes all the time."""
    supervisor = hosts.supervisor
    java = find_java(wrapper_directory=supervisor.directory)
    name = f"client-{time.monotonic_ns()}"
    process = start_java_client(supervisor, java=java, conf_dir=hosts.conf_dir, name=name)
    with open_java_client(process) as client:
        workload = Workload(client, root=f"/{name}")
        workload.start()
        try:
            workload.wait_for_more(20, deadline_seconds=PATIENCE_SECONDS)
            yield workload
            workload.stop()
        finally:
            workload.abandon()


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What a client saw of an end in order."""

    longest_call_seconds: float
    errors: int
    successor: str


def ended_in_order(hosts: Hosts, end: Callable[[Hosts, str], None]) -> HandedOver:
    """``end`` ends what belongs to the active; a client writes all the time."""
    active = hosts.wait_healthy()
    with writing(hosts) as workload:
        began = time.monotonic()
        end(hosts, active)
        workload.wait_for_more(40, deadline_seconds=PATIENCE_SECONDS)
        longest = workload.longest_call_seconds(began)
    return HandedOver(longest, len(workload.errors()), one_active(hosts))


def stop_controller(hosts: Hosts, namenode: str) -> None:
    """Stop a ZKFC as an operator does."""
    hosts.host_of(namenode).run("systemctl", "stop", f"nnha-zkfc@{namenode}")


def shut_down(hosts: Hosts, namenode: str) -> None:
    hosts.host_of(namenode).off()
