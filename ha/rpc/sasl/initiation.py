"""The client's side of SASL in Hadoop RPC: our name is proved before our context is sent.

See docs/reference/rpc.md#sasl.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from ha.record import dataclass
from ha.rpc import errors
from ha.rpc.packets import SASL_PREAMBLE
from ha.rpc.proto.rpc_header_pb2 import RpcSaslProto
from ha.rpc.wire import Wire
from ha.security.caller import Method, Role
from ha.security.kerberos.own import OwnKerberos
from ha.security.sasl.digest_md5 import MECHANISM as DIGEST_MD5
from ha.security.sasl.digest_md5 import RPC_REALM, RPC_URI, DigestInitiator, Service
from ha.security.sasl.kerberos import MECHANISM as GSSAPI
from ha.security.sasl.mechanism import Agreed, Protection, SaslFailure

T = TypeVar("T")

_THREADS: Final = ThreadPoolExecutor(16, "kerberos")
"""None of asyncio's own: a fence would wait in them behind those that wait for a silent KDC."""


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
    except asyncio.CancelledError as given_up:
        given_up.args = ("our own ticket is waited for: does the KDC answer?",)
        raise


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
        offer = _choose(said, Method.KERBEROS, GSSAPI)
        server = f"{offer.protocol}/{offer.serverId}"
        initiator = await _in_thread(partial(own.initiator, role, host, server))
        token, request = b"", RpcSaslProto(state=RpcSaslProto.INITIATE, auths=[offer])
        while True:
            step = await _in_thread(partial(initiator.step, token))
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


@dataclass(frozen=True, slots=True)
class LoginToken:
    """A delegation token: its owner, its identifier and its secret, these two in base64."""

    owner: str
    name: str
    password: bytes


async def prove_by_token(wire: Wire, token: LoginToken) -> str:
    """Prove that we hold a token; return its owner, who is the user for the context.

    Raises:
        RemoteFault: the server is a standby, or does not take the token.
        SaslFailure: it takes no tokens, or does not know this one; the connection is of no use.
        RpcError: the connection is gone.
    """
    service = Service(RPC_URI, RPC_REALM, tuple(Protection))
    initiator = DigestInitiator(service, token.name, token.password)
    try:
        wire.send(SASL_PREAMBLE)
        said = await wire.negotiate(RpcSaslProto(state=RpcSaslProto.NEGOTIATE))
        offer = _choose(said, Method.TOKEN, DIGEST_MD5)
        response = initiator.step(offer.challenge)
        offer.ClearField("challenge")
        request = RpcSaslProto(state=RpcSaslProto.INITIATE, token=response.token, auths=[offer])
        said = await wire.negotiate(request)
        step = initiator.step(said.token)
        if said.state != RpcSaslProto.SUCCESS or not isinstance(step, Agreed):
            raise SaslFailure("it does not end the negotiation")
        wire.layer, wire.negotiated = step.layer, True
    finally:
        if not wire.negotiated:
            wire.drop(errors.ConnectionLost("no proof"))
    return token.owner


def _choose(said: RpcSaslProto, method: Method, mechanism: str) -> RpcSaslProto.SaslAuth:
    if said.state != RpcSaslProto.NEGOTIATE:
        why = "a token" if method is Method.TOKEN else "hadoop.security.authentication=kerberos"
        raise SaslFailure(
            "Server asks us to fall back to SIMPLE auth, but this client is configured to only "
            f"allow secure connections ({why})"
        )
    for one in said.auths:
        if (one.method, one.mechanism) == (method.name, mechanism):
            return one
    offered = [one.method for one in said.auths]
    raise SaslFailure(f"it offers no {method.name.capitalize()}, only {offered}")
