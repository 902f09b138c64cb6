"""A journal node as Java's writer sees it: calls, classes of refusals, signs, other bytes."""

from pathlib import Path

import aiohttp

from ha.rpc import java_names
from journal import refusals
from journal.node.faces import hadoop_codec
from journal.proto import hadoop_qjournal_pb2 as hp
from tests.journal.core.requests_of import Writer, digest, segment_bytes
from tests.journal.node.faces import java_writer as faces_java_writer
from tests.journal.node.faces.java_writer import JID, java_and_node, java_namespace, refused
from tests.journal.node.process import NodeClient, running, segment_url

FINAL = "edits_{:019d}-{:019d}"


async def test_a_segment_from_format_to_manifest(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (daemon, java):
        asked = hp.IsFormattedRequestProto(jid=java.jid)
        assert not (await java.call("isFormatted", asked, hp.IsFormattedResponseProto)).isFormatted
        await java.format()
        assert (await java.call("isFormatted", asked, hp.IsFormattedResponseProto)).isFormatted
        state = await java.state()
        assert (state.lastPromisedEpoch, state.httpPort) == (0, daemon.http_port)
        assert state.fromURL == f"http://127.0.0.1:{daemon.http_port}"
        assert not (await java.new_epoch(1)).HasField("lastSegmentTxId")
        writer = java.at(1)
        await writer.start(1)
        await writer.write(1, 1, 2)
        await writer.write(1, 3, 3)
        (listed,) = (await java.manifest(1, in_progress=True)).manifest.logs
        assert (listed.startTxId, listed.endTxId, listed.isInProgress) == (1, 3, True)
        await writer.finalize(1, 3)
        await writer.finalize(1, 3)  # again: that is no other end
        (listed,) = (await java.manifest(2)).manifest.logs
        assert (listed.startTxId, listed.endTxId, listed.isInProgress) == (1, 3, False)
        async with aiohttp.ClientSession() as http, http.get(segment_url(daemon, 1)) as response:
            assert await response.read() == segment_bytes(1, 3)
        assert (await java.new_epoch(2)).lastSegmentTxId == 1


async def test_negative_numbers_in_unsigned_fields_are_taken_back(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        assert "layoutVersion=-65" in (tmp_path / JID / "current" / "VERSION").read_text()
        manifest = (await java.manifest(0)).manifest
        assert hadoop_codec.signed_64(manifest.committedTxnId) == -12345
        await java.new_epoch(1)
        writer = java.at(1)
        info = writer.info()
        info.committedTxId = 2**64 - 12345
        beat = hp.HeartbeatRequestProto(reqInfo=info)
        await java.call("heartbeat", beat, hp.HeartbeatResponseProto)
        await writer.written(1, 7)
        info = writer.info()
        info.committedTxId = 7
        beat = hp.HeartbeatRequestProto(reqInfo=info)
        await java.call("heartbeat", beat, hp.HeartbeatResponseProto)
        assert (await java.manifest(0)).manifest.committedTxnId == 7
        assert (await java.manifest(2**64 - 12345)).manifest.committedTxnId == 7


async def test_refusals_have_the_classes_and_texts_that_java_knows(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (_, java):
        no = await refused(java.new_epoch(1))
        assert no.java_class == refusals.NOT_FORMATTED
        await java.format()
        no = await refused(java.format())
        assert "current directory is not empty" in no.message
        await java.new_epoch(3)
        no = await refused(java.new_epoch(3))
        assert no.java_class == java_names.IO_EXCEPTION
        assert no.message == "Proposed epoch 3 <= last promise 3"
        no = await refused(java.new_epoch(4, java_namespace(namespace_id=9)))
        assert no.message.startswith("Incompatible namespaceID")
        no = await refused(java.new_epoch(4, java_namespace(cluster="other")))
        assert no.message.startswith("Incompatible clusterID")
        no = await refused(java.at(1).start(1))
        assert no.java_class == java_names.IO_EXCEPTION
        assert "is less than the last promised epoch 3" in no.message
        writer = java.at(3)
        no = await refused(writer.finalize(1000, 1001))
        assert no.java_class == refusals.OUT_OF_SYNC
        assert no.message == "No log file to finalize at transaction ID 1000"
        await writer.written(1, 3)
        no = await refused(writer.write(1, 6, 7))
        assert no.message == "Can't write txid 6 expecting nextTxId=4"
        no = await refused(writer.finalize(1, 6))
        assert (no.java_class, "but only written up to txid 3" in no.message) == (
            refusals.OUT_OF_SYNC,
            True,
        )
        await writer.finalize(1, 3)  # closed by now, and still its own edits


async def test_what_names_no_writer_changes_nothing(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        storage = java_namespace().storageInfo
        for method, request in {
            "doPreUpgrade": hp.DoPreUpgradeRequestProto(jid=java.jid),
            "doUpgrade": hp.DoUpgradeRequestProto(jid=java.jid, sInfo=storage),
            "doFinalize": hp.DoFinalizeRequestProto(jid=java.jid),
            "doRollback": hp.DoRollbackRequestProto(jid=java.jid),
            "discardSegments": hp.DiscardSegmentsRequestProto(jid=java.jid, startTxId=1),
        }.items():
            no = await refused(java.call(method, request, hp.DoFinalizeResponseProto))
            assert no.java_class == java_names.UNSUPPORTED_OPERATION, method


async def test_a_node_that_missed_the_recovery_does_not_finalize_its_own_bytes(
    tmp_path: Path,
) -> None:
    """Lose the acceptance on its way here: in Hadoop the ends are equal, and that is enough."""
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        await java.new_epoch(1)
        await java.at(1).written(1, 3)
        await java.new_epoch(2)
        no = await refused(java.at(2).finalize(1, 3))
        assert no.java_class == refusals.OUT_OF_SYNC
        assert [p.name for p in (tmp_path / JID / "current").glob("edits_*")] == [
            "edits_inprogress_0000000000000000001"
        ]


async def test_a_segment_of_equal_ends_and_other_bytes_is_replaced(tmp_path: Path) -> None:
    """Replace the bytes that were never acknowledged, which Hadoop keeps."""
    async with (
        java_and_node(tmp_path / "a") as (_, stale),
        java_and_node(tmp_path / "b") as (source, java),
    ):
        for one, epoch in ((stale, 1), (java, 2)):
            await one.format()
            await one.new_epoch(epoch)
            await one.at(epoch).written(1, 3)
        for one in (stale, java):
            await one.new_epoch(3)
            writer = one.at(3)
            assert (await writer.prepare(1)).segmentState.endTxId == 3
            await writer.accept(1, 3, segment_url(source, 1))
            prepared = await writer.prepare(1)
            assert (prepared.acceptedInEpoch, prepared.segmentState.endTxId) == (3, 3)
            await writer.finalize(1, 3)
        for folder in ("a", "b"):
            file = tmp_path / folder / JID / "current" / FINAL.format(1, 3)
            assert file.read_bytes() == segment_bytes(1, 3, 2)


async def test_a_source_is_not_believed_beyond_what_it_gives(tmp_path: Path) -> None:
    async with (
        java_and_node(tmp_path / "a") as (_, java),
        java_and_node(tmp_path / "b") as (source, other),
    ):
        for one in (java, other):
            await one.format()
            await one.new_epoch(1)
            await one.at(1).written(1, 3)
            await one.new_epoch(2)
        writer = java.at(2)
        cases = {
            segment_url(source, 4): (3, java_names.IO_EXCEPTION),
            segment_url(source, 1): (5, java_names.IO_EXCEPTION),
            segment_url(source, 1, "other"): (3, java_names.IO_EXCEPTION),
            "http://127.0.0.1:1/getJournal?jid=ns1": (3, java_names.IO_EXCEPTION),
            "file:///etc/passwd": (3, java_names.ILLEGAL_ARGUMENT),
            "http://127.0.0.1:1/other": (3, java_names.ILLEGAL_ARGUMENT),
        }
        for url, (last, java_class) in cases.items():
            assert (await refused(writer.accept(1, last, url))).java_class == java_class, url
        assert not (await writer.prepare(1)).HasField("acceptedInEpoch")
        no = await refused(java.at(1).accept(1, 3, segment_url(source, 1)))
        assert "less than the last promised epoch 2" in no.message


async def test_both_faces_lead_to_one_journal(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (daemon, java):
        await java.format()
        await java.new_epoch(1)
        ours = NodeClient(daemon.rpc_port)
        await ours.new_epoch(2)
        await ours.written(Writer(2), 1, 3)
        assert (await refused(java.at(1).start(1))).java_class == java_names.IO_EXCEPTION
        assert (await java.state()).lastPromisedEpoch == 2
        await java.new_epoch(3)
        java_writer = java.at(3)
        await java_writer.accept(1, 3, segment_url(daemon, 1))
        await java_writer.finalize(1, 3)
        (listed,) = (await java.manifest(1)).manifest.logs
        assert (listed.endTxId, listed.isInProgress) == (3, False)
        assert (await ours.prepare(Writer(4), 1)).segment.digest == digest(1, 3, 2)
        await ours.close()


async def test_without_an_address_there_is_no_such_port(tmp_path: Path) -> None:
    async with running(tmp_path) as daemon:
        assert daemon.hadoop_port == 0


async def test_java_journal_nodes_may_ask_too(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (daemon, java):
        await java.format()
        asked = hp.GetJournalCTimeRequestProto(jid=java.jid)
        answer = await java.call("getJournalCTime", asked, hp.GetJournalCTimeResponseProto)
        assert answer.resultCTime == 0
        async with faces_java_writer.connected(
            daemon, protocol=hadoop_codec.INTER_QJOURNAL_PROTOCOL
        ) as peer:
            request = hp.GetStorageInfoRequestProto(jid=java.jid)
            storage = await peer.call("getStorageInfo", request, hp.StorageInfoProto)
            assert (storage.namespceID, storage.clusterID) == (12345, "mycluster")
            listing = hp.GetEditLogManifestRequestProto(jid=java.jid, sinceTxId=1)
            manifest = await peer.call(
                "getEditLogManifestFromJournal", listing, hp.GetEditLogManifestResponseProto
            )
            assert not manifest.manifest.logs


async def test_old_segments_are_purged(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        await java.new_epoch(1)
        writer = java.at(1)
        for first in (1, 4, 7):
            await writer.written(first, first + 2)
            await writer.finalize(first, first + 2)
        info = writer.info()
        info.committedTxId = 9
        request = hp.PurgeLogsRequestProto(reqInfo=info, minTxIdToKeep=4)
        await java.call("purgeLogs", request, hp.PurgeLogsResponseProto)
        logs = (await java.manifest(1)).manifest.logs
        assert [log.startTxId for log in logs] == [4, 7]


async def test_a_java_reader_gets_all_edits_of_the_open_segment(tmp_path: Path) -> None:
    """Give what no commit is known of, too: Java's reader counts what a majority has."""
    async with java_and_node(tmp_path, edits_cache_bytes=1 << 20) as (_, java):
        await java.format()
        await java.new_epoch(1)
        await java.at(1).written(1, 3)
        found = await java.edits(1)
        assert (found.txnCount, found.editLog) == (3, segment_bytes(1, 3))
        assert (await java.edits(2, 1)).editLog == segment_bytes(2, 2)
        assert (await java.edits(4)).txnCount == 0


async def test_a_lagging_node_refuses_a_java_reader(tmp_path: Path) -> None:
    async with java_and_node(tmp_path, edits_cache_bytes=1 << 20) as (_, java):
        await java.format()
        await java.new_epoch(1)
        assert (await java.edits(1)).txnCount == 0
        assert (await refused(java.edits(2))).java_class == refusals.NEWER_TXID
        await java.at(1).written(1, 3)
        assert (await java.edits(4)).txnCount == 0
        assert (await refused(java.edits(5))).java_class == refusals.NEWER_TXID


async def test_a_java_reader_gets_no_edits_of_a_writer_that_another_has_followed(
    tmp_path: Path,
) -> None:
    """A recovery may replace them, whatever the new writer knows to be committed elsewhere."""
    async with java_and_node(tmp_path, edits_cache_bytes=1 << 20) as (_, java):
        await java.format()
        await java.new_epoch(1)
        await java.at(1).written(1, 3)
        await java.new_epoch(2)
        info = java.at(2).info()
        info.committedTxId = 3
        beat = hp.HeartbeatRequestProto(reqInfo=info)
        await java.call("heartbeat", beat, hp.HeartbeatResponseProto)
        for since in (1, 3):
            assert (await refused(java.edits(since))).java_class == refusals.CACHE_MISS
        assert (await java.edits(4)).txnCount == 0
