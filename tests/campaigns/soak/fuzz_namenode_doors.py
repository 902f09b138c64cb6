"""The doors of a NameNode and of a DataNode: Hadoop RPC, pages, and blocks."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp

from ha.daemon.http.endpoint import Endpoint
from ha.rpc.client import RpcConnection
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.packets import PREAMBLE, CallKey, encode_call, encode_context
from ha.rpc.protocol import Call, RpcProtocol
from ha.rpc.server import RpcServer
from ha.service.ha_service import ha_service_protocol, zkfc_protocol
from ha.service.model import RequestSource, ServiceState, ServiceStatus
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import data_transfer_pb2 as dt
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.checksums import checksums_of
from hadoop.wire.packets import Op, PacketHeader, encode_op, encode_packet
from tests.campaigns.soak.fuzz_door import HOST, Door, Misbehaved, Opened, over_tcp
from tests.datanode.block_client import header, node, places, read, write_whole
from tests.datanode.stores import CHECKSUM, block
from tests.hostile.samples import sample
from tests.hostile.shapes import Shape
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, prepared

CLIENT: Final = bytes(range(16))
SECONDS: Final = 15.0
DATA: Final = bytes(range(250)) * 8


class Standby:
    """A service that is asked for its status and to change."""

    async def status(self) -> ServiceStatus:
        return ServiceStatus(ServiceState.STANDBY, ready_to_become_active=True)

    async def monitor_health(self) -> None:
        return

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        return

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        return

    async def cede_active(self, millis: int, call: Call) -> None:
        return

    async def graceful_failover(self, _: Call) -> None:
        return


def conversations(protocols: Sequence[RpcProtocol]) -> list[bytes]:
    """Return one for each method, with a call before and a ping's worth of calls after it."""
    found = []
    for protocol in protocols:
        greeting = PREAMBLE + encode_context(CLIENT, protocol.name, SUPERUSER, None)
        for number, (name, method) in enumerate(protocol.methods.items()):
            request = sample(method.request).SerializePartialToString()
            call = encode_call(CallKey(CLIENT, number, 0), protocol.name, name, request, "context")
            again = encode_call(CallKey(CLIENT, number, 1), protocol.name, name, request)
            found.append(greeting + call + again)
    return found


@asynccontextmanager
async def _namenode(_: Path) -> AsyncIterator[Opened]:
    served = await prepared()
    service = Standby()
    protocols = (
        served.face.protocol(),
        ha_service_protocol(service),
        zkfc_protocol(service),
    )
    server = RpcServer(protocols)
    port = await server.start(HOST, 0)

    async def good() -> Sequence[bytes]:
        for name in (HA_SERVICE_PROTOCOL, CLIENT_PROTOCOL):
            connection = await RpcConnection.open(
                HOST, port, protocol=name, user=SUPERUSER, deadline_seconds=SECONDS
            )
            try:
                if name == CLIENT_PROTOCOL:
                    await connection.call(
                        "getFileInfo", calls.GetFileInfoRequestProto(src="/"),
                        calls.GetFileInfoResponseProto, deadline_seconds=SECONDS,
                    )  # fmt: skip
            finally:
                await connection.close()
        if server.connection_count > 1:
            raise Misbehaved(f"{server.connection_count} connections are left")
        return conversations(protocols)

    try:
        yield Opened(over_tcp(port), good)
    finally:
        await server.stop()


HEADS: Final = (
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
    b"GET /status?a=b&c=%20 HTTP/1.0\r\n\r\n",
    b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
    b"OPTIONS /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /nowhere?x=1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n0\r\n\r\n",
    b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nCookie: a=b\r\nRange: bytes=0-\r\n\r\n",
)


@asynccontextmanager
async def _pages(_: Path) -> AsyncIterator[Opened]:
    endpoint = Endpoint(status=lambda: {"role": "none"}, healthy=lambda: None)
    port = await endpoint.start(HOST, 0)

    async def good() -> Sequence[bytes]:
        async with aiohttp.ClientSession() as session:
            for path, status in {"/health": 200, "/nowhere": 404}.items():
                async with session.get(f"http://{HOST}:{port}{path}") as answer:
                    if answer.status != status:
                        raise Misbehaved(f"{path} is answered with {answer.status}")
        return HEADS

    try:
        yield Opened(over_tcp(port), good)
    finally:
        await endpoint.stop()


@asynccontextmanager
async def _datanode(folder: Path) -> AsyncIterator[Opened]:
    async with node(folder) as one:
        await write_whole(places([one]), block(), DATA)

        async def good() -> Sequence[bytes]:
            if await read(one.place, block(), 0, len(DATA)) != DATA:
                raise Misbehaved("the block that was there before is another one")
            return _operations()

        yield Opened(over_tcp(one.place.port), good)


def _operations() -> list[bytes]:
    """Return operations; none names a DataNode behind this one: its address would change, too."""
    whole, mine = header(block(), len(DATA)), header(block(77))
    write = dt.OpWriteBlockProto(
        header=mine, stage=dt.OpWriteBlockProto.PIPELINE_SETUP_CREATE, pipelineSize=1,
        minBytesRcvd=0, maxBytesRcvd=0, latestGenerationStamp=0,
        requestedChecksum=dt.ChecksumProto(type=hdfs.CHECKSUM_CRC32C, bytesPerChecksum=512),
    )  # fmt: skip
    packets = encode_packet(
        PacketHeader(0, 0, last=False, length=len(DATA)), checksums_of(DATA, CHECKSUM), DATA
    ) + encode_packet(PacketHeader(len(DATA), 1, last=True, length=0), b"", b"")
    requests: Mapping[Op, bytes] = {
        Op.WRITE_BLOCK: encode_op(Op.WRITE_BLOCK, write) + packets,
        Op.READ_BLOCK: encode_op(
            Op.READ_BLOCK, dt.OpReadBlockProto(header=whole, offset=0, len=len(DATA))
        ),
        Op.BLOCK_CHECKSUM: encode_op(
            Op.BLOCK_CHECKSUM, dt.OpBlockChecksumProto(header=whole.baseHeader)
        ),
        Op.TRANSFER_BLOCK: encode_op(Op.TRANSFER_BLOCK, dt.OpTransferBlockProto(header=whole)),
        Op.COPY_BLOCK: encode_op(Op.COPY_BLOCK, whole),
    }
    return list(requests.values())


NAMENODE_DOORS: Final = (
    Door("namenode-rpc", _namenode, Shape.CONVERSATION),
    Door("pages", _pages, Shape.LINES),
    Door("datanode", _datanode, Shape.MESSAGE, 5),
)
