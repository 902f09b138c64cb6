"""Bootstrapping a standby: Hadoop's exit codes, and an old directory that stays until it may go."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from ha.conf.topology import HostPort
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.process import ExitWith
from hadoop.errors import InUse
from journal.model import TxId
from namenode_sim.startup.bootstrap import bootstrap_standby
from namenode_sim.startup.questions import Consent
from namenode_sim.storage.storage import open_name_dirs
from namenode_sim.transfer.image_fetch import FetchFailed, fetch_image
from namenode_sim.transfer.image_server import ImageServer, TransferLimits
from namenode_sim.transfer.namenode_protocol import Facts
from tests import awaits
from tests.namenode_sim.image.image_world import rich_namespace
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.startup import startup_world
from tests.namenode_sim.startup.startup_world import peer
from tests.worlds.files import frames, info

IMAGE = rich_namespace()
BEHIND = len(startup_world.OPEN)


def saved(directory: Path) -> Path:
    startup_world.in_use(directory)
    storage = open_name_dirs([directory])
    storage.save(IMAGE)
    storage.close()
    return directory


def facts(last: int | None = None, **other: object) -> Facts:
    known = Facts(info(), IMAGE.last_applied, TxId(0), True, False)
    reached = IMAGE.last_applied + BEHIND if last is None else last
    return replace(known, last_txid=TxId(reached), **other)  # type: ignore[arg-type]


async def write_journal(at: startup_world.World, *, close: bool = True) -> None:
    """Write the edits behind the image to the journal."""
    writer = at.writer(info())
    await writer.format()
    await writer.become_writer()
    first = TxId(IMAGE.last_applied + 1)
    await writer.start_segment(first)
    await writer.write(first, BEHIND, frames(first, startup_world.OPEN))
    if close:
        await writer.finalize_segment(TxId(first + BEHIND - 1))
    await writer.settle(timeout_seconds=30)
    await writer.close()


async def bootstrap(
    at: startup_world.World,
    overrides: list[str],
    consent: Consent = startup_world.NEVER_ASK,
    *,
    check: bool = True,
) -> None:
    conf, place = at.conf(*overrides), at.place(*overrides)
    await bootstrap_standby(conf, place, consent, check_shared_edits=check)


def assert_copied(directory: Path) -> None:
    storage = open_name_dirs([directory])
    assert storage.namespace_info == info()
    assert storage.seen_txid == IMAGE.last_applied
    assert differences(storage.load(), IMAGE) == []
    storage.close()
    held = sorted(path.name for path in (directory / "current").iterdir())
    image = f"fsimage_{IMAGE.last_applied:019d}"
    assert held == ["VERSION", image, f"{image}.md5", "seen_txid"]
    assert sorted(path.name for path in directory.iterdir()) == ["current"]


@pytest.mark.row(
    "8.7 BootstrapStandbyWithQJM",
    because="what of its five tests concerns the journal: the ids, and whether it has the edits",
)
@pytest.mark.parametrize("closed", [True, False])
async def test_ids_and_image_are_copied_into_every_directory(tmp_path: Path, closed: bool) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    async with startup_world.world(tmp_path, **{"dfs.namenode.name.dir": f"{a},{b}"}) as at:
        await write_journal(at, close=closed)
        async with peer(facts(), saved(tmp_path / "peer")) as overrides:
            await bootstrap(at, overrides)
    assert_copied(a)
    assert_copied(b)


async def test_nobody_answers_is_2(at: startup_world.World, tmp_path: Path) -> None:
    with pytest.raises(ExitWith, match="no other NameNode answers") as refusal:
        await bootstrap(at, [])
    assert refusal.value.code == 2
    assert not (tmp_path / "name").exists()


VERSIONS = {
    "a newer layout": facts(namespace=info(layout=-99)),
    "an upgrade that is not finalized": facts(upgrade_finalized=False),
}


@pytest.mark.parametrize("case", VERSIONS)
async def test_another_version_is_3(at: startup_world.World, tmp_path: Path, case: str) -> None:
    async with peer(VERSIONS[case], tmp_path) as overrides:
        with pytest.raises(ExitWith) as refusal:
            await bootstrap(at, overrides)
    assert refusal.value.code == 3
    assert not (tmp_path / "name").exists()


async def test_a_file_system_that_is_there_is_5_unless_it_is_forced(
    at: startup_world.World, tmp_path: Path
) -> None:
    await write_journal(at)
    startup_world.in_use(at.name_dir)
    before = startup_world.snapshot(at.name_dir)
    async with peer(facts(), saved(tmp_path / "peer")) as overrides:
        with pytest.raises(ExitWith, match="holds a file system already") as refusal:
            await bootstrap(at, overrides)
        assert refusal.value.code == 5
        assert startup_world.snapshot(at.name_dir) == before
        await bootstrap(at, overrides, startup_world.FORCE)
    assert_copied(tmp_path / "name")


@pytest.mark.row("8.7 BootstrapStandbyWithQJM")
async def test_edits_that_the_journal_lacks_are_6_unless_not_asked_for(
    at: startup_world.World, tmp_path: Path
) -> None:
    await write_journal(at)
    too_far = facts(IMAGE.last_applied + BEHIND + 1)
    async with peer(too_far, saved(tmp_path / "peer")) as overrides:
        with pytest.raises(ExitWith, match="does not serve the edits 24 to 27") as refusal:
            await bootstrap(at, overrides)
        assert refusal.value.code == 6
        assert not (tmp_path / "name" / "current").exists()
        await bootstrap(at, overrides, check=False)
    assert_copied(tmp_path / "name")


async def test_an_image_that_cannot_be_had_changes_nothing(
    at: startup_world.World, tmp_path: Path
) -> None:
    startup_world.in_use(at.name_dir)
    before = startup_world.snapshot(at.name_dir)
    damaged = saved(tmp_path / "peer")
    image = damaged / "current" / f"fsimage_{IMAGE.last_applied:019d}"
    image.write_bytes(image.read_bytes()[:-1] + b"x")
    async with peer(facts(), damaged) as overrides:
        with pytest.raises(ExitWith, match="it came damaged") as refusal:
            await bootstrap(at, overrides, startup_world.FORCE, check=False)
    assert refusal.value.code == 4
    assert startup_world.snapshot(at.name_dir) == before
    assert [path.name for path in at.name_dir.iterdir()] == ["current"]


async def test_a_directory_in_use_is_refused(at: startup_world.World, tmp_path: Path) -> None:
    async with peer(facts(), saved(tmp_path / "peer")) as overrides:
        startup_world.in_use(at.name_dir)
        storage = open_name_dirs([at.name_dir])
        with pytest.raises(InUse):
            await bootstrap(at, overrides, startup_world.FORCE, check=False)
        storage.close()


# ---- /imagetransfer by itself ----


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[HostPort]:
    http = Endpoint(status=dict, healthy=lambda: None, routes=lambda: routes)
    port = await http.start("127.0.0.1", 0)
    try:
        yield HostPort("127.0.0.1", port)
    finally:
        await http.stop()


def image_routes(directory: Path, limits: TransferLimits | None = None) -> list[web.RouteDef]:
    return list(ImageServer(info(), lambda: [directory], limits).routes())


QUERIES = {
    "by number": (f"getimage=1&txid={IMAGE.last_applied}", 200),
    "the latest": ("getimage=1&txid=latest", 200),
    "with the right storage": (f"getimage=1&txid=latest&storageInfo={info().storage_info()}", 200),
    "of another cluster": ("getimage=1&txid=latest&storageInfo=-65:7:0:CID-other", 403),
    "one that is not there": ("getimage=1&txid=99", 410),
    "no number": ("getimage=1&txid=..%2F..%2FVERSION", 410),
    "a kind that is not there": ("getimage=1&txid=latest&imageFile=IMAGE_ROLLBACK", 410),
    "an unknown kind": ("getimage=1&txid=latest&imageFile=EDITS", 410),
    "edits": ("getedit=1&startTxId=1&endTxId=2", 410),
    "nothing": ("", 410),
}


@pytest.mark.parametrize("case", QUERIES)
async def test_imagetransfer_answers_as_hadoop_does(tmp_path: Path, case: str) -> None:
    query, status = QUERIES[case]
    directory = saved(tmp_path)
    async with (
        serving(*image_routes(directory)) as at,
        ClientSession() as session,
        session.get(f"http://{at}/imagetransfer?{query}") as answer,
    ):
        assert answer.status == status
        if status != 200:
            return
        body, headers = await answer.read(), answer.headers
    name = f"fsimage_{IMAGE.last_applied:019d}"
    assert body == (directory / "current" / name).read_bytes()
    assert headers["Content-Length"] == str(len(body))
    assert headers["X-MD5-Digest"] == hashlib.md5(body, usedforsecurity=False).hexdigest()
    assert headers["X-Image-Edits-Name"] == name
    assert headers["Content-Disposition"] == f"attachment; filename={name}"


async def test_the_transfer_is_throttled(tmp_path: Path) -> None:
    directory = saved(tmp_path)
    size = (directory / "current" / f"fsimage_{IMAGE.last_applied:019d}").stat().st_size
    limits = TransferLimits(bytes_per_second=size * 5)
    async with serving(*image_routes(directory, limits)) as at, ClientSession() as session:
        began = time.monotonic()
        async with session.get(f"http://{at}/imagetransfer?getimage=1&txid=latest") as answer:
            await answer.read()
        assert time.monotonic() - began >= 0.11


LIES = {
    "no digest": ({}, b"abc", "announced 3 bytes and the digest ''"),
    "another digest": ({"X-MD5-Digest": "0" * 32}, b"abc", "it came damaged"),
    "another image": ({"X-Image-Edits-Name": "fsimage_1"}, b"abc", "it sent 'fsimage_1'"),
}


@pytest.mark.parametrize("case", LIES)
async def test_a_lying_source_leaves_nothing_behind(tmp_path: Path, case: str) -> None:
    headers, body, message = LIES[case]

    async def lie(_request: web.Request) -> web.Response:
        return web.Response(body=body, headers=headers)

    async with serving(web.get("/imagetransfer", lie)) as at:
        with pytest.raises(FetchFailed, match=message):
            await fetch_image(at, tmp_path, TxId(5), info(), stall_seconds=5)
    assert list(tmp_path.iterdir()) == []


async def test_a_fetch_that_is_cut_short_leaves_nothing_or_the_whole_image(tmp_path: Path) -> None:
    image = saved(tmp_path / "source") / "current" / f"fsimage_{IMAGE.last_applied:019d}"
    body = image.read_bytes()
    digest = {"X-MD5-Digest": hashlib.md5(body, usedforsecurity=False).hexdigest()}

    async def serve(_request: web.Request) -> web.Response:
        return web.Response(body=body, headers=digest)

    lives = 0

    def folder() -> Path:
        return tmp_path / f"life {lives}"

    async def life() -> None:
        nonlocal lives
        lives += 1
        folder().mkdir()
        await fetch_image(at, folder(), IMAGE.last_applied, info(), stall_seconds=30)

    async def after(number: int) -> None:
        left = sorted(path.name for path in folder().iterdir())
        assert left in ([], [image.name, f"{image.name}.md5"]), number
        assert awaits.files_open_below(folder()) == [], number

    async with serving(web.get("/imagetransfer", serve)) as at:
        assert await awaits.cut_at_each_await(life, after) > 4
    assert (folder() / image.name).read_bytes() == body


async def test_a_source_that_falls_silent_is_given_up(tmp_path: Path) -> None:
    given_up = asyncio.Event()

    async def stall(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"X-MD5-Digest": "0" * 32})
        response.content_length = 100
        await response.prepare(request)
        await response.write(b"x")
        await given_up.wait()
        return response

    async with serving(web.get("/imagetransfer", stall)) as at:
        with pytest.raises(FetchFailed):
            async with asyncio.timeout(30):
                await fetch_image(at, tmp_path, TxId(5), info(), stall_seconds=0.2)
        given_up.set()
    assert list(tmp_path.iterdir()) == []
