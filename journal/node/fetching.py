"""Bring a finalized segment from a peer: checked while it streams, at a bounded rate."""

import asyncio
from collections.abc import Sequence
from typing import Final

import aiohttp
import structlog

from journal.errors import JournalError, Unavailable
from journal.model import Segment
from journal.node import metrics
from journal.node.owner import JournalOwner
from journal.node.settings import NodeSettings
from journal.node.throttle import Throttle
from journal.storage.disk import Download
from journal.storage.segment_file import SegmentCheck

log = structlog.get_logger()

_CHUNK_BYTES: Final = 1 << 18


async def fetch_finalized(
    owner: JournalOwner, segment: Segment, urls: Sequence[str], settings: NodeSettings
) -> None:
    """Download a segment beside the journal; returns when its bytes are durable.

    Raises:
        Unavailable: no source gave exactly these edits; nothing has changed here.
        StorageFailed: our own disk failed.
    """
    timeout = aiohttp.ClientTimeout(
        total=None,
        connect=settings.fetch_connect_seconds,
        sock_read=settings.sync_stall_seconds,
    )
    failures = []
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:
        for url in urls:
            why = await _from_one(owner, segment, session, url, settings)
            if why is None:
                return
            failures.append(f"{url}: {why}")
    raise Unavailable(
        f"no peer gave the finalized edits {segment.first}-{segment.last}: {'; '.join(failures)}"
    )


async def _from_one(
    owner: JournalOwner,
    segment: Segment,
    session: aiohttp.ClientSession,
    url: str,
    settings: NodeSettings,
) -> str | None:
    """Try one source; returns why it failed, or None."""
    download = await owner.in_thread(owner.disk.begin_fetch, segment)
    try:
        async with session.get(url, allow_redirects=False) as response:
            why = await _receive(owner, segment, response, download, settings)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failure:
        if isinstance(failure, ValueError):
            metrics.CORRUPT.labels(owner.journal_id).inc()
        why = str(failure) or type(failure).__name__
    except BaseException:
        await _drop(owner, download)
        raise
    if why is None:
        await owner.in_thread(download.finish)
    else:
        await _drop(owner, download)
    return why


async def _drop(owner: JournalOwner, download: Download) -> None:
    try:
        await asyncio.shield(owner.in_thread(download.discard))
    except JournalError as stopped:
        # The journal is closed or has failed; its next load removes the file.
        log.info("sync.leftover", journal=owner.journal_id, because=str(stopped))


async def _receive(
    owner: JournalOwner,
    segment: Segment,
    response: aiohttp.ClientResponse,
    download: Download,
    settings: NodeSettings,
) -> str | None:
    """Store a source's bytes as far as they are sound; ValueError where they are not."""
    if response.status != 200:
        return f"it answered {response.status} {response.reason}"
    length = response.content_length
    if length is None or length > settings.max_segment_bytes:
        return f"it announced {length} bytes, at most {settings.max_segment_bytes} are taken"
    check = SegmentCheck(segment)
    throttle = Throttle(settings.sync_bytes_per_second)
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        await throttle.spend(len(chunk))
        sound = check.feed(chunk)
        if sound:
            await owner.in_thread(download.append, sound)
        if check.complete:
            break
    check.finish()
    return None
