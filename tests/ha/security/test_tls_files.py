"""Certificates that change under a running process, over real sockets on both loops."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from ha.daemon.event_loop import fast_loop
from ha.security.caller import ALL_ROLES, Method, Role
from ha.security.certificate_files import CA, CERT, KEY, replace
from ha.security.certificates import CertificateRequest, now
from ha.security.names import CertifiedName
from ha.security.tls_files import NoCertificates, TlsFiles
from tests.ha.security.authority import CHECK_SECONDS, LOCAL, Authority, revoke
from tests.log_lines import captured

SECONDS = 20.0
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop] | None] = {
    "asyncio": None,
    "uvloop": fast_loop,
}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def greeting(server: TlsFiles, client: TlsFiles, role: Role | None = None) -> str:
    """Return what a server says of its caller, once both sides have accepted each other."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        caller = server.caller(shown, "127.0.0.1:1")
        writer.write(f"{caller.refused or caller}\n".encode())
        writer.close()

    async with asyncio.timeout(SECONDS):
        listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server.server)
        port = listener.sockets[0].getsockname()[1]
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client.client(role)
            )
            said = await reader.readline()
            writer.close()
            if not said:
                raise ConnectionResetError("the server has closed")
            return said.decode().strip()
        finally:
            listener.close()


@pytest.mark.parametrize("loop", LOOPS)
def test_each_side_knows_the_other(authority: Authority, loop: str) -> None:
    server = authority.holder(Role.NAMENODE, "nn1")
    client = authority.holder(Role.ZKFC, "nn1")
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(greeting(server, client, Role.NAMENODE)) == "zkfc nn1"
        with pytest.raises(ssl.SSLCertVerificationError) as refused:
            runner.run(greeting(server, client, Role.JOURNALNODE))
    assert "its certificate is that of namenode nn1, and a journalnode was called" in str(
        refused.value
    )


@pytest.mark.parametrize("loop", LOOPS)
def test_certificate_and_authority_change_without_a_restart(
    authority: Authority, tmp_path: Path, loop: str
) -> None:
    """Follow section 5.4 of docs/security.md: both, new certificates, the new authority alone."""
    server = authority.holder(Role.NAMENODE, "nn1")
    client = authority.holder(Role.ZKFC, "nn1")
    stale = TlsFiles(authority.issue(Role.ZKFC, "nn2"), CHECK_SECONDS)
    following = Authority(tmp_path / "next")
    both = following.pair.certificate + authority.pair.certificate
    holders = {Role.NAMENODE: server, Role.ZKFC: client}

    def change(made: Callable[[Role], dict[str, bytes]]) -> None:
        for role, holder in holders.items():
            replace(tmp_path / f"{role}-nn1", made(role))
            assert holder.look()

    def fresh(role: Role, trusted: bytes) -> dict[str, bytes]:
        wish = CertificateRequest(CertifiedName("c1", role, "nn1"), LOCAL, 7)
        return following.files(wish, now(), trusted)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        change(lambda _: {CA: both})
        assert runner.run(greeting(server, client)) == "zkfc nn1"
        change(lambda role: fresh(role, both))
        replace(tmp_path / "zkfc-nn2", {CA: both})
        stale.look()
        assert runner.run(greeting(server, client)) == "zkfc nn1"
        assert runner.run(greeting(server, stale)) == "zkfc nn2"
        change(lambda _: {CA: following.pair.certificate})
        assert runner.run(greeting(server, client)) == "zkfc nn1"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            runner.run(greeting(server, stale))


def test_half_of_a_change_changes_nothing(authority: Authority, tmp_path: Path) -> None:
    server = authority.holder(Role.NAMENODE, "nn1")
    before = server.material
    wish = CertificateRequest(CertifiedName("c1", Role.NAMENODE, "nn1"), LOCAL, 7)
    fresh = authority.files(wish, now())
    replace(tmp_path / "namenode-nn1", {KEY: fresh[KEY]})
    assert not server.look()
    assert server.material is before
    (tmp_path / "namenode-nn1" / CERT).write_bytes(fresh[CERT][:100])
    assert not server.look()
    assert server.material is before
    replace(tmp_path / "namenode-nn1", {CERT: fresh[CERT]})
    assert server.look()
    assert server.material.pair.key == fresh[KEY]


def test_nobody_becomes_somebody_else_without_a_restart(
    authority: Authority, tmp_path: Path
) -> None:
    server = authority.holder(Role.NAMENODE, "nn1")
    wish = CertificateRequest(CertifiedName("c1", Role.ADMIN, "nn1"), LOCAL, 7)
    replace(tmp_path / "namenode-nn1", authority.files(wish, now()))
    assert not server.look()
    assert server.material.name.role is Role.NAMENODE


def test_a_list_of_revocations_that_cannot_be_read_is_not_taken(
    authority: Authority, tmp_path: Path
) -> None:
    server = authority.holder(Role.NAMENODE, "nn1")
    revoke(tmp_path / "namenode-nn1", "nnha://c1/zkfc/nn1")
    assert server.look()
    revoke(tmp_path / "namenode-nn1", "everybody")
    assert not server.look()
    assert server.material.revoked == {"nnha://c1/zkfc/nn1"}


REFUSED = {
    "another cluster": ("c2", "this certificate is of cluster c2"),
    "a revoked one": ("", "this certificate, of zkfc nn1, was revoked"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_who_counts_for_nothing(authority: Authority, tmp_path: Path, case: str) -> None:
    cluster, expected = REFUSED[case]
    server = authority.holder(Role.NAMENODE, "nn1")
    client = TlsFiles(authority.issue(Role.ZKFC, "nn1", cluster=cluster), CHECK_SECONDS)
    if "revoked" in case:
        revoke(tmp_path / "namenode-nn1", f"{client.material.leaf.serial:x}")
        server.look()
    shown = client.material.pair.certificate
    caller = server.caller(shown, "127.0.0.1:1")
    assert expected in caller.refused
    assert caller.roles == frozenset()
    if "cluster" not in case:
        assert expected in await greeting(server, client)


async def test_an_ended_certificate_opens_nothing(authority: Authority) -> None:
    server = authority.holder(Role.NAMENODE, "nn1")
    early = now() - timedelta(hours=23)
    client = TlsFiles(authority.issue(Role.ZKFC, "nn1", days=0.5, at=early), CHECK_SECONDS)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await greeting(server, client)


async def test_a_stranger_with_an_authority_of_the_same_name_is_nobody(
    authority: Authority, tmp_path: Path
) -> None:
    server = authority.holder(Role.NAMENODE, "nn1")
    other = Authority(tmp_path / "other")
    folder = other.issue(Role.ADMIN, "root")
    # It would accept our server, so that it is our server that refuses.
    replace(folder, {CA: authority.pair.certificate + other.pair.certificate})
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await greeting(server, TlsFiles(folder, CHECK_SECONDS))


async def test_a_server_with_the_certificate_of_another_host_is_refused(
    authority: Authority,
) -> None:
    server = authority.holder(Role.JOURNALNODE, "jn2", hosts=("jn2.example", "10.0.0.2"))
    client = authority.holder(Role.NAMENODE, "nn1")
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        await greeting(server, client, Role.JOURNALNODE)
    assert "not valid for '127.0.0.1'" in str(refused.value)


def test_connections_end_with_their_certificate(authority: Authority, tmp_path: Path) -> None:
    server = authority.holder(Role.NAMENODE, "nn1")
    client = authority.holder(Role.ZKFC, "nn1")
    told: list[str] = []
    server.connections.add(client.material.leaf, told.append)
    server.look()
    assert told == []
    revoke(tmp_path / "namenode-nn1", "nnha://c1/zkfc/nn1")
    server.look()
    assert told == ["this certificate, of zkfc nn1, was revoked"]
    assert len(server.connections) == 0


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(NoCertificates) as told:
        TlsFiles(tmp_path, CHECK_SECONDS)
    assert f"nnha security check {tmp_path}" in str(told.value)


def test_a_certificate_names_one_role(authority: Authority) -> None:
    server = authority.holder(Role.NAMENODE, "nn1")
    caller = server.caller(server.material.pair.certificate, "10.0.0.1:7")
    assert (caller.method, caller.roles) == (Method.TLS, frozenset({Role.NAMENODE}))
    assert caller.roles < ALL_ROLES


def test_a_daemon_says_at_its_start_and_once_that_its_certificate_does_not_count(
    authority: Authority,
) -> None:
    """Check one that has ended before the start, and one that ends while the daemon runs."""
    folder = authority.issue(Role.JOURNALNODE, "jn1", days=1)
    for start in (timedelta(days=2), timedelta(0)):
        ahead = [start]
        files = TlsFiles(folder, 3600, clock=partial(_ahead_by, ahead))
        with captured("security.") as logs:
            files.start()
            assert len(logs) == int(start > timedelta(0))
            ahead[0] = timedelta(days=3)
            files.look()
            files.look()
        files.stop()
        (said,) = logs
        assert said["event"] == "security.certificate_not_valid"
        assert "nnha://c1/journalnode/jn1" in said["because"]
        assert "ended at" in said["because"]


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o640, 1), (0o604, 1)])
def test_a_daemon_says_once_at_its_start_that_others_may_read_its_key(
    authority: Authority, mode: int, warned: int
) -> None:
    folder = authority.issue(Role.JOURNALNODE, "jn1")
    (folder / "key.pem").chmod(mode)
    files = TlsFiles(folder, 3600)
    with captured("security.key_open_to_others") as logs:
        files.start()
        files.start()
    files.stop()
    assert len(logs) == warned
    assert all(one["advice"] == f"chmod 600 {folder / 'key.pem'}" for one in logs)


def _ahead_by(ahead: list[timedelta]) -> datetime:
    return now() + ahead[0]
