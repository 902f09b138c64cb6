"""Processes are watched, ended, and never outlive their owner."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.processes import Supervisor, http_get, wait_until
from deploy.local.cluster.reaper import marked_processes

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); time.sleep(600)",
]
POLITE = [
    sys.executable,
    "-c",
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "
    "print('ready', flush=True); time.sleep(600)",
]
OWNER = """
import sys, time
from pathlib import Path
from deploy.local.cluster.processes import Supervisor
with Supervisor(Path(sys.argv[1])) as supervisor:
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    supervisor.start("parent", [sys.executable, "-c", nested])
    supervisor.start("plain", [sys.executable, "-c", "import time; time.sleep(600)"])
    print(supervisor.mark, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_an_owner_that_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert owner.stdout is not None
    with owner, owner.stdout:
        mark = owner.stdout.readline().strip()
        assert marked_processes(mark)
        owner.send_signal(how)
        owner.wait(30)
        wait_until(lambda: not marked_processes(mark), what="them to go", deadline_seconds=30)


def test_an_error_in_the_block_ends_everything(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)

    def fail() -> None:
        with supervisor:
            supervisor.start("one", SLEEPER)
            raise RuntimeError("the block fails")

    with pytest.raises(RuntimeError):
        fail()
    assert not supervisor.processes["one"].running
    assert not marked_processes(supervisor.mark)


def test_a_frozen_process_that_handles_sigterm_gets_to_do_so(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        polite = supervisor.start("polite", POLITE)
        wait_until(
            lambda: "ready" in polite.log.read_text(), what="it to start", deadline_seconds=10
        )
        polite.freeze()
        assert supervisor.stop("polite", deadline_seconds=5) == 7


def test_one_that_ignores_sigterm_is_killed_at_the_deadline(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        stubborn = supervisor.start("stubborn", STUBBORN)
        wait_until(
            lambda: "ready" in stubborn.log.read_text(), what="it to start", deadline_seconds=10
        )
        assert supervisor.stop("stubborn", deadline_seconds=0.1) == -signal.SIGKILL


def test_a_child_that_dies_at_once_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        child = supervisor.start(
            "child", [sys.executable, "-c", "raise SystemExit('no such disk')"]
        )
        with pytest.raises(LocalClusterError, match=r"(?s)exit code 1.*no such disk"):
            wait_until(lambda: False, what="it", deadline_seconds=10, abandon=child.ended_early)


def test_what_we_end_ourselves_is_not_told_as_an_accident(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        child = supervisor.start("child", SLEEPER)
        child.kill()
        assert (child.ended_early(), child.exit_code) == (None, -9)


def test_a_name_is_started_once_at_a_time_and_its_pid_is_on_disk(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        first = supervisor.start("nn1", SLEEPER)
        assert int((tmp_path / "pids" / "nn1.pid").read_text()) == first.pid
        with pytest.raises(LocalClusterError, match="runs already"):
            supervisor.start("nn1", SLEEPER)
        first.kill()
        second = supervisor.start("nn1", SLEEPER)
        assert int((tmp_path / "pids" / "nn1.pid").read_text()) == second.pid != first.pid


def test_waiting_ends_at_the_deadline_and_says_for_what() -> None:
    with pytest.raises(LocalClusterError, match=r"Waited 0\.01 s for rain"):
        wait_until(lambda: None, what="rain", deadline_seconds=0.01)


def test_a_port_where_no_http_is_spoken_has_not_answered() -> None:
    """Another cluster's gRPC may have got the port; its first bytes are no status line."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def speak() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\r\n")

        speaker = threading.Thread(target=speak)
        speaker.start()
        assert http_get(f"http://127.0.0.1:{port}/status", deadline_seconds=5.0) is None
        speaker.join()
