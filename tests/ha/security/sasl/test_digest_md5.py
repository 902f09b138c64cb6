"""DIGEST-MD5 against the RFC's example, against itself, and against what strangers send."""

import random
from collections.abc import Callable
from dataclasses import replace
from hashlib import md5

import pytest

from ha.security.sasl.digest_md5 import (
    MAX_CHALLENGE_BYTES,
    MAX_RESPONSE_BYTES,
    RPC_REALM,
    RPC_URI,
    DigestAcceptor,
    DigestInitiator,
    Service,
    directives,
)
from ha.security.sasl.mechanism import Agreed, Challenge, Layer, Protection, Proven, SaslFailure
from ha.security.sasl.message_layer import DigestLayer, Keys

AUTH, INTEGRITY, PRIVACY = Protection
ALL = (PRIVACY, INTEGRITY, AUTH)
RPC = Service(RPC_URI, RPC_REALM, ALL)
PASSWORD = b"c2VjcmV0"


def password_of(user: str) -> bytes:
    if user != "dG9rZW4=":
        raise SaslFailure("no such token", java_class="InvalidToken")
    return PASSWORD


def response_to(challenge: bytes, service: Service = RPC, user: str = "dG9rZW4=") -> bytes:
    step = DigestInitiator(service, user, PASSWORD).step(challenge)
    assert not isinstance(step, Agreed)
    return step.token


def logged_in(
    server: Service, client: Service, password: bytes = PASSWORD
) -> tuple[Proven, Agreed]:
    acceptor = DigestAcceptor(server, password_of)
    initiator = DigestInitiator(client, "dG9rZW4=", password)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    response = initiator.step(challenge.token)
    assert not isinstance(response, Agreed)
    proven = acceptor.step(response.token)
    assert isinstance(proven, Proven)
    assert proven.token
    agreed = initiator.step(proven.token)
    assert isinstance(agreed, Agreed)
    return proven, agreed


def layers(protection: Protection, *ciphers: str) -> tuple[Layer, Layer]:
    one = replace(RPC, protections=(protection,), ciphers=ciphers or RPC.ciphers)
    proven, agreed = logged_in(one, one)
    assert proven.layer
    assert agreed.layer
    return agreed.layer, proven.layer


def test_the_example_of_the_rfc_comes_out_of_both_sides() -> None:
    known = {"nonce": "OA6MG9tEQGm2hh", "cnonce": "OA6MHXh6VqTrRk"}
    server = Service("imap/elwood.innosoft.com", "elwood.innosoft.com", (AUTH,))
    acceptor = DigestAcceptor(replace(server, nonce=lambda: known["nonce"]), lambda _: b"secret")
    client = replace(server, nonce=lambda: known["cnonce"])
    initiator = DigestInitiator(client, "chris", b"secret")

    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    response = initiator.step(challenge.token)
    assert not isinstance(response, Agreed)
    assert b"response=d388dad90d4bbd760a152321f2143af7" in response.token
    proven = acceptor.step(response.token)
    assert isinstance(proven, Proven)
    assert proven.token == b"rspauth=ea40f60335c427b5527b84dbabcdfffd"
    assert initiator.step(proven.token) == Agreed(AUTH)


@pytest.mark.parametrize("protection", ALL)
def test_both_sides_prove_themselves_and_agree(protection: Protection) -> None:
    proven, agreed = logged_in(RPC, replace(RPC, protections=(protection,)))
    assert (proven.name, proven.protection, agreed.protection) == (
        "dG9rZW4=", protection, protection,
    )  # fmt: skip
    assert (proven.layer is None) == (agreed.layer is None) == (protection is AUTH)


SEALED = [(INTEGRITY, ()), (PRIVACY, ("3des",)), (PRIVACY, ("rc4",))]


@pytest.mark.parametrize(("protection", "ciphers"), SEALED)
def test_texts_of_every_length_come_through_in_both_directions(
    protection: Protection, ciphers: tuple[str, ...]
) -> None:
    client, server = layers(protection, *ciphers)
    for size in (*range(40), client.max_plain_bytes):
        text = random.Random(size).randbytes(size)
        for sender, receiver in ((client, server), (server, client)):
            token = sender.wrap(text)
            assert len(token) <= 65536
            assert receiver.unwrap(token) == text
            assert protection is not PRIVACY or size < 8 or text not in token


@pytest.mark.parametrize(("protection", "ciphers"), SEALED)
def test_a_token_that_is_altered_repeated_or_left_out_is_refused(
    protection: Protection, ciphers: tuple[str, ...]
) -> None:
    changes: dict[str, Callable[[bytes, bytes], bytes]] = {
        "repeated": lambda first, _: first,
        "cut": lambda _, second: second[1:],
        "empty": lambda _, __: b"",
        "only a tail": lambda _, second: second[-6:],
        "shortened": lambda _, second: second[-14:],
    }
    for bit in range(0, 8 * 40, 7):
        changes[f"bit {bit}"] = lambda _, second, bit=bit: bytes(  # type: ignore[misc]
            byte ^ (1 << bit % 8) * (index == bit // 8 % len(second))
            for index, byte in enumerate(second)
        )
    for name, change in changes.items():
        client, server = layers(protection, *ciphers)
        first, second = client.wrap(b"first"), client.wrap(b"second text of some length")
        assert server.unwrap(first) == b"first"
        token = change(first, second)
        with pytest.raises(SaslFailure):
            pytest.fail(f"{name}: {server.unwrap(token)!r}")
    client, server = layers(protection, *ciphers)
    client.wrap(b"lost")
    with pytest.raises(SaslFailure):
        server.unwrap(client.wrap(b"next"))


def test_numbers_of_tokens_begin_again_after_the_last() -> None:
    client, server = (
        DigestLayer(Keys(b"secret", is_server=is_server), None, 65536, first=2**32 - 1)
        for is_server in (False, True)
    )
    for text in (b"the last", b"the first"):
        assert server.unwrap(client.wrap(text)) == text


def test_one_side_does_not_take_its_own_tokens() -> None:
    client, _ = layers(INTEGRITY)
    with pytest.raises(SaslFailure):
        client.unwrap(client.wrap(b"reflected"))


def test_a_wrong_password_is_found_on_both_sides() -> None:
    with pytest.raises(SaslFailure, match="client does not know"):
        logged_in(RPC, RPC, password=b"c2VjcmV1")
    initiator = DigestInitiator(RPC, "dG9rZW4=", PASSWORD)
    initiator.step(b'realm="default",nonce="n",algorithm=md5-sess,qop="auth"')
    with pytest.raises(SaslFailure, match="server does not know"):
        initiator.step(b"rspauth=" + b"0" * 32)


def test_a_token_that_is_not_known_says_so_in_javas_class() -> None:
    acceptor = DigestAcceptor(RPC, password_of)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    with pytest.raises(SaslFailure) as refused:
        acceptor.step(response_to(challenge.token, user="b3RoZXI="))
    assert refused.value.java_class == "InvalidToken"


@pytest.mark.parametrize("named", ["dG9rZW4=", "root"])
def test_a_client_may_name_itself_as_the_user_that_it_acts_for(named: str) -> None:
    """As Java's clients of DataNodes do; the proof then has it, too (RFC 2831, 2.1.2.1)."""
    acceptor = DigestAcceptor(RPC, password_of)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    said = directives(response_to(challenge.token), MAX_RESPONSE_BYTES)
    secret = md5(b"dG9rZW4=:default:" + PASSWORD).digest()
    nonces = f"{said['nonce']}:{said['cnonce']}"
    known = md5(secret + f":{nonces}:{named}".encode()).hexdigest()
    asked = md5(f"AUTHENTICATE:{RPC_URI}:{'0' * 32}".encode()).hexdigest()
    text = f"{known}:{said['nonce']}:00000001:{said['cnonce']}:auth-conf:{asked}"
    said |= {"response": md5(text.encode()).hexdigest(), "authzid": named}
    response = ",".join(f'{name}="{value}"' for name, value in said.items()).encode()
    if named == "root":
        with pytest.raises(SaslFailure, match="a user that is not served"):
            acceptor.step(response)
    else:
        proven = acceptor.step(response)
        assert isinstance(proven, Proven)
        assert proven.name == "dG9rZW4="


WRONG: dict[str, tuple[bytes, bytes]] = {
    "another nonce": (b'nonce="', b'nonce="x'),
    "a nonce used twice": (b"nc=00000001", b"nc=00000002"),
    "another realm": (b'realm="default"', b'realm="other"'),
    "another service": (b'digest-uri="/default"', b'digest-uri="hdfs/0"'),
    "another user": (b'username="dG9rZW4="', b'username="dG9rZW5="'),
    "no user": (b'username="dG9rZW4="', b'username=""'),
    "no nonce of the client": (b"cnonce=", b"dnonce="),
    "no response": (b"response=", b"desponse="),
    "a weaker protection than was signed": (b"qop=auth-conf", b"qop=auth"),
    "a protection that nobody knows": (b"qop=auth-conf", b"qop=auth-none"),
    "a cipher of 40 bits": (b'cipher="3des"', b'cipher="rc4-40"'),
    "no cipher": (b'cipher="3des"', b'cypher="3des"'),
    "another character set": (b"charset=utf-8", b"charset=latin1"),
    "acts for another": (b"charset=utf-8", b'charset=utf-8,authzid="root"'),
    "a buffer of nothing": (b"maxbuf=65536", b"maxbuf=16"),
    "a buffer beyond the RFC": (b"maxbuf=65536", b"maxbuf=16777216"),
    "a buffer that is no number": (b"maxbuf=65536", b"maxbuf=-1"),
    "a buffer in letters": (b"maxbuf=65536", b"maxbuf=64k"),
    "a buffer of very many digits": (b"maxbuf=65536", b"maxbuf=" + b"9" * 3000),
    "a directive twice": (b"charset=utf-8", b"charset=utf-8,charset=utf-8"),
    "a directive twice in other letters": (b"charset=utf-8", b"charset=utf-8,Charset=utf-8"),
    "a quote that does not end": (b'realm="default"', b'realm="default'),
    "a control character": (b'realm="default"', b'realm="def\x00ault"'),
    "a letter beyond ASCII": (b'realm="default"', 'realm="dëfault"'.encode()),
    "no comma": (b",nonce", b" nonce"),
    "too long": (b"charset=utf-8", b"charset=utf-8,x=" + b"y" * MAX_RESPONSE_BYTES),
}


@pytest.mark.parametrize(("found", "instead"), WRONG.values(), ids=WRONG)
def test_a_response_that_was_altered_proves_nothing(found: bytes, instead: bytes) -> None:
    acceptor = DigestAcceptor(RPC, password_of)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    response = response_to(challenge.token)
    assert response.count(found)
    with pytest.raises(SaslFailure):
        acceptor.step(response.replace(found, instead, 1))
    with pytest.raises(SaslFailure, match="second"):  # one challenge, one try
        acceptor.step(response)


WEAK = {
    "no algorithm": b'realm="default",nonce="n",qop="auth"',
    "no nonce": b'realm="default",qop="auth",algorithm=md5-sess',
    "another realm": b'realm="other",nonce="n",qop="auth",algorithm=md5-sess',
    "two realms": b'realm="default",realm="default",nonce="n",algorithm=md5-sess',
    "no protection in common": b'realm="default",nonce="n",qop="auth-x",algorithm=md5-sess',
    "weak ciphers only":
        b'realm="default",nonce="n",qop="auth-conf",cipher="des,rc4-40",algorithm=md5-sess',
    "too long": b'realm="default",nonce="' + b"n" * MAX_CHALLENGE_BYTES + b'"',
}  # fmt: skip


@pytest.mark.parametrize("challenge", WEAK.values(), ids=WEAK)
def test_a_client_answers_no_challenge_that_offers_less(challenge: bytes) -> None:
    with pytest.raises(SaslFailure):
        response_to(challenge)


def test_a_server_offers_and_takes_only_its_own_protections() -> None:
    with pytest.raises(SaslFailure, match="No common protection layer"):
        logged_in(replace(RPC, protections=(PRIVACY,)), replace(RPC, protections=(AUTH,)))
    acceptor = DigestAcceptor(replace(RPC, protections=(PRIVACY,)), password_of)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    forged = challenge.token.replace(b'qop="auth-conf"', b'qop="auth"')
    with pytest.raises(SaslFailure, match="not offered"):
        acceptor.step(response_to(forged))


def test_steps_out_of_order_are_refused() -> None:
    with pytest.raises(SaslFailure, match="before the challenge"):
        DigestAcceptor(RPC, password_of).step(b"username=x")
    initiator = DigestInitiator(RPC, "u", PASSWORD)
    initiator.step(b'realm="default",nonce="n",algorithm=md5-sess')
    for _ in range(2):
        with pytest.raises(SaslFailure):
            initiator.step(b"rspauth=x")


def test_directives_are_read_as_they_were_meant() -> None:
    assert directives(rb' A = "x\"y\\z" ,b=c,' + b"\r\n d = e", 100) == {
        "a": r'x"y\z', "b": "c", "d": "e",
    }  # fmt: skip
    assert directives(b"", 100) == {}


def fuzz(seed: int) -> None:
    """Alter a good response at a few places: it is refused in words, and never proves anything."""
    chance = random.Random(seed)
    acceptor = DigestAcceptor(RPC, password_of)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    good = response_to(challenge.token)
    altered = bytearray(good)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(altered) + 1)
        match chance.randrange(4):
            case 0:
                altered[at : at + 1] = chance.randbytes(1)
            case 1:
                altered[at:at] = chance.choice([b'"', b",", b"=", b"\\", b"\xff", b" ", b"\0"])
            case 2:
                del altered[at : at + chance.randint(1, 30)]
            case _:
                start = chance.randrange(len(good))
                altered[at:at] = good[start : start + chance.randint(1, 60)]
    try:
        proven = acceptor.step(bytes(altered))
    except SaslFailure:
        return
    # Blanks between directives, and the letters of their names, say nothing.
    assert isinstance(proven, Proven)
    assert proven.name == "dG9rZW4="
    meant, said = directives(good, 9999), directives(bytes(altered), 9999)
    assert {key: said.get(key) for key in meant if key not in {"charset", "maxbuf"}} == {
        key: meant[key] for key in meant if key not in {"charset", "maxbuf"}
    }


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_altered_responses_are_refused(first: int) -> None:
    for seed in range(first, first + 50):
        fuzz(seed)


@pytest.mark.long
def test_ten_thousand_altered_responses_are_refused() -> None:
    for seed in range(10_000):
        fuzz(seed)
