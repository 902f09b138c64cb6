"""What only a person can mend ends a daemon with 78, and what may pass by itself with 1."""

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from ha.conf.errors import ConfigurationError
from ha.daemon.end_code import end_code
from tests import ROOT
from tests.deploy.systemd.test_units import UNITS, parsed
from tests.ha.cli.test_own_certificate import SITE

PERSON, PASSES = 78, 1
SECONDS = 60.0


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ConfigurationError("x"), PERSON),
        (OverflowError("port must be 0-65535"), PERSON),
        (PermissionError(errno.EACCES, "x"), PERSON),
        (OSError(errno.EROFS, "x"), PERSON),
        (OSError(errno.EADDRNOTAVAIL, "x"), PERSON),
        (OSError(errno.EADDRINUSE, "x"), PASSES),
        (OSError(errno.ENOSPC, "x"), PASSES),
        (OSError(errno.EIO, "x"), PASSES),
        (OSError("several addresses failed"), PASSES),
        (BlockingIOError(errno.EAGAIN, "x"), PASSES),
        (socket.gaierror(socket.EAI_NONAME, "x"), PASSES),
        (TimeoutError(), PASSES),
    ],
    ids=repr,
)
def test_what_the_system_said_decides_however_deep_it_lies(failure: Exception, code: int) -> None:
    assert end_code(failure) == code
    for shown in (True, False):
        outer = ConfigurationError("in our words")
        if shown:
            outer.__cause__ = failure
        else:
            outer.__context__ = failure
        assert end_code(outer) == code


Scene = Callable[[Path, ExitStack], dict[str, str]]


def _busy(_: Path, stack: ExitStack) -> str:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    return f"127.0.0.1:{listener.getsockname()[1]}"


def _locked(folder: Path, stack: ExitStack) -> dict[str, str]:
    folder.mkdir()
    lock = stack.enter_context((folder / "in_use.lock").open("w"))
    fcntl.flock(lock, fcntl.LOCK_EX)
    return {"dfs.datanode.data.dir": str(folder)}


DATA: Scene = lambda folder, _: {"dfs.datanode.data.dir": str(folder / "data")}  # noqa: E731
CASES: dict[str, tuple[str, int, Scene]] = {
    "an id that no NameNode has": (
        "namenode", PERSON, lambda folder, _: {"dfs.ha.namenode.id": "nn7"},
    ),
    "no image": (
        "namenode", PERSON, lambda folder, _: {
            "dfs.ha.namenode.id": "nn1", "dfs.namenode.name.dir": str(folder / "name"),
            "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:0",
        },
    ),
    "a bad value, JournalNode": (
        "journalnode", PERSON, lambda folder, _: {"dfs.journalnode.rpc-address": "no:port:at:all"},
    ),
    "a bad value, ZKFC": ("zkfc", PERSON, lambda folder, _: {"dfs.ha.zkfc.port": "many"}),
    "an address of another host": (
        "journalnode", PERSON, lambda folder, _: {
            "dfs.journalnode.rpc-address": "192.0.2.1:0", "dfs.journalnode.edits.dir": str(folder),
        },
    ),
    "a port that is taken": (
        "journalnode", PASSES, lambda folder, stack: {
            "dfs.journalnode.rpc-address": _busy(folder, stack),
            "dfs.journalnode.edits.dir": str(folder),
        },
    ),
    "a file where a folder should be": (
        "journalnode", PERSON, lambda folder, _: {
            "dfs.journalnode.rpc-address": "127.0.0.1:0",
            "dfs.journalnode.edits.dir": str(folder / "hdfs-site.xml"),
        },
    ),
    "a folder that another process has locked": (
        "datanode", PASSES, lambda folder, stack: _locked(folder / "data", stack),
    ),
    "a DataNode's port that is taken": (
        "datanode", PASSES, lambda folder, stack: {
            **DATA(folder, stack), "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": _busy(folder, stack),
            "dfs.datanode.ipc.address": "127.0.0.1:0",
        },
    ),
    "a DataNode's address of another host": (
        "datanode", PERSON, lambda folder, stack: {
            **DATA(folder, stack), "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "192.0.2.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0", "nnha.security.mode": "insecure-i-know",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_daemon_ends_with_the_code_of_its_mistake(tmp_path: Path, case: str) -> None:
    daemon, code, scene = CASES[case]
    with ExitStack() as stack:
        keys = scene(tmp_path, stack)
        site = "".join(
            line
            for line in SITE.splitlines(keepends=True)
            if "nnha.security.tls.dir" not in line and not any(key in line for key in keys)
        )
        more = "".join(
            f"<property><name>{key}</name><value>{value}</value></property>\n"
            for key, value in keys.items()
        )
        site = site.replace("</configuration>", f"{more}</configuration>")
        (tmp_path / "hdfs-site.xml").write_text(site)
        done = subprocess.run(
            [sys.executable, "-m", "ha.cli.main", daemon, "--conf-dir", str(tmp_path)],
            capture_output=True, text=True, timeout=SECONDS, check=False, cwd=ROOT,
            env={**os.environ, "NOTIFY_SOCKET": ""},
        )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    *lines, last = done.stderr.splitlines()
    assert last.startswith(daemon)
    first = json.loads(lines[0])["reason"] if lines else last
    assert last.partition(": ")[2] in first, "the reason comes first"
    assert all(line.startswith("{") for line in lines), "only JSON stands before the last words"
    units = [unit for unit in UNITS if daemon in unit.name]
    assert len(units) == 1
    ends = parsed(units[0])["Service"]["RestartPreventExitStatus"].split()
    assert (str(code) in ends) == (code == PERSON)
