"""The certificate under which this process calls others, for every client in it.

A process is one daemon or one command, and so has one.  It is set once at the start, before
anything is called; without one, calls go out in plain.
"""

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.security import HTTP_POLICY, TLS_CHECK_INTERVAL, TLS_DIR, Mode, https_only
from ha.record import dataclass
from ha.security.caller import Role

if TYPE_CHECKING:
    from ha.security.tls_files import TlsFiles


_CERT = "cert.pem"


@dataclass(frozen=True, slots=True)
class OwnTls:
    """``plain_too``: a server that speaks no TLS is called in plain, as ``permissive`` says."""

    files: "TlsFiles"
    plain_too: bool = False


_own: OwnTls | None = None
_pages: ssl.SSLContext | None = None


def configured(conf: Configuration, *roles: Role) -> "TlsFiles | None":
    """Return the certificates of the first of these roles that has any; None without TLS.

    Raises:
        NoCertificates: they cannot be used, or there are none for these roles.
    """
    base = conf.get(TLS_DIR)
    if base is None:
        return None
    # Loaded here: certificates take 13 MB, and most processes have none.
    from ha.security.tls_files import TlsFiles

    return TlsFiles(_home(Path(base), roles), conf.get(TLS_CHECK_INTERVAL))


def _home(base: Path, roles: tuple[Role, ...]) -> Path:
    for role in roles:
        if (base / role / _CERT).exists():
            return base / role
    return base if (base / _CERT).exists() else base / roles[0]


def act_as(files: "TlsFiles | None", mode: Mode) -> None:
    """Call others under this certificate from now on."""
    global _own
    _own = None if files is None else OwnTls(files, plain_too=mode is Mode.PERMISSIVE)


def own_tls() -> OwnTls | None:
    """Return the certificate under which others are called; None: in plain."""
    return _own


def context_for(role: Role | None) -> ssl.SSLContext | None:
    """Return a context to connect to a server of that role (None: any); None: in plain."""
    return None if _own is None else _own.files.client(role)


def ask_pages_as_configured(conf: Configuration) -> None:
    """Fetch segments from JournalNodes over HTTPS from now on, where dfs.http.policy says so.

    Raises ``ConfigurationError`` for a store of trusted certificates that cannot be used.
    """
    global _pages
    _pages = None
    if not https_only(conf.get(HTTP_POLICY)):
        return
    try:
        from ha.security.page_store import trusted_pages
    except ModuleNotFoundError as missing:
        where = conf.where(HTTP_POLICY)
        raise ConfigurationError(
            f"{where} needs {missing.name}: pip install 'nnha[tls]'."
        ) from missing

    _pages = trusted_pages(conf)


def segment_context() -> ssl.SSLContext | None:
    """Return a context to fetch segments; None: no certificate but the system's is trusted."""
    return context_for(Role.JOURNALNODE) or _pages


def segment_scheme() -> str:
    """Return the scheme of segments on JournalNodes, as dfs.http.policy says it."""
    return "http" if _pages is None else "https"


def ending_certificates() -> tuple[str, ...]:
    """Return which certificates end soon, as far as this process has seen any."""
    return () if _own is None else _own.files.ending()


def scheme() -> str:
    """Return the scheme of the pages that this process asks for."""
    return "http" if _own is None else "https"


def secure_url(url: str) -> str:
    """Return a page's address as this process asks for it; others may write it without TLS."""
    return f"https://{url[7:]}" if _own is not None and url.startswith("http://") else url


def falls_back(failure: OSError) -> bool:
    """Return whether to call in plain next: the other end knows nothing of TLS, and may."""
    return (
        _own is not None
        and _own.plain_too
        and not isinstance(failure, ssl.SSLCertVerificationError | ConnectionRefusedError)
        and isinstance(failure, ssl.SSLError | ConnectionError)
    )
