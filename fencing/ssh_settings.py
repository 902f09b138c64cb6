"""The settings of ``sshfence``, separate from ``fencing.ssh``, whose import takes 14 MB."""

from enum import StrEnum
from pathlib import Path

from ha.record import dataclass


class HostKeys(StrEnum):
    """Which host keys are trusted."""

    STRICT = "strict"
    """Only those in the known-hosts file."""
    ACCEPT_NEW = "accept-new"
    """An unknown host's key is remembered; a changed one is refused."""
    OFF = "off"
    """Any, as in Hadoop: a host that answers at the address is not authenticated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """Keys, policy and limits of a login."""

    key_files: tuple[Path, ...] = ()
    known_hosts: Path = Path("~/.ssh/known_hosts")
    host_keys: HostKeys = HostKeys.STRICT
    use_agent: bool = False
    passphrase_file: Path | None = None
    connect_timeout_seconds: float = 30.0
    command_timeout_seconds: float = 10.0
