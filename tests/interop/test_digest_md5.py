"""Our DIGEST-MD5 against the JDK's, which Hadoop uses: both sides, all protections."""

import random

import pytest
from py4j.protocol import Py4JJavaError

from ha.security.sasl.digest_md5 import RPC_REALM, RPC_URI, DigestAcceptor, DigestInitiator, Service
from ha.security.sasl.mechanism import (
    QOP,
    Agreed,
    Challenge,
    Layer,
    Protection,
    Proven,
    SaslFailure,
)
from tests.interop.hadoop_server import Hadoop, JavaObject

pytestmark = pytest.mark.interop

USER, PASSWORD = "AAVhbGljZQ==", "c2VjcmV0IG9mIHR3ZW50eSBieXQ="
SERVICE = Service(RPC_URI, RPC_REALM, tuple(Protection))
CASES = [
    (Protection.AUTHENTICATION, ""),
    (Protection.INTEGRITY, ""),
    (Protection.PRIVACY, "3des"),
    (Protection.PRIVACY, "rc4"),
]


def talk(java: JavaObject, layer: Layer) -> None:
    """Send texts both ways; both sides keep count."""
    for size in (*range(1, 34), 1000, java.mostPlainBytes(), layer.max_plain_bytes):
        text = random.Random(size).randbytes(size)
        assert layer.unwrap(java.wrap(text)) == text
        assert java.unwrap(layer.wrap(text)) == text


@pytest.mark.parametrize(("protection", "cipher"), CASES)
def test_the_jdks_client_logs_in_here(hadoop: Hadoop, protection: Protection, cipher: str) -> None:
    java = hadoop.compiled("nnha.DigestPeer")
    java.beginClient(USER, PASSWORD, QOP[protection], cipher)
    acceptor = DigestAcceptor(SERVICE, {USER: PASSWORD.encode()}.__getitem__)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    proven = acceptor.step(java.step(challenge.token))
    assert isinstance(proven, Proven)
    java.step(proven.token)
    assert (proven.name, proven.protection) == (USER, protection)
    assert (java.isComplete(), java.agreed()) == (True, QOP[protection])
    if proven.layer is not None:
        talk(java, proven.layer)


@pytest.mark.parametrize(("protection", "cipher"), CASES)
def test_we_log_in_at_the_jdks_server(hadoop: Hadoop, protection: Protection, cipher: str) -> None:
    java = hadoop.compiled("nnha.DigestPeer")
    java.beginServer(USER, PASSWORD, QOP[protection], cipher)
    initiator = DigestInitiator(SERVICE, USER, PASSWORD.encode())
    response = initiator.step(java.step(b""))
    assert not isinstance(response, Agreed)
    agreed = initiator.step(java.step(response.token))
    assert isinstance(agreed, Agreed)
    assert agreed.protection is protection
    assert java.isComplete()
    if agreed.layer is not None:
        talk(java, agreed.layer)


def test_the_jdk_refuses_a_wrong_password_and_is_refused(hadoop: Hadoop) -> None:
    java = hadoop.compiled("nnha.DigestPeer")
    java.beginServer(USER, PASSWORD, "auth", "")
    response = DigestInitiator(SERVICE, USER, b"wrong").step(java.step(b""))
    with pytest.raises(Py4JJavaError, match="response"):
        java.step(response.token)
    java = hadoop.compiled("nnha.DigestPeer")
    java.beginClient(USER, "wrong", "auth", "")
    acceptor = DigestAcceptor(SERVICE, {USER: PASSWORD.encode()}.__getitem__)
    challenge = acceptor.step(b"")
    assert isinstance(challenge, Challenge)
    with pytest.raises(SaslFailure, match="password"):
        acceptor.step(java.step(challenge.token))
