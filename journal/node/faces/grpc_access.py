"""Which user or service calls a JournalNode over gRPC, and whether it may ask for that.

gRPC reports to a handler which peer it has, but reports neither the beginning nor the end of a
connection: so each call, and each stream of batches once, asks the kernel anew.
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
    """The control of access in the words of gRPC.

    ``port`` returns ours; it is known once the server is bound.  ``admitted`` gets each caller that
    is let call, once for each call.
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
        """Return None where the caller may do that; log it as the table of rights says."""
        return self._access.refusal(caller, "grpc", JOURNALNODE, action)

    def may(self, caller: Caller, action: str) -> bool:
        """Return whether the caller may do that; nothing is logged."""
        return self._access.may(caller, JOURNALNODE, action)

    def ended(self, caller: Caller, action: str, failure: BaseException | None) -> None:
        """Write down what became of a call that was allowed, as the table says."""
        if not self._access.audits(JOURNALNODE, action):
            return
        outcome, reason = Outcome.DONE, ""
        if isinstance(failure, asyncio.CancelledError):
            outcome = Outcome.UNKNOWN
        elif failure is not None:
            # What ends a call carries nothing; why it was ended came before it.
            why = failure.__cause__ or failure.__context__ or failure
            outcome, reason = Outcome.FAILED, str(why)
        self._access.ended(caller, "grpc", JOURNALNODE, action, outcome, reason)

    def watched(self, context: Context, end: Callable[[str], None]) -> "Opened | None":
        """Have a stream ended, from any thread, when its connection's certificate counts no more.

        None over a connection without one.
        """
        tls, shown = self._access.tls, _certificate(context)
        if tls is None or shown is None:
            return None
        leaf = tls.leaf(shown)
        return None if isinstance(leaf, str) else tls.connections.add(leaf, end)

    def forget(self, opened: "Opened | None") -> None:
        """Remove a stream that was ``watched`` and has ended."""
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
    """Return the owner of a share; None where callers are not identified."""
    if caller is None:
        return None
    if caller.certified:
        return str(caller)
    return caller.host if caller.uid is None else caller.uid


def _certificate(context: Context) -> bytes | None:
    """Return the caller's certificate, in PEM; None over a connection without TLS."""
    found = context.auth_context().get("x509_pem_cert")
    return bytes(found[0]) if found else None


def end_of_peer(peer: str) -> End | None:
    """Parse the other end, as gRPC writes it: ``ipv4:127.0.0.1:1234``, ``ipv6:%5B::1%5D:1234``."""
    if not peer.startswith(_FAMILIES):
        return None
    host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
    return end_of((host.strip("[]"), int(port))) if port.isdecimal() else None


def addresses(host: str) -> Sequence[str]:
    """Return the addresses that a server listens on; none where it listens on all of them."""
    with suppress(ValueError):
        return () if ipaddress.ip_address(host).is_unspecified else (host,)
    with suppress(OSError):
        found = NAMES.addresses(host or "localhost", 0, _RESOLVE_SECONDS)
        return tuple(dict.fromkeys(str(one[4][0]).partition("%")[0] for one in found))
    return ()
