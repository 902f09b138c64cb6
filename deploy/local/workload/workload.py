"""A client that writes all the time and remembers every answer, to be held against the cluster."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.processes import wait_until
from deploy.local.workload.java_client import CallFailed, JavaClient
from ha.record import dataclass, field

WRITERS = 4
PAUSE_SECONDS = 0.01
"""Between two calls of one writer, as in the baseline's load.

See docs/reference/operations.md#comparison-load.
"""

FILES_PER_DIRECTORY = 8
MOST_ERRORS = 100
"""With this number it makes no sense to wait for successes."""

ABANDON_SECONDS = 0.5
STOP_SECONDS = 180.0
"""Longer than the client's own 15 failovers take (docs/reference/rpc.md#retries-of-a-client)."""


def join_all(threads: Sequence[threading.Thread], client: JavaClient, seconds: float) -> None:
    """Wait for the ends of threads that call a client.  Raises LocalClusterError."""
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            raise LocalClusterError(
                f"Asked the client to stop; one of its calls has not returned in {seconds:g} s. "
                f"Look at {client.process.log}"
            )


class ClientCallKind(StrEnum):
    """What was asked."""

    MKDIRS = "mkdirs"
    CREATE = "create"
    RENAME = "rename"


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call: its times are monotonic seconds; ``error`` is empty where it was acknowledged."""

    writer: int
    kind: ClientCallKind
    path: str
    target: str
    started: float
    ended: float
    error: str

    @property
    def seconds(self) -> float:
        return self.ended - self.started


@dataclass(slots=True)
class Workload:
    """Some threads, each with a directory tree of its own and never the same name twice."""

    client: JavaClient
    root: str
    writers: int = WRITERS
    pause_seconds: float = PAUSE_SECONDS
    _writes: list[ClientCall] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _paused: bool = False
    _calls_under_way: int = 0

    def start(self) -> None:
        for number in range(self.writers):
            thread = threading.Thread(
                target=self._write, args=(number, f"{self.root}/w{number}"), daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def abandon(self) -> None:
        """Begin no further call, and hardly wait for those under way."""
        self._ask_to_stop()
        for thread in self._threads:
            thread.join(ABANDON_SECONDS)

    def stop(self) -> None:
        """Let each thread finish the call that it is in.  Raises LocalClusterError."""
        self._ask_to_stop()
        join_all(self._threads, self.client, STOP_SECONDS)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Keep all calls from running while the block runs.  Raises LocalClusterError."""
        with self._turn:
            self._paused = True
            if not self._turn.wait_for(lambda: not self._calls_under_way, STOP_SECONDS):
                raise LocalClusterError(
                    f"Told the client to pause; one of its calls has not returned in "
                    f"{STOP_SECONDS:g} s. Look at {self.client.process.log}"
                )
        try:
            yield
        finally:
            with self._turn:
                self._paused = False
                self._turn.notify_all()

    def writes(self) -> tuple[ClientCall, ...]:
        """Return every call that has returned, in the order in which they did."""
        # Without the lock Python 3.11 crashes: to make the tuple may run the garbage collector and
        # then another thread, whose call moves the list that is being copied.
        with self._turn:
            return tuple(self._writes)

    def acknowledged(self) -> int:
        return sum(1 for write in self.writes() if not write.error)

    def errors(self) -> tuple[ClientCall, ...]:
        """Return the calls that the client gave up on or that answered false."""
        return tuple(write for write in self.writes() if write.error)

    def longest_call_seconds(self, since: float) -> float:
        """Return the seconds of the longest call that ended at or after that monotonic time."""
        return max((write.seconds for write in self.writes() if write.ended >= since), default=0.0)

    def wait_for_more(self, count: int, *, deadline_seconds: float) -> None:
        """Wait until ``count`` more calls are acknowledged, for each writer one that began now.

        So no call that was under way at the moment of asking is still waited for.
        """
        begin = time.monotonic()
        seen = len(self._writes)

        def enough() -> bool:
            fresh = [each for each in self.writes()[seen:] if each.started >= begin]
            writers = {each.writer for each in fresh if not each.error}
            return len(fresh) >= count and len(writers) == self.writers

        wait_until(
            enough,
            what=f"{count} more writes of the client",
            deadline_seconds=deadline_seconds,
            poll_seconds=0.02,
            abandon=self._hopeless,
        )

    def wait_for_acknowledged(self, count: int, *, deadline_seconds: float) -> None:
        wait_until(
            lambda: self.acknowledged() >= count,
            what=f"{count} acknowledged writes",
            deadline_seconds=deadline_seconds,
            poll_seconds=0.05,
            abandon=self._hopeless,
        )

    def _ask_to_stop(self) -> None:
        with self._turn:
            self._stopping.set()
            self._turn.notify_all()

    def _hopeless(self) -> str | None:
        errors = self.errors()
        if len(errors) > MOST_ERRORS:
            last = errors[-1]
            return f"{len(errors)} calls failed; the last was {last.kind} {last.path}: {last.error}"
        return self.client.process.ended_early()

    def _write(self, writer: int, base: str) -> None:
        for number in itertools.count():
            directory = f"{base}/d{number:05d}"
            self._ask(writer, ClientCallKind.MKDIRS, directory)
            for file in range(FILES_PER_DIRECTORY):
                path = f"{directory}/f{file}"
                self._ask(writer, ClientCallKind.CREATE, path)
                if file % 2:
                    self._ask(writer, ClientCallKind.RENAME, path, f"{directory}/r{file}")
                if self._stopping.is_set():
                    return

    def _ask(self, writer: int, kind: ClientCallKind, path: str, target: str = "") -> None:
        calls: dict[ClientCallKind, Callable[[], bool]] = {
            ClientCallKind.MKDIRS: lambda: self.client.mkdirs(path),
            # Both kinds of create: applied twice, one would be refused, the other would hide it.
            ClientCallKind.CREATE: lambda: self.client.create(path, overwrite=path.endswith("0")),
            ClientCallKind.RENAME: lambda: self.client.rename(path, target),
        }
        with self._turn:
            self._turn.wait_for(lambda: not self._paused or self._stopping.is_set())
            self._calls_under_way += 1
        error = ""
        started = time.monotonic()
        try:
            if not calls[kind]():
                error = "answered false"
        except CallFailed as failure:
            error = str(failure)
        ended = time.monotonic()
        with self._turn:
            self._writes.append(ClientCall(writer, kind, path, target, started, ended, error))
            self._calls_under_way -= 1
            self._turn.notify_all()
        self._stopping.wait(self.pause_seconds)
