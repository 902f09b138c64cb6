"""``kill``: SIGKILL for the process that listens on the victim's port on this machine."""

import asyncio
import os
import select
import signal
import socket
from pathlib import Path
from typing import Final

import structlog

from fencing.model import Outcome, Target

log = structlog.get_logger()

_LISTEN: Final = "0A"
"""TCP_LISTEN as /proc/net/tcp writes it."""


async def kill_on_this_machine(target: Target, *, deadline_seconds: float) -> tuple[Outcome, str]:
    """Kill who listens on the target's port here; it is gone when this says so.

    It proves nothing about another machine, so a target elsewhere is not this method's business.
    """
    return await asyncio.to_thread(_kill, target, deadline_seconds)


def _kill(target: Target, deadline_seconds: float) -> tuple[Outcome, str]:
    if not _is_here(target.host):
        return Outcome.NOT_RUN, f"{target.host} is not this machine"
    inodes = _listening(target.port)
    if not inodes:
        return Outcome.SUCCEEDED, f"nobody listens on port {target.port} of this machine"
    pids = _holders(inodes)
    if not pids:
        return Outcome.FAILED, f"somebody listens on port {target.port}; we may not see who"
    for pid in sorted(pids):
        why = _kill_one(pid, deadline_seconds)
        if why is not None:
            return Outcome.FAILED, why
        log.info("fencing.killed", pid=pid, port=target.port)
    return Outcome.SUCCEEDED, f"killed process {', '.join(map(str, sorted(pids)))}"


def _kill_one(pid: int, deadline_seconds: float) -> str | None:
    """Kill a process and see it end; why that failed, or None.  A pidfd is never reused."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        ended, _, _ = select.select([descriptor], [], [], deadline_seconds)
    except ProcessLookupError:
        return None
    except PermissionError as failure:
        return f"process {pid} cannot be killed: {failure}"
    finally:
        os.close(descriptor)
    return None if ended else f"process {pid} has not ended {deadline_seconds:.1f} s after SIGKILL"


def _is_here(host: str) -> bool:
    """Whether a host name means this machine: only then can we bind to its addresses."""
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


def _listening(port: int) -> set[str]:
    """The inodes of the sockets that listen on a port."""
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


def _holders(inodes: set[str]) -> set[int]:
    """The processes that have one of these sockets open."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    found = set()
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            held = any(str(entry.readlink()) in wanted for entry in folder.iterdir())
        except OSError:
            continue  # it has ended, or is another user's
        if held:
            found.add(int(folder.parent.name))
    return found
