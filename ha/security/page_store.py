"""Java's stores of keys and certificates (PKCS#12), for JournalNodes over HTTPS.

``ssl-server.xml`` and ``ssl-client.xml`` name them, as for Hadoop's daemons.  A store is read again
when its file has changed; what cannot be read then changes nothing.
"""

import ssl
from pathlib import Path
from types import MappingProxyType
from typing import Final

import structlog
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import security as keys
from ha.conf.keys.key import Key
from ha.conf.reader import read_settings
from ha.security.tls_contexts import calling, serving, serving_all, trusting
from ha.security.tls_files import TlsFiles, stamp_of

log = structlog.get_logger()

_JAVAS_OWN: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How JKS and JCEKS begin."""


class BadStore(Exception):
    """A store that cannot be used; the message says why."""


class PageStore:
    """One store; ``context`` is for all connections to come.

    ``served``: for a listener, with a key; else of what a client trusts.  Raises BadStore, OSError.
    """

    def __init__(self, path: Path, password: str, *, served: bool) -> None:
        self._path, self._password, self._served = path, password, served
        self._stamp = stamp_of(path)
        self._newest = self._read()
        self.context = serving(self._current) if served else calling(self._current, None)

    def _current(self) -> ssl.SSLContext:
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            return self._newest
        self._stamp = stamp
        try:
            self._newest = self._read()
            log.info("security.store_changed", file=str(self._path))
        except (OSError, BadStore) as failure:
            log.warning(
                "security.store_kept",
                file=str(self._path), because=str(failure), meaning="what was in it stays in use",
            )  # fmt: skip
        return self._newest

    def _read(self) -> ssl.SSLContext:
        data, pem = self._path.read_bytes(), serialization.Encoding.PEM
        if data.startswith(_JAVAS_OWN):
            new = self._path.with_suffix(".p12")
            raise BadStore(
                "it is a JKS store, which Java alone reads. Convert it, and name the new one: "
                f"keytool -importkeystore -srckeystore {self._path} -destkeystore {new} "
                "-deststoretype PKCS12"
            )
        try:
            found = pkcs12.load_pkcs12(data, self._password.encode())
            held = [one for one in (found.cert, *found.additional_certs) if one is not None]
            chain = b"".join(one.certificate.public_bytes(pem) for one in held)
            if not self._served:
                return trusting(chain)
            if found.key is None:
                raise BadStore("it has no private key")
            plain = serialization.NoEncryption()
            return serving_all(
                found.key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + chain
            )
        except (ValueError, ssl.SSLError) as failure:
            raise BadStore(str(failure)) from failure


def page_certificate(conf: Configuration, own: TlsFiles | None) -> TlsFiles | PageStore:
    """Return the certificate of pages that are served by HTTPS alone: ours, else Java's.

    Raises:
        ConfigurationError: there is none that can be used.
    """
    if conf.get(keys.HTTPS_NEEDS_CERTIFICATE):
        raise ConfigurationError(
            f"{conf.where(keys.HTTPS_NEEDS_CERTIFICATE)} is true, but nnha's pages ask for no "
            "certificate of a Java store: callers prove themselves by tickets (docs/kerberos.md). "
            "Set it to false for the JournalNode."
        )
    found = own or _store(conf, keys.SERVER_STORE_FILE, "ssl.server.keystore", served=True)
    if found is None:
        raise ConfigurationError(
            f"{conf.where(keys.HTTP_POLICY)} is HTTPS_ONLY, but there is no certificate. Name a "
            f"PKCS#12 file in {conf.get(keys.SERVER_STORE_FILE)}, as ssl.server.keystore.location, "
            f"or set {keys.TLS_DIR.name}."
        )
    return found


def trusted_pages(conf: Configuration) -> ssl.SSLContext:
    """Return a context to ask JournalNodes over HTTPS; without a store as the system trusts.

    Raises:
        ConfigurationError: there is a store that cannot be used.
    """
    found = None
    if conf.get(keys.TLS_DIR) is None:
        found = _store(conf, keys.CLIENT_STORE_FILE, "ssl.client.truststore", served=False)
    return trusting(None) if found is None else found.context


def _store(conf: Configuration, key: Key[str], name: str, *, served: bool) -> PageStore | None:
    file = (conf.folder or Path()) / conf.get(key)
    said = {one.name: one for one in read_settings(file)} if file.exists() else {}
    site = Configuration(MappingProxyType({**conf.settings, **said}), conf.environment)
    path, password = site.raw(f"{name}.location"), site.raw(f"{name}.password")
    if not path:
        return None
    try:
        return PageStore(Path(path), password or "", served=served)
    except (OSError, BadStore) as failure:
        why = str(failure)
    raise ConfigurationError(  # with no OSError behind it: a person must act
        f"{file}: {name}.location is {path}, with {name}.password of the same file (no credential "
        f"provider is asked), but that cannot be used: {why}"
    )
