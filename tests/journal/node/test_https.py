"""JournalNodes with dfs.http.policy=HTTPS_ONLY: Java's writer, TLS, tickets, and one another."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from ha.cli.probe.question import answer, parse
from ha.conf.configuration import Configuration
from ha.conf.hazards import Daemon
from ha.conf.keys import journal as keys
from ha.conf.keys.security import Mode
from ha.conf.listening import Door
from ha.console.exit_codes import DONE, UNREACHABLE
from ha.daemon.exposure import (
    check_exposure,
    let_in_by_lists,
    serve_https,
    tickets_on_pages,
)
from ha.daemon.http.negotiate import ASKED_BY
from ha.daemon.process import ExitWith
from ha.rpc.client import RpcConnection
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from ha.security.kerberos.own import log_in
from ha.security.kerberos.settings import daemon_login
from ha.security.own_tls import segment_context
from ha.security.page_store import trusted_pages
from journal.links.settings import ReaderSettings
from journal.node.faces.hadoop_codec import QJOURNAL_PROTOCOL
from journal.node.process.command import doors, read_settings
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.reader.fetch import http_session
from tests.ha.daemon.kerberized_pages import shown, token_of
from tests.ha.rpc.kerberized import alice, configuration, logged_in
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.ha.security.java_store import HTTPS, configured, site, with_stores
from tests.ha.security.kdc import REALM, Kdc
from tests.ha.security.test_unproven import Lines
from tests.journal.core.requests_of import NAMESPACE, segment_bytes
from tests.journal.node import test_process
from tests.journal.node.faces.java_writer import JID, JavaWriter
from tests.journal.node.process import DEADLINE_SECONDS

HOST = "localhost"
ADDRESS = "dfs.journalnode.https-address"


@pytest.fixture(autouse=True)
def logged_out() -> Iterator[None]:
    yield
    log_in(None)


def secure(realm: Kdc, folder: Path) -> Configuration:
    """Return what an operator of a Kerberized cluster over HTTPS has."""
    folder.mkdir(exist_ok=True)
    more = {
        "dfs.http.policy": "HTTPS_ONLY",
        "dfs.namenode.shared.edits.dir": "qjournal://localhost:8485/other",
        "dfs.web.authentication.kerberos.principal": f"HTTP/_HOST@{REALM}",
        "dfs.web.authentication.kerberos.keytab": str(realm.keytab("HTTP/localhost")),
        keys.RPC.name: "localhost:8485",
    }
    return configuration(realm, with_stores(folder), more)


@asynccontextmanager
async def node(conf: Configuration, folder: Path) -> AsyncIterator[JournalNodeDaemon]:
    """Run a node of which no caller is known by the kernel's word."""
    own = daemon_login(conf, Role.JOURNALNODE)
    access = AccessControl(
        Mode.AUTO, target="t", audit=Lines(), own_uid=1, hosts=[HOST], uid_of=lambda *_: None
    )
    let_in_by_lists(access, conf, own)
    access.web_way = tickets_on_pages(conf, Daemon.JOURNALNODE, own)
    serve_https(access, conf, Daemon.JOURNALNODE)
    settings = NodeSettings(folder=folder, hadoop_host=HOST, http_host=HOST, https=True)
    async with JournalNodeDaemon(settings, access) as daemon:
        yield daemon


@asynccontextmanager
async def writer(daemon: JournalNodeDaemon) -> AsyncIterator[JavaWriter]:
    connection = await RpcConnection.open(
        HOST, daemon.hadoop_port, protocol=QJOURNAL_PROTOCOL, user=None,
        deadline_seconds=DEADLINE_SECONDS,
    )  # fmt: skip
    try:
        yield JavaWriter(connection)
    finally:
        await connection.close()


def segment(base: str) -> str:
    info = NAMESPACE.storage_info()
    return f"{base}/getJournal?jid={JID}&segmentTxId=1&storageInfo={info}"


async def status(url: str, context: ssl.SSLContext | None) -> tuple[int, str | None]:
    """Return the answer to a stranger, and how it may prove itself."""
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context or True) as found:
        return found.status, found.headers.get(ASKED_BY)


async def test_a_java_namenode_writes_and_fetches_and_recovers_over_https(
    realm: Kdc, tmp_path: Path
) -> None:
    conf = secure(realm, tmp_path / "conf")
    with logged_in(alice(conf, realm, "nn/localhost")):
        async with AsyncExitStack() as stack:
            source = await stack.enter_async_context(node(conf, tmp_path / "a"))
            late = await stack.enter_async_context(node(conf, tmp_path / "b"))
            java, other = [await stack.enter_async_context(writer(one)) for one in (source, late)]
            for one in (java, other):
                await one.format()
                await one.new_epoch(1)
            await java.at(1).written(1, 3)
            told = {(await java.state()).fromURL, (await java.manifest(1)).fromURL}
            assert told == {f"https://localhost:{source.http_port}"}
            (base,) = told
            session = await stack.enter_async_context(http_session(ReaderSettings()))
            async with session.get(segment(base)) as found:
                assert (found.status, await found.read()) == (200, segment_bytes(1, 3, 1))
            for one in (java, other):
                await one.new_epoch(2)
            new = other.at(2)
            await new.accept(1, 3, segment(base))
            await new.finalize(1, 3)
    (file,) = (tmp_path / "b" / JID / "current").glob("edits_*-*")
    assert file.read_bytes() == segment_bytes(1, 3, 1)


async def test_a_health_check_trusts_each_certificate(realm: Kdc, tmp_path: Path) -> None:
    """It has no authority to hold one against: a container's platform checks none either."""
    conf = secure(realm, tmp_path / "conf")
    async with node(conf, tmp_path / "a") as daemon:

        async def found(address: str) -> tuple[int, str]:
            return await asyncio.to_thread(answer, parse(address), DEADLINE_SECONDS)

        port = daemon.http_port
        assert await found(f"https://localhost:{port}") == (DONE, "live")
        assert await found(f"https://127.0.0.1:{port}/active") == (
            UNREACHABLE, "unknown: HTTP status 404, which no daemon of nnha gives",
        )  # fmt: skip
        code, said = await found(f"localhost:{port}")
        assert (code, "HTTPS alone" in said) == (UNREACHABLE, True), said


async def test_the_port_takes_nothing_but_tls_and_asks_strangers_for_a_ticket(
    realm: Kdc, tmp_path: Path
) -> None:
    conf = secure(realm, tmp_path / "conf")
    trusted = trusted_pages(conf)
    async with node(conf, tmp_path / "a") as daemon:
        base = f"https://localhost:{daemon.http_port}"
        assert await status(segment(base), trusted) == (401, "Negotiate")
        ticket = shown(token_of(realm, "nn/localhost"))
        async with (
            aiohttp.ClientSession() as session,
            session.options(segment(base), headers=ticket, ssl=trusted) as found,
        ):
            assert found.headers["Set-Cookie"].endswith("; Secure")
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await status(segment(base), None)
        reader, plain = await asyncio.open_connection(HOST, daemon.http_port)
        plain.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        said = b""
        with suppress(ConnectionResetError):
            said = await reader.read()
        assert said == b""
        plain.close()
        assert (await status(f"{base}/livez", trusted))[0] == 200


async def test_with_certificates_of_ours_the_same_port_asks_for_none(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.holder(Role.JOURNALNODE, "jn1")
    access = AccessControl(Mode.STRICT, target="t", audit=Lines(), hosts=[HOST], tls=files)
    settings = NodeSettings(folder=tmp_path / "a", http_host=HOST, https=True)
    anybody = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    with acting_as(files):
        serve_https(access, configured(tmp_path), Daemon.JOURNALNODE)
        async with JournalNodeDaemon(settings, access) as daemon:
            base = f"https://localhost:{daemon.http_port}"
            assert (await status(f"{base}/livez", anybody))[0] == 200
            assert (await status(segment(base), anybody))[0] in (401, 403)
            assert (await status(segment(base), segment_context()))[0] == 404, "no such journal"
            with pytest.raises(aiohttp.ClientError):
                await status(f"http://localhost:{daemon.http_port}/livez", None)


def test_the_policy_says_where_pages_are(tmp_path: Path) -> None:
    for override, key in ((HTTPS, keys.HTTPS), ("dfs.http.policy=HTTP_ONLY", keys.HTTP)):
        settings = read_settings(configured(tmp_path, override, f"{keys.RPC.name}=localhost:1"))
        assert settings.https == (key is keys.HTTPS)
        assert Door(key.name, "127.0.0.1", key.parse(key.default).port) in doors(settings)
        assert settings.http_port_of_peers == settings.http_port
    bound = read_settings(configured(tmp_path, "dfs.journalnode.https-bind-host=127.0.0.9"))
    assert bound.http_host == "127.0.0.9"


def test_the_port_may_be_reached_where_its_callers_show_tickets(realm: Kdc, tmp_path: Path) -> None:
    door = [Door(keys.HTTPS.name, "0.0.0.0", 8481)]
    assert check_exposure(secure(realm, tmp_path / "a"), Daemon.JOURNALNODE, door).web_way
    log_in(None)
    (tmp_path / "b").mkdir()
    without = configuration(realm, tmp_path / "b", {"dfs.http.policy": "HTTPS_ONLY"})
    with pytest.raises(ExitWith, match=r"dfs\.journalnode\.https-address=0\.0\.0\.0:8481 is reach"):
        check_exposure(without, Daemon.JOURNALNODE, door)


async def test_the_command_serves_by_https_or_says_why_it_does_not(tmp_path: Path) -> None:
    port, page = test_process.free_port(), test_process.free_port()
    place = test_process.configuration(
        tmp_path / "conf",
        edits_dir=tmp_path / "jn",
        rpc_address=f"127.0.0.1:{port}",
        https_address=f"127.0.0.1:{page}",
    )
    site(place / "core-site.xml", {"dfs.http.policy": "HTTPS_ONLY"})
    failed = await test_process.spawn(place)
    _, errors = await failed.communicate()
    assert failed.returncode == 78
    assert b"there is no certificate. Name a PKCS#12 file in ssl-server.xml" in errors
    with_stores(place)
    async with test_process.process(place, port):
        trusted = trusted_pages(configured(place))
        assert (await status(f"https://localhost:{page}/status", trusted))[0] == 200
