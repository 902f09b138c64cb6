"""A client that asks a journal node as Java's writer does, field by field."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message

from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault
from journal.node.faces.hadoop_codec import QJOURNAL_PROTOCOL
from journal.node.process.daemon import JournalNodeDaemon
from journal.proto import hadoop_qjournal_pb2 as hp
from tests.journal.core.requests_of import records
from tests.journal.node.process import DEADLINE_SECONDS, running

JID = "ns1"
HOST = "127.0.0.1"
M = TypeVar("M", bound=Message)


def java_namespace(namespace_id: int = 12345, cluster: str = "mycluster") -> hp.NamespaceInfoProto:
    return hp.NamespaceInfoProto(
        buildVersion="3.5.0",
        unused=0,
        blockPoolID="my-bp",
        storageInfo=hp.StorageInfoProto(
            layoutVersion=2**32 - 65, namespceID=namespace_id, clusterID=cluster, cTime=0
        ),
        softwareVersion="3.5.0",
    )


class JavaWriter:
    """One epoch's calls to one node."""

    def __init__(self, connection: RpcConnection, epoch: int = 0, journal_id: str = JID) -> None:
        self.connection = connection
        self.epoch = epoch
        self.jid = hp.JournalIdProto(identifier=journal_id)
        self._serial = 0

    def at(self, epoch: int) -> "JavaWriter":
        """Another writer on the same connection."""
        return JavaWriter(self.connection, epoch, self.jid.identifier)

    def info(self) -> hp.RequestInfoProto:
        self._serial += 1
        return hp.RequestInfoProto(
            journalId=self.jid, epoch=self.epoch, ipcSerialNumber=self._serial - 1
        )

    async def call(self, method: str, request: Message, response: type[M]) -> M:
        return await self.connection.call(
            method, request, response, deadline_seconds=DEADLINE_SECONDS
        )

    async def format(self, *, force: bool = False) -> None:
        request = hp.FormatRequestProto(jid=self.jid, nsInfo=java_namespace(), force=force)
        await self.call("format", request, hp.FormatResponseProto)

    async def new_epoch(
        self, epoch: int, namespace: hp.NamespaceInfoProto | None = None
    ) -> hp.NewEpochResponseProto:
        request = hp.NewEpochRequestProto(
            jid=self.jid, nsInfo=namespace or java_namespace(), epoch=epoch
        )
        return await self.call("newEpoch", request, hp.NewEpochResponseProto)

    async def state(self) -> hp.GetJournalStateResponseProto:
        request = hp.GetJournalStateRequestProto(jid=self.jid)
        return await self.call("getJournalState", request, hp.GetJournalStateResponseProto)

    async def start(self, first: int) -> None:
        request = hp.StartLogSegmentRequestProto(reqInfo=self.info(), txid=first, layoutVersion=-65)
        await self.call("startLogSegment", request, hp.StartLogSegmentResponseProto)

    async def write(self, segment: int, first: int, last: int, tag: int | None = None) -> None:
        request = hp.JournalRequestProto(
            reqInfo=self.info(),
            segmentTxnId=segment,
            firstTxnId=first,
            numTxns=last - first + 1,
            records=records(first, last, self.epoch if tag is None else tag),
        )
        await self.call("journal", request, hp.JournalResponseProto)

    async def finalize(self, first: int, last: int) -> None:
        request = hp.FinalizeLogSegmentRequestProto(
            reqInfo=self.info(), startTxId=first, endTxId=last
        )
        await self.call("finalizeLogSegment", request, hp.FinalizeLogSegmentResponseProto)

    async def prepare(self, first: int) -> hp.PrepareRecoveryResponseProto:
        request = hp.PrepareRecoveryRequestProto(reqInfo=self.info(), segmentTxId=first)
        return await self.call("prepareRecovery", request, hp.PrepareRecoveryResponseProto)

    async def accept(self, first: int, last: int, url: str) -> None:
        request = hp.AcceptRecoveryRequestProto(
            reqInfo=self.info(),
            stateToAccept=hp.SegmentStateProto(startTxId=first, endTxId=last, isInProgress=True),
            fromURL=url,
        )
        await self.call("acceptRecovery", request, hp.AcceptRecoveryResponseProto)

    async def manifest(
        self, since: int, *, in_progress: bool = False
    ) -> hp.GetEditLogManifestResponseProto:
        request = hp.GetEditLogManifestRequestProto(
            jid=self.jid, sinceTxId=since, inProgressOk=in_progress
        )
        return await self.call("getEditLogManifest", request, hp.GetEditLogManifestResponseProto)

    async def edits(self, since: int, most: int = 5000) -> hp.GetJournaledEditsResponseProto:
        request = hp.GetJournaledEditsRequestProto(jid=self.jid, sinceTxId=since, maxTxns=most)
        return await self.call("getJournaledEdits", request, hp.GetJournaledEditsResponseProto)

    async def written(self, first: int, last: int) -> None:
        await self.start(first)
        await self.write(first, first, last)


async def refused(work: Any) -> RemoteFault:  # noqa: ANN401 - a coroutine
    try:
        await work
    except RemoteFault as fault:
        return fault
    raise AssertionError("the call was not refused")


@asynccontextmanager
async def connected(
    daemon: JournalNodeDaemon, journal_id: str = JID, *, protocol: str = QJOURNAL_PROTOCOL
) -> AsyncIterator[JavaWriter]:
    """Somebody on a node's Hadoop RPC port."""
    connection = await RpcConnection.open(
        HOST, daemon.hadoop_port, protocol=protocol, user="hdfs", deadline_seconds=DEADLINE_SECONDS
    )
    try:
        yield JavaWriter(connection, journal_id=journal_id)
    finally:
        await connection.close()


@asynccontextmanager
async def java_and_node(
    folder: Path,
    journal_id: str = JID,
    **settings: Any,  # noqa: ANN401
) -> AsyncIterator[tuple[JournalNodeDaemon, JavaWriter]]:
    """Run a node with a Hadoop RPC port, and a client connected to it."""
    async with (
        running(folder, hadoop_host=HOST, **settings) as daemon,
        connected(daemon, journal_id) as writer,
    ):
        yield daemon, writer


async def send_bytes(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(data)
        async with asyncio.timeout(DEADLINE_SECONDS):
            try:
                return await reader.read()
            except ConnectionError:
                return b""
    finally:
        writer.close()
