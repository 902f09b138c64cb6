"""A Java client that goes on appending to a file and flushes each piece to the DataNodes."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from deploy.local.cluster.processes import wait_until
from deploy.local.workload.java_client import BUFFER, OVERWRITE, CallFailed, JavaFiles

PIECE: Final = bytes(8 * 1024)
BLOCK_BYTES: Final = 64 * 1024
"""So the client goes to the NameNode for every eighth piece."""

PAUSE_SECONDS: Final = 0.005
STOP_SECONDS: Final = 180.0


@dataclass(slots=True)
class Appender:
    """One open file; ``times`` has the beginning and the end of each piece, in monotonic time."""

    files: JavaFiles
    path: str
    replication: int
    times: list[tuple[float, float]] = field(default_factory=list)
    failed: str = ""
    _go: threading.Event = field(default_factory=threading.Event)
    _end: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep the file open while the block runs; pieces are written within ``writing``."""
        thread = threading.Thread(target=self._work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            self._go.set()
            thread.join(STOP_SECONDS)

    @contextmanager
    def writing(self, first: int) -> Iterator[None]:
        """Write piece after piece; enter after ``first`` of them, and stop when the block ends."""
        self._go.set()
        try:
            self.wait_for(first)
            yield
        finally:
            self._go.clear()

    def wait_for(self, count: int) -> None:
        """Wait until ``count`` pieces have begun and ended from now.  Raise LocalClusterError."""
        since = time.monotonic()
        wait_until(
            lambda: sum(began >= since for began, _ in self.times[-count:]) >= count,
            what=f"{count} more pieces of {self.path}",
            deadline_seconds=STOP_SECONDS,
            abandon=lambda: self.failed or None,
        )

    def longest_seconds(self, since: float) -> float:
        """Return the longest piece that was still waited for at that time, or began later."""
        return max(ended - began for began, ended in self.times if ended >= since)

    def _work(self) -> None:
        try:
            self.files.call(self._append)
        except CallFailed as failure:
            self.failed = f"the client gave up on {self.path}: {failure}"

    def _append(self) -> None:
        files = self.files
        path = files.jvm.org.apache.hadoop.fs.Path(self.path)
        stream = files.filesystem.create(path, OVERWRITE, BUFFER, self.replication, BLOCK_BYTES)
        while self._go.wait() and not self._end.is_set():
            began = time.monotonic()
            stream.write(PIECE)
            stream.hflush()
            self.times.append((began, time.monotonic()))
            time.sleep(PAUSE_SECONDS)
        stream.close()
