"""The doors of a JournalNode: gRPC, HTTP/2 itself, Hadoop RPC, write lanes, pages."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from ha.rpc.packets import PREAMBLE, CallKey, encode_call, encode_context
from journal.core.requests import Heartbeat
from journal.lane import hello_bytes
from journal.node.faces.calls import CALLS
from journal.node.faces.hadoop_codec import QJOURNAL_PROTOCOL
from journal.node.faces.hadoop_face import hadoop_protocols
from journal.node.process.daemon import JournalNodeDaemon
from journal.proto import hadoop_qjournal_pb2 as hp
from journal.proto import journal_pb2 as pb
from tests.campaigns.soak.fuzz_door import HOST, Door, Misbehaved, Opened, over_tcp
from tests.hostile.samples import sample
from tests.hostile.shapes import Shape
from tests.journal.core.requests_of import NAMESPACE, Writer, records
from tests.journal.node.faces.java_writer import java_namespace
from tests.journal.node.lane_client import RawLane, hello, message
from tests.journal.node.process import JID, NodeClient, Refused, running

CLIENT: Final = bytes(range(16))
SERVICE: Final = "/nnha.journal.JournalNode/"
SECONDS: Final = 15.0
METHODS: Final = tuple(CALLS)
_TRIES: Final = 20


@dataclass
class Stage:
    """A node with one open segment of three edits, and its writer of that epoch."""

    daemon: JournalNodeDaemon
    client: NodeClient
    key: bytes = b""
    epoch: int = 1

    async def begin_again(self) -> None:
        """Check that a writer that comes now writes, whatever was done to the node.

        A call goes on after its caller has hung up, and may come in between.
        """
        for _ in range(_TRIES - 1):
            with suppress(Refused):
                return await self._begin_again()
        return await self._begin_again()

    async def _begin_again(self) -> None:
        try:
            status = await self.client.status()
        except Refused:
            await self.client.format()
        else:
            if status.failed_because:
                raise Misbehaved(f"its journal has failed: {status.failed_because}")
            await self.client.call("Format", _forced(status))
        self.key = (await self.client.new_epoch(self.epoch)).lane_key
        await self.client.written(Writer(self.epoch), 1, 3)


def _forced(status: pb.JournalStatus) -> pb.FormatRequest:
    space = status.namespace_info
    if not status.is_formatted:
        space = sample(pb.NamespaceInfo)  # type: ignore[assignment]
    return pb.FormatRequest(
        journal_id=JID, namespace_info=_space(), force=True, founding=True,
        seen_promised_epoch=status.last_promised_epoch, seen_namespace_id=space.namespace_id,
    )  # fmt: skip


def _space() -> pb.NamespaceInfo:
    return pb.NamespaceInfo(
        layout_version=NAMESPACE.layout_version, namespace_id=NAMESPACE.namespace_id,
        cluster_id=NAMESPACE.cluster_id, ctime=NAMESPACE.ctime,
        block_pool_id=NAMESPACE.block_pool_id,
    )  # fmt: skip


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[Stage]:
    """Set up; segments come from nowhere: else a hostile request would have it connect anywhere."""
    async with running(
        folder, hadoop_host=HOST, lane_host=HOST, nodes={JID: [(HOST, 1)]},
        journal_ids=frozenset({JID}), http_port_of_peers=1,
    ) as daemon:  # fmt: skip
        client = NodeClient(daemon.rpc_port)
        try:
            yield Stage(daemon, client)
        finally:
            await client.close()


Port = Callable[[JournalNodeDaemon], int]
Seeds = Callable[[Stage], Sequence[bytes]]


async def _answers_a_lane(stage: Stage) -> None:
    lane = await asyncio.to_thread(RawLane.begun, stage.daemon.lane_port, hello(stage.key))
    try:
        await asyncio.to_thread(lane.ask, Heartbeat(Writer(stage.epoch).stamp()))
    finally:
        lane.close()


@asynccontextmanager
async def _port(port: Port, seeds: Seeds, folder: Path) -> AsyncIterator[Opened]:
    async with _stage(folder) as stage:

        async def good() -> Sequence[bytes]:
            await stage.begin_again()
            await _answers_a_lane(stage)
            return seeds(stage)

        yield Opened(over_tcp(port(stage.daemon)), good)


@asynccontextmanager
async def _grpc(folder: Path) -> AsyncIterator[Opened]:
    async with (
        _stage(folder) as stage,
        grpc.aio.insecure_channel(f"{HOST}:{stage.daemon.rpc_port}") as channel,
    ):

        async def good() -> Sequence[bytes]:
            await stage.begin_again()
            return requests(stage)

        yield Opened(partial(_called, channel), good)


def requests(stage: Stage) -> list[bytes]:
    writer = Writer(stage.epoch)
    sound: dict[str, Any] = {name: sample(row.request) for name, row in CALLS.items()}
    for request in sound.values():
        _named(request, stage.client.info(writer))
    found = [
        bytes((number, number)) + sound[name].SerializeToString()
        for number, name in enumerate(METHODS)
    ]
    batch = stage.client.batch(writer, 1, 4, 6).SerializeToString()
    return [*found, bytes((len(METHODS), 0)) + batch]


def _named(request: Any, info: pb.RequestInfo) -> None:  # noqa: ANN401 - any request
    fields = request.DESCRIPTOR.fields_by_name
    if "journal_id" in fields:
        request.journal_id = JID
    if "info" in fields:
        request.info.CopyFrom(info)
    if "namespace_info" in fields:
        request.namespace_info.CopyFrom(_space())
    if "source_urls" in fields:
        request.source_urls[:] = [f"http://{HOST}:1/getJournal", f"http://{'x' * 70}:1/getJournal"]
    if "force" in fields:
        request.force = False


METADATA: Final[Sequence[Sequence[tuple[str, str | bytes]]]] = (
    (),
    (("x-hostile", "y" * 4000),),
    (("nnha-refusal-bin", bytes(range(256))),),
    tuple((f"x-{number}", "z") for number in range(60)),
    (("authorization", "Bearer %s{0}"), ("x-a-bin", b"")),
    (("user-agent", "curl"), ("content-encoding", "gzip"), ("x-forwarded-for", "127.0.0.1")),
)


async def _called(channel: Any, said: Sequence[bytes]) -> None:  # noqa: ANN401 - grpc has no types
    """Make one call with these bytes as its request; on the stream each piece is a message."""
    data = b"".join(said)
    head, body = data[:2].ljust(2, b"\0"), data[2:]
    number = head[0] % (len(METHODS) + 1)
    metadata = METADATA[head[1] % len(METADATA)]
    try:
        if number < len(METHODS):
            call = channel.unary_unary(SERVICE + METHODS[number])
            await call(body, metadata=metadata, timeout=SECONDS)
        else:
            stream = channel.stream_stream(SERVICE + "Write")
            pieces = iter([body, *said[1:]])
            async for _ in stream(pieces, metadata=metadata, timeout=SECONDS):
                pass
    except grpc.aio.AioRpcError as error:
        if error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise Misbehaved(f"{number}: {error.code().name}: {error.details()}") from None


def http2_frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Encode a frame as RFC 9113 has it."""
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + http2_frame(4, 0, 0, b"")


def _literal(name: bytes, value: bytes) -> bytes:
    """Encode a header that goes into no table of HPACK's."""
    return b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value


def call_headers(path: bytes, timeout: bytes) -> bytes:
    return b"".join(
        _literal(name, value)
        for name, value in {
            b":method": b"POST", b":scheme": b"http", b":path": path,
            b":authority": b"x", b"te": b"trailers", b"content-type": b"application/grpc",
            b"grpc-timeout": timeout,
        }.items()
    )  # fmt: skip


def http2_call(path: bytes) -> bytes:
    """Encode one call in HTTP/2 by hand: its library would not send anything else."""
    headers = call_headers(path, b"5S")
    body = pb.JournalRequest(journal_id=JID).SerializeToString()
    call = b"\0" + len(body).to_bytes(4, "big") + body
    return PREFACE + http2_frame(1, 4, 1, headers) + http2_frame(0, 1, 1, call)


def http2_sessions(_: Stage) -> list[bytes]:
    whole = http2_call(SERVICE.encode() + b"GetStatus")
    preface, whole = whole[: len(PREFACE)], whole[len(PREFACE) :]
    return [
        preface + whole,
        preface + http2_frame(6, 0, 0, bytes(8)) * 3 + whole + http2_frame(3, 0, 1, bytes(4)),
        preface
        + whole
        + http2_frame(8, 0, 0, b"\x7f\xff\xff\xff")
        + http2_frame(7, 0, 0, bytes(8)),
    ]


def lanes(stage: Stage) -> list[bytes]:
    """Return a hello, a heartbeat and batches."""
    begin = hello_bytes(hello(stage.key))
    writer = Writer(stage.epoch)
    writer.start(1)
    batches = [message(writer.batch(1, first, first + 2)) for first in (4, 7)]
    beat = message(Heartbeat(writer.stamp()))
    return [begin + beat, begin + b"".join(batches), begin + batches[0] + beat]


HELLO_BYTES: Final = 38
"""Of a lane to this journal: most sessions get beyond it."""


def java_sessions(stage: Stage) -> list[bytes]:
    """Return Java's calls in the order of a writer's life, and each by itself."""
    greeting = PREAMBLE + encode_context(CLIENT, QJOURNAL_PROTOCOL, "hdfs", None)
    jid = hp.JournalIdProto(identifier=JID)
    found: dict[str, bytes] = {}
    for protocol in hadoop_protocols(stage.daemon.node):
        for number, (name, method) in enumerate(protocol.methods.items()):
            request: Any = sample(method.request)
            fields = request.DESCRIPTOR.fields_by_name
            if "jid" in fields:
                request.jid.CopyFrom(jid)
            if "reqInfo" in fields:
                request.reqInfo.CopyFrom(
                    hp.RequestInfoProto(journalId=jid, epoch=stage.epoch, ipcSerialNumber=number)
                )
            if "nsInfo" in fields:
                request.nsInfo.CopyFrom(java_namespace())
            if "records" in fields:
                request.firstTxnId, request.numTxns, request.records = 4, 3, records(4, 6)
            if "fromURL" in fields:
                request.fromURL = f"http://{'x' * 70}:1/getJournal"
            found[name] = encode_call(
                CallKey(CLIENT, number, 0), protocol.name, name, request.SerializeToString()
            )
    life = [found[name] for name in ("newEpoch", "startLogSegment", "journal", "heartbeat")]
    return [greeting + b"".join(life), *(greeting + call for call in found.values())]


def pages(stage: Stage) -> list[bytes]:
    space = NAMESPACE.storage_info().encode()
    asked = b"GET /getJournal?jid=ns1&segmentTxId=1&storageInfo=" + space
    return [
        asked + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        asked + b"&inProgressOk=true&damagedOk=true HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /jmx?qry=Hadoop:service=JournalNode,name=Journal-* HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]


def _open(port: Port, seeds: Seeds) -> Any:  # noqa: ANN401 - a context manager's maker
    return partial(_port, port, seeds)


JOURNAL_DOORS: Final = (
    Door("journal-grpc", _grpc, Shape.MESSAGE, 2),
    Door("journal-http2", _open(lambda d: d.rpc_port, http2_sessions)),
    Door("journal-java", _open(lambda d: d.hadoop_port, java_sessions), Shape.CONVERSATION),
    Door("journal-lane", _open(lambda d: d.lane_port, lanes), Shape.BYTES, HELLO_BYTES),
    Door("journal-pages", _open(lambda d: d.http_port, pages), Shape.LINES),
)
