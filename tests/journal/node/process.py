"""A real journal node on a real socket, and the little client that tests use."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from journal.core.requests import FinalizeLogSegment, Journal, StartLogSegment
from journal.messages import namespace_message, segment_message
from journal.model import NamespaceInfo, Segment
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2 as pb
from journal.proto import journal_pb2_grpc
from tests.journal.core.requests_of import NAMESPACE, Writer

DEADLINE_SECONDS = 30.0
JID = "ns1"


class Refused(Exception):
    """A node's no: the gRPC status and the typed refusal."""

    def __init__(self, code: grpc.StatusCode, refusal: pb.Refusal | None, text: str) -> None:
        super().__init__(f"{code.name}: {text}")
        self.code = code
        self.refusal = refusal


class NodeClient:
    """Speaks to one journal of one node."""

    def __init__(self, port: int, journal_id: str = JID) -> None:
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        self.stub: Any = journal_pb2_grpc.JournalNodeStub(self._channel)  # type: ignore[no-untyped-call]
        self.journal_id = journal_id

    async def close(self) -> None:
        await self._channel.close()

    async def call(self, method: str, request: object) -> Any:  # noqa: ANN401 - any reply
        try:
            return await getattr(self.stub, method)(request, timeout=DEADLINE_SECONDS)
        except grpc.aio.AioRpcError as error:
            refusal = None
            for key, value in error.trailing_metadata() or ():
                if key == "nnha-refusal-bin":
                    refusal = pb.Refusal.FromString(value)
            raise Refused(error.code(), refusal, error.details() or "") from error

    async def format(
        self, namespace: NamespaceInfo = NAMESPACE, *, force: bool = False, founding: bool = True
    ) -> None:
        await self.call(
            "Format",
            pb.FormatRequest(
                journal_id=self.journal_id,
                namespace_info=namespace_message(namespace),
                force=force,
                founding=founding,
            ),
        )

    async def new_epoch(self, epoch: int) -> pb.NewEpochReply:
        reply: pb.NewEpochReply = await self.call(
            "NewEpoch",
            pb.NewEpochRequest(
                journal_id=self.journal_id, namespace_info=namespace_message(NAMESPACE), epoch=epoch
            ),
        )
        return reply

    def info(self, writer: Writer) -> pb.RequestInfo:
        stamp = writer.stamp()
        return pb.RequestInfo(
            journal_id=self.journal_id,
            epoch=stamp.epoch,
            serial=stamp.serial,
            committed_txid=stamp.committed,
        )

    async def start(self, writer: Writer, first: int) -> None:
        asked: StartLogSegment = Writer(writer.epoch).start(first)
        await self.call(
            "StartLogSegment",
            pb.StartLogSegmentRequest(
                info=self.info(writer), first_txid=first, layout_version=asked.layout_version
            ),
        )

    def batch(self, writer: Writer, segment_first: int, first: int, last: int) -> pb.WriteRequest:
        made: Journal = Writer(writer.epoch).batch(segment_first, first, last)
        return pb.WriteRequest(
            info=self.info(writer),
            batch=pb.Batch(
                segment_first_txid=segment_first,
                first_txid=first,
                count=made.count,
                records=made.records,
            ),
        )

    async def write(self, requests: Sequence[pb.WriteRequest]) -> list[pb.WriteReply]:
        stream = self.stub.Write(timeout=DEADLINE_SECONDS)
        for request in requests:
            await stream.write(request)
        await stream.done_writing()
        return [reply async for reply in stream]

    async def finalize(self, writer: Writer, first: int, last: int, tag: int | None = None) -> None:
        asked: FinalizeLogSegment = Writer(writer.epoch).finalize(first, last, tag)
        await self.call(
            "FinalizeLogSegment",
            pb.FinalizeLogSegmentRequest(
                info=self.info(writer), first_txid=first, last_txid=last, digest=asked.digest or b""
            ),
        )

    async def prepare(self, writer: Writer, first: int) -> pb.PrepareRecoveryReply:
        reply: pb.PrepareRecoveryReply = await self.call(
            "PrepareRecovery",
            pb.PrepareRecoveryRequest(info=self.info(writer), segment_first_txid=first),
        )
        return reply

    async def accept(self, writer: Writer, decided: Segment, urls: Sequence[str]) -> None:
        await self.call(
            "AcceptRecovery",
            pb.AcceptRecoveryRequest(
                info=self.info(writer), segment=segment_message(decided), source_urls=urls
            ),
        )

    async def status(self) -> pb.JournalStatus:
        reply: pb.JournalStatus = await self.call(
            "GetStatus", pb.JournalRequest(journal_id=self.journal_id)
        )
        return reply

    async def written(self, writer: Writer, first: int, last: int) -> None:
        await self.start(writer, first)
        (reply,) = await self.write([self.batch(writer, first, first, last)])
        assert not reply.HasField("refusal"), reply


@asynccontextmanager
async def running(folder: Path, **settings: Any) -> AsyncIterator[JournalNodeDaemon]:  # noqa: ANN401
    async with JournalNodeDaemon(NodeSettings(folder=folder, **settings)) as daemon:
        yield daemon


@asynccontextmanager
async def node_and_client(
    folder: Path,
    journal_id: str = JID,
    **settings: Any,  # noqa: ANN401
) -> AsyncIterator[tuple[JournalNodeDaemon, NodeClient]]:
    async with running(folder, **settings) as daemon:
        client = NodeClient(daemon.rpc_port, journal_id)
        try:
            yield daemon, client
        finally:
            await client.close()


def segment_url(daemon: JournalNodeDaemon, first: int, journal_id: str = JID) -> str:
    info = NAMESPACE.storage_info()
    return (
        f"http://127.0.0.1:{daemon.http_port}/getJournal?jid={journal_id}"
        f"&segmentTxId={first}&storageInfo={info}"
    )


async def until(condition: Any, what: str) -> None:  # noqa: ANN401 - a callable
    """Wait for something with a deadline; the condition holds once and is not asked again."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"{what}: not within {DEADLINE_SECONDS:g} s") from None
