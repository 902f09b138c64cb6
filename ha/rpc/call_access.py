"""Control of access in the words of Hadoop RPC: whose connection it is, and what it may call."""

import asyncio
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from ha.rpc import packets
from ha.rpc.call_header import Asked
from ha.rpc.errors import MalformedFrame, RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, AUTHORIZATION, CLIENT_PROTOCOL
from ha.rpc.protocol import Method
from ha.rpc.sasl.negotiation import Proved
from ha.rpc.session import Greeted, Hangup
from ha.security.access_control import MAX_FACE, AccessControl
from ha.security.audit_text import Outcome
from ha.security.caller import Caller, refused_caller, unproven
from ha.security.decision import Denied
from ha.security.peer_uid import end_of

if TYPE_CHECKING:
    from ha.security.tls_files import TlsFiles

_UNKNOWN: Final = refused_caller("it is not known whose connection this is", "an unknown address")
"""An error in nnha, or a stranger who has found one: it has no right."""
_CONTEXT: Final = packets.CallKey(b"", packets.CONTEXT_CALL_ID, packets.NO_RETRY)


class CallAccess:
    """Asks the control of access for an RPC server; without one whoever calls is believed."""

    def __init__(self, access: AccessControl | None) -> None:
        self.control = access

    @property
    def tls(self) -> "TlsFiles | None":
        """The certificates of this daemon's listeners."""
        return None if self.control is None else self.control.tls

    def caller(self, transport: asyncio.BaseTransport) -> Caller | None:
        """Return the caller at the other end; None where access is not controlled."""
        if self.control is None:
            return None
        told = transport.get_extra_info
        secured = told("ssl_object")
        if not self.control.takes_simple and secured is None:
            return unproven(str(end_of(told("peername"))))  # only what it proves itself counts
        found = self.control.caller(told("peername"), told("sockname"), told("socket"), secured)
        return self.control.without_kernel(found)

    def proved(self, caller: Caller | None, proved: Proved) -> Caller:
        """Return the caller that has proved itself; it has no right before its context."""
        (user, real), way = proved.way.user_of(proved.name), proved.way
        address = "" if caller is None else caller.address
        return Caller(user, way.method, frozenset(), address, principal=proved.name, real=real)

    async def admitted(self, caller: Caller, greeted: Greeted) -> Caller | Hangup:
        """Return the caller as the operator's lists let it go on, or its refusal."""
        assert self.control is not None
        return _or_hangup(await self.control.admitted(caller, greeted.user, greeted.protocol))

    def lacks_name(self, caller: Caller | None) -> bool:
        """Return whether the caller's user must be named before its calls are read."""
        return caller is not None and self.control is not None and self.control.lacks_name(caller)

    async def named(self, caller: Caller) -> Caller:
        """Return the caller with its name, which may take a directory service some time."""
        return caller if self.control is None else await self.control.named(caller)

    def greeted(self, caller: Caller | None, greeted: Greeted) -> Caller | Hangup | None:
        """Return the caller under the name that it gives itself, or its refusal."""
        if self.control is None:
            return None
        caller = caller or _UNKNOWN
        face = _last(greeted.protocol)[:MAX_FACE]
        if caller.principal:
            return caller  # what it claims is for ``admitted``
        return _or_hangup(self.control.claimed(caller, greeted.user, greeted.real_user, face))

    def refusal(self, caller: Caller | None, asked: Asked, method: Method) -> bytes | None:
        """Return the answer to a call that its caller may not make; None where it may."""
        if self.control is None:
            return None
        caller = caller or _UNKNOWN
        denied = self.control.refusal(
            caller, "rpc", _last(asked.protocol), _action(asked, method), asked.context
        )
        if denied is None:
            return None
        return packets.encode_failure(
            asked.key, _java_class(denied), denied.reason, packets.Detail.ERROR_APPLICATION
        )

    def may(self, caller: Caller | None, asked: Asked) -> bool:
        """Return whether the caller may make a call that is in no audit; from any thread."""
        if self.control is None:
            return True
        return self.control.may(caller or _UNKNOWN, _last(asked.protocol), asked.method)

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
        if self.control is None or caller is None:
            return
        face = _last(asked.protocol)
        if (
            isinstance(outcome, RemoteFault)
            and outcome.java_class == ACCESS_CONTROL
            and asked.protocol != CLIENT_PROTOCOL
        ):
            name = _action(asked, method)
            self.control.refused_by_handler(caller, face, name, outcome.reason, asked.context)
            return
        if not self.control.audits(face, asked.method):
            return
        name = _action(asked, method)
        ended = Outcome.DONE
        if outcome is None:
            ended = Outcome.UNKNOWN
        elif isinstance(outcome, Exception):
            ended = Outcome.FAILED
        reason = str(outcome) if ended is Outcome.FAILED else ""
        self.control.ended(caller, "rpc", face, name, ended, reason, asked.context)


def _or_hangup(found: Caller | Denied) -> Caller | Hangup:
    if not isinstance(found, Denied):
        return found
    last = packets.encode_failure(
        _CONTEXT, _java_class(found), found.reason, packets.Detail.FATAL_UNAUTHORIZED, fatal=True
    )
    return Hangup(last, found.reason)


def _java_class(denied: Denied) -> str:
    return AUTHORIZATION if denied.by_list else ACCESS_CONTROL


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
