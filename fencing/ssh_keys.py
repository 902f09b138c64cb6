"""Reads sshfence's private keys, and checks certificates of hosts.

Separate from ``fencing.ssh``, so that ``nnha doctor`` opens a key file in the same way.
"""

import base64
import re
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_identity,
)

USER_CERTIFICATE: Final = "-cert.pub"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_OPENSSH: Final = b"-----BEGIN OPENSSH PRIVATE KEY"
_BEGIN: Final = re.compile(rb"^-----BEGIN ([A-Z0-9 ]+)-----", re.MULTILINE)


class BadKey(Exception):
    """A private key file cannot be used; the message names it and says what to do."""


def open_key(path: Path, passphrase: str | None) -> PrivateKey:
    """Return the private key in a file of OpenSSH's format, of PEM or of PKCS#8.

    Raises BadKey.
    """
    path = path.with_name(path.name.removesuffix(USER_CERTIFICATE))
    try:
        data = path.expanduser().read_bytes()
    except OSError as failure:
        raise BadKey(f"cannot read the private key {path}: {failure.strerror}") from failure
    load = load_ssh_private_key if _OPENSSH in data else load_pem_private_key
    key: object
    try:
        key = load(data, None)
    except TypeError as failure:  # so it is encrypted
        setting = "nnha.fencing.ssh.passphrase-file"
        if not passphrase:
            raise BadKey(f"the private key {path} is encrypted; set {setting}") from failure
        try:
            key = load(data, passphrase.encode())
        except (ValueError, UnsupportedAlgorithm) as wrong:
            raise BadKey(f"the passphrase in {setting} does not open {path}: {wrong}") from wrong
    except (ValueError, UnsupportedAlgorithm) as failure:
        raise BadKey(
            f"{path} is no private key that can be used: {_explain_unreadable(data)}"
        ) from failure
    if not isinstance(key, PrivateKey):
        raise BadKey(f"{path} is a key of a kind that ssh has not; use ed25519, ecdsa or rsa")
    return key


def _explain_unreadable(data: bytes) -> str:
    if data.startswith(b"PuTTY-User-Key-File"):
        return "it is PuTTY's → puttygen KEY -O private-openssh-new -o NEW"
    if data.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        return "it is a public key → name the file without .pub"
    begin = _BEGIN.search(data)
    what = f"after {begin[0].decode()} " if begin else ""
    return f"{what}it is not OpenSSH's format, PEM or PKCS#8 → make one with ssh-keygen"


def authority_of(certificate: bytes) -> bytes:
    """Return the public key that signed a host's certificate, both as bytes of SSH.

    Raises ValueError or UnsupportedAlgorithm if the bytes are no certificate.
    """
    line = _parse(certificate).signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1])


def fault_of_certificate(certificate: bytes, host: str, now: float) -> str:
    """Return why a host's certificate is not valid for it now; empty if it is.

    The signer is not checked.  Raises as ``authority_of``.
    """
    read = _parse(certificate)
    principals = [name.decode("utf-8", "replace").lower() for name in read.valid_principals]
    try:
        read.verify_cert_signature()
    except InvalidSignature:
        return "its signature is wrong"
    if read.type is not SSHCertificateType.HOST:
        return "it is one of a user"
    if not read.valid_after <= now < read.valid_before:
        return f"it is {'not valid yet' if now < read.valid_after else 'no longer valid'}"
    if principals and host.lower() not in principals:
        return f"it is for {', '.join(principals)}"
    if read.critical_options:
        return f"it has options that are not known: {', '.join(map(repr, read.critical_options))}"
    return ""


def _parse(certificate: bytes) -> SSHCertificate:
    size = int.from_bytes(certificate[:4])
    kind = certificate[4 : 4 + size]
    read = load_ssh_public_identity(kind + b" " + base64.b64encode(certificate))
    if not isinstance(read, SSHCertificate):
        raise ValueError("it is a key without a certificate")  # noqa: TRY004 - bad bytes
    return read
