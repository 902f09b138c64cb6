"""The server's side of SASL in Hadoop RPC: which mechanism, step by step, until a caller is proven.

A step is an event out, whose outcome is fed back in: the mechanism may work in a thread.  Pure.
See docs/reference/rpc.md#sasl.
"""

from collections.abc import Sequence
from typing import Final

from ha.record import dataclass
from ha.rpc.java_names import ACCESS_CONTROL
from ha.rpc.packets import Detail, encode_sasl, parse
from ha.rpc.proto.rpc_header_pb2 import RpcSaslProto
from ha.security.caller import Method
from ha.security.sasl.mechanism import SASL_EXCEPTION, Acceptor, Challenge, Proven, SaslFailure
from ha.security.sasl.way import Step, Way

MAX_ROUNDS: Final = 8
"""Of one negotiation; GSSAPI takes three."""
MAX_TOKEN_BYTES: Final = 65536
"""Of one wrapped piece in either direction, as both sides announce."""

_SIMPLE: Final = RpcSaslProto.SaslAuth(method=Method.SIMPLE.name, mechanism="")


@dataclass(frozen=True, slots=True)
class Proved:
    """The caller has proved who it is; ``last`` is to be sent before anything else."""

    way: Way
    name: str
    last: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """The negotiation is over.  ``reason`` is for the audit; the peer gets the rest."""

    java_class: str
    public: str
    detail: Detail = Detail.FATAL_UNAUTHORIZED
    reason: str = ""


class Negotiation:
    """One connection's way to a proven caller."""

    __slots__ = ("_acceptor", "_first", "_over", "_rounds", "_simple", "_way", "_ways", "proven",
                 "stepping")  # fmt: skip

    def __init__(self, ways: Sequence[Way]) -> None:
        """Offer these ways; without tickets among them also SIMPLE, as the last.

        Java's clients speak SASL as soon as they hold any token, which may be for another service.
        """
        self._ways = tuple(ways)
        self._simple = all(way.method is Method.TOKEN for way in ways)
        self._first: dict[Way, Acceptor] | None = None
        """Of the ways that speak first, once they are offered."""
        self._way: Way | None = None
        self._acceptor: Acceptor | None = None
        self._over = False
        self._rounds = 0
        self.stepping = False
        """Whether the outcome of a step is waited for."""
        self.proven: Proven | None = None

    def take(self, message: RpcSaslProto) -> bytes | Step | Refused | None:
        """Take the client's next message; return what is to be sent, or done, or why it ends.

        None: the client goes on without a proof, and there is no answer.
        """
        self._rounds += 1
        state, begun = message.state, self._acceptor is not None
        if self._rounds > MAX_ROUNDS:
            return _failure("too many SASL rounds")
        if state == RpcSaslProto.WRAP:
            return _early("Server is not wrapping data")
        if self._over:
            return _early("Negotiation is already complete")
        if state == RpcSaslProto.NEGOTIATE:
            if begun or self._first is not None:
                return Refused(ACCESS_CONTROL, "Client already attempted negotiation")
            return self._offer()
        if state == RpcSaslProto.INITIATE and not begun:
            return self._initiate(message)
        if state == RpcSaslProto.RESPONSE and begun:
            return self._step(message)
        return _failure(f"Client sent unsupported state {RpcSaslProto.SaslState.Name(state)}")

    def answered(self, outcome: Challenge | Proven | SaslFailure) -> bytes | Proved | Refused:
        """Take the outcome of a step; return what is to be sent, or why it ends."""
        assert self._way is not None
        self.stepping = False
        if isinstance(outcome, Challenge):
            return encode_sasl(RpcSaslProto(state=RpcSaslProto.CHALLENGE, token=outcome.token))
        self._over = True
        if isinstance(outcome, SaslFailure):
            return Refused(outcome.java_class, outcome.public, reason=str(outcome))
        self.proven = outcome
        last = encode_sasl(RpcSaslProto(state=RpcSaslProto.SUCCESS, token=outcome.token))
        return Proved(self._way, outcome.name, last)

    def _offer(self) -> bytes:
        self._first, offered = {}, []
        for way in self._ways:
            challenge = None
            if way.speaks_first:
                self._first[way] = way.make()
                said = self._first[way].step(b"")
                challenge = said.token
            offered.append(_method_offer(way, challenge))
        auths = [*offered, *([_SIMPLE] if self._simple else [])]
        return encode_sasl(RpcSaslProto(state=RpcSaslProto.NEGOTIATE, auths=auths))

    def _initiate(self, message: RpcSaslProto) -> bytes | Step | Refused | None:
        if len(message.auths) != 1:
            return _failure("Client mechanism is malformed")
        (chosen,) = message.auths
        if self._simple and chosen == _SIMPLE:
            self._over = True
            return None
        way = next((one for one in self._ways if _method_offer(one) == chosen), None)
        if self._first is None and (way is None or way.speaks_first):
            return self._offer()
        if way is None:
            # Not the method as it is written there: that is any text of a stranger's.
            known = chosen.method if chosen.method in Method.__members__ else "This"
            text = f"{known} authentication is not enabled.  Available:{available(self._ways)}"
            return Refused(ACCESS_CONTROL, text)
        self._way, first = way, self._first or {}
        self._acceptor = first[way] if way.speaks_first else way.make()
        return self._step(message)

    def _step(self, message: RpcSaslProto) -> Step | Refused:
        assert self._way is not None
        assert self._acceptor is not None
        if not message.HasField("token"):
            return _failure("Client did not send a token")
        self.stepping = True
        return Step(self._way, self._acceptor, message.token)


def _method_offer(way: Way, challenge: bytes | None = None) -> RpcSaslProto.SaslAuth:
    return RpcSaslProto.SaslAuth(
        method=way.method.name, mechanism=way.mechanism, protocol=way.protocol,
        serverId=way.server_id, challenge=challenge,
    )  # fmt: skip


def available(ways: Sequence[Way]) -> str:
    """Return the ways as Java's refusals list them."""
    return f"[{', '.join(way.method.name for way in ways)}]"


def wrapped_token(message: bytes) -> bytes | Refused:
    """Return the token of a message on a wrapped connection.  Raises MalformedFrame."""
    said = parse(RpcSaslProto, message)
    if said.state != RpcSaslProto.WRAP:
        return _early("Negotiation is already complete")
    if not said.HasField("token") or len(said.token) > MAX_TOKEN_BYTES:
        return _failure("Client did not send a token")
    return said.token


def _failure(text: str) -> Refused:
    return Refused(SASL_EXCEPTION, text)


def _early(text: str) -> Refused:
    return Refused(SASL_EXCEPTION, text, Detail.FATAL_INVALID_RPC_HEADER)
