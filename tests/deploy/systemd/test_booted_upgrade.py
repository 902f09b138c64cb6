"""A running cluster is taken to a second build and back, by the commands of docs/install.md."""

import json
import shutil
import time
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from deploy.local.cluster.processes import wait_until
from tests.deploy.systemd import deeds
from tests.deploy.systemd.hosts import HOSTS, NAMENODES, Hosts, blocks
from tests.deploy.systemd.image import VERSION
from tests.needs import BOOTED_SYSTEMD
from tests.package.__main__ import build_wheel

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    BOOTED_SYSTEMD.mark,
]
NEWER: Final = "0.3.0"
PORTS: Final = (9870, 8119, 8480)
"""Of a NameNode, a ZKFC and a JournalNode; a host without a NameNode has the last alone."""
BUSY_SECONDS: Final = 30.0


def running(hosts: Hosts, host: str) -> dict[int, str]:
    told = {}
    for port in PORTS if host in HOSTS[: len(NAMENODES)] else PORTS[-1:]:
        with urlopen(f"http://{hosts.at[host]}:{port}/status", timeout=30) as page:
            told[port] = json.load(page)["daemon"]["version"]
    return told


def checked(hosts: Hosts) -> None:
    """Wait, as the guide says, until the cluster is healthy and no JournalNode lags."""
    machine = hosts.machines["h1"]
    script = "nnha status --check --timeout 30 && nnha journal status"
    wait_until(
        lambda: machine.run("sh", "-c", script, user="hdfs", check=False).code == 0,
        what=f"`{script}` to end with 0",
        deadline_seconds=deeds.PATIENCE_SECONDS,
    )


def taken_up(hosts: Hosts, version: str) -> None:
    """Host by host, that of the active last; every daemon runs the other version then."""
    _, restart = blocks("A newer nnha")
    last = hosts.where(hosts.wait_healthy())
    for host in sorted(HOSTS, key=lambda each: each == last):
        hosts.walk(host, restart)
        checked(hosts)
        assert set(running(hosts, host).values()) == {version}


def test_a_second_build_is_taken_up_and_the_first_again(hosts: Hosts, tmp_path: Path) -> None:
    install, _ = blocks("A newer nnha")
    assert f"/opt/nnha-{NEWER}" in install
    wheel = build_wheel(tmp_path, NEWER)
    shutil.copy(wheel, hosts.exchange)
    for host, machine in hosts.machines.items():
        machine.run("cp", f"/exchange/{wheel.name}", "/tmp")
        hosts.walk(host, install)
        assert set(running(hosts, host).values()) == {VERSION}, "nobody has asked for it yet"
    first = hosts.wait_healthy()
    with deeds.writing(hosts) as workload:
        began = time.monotonic()
        taken_up(hosts, NEWER)
        assert hosts.wait_healthy() != first, "the active handed over before it was stopped"
        for machine in hosts.machines.values():
            machine.run("ln", "-sfn", f"nnha-{VERSION}", "/opt/nnha")
        taken_up(hosts, VERSION)
        workload.wait_for_more(20, deadline_seconds=deeds.PATIENCE_SECONDS)
        longest = workload.longest_call_seconds(began)
    assert workload.errors() == ()
    assert longest < BUSY_SECONDS
