"""A client that proves itself by a token believes a server only at the end of the negotiation."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ha.rpc import packets
from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectFailed
from ha.rpc.frames import take_delimited
from ha.rpc.proto.rpc_header_pb2 import RpcSaslProto
from ha.rpc.sasl.initiation import LoginToken
from ha.security.sasl.digest_md5 import RPC_REALM, RPC_URI, DigestAcceptor, Service
from ha.security.sasl.mechanism import Challenge, Protection, Proven
from tests.ha.rpc.wire import ECHO
from tests.stand_in import stand_in

S = RpcSaslProto
TOKEN = LoginToken("alice", b64encode(b"an identifier").decode(), b"secret")
OFFER = S.SaslAuth(method="TOKEN", mechanism="DIGEST-MD5", protocol="", serverId="default")


async def asked(reader: asyncio.StreamReader) -> RpcSaslProto:
    """Return the next part that the client says."""
    frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    _, behind_header = take_delimited(frame, 0)
    said, _ = take_delimited(frame, behind_header)
    return S.FromString(said)


@asynccontextmanager
async def negotiating(last: "S.SaslState.ValueType", *, twice: bool) -> AsyncIterator[int]:
    """Serve one negotiation that ends in this state, with a proof or with a second challenge."""
    acceptor = DigestAcceptor(
        Service(RPC_URI, RPC_REALM, (Protection.AUTHENTICATION,)), lambda _: TOKEN.password
    )

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(packets.SASL_PREAMBLE))
        await asked(reader)
        challenge = acceptor.step(b"")
        assert isinstance(challenge, Challenge)
        offer = S.SaslAuth(challenge=challenge.token)
        offer.MergeFrom(OFFER)
        writer.write(packets.encode_sasl(S(state=S.NEGOTIATE, auths=[offer])))
        proven = acceptor.step((await asked(reader)).token)
        assert isinstance(proven, Proven)
        end = challenge.token if twice else proven.token
        writer.write(packets.encode_sasl(S(state=last, token=end)))
        await reader.read()
        ended.set()

    ended = asyncio.Event()
    async with stand_in(speak) as port:
        yield port
        async with asyncio.timeout(20):
            await ended.wait()


async def connect(port: int) -> RpcConnection:
    return await RpcConnection.open(
        "127.0.0.1", port, protocol=ECHO, deadline_seconds=20, token=TOKEN
    )


@pytest.mark.parametrize(
    ("last", "twice"),
    [(S.SUCCESS, True), (S.CHALLENGE, False), (S.CHALLENGE, True)],
    ids=["no proof", "no end", "neither"],
)
async def test_a_negotiation_without_proof_or_end_ends_the_connection(
    last: "S.SaslState.ValueType", twice: bool
) -> None:
    async with negotiating(last, twice=twice) as port:
        with pytest.raises(ConnectFailed):
            await connect(port)
