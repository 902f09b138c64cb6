"""Reads a segment over HTTP from one JournalNode, and checks the edits as they come.

See docs/reference/journal-node.md#segment-transfer.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import aiohttp

from ha.daemon.http.negotiate import prove_ourselves
from ha.security.own_tls import secure_url, segment_context
from journal.errors import StorageFailed, Unavailable
from journal.links.settings import ReaderSettings
from journal.reader.frame_stream import Chunk, FrameReader


def hurried(settings: ReaderSettings) -> aiohttp.ClientTimeout:
    """Return the shorter timeouts for a node, if another node has the same segment."""
    patience = settings.source_patience_seconds
    return aiohttp.ClientTimeout(
        total=None,
        connect=min(patience, settings.http_open_timeout_seconds),
        sock_read=min(patience, settings.http_read_timeout_seconds),
    )


def http_session(settings: ReaderSettings) -> aiohttp.ClientSession:
    """Make a session with the settings' timeouts to connect and to read; a segment has none."""
    timeout = aiohttp.ClientTimeout(
        total=None,
        connect=settings.http_open_timeout_seconds,
        sock_read=settings.http_read_timeout_seconds,
    )
    connector = aiohttp.TCPConnector(ssl=segment_context() or True)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        middlewares=(prove_ourselves,),
    )


async def read_segment(
    session: aiohttp.ClientSession,
    url: str,
    frames: FrameReader,
    *,
    chunk_bytes: int,
    up_to_end: bool = True,
    timeout: aiohttp.ClientTimeout | None = None,
) -> AsyncGenerator[Chunk, None]:
    """Yield the chunks of one segment file as they come; memory: one edit or ``chunk_bytes``.

    ``timeout`` replaces the session's.  A redirection is an error: a JournalNode sends none.

    Raises:
        Unavailable: the node does not serve the segment, or stops in the middle.
        StorageFailed: the segment is damaged, or (with ``up_to_end``) too short.
    """
    try:
        patience = session.timeout if timeout is None else timeout
        async with session.get(
            secure_url(url), timeout=patience, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise Unavailable(f"{url} answered {response.status} {response.reason}")
            async with aclosing(_pieces(response, chunk_bytes)) as pieces:
                async for piece in pieces:
                    chunk = frames.feed(piece)
                    if chunk is not None:
                        yield chunk
                    if frames.complete:
                        return
    except (aiohttp.ClientError, TimeoutError, OSError) as failure:
        raise Unavailable(f"{url}: {str(failure) or type(failure).__name__}") from failure
    except ValueError as damage:
        raise StorageFailed(f"{url}: {damage}") from damage
    if up_to_end:
        raise StorageFailed(f"{url} ends before transaction {frames.next_txid}")


async def _pieces(response: aiohttp.ClientResponse, size: int) -> AsyncGenerator[bytes, None]:
    """Yield the body in pieces of ``size`` bytes: small pieces would cost more for each edit."""
    held = bytearray()
    async for data, _ in response.content.iter_chunks():
        held += data
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)
