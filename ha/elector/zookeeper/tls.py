"""Connects to ZooKeeper with TLS: PEM files, a check of the server's name, reasons of errors.

kazoo's TLS checks no host name by default, allows TLS 1.0, trusts the system's authorities in
addition to the configured one, and reports each failure as a timeout
(docs/reference/kazoo.md#tls).
"""

import socket
import ssl
from pathlib import Path

from ha.conf.errors import ConfigurationError
from ha.record import dataclass, field

_NOT_PEM = (".jks", ".p12", ".pfx", ".bcfks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The trusted authorities, and the client certificate, if any."""

    trusted: Path | None = None
    """None: the system's authorities."""
    certificate: Path | None = None
    private_key: Path | None = None
    """None: it is in the certificate's file."""
    password: str = field(default="", repr=False)
    check_host_name: bool = True

    def __post_init__(self) -> None:
        for path in (self.trusted, self.certificate, self.private_key):
            if path is not None and path.suffix.lower() in _NOT_PEM:
                raise ConfigurationError(
                    f"{path}: a key store of Java's; this needs PEM. Convert it once: "
                    f"keytool -importkeystore -srckeystore {path.name} -destkeystore store.p12 "
                    f"-deststoretype PKCS12 && openssl pkcs12 -in store.p12 -out store.pem"
                )


def context_of(tls: Tls) -> ssl.SSLContext:
    """Make a context from the files.  Raises ConfigurationError with the bad file and reason."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_host_name
    at = tls.trusted
    try:
        if at is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            context.load_verify_locations(at)
        if (at := tls.certificate) is not None:
            # A callback, never None: OpenSSL would prompt for a password at the terminal.
            context.load_cert_chain(at, tls.private_key, lambda: tls.password)
    except (OSError, ValueError) as failure:
        raise ConfigurationError(
            f"{at}: cannot use it for TLS to ZooKeeper: {reason_of(failure)}"
        ) from failure
    return context


def connect(
    tls: Tls, address: tuple[str, int], *, name: str, within_seconds: float
) -> ssl.SSLSocket:
    """Connect with TLS; the files are read each time, as certificates may have been renewed.

    Raises OSError with the reason, also for bad files: kazoo then tries the next server.
    """
    try:
        context = context_of(tls)
    except ConfigurationError as failure:
        # Anything but an OSError would end kazoo's thread.
        raise OSError(str(failure)) from failure
    plain = socket.create_connection(address, within_seconds)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise


def reason_of(failure: BaseException) -> str:
    """Describe the error of a connection for operators."""
    match failure:
        case ssl.SSLCertVerificationError():
            return f"the server's certificate is refused: {failure.verify_message}"
        case ssl.SSLError(reason=str() as reason):
            return f"TLS: {reason.lower().replace('_', ' ')}"
        case TimeoutError():
            return "no answer in time"
        case OSError(strerror=str() as text):
            return text
        case _:
            return str(failure) or type(failure).__name__
