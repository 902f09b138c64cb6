"""The units on hosts that systemd has booted, set up by the very commands of docs/install.md.

The bounds allow for a busy machine; ``./run soak deploy`` measures.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.deploy.systemd.hosts import HOSTS, Hosts
from tests.needs import BOOTED_SYSTEMD

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
        # The hosts of the NameNodes first: they wait for nobody.
        for host in ("h2", "h1"):
            hosts.machines[host].run("systemctl", "start", "--no-block", "nnha.target")
        list(
            pool.map(
                lambda host: hosts.machines[host].run("systemctl", "start", "nnha.target"), HOSTS
            )
        )
    hosts.wait_healthy()


def test_a_host_that_boots_starts_what_is_enabled(hosts: Hosts) -> None:
    machine = hosts.machines["h3"]
    assert machine.off() == 0
    machine.boot()
    assert machine.shown("nnha-journalnode", "ActiveState")["ActiveState"] == "active"
    hosts.wait_healthy()
