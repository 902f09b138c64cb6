"""Certificates of a local cluster: an authority next to it, and a folder for each daemon."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from deploy.local.cluster.layout import Layout
from ha.security.caller import Role
from ha.security.certificate_files import CA, CA_KEY, CERT, KEY, new_folder, read_authority, replace
from ha.security.certificates import (
    MOST_DAYS,
    CertificateRequest,
    Pair,
    issue,
    new_authority,
    now,
    parse,
)
from ha.security.names import CertifiedName

CLUSTER: Final = "local"
ADMIN: Final = "admin"
WEB: Final = "web"
_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_RENEWED_BELOW: Final = 0.5
"""Of its life: a cluster that is kept gets new ones when it starts again."""


def authority_folder(layout: Layout) -> Path:
    """Return the folder of the authority; a cluster that has one is secure."""
    return layout.directory / "authority"


def tls_folder(layout: Layout, part: str) -> Path:
    """Return the folder of a daemon's certificate; ``admin`` is the person that types commands."""
    return layout.directory / "tls" / part


def make_certificates(layout: Layout) -> None:
    """Make what is missing or grows old; raises OSError."""
    folder = authority_folder(layout)
    if not folder.exists():
        make_authority(folder, now())
    authority = read_authority(folder)
    for part, role, name in identities(layout):
        own = tls_folder(layout, part)
        if own.exists() and parse((own / CERT).read_bytes()).left(now()) > _RENEWED_BELOW:
            continue
        certify(authority, own, role, name, _HOSTS, now())


def make_authority(folder: Path, at: datetime) -> None:
    """Make an authority in a new folder, as if at that time; raise OSError."""
    made = new_authority(CLUSTER, at)
    new_folder(
        folder, {CA_KEY: made.key, CA: made.certificate, "cluster-id": f"{CLUSTER}\n".encode()}
    )


def certify(
    authority: Pair, own: Path, role: Role, name: str, hosts: tuple[str, ...], at: datetime
) -> None:
    """Make or replace the certificate of one daemon or person; raise OSError."""
    wish = CertificateRequest(CertifiedName(CLUSTER, role, name), hosts, MOST_DAYS)
    pair = issue(authority, wish, at)
    files = {CA: authority.certificate, CERT: pair.certificate, KEY: pair.key}
    if own.exists():
        replace(own, files)
    else:
        new_folder(own, files)


def identities(layout: Layout) -> Iterator[tuple[str, Role, str]]:
    """Yield each part with the role and the name in its certificate, the administrator first."""
    yield ADMIN, Role.ADMIN, ADMIN
    yield WEB, Role.OPERATOR, WEB
    for name in layout.journalnodes:
        yield name, Role.JOURNALNODE, name
    for name in layout.namenodes:
        yield name, Role.NAMENODE, name
        yield f"zkfc-{name}", Role.ZKFC, name
    for name in layout.datanodes:
        yield name, Role.DATANODE, name
