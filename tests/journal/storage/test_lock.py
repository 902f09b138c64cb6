"""in_use.lock: one holder of a journal's folder, and what is said where it cannot be had."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from journal.errors import StorageFailed
from journal.storage.layout import LOCK
from journal.storage.lock import StorageLock

AS_JAVA = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
input()
"""


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("1234567@an.earlier.owner." + "x" * 80)
    lock, holder = StorageLock(tmp_path), f"{os.getpid()}@{socket.gethostname()}"
    with pytest.raises(StorageFailed, match=f"lock storage {tmp_path}: it is in use by {holder}. "):
        StorageLock(tmp_path)
    lock.release()
    StorageLock(tmp_path).release()


def test_a_lock_of_javas_counts(tmp_path: Path) -> None:
    """It is a POSIX lock, which another process has."""
    command = [sys.executable, "-c", AS_JAVA, str(tmp_path / LOCK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as java:
        assert java.stdout is not None
        assert java.stdout.readline() == b"locked\n"
        with pytest.raises(StorageFailed, match="it is in use by another process"):
            StorageLock(tmp_path)
        java.communicate(b"\n")


@pytest.mark.parametrize("place", ["gone", "full"])
def test_a_folder_that_cannot_be_locked_is_named(tmp_path: Path, place: str) -> None:
    root = tmp_path / place
    if place == "full":
        root.mkdir()
        (root / LOCK).symlink_to("/dev/full")  # it can be opened and locked, but not written to
    with pytest.raises(StorageFailed, match=rf"Cannot lock storage {root}: \[Errno"):
        StorageLock(root)
