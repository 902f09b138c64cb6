"""Kerberos on HTTP, both sides: SPNEGO's tokens, or Kerberos' own, as Java's clients send them.

One token and one answer are the whole handshake.  Nothing protects what follows but TLS.
"""

from typing import Final

from ha.security.sasl import gss
from ha.security.sasl.mechanism import Challenge, Protection, Proven, SaslFailure

MECHANISM: Final = "SPNEGO"
PUBLIC: Final = "the ticket is refused: this daemon's log says why"
_ASKED: Final = gss.MUTUAL | gss.REPLAY | gss.SEQUENCE | gss.INTEGRITY


class SpnegoAcceptor:
    """The server's side of one request."""

    def __init__(self, credentials: gss.Credentials) -> None:
        self._context = gss.Context(credentials)

    def step(self, response: bytes) -> Challenge | Proven:
        """Take the client's only token; raise SaslFailure if it proves nothing."""
        context = self._context
        try:
            answer = context.accept(response)
        except gss.GssError as failure:
            raise SaslFailure(str(failure), public=PUBLIC) from failure
        if not context.complete:
            raise SaslFailure("it wants to negotiate further than one token", public=PUBLIC)
        if context.has(gss.ANONYMOUS):
            raise SaslFailure("an anonymous ticket", public=PUBLIC)
        return Proven(context.initiator, Protection.AUTHENTICATION, answer)


class SpnegoInitiator:
    """The client's side of one request to the service ``target``."""

    def __init__(self, credentials: gss.Credentials, target: str) -> None:
        self._context = gss.Context(credentials)
        self._target = target

    def token(self) -> bytes:
        """Return the token of the request, which may take as long as a KDC takes.

        Raises:
            SaslFailure: there is no ticket for that service.
        """
        return self._step(b"")

    def finish(self, answer: bytes) -> None:
        """Take the server's token; raise SaslFailure where it does not prove who it is."""
        self._step(answer)
        if not self._context.complete:
            raise SaslFailure(f"{self._target} wants to negotiate further than one token")
        if not self._context.has(gss.MUTUAL):
            raise SaslFailure(f"{self._target} has not proved itself")

    def _step(self, token: bytes) -> bytes:
        try:
            return self._context.init(self._target, _ASKED, token, negotiated=True)
        except gss.GssError as failure:
            raise SaslFailure(f"{self._target}: {failure}") from failure
