"""Our side of the handshake by which callers prove that they hold a block token."""

from datanode.metrics import TOKENS_REFUSED
from datanode.transfers.block_access import BlockAccess
from ha.security.sasl.digest_md5 import DigestAcceptor
from ha.security.sasl.mechanism import Proven, SaslFailure
from hadoop.block_tokens import TokenRefused
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.handshake import MAGIC, Step, payload, service
from hadoop.wire.peer import Peer


async def accept(peer: Peer, access: BlockAccess, *, seconds: float) -> None:
    """Have a caller prove that it holds a token; what it chose protects its connection from then.

    Raises:
        PeerLost: it takes longer than ``seconds`` for one of its three messages, or is gone.
        MalformedTransfer: it proves nothing.  It has been sent why, if it speaks SASL at all.
    """
    if await peer.read(len(MAGIC), seconds=seconds) != MAGIC:
        raise MalformedTransfer(
            "the peer begins without the handshake that dfs.data.transfer.protection asks for "
            "here. → Set it at the client, too, with hadoop.security.authentication=kerberos"
        )
    acceptor = DigestAcceptor(service(access.protections), access.password)
    try:
        outcome = acceptor.step(await payload(peer, seconds=seconds))
        await peer.send_message(Step(status=Step.SUCCESS, payload=outcome.token), seconds=seconds)
        outcome = acceptor.step(await payload(peer, seconds=seconds))
    except (SaslFailure, TokenRefused) as failure:
        TOKENS_REFUSED.labels("handshake").inc()
        said = failure.public if isinstance(failure, SaslFailure) else str(failure)
        refused = isinstance(failure, TokenRefused)
        refusal = Step(status=Step.ERROR, message=said, accessTokenError=refused)
        await peer.send_message(refusal, seconds=seconds)
        raise MalformedTransfer(f"the handshake failed: {failure}") from failure
    assert isinstance(outcome, Proven), "one challenge is all that DIGEST-MD5 has"
    await peer.send_message(Step(status=Step.SUCCESS, payload=outcome.token), seconds=seconds)
    peer.protect(outcome.layer)
