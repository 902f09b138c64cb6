"""Our own calls over Hadoop RPC: every method of the gRPC face, by the same code, on one more port.

Batches come as single calls.  They reach the journal in the order in which they were sent, for a
connection's calls are begun in that order and a batch is in its owner's inbox before anything is
awaited.
"""

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from ha.rpc.errors import RemoteFault
from ha.rpc.protocol import Call, Method, RpcProtocol
from journal.messages import REFUSAL_KEY
from journal.node.faces.grpc_face import JournalService
from journal.proto import journal_pb2 as pb

_SERVICE: Final = pb.DESCRIPTOR.services_by_name["JournalNode"]
REFUSAL: Final = pb.Refusal.DESCRIPTOR.full_name
"""Stands where an answer names a Java class; the message is then a Refusal in base64."""


def own_protocol(service: JournalService) -> RpcProtocol:
    """The calls of ``journal.proto`` as a protocol of a Hadoop RPC server."""
    methods = {
        method.name: _method(method, service) for method in _SERVICE.methods if _served(method)
    }
    return RpcProtocol(_SERVICE.full_name, methods)


def _served(method: MethodDescriptor) -> bool:
    return hasattr(JournalService, method.name)


def _method(method: MethodDescriptor, service: JournalService) -> Method:
    request = GetMessageClass(method.input_type)
    if method.client_streaming:
        return Method(request, lambda _call, message: service.write_one(message))
    perform: Callable[[Message, _Context], Awaitable[Message]] = getattr(service, method.name)

    async def answer(_call: Call, message: Any) -> Message:  # noqa: ANN401 - of type ``request``
        return await perform(message, _Context())

    return Method(request, answer)


class _Context:
    """What the gRPC face sees of a call: the one thing it does with it is to refuse."""

    async def abort(
        self, _code: object, details: str, trailing_metadata: tuple[tuple[str, bytes], ...] = ()
    ) -> NoReturn:
        """End the call with an error, as grpc.aio.ServicerContext does."""
        refusal = dict(trailing_metadata).get(REFUSAL_KEY)
        if refusal is None:
            refusal = pb.Refusal(kind=pb.Refusal.UNKNOWN, message=details).SerializeToString()
        raise RemoteFault(REFUSAL, base64.b64encode(refusal).decode())
