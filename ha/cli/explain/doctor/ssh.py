"""Whether ``sshfence`` could log in from here: its keys, and the known key of the host."""

import stat
from importlib.util import find_spec
from pathlib import Path

from fencing import known_hosts
from fencing.known_hosts import Marker
from fencing.model import SshMethod
from fencing.ssh_settings import HostKeys, SshSettings
from ha.cluster.check_result import Finding, fail, ok, warn
from ha.conf.topology import NameNodeAddress, is_local


def ssh_finding(
    check: str, method: SshMethod, node: NameNodeAddress, settings: SshSettings
) -> Finding:
    """Check what a login needs on this machine; nothing is connected."""
    if find_spec("paramiko") is None:
        return fail(check, "sshfence needs paramiko", "pip install 'nnha[ssh]' on every host")
    if not settings.key_files and not settings.use_agent:
        return fail(check, "sshfence has no key", "set dfs.ha.fencing.ssh.private-key-files")
    for path in settings.key_files:
        if fault := _fault_of_key(check, path, settings.passphrase_file):
            return fault
    if settings.host_keys is HostKeys.STRICT:
        return _check_known_hosts(check, method, node.service.host, settings.known_hosts)
    return ok(check, "sshfence: the key is here; nnha fence test tries the login")


def _fault_of_key(check: str, path: Path, passphrase_file: Path | None) -> Finding | None:
    # It costs a process a tenth of a second to import, and most have no sshfence.
    from fencing.ssh_keys import BadKey, open_key

    try:
        mode = path.expanduser().stat().st_mode
    except OSError as error:
        found = f"sshfence: {path}: {error.strerror}"
        return fail(check, found, "put the key there, on every NameNode host")
    try:
        passphrase = passphrase_file and passphrase_file.expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        found = f"sshfence: the passphrase in {passphrase_file} cannot be read"
        return fail(check, found, "correct nnha.fencing.ssh.passphrase-file, or its mode")
    try:
        open_key(path, passphrase.rstrip("\n") if passphrase else None)
    except BadKey as error:
        return fail(check, f"sshfence: {error}", "correct dfs.ha.fencing.ssh.private-key-files")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return warn(check, f"sshfence: others may read {path}", f"chmod 600 {path}")
    return None


def _check_known_hosts(check: str, method: SshMethod, host: str, file: Path) -> Finding:
    path = file.expanduser()
    scan = f"ssh-keyscan -p {method.port} {host} >> {path}, after checking it"
    try:
        known = known_hosts.read_known_hosts(path.read_text("utf-8", "replace"))
    except FileNotFoundError:
        found = f"sshfence: there is no {path}, and nnha.fencing.ssh.host-keys is strict"
        return fail(check, found, scan)
    except OSError as error:
        return fail(check, f"sshfence: {path}: {error.strerror}", "let the ZKFC's user read it")
    if not known.of(host, method.port, Marker.NONE, Marker.AUTHORITY) and not is_local(host):
        skipped = "; ".join(("", *known.skipped))
        named = known_hosts.host_name(host, method.port)
        return warn(check, f"sshfence: {path} has no key of {named}{skipped}", scan)
    return ok(check, "sshfence: key and known hosts are here; nnha fence test tries the login")
