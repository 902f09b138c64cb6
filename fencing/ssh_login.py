"""Logs in over ssh: checks the host key, and offers the private keys.

See docs/reference/fencing.md#known-hosts.
"""

import base64
import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import paramiko
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fencing import known_hosts
from fencing.known_hosts import KnownHosts
from fencing.ssh_keys import (
    USER_CERTIFICATE,
    BadKey,
    authority_of,
    fault_of_certificate,
    open_key,
)
from fencing.ssh_settings import HostKeys, SshSettings
from ha.record import dataclass

log = structlog.get_logger()


class SshFailed(Exception):
    """sshfence has failed; the text says why."""


def log_in(
    client: paramiko.SSHClient, user: str, host: str, port: int, settings: SshSettings
) -> None:
    """Connect, check the host's key, and authenticate.

    Raises SshFailed, or paramiko's errors if the network or the protocol fails.
    """
    known = _read(settings)
    keys, faults = _private_keys(settings)
    client.set_missing_host_key_policy(_HostCheck(settings, known, host, port))
    client.connect(
        host,
        port,
        username=user,
        timeout=settings.connect_timeout_seconds,
        banner_timeout=settings.connect_timeout_seconds,
        auth_timeout=settings.connect_timeout_seconds,
        transport_factory=_transport_preferring(known.kinds(host, port)),
        auth_strategy=_Proof(f"{user}@{host}", user, keys, faults, agent=settings.use_agent),
    )


def _read(settings: SshSettings) -> KnownHosts:
    path = settings.known_hosts.expanduser()
    if settings.host_keys is HostKeys.OFF or not path.exists():
        return KnownHosts()
    known = known_hosts.read_known_hosts(path.read_text("utf-8", "replace"))
    for why in known.skipped:
        log.warning("fencing.known_hosts.skipped", file=str(path), why=why)
    return known


def _private_keys(settings: SshSettings) -> tuple[dict[str, paramiko.PKey], list[str]]:
    """Return the keys by file name, and why each other file cannot be used."""
    passphrase = _passphrase(settings.passphrase_file)
    keys, faults = dict[str, paramiko.PKey](), list[str]()
    for path in settings.key_files:
        try:
            keys[str(path)] = _private_key(path.expanduser(), passphrase)
        except BadKey as failure:
            log.warning("fencing.key_unusable", why=str(failure))
            faults.append(str(failure))
    return keys, faults


def _private_key(path: Path, passphrase: str | None) -> paramiko.PKey:
    opened = open_key(path, passphrase)
    kinds = {rsa.RSAPrivateKey: paramiko.RSAKey, ec.EllipticCurvePrivateKey: paramiko.ECDSAKey}
    kind = next((of for one, of in kinds.items() if isinstance(opened, one)), paramiko.Ed25519Key)
    # paramiko reads fewer formats than cryptography, and this one for each kind.
    text = opened.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    certificate = Path(str(path).removesuffix(USER_CERTIFICATE) + USER_CERTIFICATE)
    try:
        key: paramiko.PKey = kind.from_private_key(io.StringIO(text))
        if certificate.exists():
            key.load_certificate(str(certificate))
    except (paramiko.SSHException, ValueError, OSError) as failure:
        raise BadKey(f"{path}, or {certificate.name}, cannot be used: {failure}") from failure
    return key


def _passphrase(path: Path | None) -> str | None:
    if path is None:
        return None
    if path.expanduser().stat().st_mode & 0o077:
        raise SshFailed(f"others can read the passphrase in {path}; chmod it to 600")
    try:
        return path.expanduser().read_text("utf-8").rstrip("\n")
    except UnicodeDecodeError:
        # The error itself would show the passphrase.
        raise SshFailed(f"the passphrase in {path} is no UTF-8") from None


def _transport_preferring(kinds: Sequence[str]) -> Callable[..., paramiko.Transport]:
    """Return a transport factory that prefers the kinds of host key that we can check."""

    def connection(sock: object, **how: object) -> paramiko.Transport:
        transport = paramiko.Transport(sock, **how)
        options = transport.get_security_options()
        usual = list(options.key_types)
        by_kind = {
            known_hosts.CERTIFICATE: [f"{one}{known_hosts.CERTIFICATE}" for one in usual],
            "ssh-rsa": [one for one in usual if one.startswith("rsa-")],
        }
        first = [one for kind in kinds for one in by_kind.get(kind, [kind] * (kind in usual))]
        options.key_types = list(dict.fromkeys([*first, *usual]))
        return transport

    return connection


@dataclass(frozen=True, slots=True)
class _Proof:
    """Offers each key until the host accepts one; an ``auth_strategy`` of paramiko."""

    whom: str
    user: str
    keys: dict[str, paramiko.PKey]
    faults: list[str]
    agent: bool

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Raise SshFailed if no key is accepted, with the reason for every file."""
        said = [] if self.faults else ["no key → set dfs.ha.fencing.ssh.private-key-files"]
        agent = paramiko.Agent() if self.agent else None
        try:
            for key in (*self.keys.values(), *(agent.get_keys() if agent else ())):
                try:
                    more = transport.auth_publickey(self.user, key)
                except paramiko.AuthenticationException as failure:
                    said = [str(failure) or type(failure).__name__]
                    continue
                if not more:
                    return
                said = [f"it asks for more than a key: {', '.join(more)}"]
        finally:
            if agent:
                agent.close()
        offered = ", ".join(self.keys) or ("keys of the agent" if self.agent else "no key file")
        raise SshFailed(f"{self.whom} refused us ({offered}): {'; '.join([*self.faults, *said])}")


@dataclass(frozen=True, slots=True)
class _HostCheck:
    """Checks the host's key; a policy of paramiko, which gets no known hosts itself."""

    settings: SshSettings
    known: KnownHosts
    host: str
    port: int

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        """Raise SshFailed if the key must not be trusted."""
        del client
        if self.settings.host_keys is HostKeys.OFF:
            log.warning("fencing.host_key_unchecked", host=hostname, key=key.get_name())
            return
        named = f"the host key of {hostname} ({key.get_name()} {key.fingerprint})"
        file, policy = self.settings.known_hosts, self.settings.host_keys
        match self._judge(key):
            case known_hosts.Refused(why):
                raise SshFailed(
                    f"{named} has changed, or is revoked: {why}; if that is meant, correct {file}"
                )
            case known_hosts.Trust.UNKNOWN if policy is HostKeys.STRICT:
                skipped = "; ".join(("", *self.known.skipped))
                raise SshFailed(
                    f"{named} is not in {file}; add it (ssh-keyscan), or set "
                    f"nnha.fencing.ssh.host-keys{skipped}"
                )
            case known_hosts.Trust.UNKNOWN:
                self._remember(hostname, key)
            case known_hosts.Trust.KNOWN | known_hosts.Trust.SIGNED:
                pass

    def _judge(self, key: paramiko.PKey) -> known_hosts.Trust | known_hosts.Refused:
        certificate: bytes = key.public_blob.key_blob if key.public_blob else b""
        try:
            signer = authority_of(certificate) if certificate else None
            trust = known_hosts.judge(self.known, self.host, self.port, key.asbytes(), signer)
            if trust is not known_hosts.Trust.SIGNED:
                return trust
            fault = fault_of_certificate(certificate, self.host, time.time())
        except (ValueError, UnsupportedAlgorithm) as failure:
            return known_hosts.Refused(f"its certificate cannot be read: {failure}")
        return known_hosts.Refused(f"its certificate: {fault}") if fault else trust

    def _remember(self, hostname: str, key: paramiko.PKey) -> None:
        """Append the key to the known-hosts file."""
        path = self.settings.known_hosts.expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        line = f"{hostname} {key.get_name()} {base64.b64encode(key.asbytes()).decode()}\n"
        with path.open("a+b") as file:
            file.seek(0)
            whole = not (before := file.read()) or before.endswith(b"\n")
            file.write((line if whole else f"\n{line}").encode())
        log.info("fencing.host_key_remembered", host=hostname, key=key.get_name(), file=str(path))
