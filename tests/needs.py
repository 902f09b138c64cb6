"""What a machine may lack for a test; for ``./run test`` a skip for any other reason is a failure.

A skip's reason begins with the name of one need, so that the report can group the skips, and can
ask whether the machine has the thing after all.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NoReturn

import pytest

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import find_java
from tests import ROOT, TESTDATA
from tests.campaigns.soak.faults import network
from tests.interop import upstream_tests
from tests.interop.hadoop_jars import DISTCP, SERVER, JarsMissing, jar_of

_PREFIX: Final = "needs "
_SEPARATOR: Final = ": "
UNPACKED: Final = Path.home() / ".cache/nnha/prometheus/usr/bin"
"""Debian's package ``prometheus`` may be unpacked there (dpkg -x) instead of being installed."""
SEARCHED: Final = os.environ.get("PATH", "") + f":/usr/sbin:/sbin:{UNPACKED}"
"""Debian keeps sshd in a folder that only root has on its PATH."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that not every machine has."""

    name: str
    lacking: Callable[[], str]
    """What is not here and how to get it; empty where everything is here."""

    @property
    def here(self) -> bool:
        return not self.lacking()

    def reason(self, why: str = "") -> str:
        return f"{_PREFIX}{self.name}{_SEPARATOR}{why or self.lacking()}"

    def skip(self, why: str = "") -> NoReturn:
        """End the running test as skipped; as failed where the thing is here after all."""
        if self.here:
            pytest.fail(f"{self.name}: {why or 'a test could not use it'}, although it is here")
        pytest.skip(self.reason(why))

    @property
    def mark(self) -> pytest.MarkDecorator:
        """For a test, or for a whole module as its ``pytestmark``."""
        return pytest.mark.skipif(not self.here, reason=self.reason())


def _commands(advice: str, *names: str) -> str:
    missing = [name for name in names if shutil.which(name, path=SEARCHED) is None]
    return f"{', '.join(missing)} not found (Debian: {advice})" if missing else ""


def _packages(advice: str, *names: str) -> str:
    missing = [name for name in names if find_spec(name) is None]
    return f"{', '.join(missing)} cannot be imported ({advice})" if missing else ""


def _jar(artifact: str) -> str:
    if os.environ.get("NNHA_INTEROP") == "1":
        return ""  # somebody asked for it: what is in the way is a failure
    try:
        jar_of(artifact)
    except JarsMissing as missing:
        return str(missing)
    return ""


@cache
def _java_compiler() -> str:
    try:
        command = [str(find_java().executable), "--list-modules"]
        listed = subprocess.run(command, check=True, capture_output=True, timeout=30).stdout
    except (LocalClusterError, OSError, subprocess.SubprocessError) as problem:
        return f"there is no Java: {problem}"
    here = any(line.startswith(b"jdk.compiler") for line in listed.splitlines())
    return (
        "" if here else "this Java has no compiler (Debian: apt-get install default-jdk-headless)"
    )


def _testdata() -> str:
    return "" if TESTDATA.is_dir() else f"{TESTDATA} is not there (NNHA_TESTDATA names the folder)"


def _git() -> str:
    return "" if (ROOT / ".git").exists() else f"{ROOT} is not a git checkout"


@cache
def _mount() -> str:
    with TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=30)
            subprocess.run(["umount", folder], check=True, capture_output=True, timeout=30)
        except (OSError, subprocess.SubprocessError) as problem:
            return f"no file system can be mounted ({problem}); root may"
    return ""


STRANGER: Final = 1234
"""A uid that is neither root's nor ours, and need not be anybody's."""


@cache
def strangers_python() -> str | None:
    """Return a Python that another user can run; ours may lie in a folder of root's alone."""
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError, subprocess.SubprocessError):
            command = [python, "-I", "-S", "-c", ""]
            subprocess.run(command, check=True, timeout=30, **AS_STRANGER)
            return python
    return None


AS_STRANGER: Final[Mapping[str, Any]] = {"user": STRANGER, "group": STRANGER, "extra_groups": []}


def _stranger() -> str:
    if os.geteuid() != 0:
        return "no process of another user can be started; root may"
    return "" if strangers_python() else "another user can run no python3 (apt-get install python3)"


_SSHD: Final = ("sshd", "ssh-keygen", "fuser", "bash")
HADOOP_SERVER: Final = Need("Hadoop's server jar", partial(_jar, SERVER))
HADOOP_DISTCP: Final = Need("Hadoop's distcp", partial(_jar, DISTCP))
UPSTREAM_TESTS: Final = Need("Hadoop's own tests", upstream_tests.lacking)
UPSTREAM_KDC: Final = Need("Hadoop's own KDC", upstream_tests.lacking_kdc)
SSHD: Final = Need("sshd", partial(_commands, "apt-get install openssh-server psmisc", *_SSHD))
SSH_AGENT: Final = Need(
    "ssh-agent", partial(_commands, "apt-get install openssh-client", "ssh-agent")
)
GCC: Final = Need("gcc", partial(_commands, "apt-get install gcc", "gcc"))
JAVA_COMPILER: Final = Need("a Java compiler", _java_compiler)
FILES_OF_HADOOP: Final = Need("files that Hadoop wrote", _testdata)
PROMETHEUS: Final = Need(
    "prometheus", partial(_commands, "apt-get install prometheus", "prometheus", "promtool")
)
SYSTEMD: Final = Need(
    "systemd's tools", partial(_commands, "apt-get install systemd", "systemd-analyze")
)
_BOOT: Final = ("systemd-nspawn", "mmdebstrap", "unshare", "nsenter")


def _booted() -> str:
    if os.geteuid() != 0:
        return "only root can boot containers; this is uid " + str(os.geteuid())
    return _commands("apt-get install systemd-container mmdebstrap util-linux", *_BOOT) or _mount()


def _huge_pages() -> str:
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if release < (6, 1) or not enabled.exists() or "[never]" in enabled.read_text():
        return "the kernel makes no huge pages when it is asked to (Linux 6.1, not 'never')"
    return ""


BOOTED_SYSTEMD: Final = Need("a booted systemd", _booted)
HUGE_PAGES: Final = Need("huge pages", _huge_pages)
GIT: Final = Need("a git checkout", _git)
MOUNT: Final = Need("a file system of its own", _mount)
OTHER_USER: Final = Need("processes of another user", _stranger)
CHROMIUM_FLAGS: Final = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-quic", "--disable-component-update", "--disable-sync",
)  # fmt: skip
"""It sends requests only to the page that it is given."""


def chromium() -> str | None:
    """Return the browser's path; playwright's own is never fetched."""
    return shutil.which("chromium", path=SEARCHED) or shutil.which("chromium-browser")


def _chromium() -> str:
    if chromium() is None:
        return "chromium not found (Debian: apt-get install chromium)"
    return _packages("pip install -r tests/browser.txt", "playwright", "axe_playwright_python")


CHROMIUM: Final = Need("chromium", _chromium)
NAMESPACES: Final = Need("network namespaces", cache(network.lacking))
PURE_SASL: Final = Need(
    "pure-sasl", partial(_packages, "pip install -r tests/sasl.txt", "puresasl")
)
KDC: Final = Need(
    "a KDC",
    partial(
        _commands,
        "apt-get install krb5-kdc krb5-admin-server krb5-user",
        "krb5kdc", "kdb5_util", "kadmin.local", "kinit",
    ),
)  # fmt: skip
_PACKAGES: Final = {
    "nc.openbsd": "netcat-openbsd", "nc.traditional": "netcat-traditional", "ncat": "ncat",
    "busybox": "busybox", "zsh": "zsh", "tcsh": "tcsh", "fish": "fish", "sh": "dash",
    "dash": "dash", "bash": "bash",
}  # fmt: skip
COMMANDS: Final = {
    command: Need(command, partial(_commands, f"apt-get install {package}", command))
    for command, package in _PACKAGES.items()
}
"""The netcats and login shells that a fenced host may have."""

NEEDS: Final = {
    need.name: need
    for need in (
        *COMMANDS.values(),
        HADOOP_SERVER,
        HADOOP_DISTCP,
        UPSTREAM_TESTS,
        UPSTREAM_KDC,
        SSHD,
        SSH_AGENT,
        GCC,
        JAVA_COMPILER,
        FILES_OF_HADOOP,
        PROMETHEUS,
        SYSTEMD,
        BOOTED_SYSTEMD,
        GIT,
        MOUNT,
        OTHER_USER,
        NAMESPACES,
        PURE_SASL,
        KDC,
        CHROMIUM,
    )
}


def need_of(reason: str) -> Need | None:
    if not reason.startswith(_PREFIX):
        return None
    name, _, _ = reason.removeprefix(_PREFIX).partition(_SEPARATOR)
    return NEEDS.get(name)
