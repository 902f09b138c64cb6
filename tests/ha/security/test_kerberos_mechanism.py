"""Both sides of GSSAPI against each other, with a real KDC."""

import random
from collections.abc import Sequence
from contextlib import suppress

import pytest

from ha.security.sasl import gss
from ha.security.sasl.kerberos import KerberosAcceptor, KerberosInitiator
from ha.security.sasl.mechanism import (
    Agreed,
    Challenge,
    Layer,
    Protection,
    Proven,
    Response,
    SaslFailure,
)
from tests.ha.security.kdc import REALM, Kdc

SERVICE = f"nn/localhost@{REALM}"
ALL = tuple(Protection)


def acceptor(realm: Kdc, *offered: Protection) -> KerberosAcceptor:
    keys = gss.Credentials.to_accept(SERVICE, str(realm.keytab("nn/localhost")))
    return KerberosAcceptor(keys, offered or ALL)


def initiator(realm: Kdc, *wanted: Protection, target: str = SERVICE) -> KerberosInitiator:
    tickets = gss.Credentials.of_keytab(f"alice@{REALM}", str(realm.keytab("alice")))
    return KerberosInitiator(tickets, target, wanted or ALL)


def agree(
    client: KerberosInitiator, server: KerberosAcceptor
) -> tuple[Agreed, Proven, list[bytes]]:
    """Negotiate to the end; return what the client sent, too."""
    sent, token = [], b""
    for _ in range(8):
        said = client.step(token)
        assert said.token is not None
        sent.append(said.token)
        answer = server.step(said.token)
        if isinstance(said, Agreed):
            assert isinstance(answer, Proven)
            return said, answer, sent
        assert isinstance(answer, Challenge)
        token = answer.token
    raise AssertionError("no end")


def layers(realm: Kdc, protection: Protection) -> tuple[Layer, Layer]:
    agreed, proven, _ = agree(initiator(realm, protection), acceptor(realm))
    assert agreed.layer is not None
    assert proven.layer is not None
    return agreed.layer, proven.layer


@pytest.mark.parametrize(
    ("wanted", "offered", "expected"),
    [
        (ALL, ALL, Protection.AUTHENTICATION),
        ((Protection.PRIVACY,), ALL, Protection.PRIVACY),
        ((Protection.PRIVACY, Protection.INTEGRITY), ALL, Protection.PRIVACY),
        (ALL, (Protection.INTEGRITY,), Protection.INTEGRITY),
        (ALL, (Protection.PRIVACY,), Protection.PRIVACY),
    ],
)
def test_the_client_chooses_among_what_is_offered(
    realm: Kdc,
    wanted: Sequence[Protection],
    offered: Sequence[Protection],
    expected: Protection,
) -> None:
    agreed, proven, sent = agree(initiator(realm, *wanted), acceptor(realm, *offered))
    assert (agreed.protection, proven.protection) == (expected, expected)
    assert proven.name == f"alice@{REALM}"
    assert (proven.layer is None) == (expected is Protection.AUTHENTICATION)
    assert sent[1] == b""


def test_a_client_that_wants_more_than_is_offered_goes_no_further(realm: Kdc) -> None:
    with pytest.raises(SaslFailure, match=r"offers authentication; .* here is privacy"):
        agree(initiator(realm, Protection.PRIVACY), acceptor(realm, Protection.AUTHENTICATION))


@pytest.mark.parametrize("protection", [Protection.INTEGRITY, Protection.PRIVACY])
def test_layers_keep_bytes_and_order(realm: Kdc, protection: Protection) -> None:
    client, server = layers(realm, protection)
    for size in (0, 1, 1000, client.max_plain_bytes):
        text = random.Random(size).randbytes(size)
        token = client.wrap(text)
        if size > 1:
            assert (text in token) == (protection is Protection.INTEGRITY)
        assert server.unwrap(token) == text
        assert client.unwrap(server.wrap(text)) == text
    assert len(client.wrap(bytes(client.max_plain_bytes))) <= 65536


@pytest.mark.parametrize("protection", [Protection.INTEGRITY, Protection.PRIVACY])
@pytest.mark.parametrize("change", ["flipped", "repeated", "swapped", "cut", "reflected", "plain"])
def test_an_altered_stream_is_refused(realm: Kdc, protection: Protection, change: str) -> None:
    client, server = layers(realm, protection)
    first, second = client.wrap(b"first"), client.wrap(b"second")
    flipped = bytearray(first)
    flipped[-1] ^= 1
    tokens = {
        "flipped": [bytes(flipped)],
        "repeated": [first, first],
        "swapped": [second, first],
        "cut": [first[:-1]],
        "reflected": [server.wrap(b"first")],
        "plain": [b"first"],
    }[change]
    for token in tokens[:-1]:
        with suppress(SaslFailure):
            server.unwrap(token)
    with pytest.raises(SaslFailure):
        server.unwrap(tokens[-1])


def test_a_message_that_is_lost_is_noticed(realm: Kdc) -> None:
    client, server = layers(realm, Protection.PRIVACY)
    client.wrap(b"lost")
    with pytest.raises(SaslFailure, match="lost, repeated or out of order"):
        server.unwrap(client.wrap(b"next"))


def test_privacy_takes_no_text_that_is_only_signed(realm: Kdc) -> None:
    keys = gss.Credentials.to_accept(SERVICE, str(realm.keytab("nn/localhost")))
    tickets = gss.Credentials.of_keytab(f"alice@{REALM}", str(realm.keytab("alice")))
    client, server = gss.Context(tickets), gss.Context(keys)
    flags = gss.MUTUAL | gss.REPLAY | gss.SEQUENCE | gss.INTEGRITY | gss.CONFIDENTIAL
    client.init(SERVICE, flags, server.accept(client.init(SERVICE, flags, b"")))
    with pytest.raises(gss.GssError, match="not encrypted"):
        server.unwrap(client.wrap(b"x", encrypt=False), encrypted=True)


def test_a_replayed_ticket_cannot_finish(realm: Kdc) -> None:
    _, _, sent = agree(initiator(realm), acceptor(realm))
    server = acceptor(realm)
    assert isinstance(server.step(sent[0]), Challenge)
    assert isinstance(server.step(sent[1]), Challenge)
    with pytest.raises(SaslFailure):
        server.step(sent[2])


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (b"\x02\x01\x00\x00", "chose layer 2 of 4"),
        (b"\x06\x01\x00\x00", "chose layer 6 of 4"),
        (b"\x00\x01\x00\x00", "chose layer 0 of 4"),
        (b"\x04\x01", "2 bytes"),
        (b"\x04\x01\x00\x00bob@" + REALM.encode(), "asks to act for another"),
        (b"\x04\x00\x03\xff", "tokens of 1023 bytes: too few"),
    ],
)
def test_layer_messages_that_are_refused(realm: Kdc, chosen: bytes, why: str) -> None:
    tickets = gss.Credentials.of_keytab(f"alice@{REALM}", str(realm.keytab("alice")))
    client, server = gss.Context(tickets), acceptor(realm, Protection.PRIVACY)
    flags = gss.MUTUAL | gss.REPLAY | gss.SEQUENCE | gss.INTEGRITY | gss.CONFIDENTIAL
    answer = server.step(client.init(SERVICE, flags, b""))
    assert isinstance(answer, Challenge)
    client.init(SERVICE, flags, answer.token)
    offer = server.step(b"")
    assert isinstance(offer, Challenge)
    assert client.unwrap(offer.token, encrypted=False) == b"\x04\x01\x00\x00"
    with pytest.raises(SaslFailure, match=why):
        server.step(client.wrap(chosen, encrypt=False))


@pytest.mark.parametrize("lacking", [gss.MUTUAL, gss.SEQUENCE, gss.REPLAY])
def test_contexts_without_a_property_are_refused(realm: Kdc, lacking: int) -> None:
    tickets = gss.Credentials.of_keytab(f"alice@{REALM}", str(realm.keytab("alice")))
    flags = gss.MUTUAL | gss.REPLAY | gss.SEQUENCE | gss.INTEGRITY
    token = gss.Context(tickets).init(SERVICE, flags & ~lacking, b"")
    with pytest.raises(SaslFailure, match="without mutual proof, order or integrity"):
        acceptor(realm).step(token)


def test_the_text_of_the_library_is_not_for_the_peer(realm: Kdc) -> None:
    with pytest.raises(SaslFailure) as caught:
        acceptor(realm).step(b"no ticket")
    assert caught.value.public == "GSS initiate failed"
    assert str(caught.value) != caught.value.public


def test_a_ticket_for_another_service_is_refused(realm: Kdc) -> None:
    said = initiator(realm, target=f"jn/localhost@{REALM}").step(b"")
    with pytest.raises(SaslFailure):
        acceptor(realm).step(said.token or b"")


def test_new_keys_are_used_without_a_restart(realm: Kdc) -> None:
    keys = gss.Credentials.to_accept(f"dn/localhost@{REALM}", str(realm.keytab("dn/localhost")))
    realm.renew_keys("dn/localhost")
    target = f"dn/localhost@{REALM}"
    _, proven, _ = agree(initiator(realm, target=target), KerberosAcceptor(keys, ALL))
    assert proven.name == f"alice@{REALM}"


def test_credentials_say_whose_they_are_and_how_long(realm: Kdc) -> None:
    tickets = gss.Credentials.of_keytab(f"alice@{REALM}", str(realm.keytab("alice")))
    assert tickets.principal == f"alice@{REALM}"
    assert tickets.seconds is not None
    assert 0 < tickets.seconds <= 3600
    assert gss.default_realm() == REALM


@pytest.mark.parametrize(
    "keytab", ["", "nothing-there", "a\nb", "/", "FILE:x", "%{uid}", "x" * 9000]
)
def test_keytabs_that_cannot_be_used(realm: Kdc, keytab: str) -> None:
    with pytest.raises(gss.GssError):
        gss.Credentials.to_accept(SERVICE, keytab)
    with pytest.raises(gss.GssError):
        gss.Credentials.of_keytab(f"never@{REALM}", keytab)


def test_a_person_without_a_ticket(realm: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.folder / "none"))
    with pytest.raises(gss.GssError):
        gss.Credentials.of_person()
    monkeypatch.setenv("KRB5CCNAME", str(realm.kinit("bob")))
    assert gss.Credentials.of_person().principal == f"bob@{REALM}"


def mangled(token: bytes, rng: random.Random) -> bytes:
    made = bytearray(token)
    for _ in range(rng.randint(1, 4)):
        match rng.randrange(4):
            case 0 if made:
                made[rng.randrange(len(made))] = rng.randrange(256)
            case 1:
                del made[rng.randrange(len(made) + 1) :]
            case 2:
                at = rng.randrange(len(made) + 1)
                made[at:at] = rng.randbytes(rng.randint(1, 9))
            case _:
                at = rng.randrange(len(made) + 1)
                made[at : at + rng.randint(1, 200)] = b""
    return bytes(made)


@pytest.mark.parametrize(
    "count", [200, pytest.param(10_000, marks=pytest.mark.long)], ids=["some", "many"]
)
def test_mangled_tokens_prove_nothing(realm: Kdc, count: int) -> None:
    keys = gss.Credentials.to_accept(SERVICE, str(realm.keytab("nn/localhost")))
    _, _, sent = agree(initiator(realm), acceptor(realm))
    client, server = layers(realm, Protection.PRIVACY)
    wrapped = client.wrap(b"x" * 50)
    for seed in range(count):
        rng = random.Random(seed)
        fresh = KerberosAcceptor(keys, ALL)
        token = mangled(sent[0], rng)
        with suppress(SaslFailure):
            # Not every byte of a ticket is protected; the subkey of the answer is what counts.
            assert isinstance(fresh.step(token), Challenge)
            fresh.step(b"")
            with pytest.raises(SaslFailure):
                fresh.step(sent[2])
        if (token := mangled(wrapped, rng) + b"\0") != wrapped:
            with pytest.raises(SaslFailure):
                server.unwrap(token)


def test_responses_are_not_agreed_on_too_early(realm: Kdc) -> None:
    server = acceptor(realm)
    said = initiator(realm).step(b"")
    assert isinstance(said, Response)
    server.step(said.token)
    with pytest.raises(SaslFailure, match="empty response is due"):
        server.step(b"\x01\0\0\0")
