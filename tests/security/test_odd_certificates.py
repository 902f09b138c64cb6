"""Odd certificates, old TLS and resumed sessions open nothing of a real JournalNode."""

import asyncio
import socket
import ssl
from pathlib import Path

import grpc
import grpc.aio
import pytest
from grpc.experimental.session_cache import ssl_session_cache_lru

from deploy.local.cluster.ports import HOST
from ha.conf.keys.security import Mode
from ha.security.access_control import AccessControl
from ha.security.caller import Method, Role
from ha.security.certificates import BadCertificate, Pair, parse
from tests.ha.security.authority import Authority
from tests.ha.security.test_unproven import Lines
from tests.security.odd_certificates import ODD, ODD_NAMES, signed
from tests.security.strangers import SECONDS
from tests.security.test_certificates import node

HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@pytest.mark.parametrize("case", ODD)
def test_an_odd_certificate_is_refused_by_a_rule_in_every_mode(
    authority: Authority, case: str
) -> None:
    files = authority.holder(Role.JOURNALNODE, "jn1")
    shown = ODD[case](authority).certificate
    for mode in Mode:
        access = AccessControl(mode, target="t", audit=Lines(), own_uid=0, tls=files)
        caller = access.certified(shown, "10.0.0.9:1")
        assert (caller.method, caller.roles) == (Method.TLS, frozenset()), caller
        assert caller.refused
        assert mode is Mode.INSECURE or access.refusal(caller, "rpc", "ClientProtocol", "mkdirs")
    assert files.why_no_server(shown, None), "nor is it a server's"


@pytest.mark.parametrize("case", [*ODD_NAMES, "not one byte"])
def test_whatever_the_library_raises_is_one_error(authority: Authority, case: str) -> None:
    names = ODD_NAMES.get(case)
    data = b"" if names is None else signed(authority.pair, names=names).certificate
    if case == "two URIs of ours":
        assert parse(data).nameless
        return
    with pytest.raises(BadCertificate):
        parse(data)


async def grpc_answer(port: int, pair: Pair, authority: Authority, sessions: object = None) -> str:
    """Return how a call of nnha's ends that an administrator may make."""
    credentials = grpc.ssl_channel_credentials(
        authority.pair.certificate, pair.key, pair.certificate
    )
    options: list[tuple[str, object]] = [("grpc.default_authority", "localhost")]
    if sessions is not None:
        options.append(("grpc.ssl_session_cache", sessions))
    async with grpc.aio.secure_channel(f"{HOST}:{port}", credentials, options) as channel:
        call = channel.unary_unary("/nnha.journal.JournalNode/GetJournalState")
        try:
            await call(b"", timeout=SECONDS)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name} {error.details()}"
    return ""


def as_client(
    folder: Path, pair: Pair, authority: Authority, most: ssl.TLSVersion
) -> ssl.SSLContext:
    path = folder / "pair.pem"
    path.write_bytes(pair.key + pair.certificate)
    context = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    context.load_cert_chain(path)
    context.maximum_version = most
    context.set_alpn_protocols(["h2"])
    return context


def shaken(port: int, context: ssl.SSLContext) -> None:
    """Return once the server has answered on a connection of this context."""
    with (
        socket.create_connection((HOST, port), SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.sendall(HTTP2)
        assert secured.recv(100)


async def test_a_journalnode_refuses_odd_certificates_old_tls_and_resumed_sessions(
    authority: Authority, tmp_path: Path
) -> None:
    good = signed(authority.pair)
    async with node(authority, tmp_path / "jn") as (process, rpc, http):
        assert "PERMISSION_DENIED" not in await grpc_answer(rpc, good, authority)
        for case, make in ODD.items():
            said = await grpc_answer(rpc, make(authority), authority)
            assert said.startswith(("PERMISSION_DENIED ", "UNAVAILABLE ")), (case, said)
        old = as_client(tmp_path, good, authority, ssl.TLSVersion.TLSv1_2)
        for port in (rpc, http):
            with pytest.raises(OSError):  # noqa: PT011 - as the library of the server ends it
                await asyncio.to_thread(shaken, port, old)
        new = as_client(tmp_path, good, authority, ssl.TLSVersion.TLSv1_3)
        await asyncio.to_thread(shaken, rpc, new)
        sessions = ssl_session_cache_lru(8)
        assert "resumed" not in await grpc_answer(rpc, good, authority, sessions)
        said = await grpc_answer(rpc, good, authority, sessions)
        assert said.startswith("PERMISSION_DENIED ")
        assert "a resumed session" in said
        log = process.log.read_text()
    assert "Traceback" not in log
    assert "Handshake failed" not in log
