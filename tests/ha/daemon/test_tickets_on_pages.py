"""Requests that show a ticket (SPNEGO), against pages and routes of a daemon."""

import asyncio
import base64
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys import cluster
from ha.conf.keys.security import Mode
from ha.conf.listening import Door
from ha.conf.topology import HostPort
from ha.daemon.exposure import check_exposure
from ha.daemon.http import negotiate
from ha.daemon.http.http_get import http_get
from ha.daemon.http.negotiate import NotProven, prove_ourselves, ticket_for
from ha.daemon.http.proof_cookie import LIFE_SECONDS, ProofCookies
from ha.daemon.process import ExitWith
from ha.security.kerberos.own import log_in
from ha.security.sasl import steps
from ha.security.sasl.mechanism import Challenge, Proven, SaslFailure
from ha.security.sasl.negotiate_header import MAX_TOKEN_BYTES
from tests.ha.daemon.kerberized_pages import conf_of, pages, shown, token_of, web_keys
from tests.ha.rpc.kerberized import alice, configuration, logged_in
from tests.ha.security.kdc import REALM, Kdc, silent_kdc

HTTP = Door(cluster.NAMENODE_HTTP.name, "0.0.0.0", 9870)
FORBIDDEN = "is for"
# the principal of a ticket, what is asked for with it, the status and a part of the answer
RIGHTS = (
    ("alice", "GET", "/status", 403, "whose role is client"),
    ("bob", "GET", "/status", 200, '"a": 1'),
    ("nn/localhost", "GET", "/status", 200, '"a": 1'),
    ("alice", "GET", "/imagetransfer", 403, FORBIDDEN),
    ("nn/localhost", "GET", "/imagetransfer", 200, f"nn/localhost@{REALM} (auth:KERBEROS)"),
    ("nn/localhost", "PUT", "/imagetransfer", 200, f"nn/localhost@{REALM} (auth:KERBEROS)"),
    ("jn/localhost", "PUT", "/imagetransfer", 403, FORBIDDEN),
    ("jn/localhost", "GET", "/getJournal", 200, f"jn/localhost@{REALM}"),
    ("dn/localhost", "GET", "/getJournal", 403, FORBIDDEN),
    ("alice", "GET", "/fsck", 200, f"alice@{REALM} (auth:KERBEROS)"),
    ("alice", "GET", "/webhdfs/v1/a", 200, f"alice@{REALM} (auth:KERBEROS)"),
    ("alice", "GET", "/livez", 200, "alive"),
    ("alice", "GET", "/nowhere", 404, ""),
    ("nn/localhost", "GET", "/nowhere", 404, ""),
)


@pytest.fixture(autouse=True)
def logged_out() -> Iterator[None]:
    yield
    log_in(None)


async def test_each_ticket_opens_what_its_principal_may(realm: Kdc, tmp_path: Path) -> None:
    async with pages(conf_of(realm, tmp_path)) as there:
        for name, method, path, status, text in RIGHTS:
            found = await there.ask(path, shown(token_of(realm, name)), method)
            assert (found[0], text in found[1]) == (status, True), (name, method, path, found)
            proved = found[2].get("WWW-Authenticate", "").startswith("Negotiate ")
            assert proved or status != 200, "the server proves itself, too"


@pytest.mark.parametrize("path", ["/status", "/imagetransfer", "/getJournal", "/webhdfs/v1/a"])
async def test_who_shows_nothing_is_asked_for_a_ticket(
    realm: Kdc, tmp_path: Path, path: str
) -> None:
    async with pages(conf_of(realm, tmp_path)) as there:
        for headers in ({}, {"Authorization": "Basic YTpi"}, {"Cookie": 'hadoop.auth="u=nn"'}):
            status, text, answered = await there.ask(path, headers)
            assert (status, answered.get("WWW-Authenticate")) == (401, "Negotiate")
            assert "nothing proves who calls" in text
    async with pages(configuration(realm, tmp_path, {})) as there:
        status, _, answered = await there.ask(path, shown(token_of(realm, "bob")))
        assert "WWW-Authenticate" not in answered, "no principal of pages: as it was before"
        assert status == (200 if "webhdfs" in path else 401)


async def test_a_local_user_without_the_right_is_asked_for_a_ticket(
    realm: Kdc, tmp_path: Path
) -> None:
    async with pages(conf_of(realm, tmp_path), uid=65534) as there:
        status, _, answered = await there.ask("/status")
        assert (status, answered["WWW-Authenticate"]) == (401, "Negotiate")
        assert (await there.ask("/status", shown(token_of(realm, "bob"))))[0] == 200
    async with pages(conf_of(realm, tmp_path), uid=0) as there:
        assert (await there.ask("/status"))[0] == 200, "the kernel's word counts as before"
        assert (await there.ask("/status", shown(token_of(realm, "alice"))))[0] == 403


@pytest.mark.parametrize("path", ["/status", "/imagetransfer"])
@pytest.mark.parametrize("negotiated", [True, False], ids=["spnego", "kerberos"])
async def test_a_token_counts_once(realm: Kdc, tmp_path: Path, path: str, negotiated: bool) -> None:
    async with pages(conf_of(realm, tmp_path)) as there, pages(conf_of(realm, tmp_path)) as other:
        seen = shown(token_of(realm, "nn/localhost", negotiated=negotiated))
        assert (await there.ask(path, seen))[0] == 200
        for one in (there, other):
            status, text, answered = await one.ask(path, seen)
            assert (status, text) == (403, "the ticket is refused: this daemon's log says why\n")
            assert "WWW-Authenticate" not in answered
        assert "replay" in there.lines.entries[-1].reason


async def test_on_an_open_connection_each_request_is_proved_anew(
    realm: Kdc, tmp_path: Path
) -> None:
    async with pages(conf_of(realm, tmp_path)) as there, aiohttp.ClientSession() as session:
        found = []
        for name in ("nn/localhost", None, "jn/localhost"):
            headers = {} if name is None else shown(token_of(realm, name))
            async with session.get(there.url("/getJournal"), headers=headers) as answer:
                found.append((answer.status, (await answer.text()).partition("@")[0]))
        assert found[0] == (200, "nn/localhost")
        assert found[1][0] == 401
        assert found[2] == (200, "jn/localhost")


HOSTILE = {
    "no token": "Negotiate",
    "only a blank": "Negotiate ",
    "no base64": "Negotiate ===",
    "no ASCII": "Negotiate \xff\xfe",
    "base64 in pieces": "Negotiate YWJj ZGVm",
    "too long": "Negotiate " + base64.b64encode(bytes(MAX_TOKEN_BYTES + 1)).decode(),
    "the longest": "Negotiate " + base64.b64encode(bytes(MAX_TOKEN_BYTES)).decode(),
    "NTLM": "Negotiate "
    + base64.b64encode(b"NTLMSSP\0\1\0\0\0\x07\x82\x08\xa2" + bytes(16)).decode(),
    "half a token": "Negotiate YIIC3AYGKwYBBQUCoIIC0DCCAsygDTALBgkqhkiG9xIBAgI=",
    "lengths that lie": "Negotiate "
    + base64.b64encode(b"\x60\x84\xff\xff\xff\xff\x06\x06").decode(),
    "nested deeply": "Negotiate " + base64.b64encode(b"\x60\x82\x10\x00" * 500).decode(),
    "another case": "nEGOTIATE YWJj",
}


@pytest.mark.parametrize("path", ["/status", "/imagetransfer", "/livez"])
async def test_hostile_headers_are_refused(realm: Kdc, tmp_path: Path, path: str) -> None:
    async with pages(conf_of(realm, tmp_path)) as there:
        for name, value in HOSTILE.items():
            reader, writer = await asyncio.open_connection("localhost", there.port)
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {value}\r\n\r\n"
            writer.write(head.encode("latin-1"))
            async with asyncio.timeout(30):
                answer = await reader.readline()
            writer.close()
            assert answer.startswith(b"HTTP/1.1 403"), (name, answer)
        two = f"Authorization: {HOSTILE['another case']}\r\n" * 2
        reader, writer = await asyncio.open_connection("localhost", there.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{two}\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 403")
        writer.close()
        assert all(not entry.allowed for entry in there.lines.entries)


async def test_a_ticket_for_another_service_is_none(realm: Kdc, tmp_path: Path) -> None:
    async with pages(conf_of(realm, tmp_path)) as there:
        other = token_of(realm, "bob", f"nn/localhost@{REALM}")
        assert (await there.ask("/status", shown(other)))[0] == 403


async def test_a_cookie_for_options_opens_the_next_request(realm: Kdc, tmp_path: Path) -> None:
    """As Java's AuthenticatedURL goes before a body that it cannot send twice."""
    cookie = ""
    async with pages(conf_of(realm, tmp_path)) as there:
        for path in ("/imagetransfer", "/status"):
            proof = shown(token_of(realm, "nn/localhost"))
            status, _, answered = await there.ask(path, proof, "OPTIONS")
            assert status == 200
            cookie = answered["Set-Cookie"].partition(";")[0]
            assert f"&p=nn/localhost@{REALM}&t=kerberos&" in cookie
            status, text, _ = await there.ask("/imagetransfer", {"Cookie": cookie}, "PUT")
            assert (status, text.partition(" ")[0]) == (200, f"nn/localhost@{REALM}")
        _, _, answered = await there.ask("/status", shown(token_of(realm, "bob")))
        assert "Set-Cookie" not in answered
        async with pages(conf_of(realm, tmp_path)) as other:
            assert (await other.ask("/imagetransfer", {"Cookie": cookie}, "PUT"))[0] == 401


def test_a_cookie_counts_for_its_caller_a_minute() -> None:
    now = [1000.0]
    cookies = ProofCookies(b"secret", lambda: now[0])
    made = cookies.made("nn", "nn/h@R", "10.0.0.1")
    assert made is not None
    value = made.partition(";")[0]
    assert cookies.principal_in(value, "10.0.0.1") == "nn/h@R"
    assert cookies.principal_in(f"a=b; {value}", "10.0.0.1") == "nn/h@R"
    assert cookies.principal_in(value, "10.0.0.2") is None
    assert ProofCookies(b"other", lambda: now[0]).principal_in(value, "10.0.0.1") is None
    for altered in (value.replace("nn/h", "nn/g"), value.replace("&e=1", "&e=2"), value[:-3] + '"'):
        assert cookies.principal_in(altered, "10.0.0.1") is None
    now[0] += LIFE_SECONDS
    assert cookies.principal_in(value, "10.0.0.1") is None
    for name in ('a"b', "a;b", "a&b=c", "a b", "a\\b", "a\nb", "é"):
        assert cookies.made(name, "p@R", "10.0.0.1") is None


async def test_in_strict_with_certificates_a_ticket_in_the_clear_makes_a_client(
    realm: Kdc, tmp_path: Path
) -> None:
    async with pages(conf_of(realm, tmp_path), Mode.STRICT) as there:
        assert (await there.ask("/status", shown(token_of(realm, "bob"))))[0] == 200
        there.access.policy = replace(there.access.policy, certificates=True)
        status, text, _ = await there.ask("/status", shown(token_of(realm, "bob")))
        assert (status, "whose role is client" in text) == (403, True)
        assert (await there.ask("/fsck", shown(token_of(realm, "bob"))))[0] == 200


class Hangs:
    """A mechanism that waits, as for a file system that does not answer."""

    def __init__(self, released: threading.Event) -> None:
        self._released = released

    def step(self, response: bytes) -> Challenge | Proven:
        self._released.wait(20)
        raise SaslFailure(f"{len(response)} bytes, too late")


async def test_a_step_that_hangs_stops_nobody_else(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr(steps, "STEP_SECONDS", 0.5)
    async with pages(conf_of(realm, tmp_path)) as there:
        way = there.access.web_way
        assert way is not None
        there.access.web_way = replace(way, make=lambda: Hangs(released))
        began = time.monotonic()
        stuck = asyncio.create_task(there.ask("/status", shown(b"x")))
        try:
            assert (await there.ask("/livez"))[0] == 200
            assert time.monotonic() - began < 0.5
            assert (await stuck)[:2] == (403, "try again later\n")
        finally:
            released.set()


async def test_our_clients_show_a_ticket_where_one_is_wanted(realm: Kdc, tmp_path: Path) -> None:
    conf = conf_of(realm, tmp_path)
    async with pages(conf) as there:
        at = HostPort("localhost", there.port)
        with logged_in(alice(conf, realm, "bob")):
            answer = await http_get(at, "/status", most_bytes=1000, deadline_seconds=20)
            assert answer.status == 200
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=1),  # the first answer is let go
                    timeout=aiohttp.ClientTimeout(total=20),
                    middlewares=(prove_ourselves,),
                ) as session,
                session.get(there.url("/getJournal")) as found,
            ):
                assert (found.status, await found.text()) == (200, f"bob@{REALM} (auth:KERBEROS) ")
            assert await ticket_for("localhost", 401, ["Basic"]) is None
            assert await ticket_for("localhost", 200, ["Negotiate"]) is None
        with logged_in(alice(conf, realm)):
            answer = await http_get(at, "/status", most_bytes=1000, deadline_seconds=20)
            assert answer.status == 403, "who is refused learns why, whatever proof lacks"
        with logged_in(alice(configuration(realm, tmp_path, {}), realm, "bob")):
            answer = await http_get(at, "/status", most_bytes=1000, deadline_seconds=20)
            assert answer.status == 401, "no principal of pages is configured here"
        answer = await http_get(at, "/status", most_bytes=1000, deadline_seconds=20)
        assert answer.status == 401


async def test_a_server_that_does_not_prove_itself_is_not_believed(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = conf_of(realm, tmp_path)
    async with pages(conf) as there:
        at = HostPort("localhost", there.port)
        monkeypatch.setattr("ha.daemon.http.proof.header", lambda _: "Negotiate")
        with logged_in(alice(conf, realm, "bob")), pytest.raises(NotProven, match="does not prove"):
            await http_get(at, "/status", most_bytes=1000, deadline_seconds=20)
        with (
            logged_in(alice(conf, realm, "nobody")),
            pytest.raises(NotProven, match="no Kerberos tickets"),
        ):
            await http_get(at, "/status", most_bytes=1000, deadline_seconds=20)


async def test_a_kdc_that_is_silent_keeps_no_caller(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    realm.make(tmp_path.name)  # the library keeps no ticket of it
    own = alice(conf_of(realm, tmp_path), realm, tmp_path.name)
    monkeypatch.setattr(negotiate, "TICKET_SECONDS", 0.05)
    with logged_in(own), silent_kdc(tmp_path, monkeypatch) as ended:
        with pytest.raises(NotProven, match=r"no ticket for localhost came in 0\.05 s"):
            await ticket_for("localhost", 401, ["Negotiate"])
        ended()


async def test_a_fault_of_ours_is_not_taken_for_a_ticket_that_lacks(
    realm: Kdc, tmp_path: Path
) -> None:
    own = alice(conf_of(realm, tmp_path), realm)
    own.web = 1  # type: ignore[assignment]
    with logged_in(own), pytest.raises(AttributeError):
        await ticket_for("localhost", 401, ["Negotiate"])


def test_pages_with_tickets_may_be_reached_and_need_their_key(realm: Kdc, tmp_path: Path) -> None:
    access = check_exposure(conf_of(realm, tmp_path), Daemon.NAMENODE, [HTTP])
    assert access.web_way is not None
    assert (access.web_way.protocol, access.web_way.server_id) == ("HTTP", "localhost")
    with pytest.raises(ExitWith, match="reachable from other machines"):
        check_exposure(configuration(realm, tmp_path, {}), Daemon.NAMENODE, [HTTP])
    no_key = {"dfs.web.authentication.kerberos.keytab": str(realm.keytab("nn/localhost"))}
    with pytest.raises(
        ConfigurationError, match=f"does not have the key of HTTP/localhost@{REALM}"
    ):
        check_exposure(conf_of(realm, tmp_path, no_key), Daemon.NAMENODE, [])
    zkfc = check_exposure(conf_of(realm, tmp_path, no_key), Daemon.ZKFC, [])
    assert zkfc.web_way is None, "a ZKFC goes on as before"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"dfs.web.authentication.kerberos.principal": "*"}, "HTTP/localhost"),
        ({"dfs.namenode.kerberos.internal.spnego.principal": f"bob@{REALM}"}, "bob"),
        (
            {
                "dfs.web.authentication.kerberos.principal": "",
                "hadoop.http.authentication.type": "kerberos",
                "hadoop.http.authentication.kerberos.principal": f"HTTP/_HOST@{REALM}",
            },
            "HTTP/localhost",
        ),
        ({"dfs.web.authentication.kerberos.principal": ""}, None),
    ],
)
def test_which_principal_pages_have(
    realm: Kdc, tmp_path: Path, more: dict[str, str], named: str | None
) -> None:
    keytab = realm.keytab("bob" if named == "bob" else "HTTP/localhost")
    keys = {
        **web_keys(realm),
        "dfs.web.authentication.kerberos.keytab": str(keytab),
        "hadoop.http.authentication.kerberos.keytab": str(keytab),
        **more,
    }
    way = check_exposure(configuration(realm, tmp_path, keys), Daemon.NAMENODE, []).web_way
    assert named == (way and "/".join(filter(None, (way.protocol, way.server_id))))


def test_pages_that_are_to_take_tickets_need_kerberos(realm: Kdc, tmp_path: Path) -> None:
    more = {
        "hadoop.security.authentication": "simple",
        "hadoop.http.authentication.type": "kerberos",
    }
    with pytest.raises(ConfigurationError, match="is kerberos, but hadoop"):
        check_exposure(configuration(realm, tmp_path, more), Daemon.NAMENODE, [])
