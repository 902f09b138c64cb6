"""What nnha web answers: pages, JSON, the stream, and to whom."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from ha.cluster.status_json import as_json
from ha.cluster.view import ClusterView
from ha.web.render import OVERVIEW
from tests.ha.cli import schema
from tests.ha.web.hostile import HOSTILE_PAGES, hostile_view
from tests.ha.web.served_site import HOST, Shown, served
from tests.ha.web.situations import DOWN_NN1, HEALTHY, SITUATIONS


@asynccontextmanager
async def asking(shown: Shown) -> AsyncIterator[aiohttp.ClientSession]:
    async with asyncio.timeout(60), served(shown), aiohttp.ClientSession(shown.url) as session:
        yield session


async def text_of(session: aiohttp.ClientSession, path: str, status: int = 200) -> str:
    async with session.get(path) as answer:
        assert answer.status == status
        return await answer.text()


def said_of_daemons(view: ClusterView) -> Iterator[str]:
    """Yield each daemon's state, or why there is none."""
    for row in view.namenodes:
        yield row.error or (
            f"loading {row.progress:.0%}" if row.progress != 1.0 else f"{row.state}"
        )
    for zkfc in view.zkfcs:
        yield zkfc.error or f"{zkfc.health}".replace("_", " ")
    for node in view.journalnodes:
        yield node.error or view.state_of(node).lower()
    for server in view.zookeepers:
        yield server.error or f"{server.mode}"
    if view.pause is not None:
        yield view.pause.reason
    for drain in view.drains.values():
        yield drain.reason


@pytest.mark.parametrize("name", SITUATIONS)
async def test_a_page_has_the_words_of_the_status_document(name: str) -> None:
    view = SITUATIONS[name]
    document = as_json(view)
    assert schema.faults("status", json.loads(json.dumps(document))) == []
    async with asking(Shown(view)) as session:
        page = await text_of(session, "/")
        told = await text_of(session, "/api/v1/status")
    verdict = document["verdict"]
    assert isinstance(verdict, Mapping)
    assert str(verdict["text"]) in page
    assert json.loads(told)["verdict"] == verdict
    for words in said_of_daemons(view):
        assert words in page, words
    assert f"<title>Cluster – {view.nameservice} – nnha</title>" in page  # noqa: RUF001 - a title


async def test_every_answer_forbids_what_is_not_ours() -> None:
    async with asking(Shown(HEALTHY)) as session:
        for path in ("/", "/history", "/failover/12", "/node/nn1", "/web.css", "/web.js", "/nope"):
            async with session.get(path) as answer:
                policy = answer.headers.get("Content-Security-Policy", "")
                if path != "/nope":
                    assert answer.status == 200, path
                    assert policy.startswith("default-src 'none'; script-src 'self'")
                assert "unsafe" not in policy


async def test_what_is_not_there_is_said() -> None:
    async with asking(Shown(HEALTHY)) as session:
        assert "There is no record 99" in await text_of(session, "/failover/99", 404)
        assert "no NameNode of that name" in await text_of(session, "/node/nn9", 404)
        await text_of(session, "/events?page=/elsewhere", 404)


async def test_only_our_own_names_may_be_asked() -> None:
    async with asking(Shown(HEALTHY)) as session:
        for host, status in {
            "evil.example": 421, "127.0.0.1.evil.example": 421, "": 421,
            "localhost:8122": 200, f"{HOST}:1": 200, "[::1]:8122": 200,
        }.items():  # fmt: skip
            async with session.get("/", headers={"Host": host}) as answer:
                assert answer.status == status, host


async def test_a_look_is_made_once_for_all_and_none_while_nobody_watches() -> None:
    shown = Shown(HEALTHY)
    async with asking(shown) as session:
        await asyncio.gather(*(text_of(session, "/") for _ in range(10)))
        assert shown.looks == 1
        streams = [await session.get("/events?page=/") for _ in range(5)]
        for stream in streams:
            await stream.content.readuntil(b"event: look\ndata: ")
        before = shown.looks
        for stream in streams:
            for _ in range(3):
                await stream.content.readuntil(b"event: look\ndata: ")
        assert shown.looks - before <= 2 * 3 + 2, "a look for each viewer"
        for stream in streams:
            stream.close()


async def test_the_stream_sends_the_sections_that_changed_and_only_those() -> None:
    shown = Shown(HEALTHY)
    async with asking(shown) as session, session.get("/events?page=/") as stream:
        first = await _event(stream)
        assert {"verdict", "nodes", "history"} <= first.keys()
        assert await _event(stream) == {}
        shown.view = replace(HEALTHY, namenodes=(DOWN_NN1, HEALTHY.namenodes[1]))
        while not (changed := await _event(stream)):
            pass
        assert "NOT SERVING" in changed["verdict"]
        assert "history" not in changed


async def test_a_page_is_told_first_what_has_changed_since_it_was_made() -> None:
    shown = Shown(HEALTHY)
    async with asking(shown) as session:
        digests = re.findall(r'data-digest="(\w+)"', await text_of(session, "/"))
        assert len(digests) == len(OVERVIEW)
        asked = [("page", "/"), *(("shown", one) for one in digests)]
        async with session.get("/events", params=asked) as stream:
            assert await _event(stream) == {}
        shown.view = replace(HEALTHY, namenodes=(DOWN_NN1, HEALTHY.namenodes[1]))
        async with session.get("/events", params=asked) as stream:
            while not (changed := await _event(stream)):
                pass
            assert "NOT SERVING" in changed["verdict"]
            assert "history" not in changed
        # It does not ask with what the browser received before it lost the stream.
        again = {"Last-Event-ID": "1"}
        async with session.get("/events", params=asked, headers=again) as stream:
            assert (await _event(stream)).keys() == set(OVERVIEW)


async def test_hostile_texts_are_shown_as_texts() -> None:
    async with asking(Shown(hostile_view())) as session:
        for path in HOSTILE_PAGES:
            page = await text_of(session, path)
            assert "<script>alert" not in page
            assert "\u202e" not in page
            assert "x" * 3_000 not in page
            assert "&lt;script&gt;" in page


async def _event(stream: aiohttp.ClientResponse) -> dict[str, str]:
    await stream.content.readuntil(b"event: look\ndata: ")
    found: dict[str, str] = json.loads(await stream.content.readuntil(b"\n\n"))
    return found
