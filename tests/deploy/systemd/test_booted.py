"""The units on hosts that systemd has booted, set up by the very commands of docs/install.md.

The bounds allow for a busy machine; ``./run soak deploy`` measures.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from deploy.local.cluster import state
from deploy.local.cluster.processes import wait_until
from tests.deploy.systemd import deeds
from tests.deploy.systemd.hosts import HOSTS, Hosts
from tests.needs import BOOTED_SYSTEMD


def units_of(namenode: str) -> tuple[str, ...]:
    return (f"nnha-namenode@{namenode}", f"nnha-zkfc@{namenode}", "nnha-journalnode")


pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    BOOTED_SYSTEMD.mark,
]


def test_a_cluster_comes_up_in_any_order_of_its_hosts(hosts: Hosts) -> None:
    for host in HOSTS:
        hosts.machines[host].run("systemctl", "stop", "nnha.target", "nnha-*")
    for unit in ("nnha-journalnode", "nnha-namenode@nn1", "nnha-zkfc@nn1"):
        assert hosts.machines["h1"].shown(unit, "ActiveState")["ActiveState"] == "inactive"
    with ThreadPoolExecutor() as pool:
        # The hosts of the NameNodes first: they wait for no other.
        for host in ("h2", "h1"):
            hosts.machines[host].run("systemctl", "start", "--no-block", "nnha.target")
        list(
            pool.map(
                lambda host: hosts.machines[host].run("systemctl", "start", "nnha.target"), HOSTS
            )
        )
    hosts.wait_healthy()


def test_systemctl_shows_role_and_epoch_and_returns_when_the_daemon_is_ready(hosts: Hosts) -> None:
    active = hosts.wait_healthy()
    machine = hosts.host_of(active)
    told = hosts.status(active)
    assert told is not None
    shown = {unit: machine.shown(unit, "StatusText")["StatusText"] for unit in units_of(active)}
    namenode, zkfc, journalnode = shown.values()
    assert namenode.startswith(f"active, epoch {told.epoch}, since ")
    assert zkfc.startswith(f"active, beside ns1.{active} (healthy), since ")
    wait_until(
        lambda: (
            machine.shown("nnha-journalnode", "StatusText")["StatusText"]
            == f"ns1: epoch {told.epoch}"
        ),
        what=f"{journalnode} to be the present epoch",
        deadline_seconds=30,
    )

    standby = deeds.other(active)
    where = hosts.host_of(standby)
    where.run("systemctl", "stop", f"nnha-zkfc@{standby}", f"nnha-namenode@{standby}")
    where.run("systemctl", "start", f"nnha-namenode@{standby}")
    again = hosts.status(standby)
    where.run("systemctl", "start", f"nnha-zkfc@{standby}")
    stands = state.zkfc_is_candidate(f"http://{hosts.at[hosts.where(standby)]}:8119")
    hosts.wait_healthy()
    assert again is not None
    # Safe mode depends on DataNodes, which may come later.
    assert again.state == "standby"
    assert again.ready or "Safe mode will be turned off" in again.not_ready_reason
    assert stands


def test_a_host_that_boots_starts_what_is_enabled(hosts: Hosts) -> None:
    machine = hosts.machines["h3"]
    assert machine.off() == 0
    machine.boot()
    assert machine.shown("nnha-journalnode", "ActiveState")["ActiveState"] == "active"
    hosts.wait_healthy()
