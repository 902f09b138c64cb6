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


async def prove(
    wire: Wire, own: OwnKerberos, role: Role | None, host: str, user: str | None
) -> str:
    """Prove who we are to a server that must be of that role; return the user for the context.

    ``user`` is whom we act for if that is not our own; a server says whether we may.

    Raises:
        SaslFailure: one side could not prove itself; the connection is of no more use.
        RpcError: the connection is gone.
    """
    try:
        wire.send(SASL_PREAMBLE)
        said = await wire.negotiate(RpcSaslProto(state=RpcSaslProto.NEGOTIATE))
        offer = _chosen(said)
        server = f"{offer.protocol}/{offer.serverId}"
        initiator = await asyncio.to_thread(own.initiator, role, host, server)
        token, request = b"", RpcSaslProto(state=RpcSaslProto.INITIATE, auths=[offer])
        while True:
            step = await asyncio.to_thread(initiator.step, token)
            request.token = step.token or b""
            said = await wire.negotiate(request)
            expected = RpcSaslProto.SUCCESS if isinstance(step, Agreed) else RpcSaslProto.CHALLENGE
            if said.state != expected:
                raise SaslFailure("it ends the negotiation too early, or not at all")
            if isinstance(step, Agreed):
                break
            token, request = said.token, RpcSaslProto(state=RpcSaslProto.RESPONSE)
        wire.layer, wire.negotiated = step.layer, True
    except errors.RemoteFault as fault:
        raise SaslFailure(f"it refuses {own.principal or 'us'}: {fault.reason}") from fault
    finally:
        if not wire.negotiated:
            wire.drop(errors.ConnectionLost("no proof"))
    assert own.principal is not None
    return own.principal if user in (None, own.user) else user


def _chosen(said: RpcSaslProto) -> RpcSaslProto.SaslAuth:
    if said.state != RpcSaslProto.NEGOTIATE:
        raise SaslFailure(
            "Server asks us to fall back to SIMPLE auth, but this client is configured to only "
            "allow secure connections (hadoop.security.authentication=kerberos)"
        )
    ours = (Method.KERBEROS.name, MECHANISM)
    for one in said.auths:
        if (one.method, one.mechanism) == ours:
            return one
    raise SaslFailure(f"it offers no Kerberos, only {[one.method for one in said.auths]}")
