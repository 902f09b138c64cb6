"""One host: a container that systemd has booted, with files of its own and this machine's network.

PID 1 of this machine may be anything.  What it takes then: ``--keep-unit`` and ``--register=no``,
as the container cannot be given a unit; a cgroup of its own, as two systemds in one cgroup end each
other's services; ``--console=pipe``, as there is no terminal.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deploy.local.cluster import reaper
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.processes import ManagedProcess, Supervisor, wait_until
from tests.deploy.systemd.image import UNMANAGED, Image, overlay

BOOT_SECONDS: Final = 120.0
COMMAND_SECONDS: Final = 120.0
_HIERARCHIES: Final = tuple(Path("/sys/fs/cgroup") / name for name in ("", "systemd", "unified"))

_START: Final = """\
set -eu
name=$1 options=$2 root=$3; shift 3
for group in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    [ -e "$group/cgroup.procs" ] || continue
    mkdir -p "$group/$name"
    echo $$ >"$group/$name/cgroup.procs"
done
mount -t overlay overlay -o "$options" "$root"
exec systemd-nspawn -q -D "$root" --boot --console=pipe --machine="$name" "$@"
"""
"""In a mount namespace of its own, so that the mount ends with the container, however that ends."""

_ENVIRONMENT: Final = {
    "PATH": "/opt/nnha/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HADOOP_CONF_DIR": "/etc/nnha/conf",
    "LANG": "C.UTF-8",
    "SYSTEMD_PAGER": "",
    "SYSTEMD_COLORS": "0",
}


@dataclass(frozen=True, slots=True)
class Done:
    """What a command in a host came to."""

    code: int
    output: str
    """stdout and stderr, in the order in which they came."""


@dataclass(slots=True)
class Machine:
    """One host.  It may be booted again after a shutdown, and finds its files as they were."""

    name: str
    supervisor: Supervisor
    image: Image
    binds: Sequence[str] = ()
    """More of nspawn's options."""
    _pid: int = field(default=0)

    @property
    def folder(self) -> Path:
        return self.supervisor.directory / "machines" / self.name

    @property
    def files(self) -> Path:
        """What this host has written, as paths below it; write here only while it is off."""
        return self.folder / "files"

    @property
    def process(self) -> ManagedProcess:
        """The nspawn that holds it; it ends when the host is off."""
        return self.supervisor.processes[self.name]

    def boot(self) -> None:
        """Boot, and wait until systemd has started everything.  Raises LocalClusterError."""
        work, root = self.folder / "work", self.folder / "root"
        shutil.rmtree(work, ignore_errors=True)
        for each in (work, root, self.files):
            each.mkdir(parents=True, exist_ok=True)
        options = overlay(self.files, self.image.layers, work)
        start = ("unshare", "-m", "sh", "-c", _START, "sh", self.name, options, str(root))
        # The host outlives an nspawn that is killed; by the mark the reaper finds it, too.
        mark = f"--setenv={reaper.MARK_VARIABLE}={self.supervisor.mark}"
        managed = self.supervisor.start(self.name, [*start, *UNMANAGED, mark, *self.binds])
        self._pid = wait_until(
            self._init,
            what=f"{self.name} to start its systemd",
            deadline_seconds=BOOT_SECONDS,
            abandon=managed.ended_early,
        )
        wait_until(
            lambda: (
                self.run("systemctl", "is-system-running", check=False).output.strip()
                in ("running", "degraded")
            ),
            what=f"{self.name} to be booted",
            deadline_seconds=BOOT_SECONDS,
            poll_seconds=0.1,
            abandon=managed.ended_early,
        )

    def run(
        self,
        *words: str,
        user: str | None = None,
        check: bool = True,
        seconds: float = COMMAND_SECONDS,
    ) -> Done:
        """Run a command in the host, as root or a user; ``check``: LocalClusterError if not 0."""
        done = subprocess.run(
            [*self.inside(user), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=seconds,
        )  # fmt: skip
        if check and done.returncode:
            raise LocalClusterError(
                f"Ran `{' '.join(words)}` on {self.name}; it ended with {done.returncode}: "
                f"{done.stdout.strip()[-4000:]}"
            )
        return Done(done.returncode, done.stdout)

    def inside(self, user: str | None = None) -> list[str]:
        """Return what to put before a command that is to run in the host."""
        enter = ["nsenter", f"--target={self._pid}", "-m", "-p", "-u", "-i", "-C", "--"]
        clean = ["env", "-i", *(f"{name}={text}" for name, text in _ENVIRONMENT.items())]
        return [*enter, *clean, *(["runuser", "-u", user, "--"] if user else [])]

    def write(self, path: str, text: str, *, owner: str = "root", mode: str = "644") -> None:
        """Write a file in the running host."""
        words = ["install", "-D", f"--mode={mode}", f"--owner={owner}", "/dev/stdin", path]
        subprocess.run([*self.inside(), *words], input=text, text=True, check=True, timeout=60)

    def shown(self, unit: str, *properties: str) -> Mapping[str, str]:
        told = self.run("systemctl", "show", unit, f"--property={','.join(properties)}").output
        return dict(line.split("=", 1) for line in told.splitlines())

    def main_pid(self, unit: str) -> int:
        """Inside the host; 0 where none runs."""
        return int(self.shown(unit, "MainPID")["MainPID"])

    def journal(self, unit: str) -> str:
        """Return all that a unit has logged so far, and systemd about it."""
        self.run("journalctl", "--sync")
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", unit).output

    def off(self) -> int:
        """Shut it down as its own ``systemctl poweroff`` does; nspawn's exit code."""
        self.process.ended_by_us = True
        self.run("systemctl", "poweroff", check=False)
        code = self.process.wait(BOOT_SECONDS)
        self.tidy()
        return code

    def tidy(self) -> None:
        """Remove the cgroups of a host that is off."""
        for hierarchy in _HIERARCHIES:
            group = hierarchy / self.name
            if group.is_dir():
                for each in sorted(group.rglob("*"), reverse=True):
                    if each.is_dir():
                        each.rmdir()
                group.rmdir()

    def _init(self) -> int | None:
        """Return the pid of the host's first process, a child of nspawn."""
        pid = self.process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            found = [int(one) for one in children if _is_systemd(int(one))]
        except OSError:
            return None
        return found[0] if found else None


def _is_systemd(pid: int) -> bool:
    return Path(f"/proc/{pid}/comm").read_text() == "systemd\n"
