"""The SASL handshake before the first operation of a connection to a DataNode.

By DIGEST-MD5: the user is a block token's identifier and the password its password, both in base64.
See docs/reference/block-tokens.md#the-handshake.
"""

import base64
from collections.abc import Sequence
from typing import Final

from ha.security.kerberos.own import own_kerberos
from ha.security.sasl.digest_md5 import DigestInitiator, Service
from ha.security.sasl.mechanism import Agreed, Protection, SaslFailure
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.packets import encode_message
from hadoop.wire.peer import NO_BUDGET, Peer

MAGIC: Final = b"\xde\xad\xbe\xef"
_MOST_PRIVILEGED: Final = 1023
Step = pb.DataTransferEncryptorMessageProto


def is_privileged(port: int) -> bool:
    """Return whether only root can listen there: Hadoop believes in such DataNodes unproven."""
    return port <= _MOST_PRIVILEGED


def service(protections: Sequence[Protection]) -> Service:
    """Return what both sides know: Hadoop's protocol "hdfs" at the server "0"."""
    return Service("hdfs/0", "0", protections)


async def connect(
    to: hdfs.DatanodeIDProto,
    token: hdfs.TokenProto,
    *,
    seconds: float,
    budget: ByteBudget = NO_BUDGET,
) -> Peer:
    """Connect to a DataNode, and prove to it that we hold a block token, if that is configured.

    ``budget`` is for packets that are longer than usual.

    Raises:
        PeerLost: the connection is not accepted in time, or ends.
        MalformedTransfer: the DataNode refuses, or proves nothing itself.
    """
    peer = await Peer.connect(to.ipAddr, to.xferPort, seconds=seconds, budget=budget)
    own = own_kerberos()
    if own is None or not own.data_wanted or is_privileged(to.xferPort):
        return peer
    try:
        await initiate(peer, token, own.data_wanted, seconds=seconds)
    except BaseException:
        peer.abort()
        raise
    return peer


async def initiate(
    peer: Peer, token: hdfs.TokenProto, protections: Sequence[Protection], *, seconds: float
) -> None:
    """Prove to a DataNode that we hold a token, as it does to us; raise as ``connect``."""
    user, password = map(base64.b64encode, (token.identifier, token.password))
    initiator = DigestInitiator(service(protections), user.decode(), password)
    await peer.send(MAGIC + encode_message(Step(status=Step.SUCCESS)), seconds=seconds)
    try:
        answer = initiator.step(await payload(peer, seconds=seconds))
        await peer.send_message(Step(status=Step.SUCCESS, payload=answer.token), seconds=seconds)
        agreed = initiator.step(await payload(peer, seconds=seconds))
    except SaslFailure as failure:
        raise MalformedTransfer(f"{peer.name} proves nothing: {failure}") from failure
    assert isinstance(agreed, Agreed), "DIGEST-MD5 ends with the server's proof"
    peer.protect(agreed.layer)


async def payload(peer: Peer, *, seconds: float) -> bytes:
    """Return the token in the peer's next step; raise MalformedTransfer where it gives up."""
    step = await peer.read_message(Step, seconds=seconds)
    if step.status != Step.SUCCESS or not step.HasField("status"):
        raise MalformedTransfer(f"{peer.name} refuses the handshake: {step.message[:200]}")
    return step.payload
