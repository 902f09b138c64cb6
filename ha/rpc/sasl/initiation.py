"""The client's side of SASL in Hadoop RPC: our name is proved before our context is sent.

See docs/reference/rpc.md#sasl.
"""

import asyncio

from ha.rpc import errors
from ha.rpc.packets import SASL_PREAMBLE
from ha.rpc.proto.rpc_header_pb2 import RpcSaslProto
from ha.rpc.wire import Wire
from ha.security.caller import Method, Role
from ha.security.kerberos.own import OwnKerberos
from ha.security.sasl.kerberos import MECHANISM
from ha.security.sasl.mechanism import Agreed, SaslFailure


class NotProven(Exception):
    """One side could not prove itself to the other; nothing was asked for."""


async def prove(
    wire: Wire, own: OwnKerberos, role: Role | None, host: str, user: str | None
) -> str:
    """Prove who we are to a server that must be of that role; return the user for the context.

    ``user`` is whom we act for if that is not our own; a server says whether we may.

    Raises:
        NotProven: with the reason; the connection is of no more use.
        RpcError: the connection is gone.
    """
    try:
        return await _prove(wire, own, role, host, user)
    except SaslFailure as failure:
        raise NotProven(str(failure)) from failure
    except errors.RemoteFault as fault:
        raise NotProven(f"it refuses {own.principal or 'us'}: {fault.reason}") from fault
    finally:
        if not wire.negotiated:
            wire.drop(errors.ConnectionLost("no proof"))


async def _prove(
    wire: Wire, own: OwnKerberos, role: Role | None, host: str, user: str | None
) -> str:
    wire.send(SASL_PREAMBLE)
    said = await wire.negotiate(RpcSaslProto(state=RpcSaslProto.NEGOTIATE))
    if said.state != RpcSaslProto.NEGOTIATE:
        raise NotProven(
            "Server asks us to fall back to SIMPLE auth, but this client is configured to only "
            "allow secure connections (hadoop.security.authentication=kerberos)"
        )
    ours = (Method.KERBEROS.name, MECHANISM)
    offer = next((one for one in said.auths if (one.method, one.mechanism) == ours), None)
    if offer is None:
        raise NotProven(f"it offers no Kerberos, only {[one.method for one in said.auths]}")
    initiator = await asyncio.to_thread(
        own.initiator, role, host, f"{offer.protocol}/{offer.serverId}"
    )
    token, request = b"", RpcSaslProto(state=RpcSaslProto.INITIATE, auths=[offer])
    while True:
        step = await asyncio.to_thread(initiator.step, token)
        request.token = step.token or b""
        said = await wire.negotiate(request)
        if isinstance(step, Agreed):
            break
        if said.state != RpcSaslProto.CHALLENGE:
            raise NotProven("it ends the negotiation before it has proved who it is")
        token, request = said.token, RpcSaslProto(state=RpcSaslProto.RESPONSE)
    if said.state != RpcSaslProto.SUCCESS:
        raise NotProven("it goes on with a negotiation that is complete")
    wire.layer, wire.negotiated = step.layer, True
    assert own.principal is not None
    return own.principal if user in (None, own.user) else user
