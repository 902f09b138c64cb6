"""``in_use.lock``: one process at a time in a directory."""

import errno
import fcntl
import os
import socket
from pathlib import Path
from typing import Final

from hadoop.errors import InUse

LOCK_NAME: Final = "in_use.lock"


class DirectoryLock:
    """The lock on one directory, held until ``release``.

    Two locks are taken: a POSIX record lock, because that is what Java daemons take, and
    flock, because a record lock does not stop a second opener within one process.

    Raises:
        InUse: if another process holds it; the message names it.
        OSError: if the directory cannot be written.
    """

    def __init__(self, directory: Path, *, key: str = "dfs.namenode.name.dir") -> None:
        """Lock a directory; ``key`` names it in the configuration, for the message."""
        self._key = key
        self.path = directory / LOCK_NAME
        self._fd: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._take(self._fd)
        except BaseException:
            os.close(self._fd)
            raise

    def _take(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise self._in_use(os.pread(fd, 200, 0)) from None
        if not self.path.exists() or os.fstat(fd).st_ino != self.path.stat().st_ino:
            # The former holder removed the file after we opened it: our lock guards nothing.
            leaving = BlockingIOError(errno.EAGAIN, "its holder is just leaving")
            raise self._in_use(b"a process that is just leaving") from leaving
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}@{socket.gethostname()}".encode(), 0)

    def _in_use(self, holder: bytes) -> InUse:
        name = holder.decode("utf-8", "replace") or "another process"
        return InUse(
            self.path.parent,
            f"is locked by {name}",
            f"Stop that process, or point {self._key} of this one elsewhere.",
        )

    def release(self) -> None:
        """Let go and remove the file; a second time does nothing."""
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                self.path.unlink(missing_ok=True)
            finally:
                os.close(fd)  # else what a read-only disk keeps could never be locked again
