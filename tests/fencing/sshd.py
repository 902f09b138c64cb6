"""A real sshd on loopback with keys of its own, and a listener that holds a port."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fencing.fencer import fence
from fencing.model import FencingReport, SshMethod, Target
from fencing.ssh_settings import SshSettings
from tests import needs

PROGRAM = shutil.which("sshd", path=needs.SEARCHED)
USER = getpass.getuser()
needs_sshd = needs.SSHD.mark


@dataclass(frozen=True, slots=True)
class Sshd:
    """Where it listens, whom it lets in, and what it finds first on its PATH."""

    port: int
    key: Path
    known_hosts: Path
    commands: Path
    folder: Path

    def replace_command(self, name: str, script: str) -> None:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> Path:
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path)]
    subprocess.run(command, check=True)
    return path


@contextmanager
def sshd_in(folder: Path, *, more: str = "") -> Iterator[Sshd]:
    """Run an sshd until the block ends; ``more`` are lines for its configuration."""
    host_key = folder / "host_key"
    if not host_key.exists():
        make_key(host_key)
    key = make_key(folder / "id")
    commands = folder / "commands"
    commands.mkdir()
    shutil.copy(folder / "id.pub", folder / "authorized_keys")
    port = free_port()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile none\n"
        f"AuthorizedKeysFile {folder / 'authorized_keys'}\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"SetEnv PATH={commands}:/usr/bin:/bin\n{more}"
    )
    public = (folder / "host_key.pub").read_text().split()
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
    Path("/run/sshd").mkdir(exist_ok=True) if os.geteuid() == 0 else None
    assert PROGRAM is not None
    with (folder / "sshd.log").open("wb") as written:
        daemon = subprocess.Popen(
            [PROGRAM, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=written
        )
    try:
        wait_for_port(port, folder / "sshd.log")
        yield Sshd(port, key, known_hosts, commands, folder)
    finally:
        daemon.terminate()
        daemon.wait(10)


_LISTEN = (
    "import socket,time;s=socket.create_server(('127.0.0.1',0),backlog={queue});keep=[]\n"
    "for _ in range({held}):\n"
    "    c=socket.socket();c.setblocking(False);c.connect_ex(s.getsockname());keep.append(c)\n"
    "print(s.getsockname()[1],flush=True);time.sleep(600)"
)


@contextmanager
def listener(*, hangs: bool = False) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Hold a port; one that hangs has a full accept queue, so that connections get no answer."""
    code = _LISTEN.format(queue=0 if hangs else 5, held=6 if hangs else 0)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        process.stdout.close()


def settings(sshd: Sshd) -> SshSettings:
    return SshSettings(
        key_files=(sshd.key,),
        known_hosts=sshd.known_hosts,
        connect_timeout_seconds=20.0,
        command_timeout_seconds=20.0,
    )


async def fenced(
    sshd: Sshd, port: int, how: SshSettings | None = None, *, seconds: float = 60.0
) -> FencingReport:
    """Fence whoever holds a port of 127.0.0.1, over this sshd."""
    return await fence(
        [SshMethod(USER, sshd.port)],
        Target("ns1", "nn1", "127.0.0.1", port),
        environment={},
        method_timeout_seconds=seconds,
        total_timeout_seconds=seconds,
        ssh=how or settings(sshd),
    )


@contextmanager
def authorized(sshd: Sshd, *keys: Path, options: str = "") -> Iterator[None]:
    """Let these keys in, too, or with ``options`` its own key under them, until the block ends."""
    file = sshd.folder / "authorized_keys"
    before = file.read_text()
    more = "".join(Path(f"{key}.pub").read_text() for key in keys)
    file.write_text(f"{options} {before}" if options else before + more)
    try:
        yield
    finally:
        file.write_text(before)


@contextmanager
def agent_with(key: Path, address: Path) -> Iterator[str]:
    """Run an ssh-agent that holds a key, until the block ends; yield where it listens."""
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(address)], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10.0
        while not address.exists():
            assert time.monotonic() < end, "no ssh-agent"
            time.sleep(0.01)
        there = {**os.environ, "SSH_AUTH_SOCK": str(address)}
        subprocess.run(["ssh-add", "-q", str(key)], env=there, check=True, timeout=10)
        yield str(address)
    finally:
        agent.terminate()
        agent.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, log: Path, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < end, log.read_text()
        else:
            return
