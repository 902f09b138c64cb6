"""What a run leaves on the machine, and how the next one recognises and removes it.

Each run holds a lock on a file below /run as long as it lives, however it ends.  Next to the lock
stand the mark of its processes and its mounts; a file whose lock can be taken is of a dead run.
"""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.processes import STOP_SECONDS
from deploy.local.cluster.reaper import kill_marked
from tests.campaigns.soak.faults import network

REGISTER: Final = Path("/run/nnha-faults")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A run that has ended without tidying up."""

    run_id: str
    mark: str
    mounts: tuple[str, ...]


@contextlib.contextmanager
def registered(mark: str, mounts: tuple[Path, ...]) -> Iterator[str]:
    """Remove what dead runs left; be a run with an id, which a second process ends if this dies."""
    remove_leftovers()
    REGISTER.mkdir(exist_ok=True)
    run_id = f"{os.getpid():x}"
    path = REGISTER / run_id
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not path.exists():
            raise LocalClusterError(f"Made {path}; another run took it for a dead one's. Try again")
        facts = {"mark": mark, "mounts": [str(mount) for mount in mounts]}
        file.write(json.dumps(facts))
        file.flush()
        with _janitor(path):
            try:
                yield run_id
            finally:
                remove(Leftover(run_id, mark, tuple(map(str, mounts))))


def remove_leftovers() -> list[str]:
    """Remove everything of runs that have died; return their ids."""
    removed = []
    for path in sorted(REGISTER.glob("*")):
        with contextlib.suppress(FileNotFoundError), path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # it lives
            try:
                facts = json.loads(file.read())
            except ValueError:  # it died before it had made anything
                facts = {"mark": "", "mounts": []}
            remove(Leftover(path.name, facts["mark"], tuple(facts["mounts"])))
            removed.append(path.name)
    return removed


def remove(leftover: Leftover) -> None:
    """End its processes, undo its mounts, remove its namespaces, and then its entry."""
    if leftover.mark:
        kill_marked(leftover.mark)
    mounted = {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}
    for mount in leftover.mounts:
        if mount in mounted:
            # A process that was killed an instant ago may still hold a file.
            network.run("umount", "--lazy", mount)
    network.remove(leftover.run_id)
    (REGISTER / leftover.run_id).unlink(missing_ok=True)


@contextlib.contextmanager
def _janitor(entry: Path) -> Iterator[None]:
    """Start a process that tidies up behind us once our end of its pipe is closed, by whatever."""
    janitor = subprocess.Popen(
        [sys.executable, "-m", __name__, str(entry)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        if janitor.stdin is not None:
            janitor.stdin.close()
        try:
            janitor.wait(STOP_SECONDS * 6)
        except subprocess.TimeoutExpired:
            raise LocalClusterError(
                f"Waited for the process that tidies up (pid {janitor.pid}); it still runs"
            ) from None


if __name__ == "__main__":
    while os.read(0, 4096):
        pass
    # A dying process may close its end of our pipe before it lets go of its lock.
    with contextlib.suppress(FileNotFoundError), Path(sys.argv[1]).open() as entry:
        fcntl.flock(entry, fcntl.LOCK_EX)
    remove_leftovers()
