"""Hosts for the pages: each with its own network, names, users, processes and files.

A host is a network, mount, host name and process namespace over a copy-on-write view of this
machine's file system, so that what a page writes to /etc or /data is seen on one host only.
"""

import contextlib
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from deploy.local.cluster.processes import wait_until
from tests import ROOT
from tests.campaigns.soak.faults import network
from tests.campaigns.soak.faults.network import Network

ADDRESSES: Final = {
    "host1": "10.78.0.1",
    "host2": "10.78.0.2",
    "host3": "10.78.0.3",
    "host4": "10.78.0.4",
    "client": "10.78.0.5",
    "names": "10.78.0.53",
}
"""Four hosts of the pages, a client, and the name server."""
NAMES: Final = "names"
INSTALLED: Final = "/opt/nnha"
CHECKOUT: Final = "/usr/src/nnha"
"""Where the hosts have this checkout, or the unpacked sdist."""
ROOTS_HOME: Final = str(Path("~root").expanduser())
COMMAND_SECONDS: Final = 300.0
TIMED_OUT: Final = 124
READY_SECONDS: Final = 60.0
_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_EXCHANGE: Final = "/run/lab"
"""A folder in which this process listens for the readiness of daemons, as systemd would."""

_BEGIN: Final = """\
set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/file-system"
mount --rbind /dev "$1/file-system/dev"
mount -t tmpfs -o mode=1777 tmpfs "$1/file-system/tmp"
mkdir -p "$1/file-system$2"
mount --bind "$2" "$1/file-system$2"
mount -t tmpfs -o mode=755 tmpfs "$1/file-system/run"
mkdir -p "$1/file-system/run/lab" "$1/file-system/run/sshd"
mount --bind "$1/exchange" "$1/file-system/run/lab"
hostname "$3"
exec chroot "$1/file-system" sh -c 'mount -t proc proc /proc && echo ready && exec sleep infinity'
"""
"""Build a host: its folder, the checkout (which an overlay must not hold), its name."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to."""

    code: int
    output: str


@dataclass(slots=True)
class Daemon:
    """A process that a page leaves running on a host."""

    command: str
    process: subprocess.Popen[bytes]
    log: Path
    ready: socket.socket

    def wait_ready(self) -> None:
        """Wait until it has notified READY=1; raise AssertionError if it ends or takes too long."""
        self.ready.settimeout(0.2)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"`{self.command}` has ended:\n{self.said()}"
            with contextlib.suppress(TimeoutError):
                if b"READY=1" in self.ready.recv(4096):
                    return
        raise AssertionError(f"`{self.command}` is not ready:\n{self.said()}")

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]


@dataclass(slots=True)
class Host:
    """One host of the lab."""

    name: str
    folder: Path
    network: Network
    daemons: list[Daemon] = field(default_factory=list)
    _first: subprocess.Popen[str] | None = None
    """The host's first process; with it ends every other one, and all that is mounted."""

    @property
    def address(self) -> str:
        return self.network.addresses[self.name]

    def boot(self) -> None:
        for name in ("upper", "work", "file-system", "exchange"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "exchange").chmod(0o777)
        begin = ("sh", "-c", _BEGIN, "boot", str(self.folder), str(ROOT), self.name)
        alone = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child")
        self._first = subprocess.Popen(
            [*self.network.inside(self.name), *alone, *begin], stdout=subprocess.PIPE, text=True
        )
        assert self._first.stdout is not None
        assert self._first.stdout.readline() == "ready\n", f"{self.name} does not boot"
        self.write("/etc/hostname", f"{self.name}\n")

    def halt(self) -> None:
        """End every process of the host at once."""
        if self._first is None:
            return
        self._first.kill()
        self._first.wait()
        assert self._first.stdout is not None
        self._first.stdout.close()
        for daemon in self.daemons:
            daemon.process.wait()
            daemon.ready.close()

    def run(self, command: str, user: str = "root") -> Done:
        """Run shell commands in a login shell of a user, and return how they ended."""
        try:
            done = subprocess.run(
                self._shell(command, user),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            said = (late.output or b"").decode(errors="replace")
            return Done(TIMED_OUT, f"{said}\nnot done after {COMMAND_SECONDS:g} s")
        return Done(done.returncode, done.stdout.decode(errors="replace"))

    def must(self, command: str, user: str = "root") -> str:
        """Run shell commands that have to end with 0, and return what they printed."""
        done = self.run(command, user)
        assert done.code == 0, f"{user}@{self.name}$ {command}\n{done.output}\n-> {done.code}"
        return done.output

    def start(self, command: str, user: str = "root") -> Daemon:
        """Start a daemon, which is not ready when this returns."""
        number = len(self.daemons) + 1
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ready.bind(str(self.folder / "exchange" / str(number)))
        (self.folder / "exchange" / str(number)).chmod(0o777)
        log = self.folder / f"daemon-{number}.log"
        told = f"export NOTIFY_SOCKET={_EXCHANGE}/{number}\n{command}"
        with log.open("wb") as output:
            process = self._spawn(self._shell(told, user), output)
        daemon = Daemon(command, process, log, ready)
        self.daemons.append(daemon)
        return daemon

    def write(self, path: str, text: str) -> None:
        """Write a file, and make the folder that it lies in."""
        done = subprocess.run(
            [*self._inside(), "sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1"', "write", path],
            input=text,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def _spawn(self, command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )

    def _inside(self) -> list[str]:
        assert self._first is not None
        # The child of unshare is the first process of the host; its parent keeps the old root.
        (first,) = _children(self._first.pid)
        return ["nsenter", "-t", str(first), "-m", "-u", "-n", "-p", "-r", "-w", "--"]

    def _shell(self, command: str, user: str) -> list[str]:
        login = ["sh", "-lc", command]
        if user != "root":
            login = ["setpriv", "--reuid", user, "--regid", user, "--init-groups", *login]
        home = ROOTS_HOME if user == "root" else "/var/lib/hdfs"
        place = ["env", "-i", f"HOME={home}", "TERM=dumb", "LC_ALL=C.UTF-8", _PATH]
        return [*self._inside(), *place, *login]


@dataclass(slots=True)
class Lab:
    """All hosts, and what the name server does."""

    hosts: Mapping[str, Host]
    folder: Path
    run_id: str

    def names_are(self, mode: str) -> None:
        """Set how the name server answers: right, slow, silent or wrong."""
        _replace(self.folder / "mode", mode)

    def kept_logs(self) -> str:
        return "\n".join(
            f"== {host.name}: {daemon.command}\n{daemon.said()}"
            for host in self.hosts.values()
            for daemon in host.daemons
        )


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Lab]:
    """Run the hosts with nothing on them but this checkout in /opt/nnha, for a ``with``."""
    folder.mkdir(exist_ok=True)
    net = Network(f"lab{os.getpid()}", ADDRESSES)
    hosts = {name: Host(name, folder / name, net) for name in ADDRESSES if name != NAMES}
    lab = Lab(hosts, folder, net.run_id)
    lab.names_are("right")
    server = None
    try:
        net.up()
        server = _start_name_server(net, folder)
        for host in hosts.values():
            host.boot()
            _furnish(host)
        _let_in(hosts)
        yield lab
    finally:
        for host in hosts.values():
            host.halt()
        if server is not None:
            server.terminate()
            server.wait()
        network.remove(net.run_id)


def _start_name_server(net: Network, folder: Path) -> subprocess.Popen[bytes]:
    ready = folder / "names-ready"
    server = subprocess.Popen(
        [
            *net.inside(NAMES),
            sys.executable,
            "-m",
            "tests.hosts.name_server",
            net.addresses[NAMES],
            str(folder / "mode"),
            str(ready),
        ],
        cwd=ROOT,
    )
    wait_until(ready.exists, what="the name server", deadline_seconds=READY_SECONDS)
    return server


def _furnish(host: Host) -> None:
    """Give a host what an administrator's machine has: names, a name server, nnha, sshd."""
    table = "".join(f"{address} {name}\n" for name, address in ADDRESSES.items() if name != NAMES)
    host.write("/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{table}")
    host.write("/etc/resolv.conf", f"nameserver {ADDRESSES[NAMES]}\n")
    host.write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    environment = shlex.quote(str(Path(sys.executable).parent.parent))
    host.must(f"rm -rf {INSTALLED} && ln -s {environment} {INSTALLED}")
    host.must(f"rm -rf {CHECKOUT} && ln -s {shlex.quote(str(ROOT))} {CHECKOUT}")
    host.write("/etc/profile.d/lab.sh", f"PATH={INSTALLED}/bin:$PATH\nexport PATH\n")
    # The interpreter and the checkout may lie below a folder of root's own.
    above = {*ROOT.parents, *Path(sys.executable).resolve().parents} - {Path("/")}
    host.must(f"chmod o+x {shlex.join(map(str, above))}")
    # What root of this machine runs at each login is not for the hosts.
    host.must("rm -rf /etc/nnha /data ~/.ssh ~/.bashrc ~/.profile ~/.bash_profile")
    host.must("ssh-keygen -A >/dev/null && /usr/sbin/sshd")


def _let_in(hosts: Mapping[str, Host]) -> None:
    """Let root of host4 log in everywhere, as the page asks for."""
    own = hosts["host4"]
    own.must("mkdir -m 700 ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519")
    key = own.must("cat ~/.ssh/id_ed25519.pub")
    known = ""
    for name, host in hosts.items():
        host.write(f"{ROOTS_HOME}/.ssh/authorized_keys", key)
        host.must("chmod 700 ~/.ssh && chmod 600 ~/.ssh/authorized_keys")
        known += f"{name} {host.must('cat /etc/ssh/ssh_host_ed25519_key.pub')}"
    own.write(f"{ROOTS_HOME}/.ssh/known_hosts", known)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def _replace(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)
