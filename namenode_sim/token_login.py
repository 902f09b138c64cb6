"""Logs a connection in by its delegation token (SASL's method TOKEN)."""

from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ha.rpc.java_names import STANDBY_EXCEPTION
from ha.security.sasl.digest_md5 import RPC_REALM, RPC_URI, DigestAcceptor, Service
from ha.security.sasl.mechanism import Protection, SaslFailure
from namenode_sim.client_protocol.tokens import secret_manager as manager
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.namespace.state import Secrets


@dataclass(frozen=True, slots=True)
class TokenUser:
    """The user of a connection that a token has proved, and the one who acts for it."""

    user: str
    real_user: str | None


@dataclass(frozen=True, slots=True)
class TokenLogins:
    """Makes one acceptor for each connection.

    Only the active knows all tokens: a standby sends clients on.  ``now_ms``: since 1970.
    """

    secrets: Callable[[], Secrets]
    is_active: Callable[[], bool]
    now_ms: Callable[[], int]
    protections: Sequence[Protection] = (Protection.AUTHENTICATION,)

    def acceptor(self) -> DigestAcceptor:
        return DigestAcceptor(Service(RPC_URI, RPC_REALM, self.protections), self._password)

    def user_of(self, name: str) -> TokenUser:
        """Return whose token it is that an acceptor has proved under this name.

        Raises:
            SaslFailure: if the name is no identifier.
        """
        try:
            token = manager.read_identifier(_identifier(name))
        except FsError as refusal:
            raise _failure(refusal) from refusal
        real = token.real_user if token.real_user != token.owner else ""
        return TokenUser(token.owner, real or None)

    def _password(self, name: str) -> bytes:
        if not self.is_active():
            said = "Operation category READ is not supported in state standby"
            raise SaslFailure(said, public=said, java_class=STANDBY_EXCEPTION)
        try:
            found = manager.password_of(self.secrets(), _identifier(name), self.now_ms())
        except FsError as refusal:
            raise _failure(refusal) from refusal
        return b64encode(found)


def _identifier(name: str) -> bytes:
    try:
        return b64decode(name, validate=True)
    except NoBase64 as problem:
        raise manager.invalid(f"Can't de-serialize tokenIdentifier: {problem}") from problem


def _failure(refusal: FsError) -> SaslFailure:
    return SaslFailure(refusal.message, public=refusal.message, java_class=refusal.java_class)
