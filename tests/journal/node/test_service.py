"""A journal node over gRPC: typed refusals, streams in order, several journals, lost callers."""

import asyncio
import threading
from pathlib import Path

import grpc
import pytest
from prometheus_client import REGISTRY

from journal.model import NamespaceInfo
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import Writer, digest, segment
from tests.journal.node.process import JID, NodeClient, Refused, node_and_client, until

R = pb.Refusal


async def refused(work: object) -> Refused:
    with pytest.raises(Refused) as caught:
        await work  # type: ignore[misc]
    return caught.value


async def test_a_segment_from_format_to_manifest(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (daemon, client):
        request = pb.JournalRequest(journal_id=JID)
        assert not (await client.call("IsFormatted", request)).is_formatted
        await client.format()
        found = await client.call("IsFormatted", request)
        assert (found.is_formatted, found.namespace_info.cluster_id) == (True, "mycluster")
        assert not (await client.new_epoch(1)).HasField("last_segment_txid")
        writer = Writer(1)
        await client.written(writer, 1, 3)
        await client.finalize(writer, 1, 3)
        state = await client.call("GetJournalState", request)
        assert (state.last_promised_epoch, state.http_port) == (1, daemon.http_port)
        manifest = await client.call(
            "GetEditLogManifest", pb.GetEditLogManifestRequest(journal_id=JID, since_txid=1)
        )
        (listed,) = manifest.segments
        assert (listed.first_txid, listed.last_txid, listed.digest) == (1, 3, digest(1, 3))
        assert manifest.http_port == daemon.http_port
        assert (await client.new_epoch(2)).last_segment_txid == 1
        prepared = await client.prepare(Writer(2), 1)
        assert (prepared.segment.last_txid, prepared.last_writer_epoch) == (3, 1)
        status = await client.status()
        assert (status.last_promised_epoch, status.last_written_txid) == (2, 3)
        assert status.disk_free_bytes > 0


async def test_refusals_are_typed_and_carry_facts(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        no = await refused(client.new_epoch(1))
        assert (no.code, no.refusal and no.refusal.kind) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            R.NOT_FORMATTED,
        )
        await client.format()
        await client.new_epoch(5)
        no = await refused(client.new_epoch(5))
        assert no.code is grpc.StatusCode.ABORTED
        assert no.refusal is not None
        assert (no.refusal.kind, no.refusal.promised_epoch) == (R.FENCED, 5)
        writer = Writer(5)
        no = await refused(client.finalize(writer, 1000, 1001))
        assert (no.code, no.refusal and no.refusal.kind) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            R.OUT_OF_SYNC,
        )
        no = await refused(client.format())
        assert (no.code, no.refusal and no.refusal.kind) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            R.BAD_REQUEST,
        )
        await client.written(writer, 1, 3)
        await client.finalize(writer, 1, 3)
        no = await refused(client.accept(writer, segment(1, 3, 9), []))
        assert (no.code, no.refusal and no.refusal.kind) == (
            grpc.StatusCode.DATA_LOSS,
            R.INVARIANT_BROKEN,
        )


async def test_reading_an_unknown_name_creates_nothing(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, "nobody") as (_, client):
        await refused(client.status())
        await refused(client.new_epoch(1))
        await refused(client.prepare(Writer(1), 1))
        (reply,) = await client.write([client.batch(Writer(1), 1, 1, 1)])
        assert reply.refusal.kind == R.NOT_FORMATTED
        await refused(client.format(NamespaceInfo(-65, 0, "", 0)))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../up", ".dot", "a/b"])
async def test_bad_names_are_refused(tmp_path: Path, name: str) -> None:
    async with node_and_client(tmp_path / "jn", name) as (_, client):
        no = await refused(client.format())
        assert no.code is grpc.StatusCode.INVALID_ARGUMENT
        assert [path.name for path in tmp_path.iterdir()] == ["jn"]


async def test_journals_are_apart_and_bounded(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, max_journals=2) as (daemon, client):
        other = NodeClient(daemon.rpc_port, "ns2")
        third = NodeClient(daemon.rpc_port, "ns3")
        await client.format()
        await other.format()
        await client.new_epoch(7)
        assert not (await other.new_epoch(1)).HasField("last_segment_txid")
        assert "at most 2 journals" in str(await refused(third.format()))
        for one in (other, third):
            await one.close()
    async with node_and_client(tmp_path) as (_, client):
        assert (await client.status()).last_promised_epoch == 7


async def test_a_nameservice_may_have_its_own_folder(tmp_path: Path) -> None:
    folders = {"ns2": tmp_path / "two"}
    async with node_and_client(tmp_path / "one", folders=folders) as (daemon, client):
        other = NodeClient(daemon.rpc_port, "j2")
        await client.format()
        await other.call(
            "Format",
            pb.FormatRequest(
                journal_id="j2",
                nameservice_id="ns2",
                namespace_info=pb.NamespaceInfo(layout_version=-65, namespace_id=1, cluster_id="c"),
            ),
        )
        await other.close()
    assert (tmp_path / "one" / JID / "current" / "VERSION").exists()
    assert (tmp_path / "two" / "j2" / "current" / "VERSION").exists()


async def test_a_stream_answers_in_order_and_outlives_refusals(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.start(writer, 1)
        requests = [
            client.batch(writer, 1, 1, 2),
            client.batch(writer, 1, 9, 9),
            client.batch(writer, 1, 3, 3),
            pb.WriteRequest(info=client.info(writer), heartbeat=pb.Heartbeat()),
            client.batch(writer, 1, 4, 4),
        ]
        replies = await client.write(requests)
        assert [reply.serial for reply in replies] == [r.info.serial for r in requests]
        assert [reply.HasField("refusal") for reply in replies] == [
            False,
            True,
            False,
            False,
            False,
        ]
        assert replies[1].refusal.expected_txid == 3
        stale = Writer(1, 100)
        await client.new_epoch(2)
        (reply,) = await client.write([client.batch(stale, 1, 5, 5)])
        assert (reply.refusal.kind, reply.refusal.promised_epoch) == (R.FENCED, 2)


def _groups(journal_id: str) -> float:
    labels = {"journal": journal_id}
    return REGISTRY.get_sample_value("nnha_jn_commit_groups_total", labels) or 0.0


async def test_batches_that_wait_share_a_sync_and_hold_up_nobody(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, "grouped") as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.start(writer, 1)
        owner = daemon.node.find("grouped")
        assert owner is not None
        # A disk that hangs: whatever comes waits behind this, and the loop goes on.
        hangs = threading.Event()
        hanging = asyncio.create_task(owner.in_thread(hangs.wait))
        before = _groups("grouped")
        batches = [client.batch(writer, 1, i, i) for i in range(1, 301)]
        writing = asyncio.create_task(client.write(batches))
        try:
            await until(lambda: owner.waiting > 32, "batches that wait")
            assert (await client.status()).last_written_txid == 0
        finally:
            hangs.set()
        replies = await writing
        await hanging
        assert not any(reply.HasField("refusal") for reply in replies)
        assert len(replies) == 300
        assert _groups("grouped") - before < 270
        assert (await client.status()).last_written_txid == 300


@pytest.mark.row("X16")
async def test_x16_a_cancelled_call_is_carried_out_whole(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        owner = daemon.node.find(JID)
        assert owner is not None
        for epoch in range(2, 30):
            call = asyncio.create_task(client.new_epoch(epoch))
            for _ in range(epoch % 7):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        await client.new_epoch(40)
        await until(lambda: owner.state.promised == 40, "the last promise")
        assert owner.failed_because is None
        assert (tmp_path / JID / "current" / "last-promised-epoch").read_text() == "40\n"


async def test_a_stream_that_breaks_off_leaves_a_sound_journal(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.start(writer, 1)
        stream = client.stub.Write()
        for txid in range(1, 200):
            await stream.write(client.batch(writer, 1, txid, txid))
        stream.cancel()
        await client.new_epoch(2)
        prepared = await client.prepare(Writer(2), 1)
        last = prepared.segment.last_txid
        if last:
            assert prepared.segment.digest == digest(1, last)


async def test_a_batch_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, max_message_bytes=100_000) as (_, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.start(writer, 1)
        (reply,) = await client.write([client.batch(writer, 1, 1, 5000)])
        assert reply.refusal.kind == R.BAD_REQUEST
        assert "at most 100000" in reply.refusal.message
        (reply,) = await client.write([client.batch(writer, 1, 1, 10)])
        assert not reply.HasField("refusal")


async def test_a_peek_tells_what_a_recovery_would_see_and_changes_nothing(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)

        async def peek(first: int = 0) -> pb.PrepareRecoveryReply:
            request = pb.PeekRecoveryRequest(journal_id=JID, segment_first_txid=first)
            reply: pb.PrepareRecoveryReply = await client.call("PeekRecovery", request)
            return reply

        assert not (await peek()).HasField("segment")
        await client.written(writer, 1, 5)
        owner = daemon.node.find(JID)
        assert owner is not None
        before = owner.state
        assert (await peek()).segment.last_txid == 5
        seen = await peek(1)
        assert (seen.segment.last_txid, seen.segment.digest) == (5, digest(1, 5))
        assert not (await peek(6)).HasField("segment")
        assert (owner.state.open is not None, owner.state.promised) == (True, before.promised)
        (reply,) = await client.write([client.batch(writer, 1, 6, 7)])
        assert not reply.HasField("refusal")
