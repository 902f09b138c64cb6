"""Pages of a daemon that take tickets of a KDC of the test; of no caller the kernel says more."""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web

from ha.conf.configuration import Configuration
from ha.conf.hazards import Daemon
from ha.conf.keys.security import Mode
from ha.daemon.exposure import let_in_by_lists, tickets_on_pages
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.routes import caller_of
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from ha.security.kerberos.settings import daemon_login
from ha.security.rights import WEBHDFS
from ha.security.sasl import gss
from ha.security.sasl.spnego import SpnegoInitiator
from tests.ha.rpc.kerberized import configuration
from tests.ha.security.kdc import REALM, Kdc
from tests.ha.security.test_unproven import Lines

PAGES = {
    "dfs.web.authentication.kerberos.principal": f"HTTP/_HOST@{REALM}",
    "dfs.cluster.administrators": "bob",
}
SERVER = f"HTTP/localhost@{REALM}"


@dataclass(frozen=True, slots=True)
class Pages:
    """An open server, its access, and what it has written down."""

    port: int
    access: AccessControl
    lines: Lines

    def url(self, path: str) -> str:
        return f"http://localhost:{self.port}{path}"

    async def ask(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> tuple[int, str, Mapping[str, str]]:
        """Return the status, the text and the headers of an answer."""
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.url(path), headers=headers) as answer,
        ):
            return answer.status, await answer.text(), answer.headers


def web_keys(realm: Kdc) -> dict[str, str]:
    keytab = str(realm.keytab("HTTP/localhost"))
    return {**PAGES, "dfs.web.authentication.kerberos.keytab": keytab}


def conf_of(realm: Kdc, folder: Path, more: Mapping[str, str] | None = None) -> Configuration:
    return configuration(realm, folder, {**web_keys(realm), **(more or {})})


def access_of(
    conf: Configuration, mode: Mode = Mode.AUTO, *, uid: int | None = None
) -> tuple[AccessControl, Lines]:
    """Return the access of a NameNode, and what it writes down of callers."""
    lines = Lines()
    access = AccessControl(
        mode, target="t", audit=lines, own_uid=1, hosts=["localhost"], uid_of=lambda *_: uid
    )
    own = daemon_login(conf.scoped("ns1", "nn1"), Role.NAMENODE)
    let_in_by_lists(access, conf, own)
    access.web_way = tickets_on_pages(conf, Daemon.NAMENODE, own)
    return access, lines


@asynccontextmanager
async def pages(
    conf: Configuration, mode: Mode = Mode.AUTO, *, uid: int | None = None
) -> AsyncIterator[Pages]:
    """Serve pages and routes that say who asks; ``uid``: what the kernel says of all callers."""
    access, lines = access_of(conf, mode, uid=uid)

    async def who(request: web.Request) -> web.Response:
        return web.Response(text=f"{caller_of(access, request)} {(await request.read()).decode()}")

    routes = [
        web.get("/imagetransfer", who),
        web.put("/imagetransfer", who),
        web.get("/getJournal", who),
        web.get("/fsck", who),
        web.get(WEBHDFS, who),
        web.put(WEBHDFS, who),
    ]
    endpoint = Endpoint(
        status=lambda: {"a": 1}, healthy=lambda: None, access=access, routes=lambda: routes
    )
    port = await endpoint.start("localhost", 0)
    try:
        yield Pages(port, access, lines)
    finally:
        await endpoint.stop()


def token_of(realm: Kdc, name: str, server: str = SERVER, *, negotiated: bool = True) -> bytes:
    """Return a token of a principal for a service, as SPNEGO's or as Kerberos' own."""
    credentials = gss.Credentials.of_keytab(f"{name}@{REALM}", str(realm.keytab(name)))
    if negotiated:
        return SpnegoInitiator(credentials, server).token()
    return gss.Context(credentials).init(server, gss.MUTUAL, b"")


def shown(token: bytes) -> dict[str, str]:
    return {"Authorization": f"Negotiate {base64.b64encode(token).decode()}"}
