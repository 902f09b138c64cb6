"""Certificates for the hosts of a cluster under faults, and its password for ZooKeeper."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from deploy.local.cluster.certificates import ADMIN, certify, make_authority
from ha.conf.keys.cluster import ZOOKEEPER_AUTH
from ha.conf.keys.security import SECURITY_MODE, TLS_DIR, Mode
from ha.security.caller import Role
from ha.security.certificate_files import read_authority
from ha.security.certificates import now
from ha.security.tls_files import TlsFiles
from tests.campaigns.soak.faults.hosts import (
    DATANODES,
    JOURNALNODES,
    NAMENODES,
    address,
    zkfc_of,
)
from tests.ha.security.acting import acting_as

AGE: Final = timedelta(days=2)
"""Of the certificates: a host whose clock is a day behind must not find that they are to come."""
LOOKED_AT_SECONDS: Final = 10.0
CLIENT: Final = "root"
"""Clients change owners, which only the superuser may, and may call under their own name alone."""


def tls_folder(directory: Path, part: str = "") -> Path:
    """Return the certificate of a process, of the administrator, or of all clients."""
    return directory / "tls" / part


def make_certificates(directory: Path) -> Mapping[str, str]:
    """Make all of them, and a password; return the keys of hdfs-site.xml.  Raise OSError."""
    folder = directory / "authority"
    made = now() - AGE
    make_authority(folder, made)
    authority = read_authority(folder)
    for part, role, name, hosts in _identities():
        certify(authority, tls_folder(directory, part), role, name, hosts, made)
    word = directory / "zookeeper-auth"
    word.touch(mode=0o600)
    word.write_text(f"digest:hdfs:{secrets.token_hex(16)}\n")
    return {
        SECURITY_MODE.name: Mode.STRICT,
        TLS_DIR.name: str(tls_folder(directory)),
        ZOOKEEPER_AUTH.name: f"@{word}",
    }


def _identities() -> Iterator[tuple[str, Role, str, tuple[str, ...]]]:
    """Yield each part with the role and the name in its certificate, and where it may answer."""
    yield ADMIN, Role.ADMIN, ADMIN, ()
    yield CLIENT, Role.CLIENT, CLIENT, ()
    for host in JOURNALNODES:
        yield host, Role.JOURNALNODE, host, (address(host),)
    for host in DATANODES:
        yield host, Role.DATANODE, host, (address(host),)
    for host in NAMENODES:
        yield host, Role.NAMENODE, host, (address(host),)
        yield zkfc_of(host), Role.ZKFC, host, (address(host),)


@contextmanager
def calling_under(folder: Path | None) -> Iterator[None]:
    """Call others under this certificate for a while; None: in plain."""
    if folder is None:
        yield
        return
    with acting_as(TlsFiles(folder, LOOKED_AT_SECONDS), Mode.STRICT):
        yield
