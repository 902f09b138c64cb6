"""The method ``kill``: kills the process that listens on the target's port of this machine."""

import asyncio
import os
import select
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Final

import structlog

from fencing.model import FencingOutcome, Target

log = structlog.get_logger()

_LISTEN: Final = "0A"
"""TCP_LISTEN as /proc/net/tcp writes it."""


async def kill_on_this_machine(
    target: Target, *, deadline_seconds: float
) -> tuple[FencingOutcome, str]:
    """Kill the process on the target's port, and wait for its end; return outcome and detail.

    NOT_RUN if the target's host is another machine.
    """
    attempt = _Attempt(target, time.monotonic() + deadline_seconds)
    work = asyncio.create_task(asyncio.to_thread(attempt.run), name="kill")
    try:
        async with asyncio.timeout(deadline_seconds):
            return await asyncio.shield(work)
    except TimeoutError:
        return (
            FencingOutcome.TIMED_OUT,
            f"gave up after {deadline_seconds:.1f} s while {attempt.doing}",
        )
    finally:
        attempt.cancel()
        work.add_done_callback(lambda done: done.cancelled() or done.exception())


class _Attempt:
    """Finds and kills the process on a thread; it can be cancelled before the kill.

    The bad schedule without that: the resolver hangs, the takeover is cancelled, the target becomes
    active again, and then the resolver answers and the thread kills the healthy active.
    """

    def __init__(self, target: Target, deadline: float) -> None:
        self._target = target
        self._deadline = deadline
        self._kill_lock = threading.Lock()
        self._cancelled = False
        self.doing = "starting"

    def cancel(self) -> None:
        """Cancel the attempt: after this has returned, no process is killed."""
        with self._kill_lock:
            self._cancelled = True

    def run(self) -> tuple[FencingOutcome, str]:
        """Find the process, kill it, and wait for its end; return outcome and detail."""
        host, port = self._target.host, self._target.port
        self.doing = f"asking whether {host} is this machine"
        if not _is_here(host):
            return FencingOutcome.NOT_RUN, f"{host} is not this machine"
        self.doing = f"looking for the process that listens on port {port}"
        inodes = _find_listening_sockets(port)
        if not inodes:
            return FencingOutcome.SUCCEEDED, f"no process listens on port {port} of this machine"
        pids = _find_processes(inodes)
        if not pids:
            return (
                FencingOutcome.FAILED,
                f"a process listens on port {port}, but we may not see which",
            )
        for pid in sorted(pids):
            self.doing = f"killing process {pid}"
            why = self._kill(pid, inodes)
            if why is not None:
                return FencingOutcome.FAILED, why
            log.info("fencing.killed", pid=pid, port=port)
        return FencingOutcome.SUCCEEDED, f"killed process {', '.join(map(str, sorted(pids)))}"

    def _kill(self, pid: int, inodes: set[str]) -> str | None:
        """Kill a process and wait for its end; return why that failed, or None."""
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        try:
            # Check again: the pid may have passed to another process before the pidfd was opened.
            if pid not in _find_processes(inodes, f"{pid}/fd"):
                return (
                    f"process {pid} does not listen any more; it is not known whether it has ended"
                )
            with self._kill_lock:
                if self._cancelled:
                    return "the time was up"
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            left = max(0.0, self._deadline - time.monotonic())
            ended, _, _ = select.select([descriptor], [], [], left)
        except ProcessLookupError:
            return None
        except PermissionError as failure:
            return f"process {pid} cannot be killed: {failure}"
        finally:
            os.close(descriptor)
        return None if ended else f"process {pid} has not ended in time after SIGKILL"


def _is_here(host: str) -> bool:
    """Return whether the host is this machine: then we can bind to all its addresses."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return bool(found) and all(_can_bind(family, address) for family, _, _, _, address in found)


def _can_bind(family: int, address: tuple[object, ...]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(address)
        except OSError:
            return False
    return True


def _find_listening_sockets(port: int) -> set[str]:
    """Return the inodes of the sockets that listen on a port."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == _LISTEN and int(words[1].rpartition(":")[2], 16) == port:
                found.add(words[9])
    return found


def _find_processes(inodes: set[str], folders: str = "[0-9]*/fd") -> set[int]:
    """Return the processes in these folders of /proc that have one of these sockets open."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    found = set()
    for folder in Path("/proc").glob(folders):
        try:
            held = any(str(entry.readlink()) in wanted for entry in folder.iterdir())
        except OSError:
            continue  # the process has ended, or is another user's
        if held:
            found.add(int(folder.parent.name))
    return found
