"""A NameNode that loads its image for longer than TimeoutStartSec, under a real systemd."""

import contextlib
import re
import threading
import time
from collections.abc import Iterator

import pytest

from deploy.local.cluster import state
from deploy.local.cluster.processes import wait_until
from journal.model import TxId
from namenode_sim.image.writer import save_image
from namenode_sim.storage.version_file import parse_version
from tests.campaigns.bench.formats_world import big_namespace
from tests.deploy.systemd.hosts import Hosts
from tests.deploy.systemd.machine import Machine
from tests.needs import BOOTED_SYSTEMD

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    BOOTED_SYSTEMD.mark,
]
LIMIT_SECONDS = 5
LASTS_SECONDS = 20.0
"""How long it loads at least: several times what systemd allows without a message."""
INODES = 200_000
UNIT = "nnha-namenode@nn2"
LIMIT = f"[Service]\nTimeoutStartSec={LIMIT_SECONDS}\nEnvironment=HADOOP_CONF_DIR=/etc/nnha/big\n"


def test_a_namenode_that_loads_for_long_is_not_killed_and_says_how_far_it_is(
    hosts: Hosts,
) -> None:
    if hosts.wait_healthy() == "nn2":
        hosts.host_of("nn2").run("/opt/nnha/bin/nnha", "switchover", "nn1", "--yes", user="hdfs")
        hosts.wait_healthy()
    machine = hosts.machines["h2"]
    machine.run("systemctl", "stop", "nnha-zkfc@nn2", UNIT)
    big_image(hosts, machine)
    machine.write(f"/etc/systemd/system/{UNIT}.service.d/limit.conf", LIMIT)
    machine.run("systemctl", "daemon-reload")
    try:
        restarts = machine.shown(UNIT, "NRestarts")
        machine.run("systemctl", "start", "--no-block", UNIT)
        wait_until(
            lambda: "loading" in status(machine),
            what="systemctl to tell of the loading",
            deadline_seconds=60,
        )
        began = time.monotonic()
        with slowed(machine, machine.main_pid(UNIT)):
            page = state.status(f"http://{hosts.at['h2']}:9870", deadline_seconds=30) or {}
            told = machine.run("/opt/nnha/bin/nnha", "status", "--timeout", "30").output
            wait_until(
                lambda: (
                    time.monotonic() - began > LASTS_SECONDS or "loading" not in status(machine)
                ),
                what="the load to last",
                deadline_seconds=LASTS_SECONDS + 60,
                poll_seconds=0.2,
            )
            shown = machine.shown(UNIT, "ActiveState", "StatusText", "NRestarts")
        assert page.get("activity") == "loading"
        assert re.search(r"nn2 .*loading.* \d+ %", told), told
        assert re.match(r"it is loading fsimage_\d+: \d+ %", shown["StatusText"])
        assert shown["ActiveState"] == "activating"
        assert shown["NRestarts"] == restarts["NRestarts"]
        machine.run("systemctl", "start", UNIT)
        assert "loading" not in status(machine)
    finally:
        machine.run("systemctl", "stop", UNIT)
        machine.run("rm", f"/etc/systemd/system/{UNIT}.service.d/limit.conf")
        machine.run("systemctl", "daemon-reload")
        hosts.everything_up()


def status(machine: Machine) -> str:
    return machine.shown(UNIT, "StatusText")["StatusText"]


def big_image(hosts: Hosts, machine: Machine) -> None:
    """Make a name directory with a large image, and a configuration that names it."""
    info = parse_version(machine.run("cat", "/data/nn/current/VERSION").output.encode())
    namespace = big_namespace(INODES)
    # Nothing is left for it to follow: the edits of this cluster are not of that namespace.
    active = hosts.status("nn1")
    assert active is not None
    namespace.last_applied = TxId(active.last_txid)
    save_image(namespace, hosts.exchange / f"fsimage_{namespace.last_applied:019d}", info)
    script = """
        rm -rf /data/big /etc/nnha/big
        cp -a /data/nn /data/big
        rm -f /data/big/current/fsimage* /data/big/in_use.lock
        install -o hdfs -g hdfs -m 600 /exchange/fsimage_* /data/big/current
        cp -a /etc/nnha/conf /etc/nnha/big
        sed -i s,/data/nn,/data/big, /etc/nnha/big/hdfs-site.xml
    """
    machine.run("sh", "-ec", script)


@contextlib.contextmanager
def slowed(machine: Machine, pid: int) -> Iterator[None]:
    """Let the process run for a twentieth of the time, as on a machine that is far too busy."""
    over = threading.Event()

    def slow() -> None:
        while not over.is_set():
            machine.run("kill", "-STOP", str(pid), check=False)
            over.wait(0.95)
            machine.run("kill", "-CONT", str(pid), check=False)
            over.wait(0.05)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
