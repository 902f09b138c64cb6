"""DIGEST-MD5 as a JDK 17 spoke it with our acceptor: logins and protected texts, byte for byte.

Both sides of ours could be wrong in the same way; tests/interop/test_digest_md5.py asks a JDK.
"""

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
from ha.security.sasl.mechanism import Agreed, Challenge, Protection, Proven, SaslFailure

NONCE = "bm9uY2Ugb2YgdGhlIHNlcnZlcg=="
USER, PASSWORD = "AAVhbGljZQ==", b"c2VjcmV0IG9mIHR3ZW50eSBieXQ="
SERVER = Service(RPC_URI, RPC_REALM, tuple(Protection), nonce=lambda: NONCE)
BEGIN = f'charset=utf-8,username="{USER}",realm="default",nonce="{NONCE}",nc=00000001,'
END = ',digest-uri="/default",maxbuf=65536,'
AUTH = (
    f'cnonce="Z/lwlgeDz0L4hhcp54pEV4c5r3LYEQCdcL1A7kxK"{END}'
    "response=4ff81e0fa55f860b8e011ff6e36e3a9c,qop=auth"
)
#   what the client says of itself, what we answer, and two texts of each side, the client's first
TOLD = {
    "integrity": (
        f'cnonce="F67aHHOUrlezArggt3LVuEZLxfAzlzaYCz9QN919"{END}'
        "response=80b008b77d1168607f3ff7e19fcef1df,qop=auth-int",
        "rspauth=382a68188b407fa3936c05b8d1351d70",
        "746578742031206f662074686520636c69656e74c56ae403ca328e1833ac000100000000",
        "746578742031206f6620746865207365727665722121342369dbd1626437b403000100000000",
        "746578742032206f662074686520636c69656e74de0a9b99a2a61d874079000100000001",
        "746578742032206f66207468652073657276657221217e5cc3d3b62a19626216000100000001",
    ),
    "privacy by 3des": (
        f'cnonce="jJr2Q4dOkjKbfaooz670nOYoWMDQHNJuMKq4Kl8A"{END}'
        'response=8427a1a07a7325542d37a18f51110937,qop=auth-conf,cipher="3des"',
        "rspauth=1335722656cbb5c512ceeef6ebd6e2fa",
        "e6e16a89eb7d5d60c22a814822f6990e078d29f8d77e7fc066a00b1516593c29000100000000",
        "79c4a1bb3e22ed95bafd5b2c54a9ea437fed005987afab6154e834af4771f4352c85900cf69ad891"
        "000100000000",
        "85e12f558818c9a26237bde93812eebc5edee1ee318288a2a242d1ab7afd2a44000100000001",
        "eb2a60b9cff4457fdb31a4473eefa2cbc76c969deb2c8a19ddc31bfdac6669f1778021288d52ee0f"
        "000100000001",
    ),
    "privacy by rc4": (
        f'cnonce="TOSESWO42hvTjBv69ZpgHIm8lpd5XxsqZXO5Mrmp"{END}'
        'response=b6cca892257687970204480ee655605e,qop=auth-conf,cipher="rc4"',
        "rspauth=2040bbb21de314d74b72be2fc44139a6",
        "8472d6a91bcab710e74ecbd82fdb036b6353c4d3594e095a84609cb06b2e000100000000",
        "d40eb263f65cdfdd7bdfafc992c43b70d7a88eadf91765acdcbfd1079ea14260000100000000",
        "55af29634bad8a80f165091d5ce976d3541bf5225f6f4ceb9f77c163b498000100000001",
        "41b936ba07ac6fe6f52cc360faa79358ec70e1463f367782b9d1f2bbe0ef2b1f000100000001",
    ),
}


def proven(response: str, service: Service = SERVER) -> Proven:
    acceptor = DigestAcceptor(service, {USER: PASSWORD}.__getitem__)
    acceptor.step(b"")
    found = acceptor.step((BEGIN + response).encode())
    assert isinstance(found, Proven)
    return found


def test_a_login_without_protection() -> None:
    assert proven(AUTH) == Proven(
        USER, Protection.AUTHENTICATION, b"rspauth=bf996665b9e98e6e216f9a599d6c7041"
    )


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_a_login_and_two_texts_of_each_side(told: tuple[str, ...]) -> None:
    response, last, *texts = told
    found = proven(response)
    assert found.token == last.encode()
    assert found.layer is not None
    assert found.layer.max_plain_bytes == 65536 - 26
    for number, (heard, said) in enumerate(zip(texts[::2], texts[1::2], strict=True), 1):
        assert found.layer.unwrap(bytes.fromhex(heard)) == b"text %d of the client" % number
        assert found.layer.wrap(b"text %d of the server!!" % number).hex() == said


@pytest.mark.parametrize("told", [(AUTH,), *TOLD.values()], ids=["authentication", *TOLD])
def test_our_client_writes_the_same_response(told: tuple[str, ...]) -> None:
    found = directives((BEGIN + told[0]).encode(), MAX_RESPONSE_BYTES)
    protection = proven(told[0]).protection
    ciphers = (found["cipher"],) if "cipher" in found else SERVER.ciphers
    service = Service(RPC_URI, RPC_REALM, (protection,), ciphers, nonce=lambda: found["cnonce"])
    challenge = DigestAcceptor(SERVER, str.encode).step(b"")
    assert isinstance(challenge, Challenge)
    response = DigestInitiator(service, USER, PASSWORD).step(challenge.token)
    assert not isinstance(response, Agreed)
    assert response.token.decode() == BEGIN + told[0]


def test_ciphers_are_offered_with_privacy_alone() -> None:
    for protections, offers in ((tuple(Protection), True), ((Protection.INTEGRITY,), False)):
        service = Service(RPC_URI, RPC_REALM, protections)
        challenge = DigestAcceptor(service, str.encode).step(b"")
        assert isinstance(challenge, Challenge)
        found = directives(challenge.token, MAX_CHALLENGE_BYTES)
        assert ("cipher" in found) == offers
        assert len(found["nonce"]) == 40
        assert not found["nonce"].endswith("="), "30 random bytes"


@pytest.mark.parametrize(("size", "fits"), [(1023, False), (1024, True), (2**24 - 1, True)])
def test_a_peer_takes_tokens_of_some_length(size: int, fits: bool) -> None:
    response = AUTH.replace("maxbuf=65536", f"maxbuf={size}")
    if fits:
        proven(response)
    else:
        with pytest.raises(SaslFailure, match="a buffer of 1023 bytes"):
            proven(response)


def test_messages_have_the_lengths_of_the_jdk() -> None:
    assert (MAX_CHALLENGE_BYTES, MAX_RESPONSE_BYTES) == (2048, 4096)
    assert directives(b"a=bcd", 5) == {"a": "bcd"}
    with pytest.raises(SaslFailure, match="6 bytes of directives, at most 5"):
        directives(b"a=bcde", 5)


def test_a_server_proves_itself_once() -> None:
    acceptor = DigestAcceptor(SERVER, {USER: PASSWORD}.__getitem__)
    initiator = DigestInitiator(SERVER, USER, PASSWORD)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    response = initiator.step(challenge.token)
    assert not isinstance(response, Agreed)
    last = acceptor.step(response.token)
    assert isinstance(last, Proven)
    assert last.token is not None
    assert isinstance(initiator.step(last.token), Agreed)
    with pytest.raises(SaslFailure, match="goes on"):
        initiator.step(last.token)
