"""SASL's DIGEST-MD5 (RFC 2831), both sides, as the JDK and Hadoop speak it.

Hadoop logs in with it by tokens: the user is the token's identifier and the password its secret,
which is 20 random-looking bytes and no word of a dictionary.  One login takes one exchange: there
is no fast re-authentication, one realm, no user acts for another, and names are ASCII.

See docs/reference/delegation-tokens.md#digest-md5.
"""

import base64
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import md5
from typing import Final

from ha.record import dataclass
from ha.security.sasl.mechanism import (
    QOP,
    Agreed,
    Challenge,
    Layer,
    Protection,
    Proven,
    Response,
    SaslFailure,
)
from ha.security.sasl.message_layer import CIPHERS, MIN_BUFFER_BYTES, DigestLayer, Keys

MECHANISM: Final = "DIGEST-MD5"
MAX_CHALLENGE_BYTES: Final = 2048
MAX_RESPONSE_BYTES: Final = 4096
"""Both are the RFC's, and the JDK's."""

_BUFFER_BYTES: Final = 65536
"""How long a protected token of the peer may be: what stands for no ``maxbuf``."""
_MOST_BUFFER_BYTES: Final = 0xFFFFFF
_ONCE: Final = "00000001"
_NO_BODY: Final = ":00000000000000000000000000000000"

_BLANK: Final = rb"[ \t\r\n]*"
_TOKEN: Final = rb'[^\x00-\x20\x7f-\xff()<>@,;:\\"/\[\]?={}]+'
_QUOTED: Final = rb'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*)"'
_DIRECTIVE: Final = re.compile(
    _BLANK + b"(" + _TOKEN + b")" + _BLANK + b"=" + _BLANK
    + b"(?:" + _QUOTED + b"|(" + _TOKEN + b"))" + _BLANK + rb"(?:,|\Z)"
)  # fmt: skip

Passwords = Callable[[str], bytes]
"""Returns the password of a user, as text in ASCII; raises SaslFailure where there is none."""


def _nonce() -> str:
    return base64.b64encode(secrets.token_bytes(30)).decode()


@dataclass(frozen=True, slots=True)
class Service:
    """What both sides know of each other: RPC with tokens has the realm "default"."""

    uri: str
    realm: str
    protections: Sequence[Protection]
    """Those that are offered, or accepted, the first choice first."""
    ciphers: Sequence[str] = tuple(CIPHERS)
    nonce: Callable[[], str] = _nonce


RPC_REALM: Final = "default"
RPC_URI: Final = f"/{RPC_REALM}"


def directives(message: bytes, limit: int) -> dict[str, str]:
    """Return the directives of a challenge or response by name; none may stand twice.

    Raises:
        SaslFailure: if it is longer than ``limit``, or not written as the RFC says.
    """
    if len(message) > limit:
        raise SaslFailure(f"{len(message)} bytes of directives, at most {limit}")
    found = dict[str, str]()
    pos = 0
    while pos < len(message):
        match = _DIRECTIVE.match(message, pos)
        if match is None:
            raise SaslFailure(f"byte {pos} of the directives makes no sense")
        name, quoted, plain = match.groups()
        key = name.decode().lower()
        if key in found:
            raise SaslFailure(f"the directive {key} stands twice")
        text = re.sub(rb"\\(.)", rb"\1", quoted) if plain is None else plain
        found[key] = text.decode()
        pos = match.end()
    return found


def _quote(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _require(found: Mapping[str, str], name: str) -> str:
    if not found.get(name):
        raise SaslFailure(f"the directive {name} is missing")
    return found[name]


def _expect(found: Mapping[str, str], name: str, wanted: str) -> None:
    if found.get(name) != wanted:
        raise SaslFailure(f"the directive {name} is not what it has to be")


def _peer_buffer(found: Mapping[str, str]) -> int:
    """Return how long a protected token the peer takes."""
    text = found.get("maxbuf", str(_BUFFER_BYTES))
    if not text.isdecimal() or not MIN_BUFFER_BYTES <= int(text) <= _MOST_BUFFER_BYTES:
        raise SaslFailure(f"a buffer of {text[:20]} bytes")
    return int(text)


def _choices(text: str) -> list[str]:
    return [choice.strip() for choice in text.split(",")]


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What one login is computed from."""

    user: str
    realm: str
    password: bytes
    nonce: str
    cnonce: str
    uri: str
    qop: str
    tail: str = ""  # a colon and the user again, if it sends itself as its authorization id

    def secret(self) -> bytes:
        """Return the RFC's H(A1)."""
        known = md5(f"{self.user}:{self.realm}:".encode() + self.password).digest()
        return md5(known + f":{self.nonce}:{self.cnonce}{self.tail}".encode()).digest()

    def proof(self, method: str) -> str:
        """Return the client's response (method AUTHENTICATE), or the server's (empty)."""
        tail = "" if self.qop == QOP[Protection.AUTHENTICATION] else _NO_BODY
        said = md5(f"{method}:{self.uri}{tail}".encode()).hexdigest()
        text = f"{self.secret().hex()}:{self.nonce}:{_ONCE}:{self.cnonce}:{self.qop}:{said}"
        return md5(text.encode()).hexdigest()


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _layer(
    exchange: _Exchange, protection: Protection, cipher: str, buffer_bytes: int, *, server: bool
) -> Layer | None:
    if protection is Protection.AUTHENTICATION:
        return None
    chosen = CIPHERS[cipher] if protection is Protection.PRIVACY else None
    return DigestLayer(Keys(exchange.secret(), is_server=server), chosen, buffer_bytes)


class DigestAcceptor:
    """The server's side: a challenge for the first step, the client's response for the second."""

    __slots__ = ("_nonce", "_passwords", "_service")

    def __init__(self, service: Service, passwords: Passwords) -> None:
        self._service = service
        self._passwords = passwords
        self._nonce: str | None = None

    def step(self, response: bytes) -> Challenge | Proven:
        """Return the challenge, or who the client has proved to be.

        Raises:
            SaslFailure: if the response proves nothing.
        """
        if self._nonce is None:
            if response:
                raise SaslFailure("a response comes before the challenge")
            self._nonce = self._service.nonce()
            return Challenge(self._challenge(self._nonce))
        nonce, self._nonce = self._nonce, ""
        if not nonce:
            raise SaslFailure("a second response; each challenge takes one")
        return self._check(directives(response, MAX_RESPONSE_BYTES), nonce)

    def _challenge(self, nonce: str) -> bytes:
        service = self._service
        qops = ",".join(QOP[one] for one in service.protections)
        said = [f'realm={_quote(service.realm)},nonce="{nonce}",qop="{qops}",charset=utf-8']
        if Protection.PRIVACY in service.protections:
            said.append(f'cipher="{",".join(service.ciphers)}"')
        return ",".join((*said, "algorithm=md5-sess")).encode()

    def _check(self, found: Mapping[str, str], nonce: str) -> Proven:
        service = self._service
        for name, wanted in (
            ("nonce", nonce),
            ("nc", _ONCE),
            ("realm", service.realm),
            ("digest-uri", service.uri),
        ):
            _expect(found, name, wanted)
        user = _require(found, "username")
        acts_for = found.get("authzid", "")  # Java's clients of DataNodes send themselves
        if found.get("charset", "utf-8").lower() != "utf-8" or acts_for not in ("", user):
            raise SaslFailure("the response asks for a character set or a user that is not served")
        qop = found.get("qop", QOP[Protection.AUTHENTICATION])
        protection = next((one for one in service.protections if QOP[one] == qop), None)
        if protection is None:
            raise SaslFailure(f"the client chose the protection {qop[:20]!r}, which is not offered")
        cipher = found.get("cipher", "")
        if protection is Protection.PRIVACY and cipher not in service.ciphers:
            raise SaslFailure(f"the client chose the cipher {cipher[:20]!r}, which is not offered")
        buffer_bytes = _peer_buffer(found)
        cnonce, tail = _require(found, "cnonce"), acts_for and f":{user}"
        exchange = _Exchange(
            user, service.realm, self._passwords(user), nonce, cnonce, service.uri, qop, tail
        )
        if not _same(_require(found, "response"), exchange.proof("AUTHENTICATE")):
            raise SaslFailure("the client does not know the password")
        return Proven(
            user,
            protection,
            f"rspauth={exchange.proof('')}".encode(),
            _layer(exchange, protection, cipher, buffer_bytes, server=True),
        )


class DigestInitiator:
    """The client's side: answers the challenge, then checks the server's proof."""

    __slots__ = ("_agreed", "_exchange", "_password", "_service", "_user")

    def __init__(self, service: Service, user: str, password: bytes) -> None:
        self._service = service
        self._user = user
        self._password = password
        self._exchange: _Exchange | None = None
        self._agreed: Agreed | None = None

    def step(self, challenge: bytes) -> Response | Agreed:
        """Return the response to a challenge, or what was agreed on.

        Raises:
            SaslFailure: if the server does not know the password, or offers nothing that is wanted.
        """
        found = directives(challenge, MAX_CHALLENGE_BYTES)
        if self._exchange is None:
            return Response(self._respond(found))
        agreed, self._agreed = self._agreed, None
        if agreed is None:
            raise SaslFailure("the server goes on after its proof")
        if not _same(_require(found, "rspauth"), self._exchange.proof("")):
            raise SaslFailure("the server does not know the password")
        return agreed

    def _respond(self, found: Mapping[str, str]) -> bytes:
        service = self._service
        _expect(found, "algorithm", "md5-sess")
        _expect(found, "realm", service.realm)
        offered = _choices(found.get("qop", QOP[Protection.AUTHENTICATION]))
        protection = next((one for one in service.protections if QOP[one] in offered), None)
        if protection is None:
            raise SaslFailure("No common protection layer between client and server")
        cipher = ""
        if protection is Protection.PRIVACY:
            ciphers = _choices(found.get("cipher", ""))
            cipher = next((one for one in service.ciphers if one in ciphers), "")
            if not cipher:
                raise SaslFailure("the server offers no cipher that is wanted here")
        nonce, buffer_bytes = _require(found, "nonce"), _peer_buffer(found)
        self._exchange = exchange = _Exchange(
            self._user, service.realm, self._password, nonce, service.nonce(), service.uri,
            QOP[protection],
        )  # fmt: skip
        layer = _layer(exchange, protection, cipher, buffer_bytes, server=False)
        self._agreed = Agreed(protection, layer=layer)
        said = [
            f"charset=utf-8,username={_quote(self._user)},realm={_quote(service.realm)}",
            f'nonce={_quote(nonce)},nc={_ONCE},cnonce="{exchange.cnonce}"',
            f"digest-uri={_quote(service.uri)},maxbuf={_BUFFER_BYTES}",
            f"response={exchange.proof('AUTHENTICATE')},qop={exchange.qop}",
        ]
        if cipher:
            said.append(f'cipher="{cipher}"')
        return ",".join(said).encode()
