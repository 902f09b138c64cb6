"""PUT /imagetransfer: ships an image to the active NameNode.

See docs/reference/namenode.md#image-transfer.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final
from urllib.parse import urlencode

import structlog

from ha.conf.topology import HostPort
from ha.daemon.http.negotiate import ASKED_BY, NotProven, ticket_for
from ha.daemon.in_thread import run_in_thread
from ha.daemon.lazy_import import load_late
from ha.security.caller import Role
from ha.security.own_tls import context_for, scheme
from journal.model import Epoch, NamespaceInfo, TxId
from namenode_sim.checkpoint.schedule import UploadAnswer
from namenode_sim.image.files import read_digest
from namenode_sim.transfer.image_fetch import CONNECT_SECONDS
from namenode_sim.transfer.image_request import PATH

if TYPE_CHECKING:
    import aiohttp

    Answered = tuple[aiohttp.ClientResponse, str]

log = structlog.get_logger()

EPOCH_PARAMETER: Final = "nnhaEpoch"
"""The journal's epoch under which the image was planned; Hadoop's NameNodes ignore it."""
REFUSAL_HEADER: Final = "X-Nnha-Refusal"
"""Says in one word why an image is refused, where Hadoop's status code has no word for it."""
SUPERSEDED: Final = "superseded"
_CHUNK_BYTES: Final = 256 * 1024
_NO_HEADERS: Final[Mapping[str, str]] = {}
_ANSWERS: Final = {
    200: UploadAnswer.ACCEPTED,
    417: UploadAnswer.NOT_ACTIVE,
    409: UploadAnswer.HAS_NEWER,
}


class UploadFailed(Exception):
    """The image was not taken, and the reason is neither that the other is standby nor newer."""


class UploadSuperseded(UploadFailed):
    """The image was planned under an epoch that is over; only a new plan can be taken."""


async def upload_image(
    target: HostPort,
    image: Path,
    txid: TxId,
    namespace: NamespaceInfo,
    *,
    stall_seconds: float,
    bytes_per_second: int = 0,
    epoch: Epoch | None = None,
) -> UploadAnswer:
    """Offer ``image``, which holds everything up to ``txid``, and send it if it is wanted.

    The body waits for the other side's word (Expect: 100-continue), so that a standby or a NameNode
    that has the image already costs no transfer.

    Args:
        target: the HTTP address of a NameNode.
        image: ``fsimage_<txid>`` with its digest next to it.
        stall_seconds: how long nothing may move before we give up, be it their word, our bytes or
            their answer.
        bytes_per_second: how fast to send; 0 is no limit.
        epoch: under which the checkpoint was planned; an active of a later one refuses it.

    Raises:
        UploadSuperseded: if the active writes under another epoch than ``epoch``.
        UploadFailed: if it was refused for another reason, or the connection failed.
        ImageError, OSError: if our own copy cannot be read.
    """
    await load_late("aiohttp")  # here: a standby has an image to send once an hour
    import aiohttp

    digest = await asyncio.to_thread(read_digest, image)
    size = (await asyncio.to_thread(image.stat)).st_size
    url = _url(target, txid, namespace, size, epoch)
    watch = asyncio.timeout(stall_seconds)

    def moved(pause: float) -> None:
        watch.reschedule(asyncio.get_running_loop().time() + pause + stall_seconds)

    # Ours to close: aiohttp drops a body half-read when the answer comes before its end.
    file = await run_in_thread(lambda: image.open("rb"), lambda opened: opened.close())
    try:
        # aiohttp begins to count when the body is out.  Before that, a NameNode that was stopped
        # would be waited for without end: for its word, or for room in its socket.
        async with watch:
            put = partial(_put, url, _headers(size, digest), stall_seconds)
            body = partial(_read_paced, file, size, bytes_per_second, moved)
            response, said = await _put_with_ticket(target.host, put, body)
    except (aiohttp.ClientError, NotProven, TimeoutError) as failure:
        why = str(failure) or type(failure).__name__
        if watch.expired():
            why = f"nothing moved for {stall_seconds:g} s"
        raise UploadFailed(f"{target} did not take {image.name}: {why}") from failure
    finally:
        file.close()
    answer = _ANSWERS.get(response.status)
    if answer is None:
        raise _refusal(response, f"{target} refused {image.name}: ", said)
    log.info("image.offered", name=image.name, to=str(target), answer=answer.name, said=said)
    return answer


def _headers(size: int, digest: str) -> Mapping[str, str]:
    return {
        "Content-Type": "application/octet-stream",
        "Content-Transfer-Encoding": "binary",
        "Content-Length": str(size),
        "X-MD5-Digest": digest,
    }


async def _put_with_ticket(
    host: str,
    put: "Callable[..., Awaitable[Answered]]",
    body: Callable[[], AsyncGenerator[bytes]],
) -> "Answered":
    """Send the request, once more with a ticket where the answer asks for one.

    Of the body nothing was sent then, as it waits for the other side's word.  Raises NotProven.
    """
    response, said = await put(body=body())
    ticket = await ticket_for(host, response.status, response.headers.getall(ASKED_BY, []))
    if ticket is None:
        return response, said
    response, said = await put(body=body(), more=ticket.headers)
    ticket.check(response.status, response.headers.getall(ASKED_BY, []))
    return response, said


async def _put(
    url: str,
    headers: Mapping[str, str],
    stall_seconds: float,
    *,
    body: AsyncGenerator[bytes],
    more: Mapping[str, str] = _NO_HEADERS,
) -> "Answered":
    """Send the request; return the answer and the beginning of its text."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=stall_seconds)
    connector = aiohttp.TCPConnector(ssl=context_for(Role.NAMENODE) or True)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        session.put(
            url, data=body, headers={**headers, **more}, expect100=True, allow_redirects=False
        ) as response,
    ):
        return response, (await response.content.read(500)).decode("utf-8", "replace")


def _refusal(response: "aiohttp.ClientResponse", who: str, said: str) -> UploadFailed:
    stale = response.headers.get(REFUSAL_HEADER) == SUPERSEDED
    kind = UploadSuperseded if stale else UploadFailed
    return kind(f"{who}{response.status} {response.reason} {said}")


def _url(
    target: HostPort, txid: TxId, namespace: NamespaceInfo, size: int, epoch: Epoch | None
) -> str:
    query = {
        "txid": str(txid),
        "storageInfo": namespace.storage_info(),
        "File-Length": str(size),
        "imageFile": "IMAGE",
    }
    if epoch is not None:
        query[EPOCH_PARAMETER] = str(epoch)
    return f"{scheme()}://{target}{PATH}?{urlencode(query)}"


async def _read_paced(
    file: BinaryIO, size: int, bytes_per_second: int, moved: Callable[[float], None]
) -> AsyncGenerator[bytes]:
    """Yield the image in pieces; report each sent piece and the next pause to ``moved``."""
    piece = min(_CHUNK_BYTES, max(bytes_per_second // 8, 512)) if bytes_per_second else _CHUNK_BYTES
    began, sent = time.monotonic(), 0
    file.seek(0)  # an earlier request may have sent some of it
    while sent < size:
        pause = 0.0
        if bytes_per_second:
            pause = max(0.0, sent / bytes_per_second - (time.monotonic() - began))
        moved(pause)
        await asyncio.sleep(pause)
        chunk = await run_in_thread(partial(file.read, min(piece, size - sent)))
        if not chunk:
            raise UploadFailed(f"{file.name} became shorter while it was sent")
        yield chunk
        sent += len(chunk)
    moved(0.0)
