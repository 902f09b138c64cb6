"""Control of access in the words of Hadoop RPC: whose connection it is, and what it may call."""

import asyncio
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from ha.rpc import packets
from ha.rpc.errors import MalformedFrame, RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, CLIENT_PROTOCOL
from ha.rpc.protocol import Method
from ha.rpc.session import Asked, Greeted, Hangup
from ha.security.access_control import AccessControl
from ha.security.audit_text import Outcome
from ha.security.caller import Caller, refused_caller
from ha.security.decision import Denied

if TYPE_CHECKING:
    from ha.security.tls_files import TlsFiles

_MAX_FACE: Final = 100
"""A stranger's word, which is kept for a while."""
_UNKNOWN: Final = refused_caller("it is not known whose connection this is", "an unknown address")
"""An error in nnha, or a stranger who has found one: it has no right."""
_CONTEXT: Final = packets.CallKey(b"", packets.CONTEXT_CALL_ID, packets.NO_RETRY)


class CallAccess:
    """Asks the control of access for an RPC server; without one whoever calls is believed."""

    def __init__(self, access: AccessControl | None) -> None:
        self._access = access

    @property
    def tls(self) -> "TlsFiles | None":
        """The certificates of this daemon's listeners."""
        return None if self._access is None else self._access.tls

    def caller(self, transport: asyncio.BaseTransport) -> Caller | None:
        """Return the caller at the other end; None where access is not controlled."""
        if self._access is None:
            return None
        told = transport.get_extra_info
        return self._access.caller(
            told("peername"), told("sockname"), told("socket"), told("ssl_object")
        )

    def lacks_name(self, caller: Caller | None) -> bool:
        """Return whether the caller's user must be named before its calls are read."""
        return caller is not None and self._access is not None and self._access.lacks_name(caller)

    async def named(self, caller: Caller) -> Caller:
        """Return the caller with its name, which may take a directory service some time."""
        return caller if self._access is None else await self._access.named(caller)

    def greeted(self, caller: Caller | None, greeted: Greeted) -> Caller | Hangup | None:
        """Return the caller under the name that it gives itself, or its refusal."""
        if self._access is None:
            return None
        caller = caller or _UNKNOWN
        face = _last(greeted.protocol)[:_MAX_FACE]
        found = self._access.claimed(caller, greeted.user, greeted.real_user, face)
        if not isinstance(found, Denied):
            return found
        last = packets.encode_failure(
            _CONTEXT, ACCESS_CONTROL, found.reason, packets.Detail.FATAL_UNAUTHORIZED, fatal=True
        )
        return Hangup(last, found.reason)

    def refusal(self, caller: Caller | None, asked: Asked, method: Method) -> bytes | None:
        """Return the answer to a call that its caller may not make; None where it may."""
        if self._access is None:
            return None
        caller = caller or _UNKNOWN
        denied = self._access.refusal(
            caller, "rpc", _last(asked.protocol), _action(asked, method), asked.context
        )
        if denied is None:
            return None
        return packets.encode_failure(
            asked.key, ACCESS_CONTROL, denied.reason, packets.Detail.ERROR_APPLICATION
        )

    def may(self, caller: Caller | None, asked: Asked) -> bool:
        """Return whether the caller may make a call that is in no audit; from any thread."""
        if self._access is None:
            return True
        return self._access.may(caller or _UNKNOWN, _last(asked.protocol), asked.method)

    def ended(
        self,
        caller: Caller | None,
        asked: Asked,
        method: Method,
        outcome: Message | Exception | None,
    ) -> None:
        """Write down what became of a call, as the table says; None: the outcome is unknown.

        A handler may have rules of its own, and refuse; files' permissions are no such rule.
        """
        if self._access is None or caller is None:
            return
        face = _last(asked.protocol)
        if (
            isinstance(outcome, RemoteFault)
            and outcome.java_class == ACCESS_CONTROL
            and asked.protocol != CLIENT_PROTOCOL
        ):
            name = _action(asked, method)
            self._access.refused_by_handler(caller, face, name, outcome.reason, asked.context)
            return
        if not self._access.audits(face, asked.method):
            return
        name = _action(asked, method)
        ended = Outcome.DONE
        if outcome is None:
            ended = Outcome.UNKNOWN
        elif isinstance(outcome, Exception):
            ended = Outcome.FAILED
        reason = str(outcome) if ended is Outcome.FAILED else ""
        self._access.ended(caller, "rpc", face, name, ended, reason, asked.context)


def _last(protocol: str) -> str:
    """Return a Java interface's name in the table of rights; it is only called for one served."""
    return protocol.rpartition(".")[2]


def _action(asked: Asked, method: Method) -> str:
    if method.action is None:
        return asked.method
    try:
        return method.action(packets.parse_request(method.request, asked.request))
    except MalformedFrame:
        return asked.method  # its handler is never called
