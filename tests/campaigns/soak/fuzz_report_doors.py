"""The doors by which a NameNode hears of replicas and of images."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp

from ha.conf.topology import HostPort
from ha.rpc.java_names import DATANODE_PROTOCOL
from ha.rpc.packets import PREAMBLE, CallKey, encode_call, encode_context
from hadoop.proto import datanode_protocol_pb2 as pb
from journal.model import TxId
from namenode_sim.transfer.image_request import PATH
from tests.campaigns.soak.fuzz_door import HOST, Door, Misbehaved, Opened, over_tcp
from tests.campaigns.soak.fuzz_namenode_doors import CLIENT
from tests.datanode.stores import POOL
from tests.hostile.samples import sample
from tests.hostile.shapes import Shape
from tests.namenode_sim.checkpoint.image_receiving import TXID, receiving
from tests.namenode_sim.datanode_protocol.served import INFO, NameNode, calls, name_node
from tests.namenode_sim.datanode_protocol.test_face import identity, joined
from tests.worlds.files import info

CALLS: Final[Mapping[str, type[Any]]] = {
    "registerDatanode": pb.RegisterDatanodeRequestProto,
    "sendHeartbeat": pb.HeartbeatRequestProto,
    "blockReport": pb.BlockReportRequestProto,
    "blockReceivedAndDeleted": pb.BlockReceivedAndDeletedRequestProto,
    "errorReport": pb.ErrorReportRequestProto,
    "reportBadBlocks": pb.ReportBadBlocksRequestProto,
    "commitBlockSynchronization": pb.CommitBlockSynchronizationRequestProto,
}
BODY_BYTES: Final = 20_000


@asynccontextmanager
async def _datanodes(_: Path) -> AsyncIterator[Opened]:
    async with name_node(active=True) as made:

        async def good() -> Sequence[bytes]:
            await _report(made)
            if made.broken:
                raise Misbehaved(f"a duty has ended: {made.broken}")
            return _conversations()

        yield Opened(over_tcp(made.port), good)


async def _report(made: NameNode) -> None:
    """Register a DataNode, report, and find it in the list."""
    who = identity("uuid-good", 9899)
    async with calls(made) as asked:
        lease = await joined(asked, who)
        await asked.full_report(who, [], {}, lease=lease, split_blocks=1_000_000)
    if who.uuid not in {node.id.uuid for node in made.cluster.nodes.values()}:
        raise Misbehaved("who has registered is not known")


def _conversations() -> list[bytes]:
    """Return one for each method: what is said first is a sound registration."""
    greeting = PREAMBLE + encode_context(CLIENT, DATANODE_PROTOCOL, "hdfs", None)
    registration = identity().registration
    hello = pb.RegisterDatanodeRequestProto(registration=registration)
    found = []
    for name, kind in CALLS.items():
        request = sample(kind)
        for field in ("registration", "registartion"):
            if field in kind.DESCRIPTOR.fields_by_name:
                getattr(request, field).CopyFrom(registration)
        if "blockPoolId" in kind.DESCRIPTOR.fields_by_name:
            request.blockPoolId = POOL.pool  # type: ignore[attr-defined]
        found.append(
            greeting
            + _call(0, "registerDatanode", hello.SerializeToString())
            + _call(1, name, request.SerializePartialToString())
        )
    return found


def _call(number: int, name: str, request: bytes) -> bytes:
    return encode_call(CallKey(CLIENT, number, 0), DATANODE_PROTOCOL, name, request)


@asynccontextmanager
async def _images(folder: Path) -> AsyncIterator[Opened]:
    async with receiving(folder, stall_seconds=5.0) as (active, at):
        active.written_to = TxId(TXID + 1_000_000)
        places = [directory / "current" for directory in active.storage.directories]
        before = [sorted(path.name for path in place.iterdir()) for place in places]

        async def good() -> Sequence[bytes]:
            async with aiohttp.ClientSession() as session:
                await _offer(session, at)
            after = [sorted(path.name for path in place.iterdir()) for place in places]
            if after != before:
                raise Misbehaved(f"{after} is left of {before}")
            return _offers()

        yield Opened(over_tcp(at.port), good)


async def _offer(session: aiohttp.ClientSession, at: HostPort) -> None:
    """Check that the page answers, and refuses what is no image as such.

    While an upload whose client hung up is removed, others are answered that it is on its way.
    """
    async with session.get(f"http://{at}/health") as answer:
        if answer.status != HTTPStatus.OK:
            raise Misbehaved(f"/health is answered with {answer.status}")
    body, words = _offered(TxId(TXID + 1))
    headers = {"X-MD5-Digest": _digest(body)}
    status: int = HTTPStatus.CONFLICT
    while status == HTTPStatus.CONFLICT:
        async with session.put(f"http://{at}{PATH}?{words}", data=body, headers=headers) as answer:
            status = answer.status
        await asyncio.sleep(0.01)
    if status != HTTPStatus.GONE:
        raise Misbehaved(f"what is no image is answered with {status}")


def _digest(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def _offered(txid: TxId, **more: str) -> tuple[bytes, str]:
    body = b"HDFSIMG1" + random.Random(txid).randbytes(BODY_BYTES)
    asked = {
        "txid": str(txid),
        "File-Length": str(len(body)),
        "imageFile": "IMAGE",
        "storageInfo": info().storage_info(),
    }
    return body, urlencode(asked | more)


def _offers() -> list[bytes]:
    found = []
    for number, more in enumerate(({}, {"epoch": "3"}, {"storageInfo": INFO.storage_info()})):
        body, words = _offered(TxId(TXID + 1 + number), **more)
        head = f"PUT {PATH}?{words} HTTP/1.1\r\nHost: {HOST}\r\nX-MD5-Digest: {_digest(body)}\r\n"
        length = f"Content-Length: {len(body)}\r\n"
        found += [
            f"{head}{length}\r\n".encode() + body,
            f"{head}{length}Expect: 100-continue\r\n\r\n".encode() + body,
            f"{head}Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode()
            + body
            + b"\r\n0\r\n\r\n",
        ]
    return found


REPORT_DOORS: Final = (
    Door("datanode-protocol", _datanodes, Shape.CONVERSATION),
    Door("image-put", _images, Shape.LINES),
)
