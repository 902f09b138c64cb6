"""Starts, watches and ends the processes of a local cluster; none outlives its owner."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from deploy.local.cluster import reaper
from deploy.local.cluster.errors import LocalClusterError
from ha.record import dataclass, field
from ha.security.own_tls import context_for, secure_url

STOP_SECONDS = 10.0
"""How long a process may take to end on SIGTERM before it is killed."""

_LOG_TAIL_LINES = 20
_POLL_SECONDS = 0.01

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    *,
    what: str,
    deadline_seconds: float,
    poll_seconds: float = _POLL_SECONDS,
    abandon: Callable[[], str | None] = lambda: None,
) -> T:
    """Ask until the condition gives a true value, and return that value.

    ``abandon`` may say why waiting longer is of no use.  Raises LocalClusterError with ``what``.
    """
    deadline = time.monotonic() + deadline_seconds
    while True:
        if value := condition():
            return value
        if reason := abandon():
            raise LocalClusterError(f"Waited for {what}; {reason}")
        if time.monotonic() >= deadline:
            raise LocalClusterError(f"Waited {deadline_seconds:g} s for {what}; it did not happen")
        time.sleep(poll_seconds)


def http_get(url: str, *, deadline_seconds: float = 1.0) -> tuple[int, bytes] | None:
    """Return status code and body, or None without an answer in time."""
    try:
        with urllib.request.urlopen(
            secure_url(url), timeout=deadline_seconds, context=context_for(None)
        ) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()
    except (OSError, ValueError, http.client.HTTPException):
        return None


@dataclass(slots=True)
class ManagedProcess:
    """One started process: its pid, its log, and what may be done to it."""

    name: str
    argv: tuple[str, ...]
    log: Path
    process: "subprocess.Popen[bytes]"
    ended_by_us: bool = False

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; as in subprocess, -9 means killed by signal 9."""
        return self.process.poll()

    @property
    def running(self) -> bool:
        """Whether it has not ended; a frozen process counts as running."""
        return self.exit_code is None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens where it has ended already."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL, and wait until the kernel has taken the process away."""
        self.ended_by_us = True
        self.send(signal.SIGKILL)
        self.process.wait(STOP_SECONDS)

    def freeze(self) -> None:
        """Send SIGSTOP: it keeps its memory and its sockets, and does nothing."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def wait(self, deadline_seconds: float) -> int:
        """Return its exit code, once it has ended.  Raises LocalClusterError at the deadline."""
        try:
            return self.process.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            raise LocalClusterError(
                f"Waited {deadline_seconds:g} s for {self.name} (pid {self.pid}) to end; "
                f"it still runs. Its log is {self.log}"
            ) from None

    def close_pipes(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def log_tail(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return "\n".join(f"    {line}" for line in lines[-_LOG_TAIL_LINES:]) or "    (empty)"

    def ended_early(self) -> str | None:
        """Return how it ended without our doing, and the end of its log; None where it did not."""
        code = self.exit_code
        if code is None or self.ended_by_us:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self.name} {how}. The end of its log {self.log}:\n{self.log_tail()}"


@dataclass(slots=True)
class Supervisor:
    """Owns processes and ends them all when it is closed, and also when its owner dies.

    A second process, the reaper, holds the other end of a pipe; when this process ends in any
    way, SIGKILL included, it kills everything that carries our mark.
    """

    directory: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _processes: dict[str, ManagedProcess] = field(default_factory=dict)
    _reaper: "subprocess.Popen[bytes] | None" = None

    def __enter__(self) -> "Supervisor":
        self._watch()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def processes(self) -> Mapping[str, ManagedProcess]:
        """What was started last under each name."""
        return dict(self._processes)

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return our own environment with the mark in it, for everything that we start."""
        return {**os.environ, **(extra or {}), reaper.MARK_VARIABLE: self.mark}

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        talks: bool = False,
    ) -> ManagedProcess:
        """Start it in a session of its own, with its log and pid file under our directory.

        With ``talks`` its standard input and output are pipes of ours; else the log has its output.
        """
        before = self._processes.get(name)
        if before is not None and before.running:
            raise LocalClusterError(f"Tried to start {name}; it runs already (pid {before.pid})")
        self._watch()
        log = self.directory / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as sink:
            # A session of its own: Ctrl-C at the terminal is ours to handle, in our order.
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else sink,
                stderr=sink,
                env=self.environment(environment),
                cwd=self.directory,
                start_new_session=True,
            )
        self._write_pid(name, process.pid)
        managed = ManagedProcess(name=name, argv=tuple(argv), log=log, process=process)
        self._processes[name] = managed
        return managed

    def forget(self, name: str) -> None:
        """Remove from the cluster a process that has done its work and ended."""
        if self._processes[name].running:
            raise LocalClusterError(f"Tried to forget {name}; it still runs")
        self._processes[name].close_pipes()
        del self._processes[name]
        (self.directory / "pids" / f"{name}.pid").unlink(missing_ok=True)

    def stop(self, name: str, *, deadline_seconds: float = STOP_SECONDS) -> int:
        """Send SIGTERM, then SIGKILL at the deadline; return the exit code."""
        managed = self._processes[name]
        self._terminate([managed], deadline_seconds)
        return managed.wait(STOP_SECONDS)

    def stop_together(self, names: Sequence[str]) -> None:
        started = [self._processes[name] for name in names if name in self._processes]
        self._terminate(started, STOP_SECONDS)

    def close(self) -> None:
        """End everything at once, the ones started last first to be asked, and the reaper."""
        self._terminate(list(reversed(self._processes.values())), STOP_SECONDS)
        for each in self._processes.values():
            each.close_pipes()
        if self._reaper is not None:
            if self._reaper.stdin is not None:
                self._reaper.stdin.close()
            self._reaper.wait(STOP_SECONDS)
            self._reaper = None

    def _terminate(self, managed: Sequence[ManagedProcess], deadline_seconds: float) -> None:
        alive = [each for each in managed if each.running]
        for each in alive:
            each.ended_by_us = True
            each.send(signal.SIGTERM)
            each.thaw()  # a frozen process would keep SIGTERM waiting
        deadline = time.monotonic() + deadline_seconds
        for each in alive:
            try:
                each.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                each.kill()

    def _write_pid(self, name: str, pid: int) -> None:
        path = self.directory / "pids" / f"{name}.pid"
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".fresh")
        fresh.unlink(missing_ok=True)
        # Never through a link that somebody else has put there.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(fresh, flags, 0o644), "w") as file:
            file.write(f"{pid}\n")
        fresh.replace(path)  # readers see a whole number

    def _watch(self) -> None:
        if self._reaper is None:
            # -I and -S: it must start although the owner's environment may be odd, and quickly.
            self._reaper = subprocess.Popen(
                [sys.executable, "-I", "-S", reaper.__file__, self.mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
