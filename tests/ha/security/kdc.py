"""A Kerberos realm of its own on loopback: MIT's krb5kdc in a folder, without root."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import wait_until
from tests.needs import SEARCHED

REALM: Final = "NNHA.TEST"
START_SECONDS: Final = 30.0
PRINCIPALS: Final = (
    "nn/localhost",
    "jn/localhost",
    "dn/localhost",
    "HTTP/localhost",
    "alice",
    "bob",
)

_KRB5: Final = """\
[libdefaults]
 default_realm = {realm}
 rdns = false
 dns_canonicalize_hostname = false
 dns_lookup_kdc = false
 dns_lookup_realm = false
 udp_preference_limit = 1
 ticket_lifetime = {ticket_lifetime}
 clockskew = {clock_skew_seconds}
 forwardable = true
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
"""
_KDC: Final = """\
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/kadm5.acl
  max_life = {ticket_lifetime}
  supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
 }}
[logging]
 kdc = FILE:{folder}/kdc.log
"""


@dataclass(frozen=True, slots=True)
class Kdc:
    """A running KDC; ``environment`` makes Kerberos programs use it."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def krb5_conf(self) -> Path:
        return self.folder / "krb5.conf"

    def keytab(self, name: str) -> Path:
        """Return the file with a principal's keys."""
        return self.folder / f"{name.replace('/', '_')}.keytab"

    def make(self, *names: str) -> None:
        """Make principals, each with a keytab."""
        self._admin(
            *(f"addprinc -randkey {name}" for name in names),
            *(f"ktadd -k {self.keytab(name)} {name}" for name in names),
        )

    def make_short(self, *names: str, seconds: int) -> None:
        """Make principals whose tickets are good for that time."""
        self.make(*names)
        self._admin(*(f'modprinc -maxlife "{seconds} seconds" {name}' for name in names))

    def make_in(self, keytab: Path, *names: str) -> None:
        """Make principals whose keys lie in one file; those that there are keep theirs."""
        if not keytab.exists():
            self._admin(
                *(f"addprinc -randkey {name}" for name in names),
                *(f"ktadd -k {keytab} {name}" for name in names),
            )

    def renew_keys(self, name: str) -> None:
        """Give a principal new keys, and replace its keytab."""
        path = self.keytab(name)
        new = path.with_suffix(".new")
        self._admin(f"ktadd -k {new} {name}")
        new.rename(path)

    def add_keys(self, keytab: Path, *names: str) -> None:
        """Give principals new keys, in their file with the old ones: the first half of a roll."""
        self._admin(*(f"ktadd -k {keytab} {name}" for name in names))

    def drop_old_keys(self, keytab: Path, *names: str) -> None:
        """Leave only the newest keys of principals in their file: the second half.

        By a new file, as ``ktremove`` leaves holes, at which Hadoop's daemons do not start.
        """
        new = keytab.with_suffix(".new")
        self._admin(*(f"ktadd -norandkey -k {new} {name}" for name in names))
        new.rename(keytab)

    def kinit(self, name: str) -> Path:
        """Fetch a person's ticket; return the file of the ticket cache."""
        cache = self.folder / f"{name.replace('/', '_')}.cache"
        new = cache.with_suffix(".fresh")  # Java locks no cache that it reads
        self._run("kinit", "-k", "-t", str(self.keytab(name)), "-c", str(new), name)
        return new.rename(cache)

    def _admin(self, *lines: str) -> None:
        self._run("kadmin.local", text="".join(f"{line}\n" for line in lines))

    def _run(self, *command: str, text: str = "") -> None:
        program = shutil.which(command[0], path=SEARCHED)
        assert program is not None
        done = subprocess.run(
            [program, *command[1:]],
            input=text,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@contextmanager
def running_kdc(
    folder: Path, *, ticket_lifetime: str = "1h", clock_skew_seconds: int = 300
) -> Iterator[Kdc]:
    """Run a KDC whose tickets end after that time; servers take them for the skew after it."""
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    words = {
        "realm": REALM, "folder": folder, "port": port, "ticket_lifetime": ticket_lifetime,
        "clock_skew_seconds": clock_skew_seconds,
    }  # fmt: skip
    (folder / "krb5.conf").write_text(_KRB5.format(**words))
    (folder / "kdc.conf").write_text(_KDC.format(**words))
    environment = {
        "KRB5_CONFIG": str(folder / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
    }
    kdc = Kdc(folder, environment)
    kdc._run("kdb5_util", "create", "-s", "-P", "of the test", "-r", REALM)
    program = shutil.which("krb5kdc", path=SEARCHED)
    assert program is not None
    with subprocess.Popen(
        [program, "-n"], env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    ) as process:
        try:
            _await_port(port)
            kdc.make(*PRINCIPALS)
            yield kdc
        finally:
            process.kill()


@contextmanager
def silent_kdc(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Have a KDC that takes questions and answers none, until what is yielded is called."""
    with socket.create_server(("127.0.0.1", 0)) as listener, patch.context() as ours:
        port = listener.getsockname()[1]
        words = {"realm": REALM, "port": port, "ticket_lifetime": "1h", "clock_skew_seconds": 300}
        (folder / "silent.conf").write_text(_KRB5.format(**words))
        ours.setenv("KRB5_CONFIG", str(folder / "silent.conf"))
        yield listener.close


def _await_port(port: int) -> None:
    def answers() -> bool:
        with suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS).close()
            return True
        return False

    wait_until(answers, what="the KDC", deadline_seconds=START_SECONDS)
