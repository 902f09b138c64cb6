"""What a server offers: protocols, their methods, and the call that a handler gets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from ha.record import dataclass, field, record
from ha.rpc.java_names import CLIENT_PROTOCOL, NO_SUCH_METHOD, NO_SUCH_PROTOCOL, VERSION_MISMATCH
from ha.rpc.packets import Detail
from ha.security.caller import Method as Proof


@record
class Call:
    """One call, as its handler sees it.

    ``client_id`` and ``call_id`` stay the same when a client tries again, on another server too;
    only ``retry_count`` grows.  ``user`` is the user that the call is for and ``real_user`` the one
    behind it (a proxy user).  Both are the client's claim; ``ha.security`` has let it have them.
    """

    protocol: str
    method: str
    client_id: bytes
    call_id: int
    retry_count: int
    user: str
    real_user: str | None
    host: str
    context: str = ""
    """Why the caller calls, in its own words (Hadoop's CallerContext); empty for most."""
    proof: Proof = Proof.SIMPLE
    """How the connection has proved who calls."""


Ended = Callable[[Message | Exception], None]
"""Hears how a call ended: its answer, or what ``Method.handle`` would have raised."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its request message, and the function that answers it.

    ``begin`` is the short way of a method that often has nothing to wait for before it can be
    carried out: no task is needed then.  It returns False where ``handle`` is to be called, before
    anything was changed; otherwise ``Ended`` is called once, in this turn of the loop or later, or
    never if the process ends.

    ``in_thread`` carries the call out where it is called, and may block, for instance until a disk
    is in sync.  Where a method has it, a connection whose next call is of this method is read by a
    thread of its own, until another call comes.

    ``look`` answers a call that changes nothing in the turn of the loop that read it: it returns
    the answer's bytes, or None where the call must go the usual way.  A method that is in an audit
    has none.

    ``action`` names the call in the table of rights where that depends on its request.
    """

    request: type[Message]
    handle: Callable[[Call, Any], Awaitable[Message]]
    begin: Callable[[Call, Any, Ended], bool] | None = None
    in_thread: Callable[[Any], Message] | None = None
    action: Callable[[Any], str] | None = None
    look: Callable[[Call, bytes], bytes | None] | None = None


PROTOCOL_VERSION = 1
"""Of every protocol that Hadoop speaks in protobuf; they grow by optional fields."""


@dataclass(frozen=True, slots=True)
class NotServed:
    """The method is not served: an ERROR answer, and the connection stays open."""

    java_class: str
    message: str
    detail: Detail


@dataclass(frozen=True, slots=True)
class RpcProtocol:
    """A Java interface by name, with the methods that are served of it."""

    name: str
    methods: Mapping[str, Method]
    otherwise: NotServed | None = None
    """The answer to every other method; None: that there is none of that name."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Finds a method by the names in a call."""

    protocols: Mapping[str, RpcProtocol] = field(default_factory=dict)

    @staticmethod
    def of(protocols: Sequence[RpcProtocol]) -> "Catalogue":
        """Return the catalogue of these protocols.

        Raises:
            ValueError: if two have the same name.
        """
        by_name = {protocol.name: protocol for protocol in protocols}
        if len(by_name) != len(protocols):
            raise ValueError("two protocols of one name")
        return Catalogue(by_name)

    @property
    def privileged(self) -> frozenset[str]:
        """The protocols for which connections are kept: all but that of HDFS's clients."""
        return frozenset(self.protocols) - {CLIENT_PROTOCOL}

    def find(self, protocol: str, method: str, version: int) -> Method | NotServed:
        """Return the method, or what to answer instead; the texts are Java's."""
        served = self.protocols.get(protocol)
        if served is None:
            return NotServed(
                NO_SUCH_PROTOCOL, f"Unknown protocol: {protocol}", Detail.ERROR_NO_SUCH_PROTOCOL
            )
        if version != PROTOCOL_VERSION:
            return NotServed(
                VERSION_MISMATCH,
                f"Protocol {protocol} version mismatch. "
                f"(client = {version}, server = {PROTOCOL_VERSION})",
                Detail.ERROR_RPC_VERSION_MISMATCH,
            )
        found = served.methods.get(method)
        if found is None:
            return served.otherwise or NotServed(
                NO_SUCH_METHOD,
                f"Unknown method {method} called on {protocol} protocol.",
                Detail.ERROR_NO_SUCH_METHOD,
            )
        return found
