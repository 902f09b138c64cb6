"""What proves who we are, and who others are: files that may change while a daemon runs.

``ca.pem``, ``cert.pem``, ``key.pem`` and ``revoked.txt`` are looked at every few seconds.  What is
half-written, or does not fit together, changes nothing: what was read before stays in use.
"""

import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Final

import structlog
from prometheus_client import Counter, Gauge

from ha.record import dataclass
from ha.security import certificates
from ha.security.caller import Caller, Role, certified_caller, refused_caller
from ha.security.certificate_files import CA, CERT, KEY, REVOKED, revoked_lines
from ha.security.certificates import now
from ha.security.names import BadName, CertifiedName
from ha.security.open_connections import OpenConnections
from ha.security.tls_contexts import calling, client_context, server_context, serving

log = structlog.get_logger()

NOT_AFTER = Gauge(
    "nnha_tls_certificate_not_after_seconds",
    "When the certificate of this process, or the first of the authorities it trusts, ends",
    ["what"],
)
BEGAN = Gauge(
    "nnha_tls_certificate_not_before_seconds", "When the certificate of this process began"
)
RELOADS = Counter(
    "nnha_tls_reloads", "Times that files of certificates had changed, by what became of it",
    ["result"],
)  # fmt: skip
FINISH: Final = timedelta(seconds=30)
"""After a certificate's end, for calls and transfers that are under way."""
_FILES: Final = (CA, CERT, KEY, REVOKED)
_MOST_PARSED: Final = 1024
_SHOWN: Final = "%Y-%m-%d %H:%M:%S"

Stamp = tuple[tuple[int, int, int] | None, ...]


class NoCertificates(Exception):
    """The files cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Material:
    """What the files said when they were last in order."""

    name: CertifiedName
    leaf: certificates.Leaf
    pair: certificates.Pair
    authorities: bytes
    trusted: tuple[str, ...]
    signed_by: str
    revoked: frozenset[str]
    client: ssl.SSLContext


class TlsFiles:
    """The certificates of this process, as they are now."""

    def __init__(
        self,
        folder: Path,
        check_seconds: float,
        *,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """Read them for the first time.

        Raises:
            NoCertificates: they cannot be used.
        """
        self._folder = folder
        self._check_seconds = check_seconds
        self._clock = clock
        self._stamp = self._stamp_files()
        try:
            self._material = _read(folder)
        except (OSError, certificates.BadCertificate, BadName, ssl.SSLError) as failure:
            raise NoCertificates(
                f"nnha.security.tls.dir: the certificates in {folder} cannot be used: {failure}. "
                f"nnha security check {folder} tells more"
            ) from failure
        self._parsed: dict[tuple[bytes, bytes], certificates.Leaf | str] = {}
        self._servers: dict[str, certificates.Leaf] = {}
        self._invalid = ""
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.connections = OpenConnections()
        self._served: dict[bool, tuple[Material, ssl.SSLContext]] = {}
        self._clients: dict[Role | None, ssl.SSLContext] = {}
        self._show()

    # What is in use.

    @property
    def material(self) -> Material:
        """What is in use now; another object after each change."""
        return self._material

    @property
    def check_seconds(self) -> float:
        """How often the files are looked at."""
        return self._check_seconds

    @cached_property
    def server(self) -> ssl.SSLContext:
        """For a listener; not made before it is asked for: a command has none."""
        return serving(lambda: self._newest_server(demanding=True))

    @cached_property
    def lenient_server(self) -> ssl.SSLContext:
        """For a listener that answers callers without a certificate, too: as those in plain."""
        return serving(lambda: self._newest_server(demanding=False))

    def client(self, role: Role | None) -> ssl.SSLContext:
        """Return a context to connect to a server of this role; None: any role of the cluster."""
        if role not in self._clients:
            self._clients[role] = calling(
                lambda: self._material.client, lambda shown: self.why_no_server(shown, role)
            )
        return self._clients[role]

    def _newest_server(self, *, demanding: bool) -> ssl.SSLContext:
        material, served = self._material, self._served.get(demanding)
        if served is None or served[0] is not material:
            context = server_context(material.pair, material.authorities, demanding=demanding)
            served = self._served[demanding] = material, context
        return served[1]

    # The certificates of others.

    def caller(self, shown: bytes | None, address: str) -> Caller:
        """Return the caller by the certificate that it has shown, in DER or PEM."""
        leaf = self.leaf(shown or b"")
        if isinstance(leaf, str):
            return refused_caller(leaf, address)
        reason = self.why_refused(leaf)
        if reason or leaf.name is None:
            return refused_caller(reason, address)
        return certified_caller(leaf.name.role, leaf.name.name, address)

    def leaf(self, shown: bytes) -> certificates.Leaf | str:
        """Return a certificate's contents, or why it does not count; looked at once.

        Each must be signed by an authority of ours itself: gRPC takes one of an intermediate, too.
        """
        authorities = self._material.authorities
        found = self._parsed.get((shown, authorities))
        if found is None:
            try:
                found = certificates.parse(shown)
                certificates.issuer_of(shown, authorities)
            except certificates.BadCertificate as bad:
                found = str(bad)
            if len(self._parsed) >= _MOST_PARSED:
                self._parsed.clear()
            self._parsed[shown, authorities] = found
        return found

    def why_refused(self, leaf: certificates.Leaf) -> str:
        """Return why a certificate of an authority of ours does not count; empty: it does."""
        return why_refused(leaf, self._material, self._clock())

    def why_no_server(self, shown: bytes, role: Role | None) -> str:
        """Return why a server is not the one that was to be called; empty: it is."""
        leaf = self.leaf(shown)
        if isinstance(leaf, str):
            return leaf
        reason = self.why_refused(leaf)
        if reason or leaf.name is None:
            return reason
        if role is not None and leaf.name.role is not role:
            return f"its certificate is that of {leaf.name}, and a {role} was called"
        self._servers[leaf.uri] = leaf
        return ""

    def told(self) -> Mapping[str, object]:
        """Return what a daemon's page shows of its certificate and its trusted authorities."""
        now = self._material
        return {
            "certificate": now.name.uri,
            "serial": f"{now.leaf.serial:x}",
            "not_after": now.leaf.not_after.isoformat(),
            "ending": now.leaf.ending(self._clock()),
            "signed_by": now.signed_by,
            "trusts": list(now.trusted),
            "revoked": len(now.revoked),
        }

    def ending(self) -> tuple[str, ...]:
        """Return which certificates end soon, or have: our own, and those of servers we called."""
        present = self._clock()
        known = {self._material.leaf.uri: self._material.leaf, **self._servers}
        found = ((leaf.name, leaf.ending(present)) for leaf in known.values())
        return tuple(f"the certificate of {name} {ending}" for name, ending in found if ending)

    def invalid(self) -> str:
        """Return why our own certificate is not valid by this machine's clock; empty: it is."""
        leaf, present = self._material.leaf, self._clock()
        clock = f"this machine's clock says {present:{_SHOWN}} UTC"
        if present >= leaf.not_after:
            return (
                f"the certificate {leaf.uri} in {self._folder} ended at {leaf.not_after:{_SHOWN}} "
                f"UTC, and {clock} → if the clock is right, renew it: nnha security rotate --dir "
                f"AUTHORITY --out {self._folder}"
            )
        if present < leaf.not_before:
            return (
                f"the certificate {leaf.uri} in {self._folder} is valid from "
                f"{leaf.not_before:{_SHOWN}} UTC on, and {clock} → set this machine's clock, which "
                "is behind (compare date -u with another host)"
            )
        return ""

    def _say_if_invalid(self) -> None:
        before, self._invalid = self._invalid, self.invalid()
        if self._invalid and self._invalid != before:
            log.error("security.certificate_not_valid", because=self._invalid)

    # Looking at the files.

    def start(self) -> None:
        """Look at them every few seconds, in a thread: no loop that hangs may keep a thief in.

        Each listener asks for it: a process that was forked since has no thread of its parent's.
        """
        self._say_if_invalid()
        if self._thread is not None and self._thread.is_alive():
            return
        key = self._folder / KEY
        with suppress(OSError):  # it was read; a look will say what has become of it
            if (mode := key.stat().st_mode & 0o777) & 0o077:
                advice = f"chmod 600 {key}"
                log.warning("security.key_open_to_others", mode=f"{mode:04o}", advice=advice)
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> bool:
        """Look now, and close the connections of whoever counts no more; whether it changed."""
        stamp = self._stamp_files()
        changed = stamp != self._stamp and self._reload(stamp)
        if changed or not self._invalid:
            self._say_if_invalid()
        self.connections.sweep(self.why_refused, self._may_finish)
        return changed

    def _may_finish(self, leaf: certificates.Leaf) -> bool:
        """Return whether what is under way may go on after its certificate's end.

        It may if nothing else is wrong; that of a thief, whose certificate was revoked, may not.
        """
        present = self._clock()
        if present >= leaf.not_after + FINISH:
            return False
        return not why_refused(leaf, self._material, leaf.not_before)

    def _run(self) -> None:
        while not self._ended.wait(self._check_seconds):
            try:
                self.look()
            except Exception:
                log.exception("security.certificates_not_looked_at")

    def _reload(self, stamp: Stamp) -> bool:
        self._stamp = stamp
        try:
            fresh = _read(self._folder)
        except (OSError, certificates.BadCertificate, BadName, ssl.SSLError) as failure:
            RELOADS.labels("failed").inc()
            log.warning(
                "security.certificates_kept",
                folder=str(self._folder), because=str(failure), meaning="those before stay in use",
            )  # fmt: skip
            return False
        if fresh.name != self._material.name:
            RELOADS.labels("failed").inc()
            log.warning(
                "security.certificates_kept",
                folder=str(self._folder),
                because=f"{fresh.name.uri} is somebody else than {self._material.name.uri}",
                meaning="who this process is changes with a restart only",
            )
            return False
        self._material = fresh
        RELOADS.labels("changed").inc()
        self._show()
        log.info(
            "security.certificates_changed",
            name=fresh.name.uri, serial=f"{fresh.leaf.serial:x}",
            not_after=fresh.leaf.not_after.isoformat(), trusts=list(fresh.trusted),
            revoked=len(fresh.revoked),
        )  # fmt: skip
        return True

    def _stamp_files(self) -> Stamp:
        return tuple(stamp_of(self._folder / name) for name in _FILES)

    def _show(self) -> None:
        material = self._material
        NOT_AFTER.labels("certificate").set(material.leaf.not_after.timestamp())
        NOT_AFTER.labels("authority").set(
            certificates.authority_ends(material.authorities).timestamp()
        )
        BEGAN.set(material.leaf.not_before.timestamp())


def why_refused(leaf: certificates.Leaf, own: Material, present: datetime) -> str:
    """Return why a certificate does not count, although an authority of ours has signed it."""
    if leaf.name is None:
        return leaf.nameless
    if leaf.name.cluster != own.name.cluster:
        return f"this certificate is of cluster {leaf.name.cluster}, not of {own.name.cluster}"
    if not own.revoked.isdisjoint({leaf.name.uri, f"{leaf.serial:x}"}):
        return f"this certificate, of {leaf.name}, was revoked"
    if present >= leaf.not_after:
        return f"this certificate, of {leaf.name}, ended at {leaf.not_after:%Y-%m-%d %H:%M:%S} UTC"
    return ""


def _read(folder: Path) -> Material:
    authorities = (folder / CA).read_bytes()
    pair = certificates.Pair((folder / CERT).read_bytes(), (folder / KEY).read_bytes())
    signed_by = certificates.check_match(pair, authorities)
    leaf = certificates.parse(pair.certificate)
    if leaf.name is None:
        raise certificates.BadCertificate(leaf.nameless)
    revoked = ""
    with suppress(FileNotFoundError):
        revoked = (folder / REVOKED).read_text()
    return Material(
        leaf.name, leaf, pair, authorities, certificates.fingerprints(authorities), signed_by,
        revoked_lines(revoked),
        client_context(pair, authorities),
    )  # fmt: skip


def stamp_of(path: Path) -> tuple[int, int, int] | None:
    """Return what changes with a file; None where there is none that can be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
