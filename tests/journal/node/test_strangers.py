"""What a stranger may not have a node do: destroy, make journals, connect elsewhere, read."""

import asyncio
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import grpc.aio
import pytest

from journal.messages import namespace_message
from journal.proto import journal_pb2 as pb
from journal.proto import journal_pb2_grpc
from tests.journal.core.requests_of import NAMESPACE, Writer, segment
from tests.journal.node.faces.java_writer import HOST, JID, connected, refused
from tests.journal.node.process import NodeClient, Refused, node_and_client, running

BAD = pb.Refusal.BAD_REQUEST


async def kind_of_refusal(work: object) -> int | None:
    with pytest.raises(Refused) as no:
        await work  # type: ignore[misc]
    return None if no.value.refusal is None else no.value.refusal.kind


FORCED = {
    "without the promise that was seen": {"seen_namespace_id": NAMESPACE.namespace_id},
    "without the file system": {"seen_promised_epoch": 1},
    "with another file system": {"seen_promised_epoch": 1, "seen_namespace_id": 9},
}


@pytest.mark.parametrize("said", FORCED.values(), ids=list(FORCED))
async def test_a_forced_format_says_what_it_destroys(said: dict[str, int], tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(Writer(1), 1, 3)
        request = pb.FormatRequest(
            journal_id=JID, namespace_info=namespace_message(NAMESPACE), force=True, founding=True
        )
        for name, value in said.items():
            setattr(request, name, value)
        assert await kind_of_refusal(client.call("Format", request)) == BAD
        status = await client.status()
        assert (status.last_promised_epoch, status.last_written_txid) == (1, 3)


async def test_java_formats_by_force_its_own_journal_only(tmp_path: Path) -> None:
    async with running(tmp_path, hadoop_host=HOST) as daemon, connected(daemon) as java:
        await java.format()
        await java.new_epoch(1)
        await java.format(force=True)
        assert (await java.state()).lastPromisedEpoch == 0


async def test_no_journal_is_made_that_the_configuration_does_not_name(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, journal_ids=frozenset({JID})) as (daemon, client):
        for number in range(70):
            stranger = NodeClient(daemon.rpc_port, f"junk{number}")
            try:
                assert await kind_of_refusal(stranger.format()) == BAD
            finally:
                await stranger.close()
        await client.format()
        assert sorted(path.name for path in tmp_path.iterdir()) == [JID]


async def test_a_node_without_a_configuration_makes_a_few(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, max_unnamed_journals=2) as (daemon, client):
        await client.format()
        made = []
        for name in ("a", "b"):
            other = NodeClient(daemon.rpc_port, name)
            with suppress(Refused):
                await other.format()
                made.append(name)
            await other.close()
        assert made == ["a"]


async def test_segments_come_from_peers_only(tmp_path: Path) -> None:
    """Connect to no other address, over either face."""
    met: list[str] = []

    async def listen(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append("somebody")
        writer.close()

    listener = await asyncio.start_server(listen, HOST, 0)
    port = listener.sockets[0].getsockname()[1]
    query = urlencode({"jid": JID, "segmentTxId": 4})
    elsewhere = [
        f"http://{HOST}:{port}/getJournal?{query}",
        f"http://localhost:{port}/getJournal?{query}",
        f"http://[::1]:{port}/getJournal?{query}",
        "http:///getJournal",
        f"http://{'x' * 64}:{port}/getJournal",
        f"ftp://{HOST}:{port}/getJournal",
    ]
    async with (
        listener,
        node_and_client(
            tmp_path, hadoop_host=HOST, nodes={JID: [(HOST, 1)]}, http_port_of_peers=1
        ) as (daemon, client),
        connected(daemon) as java,
    ):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        for url in elsewhere:
            work = client.accept(writer, segment(4, 6), [url])
            assert await kind_of_refusal(work) == BAD, url
            fault = await refused(java.at(1).accept(4, 6, url))
            assert "no address of a JournalNode" in fault.message
    assert met == []


async def test_a_node_whose_copy_is_right_asks_no_peer(tmp_path: Path) -> None:
    """Ask no peer where it serves segments: with certificates that took most of a takeover."""
    met: list[str] = []

    async def listen(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append("somebody")
        writer.close()

    listener = await asyncio.start_server(listen, HOST, 0)
    peer = (HOST, listener.sockets[0].getsockname()[1])
    async with listener, node_and_client(tmp_path, nodes={JID: [peer]}) as (_, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.written(writer, 1, 3)
        url = f"http://{HOST}:1/getJournal?jid={JID}&segmentTxId=1"
        await client.accept(writer, segment(1, 3), [url])
        assert met == []
        assert await kind_of_refusal(client.accept(writer, segment(1, 6), [url])) == BAD
        assert met != []


async def test_a_segment_is_for_who_names_its_file_system(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(Writer(1), 1, 3)
        url = f"http://{HOST}:{daemon.http_port}/getJournal?jid={JID}&segmentTxId=1"
        async with aiohttp.ClientSession() as http:
            async with http.get(url) as response:
                assert response.status == 403
            async with http.get(f"{url}&storageInfo={NAMESPACE.storage_info()}") as response:
                assert response.status == 200


async def test_nobody_else_reads_a_journals_files(tmp_path: Path) -> None:
    async with node_and_client(tmp_path / "jn") as (_, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(Writer(1), 1, 3)
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "jn").rglob("*")}
        assert [path for path, mode in modes.items() if path.is_file() and mode & 0o077] == []
        assert stat.S_IMODE((tmp_path / "jn" / JID).stat().st_mode) == 0o700


async def test_an_idle_writer_may_ask_whether_the_node_is_there(tmp_path: Path) -> None:
    """Allow keepalives, which were taken for abuse: too_many_pings ended the connection."""
    async with running(tmp_path, min_ping_millis=10) as daemon:
        options = (
            ("grpc.keepalive_time_ms", 50),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
        )
        async with grpc.aio.insecure_channel(f"{HOST}:{daemon.rpc_port}", options) as channel:
            stream = journal_pb2_grpc.JournalNodeStub(channel).Write()  # type: ignore[no-untyped-call]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(7):
                    await stream.read()  # nothing was asked: only the connection's end ends this
