"""The SASL mechanism GSSAPI (RFC 4752) with Kerberos, both sides."""

from collections.abc import Collection
from typing import Final

from ha.security.sasl import gss
from ha.security.sasl import mechanism as sasl
from ha.security.sasl.mechanism import Challenge, Protection, Proven, SaslFailure
from ha.security.sasl.message_layer import MIN_BUFFER_BYTES

MECHANISM: Final = "GSSAPI"
MAX_BUFFER_BYTES: Final = 65536
"""Java's default: the longest token that either side accepts once layers are agreed on."""

LAYERS: Final = {Protection.AUTHENTICATION: 1, Protection.INTEGRITY: 2, Protection.PRIVACY: 4}
_PROTECTIONS: Final = {bit: protection for protection, bit in LAYERS.items()}
_LAYER_MESSAGE_BYTES: Final = 4
_ORDERED: Final = gss.REPLAY | gss.SEQUENCE | gss.INTEGRITY
_NEW_TOKEN: Final = b"\x05\x04"
"""RFC 4121.  RC4 and DES make older tokens, and no subkey that is fresh for each handshake."""
_OF_ACCEPTORS_SUBKEY: Final = 0x04


class KerberosLayer:
    """What a context does to the bytes after the negotiation."""

    def __init__(self, context: gss.Context, protection: Protection, peer_bytes: int) -> None:
        self._context = context
        self._encrypt = protection is Protection.PRIVACY
        self.max_plain_bytes = context.longest_text(peer_bytes, encrypt=self._encrypt)
        """The longest text that one token to the peer may hold."""
        if peer_bytes < MIN_BUFFER_BYTES:
            raise SaslFailure(f"the peer takes tokens of {peer_bytes} bytes: too few")

    def wrap(self, data: bytes) -> bytes:
        """Return the token for ``data``."""
        try:
            return self._context.wrap(data, encrypt=self._encrypt)
        except gss.GssError as failure:
            raise SaslFailure(f"wrap: {failure}") from failure

    def unwrap(self, token: bytes) -> bytes:
        """Return the text of the peer's next token; raise SaslFailure if it is not that."""
        try:
            return self._context.unwrap(token, encrypted=self._encrypt)
        except gss.GssError as failure:
            raise SaslFailure(f"unwrap: {failure}") from failure


class KerberosAcceptor:
    """The server's side: a ticket, our answer, an empty response, our layers, the client's."""

    def __init__(self, credentials: gss.Credentials, offered: Collection[Protection]) -> None:
        self._context = gss.Context(credentials)
        self._offered = sum(LAYERS[protection] for protection in set(offered))
        self._layers_sent = False

    def step(self, response: bytes) -> Challenge | Proven:
        """Take the client's next token; raise SaslFailure if it proves nothing."""
        context = self._context
        try:
            if not context.complete:
                answer = context.accept(response)
                _require_properties(context)
                return Challenge(answer)
            if self._layers_sent:
                return self._end(response)
            if response:
                raise SaslFailure("a token where an empty response is due")
            self._layers_sent = True
            return Challenge(_new_style(context.wrap(_layers(self._offered), encrypt=False)))
        except gss.GssError as failure:
            raise SaslFailure(str(failure), public="GSS initiate failed") from failure

    def _end(self, response: bytes) -> Proven:
        context = self._context
        if not _new_style(response)[2] & _OF_ACCEPTORS_SUBKEY:
            raise SaslFailure("the layer message is not under our subkey: it may be replayed")
        message = context.unwrap(response, encrypted=False)
        if len(message) < _LAYER_MESSAGE_BYTES:
            raise SaslFailure(f"a layer message of {len(message)} bytes")
        chosen, peer_bytes = message[0], int.from_bytes(message[1:4], "big")
        protection = _PROTECTIONS.get(chosen)
        if protection is None or not chosen & self._offered:
            raise SaslFailure(f"the client chose layer {chosen} of {self._offered}")
        if message[4:] not in (b"", context.initiator.encode("utf-8", "surrogateescape")):
            raise SaslFailure(f"the ticket of {context.initiator} asks to act for another")
        layer = _layer(context, protection, peer_bytes)
        return Proven(context.initiator, protection, layer=layer)


class KerberosInitiator:
    """The client's side, towards the service ``target``."""

    def __init__(
        self, credentials: gss.Credentials, target: str, wanted: Collection[Protection]
    ) -> None:
        self._context = gss.Context(credentials)
        self._target = target
        self._wanted = tuple(wanted)
        flags = gss.MUTUAL | _ORDERED
        self._flags = flags | (gss.CONFIDENTIAL if Protection.PRIVACY in self._wanted else 0)

    def step(self, challenge: bytes) -> sasl.Response | sasl.Agreed:
        """Take the server's next token, at first none; raise SaslFailure if it proves nothing."""
        context = self._context
        try:
            if context.complete:
                return self._choose(challenge)
            answer = context.init(self._target, self._flags, challenge)
            _require_properties(context)
            return sasl.Response(answer)
        except gss.GssError as failure:
            raise SaslFailure(f"{self._target}: {failure}") from failure

    def _choose(self, challenge: bytes) -> sasl.Agreed:
        context = self._context
        message = context.unwrap(_new_style(challenge), encrypted=False)
        if len(message) != _LAYER_MESSAGE_BYTES:
            raise SaslFailure(f"{self._target}: a layer message of {len(message)} bytes")
        offered, peer_bytes = message[0], int.from_bytes(message[1:4], "big")
        chosen = next((one for one in self._wanted if LAYERS[one] & offered), None)
        if chosen is None:
            there = [name.value for bit, name in _PROTECTIONS.items() if bit & offered]
            raise SaslFailure(
                f"no common protection layer: {self._target} offers {', '.join(there)}; "
                f"hadoop.rpc.protection here is {', '.join(self._wanted)}"
            )
        answer = context.wrap(_layers(LAYERS[chosen]), encrypt=False)
        return sasl.Agreed(chosen, answer, _layer(context, chosen, peer_bytes))


def _layer(context: gss.Context, protection: Protection, peer_bytes: int) -> KerberosLayer | None:
    protects = protection is not Protection.AUTHENTICATION
    return KerberosLayer(context, protection, peer_bytes) if protects else None


def _layers(bits: int) -> bytes:
    most = 0 if bits == LAYERS[Protection.AUTHENTICATION] else MAX_BUFFER_BYTES
    return bytes((bits,)) + most.to_bytes(3, "big")


def _require_properties(context: gss.Context) -> None:
    """Raise SaslFailure if a complete context lacks what layers and names stand on."""
    if context.complete and context.has(gss.ANONYMOUS):
        raise SaslFailure("an anonymous ticket")
    if context.complete and not context.has(gss.MUTUAL | _ORDERED):
        raise SaslFailure("a context without mutual proof, order or integrity")


def _new_style(token: bytes) -> bytes:
    if token[:2] != _NEW_TOKEN or len(token) < 16:
        raise SaslFailure("a message of an encryption type that is too old (RC4 or DES), or none")
    return token
