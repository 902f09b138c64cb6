"""``nnha fsck`` and ``nnha explain block|file``: what they show, and how they end."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.pages import PageAnswer, json_answer, text_answer
from ha.service.model import ServiceState
from tests.ha.cli import stand_ins
from tests.ha.cli.nnha_run import nnha
from tests.ha.cli.stand_ins import LOOPBACK, Cluster, running_cluster

REPLICA = {
    "datanode": "d1", "address": "10.0.0.1:9866", "rack": "/r1", "storage": "DS-1", "type": "DISK",
    "state": "live", "counts": True, "why": "counts", "fate": "stays",
}  # fmt: skip
FEW = {
    "path": "/d/\x1bf", "block": "blk_1_2", "bytes": 10, "expected": 3, "live": 1,
    "state": "under-replicated", "action": "waits for a copy, in the queue highest",
    "replicas": [REPLICA],
}  # fmt: skip
READABLE = {"healthy": True, "totals": {"files": 2, "blocks": 2, "under": 1}, "blocks": [FEW]}
LOST = {
    "healthy": False,
    "totals": {"files": 1, "blocks": 1, "missing": 1, "unreadable_files": 1},
    "blocks": [FEW | {"state": "missing", "live": 0, "replicas": []}],
}
LINES = [
    "/d/?f blk_1_2, 10 bytes, 1 of 3 live: under-replicated",
    "  waits for a copy, in the queue highest",
    "  d1 (10.0.0.1:9866) /r1 DISK: counts; stays",
]


class Asked:
    """The page of the active, and what it was asked."""

    def __init__(self) -> None:
        self.answer = json_answer(READABLE)
        self.queries: list[Mapping[str, list[str]]] = []

    def page(self, query: str) -> PageAnswer:
        self.queries.append(parse_qs(query))
        return self.answer


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
async def asked(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    """nn1's page of files, at the port that the configuration names."""
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    found = Asked()
    nn1 = cluster.namenodes["nn1"]
    page = Endpoint(
        status=lambda: stand_ins.page_of(nn1), healthy=lambda: None, pages={"/fsck": found.page}
    )
    port = await page.start(LOOPBACK, 0)
    stand_ins.write_configuration(cluster.conf_dir, {**cluster.ports, "http-nn1": port})
    yield found
    await page.stop()


async def test_files_that_lack_replicas_are_listed_and_all_is_readable(
    cluster: Cluster, asked: Asked
) -> None:
    told = await nnha("fsck", *cluster.words("/d", "--open", "--snapshots"))
    assert (told.code, told.out.splitlines()) == (0, [*LINES, "2 files, 2 blocks: 1 under"])
    assert asked.queries == [
        {
            "form": ["json"], "ugi": ["ann"], "path": ["/d"],
            "openforwrite": ["1"], "includeSnapshots": ["1"],
        }
    ]  # fmt: skip


@pytest.mark.row("B30")
async def test_files_that_cannot_be_read_have_a_code_of_their_own(
    cluster: Cluster, asked: Asked
) -> None:
    asked.answer = json_answer(LOST)
    told = await nnha("fsck", *cluster.words("/d"))
    assert told.code == 8
    assert told.out.splitlines()[-1] == "! 1 files cannot be read  → nnha datanodes"
    told = await nnha("fsck", *cluster.words("/d", "-o", "json"))
    own = {"apiVersion": "nnha/v1", "command": "fsck", "nameservice": "ns1", "asked": "nn1"}
    assert (told.code, told.document) == (8, own | LOST)


async def test_striped_files_are_said_not_to_be_judged(cluster: Cluster, asked: Asked) -> None:
    totals = {"files": 1, "blocks": 1, "striped_files": 4}
    asked.answer = json_answer({"healthy": True, "totals": totals, "blocks": []})
    told = await nnha("fsck", *cluster.words("/"))
    assert told.out.splitlines() == [
        "1 files, 1 blocks: all as they should be",
        "not judged, as they are erasure-coded: 4 files",
    ]


async def test_explain_shows_blocks_and_files(cluster: Cluster, asked: Asked) -> None:
    told = await nnha("explain", *cluster.words("block", "blk_1"))
    assert (told.code, told.out.splitlines()) == (0, LINES)
    assert asked.queries[-1] == {"form": ["json"], "ugi": ["ann"], "blockId": ["blk_1"]}
    asked.answer = json_answer(LOST)
    assert (await nnha("explain", *cluster.words("file", "/d/f"))).code == 0
    assert asked.queries[-1].keys() == {"form", "ugi", "path", "blocks", "openforwrite"}
    asked.answer = json_answer({"healthy": True, "totals": {}, "blocks": []})
    told = await nnha("explain", *cluster.words("file", "/empty"))
    assert told.out == "it has no blocks\n"
    assert (await nnha("explain", *cluster.words("file", "/a", "/b"))).code == 2


ANSWERS = {
    "no such path": (json_answer({"error": "it is not there"}, 404), 3, "NO_SUCH_RECORD"),
    "no such page": (text_answer("404: Not Found", 404), 6, "NO_ANSWER"),
    "not allowed": (json_answer({"error": "Permission denied"}, 403), 7, "ACCESS_DENIED"),
    "not proven": (text_answer("nothing proves who calls", 401), 7, "ACCESS_DENIED"),
    "a standby by now": (json_answer({"error": "ask the active"}, 503), 6, "NO_ANSWER"),
    "no object": (text_answer("[]"), 6, "NO_ANSWER"),
    "no JSON": (text_answer("fine"), 6, "NO_ANSWER"),
    "another page": (json_answer({"healthy": True}), 6, "NO_ANSWER"),
}


@pytest.mark.parametrize(("answer", "exit_code", "code"), ANSWERS.values(), ids=ANSWERS)
async def test_what_is_not_known_is_not_called_healthy(
    cluster: Cluster, asked: Asked, answer: PageAnswer, exit_code: int, code: str
) -> None:
    asked.answer = answer
    for words in (("fsck", "/d"), ("explain", "block", "1")):
        told = await nnha(words[0], *cluster.words(*words[1:], "-o", "json"))
        assert (told.code, told.document["code"]) == (exit_code, code)
        assert told.document["command"] == words[0]


async def test_without_an_active_nothing_is_asked(cluster: Cluster, asked: Asked) -> None:
    cluster.namenodes["nn1"].state = ServiceState.STANDBY
    told = await nnha("fsck", *cluster.words("/d", "-o", "json"))
    assert (told.code, told.document["code"]) == (3, "NO_ACTIVE")
    assert asked.queries == []
