"""What systemd hears of a daemon, over a real socket and from real processes."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.daemon.notify import Service
from tests import ROOT
from tests.ha.daemon.notified import PATIENCE_SECONDS, Manager
from tests.journal.node.test_process import configuration, free_port


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    listening = Manager(str(tmp_path / "notify"))
    yield listening
    listening.socket.close()


def adopted(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Service:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    service = Service()
    service.adopt()
    return service


def test_a_fencing_script_cannot_speak_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    adopted(monkeypatch, NOTIFY_SOCKET="/run/x", WATCHDOG_USEC="3000000", WATCHDOG_PID="1")
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & set(os.environ)


@pytest.mark.parametrize(
    ("given", "every_seconds"), [("3000000", 1.0), ("", 0.0), ("soon", 0.0), ("0", 0.0)]
)
def test_a_sign_of_life_is_due_three_times_in_the_watchdogs_time(
    monkeypatch: pytest.MonkeyPatch, given: str, every_seconds: float
) -> None:
    service = adopted(monkeypatch, NOTIFY_SOCKET="@x", WATCHDOG_USEC=given)
    assert service.alive_every_seconds == every_seconds


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1"])
def test_without_a_socket_nothing_is_told(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    service = adopted(monkeypatch, NOTIFY_SOCKET=address, WATCHDOG_USEC="3000000")
    assert (service.address, service.alive_every_seconds) == ("", 0.0)
    service.ready()


def test_a_manager_that_is_gone_or_does_not_read_is_no_reason_to_stop(tmp_path: Path) -> None:
    Service(str(tmp_path / "nobody")).ready()
    name = f"@nnha-test-{os.getpid()}"
    listening = Manager(name)
    with listening.socket:
        service = Service(name)
        for _ in range(10_000):  # far more than its buffer takes
            service.alive()
        assert listening.socket.recv(100) == b"WATCHDOG=1"


def test_a_status_is_one_line(manager: Manager) -> None:
    Service(manager.socket.getsockname()).status("loading\nREADY=1  42 %", more_seconds=30)
    assert manager.socket.recv(4096).decode().splitlines() == [
        "STATUS=loading READY=1 42 %",
        "EXTEND_TIMEOUT_USEC=30000000",
    ]


async def test_a_journalnode_says_when_it_is_ready_that_it_lives_and_that_it_stops(
    tmp_path: Path, manager: Manager
) -> None:
    conf = configuration(
        tmp_path / "conf",
        edits_dir=tmp_path / "jn",
        rpc_address=f"127.0.0.1:{free_port()}",
        http_address="127.0.0.1:0",
    )
    told = {"NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "900000"}
    with subprocess.Popen(
        [sys.executable, "-m", "ha.cli.main", "journalnode", "--conf-dir", str(conf)],
        cwd=ROOT, env=os.environ | told, stderr=subprocess.DEVNULL,
    ) as node:  # fmt: skip
        try:
            await asyncio.to_thread(manager.hear, lambda text: text == "READY=1")
            await asyncio.to_thread(manager.hear, lambda text: text == "WATCHDOG=1")
            # It stands still: no sign of life, which is what the watchdog is for.
            node.send_signal(signal.SIGSTOP)
            manager.socket.settimeout(1.0)
            with pytest.raises(TimeoutError):
                manager.hear(lambda _: False)
            manager.socket.settimeout(PATIENCE_SECONDS)
            node.send_signal(signal.SIGCONT)
            await asyncio.to_thread(manager.hear, lambda text: text == "WATCHDOG=1")
            node.terminate()
            await asyncio.to_thread(manager.hear, lambda text: text == "STOPPING=1")
            assert node.wait(PATIENCE_SECONDS) == 0
        finally:
            node.kill()


DAEMON = """
import asyncio, sys
from ha.daemon.notify import SERVICE
from ha.daemon.process import run_daemon

async def main(stop):
    SERVICE.overdue = lambda: sys.argv[1]
    SERVICE.ready()
    await stop.wait()

sys.exit(run_daemon("daemon", main))
"""


def test_a_daemon_with_a_duty_undone_gives_no_sign_of_life_though_its_loop_runs(
    manager: Manager,
) -> None:
    told = {"NOTIFY_SOCKET": manager.socket.getsockname(), "WATCHDOG_USEC": "900000"}
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, "nobody follows the journal"],
        cwd=ROOT, env=os.environ | told, stdout=subprocess.PIPE, text=True,
    ) as daemon:  # fmt: skip
        try:
            assert daemon.stdout is not None
            while "daemon.duty_overdue" not in (line := daemon.stdout.readline()):
                assert line, "it has ended"
            assert "nobody follows the journal" in line
        finally:
            daemon.kill()
    assert "WATCHDOG=1" not in _rest(manager)


def test_a_watchdogs_signal_tells_where_even_a_stopped_daemon_hangs(manager: Manager) -> None:
    told = {"NOTIFY_SOCKET": manager.socket.getsockname()}
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, ""],
        cwd=ROOT, env=os.environ | told, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    ) as daemon:  # fmt: skip
        try:
            manager.hear(lambda text: text == "READY=1")
            daemon.send_signal(signal.SIGSTOP)
            daemon.send_signal(signal.SIGABRT)
            daemon.send_signal(signal.SIGCONT)  # systemd does so, too
            _, said = daemon.communicate(timeout=PATIENCE_SECONDS)
        finally:
            daemon.kill()
    assert daemon.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in said
    assert "in run_daemon" in said


FAILING = """
import sys
from ha.daemon.notify import SERVICE
from ha.daemon.process import ExitWith, run_daemon

async def main(stop):
    if "ready" in sys.argv:
        SERVICE.ready()
    raise ExitWith(int(sys.argv[1]), "the port is taken")

sys.exit(run_daemon("daemon", main))
"""


def failing(manager: Manager, folder: Path, *words: str) -> "subprocess.Popen[str]":
    told = {"NOTIFY_SOCKET": manager.socket.getsockname(), "STATE_DIRECTORY": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", FAILING, *words],
        cwd=ROOT, env=os.environ | told, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_starts_that_fail_are_held_back_longer_each_time_until_one_succeeds(
    manager: Manager, tmp_path: Path
) -> None:
    """Their units start them again after 0.1 s, however often."""
    plays = (("1",), ("1",), ("78",), ("1",), ("1", "ready"), ("1",))
    pauses = []
    for words in plays:
        with failing(manager, tmp_path, *words) as daemon:
            said, _ = daemon.communicate(timeout=PATIENCE_SECONDS)
        assert daemon.returncode == int(words[0])
        found = re.search(r"daemon\.held_back.*again_in_seconds=([\d.]+)", said)
        pauses.append(float(found[1]) if found else None)
    assert pauses == [0.1, 0.2, None, 0.4, None, 0.1]


def test_the_longest_pause_is_half_a_minute_and_a_stop_ends_it(
    manager: Manager, tmp_path: Path
) -> None:
    (tmp_path / "failed-starts").write_bytes(bytes(5000))
    with failing(manager, tmp_path, "1") as daemon:
        manager.hear(lambda text: "EXTEND_TIMEOUT_USEC=60000000" in text)
        assert "the next start is in 30 s" in manager.heard[-1]
        daemon.terminate()
        assert daemon.wait(PATIENCE_SECONDS) == -signal.SIGTERM


@pytest.mark.parametrize("lacking", ["NOTIFY_SOCKET", "STATE_DIRECTORY"])
def test_only_under_systemd_a_start_is_held_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacking: str
) -> None:
    variables = {"NOTIFY_SOCKET": "@x", "STATE_DIRECTORY": str(tmp_path)} | {lacking: ""}
    assert adopted(monkeypatch, **variables).held_back_seconds() == 0.0


def test_a_folder_that_cannot_be_written_holds_nothing_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = str(tmp_path / "gone")
    service = adopted(monkeypatch, NOTIFY_SOCKET="@x", STATE_DIRECTORY=gone)
    assert service.held_back_seconds() == 0.0
    service.ready()


def _rest(manager: Manager) -> list[str]:
    manager.socket.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        manager.hear(lambda _: False)
    return manager.heard
