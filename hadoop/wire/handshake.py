"""The SASL handshake before the first operation of a connection to a DataNode.

By DIGEST-MD5: the user is a block token's identifier and the password its password, both in base64;
or a data encryption key is both.  See docs/reference/block-tokens.md#the-handshake.
"""

import base64
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from ha.security.kerberos.own import own_kerberos
from ha.security.sasl.digest_md5 import DigestInitiator, Service
from ha.security.sasl.mechanism import Agreed, Protection, SaslFailure
from ha.security.sasl.message_layer import CIPHERS
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.ciphered import AES
from hadoop.wire.errors import MalformedTransfer, UnknownKey
from hadoop.wire.packets import encode_message
from hadoop.wire.peer import NO_BUDGET, Peer

MAGIC: Final = b"\xde\xad\xbe\xef"
_MOST_PRIVILEGED: Final = 1023
Step = pb.DataTransferEncryptorMessageProto


def is_privileged(port: int) -> bool:
    """Return whether only root can listen there: Hadoop believes in such DataNodes unproven."""
    return port <= _MOST_PRIVILEGED


def service(protections: Sequence[Protection], algorithm: str = "") -> Service:
    """Return what both sides know: Hadoop's protocol "hdfs" at the server "0".

    ``algorithm`` is the only cipher to take; empty: any.
    """
    ciphers = [cipher for cipher in CIPHERS if algorithm in ("", cipher)]
    return Service("hdfs/0", "0", protections, ciphers)


def data_user(key: hdfs.DataEncryptionKeyProto) -> str:
    """Return the user of the handshake with a key; Java has a key's id with a sign."""
    key_id = int.from_bytes(key.keyId.to_bytes(4), signed=True)
    return f"{key_id} {key.blockPoolId} {base64.b64encode(key.nonce).decode()}"


async def connect(
    to: hdfs.DatanodeIDProto,
    token: hdfs.TokenProto,
    *,
    key: hdfs.DataEncryptionKeyProto | None,
    seconds: float,
    budget: ByteBudget = NO_BUDGET,
) -> Peer:
    """Connect to a DataNode, and prove to it what is configured.

    That is that we hold ``key`` where connections are encrypted, and the block token with Kerberos.
    ``budget`` is for packets that are longer than usual.

    Raises:
        PeerLost: the connection is not accepted in time, or ends.
        UnknownKey: the DataNode does not know the key.
        MalformedTransfer: the DataNode refuses, or proves nothing itself.
    """
    peer = await Peer.connect(to.ipAddr, to.xferPort, seconds=seconds, budget=budget)
    own = own_kerberos()
    try:
        if key is not None:
            password = base64.b64encode(key.encryptionKey)
            initiator = DigestInitiator(
                service((Protection.PRIVACY,), key.encryptionAlgorithm), data_user(key), password
            )
            await _initiate(peer, initiator, (AES,), seconds)
        elif own is not None and own.data_wanted and not is_privileged(to.xferPort):
            ciphers = (AES,) if own.data_by_aes else ()
            await initiate(peer, token, own.data_wanted, seconds=seconds, ciphers=ciphers)
    except BaseException:
        peer.abort()
        raise
    return peer


async def initiate(
    peer: Peer,
    token: hdfs.TokenProto,
    protections: Sequence[Protection],
    *,
    seconds: float,
    ciphers: Sequence[pb.CipherSuiteProto.ValueType] = (),
) -> None:
    """Prove to a DataNode that we hold a token, as it does to us; raise as ``connect``.

    ``ciphers`` are offered where privacy is wanted; which is taken is the DataNode's choice.
    """
    user, password = map(base64.b64encode, (token.identifier, token.password))
    initiator = DigestInitiator(service(protections), user.decode(), password)
    offered = ciphers if Protection.PRIVACY in protections else ()
    await _initiate(peer, initiator, offered, seconds)


async def _initiate(
    peer: Peer,
    initiator: DigestInitiator,
    offered: Sequence[pb.CipherSuiteProto.ValueType],
    seconds: float,
) -> None:
    await peer.send(MAGIC + encode_message(Step(status=Step.SUCCESS)), seconds=seconds)
    try:
        answer = initiator.step((await next_step(peer, seconds=seconds)).payload)
        options = [pb.CipherOptionProto(suite=one) for one in offered]
        said = Step(status=Step.SUCCESS, payload=answer.token, cipherOption=options)
        await peer.send_message(said, seconds=seconds)
        last = await next_step(peer, seconds=seconds)
        agreed = initiator.step(last.payload)
        assert isinstance(agreed, Agreed), "DIGEST-MD5 ends with the server's proof"
        keys = chosen(last.cipherOption, offered)
        if keys is None or agreed.protection is not Protection.PRIVACY:
            peer.protect(agreed.layer)
            return
        assert agreed.layer is not None
        keys.inKey, keys.outKey = map(agreed.layer.unwrap, (keys.inKey, keys.outKey))
    except SaslFailure as failure:
        raise MalformedTransfer(f"{peer.name} proves nothing: {failure}") from failure
    peer.encrypt(keys, made_here=False)


def chosen(
    options: Iterable[pb.CipherOptionProto], known: Collection[pb.CipherSuiteProto.ValueType]
) -> pb.CipherOptionProto | None:
    """Return the first option whose cipher is known; None: the layer of SASL stays."""
    return next((one for one in options if one.suite in known), None)


async def next_step(peer: Peer, *, seconds: float) -> Step:
    """Return the peer's next step; raise MalformedTransfer or UnknownKey where it gives up."""
    step = await peer.read_message(Step, seconds=seconds)
    if step.status == Step.ERROR_UNKNOWN_KEY:
        raise UnknownKey(f"{peer.name} does not know our key: {step.message[:200]}")
    if step.status != Step.SUCCESS or not step.HasField("status"):
        raise MalformedTransfer(f"{peer.name} refuses the handshake: {step.message[:200]}")
    return step
