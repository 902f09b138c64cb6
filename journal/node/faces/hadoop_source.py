"""What the source of a Java writer's recovery holds: its digest, which Hadoop's messages lack."""

from typing import Final
from urllib.parse import urlsplit

import aiohttp
import structlog

from journal.errors import BadRequest, Unavailable
from journal.model import TxId
from journal.node.settings import NodeSettings
from journal.storage.segment_file import SegmentReading

log = structlog.get_logger()

_CHUNK_BYTES: Final = 1 << 20
_MAX_URL_CHARS: Final = 4096


async def digest_of_source(url: str, first: TxId, last: TxId, settings: NodeSettings) -> bytes:
    """Read a segment from where a recovery says that it lies; the digest of ``first..last``.

    Nothing is stored.  If our own copy turns out to differ, the bytes are fetched once more and
    checked against this digest, as in any other recovery.

    Raises:
        BadRequest: the address is not that of a segment.
        Unavailable: the source does not give sound edits up to ``last``.
    """
    parts = urlsplit(url[:_MAX_URL_CHARS])
    if parts.scheme not in ("http", "https") or parts.path != "/getJournal":
        raise BadRequest(f"{url[:200]!r} is not the address of a segment")
    timeout = aiohttp.ClientTimeout(
        total=None, connect=settings.fetch_connect_seconds, sock_read=settings.fetch_stall_seconds
    )
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
            session.get(url, allow_redirects=False) as response,
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
