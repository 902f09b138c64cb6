"""Pages of blocks and files: what is asked, what is shown, and what an odd answer does."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from yarl import URL

from ha.conf.topology import HostPort
from ha.security.caller import Role
from ha.security.rights import FILES, HTTP, RIGHTS
from ha.web.blocks import ask, blocks_of
from tests.ha.web.hostile import HOSTILE
from tests.ha.web.recorded import LACKING
from tests.ha.web.served_site import Shown, served
from tests.ha.web.situations import HEALTHY, SITUATIONS

FILE = {"path": "/user/a b", "blocks": "1", "openforwrite": "1"}
ASKED = {
    "/blocks": {"needed": "1"},
    "/block/blk_1_2": {"blockId": "blk_1_2"},
    "/file?path=%2Fuser%2Fa+b": FILE,
    "/file": {**FILE, "path": "/"},
}


async def page_of(shown: Shown, path: str) -> tuple[int, str]:
    async with (
        asyncio.timeout(60),
        served(shown),
        aiohttp.ClientSession() as session,
        session.get(URL(shown.url + path, encoded=True)) as answer,
    ):
        return answer.status, await answer.text()


@pytest.mark.parametrize("path", ASKED)
async def test_each_page_asks_for_its_blocks_and_shows_them(path: str) -> None:
    shown = Shown(HEALTHY, blocks=(200, LACKING))
    status, page = await page_of(shown, path)
    assert status == 200
    assert shown.asked == [("/fsck", {"form": "json", **ASKED[path]})]
    assert 'href="/block/blk_1073741901_1077"' in page
    assert 'href="/file?path=/user/a%20b/part%231%3F"' in page
    assert "1 of 3 replicas are live; 134,217,728 bytes. it is being copied" in page
    assert "it counts: it is live" in page
    assert "1,205 more are not listed" in page


ANSWERS: dict[str, tuple[tuple[int, Mapping[str, Any]], int, str]] = {
    "no such block": ((404, {"error": "Block 7 does not exist"}), 404, "Block 7 does not exist"),
    "not allowed": ((403, {"error": "Permission denied"}), 403, "Permission denied"),
    "no answer": ((0, {"error": "no answer in 10 s"}), 503, "no answer in 10 s"),
    "a standby": ((503, {"error": "ask the active"}), 503, "ask the active"),
    "an odd status": ((204, {}), 503, "The NameNode answered with HTTP 204."),
    "no blocks": ((200, {"blocks": []}), 200, "There are none."),
    "odd totals": ((200, {"blocks": [], "totals": [7]}), 200, "There are none."),
    "odd blocks": ((200, {"blocks": [7, {}, {"block": "b"}, None]}), 200, "There are none."),
    "odd replicas": (
        (200, {"blocks": [{**LACKING["blocks"][0], "replicas": [7, {"rack": 7}]}]}),
        200,
        "1 of 3 replicas are live",
    ),
    "no list": ((200, {"blocks": "many"}), 200, "There are none."),
    "hostile": ((404, {"error": HOSTILE}), 404, "&lt;script&gt;"),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_without_blocks_is_said(name: str) -> None:
    given, status, said = ANSWERS[name]
    found, page = await page_of(Shown(HEALTHY, blocks=given), "/block/7")
    assert (found, said in page) == (status, True)
    assert "<script>alert" not in page


async def test_hostile_names_are_texts() -> None:
    (block,) = LACKING["blocks"]
    (replica,) = block["replicas"]
    replica = dict.fromkeys(replica, HOSTILE)
    texts = {name: HOSTILE for name, value in block.items() if isinstance(value, str)}
    document = {"blocks": [{**block, **texts, "replicas": [replica]}]}
    status, page = await page_of(Shown(HEALTHY, blocks=(200, document)), "/blocks")
    assert status == 200
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page


def test_a_long_path_is_not_cut_where_it_is_a_link() -> None:
    (block,) = LACKING["blocks"]
    (found,) = blocks_of({"blocks": [{**block, "path": "/" + "d" * 5000}]})
    assert len(found["path"]) == 5001
    assert blocks_of({"blocks": [{**block, "path": 7}]}) == []


async def test_without_an_active_of_nnha_no_namenode_is_asked() -> None:
    nodes = {"nn1": HostPort("nowhere.invalid", 1)}
    hadoops = replace(HEALTHY.namenodes[0], software="Hadoop 3.5.0")
    for view in (SITUATIONS["nobody-active"], replace(HEALTHY, namenodes=(hadoops,))):
        status, document = await ask(nodes, view, "/fsck", {})
        assert status == 503
        assert "no NameNode of nnha" in document["error"]


def test_names_of_files_are_for_admins_and_operators_alone() -> None:
    for page in ("GET /blocks", "GET /block/{block}", "GET /file", f"GET {FILES}"):
        right = RIGHTS[HTTP][page]
        assert right.roles == {Role.ADMIN, Role.OPERATOR}
    assert Role.ZKFC in RIGHTS[HTTP]["GET /datanodes"].roles
