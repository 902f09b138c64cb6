"""One side of a SASL mechanism: tokens in, tokens out; no sockets, no clock.

RFC 4422.  Hadoop carries the tokens in RpcSaslProto (RPC) and DataTransferEncryptorMessageProto
(data transfer).
"""

from enum import StrEnum
from typing import Final, Protocol

from ha.record import dataclass


class Protection(StrEnum):
    """The value of ``hadoop.rpc.protection`` and ``dfs.data.transfer.protection``."""

    AUTHENTICATION = "authentication"
    INTEGRITY = "integrity"
    PRIVACY = "privacy"


QOP: Final = {
    Protection.AUTHENTICATION: "auth",
    Protection.INTEGRITY: "auth-int",
    Protection.PRIVACY: "auth-conf",
}
"""Quality of protection in the words of RFC 2831."""


SASL_EXCEPTION: Final = "javax.security.sasl.SaslException"


class SaslFailure(Exception):
    """A peer's token proves nothing.

    ``str`` is for the audit log.  ``public`` is what the peer may read: no text of GSS, no names.
    ``java_class`` is the exception by which Java's clients decide what to do next: a standby's
    sends them to the next NameNode.
    """

    def __init__(
        self,
        reason: str,
        *,
        public: str = "authentication failed",
        java_class: str = SASL_EXCEPTION,
    ) -> None:
        super().__init__(reason)
        self.public = public
        self.java_class = java_class


class Layer(Protocol):
    """Protects one connection's bytes in both directions, in order."""

    @property
    def max_plain_bytes(self) -> int:
        """Return the longest text that one token to the peer may hold."""

    def wrap(self, data: bytes) -> bytes:
        """Return the token for ``data``; call it in the order in which tokens are sent."""

    def unwrap(self, token: bytes) -> bytes:
        """Return the text of the peer's next token.

        Raises:
            SaslFailure: if it was altered, repeated, or is not the next one.
        """


@dataclass(frozen=True, slots=True)
class Challenge:
    """The peer has to answer this token."""

    token: bytes


@dataclass(frozen=True, slots=True)
class Proven:
    """The peer has proved that it is ``name``.

    ``name`` is a Kerberos principal, or the base64 text of a token's identifier.  ``token`` goes
    out with SUCCESS where the mechanism has something left to say.  ``layer`` is None where only
    authentication was agreed on.
    """

    name: str
    protection: Protection
    token: bytes | None = None
    layer: Layer | None = None


class Acceptor(Protocol):
    """The server's side of one negotiation."""

    def step(self, response: bytes) -> Challenge | Proven:
        """Take the client's next token.

        Raises:
            SaslFailure: if it proves nothing; the negotiation is over.
        """


@dataclass(frozen=True, slots=True)
class Response:
    """The server has to answer this token."""

    token: bytes


@dataclass(frozen=True, slots=True)
class Agreed:
    """The server has proved itself; ``token`` still has to be sent where it is not None."""

    protection: Protection
    token: bytes | None = None
    layer: Layer | None = None


class Initiator(Protocol):
    """The client's side of one negotiation."""

    def step(self, challenge: bytes) -> Response | Agreed:
        """Take the server's next token; the first one is empty where the client speaks first.

        Raises:
            SaslFailure: if the server proves nothing, or offers no protection that is wanted.
        """
