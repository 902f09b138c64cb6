"""``sshfence``: kill the NameNode that holds the target's port, over ssh.

paramiko blocks, so all of it runs in one thread; the event loop holds the deadline and, when it
passes, closes the connection under the thread.

See docs/reference/fencing.md#sshfence.
"""

import asyncio
import contextlib
import shlex
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import paramiko
import structlog
from paramiko.hostkeys import InvalidHostKey

from fencing.model import FencingOutcome, SshMethod, Target
from fencing.ssh_settings import HostKeys, SshSettings
from fencing.ssh_verdict import NOT_FOUND, Killed, Port, SshResult, judge_killed, judge_port
from ha.conf.own_user import system_user

log = structlog.get_logger()

MAX_OUTPUT_BYTES: Final = 16 * 1024
PROBE_SECONDS: Final = 2.0
GONE_WITHIN_SECONDS: Final = 1.0
"""How long a killed process may take to let go of its port."""
_PATH: Final = 'PATH="$PATH:/sbin:/usr/sbin" '


class _Failed(Exception):
    """The attempt ends here; the text says why."""


async def fence_over_ssh(
    method: SshMethod, target: Target, settings: SshSettings, *, deadline_seconds: float
) -> tuple[FencingOutcome, str, str]:
    """Kill whoever holds the target's port; outcome, detail and what the commands wrote."""
    session = _Session(method, target, settings)
    work = asyncio.create_task(asyncio.to_thread(session.run), name="sshfence")
    try:
        async with asyncio.timeout(deadline_seconds):
            verdict = await asyncio.shield(work)
    except TimeoutError:
        session.abort()
        detail = f"gave up after {deadline_seconds:.1f} s while {session.doing}"
        return FencingOutcome.TIMED_OUT, detail, session.output()
    finally:
        session.abort()
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
    return verdict.outcome, verdict.detail, session.output()


class _Session:
    """One login and its commands, on a thread of its own."""

    def __init__(self, method: SshMethod, target: Target, settings: SshSettings) -> None:
        self._method = method
        self._target = target
        self._settings = settings
        self._client = paramiko.SSHClient()
        self._said: list[str] = []
        self._aborted = False
        self.doing = "starting"

    def output(self) -> str:
        """Return the end of what the commands wrote."""
        return "\n".join(self._said)[-MAX_OUTPUT_BYTES:]

    def abort(self) -> None:
        """Close the connection; whatever the thread waits for fails now."""
        self._aborted = True
        with contextlib.suppress(Exception):
            self._client.close()

    def run(self) -> SshResult:
        """Log in, kill, look again."""
        try:
            self._log_in()
            return self._kill()
        except _Failed as failure:
            return SshResult(FencingOutcome.FAILED, str(failure))
        except (OSError, EOFError, paramiko.SSHException) as failure:
            return SshResult(
                FencingOutcome.FAILED, f"ssh failed while {self.doing}: {_told(failure)}"
            )
        finally:
            self._client.close()

    def _log_in(self) -> None:
        settings, host, port = self._settings, self._target.host, self._method.port
        user = self._method.user or system_user()
        self.doing = f"logging in at {user}@{host}:{port}"
        self._trust()
        try:
            self._client.connect(
                host,
                port,
                username=user,
                key_filename=[str(path.expanduser()) for path in settings.key_files] or None,
                passphrase=self._passphrase(),
                timeout=settings.connect_timeout_seconds,
                banner_timeout=settings.connect_timeout_seconds,
                auth_timeout=settings.connect_timeout_seconds,
                allow_agent=settings.use_agent,
                look_for_keys=False,
            )
        except paramiko.BadHostKeyException as failure:
            raise _Failed(
                f"the host key of {host} has changed ({failure.key.get_name()}); if that is meant, "
                f"correct {settings.known_hosts}"
            ) from failure
        except paramiko.PasswordRequiredException as failure:
            raise _Failed(
                f"a private key is encrypted: {failure}; set nnha.fencing.ssh.passphrase-file"
            ) from failure
        except paramiko.AuthenticationException as failure:
            offered = ", ".join(map(str, settings.key_files)) or "no key file"
            raise _Failed(f"{user}@{host} refused us ({offered}): {_told(failure)}") from failure

    def _trust(self) -> None:
        settings, known = self._settings, self._settings.known_hosts.expanduser()
        match settings.host_keys:
            case HostKeys.STRICT:
                self._client.set_missing_host_key_policy(_RefuseUnknown(known))
            case HostKeys.ACCEPT_NEW:
                known.parent.mkdir(parents=True, exist_ok=True)
                known.touch(exist_ok=True)
                self._client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
            case HostKeys.OFF:
                self._client.set_missing_host_key_policy(_TrustAnybody())
                return
        if not known.exists():
            return
        try:
            self._client.load_host_keys(str(known))
        except (InvalidHostKey, ValueError) as failure:
            raise _Failed(
                f"a line of {settings.known_hosts} is no host key: {failure}"
            ) from failure

    def _passphrase(self) -> str | None:
        path = self._settings.passphrase_file
        if path is None:
            return None
        if path.expanduser().stat().st_mode & 0o077:
            raise _Failed(f"others can read the passphrase in {path}; chmod it to 600")
        try:
            return path.expanduser().read_text("utf-8").rstrip("\n")
        except UnicodeDecodeError:
            # The error itself would show the passphrase.
            raise _Failed(f"the passphrase in {path} is no UTF-8") from None

    def _kill(self) -> SshResult:
        port = shlex.quote(str(self._target.port))
        self.doing = f"killing the process on port {port}"
        status, out = self._command(f"{_PATH}fuser -k -n tcp {port}")
        killed = Killed(status, _pids(out))
        left = self._who_is_left(killed, port) if status == 0 else frozenset[int]()
        verdict = judge_killed(killed, left)
        if verdict is not None:
            return verdict
        self.doing = f"checking whether port {port} is closed"
        return judge_port(self._probe_there(), self._probe_from_here())

    def _who_is_left(self, killed: Killed, port: str) -> frozenset[int]:
        end = time.monotonic() + GONE_WITHIN_SECONDS
        while True:
            _, out = self._command(f"{_PATH}fuser -n tcp {port}")
            left = _pids(out)
            if not killed.pids & left or time.monotonic() > end:
                return left

    def _probe_there(self) -> Port:
        """Probe with nc, as Hadoop does, or with bash where there is no nc.

        Any other status leaves the port unknown.
        """
        host, port = shlex.quote(self._target.host), shlex.quote(str(self._target.port))
        seconds = int(PROBE_SECONDS)
        status, _ = self._command(f"{_PATH}nc -w {seconds} -z {host} {port}")
        if status == NOT_FOUND:
            inner = shlex.quote(f"exec 3<>/dev/tcp/{self._target.host}/{self._target.port}")
            status, _ = self._command(f"{_PATH}timeout {seconds} bash -c {inner}")
        return {0: Port.LISTENS, 1: Port.CLOSED}.get(status, Port.UNKNOWN)

    def _probe_from_here(self) -> Port:
        try:
            address = (self._target.host, self._target.port)
            with socket.create_connection(address, timeout=PROBE_SECONDS):
                return Port.LISTENS
        except ConnectionRefusedError:
            return Port.CLOSED
        except OSError:
            return Port.UNKNOWN

    def _command(self, command: str) -> tuple[int, str]:
        """Run one command with its deadline; its status and what it wrote to stdout."""
        if self._aborted:
            raise _Failed("the time was up")
        timeout = self._settings.command_timeout_seconds
        _, stdout, stderr = self._client.exec_command(command, timeout=timeout)
        end = time.monotonic() + timeout
        out = stdout.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace")
        err = stderr.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace")
        if not stdout.channel.status_event.wait(max(0.0, end - time.monotonic())):
            raise _Failed(f"{command.removeprefix(_PATH)} did not end within {timeout:g} s")
        status = stdout.channel.recv_exit_status()
        for name, text, tell in (("stdout", out, log.info), ("stderr", err, log.warning)):
            self._note(name, text, tell)
        return status, out

    def _note(self, stream: str, text: str, tell: Callable[..., object]) -> None:
        for line in text.splitlines():
            if line.strip():
                tell(f"fencing.{stream}", host=self._target.host, line=line.strip())
                self._said.append(line.strip())


class _RefuseUnknown:
    """A host that is not in the file is not trusted."""

    def __init__(self, known_hosts: Path) -> None:
        self._known_hosts = known_hosts

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        """Refuse, and say how the key gets in."""
        del client
        raise _Failed(
            f"the host key of {hostname} ({key.get_name()} {key.fingerprint}) is not in "
            f"{self._known_hosts}; add it (ssh-keyscan), or set nnha.fencing.ssh.host-keys"
        )


class _TrustAnybody:
    """Trusts any host, as Hadoop does."""

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        """Say so, and go on."""
        del client
        log.warning("fencing.host_key_unchecked", host=hostname, key=key.get_name())


def _pids(out: str) -> frozenset[int]:
    return frozenset(int(word) for word in out.split() if word.isascii() and word.isdecimal())


def _told(failure: BaseException) -> str:
    if isinstance(failure, TimeoutError | socket.timeout):
        return "no answer in time"
    return str(failure) or type(failure).__name__
