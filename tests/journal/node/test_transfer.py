"""Segments over HTTP: what is served, what is fetched for a recovery, and what is rejected."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import grpc
import pytest
from aiohttp import web

from journal.errors import Unavailable
from journal.messages import segment_message
from journal.model import LAYOUT_VERSION
from journal.node.faces.transfer import DAMAGE_HEADER
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.repair.segment_fetch import fetch_finalized
from journal.proto import journal_pb2 as pb
from tests.journal.core import requests_of
from tests.journal.core.requests_of import Writer, digest, segment, segment_bytes
from tests.journal.node import process
from tests.journal.node.process import JID, Refused, node_and_client, segment_url, until

R = pb.Refusal
IN_PROGRESS = "edits_inprogress_0000000000000000004"


async def get(url: str) -> tuple[int, bytes, int | None]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.read(), response.content_length


@asynccontextmanager
async def writing_node(
    folder: Path,
) -> AsyncIterator[tuple[JournalNodeDaemon, process.NodeClient, Writer]]:
    async with node_and_client(folder) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.written(writer, 1, 3)
        await client.finalize(writer, 1, 3)
        await client.written(writer, 4, 6)
        yield daemon, client, writer


async def test_a_finalized_segment_is_served_and_nothing_else(tmp_path: Path) -> None:
    async with writing_node(tmp_path) as (daemon, _, _):
        base = f"http://127.0.0.1:{daemon.http_port}/getJournal?jid={JID}"
        body = segment_bytes(1, 3)
        assert await get(segment_url(daemon, 1)) == (200, body, len(body))
        ours = f"&storageInfo={requests_of.NAMESPACE.storage_info()}"
        for query, status in {
            "&segmentTxId=12345" + ours: 404,
            "&segmentTxId=2" + ours: 404,
            "&segmentTxId=x" + ours: 400,
            "&segmentTxId=-1" + ours: 400,
            ours: 400,
            "&segmentTxId=1": 403,
            "&segmentTxId=1&storageInfo=-65:9:0:mycluster": 403,
            "&segmentTxId=1&storageInfo=-65:12345:0:other": 403,
            "&segmentTxId=1&storageInfo=x": 403,
            "&segmentTxId=1&storageInfo=-7:12345:99:mycluster": 200,
            "&segmentTxId=4&inProgressOk=false" + ours: 404,
            "&segmentTxId=4" + ours: 200,
        }.items():
            assert (await get(base + query))[0] == status, query
        assert (await get(base.replace(JID, "nobody")))[0] == 404
        assert (await get(base.replace(JID, "..%2Fx")))[0] == 400


async def test_an_open_segment_is_served_up_to_its_durable_end(tmp_path: Path) -> None:
    async with writing_node(tmp_path) as (daemon, client, writer):
        with (tmp_path / JID / "current" / IN_PROGRESS).open("ab") as file:
            file.write(b"\xff" * 512)  # as if preallocated, or half of a batch
        status, body, length = await get(segment_url(daemon, 4))
        assert (status, body, length) == (200, segment_bytes(4, 6), len(body))
        await client.finalize(writer, 4, 6)
        assert (await get(segment_url(daemon, 4)))[1] == segment_bytes(4, 6)


@pytest.mark.parametrize("told_by_checksum", [True, False])
async def test_a_damaged_segment_is_named_as_such_and_its_sound_part_must_be_asked_for(
    tmp_path: Path, told_by_checksum: bool
) -> None:
    """Serve nothing where only the digest is wrong: any edit may be the wrong one."""
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.written(writer, 1, 3)
        await client.finalize(writer, 1, 3)
        path = tmp_path / JID / "current" / "edits_0000000000000000001-0000000000000000003"
        data = bytearray(segment_bytes(1, 3, writer=1 if told_by_checksum else 2))
        data[-10] ^= told_by_checksum
        path.write_bytes(data)
        url = segment_url(daemon, 1)
        with contextlib.suppress(aiohttp.ClientError):
            await get(url)  # finds it, and breaks off
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as refused:
                assert (refused.status, refused.reason) == (503, "Damaged")
                assert refused.headers[DAMAGE_HEADER]
            async with session.get(url + "&damagedOk=true") as asked:
                body = await asked.read()
                assert asked.headers[DAMAGE_HEADER]
                assert asked.status == (200 if told_by_checksum else 503)
                if told_by_checksum:
                    assert body == segment_bytes(1, 2)


async def test_a_closed_segment_that_is_not_finalized_is_checked_as_it_is_sent(
    tmp_path: Path,
) -> None:
    """Check it here: nothing else reads it, and a recovery would choose it again and again."""
    async with writing_node(tmp_path) as (daemon, client, _):
        await client.new_epoch(2)
        await client.prepare(Writer(2), 4)
        path = tmp_path / JID / "current" / IN_PROGRESS
        assert await get(segment_url(daemon, 4)) == (200, segment_bytes(4, 6), path.stat().st_size)
        data = bytearray(segment_bytes(4, 6))
        data[20] ^= 1
        path.write_bytes(data)
        with contextlib.suppress(aiohttp.ClientError):
            await get(segment_url(daemon, 4))
        assert (await get(segment_url(daemon, 4)))[0] == 503
        assert list(daemon.node.owner_of(JID).state.damaged) == [4]


async def test_a_reader_never_sees_a_gap_while_segments_are_finalized(tmp_path: Path) -> None:
    async with writing_node(tmp_path) as (daemon, client, writer):

        async def read_on() -> int:
            seen = 0
            while not finished.is_set():
                status, body, _ = await get(segment_url(daemon, 4))
                assert status == 200
                assert body == segment_bytes(4, 6)
                seen += 1
            return seen

        finished = asyncio.Event()
        reader = asyncio.create_task(read_on())
        await client.finalize(writer, 4, 6)
        for first in range(7, 60, 3):
            await client.written(writer, first, first + 2)
            await client.finalize(writer, first, first + 2)
        finished.set()
        assert await reader > 0


async def test_status_health_and_metrics_tell_of_the_journal(tmp_path: Path) -> None:
    async with writing_node(tmp_path) as (daemon, _, _):
        base = f"http://127.0.0.1:{daemon.http_port}"
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{base}/status") as response:
                status = await response.json()
            async with session.get(f"{base}/health") as response:
                assert response.status == 200
            async with session.get(f"{base}/metrics") as response:
                text = await response.text()
        journal = status["journals"][JID]
        assert status["role"] == "journalnode"
        assert (journal["formatted"], journal["promised_epoch"], journal["last_txid"]) == (
            True,
            1,
            6,
        )
        assert (journal["open_segment"], journal["failed_because"]) == (4, None)
        assert journal["disk_free_bytes"] > 0
        for line in (f'nnha_jn_last_txid{{journal="{JID}"}} 6.0', "nnha_jn_fsync_duration_seconds"):
            assert line in text


@asynccontextmanager
async def source(body: bytes, *, wait: asyncio.Event | None = None) -> AsyncIterator[str]:
    """Run a stranger that serves some bytes, half of them only after ``wait``."""
    asked = asyncio.Event()

    async def serve(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body[: len(body) // 2])
        asked.set()
        if wait is not None:
            await wait.wait()
        await response.write(body[len(body) // 2 :])
        return response

    application = web.Application()
    application.add_routes([web.get("/getJournal", serve)])
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/getJournal?jid=x&segmentTxId=4"
    finally:
        await runner.cleanup()


async def recovering(client: process.NodeClient) -> Writer:
    """Make a second writer that has prepared segment 4, where 4-6 of the first one lie."""
    await client.new_epoch(2)
    writer = Writer(2)
    prepared = await client.prepare(writer, 4)
    assert prepared.segment.digest == digest(4, 6)
    return writer


BAD_SOURCES = {
    "other edits of the same length": segment_bytes(4, 6, 9),
    "too short": segment_bytes(4, 5, 7),
    "a hole": segment_bytes(4, 4, 7) + requests_of.records(6, 6, 7),
    "a flipped bit": segment_bytes(4, 6, 7)[:-3] + b"\0" + segment_bytes(4, 6, 7)[-2:],
    "another segment": segment_bytes(5, 6, 7),
    "no header": requests_of.records(4, 6, 7),
    "nothing": b"",
}


@pytest.mark.row("X11")
@pytest.mark.parametrize("body", BAD_SOURCES.values(), ids=list(BAD_SOURCES))
async def test_x11_a_source_that_lies_changes_nothing_and_the_next_is_asked(
    tmp_path: Path, body: bytes
) -> None:
    async with writing_node(tmp_path) as (daemon, client, _), source(body) as bad:
        writer = await recovering(client)
        with pytest.raises(Refused) as caught:
            await client.accept(writer, segment(4, 6, 7), [bad, "http://127.0.0.1:1/getJournal"])
        assert caught.value.code is grpc.StatusCode.UNAVAILABLE
        assert caught.value.refusal is not None
        assert caught.value.refusal.kind == R.UNAVAILABLE
        prepared = await client.prepare(writer, 4)
        assert prepared.segment.digest == digest(4, 6)
        assert not prepared.HasField("accepted_in_epoch")
        current = tmp_path / JID / "current"
        assert [path.name for path in current.glob("*epoch=*")] == []
        async with source(segment_bytes(4, 6, 7) + b"\xff" * 100) as good:
            await client.accept(writer, segment(4, 6, 7), [bad, good])
        prepared = await client.prepare(writer, 4)
        assert (prepared.segment.digest, prepared.accepted_in_epoch) == (digest(4, 6, 7), 2)
        assert (current / IN_PROGRESS).read_bytes() == segment_bytes(4, 6, 7)
        await client.finalize(writer, 4, 6, 7)
        assert (await get(segment_url(daemon, 4)))[1] == segment_bytes(4, 6, 7)


async def test_a_catch_up_takes_no_other_edits(tmp_path: Path) -> None:
    """Offer the open segment up to 6 from a node with other edits of the same numbers."""
    async with node_and_client(tmp_path) as (_, client), source(segment_bytes(4, 6, 9)) as bad:
        await client.format()
        await client.new_epoch(2)
        writer = Writer(2)

        def catch_up(url: str) -> pb.CatchUpRequest:
            return pb.CatchUpRequest(
                info=client.info(writer),
                segment=segment_message(segment(4, 6, 2)),
                layout_version=LAYOUT_VERSION,
                source_urls=[url],
            )

        with pytest.raises(Refused) as caught:
            await client.call("CatchUp", catch_up(bad))
        assert caught.value.code is grpc.StatusCode.UNAVAILABLE
        assert not list((tmp_path / JID / "current").glob("edits_*"))
        async with source(segment_bytes(4, 6, 2)) as good:
            assert (await client.call("CatchUp", catch_up(good))).next_txid == 7
        assert (tmp_path / JID / "current" / IN_PROGRESS).read_bytes() == segment_bytes(4, 6, 2)


async def test_a_peer_that_lies_is_not_believed_by_the_syncer(tmp_path: Path) -> None:
    async with writing_node(tmp_path) as (daemon, _, _), source(segment_bytes(7, 9, 9)) as bad:
        owner = daemon.node.find(JID)
        assert owner is not None
        wanted, settings = segment(7, 9, 7, finalized=True), daemon.node.settings
        with pytest.raises(Unavailable, match="no peer gave"):
            await fetch_finalized(owner, wanted, [bad], settings)
        assert not list((tmp_path / JID).glob("*/edits_*7*"))
        async with source(segment_bytes(7, 9, 7)) as good:
            await fetch_finalized(owner, wanted, [bad, good], settings)
        assert len(list((tmp_path / JID).glob("*/edits_*7*"))) == 1


async def test_a_node_takes_a_segment_from_another_node(tmp_path: Path) -> None:
    async with (
        writing_node(tmp_path / "a") as (donor, _, _),
        node_and_client(tmp_path / "b") as (_, client),
    ):
        await client.format()
        await client.new_epoch(2)
        writer = Writer(2)
        await client.accept(writer, segment(4, 6), [segment_url(donor, 4)])
        await client.finalize(writer, 4, 6, 1)
        await client.accept(writer, segment(1, 3), [segment_url(donor, 1)])
        await client.finalize(writer, 1, 3, 1)
        assert (await client.status()).last_written_txid == 6


async def test_a_newer_writer_does_not_wait_for_a_download(tmp_path: Path) -> None:
    goes_on = asyncio.Event()
    async with (
        writing_node(tmp_path) as (_, client, _),
        source(segment_bytes(4, 6, 7), wait=goes_on) as slow,
    ):
        writer = await recovering(client)
        accepting = asyncio.create_task(client.accept(writer, segment(4, 6, 7), [slow]))
        current = tmp_path / JID / "current"
        await until(lambda: list(current.glob("*epoch=2")), "the download begins")
        await client.new_epoch(3)
        goes_on.set()
        with pytest.raises(Refused) as caught:
            await accepting
        assert caught.value.refusal is not None
        assert (caught.value.refusal.kind, caught.value.refusal.promised_epoch) == (R.FENCED, 3)
        prepared = await client.prepare(Writer(3), 4)
        assert prepared.segment.digest == digest(4, 6)
        assert not prepared.HasField("accepted_in_epoch")
        assert not list(current.glob("*epoch=*"))


async def test_a_caller_that_leaves_does_not_stop_an_acceptance(tmp_path: Path) -> None:
    goes_on = asyncio.Event()
    async with (
        writing_node(tmp_path) as (daemon, client, _),
        source(segment_bytes(4, 6, 7), wait=goes_on) as slow,
    ):
        writer = await recovering(client)
        owner = daemon.node.find(JID)
        assert owner is not None
        accepting = asyncio.create_task(client.accept(writer, segment(4, 6, 7), [slow]))
        current = tmp_path / JID / "current"
        await until(lambda: list(current.glob("*epoch=2")), "the download begins")
        with pytest.raises(Refused, match="being fetched already"):
            await client.accept(writer, segment(4, 6, 7), [slow])
        accepting.cancel()
        await asyncio.gather(accepting, return_exceptions=True)
        goes_on.set()
        await until(lambda: owner.state.decisions, "the acceptance is finished")
        assert (current / IN_PROGRESS).read_bytes() == segment_bytes(4, 6, 7)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://127.0.0.1:1/other", "nonsense", ""])
async def test_only_addresses_of_segments_are_fetched(tmp_path: Path, url: str) -> None:
    async with writing_node(tmp_path) as (_, client, _):
        writer = await recovering(client)
        with pytest.raises(Refused, match="not the address of a segment"):
            await client.accept(writer, segment(4, 6, 7), [url])
