"""A session is gone on with only where its file proves that the process that held it has ended."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ha.daemon.identity import machine, started_ticks
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.service.model import ProcessIdentity
from ha.zkfc.process.kept_session import KeptSession, default_folder, has_ended

TICKET = SessionTicket(0x1234, b"password")
ENSEMBLE = "127.0.0.1:2181/hadoop-ha/ns1"


def ended(_process: ProcessIdentity) -> bool:
    return True


Ended = Callable[[ProcessIdentity], bool | None]


def kept(
    folder: Path, *, node: str = "ns1.nn1", ensemble: str = ENSEMBLE, ended: Ended = ended
) -> KeptSession:
    return KeptSession(folder, node, ensemble, ended=ended)


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "session"


def test_what_is_kept_is_taken_again_and_private(folder: Path) -> None:
    kept(folder).keep(TICKET)
    assert kept(folder).take() == TICKET
    assert (folder.stat().st_mode & 0o777, only_file(folder).stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )
    kept(folder).keep(SessionTicket(7, b"new"))
    assert kept(folder).take() == SessionTicket(7, b"new")
    kept(folder).forget()
    assert kept(folder).take() is None
    assert list(folder.iterdir()) == []
    kept(folder).forget()  # again does no harm


def test_a_session_whose_process_runs_is_left(folder: Path) -> None:
    """Two controllers of one id: the second one must not take the first one's session over."""
    kept(folder).keep(TICKET)
    assert kept(folder, ended=has_ended).take() is None


def test_what_cannot_be_seen_proves_no_end(folder: Path) -> None:
    kept(folder).keep(TICKET)
    assert kept(folder, ended=lambda _: None).take() is None


def test_the_holder_is_the_process_that_kept_it(folder: Path) -> None:
    own = identity(os.getpid())
    kept(folder).keep(TICKET)
    assert kept(folder, ended=lambda holder: holder == own).take() == TICKET


@pytest.mark.parametrize(
    ("node", "ensemble"), [("ns1.nn2", ENSEMBLE), ("ns1.nn1", "zk2:2181/hadoop-ha/ns1")]
)
def test_a_file_of_another_controller_or_ensemble_is_left(
    folder: Path, node: str, ensemble: str
) -> None:
    kept(folder).keep(TICKET)
    other = kept(folder, node=node, ensemble=ensemble)
    assert other.take() is None
    ours = only_file(folder)
    data = ours.read_bytes()
    ours.unlink()
    other.keep(TICKET)
    only_file(folder).write_bytes(data)  # a folder that was copied, under the other's name
    assert other.take() is None


def test_a_file_or_folder_that_others_could_write_is_left(folder: Path) -> None:
    kept(folder).keep(TICKET)
    path = only_file(folder)
    for place, mode in ((path, 0o620), (path, 0o602), (folder, 0o770), (folder, 0o707)):
        before = place.stat().st_mode & 0o777
        place.chmod(mode)
        assert kept(folder).take() is None
        place.chmod(before)
    assert kept(folder).take() == TICKET
    aside = path.with_name("aside")
    path.rename(aside)
    path.symlink_to(aside)
    assert kept(folder).take() is None
    path.unlink()
    os.mkfifo(path, 0o600)
    assert kept(folder).take() is None
    path.unlink()
    path.mkdir()
    assert kept(folder).take() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user's file")
def test_a_strangers_file_or_folder_is_left_and_not_written_to(folder: Path) -> None:
    kept(folder).keep(TICKET)
    os.chown(only_file(folder), 65534, 65534)
    assert kept(folder).take() is None
    only_file(folder).unlink()
    os.chown(folder, 65534, 65534)
    kept(folder).keep(TICKET)
    assert list(folder.iterdir()) == []


def test_no_link_that_lies_ready_is_written_through(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    kept(folder).keep(SessionTicket(7, b"before"))
    only_file(folder).with_suffix(".new").symlink_to(victim)
    kept(folder).keep(TICKET)
    assert victim.read_text() == "as it was"
    assert kept(folder).take() == TICKET


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda _: b"[]",
        lambda _: b"\xff\x00",
        lambda _: b"[" * 4000,
        lambda data: data[:-2],
        lambda data: altered(data, "session", 0),
        lambda data: altered(data, "session", 1e400),
        lambda data: altered(data, "password", "zz"),
        lambda data: altered(data, "holder", {}),
        lambda data: altered(data, "holder", {"pid": "x", "started_ticks": 1, "machine": "m"}),
        lambda data: altered(data, "of", None),
    ],
)
def test_what_is_no_such_file_is_left(folder: Path, change: Callable[[bytes], bytes]) -> None:
    kept(folder).keep(TICKET)
    path = only_file(folder)
    path.write_bytes(change(path.read_bytes()))
    assert kept(folder).take() is None


def test_no_more_is_read_than_such_a_file_has(folder: Path) -> None:
    kept(folder).keep(TICKET)
    path = only_file(folder)
    path.write_bytes(path.read_bytes() + b" " * 5000 + b"not looked at")
    assert kept(folder).take() == TICKET


def altered(data: bytes, name: str, value: object) -> bytes:
    return json.dumps({**json.loads(data), name: value}).encode()


def test_a_folder_that_cannot_be_had_costs_nothing_but_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept(tmp_path / "file" / "session").keep(TICKET)
    kept(tmp_path / "file" / "session").keep(None)
    assert kept(tmp_path / "file" / "session").take() is None


def test_the_default_folder_is_systemds_or_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    assert default_folder() == Path(f"/dev/shm/nnha-{os.geteuid()}")
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/a:/run/b")
    assert default_folder() == Path("/run/a")


# -- has it ended? ---------------------------------------------------------------------------


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def identity(pid: int) -> ProcessIdentity:
    ticks = started_ticks(pid)
    assert ticks is not None
    return ProcessIdentity(pid, ticks, machine())


def test_a_process_has_ended_once_no_thread_is_left(child: subprocess.Popen[bytes]) -> None:
    process = identity(child.pid)
    assert has_ended(process) is False
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(process) is True  # its parent has not waited for it yet
    child.wait()
    assert has_ended(process) is True


def test_a_process_whose_first_thread_has_left_has_not_ended() -> None:
    """The kernel calls it a zombie, and its other threads run and write on."""
    program = (
        "import ctypes, sys, threading\n"
        "threading.Thread(target=sys.stdin.read).start()\n"
        "print('up', flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(0)\n"
    )
    run = [sys.executable, "-c", program]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            assert has_ended(identity(process.pid)) is False
        finally:
            process.kill()


def test_a_number_that_is_anothers_by_now_is_an_end() -> None:
    own = identity(os.getpid())
    assert has_ended(ProcessIdentity(own.pid, own.started_ticks - 1, own.machine)) is True


def test_another_boot_or_pid_namespace_says_nothing(child: subprocess.Popen[bytes]) -> None:
    """A folder that was copied to another host: there, that number is another's."""
    process = identity(child.pid)
    child.kill()
    child.wait()
    assert has_ended(ProcessIdentity(process.pid, process.started_ticks, "another")) is None


@pytest.mark.parametrize("pid", [-1, 2**40])
def test_what_is_no_pid_says_nothing(pid: int) -> None:
    assert has_ended(ProcessIdentity(pid, 1, machine())) is None


@pytest.mark.parametrize("spare", [0, 1])
def test_without_descriptors_nothing_is_known(child: subprocess.Popen[bytes], spare: int) -> None:
    """Neither without one for a look at the machine, nor without one for the process's start."""
    process = identity(child.pid)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)  # the lowest number that is free
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + spare, hard))
    try:
        found = has_ended(process)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found is None
