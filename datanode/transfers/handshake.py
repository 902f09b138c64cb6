"""Our side of the handshake by which callers prove that they hold a block token or a key."""

from datanode.metrics import HANDSHAKES, TOKENS_REFUSED
from datanode.transfers.block_access import BlockAccess
from ha.security.sasl.digest_md5 import DigestAcceptor
from ha.security.sasl.mechanism import Protection, Proven, SaslFailure
from hadoop.block_tokens import TokenRefused
from hadoop.wire.ciphered import AES, fresh_keys
from hadoop.wire.errors import MalformedTransfer, UnknownKey
from hadoop.wire.handshake import MAGIC, Step, chosen, next_step, service
from hadoop.wire.peer import Peer


async def accept(peer: Peer, access: BlockAccess, *, seconds: float) -> None:
    """Have a caller prove itself; what it chose protects its connection from then.

    Raises:
        PeerLost: it takes longer than ``seconds`` for one of its three messages, or is gone.
        MalformedTransfer: it proves nothing.  It has been sent why, if it speaks SASL at all.
    """
    if await peer.read(len(MAGIC), seconds=seconds) != MAGIC:
        advice = (
            "dfs.encrypt.data.transfer asks for here. → Set it at NameNodes and DataNodes alike"
            if access.encrypts
            else "dfs.data.transfer.protection asks for here. → Set it at the client, too, with "
            "hadoop.security.authentication=kerberos"
        )
        raise MalformedTransfer(f"the peer begins without the handshake that {advice}")
    acceptor = DigestAcceptor(service(access.protections), access.password)
    try:
        outcome = acceptor.step((await next_step(peer, seconds=seconds)).payload)
        await peer.send_message(Step(status=Step.SUCCESS, payload=outcome.token), seconds=seconds)
        said = await next_step(peer, seconds=seconds)
        outcome = acceptor.step(said.payload)
    except (SaslFailure, TokenRefused, UnknownKey) as failure:
        TOKENS_REFUSED.labels("handshake").inc()
        why = failure.public if isinstance(failure, SaslFailure) else str(failure)
        refused = isinstance(failure, TokenRefused)
        status = Step.ERROR_UNKNOWN_KEY if isinstance(failure, UnknownKey) else Step.ERROR
        refusal = Step(status=status, message=why, accessTokenError=refused)
        await peer.send_message(refusal, seconds=seconds)
        raise MalformedTransfer(f"the handshake failed: {failure}") from failure
    assert isinstance(outcome, Proven), "one challenge is all that DIGEST-MD5 has"
    last = Step(status=Step.SUCCESS, payload=outcome.token)
    is_private = outcome.protection is Protection.PRIVACY
    if not (access.key_bits and is_private and chosen(said.cipherOption, (AES,))):
        HANDSHAKES.labels(outcome.protection).inc()
        await peer.send_message(last, seconds=seconds)
        peer.protect(outcome.layer)
        return
    assert outcome.layer is not None
    HANDSHAKES.labels("aes").inc()
    keys = fresh_keys(access.key_bits)
    sealed = last.cipherOption.add()
    sealed.CopyFrom(keys)
    sealed.inKey, sealed.outKey = map(outcome.layer.wrap, (keys.inKey, keys.outKey))
    await peer.send_message(last, seconds=seconds)
    peer.encrypt(keys, made_here=True)
