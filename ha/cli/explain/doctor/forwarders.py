"""Check of ``nnha doctor``: programs that carry strangers' connections here under a trusted user.

What a forwarding program of root carries is root's for the kernel.  Those of this machine are seen,
by their command lines: none whose rules stand in a file, nothing that comes into a container.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ha.cluster.check_result import Finding, warn
from ha.conf.configuration import Configuration
from ha.conf.keys.security import SECURITY_MODE, TLS_DIR, Mode
from ha.conf.topology import namenodes

FORWARDS: Final = {
    "docker-proxy": "", "rootlessport": "", "conmon": "", "socat": "", "redir": "", "rinetd": "",
    "ncat": "", "nc": "", "kubectl": "port-forward", "oc": "port-forward", "ssh": "-[gfNTnq]*[LR]",
    "autossh": "-[gfNTnq]*[LR]", "stunnel": "", "stunnel4": "",
}  # fmt: skip
"""Programs, and what else must stand in their command line."""
_ADVICE: Final = (
    "where anything forwards to a daemon's port: certificates, and nnha.security.mode=strict "
    "(docs/security.md#what-forwards-connections)"
)


def check_forwarders(
    configuration: Configuration,
    nameservice: str,
    *,
    processes: Path = Path("/proc"),
    environment: Mapping[str, str] = os.environ,
) -> Iterator[Finding]:
    """Warn of programs that make strangers a trusted user, where the kernel names the caller."""
    if configuration.get(SECURITY_MODE) is Mode.STRICT and configuration.get(TLS_DIR) is not None:
        return
    if "KUBERNETES_SERVICE_HOST" in environment:
        yield warn(
            "forwarded ports",
            "this is a pod: whoever may kubectl port-forward to it calls its daemons as root, and "
            "a sidecar as its own user",
            _ADVICE,
        )
    ports = {
        address.port
        for node in namenodes(configuration, nameservice)
        for address in (node.rpc, node.service, node.http, node.zkfc, node.zkfc_http)
    }
    for name, pid, uid, port in _forwarders(processes, ports):
        yield warn(
            "forwarded ports",
            f"{name} (process {pid}, uid {uid}) names port {port} of a daemon: whoever reaches it "
            f"is uid {uid} for that daemon",
            _ADVICE,
        )


def _forwarders(processes: Path, ports: set[int]) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, pid, uid and port of trusted programs that forward to one of these ports."""
    for folder in sorted(processes.glob("[0-9]*"), key=lambda one: int(one.name)):
        try:
            uid = folder.stat().st_uid
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has ended, or is not to be seen
        name, line = Path(words[0]).name, " ".join(words[1:])
        needed = FORWARDS.get(name)
        if needed is None or uid not in (0, os.geteuid()) or not re.search(needed, line):
            continue
        for port in sorted(ports):
            if re.search(rf"(?<![\d.]){port}(?![\d.])", line):
                yield name, int(folder.name), uid, port
                break
