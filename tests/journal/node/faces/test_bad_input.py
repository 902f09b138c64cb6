"""Bad input on the Hadoop RPC port: refused, state unchanged, and memory and folders bounded."""

import struct
from pathlib import Path

import pytest

from ha.rpc import java_names
from ha.rpc.packets import PREAMBLE, encode_context
from journal import refusals
from journal.node.faces.hadoop_codec import QJOURNAL_PROTOCOL
from journal.proto import hadoop_qjournal_pb2 as hp
from tests.journal.core.requests_of import records
from tests.journal.node.faces.java_writer import java_and_node, java_namespace, refused, send_bytes

HELLO = PREAMBLE + encode_context(b"c" * 16, QJOURNAL_PROTOCOL, "hdfs", None)
GARBAGE = {
    "an HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "random bytes": bytes(range(256)) * 8,
    "a frame of 2 GiB": HELLO + struct.pack(">I", 2**31),
    "a frame one byte too long": HELLO + struct.pack(">I", 1024 * 1024 + 1),
    "a call cut short": HELLO + b"\0\0\0\3\xff\xff\xff",
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_ends_the_connection_and_nothing_else(tmp_path: Path, name: str) -> None:
    async with java_and_node(tmp_path, max_message_bytes=1024 * 1024) as (daemon, java):
        await java.format()
        await send_bytes(daemon.hadoop_port, GARBAGE[name])
        assert (await java.state()).lastPromisedEpoch == 0


@pytest.mark.parametrize("epoch", [0, 2**63, 2**64 - 1, 2**62 + 1])
async def test_epochs_that_no_writer_has_are_refused(tmp_path: Path, epoch: int) -> None:
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        no = await refused(java.new_epoch(epoch))
        assert (no.java_class, "bad epoch" in no.message) == (java_names.ILLEGAL_ARGUMENT, True)
        writer = java.at(epoch)
        for work in (writer.start(1), writer.write(1, 1, 1, 1), writer.finalize(1, 1)):
            assert (await refused(work)).java_class == java_names.ILLEGAL_ARGUMENT
        assert (await java.state()).lastPromisedEpoch == 0


@pytest.mark.parametrize("number", [2**63, 2**64 - 12345, 2**62 + 1])
async def test_transaction_ids_that_cannot_be_are_refused(tmp_path: Path, number: int) -> None:
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        await java.new_epoch(1)
        writer = java.at(1)
        for work in (writer.start(number), writer.prepare(number), writer.finalize(number, number)):
            assert (await refused(work)).java_class == java_names.ILLEGAL_ARGUMENT
        assert not (await java.manifest(0, in_progress=True)).manifest.logs


@pytest.mark.parametrize("name", ["", "../up", ".dot", "a/b", "a\\..\\b/../c", "x" * 5000])
async def test_names_that_lead_elsewhere_create_nothing(tmp_path: Path, name: str) -> None:
    async with java_and_node(tmp_path / "jn", name) as (_, java):
        assert (await refused(java.format())).java_class == java_names.ILLEGAL_ARGUMENT
        assert (await refused(java.state())).java_class == refusals.NOT_FORMATTED
        assert (await refused(java.new_epoch(1))).java_class == refusals.NOT_FORMATTED
        assert [path.name for path in tmp_path.iterdir()] == ["jn"]
        assert list((tmp_path / "jn").iterdir()) == []


async def test_ten_thousand_journal_ids_leave_nothing_behind(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (daemon, java):
        for number in range(10_000):
            jid = hp.JournalIdProto(identifier=f"j{number}")
            request = hp.IsFormattedRequestProto(jid=jid)
            answer = await java.call("isFormatted", request, hp.IsFormattedResponseProto)
            assert not answer.isFormatted
        assert list(tmp_path.iterdir()) == []
        assert daemon.node.status() == {}


async def test_batches_that_do_not_fit_are_refused_and_leave_no_byte(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        await java.new_epoch(1)
        writer = java.at(1)
        await writer.start(1)
        good = records(1, 2)
        for count, data in {
            "a checksum": (2, good[:-1] + b"?"),
            "cut short": (2, good[:-5]),
            "another txid": (2, records(1, 1) + records(3, 3)),
            "a count": (3, good),
            "padding": (2, good + b"\xff" * 10),
            "nothing": (1, b""),
        }.values():
            request = hp.JournalRequestProto(
                reqInfo=writer.info(), segmentTxnId=1, firstTxnId=1, numTxns=count, records=data
            )
            no = await refused(java.call("journal", request, hp.JournalResponseProto))
            assert no.java_class == java_names.ILLEGAL_ARGUMENT
        await writer.write(1, 1, 2)
        await writer.finalize(1, 2)


async def test_a_missing_field_is_refused_by_name_of_the_message(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        empty = hp.JournalResponseProto()
        no = await refused(java.call("isFormatted", empty, hp.IsFormattedResponseProto))
        assert "IsFormattedRequestProto without one of its required fields" in no.message
        assert (await java.state()).lastPromisedEpoch == 0


async def test_another_cluster_is_refused(tmp_path: Path) -> None:
    async with java_and_node(tmp_path) as (_, java):
        await java.format()
        for namespace in (java_namespace(namespace_id=2**32 - 1), java_namespace(cluster="")):
            no = await refused(java.new_epoch(1, namespace))
            assert no.message.startswith("Incompatible")
        assert (await java.state()).lastPromisedEpoch == 0
