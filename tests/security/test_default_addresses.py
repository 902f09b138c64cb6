"""Daemons on hosts of their own, with no address set but NameNodes' and JournalNodes': they meet.

Each host is a network namespace with its own loopback and its own /etc/hosts.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import ROOT
from tests.campaigns.soak.faults.network import Network, remove
from tests.namenode_sim.startup.startup_world import write_site
from tests.needs import NAMESPACES

pytestmark = [NAMESPACES.mark, pytest.mark.cluster]

SECONDS = 60.0
ADDRESSES = {f"host{number}": f"10.78.0.{number}" for number in range(1, 5)}
SITE = {
    "fs.defaultFS": "hdfs://ns1",
    "dfs.nameservices": "ns1",
    "dfs.ha.namenodes.ns1": "nn1,nn2",
    "dfs.namenode.rpc-address.ns1.nn1": "host1:8020",
    "dfs.namenode.rpc-address.ns1.nn2": "host2:8020",
    "dfs.namenode.shared.edits.dir": "qjournal://host1;host2;host3/ns1",
    "nnha.security.mode": "insecure-i-know",
}


@dataclass
class Hosts:
    """Four hosts on one switch; what was started on them ends with the test."""

    folder: Path
    network: Network
    running: ExitStack = field(default_factory=ExitStack)

    def command(self, host: str, *words: str) -> list[str]:
        mount = f'mount --bind {self.folder}/hosts-{host} /etc/hosts && exec "$@"'
        return [*self.network.inside(host), "unshare", "-m", "sh", "-c", mount, "sh", *words]

    def nnha(self, host: str, *words: str) -> list[str]:
        own = {
            "dfs.journalnode.edits.dir": self.folder / host / "journal",
            "dfs.namenode.name.dir": self.folder / host / "name",
            "dfs.datanode.data.dir": self.folder / host / "data",
        }
        places = [part for key, value in own.items() for part in ("-D", f"{key}={value}")]
        conf = ("--conf-dir", str(self.folder / "conf"))
        return self.command(host, sys.executable, "-m", "ha.cli.main", *words, *conf, *places)

    def start(self, host: str, *words: str) -> Path:
        """Start a daemon; return the file of its log."""
        log = self.folder / f"{host}-{words[0]}.log"
        with log.open("wb") as out:
            started = subprocess.Popen(self.nnha(host, *words), cwd=ROOT, stdout=out, stderr=out)
        self.running.callback(started.wait)
        self.running.callback(started.kill)
        return log

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def reaches(self, host: str, address: str) -> bool:
        """Return whether a process on ``host`` can connect to ``name:port``."""
        name, _, port = address.rpartition(":")
        probe = f"import socket; socket.create_connection(({name!r}, {port}), 5)"
        return self.run(self.command(host, sys.executable, "-c", probe)).returncode == 0


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    network = Network(f"a{os.getpid()}", ADDRESSES)
    found = Hosts(tmp_path, network)
    for host in ADDRESSES:
        (tmp_path / host).mkdir()
        # As Debian's installer writes it: the host's own name is on loopback.
        names = {**ADDRESSES, "localhost": "127.0.0.1"}
        if host == "host3":
            names["host3"] = "127.0.1.1"
        lines = "".join(f"{address} {name}\n" for name, address in names.items())
        (tmp_path / f"hosts-{host}").write_text(lines)
    try:
        network.up()
        with found.running:
            yield found
    finally:
        remove(network.run_id)


def until(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.05)


def told(log: Path, event: str) -> Callable[[], bool]:
    return lambda: f'"{event}"' in log.read_text()


def site(hosts: Hosts, more: Mapping[str, str]) -> None:
    write_site(hosts.folder / "conf", {**SITE, **more})


def test_daemons_on_several_hosts_reach_one_another_with_their_defaults(hosts: Hosts) -> None:
    site(hosts, {})
    logs = {host: hosts.start(host, "journalnode") for host in ("host1", "host2", "host3")}
    for log in logs.values():
        until(told(log, "journalnode.started"), log.read_text)
    assert '"rpc": "host1:8485"' in logs["host1"].read_text()
    assert '"rpc": "0.0.0.0:8485"' in logs["host3"].read_text(), "its own name is on loopback"
    format_ = hosts.nnha("host1", "namenode", "--format", "-D", "dfs.ha.namenode.id=nn1")
    assert (done := hosts.run(format_)).returncode == 0, done.stderr
    status = hosts.run(hosts.nnha("host4", "journal", "status"))
    assert status.returncode == 0, status.stdout + status.stderr
    log = hosts.start("host1", "namenode", "-D", "dfs.ha.namenode.id=nn1")
    until(lambda: hosts.reaches("host4", "host1:9870"), log.read_text)
    blocks = hosts.start("host4", "datanode")
    until(told(blocks, "datanode.ready"), blocks.read_text)
    for port in (9866, 9867, 9864):
        assert hosts.reaches("host2", f"host4:{port}")
    effect = hosts.run(hosts.nnha("host2", "config", "explain", "dfs.journalnode.rpc-address"))
    assert "in effect        host2:8485" in effect.stdout


def test_without_a_mode_that_lets_others_in_none_is_reached(hosts: Hosts) -> None:
    site(hosts, {"nnha.security.mode": "auto"})
    log = hosts.start("host1", "journalnode")
    until(told(log, "journalnode.started"), log.read_text)
    assert '"rpc": "127.0.0.1:8485"' in log.read_text()
    assert '"daemon.unreachable"' in log.read_text()
    assert hosts.reaches("host1", "127.0.0.1:8485")
    assert not hosts.reaches("host2", "host1:8485")
    refused = hosts.run(hosts.nnha("host4", "datanode"))
    assert refused.returncode == 78
    assert "nnha.security.mode=strict with certificates" in refused.stderr
    assert not list((hosts.folder / "host4").iterdir()), "nothing was made"
