"""Hosts as network namespaces on one switch, and what is cut between them.

The switch is a bridge in a namespace of its own, so that nothing appears among the machine's own
interfaces, and the addresses of two runs never meet.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from tests.campaigns.soak.faults.hosts import HOSTS, address

PREFIX: Final = "nnhaf"
"""What the names of all our namespaces begin with; then comes the run, then the host."""
NAMESPACES: Final = Path("/run/netns")
COMMANDS: Final = ("ip", "nft", "tc", "nsenter", "mount", "umount")
COMMAND_SECONDS: Final = 30.0
_SWITCH: Final = "switch"
_CLONE_NEWNET: Final = 0x40000000

Drops = Mapping[tuple[str, str], int]
"""(from, to): how many of a hundred packets are lost on this way."""


def run(*command: str, stdin: str = "") -> str:
    """Run one command of the system; raise LocalClusterError with what it said."""
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise LocalClusterError(f"Ran `{' '.join(command)}`; {failure}") from failure
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip() or "it said nothing"
        raise LocalClusterError(
            f"Ran `{' '.join(command)}`; it ended with {done.returncode}: {said}"
        )
    return done.stdout


def lacking() -> str:
    """Return why this machine cannot play faults, and what to do; empty where it can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces; this is uid " + str(os.geteuid())
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        advice = "apt-get install iproute2 nftables util-linux"
        return f"{', '.join(missing)} not found (Debian: {advice})"
    probe = f"{PREFIX}-probe-{os.getpid()}"
    try:
        run("ip", "netns", "add", probe)
    except LocalClusterError as problem:
        return f"the kernel gives no network namespaces: {problem}"
    try:
        run("ip", "-n", probe, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", probe, "link", "add", "va", "type", "veth", "peer", "name", "vb")
        run(
            "nsenter",
            f"--net={NAMESPACES / probe}",
            "nft",
            "-f",
            "-",
            stdin=_rules({"10.0.0.1": 50}),
        )
    except LocalClusterError as problem:
        return f"the kernel gives no bridges, veth pairs or nftables: {problem}"
    finally:
        run("ip", "netns", "del", probe)
    return ""


@dataclass(frozen=True, slots=True)
class Network:
    """The namespaces of one run."""

    run_id: str
    addresses: Mapping[str, str] = field(
        default_factory=lambda: {host: address(host) for host in HOSTS}
    )
    """Of each host on the switch."""

    def namespace(self, host: str) -> str:
        return f"{PREFIX}-{self.run_id}-{host}"

    def inside(self, host: str) -> list[str]:
        """Return what to put before a command line that is to run on a host."""
        return ["nsenter", f"--net={NAMESPACES / self.namespace(host)}", "--"]

    def up(self) -> None:
        switch = self.namespace(_SWITCH)
        run("ip", "netns", "add", switch)
        run("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", switch, "link", "set", "br0", "up")
        for host, own in self.addresses.items():
            name = self.namespace(host)
            run("ip", "netns", "add", name)
            steps = (
                f"link add eth0 type veth peer name {host} netns {switch}",
                f"addr add {own}/24 dev eth0",
                "link set lo up",
                "link set eth0 up",
            )
            run("ip", "-n", name, "-batch", "-", stdin="\n".join(steps) + "\n")
            run("ip", "-n", switch, "link", "set", host, "master", "br0", "up")

    def enter(self, host: str) -> None:
        """Let this thread, and all that it starts from now on, be on a host."""
        libc = ctypes.CDLL(None, use_errno=True)
        path = NAMESPACES / self.namespace(host)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if libc.setns(descriptor, _CLONE_NEWNET) != 0:
                problem = os.strerror(ctypes.get_errno())
                raise LocalClusterError(f"Tried to enter the namespace {path}; {problem}")
        finally:
            os.close(descriptor)

    def drop(self, drops: Drops) -> None:
        """Lose these packets from now on, and no others."""
        for host in self.addresses:
            heard = {
                self.addresses[source]: share for (source, to), share in drops.items() if to == host
            }
            run(*self.inside(host), "nft", "-f", "-", stdin=_rules(heard))

    def narrow(self, host: str, kilobits: int, queue_milliseconds: int) -> None:
        """Let all that a host sends and is sent queue before a narrow link."""
        queue = f"tbf rate {kilobits}kbit burst 16kb latency {queue_milliseconds}ms".split()
        for namespace, device in self._ends(host):
            run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *queue)

    def widen(self, host: str) -> None:
        """End what ``narrow`` began."""
        for namespace, device in self._ends(host):
            run("tc", "-n", namespace, "qdisc", "del", "dev", device, "root")

    def _ends(self, host: str) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return namespace and device of both ends of a host's cable."""
        return (self.namespace(host), "eth0"), (self.namespace(_SWITCH), host)


def namespaces_of(run_id: str) -> list[str]:
    if not NAMESPACES.is_dir():
        return []
    begin = f"{PREFIX}-{run_id}-"
    return sorted(entry.name for entry in NAMESPACES.iterdir() if entry.name.startswith(begin))


def remove(run_id: str) -> None:
    """Remove a run's namespaces, and with them its cables, switch and rules."""
    for name in namespaces_of(run_id):
        run("ip", "netns", "del", name)


def _rules(heard: Mapping[str, int]) -> str:
    """Return all rules of a host in one transaction: what it does not hear, of whom."""
    lines = [
        f"ip saddr {source} "
        + ("drop" if share >= 100 else f"numgen random mod 100 < {share} drop")
        for source, share in sorted(heard.items())
    ]
    body = "\n".join(f"    {line}" for line in lines)
    return (
        "add table inet faults\ndelete table inet faults\ntable inet faults {\n"
        "  chain heard {\n    type filter hook input priority 0; policy accept;\n"
        f"{body}\n  }}\n}}\n"
    )
