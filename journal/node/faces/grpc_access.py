"""Identifies the caller of a JournalNode over gRPC, and checks its rights.

gRPC gives a handler the peer's address, but reports neither the beginning nor the end of a
connection.  So the kernel is asked at each call, and once for each stream of batches.
"""

import asyncio
import ipaddress
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from ha.names import NAMES
from ha.security.access_control import AccessControl
from ha.security.audit_text import Outcome
from ha.security.caller import Caller, refused_caller, unproven
from ha.security.decision import Denied
from ha.security.peer_uid import End, end_of
from ha.security.rights import JOURNALNODE

if TYPE_CHECKING:
    from ha.security.open_connections import Opened

Context = Any
"""grpc.aio.ServicerContext; grpc has no types."""
_FAMILIES: Final = ("ipv4:", "ipv6:")
_RESOLVE_SECONDS: Final = 5.0


class GrpcAccess:
    """Applies the AccessControl to gRPC's calls.

    ``port`` returns the server's port, which is known once it is bound.  ``admitted`` is called
    with the caller of each call that is allowed.
    """

    def __init__(
        self, access: AccessControl, host: str, port: Callable[[], int],
        admitted: Callable[[Caller], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._access = access
        self.admitted = admitted
        self._hosts = addresses(host)
        self._port = port

    def caller(self, context: Context) -> Caller:
        shown = _certificate(context)
        if shown is None:
            return self._of_peer(context.peer())
        there = end_of_peer(context.peer())
        address = "over the relay" if there is None else str(there)
        if context.auth_context().get("ssl_session_reused") == [b"true"]:
            return refused_caller("a resumed session, in which no certificate is verified", address)
        return self._access.certified(shown, address)

    def refusal(self, caller: Caller, action: str) -> Denied | None:
        """Return the refusal, or None if the action is allowed; log as the rights table says."""
        return self._access.refusal(caller, "grpc", JOURNALNODE, action)

    def may(self, caller: Caller, action: str) -> bool:
        """Return whether the caller has the right to the action, without a log line."""
        return self._access.may(caller, JOURNALNODE, action)

    def ended(self, caller: Caller, action: str, failure: BaseException | None) -> None:
        """Write the outcome of an allowed call to the audit log, if the rights table says so."""
        if not self._access.audits(JOURNALNODE, action):
            return
        outcome, reason = Outcome.DONE, ""
        if isinstance(failure, asyncio.CancelledError):
            outcome = Outcome.UNKNOWN
        elif failure is not None:
            # AbortError has no text; the reason of the abort is its cause or context.
            why = failure.__cause__ or failure.__context__ or failure
            outcome, reason = Outcome.FAILED, str(why)
        self._access.ended(caller, "grpc", JOURNALNODE, action, outcome, reason)

    def watched(self, context: Context, end: Callable[[str], None]) -> "Opened | None":
        """Call ``end``, from any thread, if the client certificate expires or is revoked.

        The return value is for ``forget``; it is None without a certificate.
        """
        tls, shown = self._access.tls, _certificate(context)
        if tls is None or shown is None:
            return None
        leaf = tls.leaf(shown)
        return None if isinstance(leaf, str) else tls.connections.add(leaf, end)

    def forget(self, opened: "Opened | None") -> None:
        """Remove a stream that has ended; ``opened`` is the return value of ``watched``."""
        if opened is not None and self._access.tls is not None:
            self._access.tls.connections.remove(opened)

    def _of_peer(self, peer: str) -> Caller:
        there = end_of_peer(peer)
        if there is None:
            return unproven("an unknown address")
        found = unproven(str(there))
        for host in self._hosts or (there.host,):
            found = self._access.caller_of(there, End(host, self._port()))
            if found.proven:
                break
        return found


def known_as(caller: Caller | None) -> Hashable:
    """Return the key under which a caller's calls and streams are counted; None if unknown."""
    if caller is None:
        return None
    if caller.certified:
        return str(caller)
    return caller.host if caller.uid is None else caller.uid


def _certificate(context: Context) -> bytes | None:
    """Return the client certificate in PEM; None without TLS."""
    found = context.auth_context().get("x509_pem_cert")
    return bytes(found[0]) if found else None


def end_of_peer(peer: str) -> End | None:
    """Parse gRPC's form of a peer: ``ipv4:127.0.0.1:1234``, ``ipv6:%5B::1%5D:1234``, or None."""
    if not peer.startswith(_FAMILIES):
        return None
    host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
    return end_of((host.strip("[]"), int(port))) if port.isdecimal() else None


def addresses(host: str) -> Sequence[str]:
    """Return the addresses of a server's host; none if it listens on all, or is not resolved."""
    with suppress(ValueError):
        return () if ipaddress.ip_address(host).is_unspecified else (host,)
    with suppress(OSError):
        found = NAMES.addresses(host or "localhost", 0, _RESOLVE_SECONDS)
        return tuple(dict.fromkeys(str(one[4][0]).partition("%")[0] for one in found))
    return ()
