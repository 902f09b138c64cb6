"""in_use.lock: one process per journal folder."""

import fcntl
import os
import socket
from pathlib import Path

from journal.errors import StorageFailed
from journal.storage.layout import LOCK


class StorageLock:
    """Holds a journal's folder until ``release``.

    Both kinds of lock are taken: flock distinguishes two owners in one process, and the POSIX lock
    is the one that a Java JournalNode takes.
    """

    def __init__(self, root: Path) -> None:
        """Take the locks, or raise StorageFailed, naming the owner of the folder where possible."""
        path = root / LOCK
        try:
            own = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            self._file = os.fdopen(own, "a+b", buffering=0)
        except OSError as failure:
            raise StorageFailed(f"Cannot lock storage {root}: {failure}") from failure
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as failure:
            self._file.seek(0)
            holder = (self._file.read(200) or b"").decode("utf-8", "replace").strip()
            self._file.close()
            raise StorageFailed(
                f"Cannot lock storage {root}: it is in use by {holder or 'another process'}. "
                "Stop that process, or give this one another dfs.journalnode.edits.dir."
            ) from failure
        try:
            self._file.truncate(0)
            self._file.write(f"{os.getpid()}@{socket.gethostname()}".encode())
        except OSError as failure:
            self._file.close()
            raise StorageFailed(f"Cannot lock storage {root}: {failure}") from failure

    def release(self) -> None:
        """Let the folder go; releasing twice is fine."""
        self._file.close()
