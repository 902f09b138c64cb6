"""Who can reach a daemon: this machine only, unless the configuration says that strangers may.

Nothing proves who calls a port of ours, so a daemon that listens on another address than loopback
does not start before somebody has said that this is known (``nnha.security.mode``).
"""

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from ha.conf.configuration import Configuration
from ha.conf.hazards import Daemon
from ha.conf.keys.security import INSECURE, SECURITY_MODE
from ha.daemon.process import ExitWith

log = structlog.get_logger()

OPEN_TO_STRANGERS: Final = 78
"""Exit code of a daemon that would be open to strangers (EX_CONFIG): a person must decide, so a
supervisor should not start it again (systemd: RestartPreventExitStatus)."""


@dataclass(frozen=True, slots=True)
class Door:
    """One address that a daemon listens on; ``key`` names it in the configuration."""

    key: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.key}={host}:{self.port}"


def check_exposure(configuration: Configuration, daemon: Daemon, doors: Sequence[Door]) -> None:
    """Log the mode; refuse to listen where strangers call, unless the mode allows it.

    Nothing listens yet, and nothing was written.

    Raises:
        ConfigurationError: for a mode that there is not.
        ExitWith: 78, with what to do.
    """
    mode = configuration.get(SECURITY_MODE)
    reachable = [door for door in doors if not is_loopback(door.host)]
    shown = [str(door) for door in reachable]
    if mode == INSECURE:
        log.warning(
            "security.mode",
            mode=mode,
            daemon=daemon.value,
            reachable=shown,
            meaning="whoever reaches a port is believed; nothing is encrypted",
        )
        return
    if reachable:
        raise ExitWith(OPEN_TO_STRANGERS, _refusal(shown))
    log.info("security.mode", mode=mode, daemon=daemon.value, reachable=[])


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on ``host``, an address or a name.

    A name is whatever the resolver says now.  One that it does not know cannot be listened on
    either; that error is left to whoever tries.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    if not host:
        return False  # all interfaces
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    return all(ipaddress.ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)


def _refusal(doors: Sequence[str]) -> str:
    what = "is" if len(doors) == 1 else "are"
    return (
        f"refused to start: {' and '.join(doors)} {what} reachable from other machines, and "
        "nothing proves who calls. This version has neither certificates nor Kerberos yet. Listen "
        "on this machine only, with an address or a bind-host such as 127.0.0.1; or let only "
        "trusted hosts reach the port and say so in the configuration: "
        f"{SECURITY_MODE.name}={INSECURE}. Nothing was changed."
    )
