"""Certificates for tests: an authority, and folders of what it has signed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from ha.security.caller import Role
from ha.security.certificate_files import CA, CERT, KEY, REVOKED, new_folder, replace
from ha.security.certificates import CertificateRequest, Pair, issue, new_authority, now
from ha.security.names import CertifiedName
from ha.security.tls_files import TlsFiles

LOCAL = ("localhost", "127.0.0.1", "::1")
CHECK_SECONDS = 0.05
"""Of the folders here: tests wait for what a look does."""


@dataclass
class Authority:
    """Signs what tests need.  Folders lie below ``folder``."""

    folder: Path
    cluster: str = "c1"
    pair: Pair = field(init=False)

    def __post_init__(self) -> None:
        self.pair = new_authority(self.cluster, now() - timedelta(days=1))

    def files(
        self, wish: CertificateRequest, at: datetime, trusted: bytes = b""
    ) -> dict[str, bytes]:
        made = issue(self.pair, wish, at)
        return {CA: trusted or self.pair.certificate, CERT: made.certificate, KEY: made.key}

    def issue(
        self,
        role: Role,
        name: str,
        *,
        hosts: Sequence[str] = LOCAL,
        days: float = 7,
        at: datetime | None = None,
        cluster: str = "",
        trusted: bytes = b"",
        folder: str = "",
    ) -> Path:
        """Make a new folder for one certificate; ``at``: when it was signed."""
        wish = CertificateRequest(CertifiedName(cluster or self.cluster, role, name), hosts, days)
        out = self.folder / (folder or f"{role}-{name}")
        new_folder(out, self.files(wish, at or now(), trusted))
        return out

    def holder(self, role: Role, name: str, *, hosts: Sequence[str] = LOCAL) -> TlsFiles:
        return TlsFiles(self.issue(role, name, hosts=hosts), CHECK_SECONDS)


def revoke(folder: Path, *lines: str) -> None:
    replace(folder, {REVOKED: "".join(f"{line}\n" for line in lines).encode()})
