"""Kills every process that carries a cluster's mark once the cluster's owner is gone (stdlib only).

Started as a script of its own with the mark as its argument.  It reads its standard input, a pipe
whose other end only the owner holds: the end of that pipe means that the owner has ended, however
it did.  The mark stands in the environment of everything the owner starts, so that grandchildren
and processes started in the owner's last instant are found too.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

MARK_VARIABLE = "NNHA_LOCAL_CLUSTER"

_ROUNDS = 100
_PROC = Path("/proc")


def marked_processes(mark: str) -> list[int]:
    """Return the pids of all other living processes whose environment holds the mark."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # gone in the meantime, or another user's
            continue
        if wanted in environment.split(b"\0"):
            found.append(int(entry.name))
    return found


def kill_marked(mark: str) -> None:
    """Kill all marked processes, repeatedly: one may be starting another in the meantime."""
    for _ in range(_ROUNDS):
        pids = marked_processes(mark)
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Wait for the owner's end, then kill what it left."""
    mark = sys.argv[1]
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    kill_marked(mark)


if __name__ == "__main__":
    main()
