"""A NameNode in memory that is asked over WebHDFS."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from ha.daemon.http.endpoint import Endpoint
from ha.rpc.protocol import Method
from ha.security.access_control import AccessControl
from hadoop.webhdfs.callers import HolderOf
from namenode_sim.webhdfs.route import WebHdfsRoutes
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Served

Json: TypeAlias = Any
NAMES = frozenset({"localhost"})


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    headers: Any
    text: str

    @property
    def json(self) -> Json:
        return json.loads(self.text)

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and the exception's simple name."""
        return self.status, self.json["RemoteException"]["exception"]

    @property
    def message(self) -> str:
        return str(self.json["RemoteException"]["message"])


@dataclass(frozen=True, slots=True)
class WebClient:
    session: aiohttp.ClientSession
    port: int

    async def ask(self, method: str, path: str, op: str, **query: object) -> Answered:
        named = {"user_name": SUPERUSER, **query}
        given = {key.replace("_", "."): value for key, value in named.items() if value is not None}
        return await self.raw(method, f"/webhdfs/v1{quote(path)}?{urlencode({'op': op, **given})}")

    async def raw(self, method: str, target: str, **headers: str) -> Answered:
        url = URL(f"http://127.0.0.1:{self.port}{target}", encoded=True)
        async with self.session.request(
            method, url, allow_redirects=False, headers=headers
        ) as answer:
            if "RemoteException" in await answer.text() or answer.ok:
                # The next request of a connection might have names that the server does not read.
                assert answer.headers["Connection"] == "close"
            return Answered(answer.status, answer.headers, await answer.text())


@asynccontextmanager
async def web_client(
    served: Served,
    access: AccessControl | None = None,
    changed: Mapping[str, Method] | None = None,
    holder_of: HolderOf | None = None,
) -> AsyncIterator[WebClient]:
    """Yield a client of a NameNode, of which some calls may be ``changed``."""
    own = served.face.protocol()
    protocol = replace(own, methods={**own.methods, **(changed or {})})
    routes = WebHdfsRoutes(protocol, served.face.scene, access, NAMES, "ns1", holder_of=holder_of)
    endpoint = Endpoint(status=dict, healthy=lambda: None, access=access, routes=routes.routes)
    port = await endpoint.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession() as session:
            yield WebClient(session, port)
    finally:
        await endpoint.stop()
