"""Real namespaces: which hear each other, and that nothing stays behind, however a run ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.processes import wait_until
from tests.campaigns.soak.faults import network, runs
from tests.campaigns.soak.faults.disks import Disks, Preloads
from tests.campaigns.soak.faults.faults import ways_between
from tests.campaigns.soak.faults.hosts import HOSTS, NAMENODES, address
from tests.campaigns.soak.faults.network import Network, namespaces_of
from tests.needs import GCC, NAMESPACES

pytestmark = NAMESPACES.mark

_LISTEN = """
import socket, sys
with socket.create_server((sys.argv[1], 7000)) as server:
    print("listening", flush=True)
    while True:
        server.accept()[0].close()
"""
_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 7000), 1.0).close()"
MARK = "a mark that no process has"


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Network]:
    with runs.registered(MARK, ()) as run_id:
        found = Network(run_id)
        found.up()
        servers = [
            subprocess.Popen(
                [*found.inside(host), sys.executable, "-c", _LISTEN, address(host)],
                stdout=subprocess.PIPE,
            )
            for host in NAMENODES
        ]
        try:
            for server in servers:
                assert server.stdout is not None
                assert server.stdout.readline() == b"listening\n"
            yield found
        finally:
            for server in servers:
                server.kill()
                server.communicate()


def reaches(hosts: Network, source: str, to: str) -> bool:
    command = [*hosts.inside(source), sys.executable, "-c", _CONNECT, address(to)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def test_what_is_cut_is_not_heard_and_what_is_healed_is(hosts: Network) -> None:
    assert reaches(hosts, "nn1", "nn2")
    hosts.drop(dict.fromkeys(ways_between(("nn1",), ("nn2",)), 100))
    assert not reaches(hosts, "nn1", "nn2")
    assert not reaches(hosts, "nn2", "nn1")
    assert reaches(hosts, "nn1", "nn3")
    assert reaches(hosts, "nn3", "nn2")
    hosts.drop({("nn1", "nn3"): 100})
    assert reaches(hosts, "nn1", "nn2")
    assert not reaches(hosts, "nn1", "nn3")
    hosts.drop({})
    assert reaches(hosts, "nn1", "nn3")


def test_a_share_of_packets_is_lost(hosts: Network) -> None:
    hosts.drop({("nn1", "nn2"): 40})
    rules = network.run(*hosts.inside("nn2"), "nft", "list", "ruleset")
    assert f"ip saddr {address('nn1')} numgen random mod 100 < 40 drop" in rules


def test_a_link_can_be_narrow_and_wide_again(hosts: Network) -> None:
    def queues() -> str:
        return network.run("tc", "-n", hosts.namespace("nn1"), "qdisc", "show")

    hosts.narrow("nn1", 64, 100)
    assert "qdisc tbf" in queues()
    assert reaches(hosts, "nn2", "nn1")
    hosts.widen("nn1")
    assert "qdisc tbf" not in queues()


def test_a_machine_s_own_interfaces_are_left_alone() -> None:
    before = network.run("ip", "-br", "link")
    with runs.registered(MARK, ()) as run_id:
        Network(run_id).up()
        assert network.run("ip", "-br", "link") == before
        assert len(namespaces_of(run_id)) == len(HOSTS) + 1
    assert namespaces_of(run_id) == []


_RUN = """
import sys, time
from pathlib import Path
from deploy.local.cluster.processes import Supervisor
from tests.campaigns.soak.faults import runs
from tests.campaigns.soak.faults.disks import Disks
from tests.campaigns.soak.faults.network import Network

disks = Disks(Path(sys.argv[1]))
supervisor = Supervisor(Path(sys.argv[1]))
with runs.registered(supervisor.mark, disks.mounts) as run_id:
    Network(run_id).up()
    disks.up()
    with supervisor:
        supervisor.start("sleeper", [*Network(run_id).inside("nn1"), "sleep", "600"])
        print(run_id, supervisor.processes["sleeper"].pid, flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("janitor", ["janitor", "no janitor"])
def test_a_killed_run_leaves_nothing(tmp_path: Path, janitor: str) -> None:
    """Let its janitor tidy up; where that died too, the next run does."""
    run = subprocess.Popen(
        [sys.executable, "-c", _RUN, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.stdout is not None
    run_id, sleeper = run.stdout.readline().split()
    assert namespaces_of(run_id)
    # A run that lives is left alone.
    assert run_id not in runs.remove_leftovers()
    assert namespaces_of(run_id)
    if janitor == "no janitor":
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        for child in children:
            if child != sleeper:
                os.kill(int(child), signal.SIGKILL)
    run.kill()
    run.communicate()
    if janitor == "no janitor":
        runs.remove_leftovers()  # as any other run may have done in the meantime

    def nothing_is_left() -> bool:
        mounts = Path("/proc/self/mounts").read_text()
        alive = Path(f"/proc/{sleeper}/cmdline")
        return not (
            namespaces_of(run_id)
            or str(tmp_path) in mounts
            or (runs.REGISTER / run_id).exists()
            or (alive.exists() and b"sleep" in alive.read_bytes())
        )

    wait_until(nothing_is_left, what="the killed run's things to be gone", deadline_seconds=60)


def test_disks_fill_and_are_read_only(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    with runs.registered(MARK, disks.mounts):
        disks.up()
        file = disks.place("jn1") / "edits"
        file.write_bytes(b"x")
        disks.fill("jn1")
        with pytest.raises(OSError, match="No space left"):
            file.write_bytes(b"y" * 10000)
        (disks.place("jn2") / "edits").write_bytes(b"y" * 10000)
        disks.make_room("jn1")
        file.write_bytes(b"z" * 10000)
        disks.read_only("jn1")
        with pytest.raises(OSError, match="Read-only"):
            file.write_bytes(b"y")
        disks.writable("jn1")
        file.write_bytes(b"y")
        disks.wipe("jn1")
        assert not list(disks.place("jn1").iterdir())
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()


_ASK = """
import os, sys, time
file = open(sys.argv[1], "w")
for _ in sys.stdin:
    began = time.monotonic()
    file.write("x"); file.flush(); os.fsync(file.fileno())
    print(time.monotonic() - began, time.time(), flush=True)
"""


@GCC.mark
def test_flushes_and_clocks_are_spoilt_while_a_process_runs(tmp_path: Path) -> None:
    preloads = Preloads.built(tmp_path)
    assert preloads.lacking == {}
    process = subprocess.Popen(
        [sys.executable, "-c", _ASK, str(tmp_path / "file")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **preloads.environment("jn1")},
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def ask() -> tuple[float, float]:
        stdin.write("\n")
        stdin.flush()
        took, now = map(float, stdout.readline().split())
        return took, now

    _, before = ask()
    preloads.set_flush("jn1", 700)
    preloads.set_clock("jn1", -4000.5)
    took, now = ask()
    assert took >= 0.7
    assert -4001 < now - before < -3600
    preloads.set_flush("jn1", 0)
    preloads.set_clock("jn1", 0.0)
    took, now = ask()
    assert now > before
    process.communicate()
