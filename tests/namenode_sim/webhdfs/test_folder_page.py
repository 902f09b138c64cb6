"""The page of folders over a NameNode: its links lead to every name, and rights are kept."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from html import unescape
from urllib.parse import parse_qs, unquote, urlsplit

import aiohttp
import pytest
from yarl import URL

from ha.conf.own_user import HADOOP_USER_NAME
from ha.conf.topology import HostPort
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from ha.rpc.protocol import Call, Method
from ha.web.blocks import ask
from namenode_sim.client_protocol.words.model import Settings
from tests.ha.web.served_site import Shown, served
from tests.ha.web.situations import HEALTHY
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Served, serve
from tests.namenode_sim.webhdfs.web_client import web_client

NAMES = (
    "a b", " ", "part#1?&50%", "<script>alert(1)<", "\"'`", "%2F", "%41", "%", "..;", "...", "+",
    "a\nb", "a=b&startAfter=z", "\u202egpj", "\u65e5\u672c" * 40, "\\", "{{7*7}}", "~", "\x7f\x01",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pages:
    session: aiohttp.ClientSession
    url: str

    async def get(self, target: str) -> tuple[int, str]:
        async with self.session.get(URL(self.url + target, encoded=True)) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def pages_of(
    namenode: Served, changed: dict[str, Method] | None = None
) -> AsyncIterator[Pages]:
    async with asyncio.timeout(120), web_client(namenode, changed=changed) as client:
        shown = Shown(HEALTHY)
        shown.ask = partial(ask, {"nn1": HostPort("127.0.0.1", client.port)})  # type: ignore[method-assign]
        async with served(shown):
            yield Pages(client.session, shown.url)


@pytest.mark.parametrize("most", [1, 1000])
async def test_links_lead_to_every_name(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a browser follows them: what is not escaped or coded right is missed or asked for."""
    monkeypatch.setenv(HADOOP_USER_NAME, SUPERUSER)
    namenode = serve(settings=Settings(listing_limit=most))
    for name in NAMES:
        await namenode.mkdirs(f"/d/{name}")
        await namenode.touch(f"/d/{name}/{name}")
    waiting, seen, files, folders = ["/files"], set[str](), set[str](), set[str]()
    async with pages_of(namenode) as pages:
        while waiting:
            target = waiting.pop()
            seen.add(target)
            status, page = await pages.get(target)
            assert status == 200, target
            assert "<script>alert" not in page
            at = urlsplit(target)
            folders.add(unquote(at.path.removeprefix("/files")))
            for link in map(unescape, re.findall('href="([^"]*)"', page.partition("<main")[2])):
                if link.startswith("/file?"):
                    files.update(parse_qs(urlsplit(link).query)["path"])
                link = at.path + link if link.startswith("?") else link
                if link.startswith("/files") and link not in seen:
                    waiting.append(link)
    assert files == {f"/d/{name}/{name}" for name in NAMES}
    assert folders - {"", "/"} == {"/d", *(f"/d/{name}" for name in NAMES)}


async def test_a_folder_is_shown_with_the_rights_of_the_one_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    namenode = serve()
    await namenode.mkdirs("/closed", mode=0o700)
    async with pages_of(namenode) as pages:
        monkeypatch.setenv(HADOOP_USER_NAME, "alice")
        status, page = await pages.get("/files/closed")
        assert (status, "Permission denied: user=alice" in page) == (403, True)
        assert (await pages.get("/files/none"))[0] == 404
        assert (await pages.get("/files/%00"))[0] == 503
        assert "asked as alice" in (await pages.get("/files"))[1]
        monkeypatch.setenv(HADOOP_USER_NAME, SUPERUSER)
        assert (await pages.get("/files/closed"))[0] == 200


async def test_one_that_is_no_longer_active_is_not_a_refusal() -> None:
    async def standby(_: Call, __: object) -> object:
        raise RemoteFault(STANDBY_EXCEPTION, "not in state standby")

    own = serve().face.protocol().methods["getListing"]
    changed = {"getListing": Method(own.request, standby)}  # type: ignore[arg-type]
    async with pages_of(serve(), changed) as pages:
        status, page = await pages.get("/files/")
        assert (status, "not in state standby" in page) == (503, True)
