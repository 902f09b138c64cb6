"""``ssl`` contexts of changing files: each new connection gets those of that moment.

A listener, or a client that is kept, holds one context for all its life.  That one hands each
connection to the current one, so that a new certificate and a new authority need no restart, and
an authority that was taken away counts no more (``load_verify_locations`` can only add).
"""

import os
import ssl
from collections.abc import Callable
from typing import Any, Final

from ha.security.certificates import Pair, now

GRPC_PROTOCOL: Final = "h2"

_BY_OUR_CLOCK: Final = {9: "its certificate is not valid yet", 10: "its certificate has ended"}
"""OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED, in words."""

Check = Callable[[bytes], str]
"""Given the other end's certificate in DER, why it is not accepted; empty if it is."""


def server_context(pair: Pair, authorities: bytes, *, demanding: bool) -> ssl.SSLContext:
    """Return a context for a listener.  Raises ssl.SSLError.

    ``demanding``: callers must have a certificate; else they are asked for one, and may have none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED if demanding else ssl.CERT_OPTIONAL
    # A client that resumes a session shows no certificate, and would outlive a revocation.
    context.num_tickets = 0
    return _fill(context, pair, authorities)


def client_context(pair: Pair, authorities: bytes) -> ssl.SSLContext:
    """Return a context for a client; the host's name is checked.  Raises ssl.SSLError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslobject_class = _CheckedEnd
    # Only gRPC's servers take it up: so a client knows what it has before it. The others ignore it.
    context.set_alpn_protocols([GRPC_PROTOCOL])
    return _fill(context, pair, authorities)


def serving_all(chain: bytes) -> ssl.SSLContext:
    """Return a context for a listener that asks no caller for a certificate.  Raises ssl.SSLError.

    ``chain``: its key, its certificate and those above it, in PEM.
    """
    context = _strict(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    context.num_tickets = 0
    _load_chain(context, chain)
    return context


def trusting(authorities: bytes | None) -> ssl.SSLContext:
    """Return a context for a client without a certificate; None: it trusts what the system does.

    Raises ssl.SSLError.
    """
    context = _strict(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    if authorities is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    return context


def _strict(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION
    return context


def _fill(context: ssl.SSLContext, pair: Pair, authorities: bytes) -> ssl.SSLContext:
    _strict(context).load_verify_locations(cadata=authorities.decode("ascii"))
    # The authorities follow the certificate: else OpenSSL looks for its issuer, and verifies both,
    # in each handshake, for a tenth of its CPU.
    _load_chain(context, b"\n".join((pair.key, pair.certificate, authorities)))
    return context


def _load_chain(context: ssl.SSLContext, chain: bytes) -> None:
    # ssl reads files only, and between two of them the operator may change one: what was looked
    # at before is what is used.
    memory = os.memfd_create("pair", os.MFD_CLOEXEC)
    try:
        os.write(memory, chain)
        context.load_cert_chain(f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)


class CurrentContext(ssl.SSLContext):
    """Hands each connection to the context of that moment."""

    current: Callable[[], ssl.SSLContext]
    check: Check | None

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:  # noqa: ANN401 - ssl's own
        """Wrap as ``SSLContext.wrap_bio``."""
        made = self.current().wrap_bio(*arguments, **named)
        if isinstance(made, _CheckedEnd):
            made.check = self.check
        return made

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:  # noqa: ANN401 - ssl's own
        """Wrap as ``SSLContext.wrap_socket``; a client's handshake is done in it."""
        made = self.current().wrap_socket(*arguments, **named)
        if self.check is not None and (
            reason := self.check(made.getpeercert(binary_form=True) or b"")
        ):
            made.close()
            raise ssl.SSLCertVerificationError(reason)
        return made


def serving(current: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """Return a context for a listener."""
    context = CurrentContext(ssl.PROTOCOL_TLS_SERVER)
    context.current, context.check = current, None
    return context


def calling(current: Callable[[], ssl.SSLContext], check: Check | None) -> ssl.SSLContext:
    """Return a context for a client that accepts only servers that pass ``check``, if any."""
    context = CurrentContext(ssl.PROTOCOL_TLS_CLIENT)
    context.current, context.check = current, check
    return context


class _CheckedEnd(ssl.SSLObject):
    """Looks at the server's certificate before the handshake is done: nothing was sent until then.

    Here, because asyncio, uvloop and aiohttp all come through here and know nothing of roles.
    """

    check: Check | None = None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLCertVerificationError as failure:
            if why := _BY_OUR_CLOCK.get(failure.verify_code):
                raise ssl.SSLCertVerificationError(
                    f"{why} by this machine's clock, {now():%Y-%m-%d %H:%M:%S} UTC: compare date "
                    "-u here and there; if both are right, its certificate is to be renewed"
                ) from failure
            raise
        shown = self.getpeercert(binary_form=True)
        if self.check is not None and (reason := self.check(shown or b"")):
            raise ssl.SSLCertVerificationError(reason)
