"""Downloads segments from other nodes, checks the bytes as they come, and makes them durable."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import structlog

from ha.daemon.http.negotiate import prove_ourselves
from ha.record import dataclass
from ha.security.own_tls import secure_url, segment_context
from journal.core.replies import Fetch
from journal.errors import BadRequest, Fenced, JournalError, Unavailable
from journal.model import Segment, TxId
from journal.node import metrics
from journal.node.owner.owner import JournalOwner
from journal.node.repair.throttle import Throttle
from journal.node.settings import NodeSettings
from journal.storage.download import Download
from journal.storage.segment_file import SegmentCheck, SegmentReading

log = structlog.get_logger()

_CHUNK_BYTES: Final = 1 << 20
_MAX_URLS: Final = 64
_MAX_URL_CHARS: Final = 4096


@dataclass(frozen=True, slots=True)
class _Errand:
    """A segment to download, its destination and limits; it is cancelled once ``overtaken``."""

    segment: Segment
    begin: Callable[[], Download]
    overtaken: Callable[[], bool]
    stall_seconds: float
    bytes_per_second: int = 0


async def fetch_decided(
    owner: JournalOwner, wanted: Fetch, urls: Sequence[str], settings: NodeSettings
) -> int:
    """Download the segment of a recovery next to this node's copy, and return its size in bytes.

    Raises:
        Unavailable: no source has sent the decided edits; nothing has changed here.
        Fenced: a newer writer was promised during the download.
        StorageFailed: this node's disk has failed.

    See docs/reference/journal-node.md#acceptrecovery.
    """
    segment = wanted.segment
    errand = _Errand(
        segment,
        partial(owner.disk.begin_download, segment.first, wanted.epoch),
        overtaken=lambda: owner.state.promised != wanted.epoch,
        stall_seconds=settings.fetch_stall_seconds,
    )
    brought = await _from_any(owner, errand, urls, settings)
    if isinstance(brought, Download):
        return brought.size_bytes
    if errand.overtaken():
        promised = owner.state.promised
        raise Fenced(f"epoch {promised} was promised during the download", promised=promised)
    raise Unavailable(
        f"no source gave the decided edits {segment.first}-{segment.last}: "
        + ("; ".join(brought) or "none was named")
    )


async def fetch_finalized(
    owner: JournalOwner, segment: Segment, urls: Sequence[str], settings: NodeSettings
) -> None:
    """Download a peer's finalized segment next to the journal, at the rate of background sync.

    Raises:
        Unavailable: no source has sent exactly these edits; nothing has changed here.
        StorageFailed: this node's disk has failed.
    """
    errand = _Errand(
        segment,
        partial(owner.disk.begin_fetch, segment),
        overtaken=lambda: False,
        stall_seconds=settings.sync_stall_seconds,
        bytes_per_second=settings.sync_bytes_per_second,
    )
    brought = await _from_any(owner, errand, urls, settings)
    if not isinstance(brought, Download):
        raise Unavailable(
            f"no peer gave the finalized edits {segment.first}-{segment.last}: "
            + "; ".join(brought)
        )


def _session(timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
    """Make an HTTP session to JournalNodes, with TLS if this process has certificates."""
    tls = segment_context()
    connector = None if tls is None else aiohttp.TCPConnector(ssl=tls)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        middlewares=(prove_ourselves,),
    )


async def _from_any(
    owner: JournalOwner, errand: _Errand, urls: Sequence[str], settings: NodeSettings
) -> Download | list[str]:
    """Try the sources in order; return the first good download, or the reasons of all failures."""
    timeout = aiohttp.ClientTimeout(
        total=None, connect=settings.fetch_connect_seconds, sock_read=errand.stall_seconds
    )
    failures: list[str] = []
    async with _session(timeout) as session:
        for url in urls[:_MAX_URLS]:
            if errand.overtaken():
                break
            brought = await _from_one(owner, errand, session, url, settings.max_segment_bytes)
            if isinstance(brought, Download):
                return brought
            failures.append(f"{url}: {brought}")
            log.warning("segment.source_failed", journal=owner.journal_id, url=url, because=brought)
    return failures


async def _from_one(
    owner: JournalOwner,
    errand: _Errand,
    session: aiohttp.ClientSession,
    url: str,
    max_bytes: int,
) -> Download | str:
    """Download from one source; return the durable download, or the reason of the failure."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.path != "/getJournal":
        return "it is not the address of a segment"
    download = await owner.in_thread(errand.begin)
    try:
        async with session.get(secure_url(url), allow_redirects=False) as response:
            why = await _receive(owner, errand, response, download, max_bytes)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failure:
        if isinstance(failure, ValueError):
            metrics.CORRUPT.labels(owner.journal_id).inc()
        why = str(failure) or type(failure).__name__
    except BaseException:
        await _drop(owner, download)
        raise
    if why is None:
        await owner.in_thread(download.finish)
        return download
    await _drop(owner, download)
    return why


async def _drop(owner: JournalOwner, download: Download) -> None:
    try:
        await asyncio.shield(owner.in_thread(download.discard))
    except JournalError as stopped:
        # The journal is closed or has failed; its next load deletes the file.
        log.info("segment.download_left", journal=owner.journal_id, because=str(stopped))


async def _receive(
    owner: JournalOwner,
    errand: _Errand,
    response: aiohttp.ClientResponse,
    download: Download,
    max_bytes: int,
) -> str | None:
    """Store a response's checked bytes; return why not, or None; raise ValueError for bad bytes."""
    if response.status != 200:
        return f"it answered {response.status} {response.reason}"
    if response.content_length is None or response.content_length > max_bytes:
        return f"it announced {response.content_length} bytes, at most {max_bytes} are taken"
    check = SegmentCheck(errand.segment)
    throttle = Throttle(errand.bytes_per_second)
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        await throttle.spend(len(chunk))
        if errand.overtaken():
            return "a newer writer was promised meanwhile"
        sound = check.feed(chunk)
        if sound:
            await owner.in_thread(download.append, sound)
        if check.complete:
            break
    check.finish()
    return None


async def digest_of_source(url: str, first: TxId, last: TxId, settings: NodeSettings) -> bytes:
    """Read a segment from its source, and return the digest of the edits ``first`` to ``last``.

    Nothing is stored: if this node's copy differs, the segment is downloaded again, and checked
    with this digest as in any other recovery.

    Raises:
        BadRequest: the URL is not one of a segment.
        Unavailable: the source does not send sound edits up to ``last``.
    """
    parts = urlsplit(url[:_MAX_URL_CHARS])
    if parts.scheme not in ("http", "https") or parts.path != "/getJournal":
        raise BadRequest(f"{url[:200]!r} is not the address of a segment")
    timeout = aiohttp.ClientTimeout(
        total=None, connect=settings.fetch_connect_seconds, sock_read=settings.fetch_stall_seconds
    )
    try:
        async with (
            _session(timeout) as session,
            session.get(secure_url(url), allow_redirects=False) as response,
        ):
            digest = await _digest(response, first, last, settings.max_segment_bytes)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failure:
        why = str(failure) or type(failure).__name__
        raise Unavailable(f"the source of segment {first}-{last}, {url[:500]}: {why}") from failure
    log.info("recovery.source_read", url=url[:500], first=first, last=last, digest=digest.hex())
    return digest


async def _digest(
    response: aiohttp.ClientResponse, first: TxId, last: TxId, max_bytes: int
) -> bytes:
    if response.status != 200:
        raise ValueError(f"it answered {response.status} {response.reason}")
    if response.content_length is None or response.content_length > max_bytes:
        raise ValueError(f"it announced {response.content_length} bytes, at most {max_bytes}")
    reading = SegmentReading(first, last)
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        reading.feed(chunk)
        if reading.complete:
            break
    return reading.finish()
