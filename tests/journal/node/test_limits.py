"""What a stranger's request may not do to a running node, over both of its faces."""

from pathlib import Path

import pytest

from journal.model import MAX_EPOCH_LEAP
from journal.proto import hadoop_qjournal_pb2 as hp
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import Writer
from tests.journal.node.faces.java_writer import HOST, JID, connected, refused
from tests.journal.node.process import NodeClient, node_and_client

STRAY: dict[str, pb.RequestInfo] = {
    "an enormous epoch": pb.RequestInfo(journal_id=JID, epoch=2**62, serial=0),
    "an epoch just above the promise": pb.RequestInfo(journal_id=JID, epoch=2, serial=0),
    "an enormous serial": pb.RequestInfo(journal_id=JID, epoch=1, serial=2**63),
    "an enormous committed txid": pb.RequestInfo(
        journal_id=JID, epoch=1, serial=100, committed_txid=2**61
    ),
    "a read lease of a day": pb.RequestInfo(
        journal_id=JID, epoch=1, serial=100, read_lease_micros=86_400_000_000
    ),
    "another file system": pb.RequestInfo(journal_id=JID, epoch=1, serial=100, namespace_id=9),
}


def durable(folder: Path) -> dict[str, bytes]:
    """Return what the node keeps of promises and claims."""
    names = ("last-promised-epoch", "committed-txid", "read-lease-micros")
    current = folder / JID / "current"
    return {name: (current / name).read_bytes() for name in names if (current / name).exists()}


async def writing(client: NodeClient) -> Writer:
    await client.format()
    await client.new_epoch(1)
    writer = Writer(1)
    await client.written(writer, 1, 3)
    return writer


@pytest.mark.parametrize("info", STRAY.values(), ids=list(STRAY))
async def test_a_stray_heartbeat_changes_nothing(info: pb.RequestInfo, tmp_path: Path) -> None:
    """Let the writer go on, and the next one, too."""
    async with node_and_client(tmp_path) as (_, client):
        writer = await writing(client)
        before = durable(tmp_path)
        (reply,) = await client.write([pb.WriteRequest(info=info, heartbeat=pb.Heartbeat())])
        assert reply.HasField("refusal")
        assert durable(tmp_path) == before
        (reply,) = await client.write([client.batch(writer, 1, 4, 6)])
        assert not reply.HasField("refusal"), reply
        await client.new_epoch(2)


async def test_nor_over_hadoop_rpc(tmp_path: Path) -> None:
    async with (
        node_and_client(tmp_path, hadoop_host=HOST) as (daemon, client),
        connected(daemon) as java,
    ):
        await writing(client)
        before = durable(tmp_path)
        for epoch, serial, committed in ((2**62, 0, 0), (1, 2**62, 0), (1, 50, 2**61)):
            info = java.at(epoch).info()
            info.ipcSerialNumber, info.committedTxId = serial, committed
            beat = hp.HeartbeatRequestProto(reqInfo=info)
            await refused(java.call("heartbeat", beat, hp.HeartbeatResponseProto))
        await refused(java.new_epoch(2 + MAX_EPOCH_LEAP))
        assert durable(tmp_path) == before
        await java.new_epoch(2)
