"""What the daemons may do inside their units, under a real systemd; fencing still works there."""

import json

import pytest

from deploy.local.cluster.processes import wait_until
from tests.deploy.systemd import deeds
from tests.deploy.systemd.hosts import NAMENODES, Hosts
from tests.deploy.systemd.sandbox import UNITS, in_place_of, levels
from tests.needs import BOOTED_SYSTEMD

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    BOOTED_SYSTEMD.mark,
]
DAEMONS = sorted(path.name for path in UNITS.glob("*.service"))
MOST_EXPOSED = 2.0
WITH_A_JVM = "nnha-checkpoint.service"
"""It writes code into memory."""
SSHD = """\
Port 2222
ListenAddress {address}
HostKey /etc/nnha/sshd/host_key
PidFile /run/nnha-sshd.pid
UsePAM no
StrictModes no
"""


def test_systemd_calls_every_running_daemon_hardly_exposed(hosts: Hosts) -> None:
    hosts.everything_up()
    found = levels(hosts.machines["h1"])
    assert set(found) >= {"nnha-journalnode.service", "nnha-zkfc@nn1.service"}
    assert {unit: level for unit, level in found.items() if level > MOST_EXPOSED} == {}


@pytest.mark.parametrize("unit", DAEMONS)
def test_a_daemon_can_do_nothing_but_its_work(hosts: Hosts, unit: str) -> None:
    machine = hosts.machines["h1"]
    machine.write("/home/somebody/secret", "a secret\n")
    own = unit.removeprefix("nnha-").removesuffix(".service").removesuffix("@")
    probe = f"/opt/nnha/bin/python3 -I /src/tests/deploy/systemd/probe.py /var/lib/nnha/{own}"
    tried = in_place_of(machine, unit, probe)
    assert tried.code == 0, tried.output
    (line,) = (line for line in tried.output.splitlines() if line.startswith("{"))
    found = json.loads(line)
    assert found.pop("writes_own")
    if unit == WITH_A_JVM:
        assert found.pop("writes_code")
    assert {what: can for what, can in found.items() if can} == {}


def test_sshfence_works_from_inside_the_sandbox(hosts: Hosts) -> None:
    active = hosts.wait_healthy()
    victim, fencer = hosts.host_of(active), hosts.host_of(deeds.other(active))
    allow_ssh(hosts)
    before = victim.main_pid(f"nnha-namenode@{active}")
    command = f"/opt/nnha/bin/nnha fence test {active} --really"
    tried = in_place_of(fencer, "nnha-zkfc@.service", command)
    assert tried.code == 0, tried.output
    assert "sshfence" in tried.output
    wait_until(
        lambda: victim.main_pid(f"nnha-namenode@{active}") not in (0, before),
        what="systemd to start the fenced NameNode again",
        deadline_seconds=deeds.PATIENCE_SECONDS,
    )
    hosts.wait_healthy()


def allow_ssh(hosts: Hosts) -> None:
    """Let the ZKFCs log in as hdfs on both hosts: a key, an sshd on each, known host keys."""
    first = hosts.host_of(NAMENODES[0])
    first.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/nnha/fence")
    secret, public = (
        first.run("cat", f"/etc/nnha/{name}").output for name in ("fence", "fence.pub")
    )
    known = ""
    for namenode in NAMENODES:
        machine, address = hosts.host_of(namenode), hosts.at[hosts.where(namenode)]
        machine.write("/etc/nnha/id_ed25519", secret, owner="hdfs", mode="600")
        machine.write("/var/lib/hdfs/.ssh/authorized_keys", public, owner="hdfs", mode="600")
        machine.write("/etc/nnha/sshd/config", SSHD.format(address=address))
        machine.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/nnha/sshd/host_key")
        machine.run("mkdir", "-p", "/run/sshd")
        machine.run("usermod", "-p", "*", "hdfs")  # no password, and not locked
        machine.run("/usr/sbin/sshd", "-f", "/etc/nnha/sshd/config")
        known += machine.run("sh", "-c", f"ssh-keyscan -p 2222 {address} 2>/dev/null").output
    for namenode in NAMENODES:
        hosts.host_of(namenode).write("/etc/nnha/known_hosts", known)
