"""Proves callers by their delegation tokens: connections by SASL's TOKEN, requests of WebHDFS."""

import hmac
import time
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Callable, Sequence

from ha.record import dataclass
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from ha.security.access_control import AccessControl
from ha.security.caller import Caller, Method
from ha.security.kerberos.admission import Admission
from ha.security.kerberos.own import own_kerberos, short_name
from ha.security.sasl.digest_md5 import MECHANISM, RPC_REALM, RPC_URI, DigestAcceptor, Service
from ha.security.sasl.mechanism import Protection, SaslFailure
from ha.security.sasl.way import Way
from hadoop.proto.hdfs_types_pb2 import TokenProto
from namenode_sim.client_protocol.tokens import secret_manager as manager
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.namespace.state import Secrets


@dataclass(frozen=True, slots=True)
class TokenLogins:
    """Makes one acceptor for each connection.

    ``secrets``: those of the namespace; None while this NameNode is not the active, which alone
    knows all tokens: clients are sent on to the next.
    """

    secrets: Callable[[], Secrets | None]
    protections: Sequence[Protection] = (Protection.AUTHENTICATION,)
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def way(self) -> Way:
        """Return how Hadoop RPC offers it."""
        return Way(
            Method.TOKEN,
            MECHANISM,
            "",
            RPC_REALM,
            self.acceptor,
            self.user_of,
            speaks_first=True,
            in_thread=False,
        )

    def acceptor(self) -> DigestAcceptor:
        return DigestAcceptor(Service(RPC_URI, RPC_REALM, self.protections), self._password)

    def user_of(self, name: str) -> tuple[str, str]:
        """Return the owner of the token that was proved under this name, and the real user.

        Raises:
            SaslFailure: if the name is no identifier, or its owner has no short name here.
        """
        try:
            token = manager.read_identifier(_identifier(name))
        except FsError as refusal:
            raise _failure(refusal) from refusal
        real = token.real_user if token.real_user != token.owner else ""
        return short_name(token.owner), short_name(real)

    def caller(self, token: TokenProto) -> Caller:
        """Return the caller that a token in a request proves; it has no right before its admission.

        Raises:
            RemoteFault: the token is not good, or this NameNode is not the active.
        """
        name, shown = b64encode(token.identifier).decode(), b64encode(token.password)
        try:
            if not hmac.compare_digest(self._password(name), shown):
                raise _failure(manager.invalid("the token's password is wrong"))
            owner, real = self.user_of(name)
        except SaslFailure as failure:
            raise RemoteFault(failure.java_class, failure.public) from failure
        return Caller(owner, Method.TOKEN, frozenset(), "", principal=name, real=real)

    def _password(self, name: str) -> bytes:
        secrets = self.secrets()
        if secrets is None:
            said = "Operation category READ is not supported in state standby"
            raise SaslFailure(said, public=said, java_class=STANDBY_EXCEPTION)
        try:
            found = manager.password_of(secrets, _identifier(name), self.now_ms())
        except FsError as refusal:
            raise _failure(refusal) from refusal
        return b64encode(found)


def offer_tokens(access: AccessControl, secrets: Callable[[], Secrets | None]) -> None:
    """Let callers log in by tokens, too; a client that has one takes it before its ticket."""
    own = own_kerberos()
    logins = TokenLogins(secrets) if own is None else TokenLogins(secrets, own.wanted)
    access.admission = access.admission or Admission()
    access.ways = (logins.way(), *access.ways)


def _identifier(name: str) -> bytes:
    try:
        return b64decode(name, validate=True)
    except NoBase64 as problem:
        raise manager.invalid(f"Can't de-serialize tokenIdentifier: {problem}") from problem


def _failure(refusal: FsError) -> SaslFailure:
    return SaslFailure(refusal.message, public=refusal.message, java_class=refusal.java_class)
