"""SASL as a server hears it, with a mechanism of the test: what is answered, what is refused."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from ha.rpc import packets
from ha.rpc.call_header import Asked
from ha.rpc.frames import frame_of
from ha.rpc.java_names import ACCESS_CONTROL, IPC_EXCEPTION, RPC_SERVER
from ha.rpc.limits import RpcLimits
from ha.rpc.packets import Detail, Status, encode_sasl_request
from ha.rpc.proto.rpc_header_pb2 import IpcConnectionContextProto, RpcSaslProto
from ha.rpc.sasl.negotiation import MAX_ROUNDS, Proved
from ha.rpc.session import Event, Greeted, Hangup, Phase, Send, ServerSession
from ha.security.caller import Method
from ha.security.sasl.mechanism import (
    SASL_EXCEPTION,
    Challenge,
    Protection,
    Proven,
    SaslFailure,
)
from ha.security.sasl.way import Step, Way
from tests.ha.rpc.wire import CLIENT, ECHO, answers, echo_call, header

S = RpcSaslProto
LIMITS = RpcLimits()


@dataclass
class Mirror:
    """A layer that marks each text with its number; a token out of order is refused."""

    max_plain_bytes: int = 100
    sent: int = 0
    heard: int = 0

    def wrap(self, data: bytes) -> bytes:
        self.sent += 1
        return bytes([self.sent]) + data

    def unwrap(self, token: bytes) -> bytes:
        self.heard += 1
        if token[:1] != bytes([self.heard]):
            raise SaslFailure("out of order")
        return token[1:]


@dataclass
class Password:
    """A mechanism of two steps: any challenge, then the word ``secret``."""

    layer: Mirror | None = None
    steps: int = 0

    def step(self, response: bytes) -> Challenge | Proven:
        self.steps += 1
        if response == b"secret":
            protection = Protection.PRIVACY if self.layer else Protection.AUTHENTICATION
            return Proven("alice@R", protection, layer=self.layer)
        if response.startswith(b"wrong"):
            raise SaslFailure("alice has another word", public="GSS initiate failed")
        return Challenge(b"?")


def ways(layer: Mirror | None = None) -> tuple[Way, ...]:
    def user_of(name: str) -> tuple[str, str]:
        return name.partition("@")[0], ""

    return (
        Way(
            Method.TOKEN, "DIGEST-MD5", "", "default", lambda: Password(layer), user_of,
            speaks_first=True, in_thread=False,
        ),
        Way(Method.KERBEROS, "GSSAPI", "nn", "host", lambda: Password(layer), user_of),
    )  # fmt: skip


@dataclass
class Peer:
    """A session whose steps are taken at once."""

    layer: Mirror | None = None
    simple: bool = False
    session: ServerSession = field(init=False)

    def __post_init__(self) -> None:
        self.session = ServerSession(LIMITS, ways(self.layer), simple=self.simple)

    def say(self, *data: bytes) -> list[Event]:
        self.session.receive(b"".join(data))
        found: list[Event] = []
        while (event := self.session.next_event()) is not None:
            while isinstance(event, Step):
                assert self.session.next_event() is None, "nothing is read before the outcome"
                event = self.session.answered(taken(event))
            found.append(event)
        return found


def taken(step: Step) -> Challenge | Proven | SaslFailure:
    try:
        return step.acceptor.step(step.token)
    except SaslFailure as failure:
        return failure


def sasl(state: "S.SaslState.ValueType", token: bytes | None = None, *auths: S.SaslAuth) -> bytes:
    return encode_sasl_request(S(state=state, token=token, auths=auths))


def auth(
    method: str = "KERBEROS", *, mechanism: str = "GSSAPI", server: str = "host"
) -> S.SaslAuth:
    return S.SaslAuth(method=method, mechanism=mechanism, protocol="nn", serverId=server)


TOKEN = S.SaslAuth(method="TOKEN", mechanism="DIGEST-MD5", protocol="", serverId="default")
PREAMBLE = packets.SASL_PREAMBLE
NEGOTIATE = sasl(S.NEGOTIATE)
INITIATE = sasl(S.INITIATE, b"hello", auth())
RESPONSE = sasl(S.RESPONSE, b"secret")
CONTEXT = packets.encode_context(CLIENT, ECHO, "alice", None)
PROVEN = (PREAMBLE, NEGOTIATE, INITIATE, RESPONSE)


def said(event: Event) -> S:
    assert isinstance(event, Send)
    (answer,) = answers(event.data)
    assert answer.status is Status.SUCCESS
    assert answer.call_id == packets.SASL_CALL_ID
    return packets.parse(S, answer.body)


def test_the_whole_way_to_a_call() -> None:
    peer = Peer()
    (offer,) = peer.say(PREAMBLE, NEGOTIATE)
    first, second = said(offer).auths
    assert (first.method, first.challenge, first.serverId) == ("TOKEN", b"?", "default")
    assert second == auth()
    (challenge,) = peer.say(INITIATE)
    assert said(challenge) == S(state=S.CHALLENGE, token=b"?")
    proved, greeted, call = peer.say(RESPONSE, CONTEXT, echo_call(0))
    assert isinstance(proved, Proved)
    assert (proved.way.method, proved.name) == (Method.KERBEROS, "alice@R")
    (success,) = answers(proved.last)
    assert success.body == S(state=S.SUCCESS).SerializeToString(), "no token field"
    assert greeted == Greeted("alice", None, ECHO)
    assert isinstance(call, Asked)


JAVAS_OFFER = bytes.fromhex("6872706309 00df 0000000e 0a 0802 1000 1841 2200 2801 02 1001")


def test_the_bytes_are_javas() -> None:
    peer = Peer()
    (offer,) = peer.say(JAVAS_OFFER)
    assert isinstance(offer, Send)
    assert offer.data[4:].startswith(bytes.fromhex("0e 08dfffffff0f 1000 1809 3a00 4001"))


def test_a_token_has_its_challenge_in_the_offer_and_an_empty_user() -> None:
    peer = Peer()
    peer.say(PREAMBLE, NEGOTIATE)
    nameless = IpcConnectionContextProto(protocol=ECHO)
    nameless.userInfo.SetInParent()
    proved, greeted = peer.say(
        sasl(S.INITIATE, b"secret", TOKEN), frame_of(header(-3), nameless.SerializeToString())
    )
    assert isinstance(proved, Proved)
    assert proved.way.method is Method.TOKEN
    assert greeted == Greeted("", None, ECHO)


def test_initiate_before_any_offer() -> None:
    for first in (sasl(S.INITIATE, b"x", auth("PLAIN")), sasl(S.INITIATE, b"x", TOKEN)):
        (offer,) = Peer().say(PREAMBLE, first)
        assert said(offer).state == S.NEGOTIATE
    (challenge,) = Peer().say(PREAMBLE, INITIATE)
    assert said(challenge).state == S.CHALLENGE


UNAUTHORIZED, HEADER = Detail.FATAL_UNAUTHORIZED, Detail.FATAL_INVALID_RPC_HEADER
HOSTILE: dict[str, tuple[Sequence[bytes], int, str, int, str]] = {
    "simple": ([packets.PREAMBLE], -1, ACCESS_CONTROL, UNAUTHORIZED,
               "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]"),
    "an unknown byte": ([b"hrpc\x09\x00\x51"], -1, IPC_EXCEPTION, UNAUTHORIZED,
                        "Unknown auth protocol:81"),
    "two offers": ([PREAMBLE, NEGOTIATE, NEGOTIATE], -33, ACCESS_CONTROL, UNAUTHORIZED,
                   "Client already attempted negotiation"),
    "offer after a step": ([PREAMBLE, NEGOTIATE, INITIATE, NEGOTIATE], -33, ACCESS_CONTROL,
                           UNAUTHORIZED, "Client already attempted negotiation"),
    "not offered": ([PREAMBLE, NEGOTIATE, sasl(S.INITIATE, b"x", auth(mechanism="PLAIN"))], -33,
                    ACCESS_CONTROL, UNAUTHORIZED,
                    "KERBEROS authentication is not enabled.  Available:[TOKEN, KERBEROS]"),
    "another host": ([PREAMBLE, NEGOTIATE, sasl(S.INITIATE, b"x", auth(server="h2"))], -33,
                     ACCESS_CONTROL, UNAUTHORIZED,
                     "KERBEROS authentication is not enabled.  Available:[TOKEN, KERBEROS]"),
    "a made up method": ([PREAMBLE, NEGOTIATE, sasl(S.INITIATE, b"x", auth("\x1b[2J"))], -33,
                         ACCESS_CONTROL, UNAUTHORIZED,
                         "This authentication is not enabled.  Available:[TOKEN, KERBEROS]"),
    "simple inside": ([PREAMBLE, NEGOTIATE, sasl(S.INITIATE, b"x", auth("SIMPLE", mechanism=""))],
                      -33, ACCESS_CONTROL, UNAUTHORIZED,
                      "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]"),
    "no mechanism": ([PREAMBLE, NEGOTIATE, sasl(S.INITIATE, b"x")], -33, SASL_EXCEPTION,
                     UNAUTHORIZED, "Client mechanism is malformed"),
    "two mechanisms": ([PREAMBLE, NEGOTIATE, sasl(S.INITIATE, b"x", auth(), TOKEN)], -33,
                       SASL_EXCEPTION, UNAUTHORIZED, "Client mechanism is malformed"),
    "no token": ([PREAMBLE, NEGOTIATE, sasl(S.INITIATE, None, auth())], -33, SASL_EXCEPTION,
                 UNAUTHORIZED, "Client did not send a token"),
    "a wrong proof": ([PREAMBLE, NEGOTIATE, INITIATE, sasl(S.RESPONSE, b"wrong")], -33,
                      SASL_EXCEPTION, UNAUTHORIZED, "GSS initiate failed"),
    "response first": ([PREAMBLE, RESPONSE], -33, SASL_EXCEPTION, UNAUTHORIZED,
                       "Client sent unsupported state RESPONSE"),
    "response to the offer": ([PREAMBLE, NEGOTIATE, RESPONSE], -33, SASL_EXCEPTION, UNAUTHORIZED,
                              "Client sent unsupported state RESPONSE"),
    "initiate twice": ([PREAMBLE, NEGOTIATE, INITIATE, INITIATE], -33, SASL_EXCEPTION,
                       UNAUTHORIZED, "Client sent unsupported state INITIATE"),
    "success by itself": ([PREAMBLE, NEGOTIATE, INITIATE, sasl(S.SUCCESS)], -33, SASL_EXCEPTION,
                          UNAUTHORIZED, "Client sent unsupported state SUCCESS"),
    "a challenge": ([PREAMBLE, sasl(S.CHALLENGE, b"?")], -33, SASL_EXCEPTION, UNAUTHORIZED,
                    "Client sent unsupported state CHALLENGE"),
    "after success": ([*PROVEN, NEGOTIATE], -33, SASL_EXCEPTION, HEADER,
                      "Negotiation is already complete"),
    "wrap at first": ([PREAMBLE, NEGOTIATE, sasl(S.WRAP, b"x")], -33, SASL_EXCEPTION, HEADER,
                      "Server is not wrapping data"),
    "wrap without a layer": ([*PROVEN, CONTEXT, sasl(S.WRAP, b"x")], -33, SASL_EXCEPTION, HEADER,
                             "Server is not wrapping data"),
    "context first": ([PREAMBLE, CONTEXT], -3, RPC_SERVER, HEADER,
                      "Connection header sent during SASL negotiation"),
    "context between": ([PREAMBLE, NEGOTIATE, INITIATE, CONTEXT], -3, RPC_SERVER, HEADER,
                        "Connection header sent during SASL negotiation"),
    "a call first": ([PREAMBLE, NEGOTIATE, echo_call(0)], 0, RPC_SERVER, HEADER,
                     "Connection context not established"),
    "a call for context": ([*PROVEN, echo_call(0)], 0, RPC_SERVER, HEADER,
                           "Connection context not established"),
    "too many rounds": ([PREAMBLE, NEGOTIATE, INITIATE, *[sasl(S.RESPONSE, b"x")] * MAX_ROUNDS],
                        -33, SASL_EXCEPTION, UNAUTHORIZED, "too many SASL rounds"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "call", "java_class", "detail", "text"), HOSTILE.values(), ids=HOSTILE
)
def test_refusals_are_javas(
    sent: Sequence[bytes], call: int, java_class: str, detail: int, text: str
) -> None:
    peer = Peer()
    *_, last = peer.say(*sent)
    assert isinstance(last, Hangup)
    (answer,) = answers(last.last)
    assert (answer.status, answer.call_id) == (Status.FATAL, call)
    assert (answer.java_class, answer.message, answer.detail) == (java_class, text, detail)
    assert peer.session.phase is Phase.OVER
    assert peer.say(CONTEXT, echo_call(0)) == [], "nothing is carried out after it"


def test_the_reason_of_a_failed_proof_is_for_the_log_alone() -> None:
    *_, last = Peer().say(PREAMBLE, NEGOTIATE, INITIATE, sasl(S.RESPONSE, b"wrong"))
    assert isinstance(last, Hangup)
    assert last.reason == "alice has another word"
    assert b"another word" not in last.last


def test_a_long_token_is_not_read() -> None:
    (last,) = Peer().say(PREAMBLE, sasl(S.INITIATE, bytes(1_000_000), auth()))
    assert isinstance(last, Hangup)


def wrapped(layer: Mirror, *pieces: bytes) -> list[bytes]:
    return [sasl(S.WRAP, layer.wrap(piece)) for piece in pieces]


def test_frames_come_in_pieces_cut_anywhere() -> None:
    whole = CONTEXT + b"".join(echo_call(number) for number in range(3))
    for seed in range(30):
        rng = random.Random(seed)
        cuts = sorted(rng.choices(range(len(whole) + 1), k=rng.randint(0, 6)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        peer = Peer(Mirror())
        _, *found = peer.say(PREAMBLE, NEGOTIATE, INITIATE, RESPONSE, *wrapped(Mirror(), *pieces))[
            2:
        ]
        assert [type(event) for event in found] == [Greeted, Asked, Asked, Asked]
        assert peer.session.layer is not None


LAYERED: dict[str, Sequence[bytes]] = {
    "plain context": [CONTEXT],
    "plain call": [*wrapped(Mirror(), CONTEXT), echo_call(0)],
    "repeated": wrapped(Mirror(), CONTEXT)[:1] * 2,
    "out of order": wrapped(Mirror(), CONTEXT, echo_call(0))[::-1],
    "wrap within": wrapped(Mirror(), CONTEXT, wrapped(Mirror(), echo_call(0))[0]),
    "negotiation within": wrapped(Mirror(), CONTEXT, NEGOTIATE),
    "negotiation outside": [*wrapped(Mirror(), CONTEXT), NEGOTIATE],
    "no token": [sasl(S.WRAP)],
    "a long token": [sasl(S.WRAP, b"\x01" + bytes(65536))],
    "a long frame": [(100_000).to_bytes(4, "big") + bytes(100_000)],
    "a long context": wrapped(Mirror(), (70_000).to_bytes(4, "big")),
    "no message": [frame_of(header(-33), b"\xff\xff")],
    "garbage": [b"\x00\x00\x00\x02\xff\xff"],
}


@pytest.mark.parametrize("sent", LAYERED.values(), ids=LAYERED)
def test_what_ends_a_connection_that_wraps(sent: Sequence[bytes]) -> None:
    peer = Peer(Mirror())
    *_, last = peer.say(*PROVEN, *sent)
    assert isinstance(last, Hangup)
    assert peer.say(echo_call(0)) == []


def test_permissive_servers_take_simple_by_the_preamble_alone() -> None:
    (greeted,) = Peer(simple=True).say(packets.PREAMBLE, CONTEXT)
    assert isinstance(greeted, Greeted)
    (offer,) = Peer(simple=True).say(PREAMBLE, NEGOTIATE)
    assert [one.method for one in said(offer).auths] == ["TOKEN", "KERBEROS"]


WORDS = (
    NEGOTIATE, INITIATE, RESPONSE, CONTEXT, echo_call(0), sasl(S.INITIATE, b"secret", TOKEN),
    sasl(S.WRAP, b"\x01x"), sasl(S.SUCCESS), frame_of(header(-4)), sasl(S.RESPONSE, b"wrong"),
)  # fmt: skip


@pytest.mark.parametrize(
    "count", [500, pytest.param(10_000, marks=pytest.mark.long)], ids=["some", "many"]
)
def test_no_sequence_reaches_a_call_without_a_proof(count: int) -> None:
    for seed in range(count):
        rng = random.Random(seed)
        data = bytearray(PREAMBLE + b"".join(rng.choices(WORDS, k=rng.randint(1, 9))))
        if rng.random() < 0.5:
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(7, len(data))] = rng.randrange(256)
        events = Peer(Mirror() if rng.random() < 0.5 else None).say(bytes(data))
        proved = next((at for at, event in enumerate(events) if isinstance(event, Proved)), None)
        for at, event in enumerate(events):
            if isinstance(event, Greeted | Asked):
                assert proved is not None
                assert proved < at, f"seed {seed}"
